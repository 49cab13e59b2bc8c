"""Known issues in a published run: marked, counted in its summary, no more once expired."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

from jobs.commands.batch import expired_known_issues, is_closed
from jobs.config.known_issues import KnownIssue, KnownIssues
from jobs.config.window import Window
from jobs.reports.tables import PublishedTables
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from jobs.shell.closing import sum_up
from jobs.storage import Location, PublishedRun, Reports
from jobs.verdict.verdict import read_verdict
from tests.support.reports import PublishedReports
from tests.support.runs import audit_locally, task
from tests.support.snapshots import heartbeat_row, route_row, write_tables

TUESDAY = date(2026, 1, 6)
WEDNESDAY = date(2026, 1, 7)


def entry(reason: str, expires: date, **keys: object) -> KnownIssue:
    return KnownIssue(groups="G.*", reason=reason, expires=expires, **keys)


KNOWN = KnownIssues(
    known_issues=(
        entry("expired", TUESDAY),
        entry("orphans", WEDNESDAY, kinds=("ORPHANED",)),
        entry("matches nothing", WEDNESDAY, topics="nowhere"),
        entry("the id", WEDNESDAY, kinds=("STACKED", "DUPLICATE_CLIENT_ID")),
    )
)


def write_snapshots(folder: Path) -> None:
    """Two processes share the only id, at the end of two days."""
    minutes = [(day, minute) for day in (TUESDAY, WEDNESDAY) for minute in range(0, 60, 10)]
    times = [datetime(d.year, d.month, d.day, 23, minute, tzinfo=UTC) for d, minute in minutes]
    rows = [{"snapshot_time": time, "client_addr": f"h:{n}"} for time in times for n in (1, 2)]
    heartbeats = [heartbeat_row(**each) for each in rows]
    routes = [route_row(snapshot_time=time) for time in times]
    write_tables(folder, [(HEARTBEATS, heartbeats), (TOPIC_ROUTES, routes)])


def test_what_is_known_is_marked_and_not_counted_until_it_expires(tmp_path: Path) -> None:
    write_snapshots(tmp_path / "snapshots")
    reports = tmp_path / "reports"

    def run(day: date, known: KnownIssues | None) -> PublishedRun:
        window = Window.of_date(day)
        audit_locally(task(tmp_path / "snapshots", reports, window, known_issues=known))
        return Reports(Location(reports)).resolve(day.isoformat())

    before = run(TUESDAY, None)
    assert before.summary["known_issues"] == []
    assert is_closed(before, ["CRITICAL"])

    published = run(WEDNESDAY, KNOWN)
    found = PublishedReports(reports, date=WEDNESDAY.isoformat())

    def marks(table: str) -> set[object]:
        return {row["known_issue"] for row in found.rows(table)}

    assert marks("orphaned_queues") == {"orphans"}
    assert marks("duplicate_queues") == {None}
    assert marks("stacked_client_ids") == marks("group_faults") == {"the id"}
    assert {row["status"] for row in found.rows("orphaned_queues")} == {"PERSISTING"}

    counts = published.summary["findings"]
    orphans, duplicates = counts["orphaned_queues"], counts["duplicate_queues"]
    assert orphans["known"] == {key: orphans[key] for key in orphans["known"]}
    assert orphans["total"] == orphans["persistent"] == orphans["CRITICAL"] == 2
    assert duplicates["known"]["total"] == 0
    assert duplicates["WARNING"] == 2
    entries = {each["reason"]: each for each in published.summary["known_issues"]}
    assert [each["expired"] for each in entries.values()] == [True, False, False, False]
    of_ids = {"stacked_client_ids": 1, "group_faults": 1}
    marked = [each["marked"] for each in entries.values()]
    assert marked == [{}, {"orphaned_queues": 2}, {}, of_ids]
    # The orphans are the only critical ones.
    assert not is_closed(published, ["CRITICAL"])
    assert is_closed(published, ["WARNING"])
    (told,) = expired_known_issues(published)
    assert told.endswith("expired on 2026-01-06, its findings count again: expired")
    tables = PublishedTables(Reports(Location(reports)), published)
    assert "(2 of all these are known issues)" in sum_up(published, read_verdict(tables), None)
