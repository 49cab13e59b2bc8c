"""Night after night: what is new, what goes on, what has ended, in whichever order they are run."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from jobs.config.window import Window
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from tests.support.reports import PublishedReports
from tests.support.runs import audit_locally, task
from tests.support.snapshots import heartbeat_row, route_row, write_tables

MONDAY = date(2026, 1, 5)
#: By day: is a second copy of the id there?
STACKED = {1: True, 2: True, 3: False}


def write_snapshots(folder: Path) -> None:
    """A snapshot every ten minutes of the last hour of each day."""
    heartbeats, routes = [], []
    for day, stacked in STACKED.items():
        for minute in range(0, 60, 10):
            time = datetime(2026, 1, 5, 23, minute, tzinfo=UTC) + timedelta(days=day)
            routes.append(route_row(snapshot_time=time))
            ports = (1, 2) if stacked else (1,)
            heartbeats += [heartbeat_row(snapshot_time=time, client_addr=f"h:{n}") for n in ports]
    write_tables(folder, [(HEARTBEATS, heartbeats), (TOPIC_ROUTES, routes)])


@pytest.mark.long
def test_findings_are_told_against_the_night_before_in_any_order_of_runs(tmp_path: Path) -> None:
    write_snapshots(tmp_path / "snapshots")
    run_ids = {}

    def run(day: int) -> PublishedReports:
        window = Window.of_date(MONDAY + timedelta(days=day))
        night = task(tmp_path / "snapshots", tmp_path / "reports", window)
        run_ids[day] = night.run.run_id
        return audit_locally(night)

    def statuses(published: PublishedReports) -> tuple[set[object], set[object]]:
        found = {row["status"] for row in published.rows("duplicate_queues")}
        return found, {(r["kind"], r["status"]) for r in published.rows("former_findings")}

    def nights(published: PublishedReports, table: str) -> set[tuple[object, object]]:
        return {(row["open_since"], row["nights_open"]) for row in published.rows(table)}

    since = datetime(2026, 1, 6, 23, tzinfo=UTC)
    first = run(1)
    assert statuses(first) == ({"NEW"}, set())
    assert nights(first, "duplicate_queues") == nights(first, "group_faults") == {(since, 1)}
    assert first.summary["groups"]["clusters"]["DefaultCluster"]["G"]["level"] == "CRITICAL"
    # Wednesday is late: Thursday compares with what there is.
    ended = run(3)
    assert statuses(ended) == (set(), {("DUPLICATE", "RESOLVED"), ("ORPHANED", "RESOLVED")})
    assert ended.summary["previous"] == {"date": "2026-01-06", "run_id": run_ids[1]}
    # It compares with the day before it, though a later day was published since.
    goes_on = run(2)
    assert statuses(goes_on) == ({"PERSISTING"}, set())
    assert goes_on.summary["previous"] == {"date": "2026-01-06", "run_id": run_ids[1]}
    assert goes_on.summary["findings"]["duplicate_queues"]["PERSISTING"] > 0
    assert nights(goes_on, "duplicate_queues") == nights(goes_on, "group_faults") == {(since, 2)}
    # A date that is audited again gives the same: it reads the date before it alone.
    assert nights(run(2), "duplicate_queues") == {(since, 2)}
    # What has ended says how long it had been open.
    assert nights(run(3), "former_findings") == {(since, 2)}
