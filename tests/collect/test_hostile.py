"""Servers that mean harm: what one of them answers costs its own lines, and no other's."""

from __future__ import annotations

import asyncio
import gzip
import json
import stat
import time
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import get_ident
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jobs.collect import names as reading
from jobs.collect import questions
from jobs.collect.client import Answer, RemotingClient
from jobs.collect.collector import Collector
from jobs.collect.dump_folder import DumpFolder
from jobs.collect.memory import Memory
from jobs.collect.questions import RequestCode, members
from jobs.collect.rounds import Round
from jobs.collect.turns import LeastFirst
from jobs.config.bounds import DEFAULT_BOUNDS
from jobs.dumps.statements import RefusedLine, StatementReader
from jobs.storage import Location, SnapshotWriter
from tests.collect.hostile_cluster import run
from tests.support.asking import client_of
from tests.support.frames import Frame, encode
from tests.support.remote_cluster import RemoteCluster
from tests.support.replay import (
    Answering,
    Manners,
    Replay,
    answer_frame,
    answering,
    error,
    recorded,
)

Result = TypeVar("Result")
TIMEOUT = 0.5
HONEST = ("a:10911", "b:10911")
EVIL = "evil:10911"
Lines = list[dict[str, Any]]


@pytest.fixture
def cluster() -> RemoteCluster:
    """Two honest brokers, and one whose answers a test chooses."""
    made = RemoteCluster(brokers={each[0]: {0: each} for each in HONEST})
    made.add_group("G", ["x", "y"], ["T"])
    made.add_group("H", ["u"], ["T", "U"])
    return made


def with_evil(cluster: RemoteCluster, evil: Answering) -> dict[str, Answering]:
    cluster.brokers["evil"] = {0: EVIL}
    return {**cluster.answers(), EVIL: evil}


def answered(asked: Frame, by_code: Mapping[int, bytes], other: Answering) -> bytes | None:
    """The bodies that were chosen, and otherwise what an honest server answers."""
    body = by_code.get(asked.code)
    return other(asked) if body is None else answer_frame(body)


