"""Night after night: what is new, what goes on, what has ended, in whichever order they are run."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.pipeline.audit import Run, Window, audit
from jobs.progress import Progress
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from jobs.settings import Settings
from jobs.storage import Location
from tests.support.reports import PublishedReports
from tests.support.snapshots import frame, heartbeat_row, route_row

pytestmark = pytest.mark.spark

MONDAY = date(2026, 1, 5)
#: By day: is a second copy of the id there?
STACKED = {1: True, 2: True, 3: False}


def snapshots(spark: SparkSession, folder: Path) -> Location:
    """A snapshot every ten minutes of the last hour of each day."""
    heartbeats, routes = [], []
    for day, stacked in STACKED.items():
        for minute in range(0, 60, 10):
            time = datetime(2026, 1, 5, 23, minute, tzinfo=UTC) + timedelta(days=day)
            routes.append(route_row(snapshot_time=time))
            heartbeats += [
                heartbeat_row(snapshot_time=time, client_addr=f"h:{port}")
                for port in ((1, 2) if stacked else (1,))
            ]
    frame(spark, HEARTBEATS, heartbeats).write.parquet(str(folder / "heartbeats"))
    frame(spark, TOPIC_ROUTES, routes).write.parquet(str(folder / "topic_routes"))
    return Location(folder)


def test_findings_are_told_against_the_night_before_in_whichever_order_nights_are_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables, reports = snapshots(spark, tmp_path / "snapshots"), tmp_path / "reports"

    def run(day: int, number: int) -> PublishedReports:
        window = Window.of_date(MONDAY + timedelta(days=day))
        now = datetime(2026, 2, 1, tzinfo=UTC)
        this = Run(f"run-{number}", now)
        audit(spark, tables, Location(reports), window, Settings(), this, Progress(quiet=True))
        return PublishedReports(reports, date=(MONDAY + timedelta(days=day)).isoformat())

    def statuses(published: PublishedReports) -> tuple[set[object], set[object]]:
        found = {row["status"] for row in published.rows("duplicate_queues")}
        return found, {(r["kind"], r["status"]) for r in published.rows("former_findings")}

    assert statuses(run(1, 1)) == ({"NEW"}, set())
    # Wednesday is late: Thursday compares with what there is.
    ended = run(3, 2)
    assert statuses(ended) == (set(), {("DUPLICATE", "RESOLVED"), ("ORPHANED", "RESOLVED")})
    assert ended.summary["previous"] == {"date": "2026-01-06", "run_id": "run-1"}
    # It compares with the day before it, though a later day was published since.
    goes_on = run(2, 3)
    assert statuses(goes_on) == ({"PERSISTING"}, set())
    assert goes_on.summary["previous"] == {"date": "2026-01-06", "run_id": "run-1"}
    assert goes_on.summary["findings"]["duplicate_queues"]["PERSISTING"] > 0
