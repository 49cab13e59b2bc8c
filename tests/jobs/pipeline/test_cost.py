"""What an audit on Spark reads, counted: each row once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs import audit
from jobs.schemas import BROKER_POLLS, HEARTBEATS, TOPIC_ROUTES
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


def test_heartbeats_and_routes_are_read_once_whatever_is_made_of_them(spark: SparkSession) -> None:
    def counted(rows: DataFrame) -> tuple[DataFrame, object]:
        count = spark.sparkContext.accumulator(0)

        def through(batches: Iterator[object]) -> Iterator[object]:
            for batch in batches:
                count.add(batch.num_rows)  # type: ignore[attr-defined]
                yield batch

        return rows.mapInArrow(through, rows.schema), count

    heartbeats, heartbeats_read = counted(frame(spark, HEARTBEATS, HEARTBEAT_ROWS))
    routes, routes_read = counted(frame(spark, TOPIC_ROUTES, ROUTE_ROWS))
    polls = frame(spark, BROKER_POLLS, POLL_ROWS)
    report = audit({"heartbeats": heartbeats, "topic_routes": routes, "broker_polls": polls})
    assert sum(table.num_rows for table in report.values()) > 0

    assert heartbeats_read.value == len(HEARTBEAT_ROWS)
    assert routes_read.value == len(ROUTE_ROWS)