def rounds(
    answers: Mapping[str, Answering],
    number: int = 1,
    manners: Mapping[str, Manners] | None = None,
    options: Mapping[str, Any] | None = None,
    more: Mapping[str, str] | None = None,
    **target: Any,
) -> tuple[list[Lines], Memory, list[float], tuple[str, ...]]:
    """The lines of rounds as they are on the disk, what is remembered, seconds and troubles."""

    async def collect(folder: DumpFolder) -> tuple[Memory, list[float], tuple[str, ...]]:
        async with Replay(answers, manners or {}) as replay:
            connect_to = {**replay.connect_to, **(more or {})}
            chosen = {"timeout_seconds": TIMEOUT, "connect_to": connect_to, **target}
            clock = iter(range(1, 1 << 62, 1_000))
            async with client_of(lambda: next(clock), **{**chosen, **(options or {})}) as client:
                collector = Collector(client, folder)
                done = [await collector.collect() for _ in range(number)]
                memory = folder.remembered(collector._key)
                return memory, [each.seconds for each in done], done[-1].troubles

    with TemporaryDirectory() as place:
        folder = DumpFolder(Path(place))
        with folder.locked():
            memory, seconds, troubles = asyncio.run(collect(folder))
        paths = sorted(Path(place).glob("*/*.gz"))
        lines = [
            [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
            for path in paths
        ]
    return lines, memory, seconds, troubles


def honest_lists(lines: Lines, groups: Iterable[str] = ("G", "H")) -> bool:
    """Whether every list of the honest brokers is there, once and whole."""
    found = Counter(
        (line["consumer_group"], line["broker_addr"])
        for line in lines
        if line["kind"] == "consumer_connection" and "body" in line
    )
    return all(found[group, address] == 1 for group in groups for address in HONEST)


def left_out(lines: Lines) -> dict[str, int]:
    bodies = [json.loads(line["body"]) for line in lines if line["kind"] == "left_out"]
    return {each["what"]: each["number"] for each in bodies}


def groups_body(names: Iterable[str]) -> bytes:
    return json.dumps({"subscriptionGroupTable": {name: {} for name in names}}).encode()


def nobody(_: Frame) -> bytes:
    return error(206, "not online")


Ask = Callable[[RemotingClient, Replay], Awaitable[Result]]


def asking(ask: Ask[Result], answers: Mapping[str, Answering], **options: Any) -> Result:
    """What comes of questions of a client, by itself, to servers of this machine."""

    async def whole() -> Result:
        async with Replay(answers) as replay:
            chosen = {"timeout_seconds": TIMEOUT, "connect_to": replay.connect_to, **options}
            async with client_of(lambda: 0, **chosen) as client:
                return await ask(client, replay)

    return asyncio.run(whole())


# One bad answer


def test_half_a_surrogate_pair_in_a_remark_costs_its_own_line(cluster: RemoteCluster) -> None:
    header = b'{"code":1,"flag":1,"language":"JAVA","opaque":0,"remark":"\\ud83d","version":401}'
    half = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header

    (lines,), *_ = rounds(with_evil(cluster, lambda _: half))
    assert honest_lists(lines)
    remarks = {line["error_message"] for line in lines if line.get("broker_addr") == EVIL}
    assert remarks == {"?"}


@pytest.mark.parametrize("broker_id", ["9" * 5_000, "\u0663", "-1", "1e3"])
def test_broker_ids_that_are_none_cost_their_own_broker(
    cluster: RemoteCluster, broker_id: str
) -> None:
    answers = dict(cluster.answers())
    whole = answers["ns1:9876"]
    table = {"brokerAddrs": {broker_id: "c:1"}, "brokerName": "c", "cluster": "C"}
    brokers = {
        name: {"brokerAddrs": {"0": at[0]}, "brokerName": name, "cluster": "C"}
        for name, at in cluster.brokers.items()
    }
    body = json.dumps({"brokerAddrTable": {**brokers, "c": table}}).encode()
    for namesrv in cluster.namesrvs:
        answers[namesrv] = lambda asked: answered(asked, {106: body}, whole)
    (lines,), *_ = rounds(answers)
    assert honest_lists(lines)


def test_a_code_below_0_is_no_code_of_ours(cluster: RemoteCluster) -> None:
    (lines,), *_ = rounds(with_evil(cluster, lambda _: error(-1, "no answer, really")))
    assert honest_lists(lines)
    assert -3 in {line.get("error_code") for line in lines if line.get("broker_addr") == EVIL}


@pytest.mark.long
def test_names_beyond_rocketmqs_limits_are_not_asked_and_are_said(cluster: RemoteCluster) -> None:
    long = "L" * (9 << 20)
    topics = [f"{number}" * 128 for number in range(3)]
    bodies = {201: groups_body([long]), 343: json.dumps({"topicList": topics}).encode()}
    honest = cluster.answers()["a:10911"]
    evil = with_evil(cluster, lambda asked: answered(asked, bodies, honest))
    (first, second), memory, *_ = rounds(
        evil, 2, options={"most_bytes": 16 << 20, "timeout_seconds": 5.0}
    )
    for lines in (first, second):
        assert honest_lists(lines)
    assert left_out(first)["groups with names that are too long"] == 1
    assert left_out(first)["topics with names that are too long"] == 2 * 3
    assert all(len(group) < 256 for _, group in memory.groups)
    assert all(len(topic) < 128 for _, topic in memory.topics)
    for line in first:
        assert not isinstance(
            StatementReader(DEFAULT_BOUNDS, None).read(json.dumps(line).encode()), RefusedLine
        )


def test_a_request_that_cannot_be_written_gives_up_no_address() -> None:
    async def ask(client: RemotingClient, _: Replay) -> list[int]:
        asked = [members("G" * (17 << 20)), members("G\ud83d"), members("G")]
        return [(await client.ask("a:1", each)).code for each in asked]

    assert asking(ask, {"a:1": nobody}) == [-2, -2, 206]


# Cost


@pytest.mark.long
def test_a_body_that_is_slow_to_read_does_not_keep_others_waiting(cluster: RemoteCluster) -> None:
    # No JSON parser reads it, and the tokenizer takes 20 s.
    slow = b"{'subscriptionGroupTable':{" + b"'g':{'a':1}," * 1_000_000 + b"}}"
    honest = cluster.answers()["a:10911"]
    evil = with_evil(cluster, lambda asked: answered(asked, {201: slow, 203: slow}, honest))
    began = time.process_time()
    (lines,), _, (seconds,), _ = rounds(
        evil, options={"most_bytes": 16 << 20, "timeout_seconds": 5.0}
    )
    assert honest_lists(lines)
    assert seconds < 10
    assert time.process_time() - began < 10


def test_a_body_of_many_small_values_is_not_unfolded(cluster: RemoteCluster) -> None:
    wide = b'{"subscriptionGroupTable":[' + b"[]," * 2_500_000 + b"0]}"
    honest = cluster.answers()["a:10911"]
    evil = with_evil(cluster, lambda asked: answered(asked, {201: wide}, honest))
    (lines,), _, (seconds,), _ = rounds(evil, options={"timeout_seconds": 5.0})
    assert honest_lists(lines)
    assert seconds < 5


def test_a_long_body_is_read_off_the_loop(
    cluster: RemoteCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop goes on meanwhile: time-outs, SIGTERM and the other answers do not wait."""
    long = b'{"subscriptionGroupTable":{},"more":"' + b"x" * (1 << 15) + b'"}'
    threads = []

    def groups_in(answer: Answer) -> Any:
        if len(answer.body) > 1 << 15:
            threads.append(get_ident())
        return read(answer)

    code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
    read = reading.READERS[code]
    monkeypatch.setitem(reading.READERS, code, groups_in)
    honest = cluster.answers()["a:10911"]
    rounds(with_evil(cluster, lambda asked: answered(asked, {201: long}, honest)))
    assert len(threads) == 1
    assert threads[0] != get_ident()


def test_answers_that_are_slow_to_read_are_read_for_a_part_of_the_round(
    cluster: RemoteCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed_in(answer: Answer) -> Any:
        ends = time.thread_time() + 0.3 * (answer.address == EVIL)
        while time.thread_time() < ends:
            pass
        slow.append(answer.address)
        return read(answer)

    code = RequestCode.GET_CONSUMER_CONNECTION_LIST
    read, slow = reading.READERS[code], list[str]()
    monkeypatch.setitem(reading.READERS, code, listed_in)
    evil = with_evil(cluster, cluster.answers()["a:10911"])
    (lines,), *_ = rounds(evil, round_seconds=4.0)
    assert slow.count(EVIL) == 1
    assert left_out(lines)["answers that were not read within 0.2 s"] >= 1
    # They are lines all the same.
    assert honest_lists(lines)
    assert {
        line["consumer_group"]
        for line in lines
        if line["kind"] == "consumer_connection" and line["broker_addr"] == EVIL
    } == {"G", "H"}


def test_a_broker_name_with_addresses_without_end_has_its_least_ids(
    cluster: RemoteCluster,
) -> None:
    many = {str(each): f"evil{each}:1" for each in range(20_000, 1, -1)}
    table = {each: {"cluster": "C", "brokerAddrs": {"0": f"{each}:10911"}} for each in "ab"}
    body = {"brokerAddrTable": {"evil": {"cluster": "C", "brokerAddrs": many}, **table}}
    found = reading.brokers_in(Answer("ns:1", 0, None, json.dumps(body).encode(), 0))
    of_evil = [each[1:] for each in found.brokers if each.broker_name == "evil"]
    assert of_evil[:2] == [("evil", 2, "evil2:1", True), ("evil", 3, "evil3:1", False)]
    assert (len(of_evil), found.left_out) == (100, 19_899)

    answers = cluster.answers()
    namesrv = answers["ns1:9876"]
    answers["ns1:9876"] = lambda asked: (
        answer_frame(json.dumps(body).encode()) if asked.code == 106 else namesrv(asked)
    )
    (lines,), *_ = rounds(answers, more=dict.fromkeys(many.values(), "127.0.0.1:1"))
    assert honest_lists(lines)
    assert left_out(lines)["addresses of a broker name that has too many"] == 19_899


def test_who_has_cost_least_is_next() -> None:
    async def whole() -> list[str]:
        lock, order = LeastFirst(), list[str]()

        async def hold(name: str, cost: float) -> None:
            async with lock.taken(cost):
                order.append(name)
                await asyncio.sleep(0)

        waiting = [("evil", 2.0), ("honest", 0.0), ("evil again", 2.0), ("slow", 1.0)]
        await asyncio.gather(hold("first", 9.0), *(hold(*each) for each in waiting))
        async with lock.taken(0.0):
            return order

    assert asyncio.run(whole()) == ["first", "honest", "slow", "evil", "evil again"]


def test_nothing_is_read_when_the_time_of_the_round_is_over(
    cluster: RemoteCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed_in(answer: Answer) -> Any:
        read_from.append(answer.address)
        return read(answer)

    code = RequestCode.GET_CONSUMER_CONNECTION_LIST
    read, read_from = reading.READERS[code], list[str]()
    monkeypatch.setitem(reading.READERS, code, listed_in)
    monkeypatch.setattr("jobs.collect.turns._LONG", 0)
    monkeypatch.setattr("jobs.collect.turns.Turns._is_over", lambda _: bool(read_from))
    (lines,), *_ = rounds(with_evil(cluster, cluster.answers()["a:10911"]))
    assert len(read_from) == 1
    # The lists that came meanwhile are lines all the same.
    assert sum(line["kind"] == "consumer_connection" for line in lines) >= 1


@pytest.mark.parametrize("others", [3, 1_000])
def test_a_list_is_read_whatever_an_id_looks_like(others: int) -> None:
    """In a long body keys without quotes get some; in an id nothing is a key."""
    ids = ["app,12:x", "app{3:", *(f"c{number}" for number in range(others))]
    body = json.dumps({"connectionSet": [{"clientId": each} for each in ids]}).encode()
    listed = reading.listed_in(Answer(EVIL, 0, None, body.replace(b", ", b","), 0))
    assert [*listed.connections] == sorted(ids)


SIZE = 4 << 20


@pytest.mark.long
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a":0},' * (SIZE // 8), id="objects", marks=pytest.mark.house),
        pytest.param((b'{"a":' * 20 + b"0" + b"}" * 20 + b",") * (SIZE // 122), id="nested"),
        pytest.param(b",".join(b'{"%x":0}' % each for each in range(300_000)), id="names"),
        pytest.param(b'"' + "\U0001f600".encode() + b"a" * (SIZE - 99) + b'",', id="wide"),
        pytest.param(
            b",".join(b'"topic":"%x"' % each for each in range(250_000)),
            id="topics",
            marks=pytest.mark.house,
        ),
    ],
)
def test_what_a_body_becomes_when_it_is_read_is_bounded(body: bytes) -> None:
    whole = b'{"connectionSet":[' + body + b"0]}"
    answer = Answer(EVIL, 0, None, whole, 0)
    tracemalloc.start()
    try:
        for read in (reading.listed_in, reading.topics_in):
            with suppress(reading.TooMuchError):
                read(answer)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 120 << 20


def test_a_header_and_a_remark_are_bounded(cluster: RemoteCluster) -> None:
    def evil(asked: Frame) -> bytes:
        return error(1, "x" * (1 << 20 if asked.code == 203 else 60_000))

    (lines,), *_ = rounds(with_evil(cluster, evil))
    assert honest_lists(lines)
    assert max(len(line.get("error_message", "")) for line in lines) <= 4_096


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("groups", marks=pytest.mark.house),
        pytest.param("topics", marks=pytest.mark.house),
        "members",
    ],
)
def test_who_names_too_many_loses_his_own_names(cluster: RemoteCluster, kind: str) -> None:
    many = [f"evil-{number}" for number in range(20_000)]
    connections = [{"clientId": each, "clientAddr": "10.0.0.1:1"} for each in many]
    body = {
        "groups": {201: groups_body(many)},
        "topics": {343: json.dumps({"topicList": many}).encode()},
        "members": {203: json.dumps({"connectionSet": connections}).encode()},
    }[kind]
    cluster.is_5 = True
    honest = cluster.answers()["a:10911"]
    evil = with_evil(cluster, lambda asked: answered(asked, body, honest))
    # The evil one comes first: the honest ones find no room.
    manners = dict.fromkeys(HONEST, Manners(delay=0.005))
    (first, second), memory, seconds, troubles = rounds(
        evil,
        2,
        manners,
        {"timeout_seconds": 5.0},
        most_groups=100,
        most_topics=100,
        most_members=100,
    )
    for lines in (first, second):
        assert honest_lists(lines)
        topics = {line["topic"] for line in lines if line["kind"] == "topic_route"}
        assert {"T", "U", "%RETRY%G", "%RETRY%H"} <= topics
    asked = {line["client_id"] for line in first if line["kind"] == "consumer_running_info"}
    assert {"x", "y", "u"} <= asked
    assert f"{kind} (most_{kind})" in left_out(first)
    # The topics were asked for with the running infos of the first round.
    assert any(f"{kind} (most_{kind})" in each for each in troubles) == (kind != "topics")
    assert len(memory.groups) <= 100
    assert len(memory.topics) <= 100
    assert max(seconds) < 20


def silent_brokers(cluster: RemoteCluster, number: int) -> tuple[dict[str, Answering], list[str]]:
    """Nameservers that name so many brokers besides the honest ones, which come last."""
    names = [f"s{each}:10911" for each in range(number)]
    silent = {each.partition(":")[0]: {0: each} for each in names}
    cluster.brokers = {**silent, **cluster.brokers}
    answers = dict(cluster.answers())
    return {each: of for each, of in answers.items() if each not in names}, names


@pytest.mark.house
@pytest.mark.long
def test_a_round_among_silent_brokers_ends_in_its_time(cluster: RemoteCluster) -> None:
    answers, names = silent_brokers(cluster, 500)
    answers["silent:1"] = lambda _: None

    async def collect() -> tuple[list[str], float]:
        async with Replay(answers) as replay:
            at = replay.connect_to["silent:1"]
            connect_to = {**replay.connect_to, **dict.fromkeys(names, at)}
            options = {"timeout_seconds": 1.0, "connect_to": connect_to, "most_brokers": 120}
            lines: Lines = []
            memory = Memory()
            # They answered before the others came.
            memory.answered = dict.fromkeys(HONEST, 1)
            async with client_of(lambda: 1, round_seconds=2.0, **options) as client:
                began = time.monotonic()
                await Round(client, memory, 1, lines.append).run()
                seconds = time.monotonic() - began
            assert honest_lists(lines)
            assert left_out(lines) == {"brokers (most_brokers)": 382}
            return [line["kind"] for line in lines], seconds

    kinds, seconds = asyncio.run(collect())
    assert seconds < 2 + 5
    assert kinds.count("subscription_group") == 120


@pytest.mark.long
def test_who_holds_places_does_not_hold_the_round(cluster: RemoteCluster) -> None:
    manners = {EVIL: Manners(delay=0.4)}
    cluster.add_group("MANY", [f"c{each}" for each in range(200)], ["T"])
    answers = with_evil(cluster, cluster.answers()["a:10911"])
    cluster.members["MANY"][EVIL] = cluster.members["MANY"][HONEST[0]]
    (lines,), _, (seconds,), _ = rounds(
        answers, 1, manners, round_seconds=1.0, running_infos_of_each_broker=True
    )
    assert honest_lists(lines)
    assert seconds < 1 + 5


# Where it goes


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::]"])
def test_it_does_not_go_where_no_broker_may_lie(address: str) -> None:
    async def ask(client: RemotingClient, replay: Replay) -> tuple[int, str, int]:
        port = replay.connect_to["inside:1"].rpartition(":")[2]
        answer = await client.ask(f"{address}:{port}", members("G"))
        return answer.code, str(answer.remark), len(replay.requests)

    def asked(**options: Any) -> tuple[int, str, int]:
        return asking(ask, {"inside:1": nobody}, connect_to={}, **options)

    code, remark, requests = asked()
    assert (code, requests) == (-2, 0)
    assert "on this machine; brokers = [...]" in remark
    code, remark, requests = asked(brokers=["10.0.0.0/8"])
    assert (code, requests) == (-2, 0)
    assert "in none of the networks" in remark
    if address == "127.0.0.1":
        assert asked(brokers=["127.0.0.0/8"])[0] == 206


@pytest.mark.parametrize("address", ["169.254.169.254:80", "[fe80::1]:10911", "224.0.0.1:1"])
def test_links_and_groups_of_machines_are_refused(address: str) -> None:
    async def ask(client: RemotingClient, _: Replay) -> str:
        return str((await client.ask(address, members("G"))).remark)

    assert "brokers = [...] in the options can allow it" in asking(ask, {})


def test_a_nameserver_on_this_machine_may_name_brokers_on_it() -> None:
    async def ask() -> list[int]:
        async with Replay({"ns": nobody, "broker": nobody}) as replay:
            namesrv, broker = replay.connect_to["ns"], replay.connect_to["broker"]
            async with client_of(lambda: 0, timeout_seconds=TIMEOUT, namesrv=namesrv) as client:
                asked = [(namesrv, questions.brokers()), (broker, members("G"))]
                return [(await client.ask(*each)).code for each in asked]

    assert asyncio.run(ask()) == [206, 206]


def test_the_service_that_ships_lets_others_read_nothing() -> None:
    unit = Path(__file__).parents[2] / "docs" / "collect" / "rebalance-audit-collect.service"
    (mask,) = (line for line in unit.read_text().splitlines() if line.startswith("UMask="))
    assert int(mask.removeprefix("UMask="), 8) & 0o027 == 0o027


def test_dumps_memory_and_tables_are_their_owners_alone(
    tmp_path: Path, cluster: RemoteCluster
) -> None:
    async def collect(folder: DumpFolder) -> None:
        async with Replay(cluster.answers()) as replay:
            options = {"timeout_seconds": TIMEOUT, "connect_to": replay.connect_to}
            async with client_of(lambda: 1, **options) as client:
                await Collector(client, folder).collect()

    folder = DumpFolder(tmp_path / "dumps")
    with folder.locked():
        asyncio.run(collect(folder))
    with SnapshotWriter.open(
        Location(tmp_path / "lake"), "20261120T020407Z-000000", 1, print
    ) as it:
        it.table("heartbeats")
    found = [tmp_path / "dumps", *(tmp_path / "dumps").rglob("*"), tmp_path / "lake" / "heartbeats"]
    modes = {
        path.relative_to(tmp_path): stat.S_IMODE(path.stat().st_mode)
        for path in found
        if path.name != "lock"
    }
    assert len(modes) >= 6
    assert {mode & 0o077 for mode in modes.values()} == {0}, modes


# Anything at all

_TEXTS = st.text(max_size=12) | st.sampled_from(
    ["G", "T", "x", "0", "\ud83d", "9" * 400, "a" * 300]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)
_LISTED = st.lists(
    st.fixed_dictionaries({}, optional={"clientId": _VALUES, "clientAddr": _VALUES}), max_size=4
)
_BODIES = st.one_of(
    st.binary(max_size=40),
    st.builds(lambda value: json.dumps(value).encode(errors="replace"), _VALUES),
    st.builds(
        lambda **parts: json.dumps(parts).encode(errors="replace"),
        brokerAddrTable=st.dictionaries(
            _TEXTS,
            st.fixed_dictionaries(
                {"cluster": st.just("C") | _VALUES, "brokerAddrs": st.dictionaries(_TEXTS, _TEXTS)}
            ),
            max_size=3,
        )
        | _VALUES,
        subscriptionGroupTable=st.dictionaries(_TEXTS, _VALUES, max_size=4) | _VALUES,
        subscriptionTable=st.dictionaries(_TEXTS, _VALUES, max_size=4) | _VALUES,
        connectionSet=_LISTED | _VALUES,
        topicList=st.lists(_TEXTS, max_size=4) | _VALUES,
        offsetTable=_VALUES,
        topic=_TEXTS,
    ),
)
_HEADERS = st.fixed_dictionaries(
    {"code": st.sampled_from([0, 1, 3, 17, 206]) | st.integers(), "opaque": st.just(0)},
    optional={
        "flag": st.just(1) | st.integers(),
        "remark": _VALUES,
        "extFields": _VALUES,
        "version": _VALUES,
        "language": _VALUES,
    },
)


def _frame(header: Mapping[str, Any], body: bytes) -> bytes:
    text = json.dumps({"flag": 1, **header}, separators=(",", ":")).encode()
    return (
        (4 + len(text) + len(body)).to_bytes(4, "big") + len(text).to_bytes(4, "big") + text + body
    )


_ANSWERS = st.lists(
    st.builds(answer_frame, _BODIES) | st.builds(_frame, _HEADERS, _BODIES), min_size=1, max_size=4
)


@pytest.mark.long
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from([EVIL, "ns2:9876"]), _ANSWERS)
@example(EVIL, [answer_frame(body) for body in (b"", b"{", b'"topic":"\\x"', b"\xff", b"[" * 5000)])
@example("ns2:9876", [answer_frame(b'{"brokerAddrTable":{"a":{"cluster":1}}}')])
def test_whatever_a_server_answers_every_honest_line_comes(who: str, evil: Sequence[bytes]) -> None:
    cluster = RemoteCluster(brokers={each[0]: {0: each} for each in HONEST})
    cluster.add_group("G", ["x", "y"], ["T"])
    cluster.add_group("H", ["u"], ["T", "U"])
    answers = with_evil(cluster, lambda asked: evil[asked.opaque % len(evil)])
    answers = {**cluster.answers(), **{EVIL: answers[EVIL]}, who: answers[EVIL]}
    (lines,), *_ = rounds(answers, options={"timeout_seconds": 2.0}, round_seconds=20.0)
    assert honest_lists(lines)
    assert all(("body" in line) != ("error_code" in line) for line in lines)
    routes = {
        line["topic"]
        for line in lines
        if line["kind"] == "topic_route" and line["namesrv_addr"] == "ns1:9876" and "body" in line
    }
    assert {"T", "U", "%RETRY%G", "%RETRY%H"} <= routes
    reader = StatementReader(DEFAULT_BOUNDS, None)
    of_honest = [line for line in lines if line.get("broker_addr") in HONEST]
    read = [reader.read(json.dumps(line).encode()) for line in of_honest]
    assert not any(isinstance(each, RefusedLine) for each in read)


def test_an_account_is_refused_by_name(cluster: RemoteCluster) -> None:
    denied = answering(recorded("494acl_denied"))["127.0.0.1:10981"]

    def evil(asked: Frame) -> bytes | None:
        if asked.code != 203:
            return denied(asked)
        remark = "org.apache.rocketmq.acl.common.AclException: No accessKey is configured"
        return encode(Frame(code=1, opaque=0, flag=1, version=401, remark=remark))

    *_, troubles = rounds(with_evil(cluster, evil))
    assert "refused for want of an account" in troubles[0]
    assert "evil (evil:10911) answers: org.apache" in troubles[0]


@pytest.mark.alone
def test_forty_five_hostile_servers_at_once_cost_no_honest_line(tmp_path: Path) -> None:
    every = 60.0
    outcome = run(tmp_path, every, 2)
    assert len(outcome.rounds) == 2, outcome.said
    assert [each.honest - each.expected for each in outcome.rounds] == [0, 0]
    assert max(each.seconds for each in outcome.rounds) < every + 5
    # By itself it is some 280.
    assert outcome.most_mib < 350
    assert outcome.exit_code == 0
