"""Tables by days: Spark reads the partitions of the window alone, and nothing is left out of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.config.window import Window
from jobs.schemas import CLIENT_STATES, HEARTBEATS, TOPIC_ROUTES
from jobs.spark.dataframe_rows import in_days, prepared
from tests.support.snapshots import at, frame_of, heartbeat_row, route_row

pytestmark = pytest.mark.spark

DAY = 86_400
#: The day of ``at(0)`` is 2026-01-05: the window is the 7th.
WINDOW = Window(since=at(2 * DAY), until=at(3 * DAY))
#: The days that are read: one on either side.
READ = {"2026-01-06", "2026-01-07", "2026-01-08"}
FORMS = {
    "text": ("dt", "date_format(snapshot_time, 'yyyy-MM-dd')"),
    "plain text": ("DT", "date_format(snapshot_time, 'yyyyMMdd')"),
    "number": ("dt", "CAST(date_format(snapshot_time, 'yyyyMMdd') AS int)"),
    "date": ("date", "CAST(snapshot_time AS date)"),
}


def lists(spark: SparkSession, days: range) -> DataFrame:
    made = [heartbeat_row(snapshot_time=at(day * DAY + 60)) for day in days]
    return frame_of(spark, pa.Table.from_pylist(made, HEARTBEATS.schema))


def days_of(rows: DataFrame) -> set[str]:
    return {str(row[0]) for row in rows.select(F.to_date("snapshot_time")).distinct().collect()}


@pytest.mark.parametrize("form", FORMS)
def test_partitions_of_the_window_and_a_day_around_it_are_read(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    name, made = FORMS[form]
    rows = lists(spark, range(8)).withColumn(name, F.expr(made))
    table = f"lists_{form.replace(' ', '_')}"
    rows.write.partitionBy(name).saveAsTable(table, path=str(tmp_path / "lists"))
    try:
        there = spark.table(table)
        kept = in_days(HEARTBEATS, there, WINDOW, 0)
        assert days_of(kept) == READ
        plan = str(kept._jdf.queryExecution().executedPlan().toString())
        assert name in plan.partition("PartitionFilters: ")[2].partition("PushedFilters")[0]
        # What counts is cut to the time, whatever the days are.
        came = prepared({"heartbeats": there}, None, WINDOW)["heartbeats"]
        assert came.count() == 1
    finally:
        spark.sql(f"DROP TABLE {table}")


def test_days_of_the_future_are_read_and_what_is_between_is_not(spark: SparkSession) -> None:
    rows = lists(spark, range(8)).withColumn("dt", F.date_format("snapshot_time", "yyyy-MM-dd"))
    window = replace(WINDOW, future=at(6 * DAY))
    of_future = {"2026-01-10", "2026-01-11", "2026-01-12"}
    assert days_of(in_days(HEARTBEATS, rows, window, 0)) == READ | of_future


def test_rows_without_a_day_are_read(spark: SparkSession) -> None:
    rows = lists(spark, range(3))
    for day in (None, "yesterday", "2026-01-01T00:00:00Z"):
        made = rows.withColumn("dt", F.lit(day).cast("string"))
        assert in_days(HEARTBEATS, made, WINDOW, 0).count() == 3
    assert in_days(HEARTBEATS, rows.withColumn("dt", F.lit("2026-01-01")), WINDOW, 0).count() == 0
    # A time is none.
    of_time = rows.withColumn("date", F.lit("2026-01-01").cast("timestamp"))
    assert in_days(HEARTBEATS, of_time, WINDOW, 0).count() == 3


def test_a_window_that_is_open_has_no_such_bound(spark: SparkSession) -> None:
    rows = lists(spark, range(5)).withColumn("dt", F.date_format("snapshot_time", "yyyy-MM-dd"))
    for window, count in ((Window(), 5), (Window(since=at(2 * DAY)), 4), (Window(until=at(0)), 1)):
        assert in_days(HEARTBEATS, rows, window, 0).count() == count, window


def test_routes_of_before_and_lines_of_logs_are_read(spark: SparkSession) -> None:
    of_days_ago: Any = [route_row(snapshot_time=at(day * DAY)) for day in range(3)]
    routes = frame_of(spark, pa.Table.from_pylist(of_days_ago, TOPIC_ROUTES.schema))
    routes = routes.withColumn("dt", F.date_format("snapshot_time", "yyyy-MM-dd"))
    for age, count in ((0, 2), (DAY, 3)):
        assert in_days(TOPIC_ROUTES, routes, WINDOW, age).count() == count
    # A line that was written long before is in force.
    assert in_days(CLIENT_STATES, routes, WINDOW, 0).count() == 3
