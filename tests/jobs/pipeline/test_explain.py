"""``explain`` and ``what_if`` from a shell and from a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pytest

import jobs
from jobs.config.settings import Settings
from jobs.declared.instants import to_datetime
from jobs.errors import InputError
from jobs.judge.moment import Moment
from jobs.pipeline.moments import (
    MomentQuestion,
    explain_moment,
    moments_of_dumps,
    moments_of_tables,
)
from jobs.schemas import BROKER_POLLS, CLIENT_STATES, HEARTBEATS, TOPIC_ROUTES
from jobs.storage import Location
from rebalance_core import ChangeError, leave, separate_ids
from tests.support.command_line import CommandLine
from tests.support.snapshots import (
    Row,
    at,
    frame,
    heartbeat_row,
    info_row,
    poll_line,
    poll_row,
    route_body,
    route_line,
    route_row,
    running_info_line,
    subscriptions,
    write_tables,
)
from tests.support.truth import CAPTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S2 = ["--dumps", str(CAPTURES / "S2"), "--group", "G_S2", "--topic", "T_S2"]
SETTLED = ["--at", "2026-11-21T02:05:10Z"]

#: Two brokers whose lists stay for long; a copy of x joins; y falls silent, broker-b as well.
Members: TypeAlias = list[tuple[str, str]]
MEMBERS = [("x", "x:1"), ("y", "y:1")]
COPY = [*MEMBERS, ("x", "x:2")]
LISTS = {
    **{each: {"broker-a": MEMBERS, "broker-b": MEMBERS} for each in (0, 30, 200)},
    230: {"broker-a": COPY, "broker-b": COPY},
    260: {"broker-a": MEMBERS},
    290: {"broker-a": MEMBERS, "broker-b": []},
}
ROUTES = {0: 4, 30: 4, 200: 6, 260: 6}


def heartbeats(lists_at: Mapping[int, Mapping[str, Members]] = LISTS) -> list[Row]:
    return [
        heartbeat_row(
            snapshot_time=at(seconds),
            broker_name=broker,
            client_id=client_id,
            client_addr=address,
            last_heartbeat_at=at(seconds if seconds < 260 else 100) if client_id == "y" else None,
            subscriptions=subscriptions("T", *(["T2"] if client_id == "x" else [])),
        )
        for seconds, lists in lists_at.items()
        for broker, members in lists.items()
        for client_id, address in members
    ]


def polls() -> list[Row]:
    return [
        poll_row(
            snapshot_time=at(seconds),
            broker_name=broker,
            outcome="ANSWERED" if broker in lists else "NO_ANSWER",
            connections=len(lists.get(broker, ())),
        )
        for seconds, lists in LISTS.items()
        for broker in ("broker-a", "broker-b")
    ]


def routes() -> list[Row]:
    return [
        route_row(
            snapshot_time=at(seconds),
            broker_name=broker,
            topic=topic,
            read_queue_nums=number,
            broker_ids=None if broker == "broker-b" else [1, 0],
        )
        for seconds, number in ROUTES.items()
        for broker in ("broker-a", "broker-b")
        for topic in ("T", "T2", "T3")
    ]


#: A route holds for 25 s here, so that the last one is not known any more at the end.
SETTINGS = Settings(route_max_age_seconds=25)


@pytest.fixture
def snapshots(tmp_path: Path) -> Location:
    tables = [(HEARTBEATS, heartbeats()), (TOPIC_ROUTES, routes()), (BROKER_POLLS, polls())]
    return write_tables(tmp_path / "snapshots", tables)


def of_tables(snapshots: Location, topic: str, seconds: float | None) -> Moment:
    time = None if seconds is None else at(seconds)
    return moments_of_tables(snapshots, MomentQuestion("G", topic, time), SETTINGS)[0]


def test_a_moment_is_that_of_the_last_snapshot_up_to_it(snapshots: Location) -> None:
    early, late = of_tables(snapshots, "T", 110), of_tables(snapshots, "T2", 231)
    assert to_datetime(early.snapshot_time) == at(30)
    assert (to_datetime(early.first_seen), to_datetime(early.last_seen)) == (at(0), at(30))
    assert to_datetime(late.snapshot_time) == at(230)
    assert {len(each.members) for each in early.state.client_lists} == {2}
    assert {len(each.members) for each in late.state.client_lists} == {3}
    last = of_tables(snapshots, "T", None)
    assert last == of_tables(snapshots, "T", 9999)
    assert last.state.offline_brokers == (("broker-b", 0),)
    # 30 s after the last poll of the route the route is not known any more.
    assert last.state.topic_routes == ()


def test_a_moment_has_how_many_processes_the_connections_of_an_id_show(snapshots: Location) -> None:
    # Before the copy joins there is nothing to count.
    assert of_tables(snapshots, "T", 200).state.process_counts == ()
    # It is listed for one round, and gone in the next: one process that connected again.
    (count,) = of_tables(snapshots, "T2", 231).state.process_counts
    assert (count.client_id, count.processes) == ("x", 1)


def test_a_moment_has_what_each_process_last_said_to_hold_since_it_began(
    tmp_path: Path, snapshots: Location
) -> None:
    infos = [
        info_row("y", 0, [0]),
        info_row("x", 30, [0, 1]),
        info_row("y", 15, [2]),
        # It could not be asked; what it said later is of another moment.
        info_row("y", 30, [], error_code=1),
        info_row("z", 31, [3]),
    ]
    write_tables(tmp_path / "snapshots", [(CLIENT_STATES, infos)])
    held = of_tables(snapshots, "T", 110).held
    assert [(each.client_id, to_datetime(each.said_at), each.queues) for each in held] == [
        ("x", at(30), (("broker-a", 0), ("broker-a", 1))),
        ("y", at(15), (("broker-a", 2),)),
    ]
    assert [each.client_id for each in of_tables(snapshots, "T", 200).held] == []


def test_of_a_group_there_is_a_moment_for_each_topic(snapshots: Location) -> None:
    moments = moments_of_tables(snapshots, MomentQuestion("G", None, at(231)), SETTINGS)
    assert [moment.state.topic for moment in moments] == ["T", "T2"]
    assert moments[1] == of_tables(snapshots, "T2", 231)


@pytest.mark.spark
def test_frames_and_files_give_the_same_moment(spark: SparkSession, snapshots: Location) -> None:
    given = ((HEARTBEATS, heartbeats()), (TOPIC_ROUTES, routes()), (BROKER_POLLS, polls()))
    report = jobs.audit({of.name: frame(spark, of, rows) for of, rows in given}, SETTINGS)
    moment = replace(of_tables(snapshots, "T2", 231), date=report.summary["date"])
    assert report.explain("G", "T2", at(231)) == explain_moment(moment, SETTINGS)


@pytest.mark.long
def test_from_a_shell() -> None:
    # A process keeps its connection: two rounds have that of the copy.
    copied = heartbeats(LISTS | {200: LISTS[230]})
    given = ((HEARTBEATS, copied), (TOPIC_ROUTES, routes()))
    report = jobs.audit({of.name: pa.Table.from_pylist(rows, of.schema) for of, rows in given})
    text = report.explain("G", "T", at(231).replace(tzinfo=None))
    assert repr(text) == str(text)
    assert ", by the run of 2026-01-05\n" in text
    assert (
        "DUPLICATE_CLIENT_ID from 2026-01-05T00:03:20.000Z to 2026-01-05T00:03:50.000Z: x is"
        in text
    )
    predicted = report.what_if("G", "T", [separate_ids()], at(231))
    (of_topic,) = predicted.values["topics"]
    assert predicted.safe
    assert not of_topic["after"]["findings"]
    assert "every process of the group has its own id" in repr(predicted)
    assert {tuple(move["after"]) for move in of_topic["moves"]} <= {("x",), ("x (process 2)",)}
    of_group = report.what_if("G", None, [separate_ids()], at(231))
    assert [each["topic"] for each in of_group.values["topics"]] == ["T", "T2"]
    with pytest.raises(InputError, match="subscribes to the topic 'T3': there are 'T', 'T2'"):
        report.explain("G", "T3")
    with pytest.raises(ChangeError, match="expected a client of G to leave"):
        report.what_if("G", "T", [leave("z")])


def test_explain_tells_who_takes_what_and_why(cli: CommandLine) -> None:
    text = cli("explain", *S2, *SETTLED)
    picture = """\
