"""What a run takes from the run before: the findings that lasted and were not over."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from jobs.instants import to_instant
from jobs.publish.earlier import open_findings
from jobs.storage import Location, Reports
from tests.support.written_reports import NOON, Row, publish, report_row

DAY = "2026-11-20"


def finding(table: str, **values: object) -> Row:
    return report_row(table, **{"first_seen": NOON, "last_seen": NOON} | values)


def found(folder: Path, **tables: list[Row]) -> list[Row]:
    published = publish(folder, DAY, tables)
    came = open_findings(Reports(Location(folder)), published)
    assert came.keys() <= {("C", "G")}
    return [each._asdict() for of_group in came.values() for each in of_group]


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
    assert open_findings(folder, None) == {}
    published = publish(tmp_path, DAY, {})
    assert open_findings(folder, published) == {}
    shutil.rmtree(tmp_path / "orphaned_queues")
    assert open_findings(folder, published) == {}


def test_stalls_and_faults_are_taken_too(tmp_path: Path) -> None:
    tables = {
        "stalled_queues": [finding("stalled_queues", queue_id=3, finding_id="s", nights_open=2)],
        "group_faults": [
            finding("group_faults", fault="FLAPPING", finding_id="f", client_ids=["a"]),
            finding("group_faults", fault="FROZEN_PROCESS", finding_id="z", ongoing=False),
        ],
    }
    came = {row["kind"]: row for row in found(tmp_path, **tables)}
    assert came.keys() == {"STALLED", "FLAPPING"}
    stall, fault = came["STALLED"], came["FLAPPING"]
    assert (stall["finding_id"], stall["queue_id"], stall["nights_open"]) == ("s", 3, 2)
    assert (fault["finding_id"], fault["broker_name"], fault["queue_id"]) == ("f", "", -1)


def test_a_table_that_the_run_before_did_not_make_hides_nothing_of_the_others(
    tmp_path: Path,
) -> None:
    published = publish(tmp_path, DAY, {"orphaned_queues": [finding("orphaned_queues")]})
    files = {name: of for name, of in published.files.items() if name != "stalled_queues"}
    came = open_findings(Reports(Location(tmp_path)), replace(published, files=files))
    assert [len(each) for each in came.values()] == [1]
