"""Windows on DataFrames: Spark leaves out what is not in them, and nothing that has to be told."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.config.window import Window
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from jobs.spark import audit
from jobs.spark.dataframe_rows import prepared
from tests.support.runs import audit_locally, task
from tests.support.snapshots import at, frame_of, heartbeat_row, route_row, write_tables
from tests.support.stacked import STACKED

pytestmark = pytest.mark.spark

DAY = 86_400
WINDOW = Window(since=at(0), until=at(DAY), future=at(5 * DAY))
#: By name the time of a row, in seconds; None: it has none.
TIMES = {"before": -1, "first": 0, "last": DAY - 1, "after": DAY, "ahead": 5 * DAY, "none": None}


def times_of(rows: dict[str, Any]) -> dict[str, datetime | None]:
    return {name: None if each is None else at(each) for name, each in rows.items()}


@pytest.mark.parametrize("form", ["time", "text"])
def test_rows_of_the_window_of_the_future_and_without_a_time_are_read(
    spark: SparkSession, form: str
) -> None:
    schema = pa.schema(column.with_nullable(True) for column in HEARTBEATS.schema)
    made = [heartbeat_row(client_id=name, snapshot_time=t) for name, t in times_of(TIMES).items()]
    rows = frame_of(spark, pa.Table.from_pylist(made, schema))
    wanted = ["ahead", "first", "last", "none"]
    if form == "text":
        text = F.when(F.col("client_id") == "before", "noon").otherwise(
            F.date_format("snapshot_time", "yyyy-MM-dd'T'HH:mm:ss'Z'")
        )
        rows, wanted = rows.withColumn("snapshot_time", text), ["before", *wanted]
    came = prepared({"heartbeats": rows}, None, WINDOW)["heartbeats"].select("client_id")
    expected = spark.createDataFrame([(name,) for name in sorted(wanted)], "client_id string")
    assert_df_equality(
        came.orderBy("client_id"), expected.orderBy("client_id"), ignore_nullable=True
    )


def test_a_route_of_shortly_before_holds(spark: SparkSession) -> None:
    rows = [route_row(topic=str(seconds), snapshot_time=at(seconds)) for seconds in (-601, -600, 0)]
    routes = frame_of(spark, pa.Table.from_pylist(rows, TOPIC_ROUTES.schema))
    came = prepared({"topic_routes": routes}, None, WINDOW, 600)["topic_routes"].select("topic")
    expected = spark.createDataFrame([("-600",), ("0",)], "topic string")
    assert_df_equality(came.orderBy("topic"), expected, ignore_nullable=True)


def test_files_are_asked_by_their_statistics(spark: SparkSession, tmp_path: Path) -> None:
    """Also under another name; each day is a group of rows, of which one is read."""
    for day in range(3):
        rows = [heartbeat_row(snapshot_time=at(day * DAY + 60 * n)) for n in range(50)]
        table = pa.Table.from_pylist(rows, HEARTBEATS.schema)
        renamed = table.rename_columns(
            ["ts" if n == "snapshot_time" else n for n in table.column_names]
        )
        pq.write_table(renamed, tmp_path / f"{day}.parquet")
    read = spark.read.parquet(str(tmp_path))
    window = Window(since=at(DAY), until=at(2 * DAY))
    came = prepared({"heartbeats": read}, {"snapshot_time": "ts"}, window)["heartbeats"]
    plan = came._jdf.queryExecution().executedPlan()
    assert came.count() == 50
    (pushed,) = [line for line in str(plan.toString()).splitlines() if "FileScan" in line]
    assert "GreaterThanOrEqual(ts" in pushed.partition("PushedFilters: ")[2]
    assert "LessThan(ts" in pushed.partition("PushedFilters: ")[2]


def test_one_of_two_days_gives_what_an_audit_of_the_files_publishes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """With a row that has no time, and a text that is none: both are in the quarantine."""
    days = [
        (
            of,
            [
                {**row, "snapshot_time": row["snapshot_time"] + timedelta(days=day)}
                for day in range(2)
                for row in rows
            ],
        )
        for of, rows in STACKED
    ]
    snapshots = write_tables(tmp_path / "snapshots", days)
    window = Window(since=at(DAY), until=at(2 * DAY))
    published = audit_locally(task(tmp_path / "snapshots", tmp_path / "reports", window))
    tables = {of.name: spark.read.parquet((snapshots / of.name).uri) for of, _ in days}
    lists = tables["heartbeats"]
    text = F.date_format("snapshot_time", "yyyy-MM-dd'T'HH:mm:ss'Z'")
    bad = lists.where("client_id = 'b'").limit(1)
    tables["heartbeats"] = (
        lists.withColumn("snapshot_time", text)
        .union(bad.withColumn("snapshot_time", F.lit("noon")))
        .union(bad.withColumn("snapshot_time", F.lit(None).cast("string")))
    )
    result = audit(**tables, date="2026-01-06")
    assert result.summary["date"] == published.published["date"] == "2026-01-06"
    for name in ("orphaned_queues", "duplicate_queues", "group_health", "state_runs"):
        came = sorted(map(repr, result[name].to_pylist()))
        assert came == sorted(map(repr, published.rows(name))), name
    reasons = sorted(row.reason for row in result.quarantine.collect())
    assert len(reasons) == 2
    assert all("snapshot_time: expected" in each for each in reasons)
    assert "as of 2026-01-06T00:07:00.000Z" in result.explain("G", "T")