Who takes what
                          broker-a      broker-b      broker-c
                            0  1  2  3    0  1  2  3    0  1  2  3
  10.0.2.10@app-DUP (x2)    2  2  2  .    .  .  .  .    .  .  .  .
  10.0.2.11@app-4           .  .  .  .    .  .  #  #    #  .  .  .
  10.0.2.9@app-1            .  .  .  .    .  .  .  .    .  #  #  #
  wrong                     D  D  D  O    O  O
"""
    after = """\
When DUPLICATE_CLIENT_ID is mended (every queue has one owner)
                                 broker-a      broker-b      broker-c
                                   0  1  2  3    0  1  2  3    0  1  2  3
  10.0.2.10@app-DUP                #  #  #  .    .  .  .  .    .  .  .  .
  10.0.2.10@app-DUP (process 2)    .  .  .  #    #  #  .  .    .  .  .  .
  10.0.2.11@app-4                  .  .  .  .    .  .  #  #    #  .  .  .
  10.0.2.9@app-1                   .  .  .  .    .  .  .  .    .  #  #  #
"""
    for part in (
        "G_S2 on T_S2, cluster DefaultCluster, as of 2026-11-21T02:05:02.272Z\n",
        "\nReaders of 12 queues: 6 have one by lists; 4 processes said to hold 9; 9 advance by ",
        "By lists and routes alone: 12 queues, 4 processes behind 3 client ids; 3 duplicate, 3 ",
        picture,
        "  asked of broker-a, broker-b, broker-c: 12 queues, 4 client ids\n"
        "    10.0.2.10@app-DUP   2 times: 2 slots\n",
        "  route of 127.0.0.1:9876: queues to read: broker-a 4, broker-b 4, broker-c 4\n",
        "  strategy AVG (observed): 10.0.2.10@app-DUP (x2), 10.0.2.11@app-4, 10.0.2.9@app-1\n",
        "DUPLICATE_CLIENT_ID from 2026-11-21T02:04:07.272Z to 2026-11-21T02:05:47.139Z: 10.0.2.10@",
        "  repair: give each process its own instanceName",
        after,
    ):
        assert part in text, part
    assert max(map(len, text.splitlines())) <= 100


def test_what_if_tells_what_moves_and_whether_it_is_safe(cli: CommandLine) -> None:
    source = ["--dumps", CAPTURES / "S4", "--group", "G_S4", "--topic", "T_S4B"]
    changes = ["--strategy", "AVG_BY_CIRCLE", "--queues", "broker-a=5"]
    # Exit code 1: it is not safe.
    text = cli("what-if", *source, *changes, code=1)
    for part in (
        "What if: every client uses AVG_BY_CIRCLE\n    and: broker-a has 5 queues of the topic\n",
        "NOT safe: 13 of 14 states between the steps",
        "In a rolling way, step by step (4 steps), the worst state in between has this done and no",
        "until every client knows, for up to 50 s",
    ):
        assert part in text, part
    text = cli("what-if", *S2, *SETTLED, "--separate-ids")
    assert "6 of 12 queues change hands" in text
    assert "10.0.2.10@app-DUP (process 2) takes queue 3 of broker-a" in text
    assert text.startswith("Safe, and of use: 3 duplicate queues and 3 orphaned queues then have ")
    text = cli("what-if", *S2, "--separate-ids")
    assert text.startswith("Nothing changes: it is already so at this time (--at asks about ")


def test_what_if_of_every_topic_as_json(cli: CommandLine) -> None:
    arguments = ["what-if", *S2[:4], *SETTLED, "--format", "json"]
    values = json.loads(cli(*arguments, "--separate-ids"))
    assert values["safe"]
    assert [topic["topic"] for topic in values["topics"]] == ["%RETRY%G_S2", "T_S2"]
    # A third process with the id: the duplicates stay, and a queue more has no owner.
    joined = json.loads(cli(*arguments, "--join", "10.0.2.10@app-DUP", code=1))
    assert "FINDINGS_AFTER" in joined["dangers"]
    _, of_topic = json.loads(cli(*arguments, "--queues", "2", code=1))["topics"]
    assert [each["messages_left"] for each in of_topic["queues_gone"]] == [0] * 6


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["explain", *S2[:2], "--group", "G_S3", "--topic", "T_S2"], 3, "did you mean 'G_S2'?"),
        (["explain", *S2[:4], "--topic", "T_S3"], 3, "did you mean 'T_S2'?"),
        (["explain", *S2, "--at", "noon"], 2, "--at: expected a time as ISO 8601, came 'noon'"),
        (["what-if", *S2], 2, "expected a change, such as --leave ID"),
        (["what-if", *S2, "--mend", "STRATEGY_MISSMATCH"], 2, "did you mean 'STRATEGY_MISMATCH'?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_and_what_comes_near(
    arguments: list[str], code: int, said: str, cli: CommandLine
) -> None:
    cli(*arguments, code=code)
    assert said in cli.err


def a_dump(folder: Path, *lines: str) -> list[str]:
    """The options that ask a dump of these lines about T of G."""
    file = folder / "dump.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ["--dumps", str(file), "--group", "G", "--topic", "T"]


def test_many_clients_and_queues_are_cut_and_counted(tmp_path: Path, cli: CommandLine) -> None:
    clients = [f"10.0.0.{number}@app" for number in range(50)]
    question = ["explain", *a_dump(tmp_path, poll_line(*clients), route_line(route_body(200)))]
    text = cli(*question)
    assert " more queues are not shown: --full shows all)\n" in text
    assert clients[0] in text
    assert clients[-1] not in text
    assert len(text.splitlines()) < 50, "nothing is wrong with so many"
    whole = cli(*question, "--full")
    assert "not shown" not in whole
    assert "    and 10 more\n" in whole
    assert all(client in whole for client in clients)
    assert max(map(len, (text + whole).splitlines())) <= 100


def of_dump(options: list[str], **asked: str) -> Moment:
    question = MomentQuestion("G", "T", **asked)
    return moments_of_dumps([options[1]], question, Settings())[0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (running_info_line("a", "T"), "no answer of a broker about G here"),
        (
            poll_line("a").replace("connectionSet", "connections"),
            "no list of G here is evidence: body: expected ConsumerConnection with a connectionSet",
        ),
    ],
)
def test_a_group_whose_members_no_broker_told_is_an_error_in_words(
    tmp_path: Path, line: str, said: str
) -> None:
    with pytest.raises(InputError) as raised:
        of_dump(a_dump(tmp_path, line))
    assert str(raised.value) == said


def test_a_refused_list_of_another_cluster_is_not_the_reason(tmp_path: Path) -> None:
    refused = poll_line("a").replace("connectionSet", "connections")
    offline = poll_line(cluster="C2", error_code=206)
    with pytest.raises(InputError, match="no member of G subscribes to the topic 'T'"):
        of_dump(a_dump(tmp_path, refused, offline), cluster="C2")


def test_when_the_data_is_and_when_the_fault_was_is_said(cli: CommandLine) -> None:
    """The last snapshot is long after the fault, and --at beyond the end means it too."""
    at_other_times = (
        "At other times, from 2026-11-21T02:04:07.272Z to 2026-11-21T02:05:47.139Z, INFO: 3 queues "
        "consumed by nobody and 3 consumed by several, for a moment (--at 2026-11-21T02:05:47.139Z)"
    )
    times = r"the snapshots go from 2026-11-21T02:03:10\S+ to 2026-11-21T02:07:11\S+;"
    for when in ([], ["--at", "2026-11-22T00:00:00Z"]):
        text = " ".join(cli("explain", *S2, *when).split())
        assert re.search(times, cli.err)
        assert at_other_times not in cli.err, "the text has it"
        assert "Nothing is wrong at this moment. " in text
        assert at_other_times in text
    cli("what-if", *S2, "--leave", "10.0.2.9@app-1")
    assert at_other_times in cli.err
    fault = re.findall(r"--at (\S+Z)", text)[0]
    shown = cli("explain", *S2, "--at", fault)
    assert "consumed by nobody and 3" in shown
    assert "the snapshots go" not in cli.err + shown
    assert "Nothing is wrong" not in shown


def test_without_a_source_the_snapshots_of_the_last_run_here_are_asked_with_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("explain", "--group", "G_S2", code=2)
    assert "--dumps PATH or --snapshots DIR, or a run in this folder" in cli.err
    set_60 = ["--set", "persistence_seconds=60"]
    cli("run", "--dumps", CAPTURES / "S2", "--output", "out", "--quiet", *set_60)
    known = ["explain", "--snapshots", "out/snapshots", "--group", "G_S2", "--topic", "T_S2"]
    whole = cli(*known, *set_60, *SETTLED)
    assert whole != cli(*known, *SETTLED), "what lasts is another thing with other settings"
    # The group has one topic besides its retry topic. The run says what the same rules say here.
    judged = ", by the run of 2026-11-21"
    assert cli("explain", "--group", "G_S2", *SETTLED).replace(judged, "") == whole
    last = cli("explain", "--group", "G_S2")
    assert "as of 2026-11-21T02:07:11.567Z, the last of 2026-11-21" in " ".join(last.split())
    of_topic = ["--group", "G_S2", "--topic", "T_S2"]
    assert "T_S2" in cli("what-if", *of_topic, "--separate-ids", *SETTLED)


def test_of_a_group_of_several_topics_explain_asks_for_one(cli: CommandLine) -> None:
    cli("explain", "--dumps", CAPTURES / "S4", "--group", "G_S4", code=2)
    assert "expected --topic: G_S4 has T_S4A, T_S4B" in cli.err
