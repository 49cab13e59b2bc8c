"""What a run takes from the run before: the findings that lasted and were not over."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.declared.instants import to_instant
from jobs.publish.earlier import NIGHTS, open_findings
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


def after(folder: Path, *nights: dict[str, list[Row]]) -> set[tuple[str, str]]:
    """The ids and kinds of what is open for the night after these."""
    days = [f"2026-11-{10 + number}" for number in range(len(nights))]
    *_, last = [publish(folder, day, tables) for day, tables in zip(days, nights, strict=True)]
    came = open_findings(Reports(Location(folder)), last)
    return {(each.finding_id, each.kind) for of_group in came.values() for each in of_group}


def orphan(finding_id: str, **values: object) -> Row:
    return finding("orphaned_queues", finding_id=finding_id, **values)


def former(finding_id: str, status: str = "NOT_AUDITED", **values: object) -> Row:
    return finding("former_findings", finding_id=finding_id, status=status, **values)


SEEN = {"orphaned_queues": [orphan("o"), orphan("r")]}
UNSEEN = {"former_findings": [former("o"), former("r", "RESOLVED")]}


def test_a_night_that_did_not_audit_it_leaves_what_was_open_before(tmp_path: Path) -> None:
    assert after(tmp_path, SEEN, UNSEEN) == {("o", "ORPHANED")}


def test_a_fault_goes_on_by_itself_or_with_the_queues_of_its_topic(tmp_path: Path) -> None:
    fault = finding("group_faults", fault="FLAPPING", finding_id="f")
    other = finding("group_faults", fault="FLAPPING", finding_id="x", topic="another")
    elsewhere = finding("group_faults", fault="FLAPPING", finding_id="h", consumer_group="H")
    seen = {"group_faults": [fault, other, elsewhere], "orphaned_queues": [orphan("o")]}
    itself = {"former_findings": [former("f", kind="FLAPPING", queue_id=-1, topic="renamed")]}
    assert after(tmp_path / "itself", seen, itself) == {("f", "FLAPPING")}
    queue = {"former_findings": [former("o")]}
    assert after(tmp_path / "queue", seen, queue) == {("f", "FLAPPING"), ("o", "ORPHANED")}


@pytest.mark.parametrize(("unseen", "is_open"), [(NIGHTS - 1, True), (NIGHTS, False)])
def test_a_week_of_such_nights_may_follow_each_other(
    tmp_path: Path, unseen: int, is_open: bool
) -> None:
    assert after(tmp_path, SEEN, *[UNSEEN] * unseen) == ({("o", "ORPHANED")} if is_open else set())


def test_what_was_resolved_in_between_is_not_open_again(tmp_path: Path) -> None:
    audited: dict[str, list[Row]] = {"former_findings": [former("o", "RESOLVED")]}
    assert after(tmp_path / "it", SEEN, UNSEEN, audited) == set()
    # Nor for what is not audited after that.
    other: dict[str, list[Row]] = {"former_findings": [former("another")]}
    assert after(tmp_path / "another", SEEN, audited, other) == set()


def test_what_a_night_itself_has_open_counts_as_that_night_has_it(tmp_path: Path) -> None:
    now = orphan("o", last_seen=NOON + timedelta(days=1))
    publish(tmp_path, DAY, SEEN)
    last = publish(tmp_path, "2026-11-21", {"orphaned_queues": [now], **UNSEEN})
    ((came,),) = open_findings(Reports(Location(tmp_path)), last).values()
    assert came.last_seen == to_instant(NOON + timedelta(days=1))


def test_a_damaged_night_before_takes_nothing_from_the_last_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = publish(tmp_path, DAY, SEEN)
    last = publish(tmp_path, "2026-11-21", {"orphaned_queues": [orphan("x")], **UNSEEN})
    shutil.rmtree(tmp_path / "orphaned_queues" / f"dt={DAY}")
    ((came,),) = open_findings(Reports(Location(tmp_path)), last).values()
    assert came.finding_id == "x"
    assert before.date in caplog.text
