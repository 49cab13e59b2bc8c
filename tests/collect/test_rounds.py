"""One round after the other: what is asked, what is remembered, and that no line is missing."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, get_args

import pytest

from jobs.collect.client import RemotingClient
from jobs.collect.collect_options import Omission
from jobs.collect.memory import Memory
from jobs.collect.rounds import Round
from jobs.config.bounds import DEFAULT_BOUNDS
from jobs.declared.instants import SECOND
from jobs.dumps.statements import RefusedLine, StatementReader
from tests.support.asking import client_of
from tests.support.remote_cluster import RemoteCluster
from tests.support.replay import (
    Answering,
    Manners,
    Replay,
    answering,
    error,
    recorded,
)

Result = TypeVar("Result")
Lines = list[dict[str, Any]]
TIMEOUT = 0.3
MINUTE = 60 * SECOND
KINDS = {
    105: "topic_route",
    106: "cluster_info",
    201: "subscription_group",
    202: "topic_stats",
    203: "consumer_connection",
    208: "consume_stats",
    307: "consumer_running_info",
    343: "consumer_topics",
    402: "message_request_mode",
}
NAMESRVS = {"494": ("127.0.0.1:9876", "127.0.0.1:9877"), "514": ("127.0.0.1:9976",)}
#: The groups that the recordings asked of; one of them is RocketMQ's own.
RECORDED_GROUPS = ("G_.*", "GV_.*", "CID_DefaultHeartBeatSyncerTopic")


class Rounds:
    """Rounds over the same servers, a minute from one to the next."""

    def __init__(self, replay: Replay, client: RemotingClient, times: list[int]) -> None:
        self.replay, self.client, self.times = replay, client, times
        self.memory = Memory()
        self.seconds = 0.0

    @property
    def now(self) -> int:
        return self.times[-1]

    def wait(self, time: int) -> None:
        self.times.append(self.now + time)

    async def next(self, after: int = MINUTE) -> Lines:
        self.wait(after)
        # What is remembered goes through the disk.
        self.memory = Memory.from_json(self.memory.to_json())
        self.replay.requests.clear()
        lines: Lines = []
        began = asyncio.get_running_loop().time()
        await Round(self.client, self.memory, self.now, lines.append).run()
        self.seconds = asyncio.get_running_loop().time() - began
        return lines

    def asked(self, code: int) -> Counter[tuple[str, ...]]:
        """Who was asked this in the last round, and of what."""
        return Counter(
            (address, *frame.fields.values())
            for address, frame in self.replay.requests
            if frame.code == code
        )


def run(
    body: Callable[[Rounds], Awaitable[Result]],
    answers: Mapping[str, Answering],
    target: Mapping[str, Any],
    manners: Mapping[str, Manners] | None = None,
    version: int = 401,
) -> Result:
    async def whole() -> Result:
        async with Replay(answers, manners or {}) as replay:
            options = {"timeout_seconds": TIMEOUT, "connect_to": replay.connect_to, **target}
            times = [0]
            async with client_of(lambda: times[-1], version=version, **options) as client:
                return await asyncio.wait_for(body(Rounds(replay, client, times)), 60)

    return asyncio.run(whole())


def of_cluster(cluster: RemoteCluster, **options: Any) -> dict[str, Any]:
    return {"namesrv": tuple(cluster.namesrvs), **options}


def lists(lines: Lines) -> Counter[tuple[str, str]]:
    return Counter(
        (line["consumer_group"], line["broker_addr"])
        for line in lines
        if line["kind"] == "consumer_connection"
    )


def routes(lines: Lines) -> list[tuple[str, ...]]:
    return sorted(whom(line) for line in lines if line["kind"] == "topic_route")


def two_rounds(
    cluster: RemoteCluster,
    change: Callable[[Rounds], object],
    answers: Mapping[str, Answering] | None = None,
    **options: Any,
) -> tuple[Lines, Lines, Rounds]:
    """The lines of two rounds between which something changes."""

    async def body(rounds: Rounds) -> tuple[Lines, Lines, Rounds]:
        first = await rounds.next()
        change(rounds)
        return first, await rounds.next(), rounds

    return run(body, answers or cluster.answers(), of_cluster(cluster, **options))


async def one_round(rounds: Rounds) -> Lines:
    return await rounds.next()


@pytest.fixture
def cluster() -> RemoteCluster:
    made = RemoteCluster()
    made.add_group("G", ["x", "y", "z"], ["T"])
    made.add_group("H", ["u", "v"], ["T", "U"])
    return made


def whom(line: Mapping[str, Any]) -> tuple[str, ...]:
    """Who was asked, and of what."""
    names = ("namesrv_addr", "broker_addr", "topic", "consumer_group", "client_id")
    return tuple(line[name] for name in names if name in line)


@pytest.mark.parametrize(("name", "version"), [("494", 401), ("514", 441)])
def test_every_recorded_answer_is_a_line_byte_for_byte(name: str, version: int) -> None:
    exchanges = [each for each in recorded(name) if each.asked.version == version]
    target = {
        "namesrv": NAMESRVS[name],
        "groups": RECORDED_GROUPS,
        "running_infos_of_each_broker": True,
    }
    lines = run(one_round, answering(exchanges), target, version=version)

    reader = StatementReader(DEFAULT_BOUNDS, None)
    for line in lines:
        read = reader.read(json.dumps(line, ensure_ascii=False).encode())
        assert not isinstance(read, RefusedLine), read
    # Some were asked with what no collector sends. Of a question that was recorded twice the last
    # answer is replayed.
    fields = {105: ["topic"], 203: ["consumerGroup"], 208: ["consumerGroup"], 402: []}
    fields |= {106: [], 201: []}
    fields[307] = ["clientId", "consumerGroup", "jstackEnable"]
    expected = {}
    for each in exchanges:
        asked, known = each.asked, dict(each.asked.fields)
        is_ours = asked.code in fields and sorted(known) == fields[asked.code] and each.response
        if is_ours and known.pop("jstackEnable", "false") == "false" and "NOSUCH" not in each.name:
            key = (KINDS[asked.code], each.address or "", *known.values())
            expected[key] = each.answered
    found = {(line["kind"], *whom(line)): line for line in lines}
    assert len(found) == len(lines)
    assert len(expected) > 60
    not_supported = {key for key, answer in expected.items() if answer.code == 3}
    for key in expected.keys() - not_supported:
        line, answer = found[key], expected[key]
        if answer.code == 0:
            assert line["body"].encode() == answer.body
        else:
            assert (line["error_code"], line["error_message"]) == (answer.code, answer.remark)


def test_every_group_is_asked_of_every_broker(cluster: RemoteCluster) -> None:
    lines = run(one_round, cluster.answers(), of_cluster(cluster))
    assert lists(lines) == {
        (group, address): 1 for group in ("G", "H") for address in cluster.addresses
    }
    by_kind = Counter(line["kind"] for line in lines)
    # Routes of T, U and two retry topics from two nameservers; each member of one broker; offsets
    # of the masters.
    assert by_kind["topic_route"] == 4 * 2
    assert by_kind["consumer_running_info"] == 5
    assert by_kind["consume_stats"] == 2 * 2
    assert {line["cluster"] for line in lines} == {"C"}
    assert {line["snapshot_time"] for line in lines} == {"1970-01-01T00:01:00.000Z"}
    assert {line["collected_at"] for line in lines} == {"1970-01-01T00:01:00.000Z"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("hung", "refuses", "closes"),
    [
        ("ns1:9876", "a:10911", "b:10911"),
        ("a:10941", "b:10911", "a:10911"),
        ("ns1:9876", "b:10911", "ns2:9876"),
    ],
)
def test_servers_that_fail_cost_one_time_out_and_no_line(
    cluster: RemoteCluster, hung: str, refuses: str, closes: str
) -> None:
    def misbehave(rounds: Rounds) -> None:
        ways = Manners(hangs_after=0), Manners(closes_at=1), Manners(closes_at=2)
        rounds.replay.manners = dict(zip((hung, refuses, closes), ways, strict=True))

    _, lines, rounds = two_rounds(cluster, misbehave)
    assert rounds.seconds < TIMEOUT + 2
    assert set(lists(lines)) == {
        (group, address) for group in ("G", "H") for address in cluster.addresses
    }
    assert {line["namesrv_addr"] for line in lines if line["kind"] == "topic_route"} == set(
        cluster.namesrvs
    )
    failed = {whom(line)[0] for line in lines if line.get("error_code", 0) < 0}
    assert {hung, refuses} <= failed
    codes = {line.get("error_code") for line in lines if whom(line)[0] == hung}
    assert codes <= {-1, -2}


@pytest.mark.long
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.house) for seed in range(1, 4))]
)
def test_no_line_is_missing_or_there_twice_whatever_the_servers_do(
    cluster: RemoteCluster, seed: int
) -> None:
    chosen = random.Random(seed)  # noqa: S311 - no secret depends on it
    cluster.is_5 = chosen.random() < 0.5
    cluster.silent = set(chosen.sample("xyzuv", chosen.randint(0, 3)))
    answers = cluster.answers()

    def manners() -> dict[str, Manners]:
        return {
            address: Manners(
                hangs_after=chosen.choice([None, None, None, 0, 3]),
                closes_at=chosen.choice([None, None, 1, 2, 5]),
                delay=chosen.choice([0.0, 0.0, 0.01]),
                shuffles=chosen.random() < 0.3,
                dribbles=chosen.random() < 0.2,
                junk=chosen.choice([None, None, None, lambda _: b"\x00\x00\x00\x04junk"]),
            )
            for address in answers
        }

    async def body(rounds: Rounds) -> None:
        well = await rounds.next()
        for _ in range(2):
            rounds.replay.manners = manners()
            rounds.replay.given.clear()
            lines = await rounds.next()
            assert lists(lines) == lists(well)
            assert routes(lines) == routes(well)
            assert set(Counter((line["kind"], *whom(line)) for line in lines).values()) == {1}
            assert rounds.seconds < TIMEOUT + 2
        rounds.replay.manners = {}
        again = await rounds.next()
        assert lists(again) == lists(well)
        silent = {line.get("client_id") for line in again if "error_code" in line}
        assert silent <= cluster.silent

    run(body, answers, of_cluster(cluster))


def test_running_infos_are_asked_when_a_list_has_changed_and_now_and_then(
    cluster: RemoteCluster,
) -> None:
    async def body(rounds: Rounds) -> list[int]:
        asked = []
        for number in range(1, 10):
            if number == 4:
                cluster.members["G"]["a:10911"].pop()
            await rounds.next()
            asked.append(rounds.asked(307).total())
        return asked

    # z left one list of three in the 4th round: x, y and z are asked a long poll later. All 5 once
    # they have been there for so long, and each 300 s.
    target = of_cluster(cluster, running_infos_seconds=300, running_infos_after_seconds=45)
    assert run(body, cluster.answers(), target) == [0, 5, 0, 0, 3, 5, 0, 0, 0]


def test_a_group_that_no_broker_has_a_configuration_of_is_remembered_too(
    cluster: RemoteCluster,
) -> None:
    async def body(rounds: Rounds) -> list[int]:
        # 201 fails: an account that may not ask for it.
        rounds.replay.answers = {
            address: lambda asked, answer=answer: (
                error(1, "AclException") if asked.code == 201 else answer(asked)
            )
            for address, answer in cluster.answers().items()
        }
        asked = []
        for _ in range(3):
            assert len(lists(await rounds.next())) == 3
            asked.append(rounds.asked(307).total())
        return asked

    assert run(body, cluster.answers(), of_cluster(cluster, groups=("G",))) == [3, 0, 0]


def test_an_id_that_stands_twice_is_asked_of_every_broker_that_lists_it(
    cluster: RemoteCluster,
) -> None:
    cluster.members["G"]["b:10911"].append(("x", "10.0.0.8:1"))
    del cluster.members["G"]["a:10941"]

    async def body(rounds: Rounds) -> Counter[tuple[str, ...]]:
        await rounds.next()
        return rounds.asked(307)

    asked = run(body, cluster.answers(), of_cluster(cluster))
    of_x = [address for address, _, client_id, _ in asked if client_id == "x"]
    assert sorted(of_x) == ["a:10911", "b:10911"]
    assert sorted(client_id for _, _, client_id, _ in asked) == ["u", "v", "x", "x", "y", "z"]
    assert set(asked.values()) == {1}


@pytest.mark.long
def test_silent_clients_do_not_delay_a_round_and_are_asked_in_turn(cluster: RemoteCluster) -> None:
    ids = [f"s{number:02}" for number in range(30)]
    cluster.add_group("S", ids, ["T"])
    for address in ("a:10941", "b:10911"):
        del cluster.members["S"][address]
    cluster.silent = set(ids)

    async def body(rounds: Rounds) -> list[tuple[float, set[str], int]]:
        done = []
        for _ in range(3):
            lines = await rounds.next()
            of_s = {client_id for _, group, client_id, _ in rounds.asked(307) if group == "S"}
            told = [line for line in lines if line.get("client_id") in of_s]
            assert {line["error_code"] for line in told} == {-1}
            done.append((rounds.seconds, of_s, len(lists(lines))))
        return done

    done = run(body, cluster.answers(), of_cluster(cluster))
    assert all(seconds < TIMEOUT + 2 for seconds, _, _ in done)
    assert [number for _, _, number in done] == [9, 9, 9]
    # Others in each round: who waits longest comes first.
    assert all(len(of_s) == 4 for _, of_s, _ in done)
    assert len(set().union(*(of_s for _, of_s, _ in done))) == 3 * 4


def test_brokers_groups_and_topics_are_remembered(cluster: RemoteCluster) -> None:
    def leave(rounds: Rounds) -> None:
        # b hangs and is gone from the nameservers; nobody is left of H, and no 201 names it.
        del cluster.brokers["b"], cluster.members["H"]
        rounds.replay.manners = {"b:10911": Manners(hangs_after=0)}

    first, second, _ = two_rounds(cluster, leave)
    assert lists(second) == lists(first)
    assert routes(second) == routes(first)
    down = [line for line in second if line.get("broker_name") == "b"]
    # What timed out was 201; the rest was not sent.
    assert {line["error_code"] for line in down if line["kind"] != "subscription_group"} == {-2}
    assert all("no answer to GET_ALL_SUB" in line["error_message"] for line in down)


def test_what_was_not_seen_for_an_hour_is_forgotten(cluster: RemoteCluster) -> None:
    def leave(rounds: Rounds) -> None:
        del cluster.brokers["b"], cluster.members["H"], cluster.topics["H"]
        rounds.wait(61 * MINUTE)

    _, lines, _ = two_rounds(cluster, leave)
    assert {address for _, address in lists(lines)} == {"a:10911", "a:10941"}
    assert {group for group, _ in lists(lines)} == {"G"}


def test_no_nameserver_answers_and_the_brokers_are_asked_all_the_same(
    cluster: RemoteCluster,
) -> None:
    def close(rounds: Rounds) -> None:
        rounds.replay.manners = dict.fromkeys(cluster.namesrvs, Manners(closes_at=1))

    first, second, _ = two_rounds(cluster, close)
    assert lists(second) == lists(first)
    assert all("error_code" in line for line in second if line["kind"] == "topic_route")


def test_a_broker_that_moved_is_asked_at_its_new_address_alone(cluster: RemoteCluster) -> None:
    answers = {**cluster.answers(), "c:10911": cluster.answers()["b:10911"]}
    _, lines, _ = two_rounds(
        cluster, lambda _: cluster.brokers.update({"b": {0: "c:10911"}}), answers
    )
    assert {address for _, address in lists(lines)} == {"a:10911", "a:10941", "c:10911"}


def test_nameservers_that_know_different_brokers_are_put_together(cluster: RemoteCluster) -> None:
    other = RemoteCluster(brokers={"c": {0: "c:10911"}})
    other.add_group("G", ["x"], ["T"])
    answers = {**other.answers(), **cluster.answers(), "ns2:9876": other.answers()["ns2:9876"]}
    lines = run(one_round, answers, of_cluster(cluster))
    assert {at for _, at in lists(lines)} == {"a:10911", "a:10941", "b:10911", "c:10911"}
    assert lists(lines)["H", "c:10911"] == 1


def test_topics_of_a_group_that_was_offline_before_come_from_its_offsets(
    cluster: RemoteCluster,
) -> None:
    cluster.members["H"] = {}
    lines = run(one_round, cluster.answers(), of_cluster(cluster))
    assert {line["topic"] for line in lines if line["kind"] == "topic_route"} == {
        *("T", "U", "%RETRY%G", "%RETRY%H")
    }


def test_what_4_9_does_not_have_is_asked_once(cluster: RemoteCluster) -> None:
    async def body(rounds: Rounds) -> list[int]:
        asked = []
        for _ in range(3):
            rounds.memory.groups.clear()
            await rounds.next()
            asked.append(rounds.asked(402).total() + rounds.asked(343).total())
        return asked

    first, *later = run(body, cluster.answers(), of_cluster(cluster))
    assert first <= 2 * 4
    assert later == [0, 0]


def test_5_0_tells_request_modes_and_topics(cluster: RemoteCluster) -> None:
    cluster.is_5 = True
    cluster.members["H"] = {}
    target = of_cluster(cluster, without=frozenset({"offsets"}))
    lines = run(one_round, cluster.answers(), target)
    modes = [line for line in lines if line["kind"] == "message_request_mode"]
    assert sorted(line["broker_addr"] for line in modes) == ["a:10911", "b:10911"]
    assert {line["body"] for line in modes} == {'{"messageRequestModeMap":{}}'}
    assert "U" in {line.get("topic") for line in lines}


@pytest.mark.parametrize("part", get_args(Omission))
def test_what_need_not_be_asked_is_not_asked(cluster: RemoteCluster, part: str) -> None:
    cluster.is_5 = True
    all_kinds = {line["kind"] for line in run(one_round, cluster.answers(), of_cluster(cluster))}
    target = of_cluster(cluster, without=frozenset({part}))
    left = {line["kind"] for line in run(one_round, cluster.answers(), target)}
    assert len(all_kinds) == len(KINDS)
    # With the offsets those of the dead letters.
    assert len(left) == len(KINDS) - (2 if part == "offsets" else 1)


def test_patterns_choose_and_names_are_asked_whoever_lists_them(cluster: RemoteCluster) -> None:
    def groups(**options: Any) -> set[str]:
        lines = run(one_round, cluster.answers(), of_cluster(cluster, **options))
        return {group for group, _ in lists(lines)}

    assert groups() == {"G", "H"}
    assert groups(groups=("[HK]",)) == {"H"}
    # Nobody names it; a broker without a configuration of it may have members of it.
    assert groups(groups=("NEW",)) == {"NEW"}
    assert groups(groups=("CID_ONSAPI_OWNER",)) == {"CID_ONSAPI_OWNER"}
    assert groups(clusters="D.*") == set()
    lines = run(one_round, cluster.answers(), of_cluster(cluster, topics="U", name="east"))
    assert {line["topic"] for line in lines if "topic" in line} == {"U"}
    assert {line["cluster"] for line in lines} == {"east"}


@pytest.mark.long
def test_a_round_ends_even_where_every_answer_is_slow(cluster: RemoteCluster) -> None:
    def slow(rounds: Rounds) -> None:
        rounds.replay.manners = dict.fromkeys(cluster.answers(), Manners(delay=0.3))

    _, lines, rounds = two_rounds(cluster, slow, round_seconds=0.5)
    assert rounds.seconds < 0.5 + 2
    assert len(lists(lines)) == 6
    assert any("took longer than 0.5 s" in line.get("error_message", "") for line in lines)
