"""What an audit on Spark costs, counted: rows read, Spark jobs, calls. What adds one is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import DataFrame, SparkSession

from jobs import audit
from jobs.schemas import BROKER_POLLS, HEARTBEATS, TOPIC_ROUTES
from tests.support.runs import audit_by_spark, task
from tests.support.snapshots import at, frame, heartbeat_row, poll_row, route_row, write_tables

pytestmark = pytest.mark.spark

ROUNDS = range(6)
HEARTBEAT_ROWS = [
    heartbeat_row(snapshot_time=at(60 * n), client_addr=f"h:{port}")
    for n in ROUNDS
    for port in ((1, 2) if n > 2 else (1,))
]
POLL_ROWS = [poll_row(snapshot_time=at(60 * n), connections=2 if n > 2 else 1) for n in ROUNDS]
ROUTE_ROWS = [route_row(snapshot_time=at(60 * n)) for n in ROUNDS]

#: Every job and every call costs every night its time: raise them only for what is worth that.
JOBS = 5
CALLS = 600


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


def test_an_audit_has_no_more_jobs_and_calls_than_it_had(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [(HEARTBEATS, HEARTBEAT_ROWS), (TOPIC_ROUTES, ROUTE_ROWS), (BROKER_POLLS, POLL_ROWS)]
    write_tables(tmp_path / "snapshots", tables)
    calls: Counter[str] = Counter()
    send = spark.sparkContext._gateway._gateway_client.send_command

    def counted(self: GatewayClient, command: str, *args: object, **options: object) -> object:
        # Python lets go of the JVM's objects whenever it collects garbage: not the audit's calls.
        calls["memory" if command.startswith("m\n") else "call"] += 1
        return send(command, *args, **options)

    status = spark.sparkContext.statusTracker()
    before = set(status.getJobIdsForGroup(None))
    client = type(spark.sparkContext._gateway._gateway_client)
    monkeypatch.setattr(client, "send_command", counted)
    audit_by_spark(spark, task(tmp_path / "snapshots", tmp_path / "reports"))
    monkeypatch.undo()
    assert len(set(status.getJobIdsForGroup(None)) - before) <= JOBS
    assert 100 < calls["call"] <= CALLS
