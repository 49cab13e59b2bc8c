"""``explain`` says of a moment what the run judged of it, and never the opposite."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import jobs
from jobs.config.settings import Settings
from jobs.declared.instants import to_datetime, to_instant
from jobs.declared.kinds import GRADED_TABLES, OF_ONE_CLIENT
from jobs.judge.moment import Moment
from jobs.pipeline.moments import MomentQuestion, explain_moment, judged_of, moments_of_tables
from jobs.reports.problems import ShownFault, read_problems
from jobs.reports.tables import Place, Tables
from jobs.storage import Reports
from jobs.storage.location import Location
from tests.cases.small_dumps import OFFLINE, rounds
from tests.support.command_line import CommandLine
from tests.support.published import RowTables, fault, finding, health, minute

DATA = Path(__file__).parents[2] / "data"
SETTINGS = Settings(persistence_seconds=60)
FIRST = 8
#: Of each thing that a moment can be in: `make test-house` has all dumps.
CHOSEN = {
    *("S2", "S15", "S17", "V2", "duplicate_in_busy_group", "fault_with_interruptions"),
    *("unreachable_broker", "assigned_queues", "subscription_and_back", "rocketmq-10827"),
    *("rocketmq-2760", "client-go-510"),
}
DUMPS = sorted(DATA.glob("*/*/dump.jsonl.gz"))


@cache
def audited(dump: Path) -> jobs.Report:
    return jobs.audit(dump, SETTINGS)


def moments(dump: Path) -> Iterator[Moment]:
    """Each topic of each group at its first, its middle and its last snapshot."""
    snapshots = audited(dump)._task.snapshots
    health = audited(dump)["group_health"].to_pylist()
    groups = {
        (row["consumer_group"], row["cluster"]) for row in health if row["coverage"] != "NO_GROUP"
    }
    for group, cluster in sorted(groups):
        last = moments_of_tables(snapshots, MomentQuestion(group, None, None, cluster), SETTINGS)
        assert last[0].snapshots is not None
        since, until = map(to_datetime, last[0].snapshots)
        yield from last
        for at in (since, since + (until - since) / 2):
            question = MomentQuestion(group, None, at, cluster)
            yield from moments_of_tables(snapshots, question, SETTINGS)


def parts(text: str) -> tuple[str, str]:
    """What was judged, and what lists and routes alone give; each without line breaks."""
    judged, _, alone = " ".join(text.split()).partition(" By lists and routes alone: ")
    return judged, alone


@pytest.mark.parametrize(
    "dump",
    [
        pytest.param(
            each, marks=pytest.mark.long if each.parent.name in CHOSEN else pytest.mark.house
        )
        for each in DUMPS
    ],
    ids=lambda each: each.parent.name,
)
def test_explain_and_the_run_never_contradict_each_other(dump: Path) -> None:
    """Of whichever moment: judged for this answer, or read from what was published."""
    published = audited(dump)._tables
    rows = {table: audited(dump)[table].to_pylist() for table in GRADED_TABLES}
    for moment in moments(dump):
        text = str(explain_moment(moment, SETTINGS, published=published))
        assert str(explain_moment(moment, SETTINGS)) == text
        judged, alone = parts(text)
        state, time = moment.state, to_datetime(moment.snapshot_time)
        there = [
            row
            for of_table in rows.values()
            for row in of_table
            if (row["consumer_group"], row["topic"]) == (state.consumer_group, state.topic)
            and row["cluster"] == moment.cluster
            and row["first_seen"] <= time
            and (row["ongoing"] or time <= row["last_seen"])
        ]
        if (of_run := main_cause(published, moment)) and moment.is_last:
            # Of a cause that passed and came again the run counts both, and the moment what is
            # there: its other facts are those of the worst, which goes on.
            runs = [each for each in there if is_of(of_run, each)]
            assert judged_of(moment, published).cause == replace(of_run, runs=len(runs))
        worst = max((each["severity"] for each in there), key=SEVERITY.index, default=None)
        assert (worst is None) == ("Nothing " in judged), judged
        if "members differ" not in judged and worst is not None:
            begins = r"(?:Still there|Over since [^,]+|Interrupted at this moment), (\w+)"
            assert max(re.findall(begins, judged), key=SEVERITY.index) == worst
        remedies = {" ".join(each["remedy"].split()) for each in there if "remedy" in each}
        repairs = re.findall(r"To do: (.*?)(?= At other times|  |$)", judged)
        for each in repairs:
            passed = "nothing, it passed by itself"
            assert each.startswith((passed, *remedies, *STALLED)), each
        # What the core finds of lists and routes is below, and asks nobody to do anything.
        assert "repair" not in alone
        assert "To do" not in alone


def main_cause(tables: Tables, moment: Moment) -> ShownFault | None:
    """What the run says that the problem of the topic comes of, where it is still there."""
    place = Place(moment.cluster, moment.state.consumer_group, moment.state.topic)
    (problem, *_) = [*read_problems(tables, {place}), None]
    return problem.cause if problem is not None and problem.ongoing else None


def is_of(cause: ShownFault, row: dict[str, Any]) -> bool:
    """True if the row is of that fault, and of its client where each has its own."""
    is_of_one = cause.fault in OF_ONE_CLIENT
    return cause.fault == row.get("fault") and (
        not is_of_one or list(cause.client_ids) == row["client_ids"]
    )


def test_of_two_faults_explain_names_the_same_cause_as_the_run() -> None:
    """One is worse, the other has more queues."""
    tables = RowTables(
        duplicate_queues=[finding(n, severity="WARNING") for n in range(6)],
        stalled_queues=[finding(7, causes=None, owners=["b"])],
        group_faults=[
            fault("DUPLICATE_CLIENT_ID", queues_affected=6),
            fault("FROZEN_PROCESS", severity="CRITICAL", client_ids=["b"], queues_affected=1),
        ],
        group_health=[health()],
    )
    (some, *_) = moments(DATA / "captures" / "S2" / "dump.jsonl.gz")
    state = replace(some.state, consumer_group="G", topic="T")
    moment = replace(
        some, cluster="C", state=state, snapshot_time=to_instant(minute(15)), computed=None
    )
    of_run = main_cause(tables, moment)
    assert of_run is not None
    assert of_run.fault == "FROZEN_PROCESS"
    cause = judged_of(moment, tables).cause
    assert cause is not None
    assert (cause.fault, cause.remedy) == (of_run.fault, of_run.remedy)


SEVERITY = ["INFO", "WARNING", "CRITICAL"]
#: Beginnings of the remedies of queues that do not move, which no fault explains.
STALLED = ("fix what holds up these queues", "take a thread dump", "find in the clients' logs")


def explained(cli: CommandLine, name: str, group: str, *options: str) -> tuple[list[str], str]:
    """The first lines of an explanation, and the whole without line breaks."""
    dump = DATA / "field" / name / "dump.jsonl.gz"
    text = cli("explain", "--dumps", dump, "--group", group, *options)
    return text.splitlines()[:FIRST], " ".join(text.split())


def test_a_group_behind_a_proxy_is_not_told_that_nobody_reads_it(cli: CommandLine) -> None:
    """No broker lists a member, and the offsets of seven of eight queues advance all the time."""
    first, text = explained(cli, "rocketmq-10827", "fifo-cg")
    said = " ".join(" ".join(first).split())
    assert (
        "Still there, WARNING from 2026-11-20 10:00:00 on: somebody reads the queues but no" in said
    )
    assert "0 have one by lists; no process said; 8 advance by offsets" in said
    assert (
        "Why: UNLISTED_CONSUMER. To do: check whether the members consume through a proxy" in said
    )
    assert (
        "At other times, from 2026-11-20T10:04:00.000Z to 2026-11-20T10:09:00.000Z, CRITI" in text
    )
    for opposite in ("start the group's consumers", "taken by nobody", "for certain"):
        assert opposite not in text
    # One queue stood for five minutes: that is CRITICAL, and the warning that goes on is another.
    first, _ = explained(cli, "rocketmq-10827", "fifo-cg", "--at", "2026-11-20T10:06:00Z")
    said = " ".join(" ".join(first).split())
    assert "Over since 10:09:00, CRITICAL from 2026-11-20 10:04:00 on: 1 queue" in said
    assert "7 advance by offsets" in said
    assert "Why: GROUP_OFFLINE. To do: ask the proxy" in said


def test_what_joins_a_group_behind_a_proxy_may_read_twice(cli: CommandLine) -> None:
    dump = DATA / "field" / "rocketmq-10827" / "dump.jsonl.gz"
    text = cli("what-if", "--dumps", dump, "--group", "fifo-cg", "--join", "a", code=1)
    said = " ".join(text.split())
    assert said.startswith("NOT safe as far as the dumps show: somebody whom no broker lists reads")
    assert "of use" not in said.lower()


def test_the_word_of_the_published_run_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    """It knew of an issue, and had another window: what is judged anew knows neither."""
    monkeypatch.chdir(tmp_path)
    dump = DATA / "field" / "rocketmq-10827" / "dump.jsonl.gz"
    issues = tmp_path / "issues.toml"
    entry = 'reason = "the proxy of team B"\nexpires = 2099-01-01\ngroups = "fifo-.*"'
    issues.write_text(f"[[known_issues]]\n{entry}\n")
    until = "2026-11-20T10:07:30Z"
    cli("run", "--dumps", dump, "--output", "out", "--known-issues", issues, "--until", until)
    text = " ".join(cli("explain", "--group", "fifo-cg").split())
    assert "as of 2026-11-20T10:07:00.000Z, the last of 2026-11-20 " in text
    assert "Known issue (the proxy of team B): Still there, CRITICAL" in text
    anew = " ".join(cli("explain", "--snapshots", "out/snapshots", "--group", "fifo-cg").split())
    assert "as of 2026-11-20T10:13:00.000Z Still there, WARNING" in anew
    early = cli("explain", "--group", "fifo-cg", "--at", "2026-11-20T10:02:00Z")
    assert ", by the run of 2026-11-20\n" in early


def test_of_two_dates_the_run_is_asked_whose_snapshots_begin_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    dump = DATA / "captures" / "S2" / "dump.jsonl.gz"
    at_first = "2026-11-21T02:05:00Z"
    cli("run", "--dumps", dump, "--output", "out", "--date", "2026-11-21")
    reports = Reports(Location(str(tmp_path / "out" / "reports")))
    (run,) = reports.published()
    # The run of the next date read the same snapshots, from a later time on.
    later = {**run.summary["window"], "first_snapshot": "2026-11-21T02:06:00.000Z"}
    reports.publish(replace(run, date="2026-11-22", summary={**run.summary, "window": later}))
    assert ", by the run of 2026-11-21\n" in cli("explain", "--group", "G_S2", "--at", at_first)
    assert ", the last of 2026-11-22\n" in cli("explain", "--group", "G_S2")


def test_what_a_run_does_not_have_is_judged_for_the_answer() -> None:
    """The group is new since, or the run failed on it."""
    dump = DATA / "captures" / "S2" / "dump.jsonl.gz"
    other = audited(DATA / "captures" / "S1" / "dump.jsonl.gz")._tables
    for moment in moments(dump):
        assert judged_of(moment, other) == judged_of(moment, None)


SHARED, APART = ["10.0.0.1@app", "10.0.0.1@app"], ["10.0.0.1@1", "10.0.0.1@2"]


def shared_then_apart_then_gone(minute: int, _broker: str) -> Any:
    """Two processes that share a client id from 10:06 to 10:13, and are gone from 10:20 on."""
    if minute >= 20:
        return OFFLINE
    return SHARED if 6 <= minute <= 13 else APART


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    dump = tmp_path / "dump.jsonl"
    lines = rounds(shared_then_apart_then_gone, minutes=range(30))
    dump.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return dump


@pytest.mark.parametrize("at", ["2026-11-20T10:14:00Z", "2026-11-20T10:16:00Z"])
def test_in_a_gap_of_an_episode_nothing_is_said_to_be_there(
    interrupted: Path, cli: CommandLine, at: str
) -> None:
    """The lists of that moment give each queue its owner."""
    told = cli("explain", "--dumps", interrupted, "--group", "G", "--topic", "T", "--at", at)
    text = " ".join(told.split())
    assert "8 have one by lists" in text
    assert "Interrupted at this moment, CRITICAL from 2026-11-20 10:06:00 to" in text
    assert "Still there" not in text
    chinese = cli(
        *("explain", "--dumps", interrupted, "--group", "G", "--topic", "T", "--at", at),
        *("--language", "zh"),
    )
    assert "此刻中断" in chinese


@pytest.mark.parametrize("at", ["2026-11-20T10:10:00Z", "2026-11-20T10:25:00Z"])
def test_on_both_sides_of_the_gap_it_is_there(interrupted: Path, cli: CommandLine, at: str) -> None:
    told = cli("explain", "--dumps", interrupted, "--group", "G", "--topic", "T", "--at", at)
    assert "Interrupted" not in told
    assert "Still there, CRITICAL" in " ".join(told.split())
