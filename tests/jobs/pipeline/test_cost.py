"""What an audit costs, counted: passes over the input, Spark jobs. What adds one is seen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs import audit_frames
from jobs.pipeline.audit import Run, audit
from jobs.pipeline.window import Window
from jobs.progress import Progress
from jobs.schemas import BROKER_POLLS, HEARTBEATS, TOPIC_ROUTES
from jobs.settings import Settings
from jobs.storage import Location
from tests.support.snapshots import at, frame, heartbeat_row, poll_row, route_row

pytestmark = pytest.mark.spark

ROUNDS = range(6)
HEARTBEAT_ROWS = [
    heartbeat_row(snapshot_time=at(60 * n), client_addr=f"h:{port}")
    for n in ROUNDS
    for port in ((1, 2) if n > 2 else (1,))
]
POLL_ROWS = [poll_row(snapshot_time=at(60 * n), connections=2 if n > 2 else 1) for n in ROUNDS]
ROUTE_ROWS = [route_row(snapshot_time=at(60 * n)) for n in ROUNDS]

#: Every job costs every night its time: raise it only for what is worth that.
JOBS = 42


def test_heartbeats_and_routes_are_read_twice_whatever_is_made_of_them(spark: SparkSession) -> None:
    """Once for the fingerprints, once for the snapshots that show something new."""

    def counted(rows: DataFrame) -> tuple[DataFrame, object]:
        count = spark.sparkContext.accumulator(0)

        def through(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for batch in batches:
                count.add(len(batch))
                yield batch

        return rows.mapInPandas(through, rows.schema), count

    heartbeats, heartbeats_read = counted(frame(spark, HEARTBEATS, HEARTBEAT_ROWS))
    routes, routes_read = counted(frame(spark, TOPIC_ROUTES, ROUTE_ROWS))
    reports = audit_frames(heartbeats, routes, frame(spark, BROKER_POLLS, POLL_ROWS))
    assert sum(len(table.collect()) for table in reports.values()) > 0

    assert heartbeats_read.value == 2 * len(HEARTBEAT_ROWS)
    assert routes_read.value == 2 * len(ROUTE_ROWS)


def test_an_audit_has_no_more_jobs_than_it_had(spark: SparkSession, tmp_path: Path) -> None:
    snapshots = tmp_path / "snapshots"
    for table, rows in (
        (HEARTBEATS, HEARTBEAT_ROWS),
        (TOPIC_ROUTES, ROUTE_ROWS),
        (BROKER_POLLS, POLL_ROWS),
    ):
        frame(spark, table, rows).write.parquet(str(snapshots / table.name))
    status = spark.sparkContext.statusTracker()
    before = set(status.getJobIdsForGroup(None))
    audit(
        spark,
        Location(snapshots),
        Location(tmp_path / "reports"),
        Window(),
        Settings(),
        Run("run", datetime(2026, 2, 1, tzinfo=UTC)),
        Progress(quiet=True),
    )
    assert len(set(status.getJobIdsForGroup(None)) - before) <= JOBS
