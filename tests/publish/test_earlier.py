"""What a run takes from the run before: the findings that lasted and were not over."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from jobs.finding_ids import fault_id, stall_id
from jobs.instants import to_instant
from jobs.publish.earlier import open_findings
from jobs.storage import Location, Reports
from tests.support.written_reports import NOON, Row, publish, report_row

DAY = "2026-11-20"


def finding(table: str, **values: object) -> Row:
    times = {"first_seen": NOON, "last_seen": NOON, "episode_first_seen": NOON}
    return report_row(table, **times | values)


def found(folder: Path, **tables: list[Row]) -> list[Row]:
    published = publish(folder, DAY, tables)
    came = open_findings(Reports(Location(folder)), published)
    assert came is not None
    return [
        {"group": row["consumer_group"], **row["earlier"]}
        for row in sorted(came.to_pylist(), key=lambda row: str(row["earlier"]))
    ]


def test_only_what_lasted_and_was_not_over_is_open(tmp_path: Path) -> None:
    rows = [
        finding("orphaned_queues", finding_id="open"),
        finding("orphaned_queues", finding_id="over", ongoing=False),
        finding("orphaned_queues", finding_id="passing", persistence="TRANSIENT"),
    ]
    (came,) = found(tmp_path, orphaned_queues=rows)
    assert (came["finding_id"], came["kind"]) == ("open", "ORPHANED")


def test_a_finding_in_several_runs_of_snapshots_is_that_of_the_last(tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    rows = [
        finding("duplicate_queues", finding_id="d", last_seen=NOON + hours * hour, queue_id=hours)
        for hours in (1, 3, 2)
    ]
    (came,) = found(tmp_path, duplicate_queues=rows)
    assert (came["kind"], came["queue_id"]) == ("DUPLICATE", 3)
    assert came["first_seen"] == to_instant(NOON)
    assert came["last_seen"] == to_instant(NOON + 3 * hour)


def test_one_queue_may_be_orphaned_at_times_and_consumed_twice_at_others(tmp_path: Path) -> None:
    tables = ("orphaned_queues", "duplicate_queues")
    came = found(tmp_path, **{name: [finding(name, finding_id="same")] for name in tables})
    assert {row["kind"] for row in came} == {"ORPHANED", "DUPLICATE"}


def test_nothing_is_known_of_no_run_and_of_one_whose_tables_are_gone(tmp_path: Path) -> None:
    folder = Reports(Location(tmp_path))
    assert open_findings(folder, None) is None
    published = publish(tmp_path, DAY, {})
    nothing = open_findings(folder, published)
    assert nothing is not None
    assert nothing.num_rows == 0
    shutil.rmtree(tmp_path / "orphaned_queues")
    assert open_findings(folder, published) is None


def test_stalls_and_faults_are_taken_too_those_of_earlier_versions_by_the_same_ids(
    tmp_path: Path,
) -> None:
    tables = {
        "stalled_queues": [report_row("stalled_queues", queue_id=3, nights_open=2)],
        "group_faults": [
            report_row("group_faults", fault="FLAPPING", client_ids=["a"]),
            report_row("group_faults", fault="FROZEN_PROCESS", client_ids=["a"], ongoing=False),
        ],
    }
    columns = ("finding_id", "status", "open_since", "nights_open")
    publish(tmp_path / "old", DAY, tables, without=columns)
    old = found(tmp_path / "old2", **tables)
    reports = Reports(Location(tmp_path / "old"))
    came = open_findings(reports, reports.find(DAY))
    assert came is not None
    of_old = {row["earlier"]["kind"]: row["earlier"] for row in came.to_pylist()}
    of_new = {row["kind"]: row for row in old}
    assert of_old.keys() == of_new.keys() == {"STALLED", "FLAPPING"}
    assert of_old["STALLED"]["finding_id"] == stall_id("C", "G", "T", "broker-a", 3)
    assert of_old["FLAPPING"]["finding_id"] == fault_id("C", "G", "T", "FLAPPING", [])
    assert (of_old["STALLED"]["nights_open"], of_new["STALLED"]["nights_open"]) == (None, 2)
    assert (of_new["FLAPPING"]["broker_name"], of_new["FLAPPING"]["queue_id"]) == ("", -1)


def test_a_table_that_the_run_before_did_not_make_hides_nothing_of_the_others(
    tmp_path: Path,
) -> None:
    published = publish(tmp_path, DAY, {"orphaned_queues": [finding("orphaned_queues")]})
    tables = tuple(name for name in published.tables if name != "stalled_queues")
    came = open_findings(Reports(Location(tmp_path)), replace(published, tables=tables))
    assert came is not None
    assert came.num_rows == 1
