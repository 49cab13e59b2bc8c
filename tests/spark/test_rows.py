"""How columns of DataFrames become those of the snapshot tables: cases, and errors."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.errors import ContractError, InputError
from jobs.schemas import CLIENT_STATES, HEARTBEATS, TOPIC_ROUTES
from jobs.spark.dataframe_rows import FACTS, packed_columns, prepared
from tests.spark.test_auditing import set_to
from tests.support.snapshots import frame, heartbeat_row, route_row
from tests.support.travelled import arrived

pytestmark = pytest.mark.spark

NOON = 1_767_614_400_000_000
LEAST = -(1 << 63)
#: What came as SQL, the column that it is for, and the value that the fold gets.
TRAVELLING: list[tuple[str, str, Any]] = [
    ("timestamp_micros(1767614400000000)", "snapshot_time", NOON),
    ("'2026-01-05T12:00:00Z'", "snapshot_time", NOON),
    ("'2026-01-05 12:00:00'", "snapshot_time", NOON),
    ("'2026-01-05T20:00:00.000+08:00'", "snapshot_time", NOON),
    ("CAST(NULL AS string)", "snapshot_time", None),
    # No time: the year -290308, which the contract of values refuses by name, row by row.
    ("'noon'", "snapshot_time", LEAST),
    ("CAST(7 AS decimal(38,0))", "broker_id", 7),
    ("CAST(7 AS smallint)", "broker_id", 7),
    ("CAST(repeat('9', 38) AS decimal(38,0))", "broker_id", LEAST),
    ("CAST(7 AS bigint)", "version", 7),
    ("CAST(4294967299 AS bigint)", "version", -(1 << 31)),
    ("'a'", "language", "a"),
    ("NULL", "language", None),
]


@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.house)])
def test_what_is_lossless_is_taken_and_what_is_not_is_the_least_number(
    spark: SparkSession, ansi: str
) -> None:
    settings = {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": "Asia/Shanghai"}
    with set_to(spark, settings):
        base = frame(spark, HEARTBEATS, [heartbeat_row()])
        came = []
        for number, (sql, column, _) in enumerate(TRAVELLING):
            # At random, so that no optimizer computes it beforehand, under other rules.
            made = base.selectExpr("*", f"IF(rand() < 2, {sql}, NULL) AS made").drop(column)
            rows = prepared({"heartbeats": made}, {column: "MADE"})["heartbeats"]
            is_fact = column in packed_columns(HEARTBEATS)
            value = f"get_json_object({FACTS}, '$.{column}')" if is_fact else column
            came.append(rows.selectExpr(f"{number} AS number", f"CAST({value} AS string) AS text"))
        told = {row.number: row.text for row in reduce(type(base).unionAll, came).collect()}
        for number, (sql, _, wanted) in enumerate(TRAVELLING):
            assert told[number] == (None if wanted is None else str(wanted)), sql


def test_columns_come_in_any_order_and_case_and_those_that_are_not_there_are_null(
    spark: SparkSession,
) -> None:
    rows = frame(spark, HEARTBEATS, [heartbeat_row(language=None, version=None)])
    expected = prepared({"heartbeats": rows})["heartbeats"]
    others = ("language", "version", "client_id", "subscriptions")
    other = rows.selectExpr(
        "INTERVAL 1 DAY AS more",
        *[f"`{name}` AS {name.upper()}" for name in reversed(rows.columns) if name not in others],
        "client_id AS `client.Id`",
        "transform(subscriptions, s -> named_struct('EXPRESSION', s.expression, 'more', 1, "
        "'topic', s.topic, 'expression_type', s.expression_type)) AS subscriptions",
    )
    came = prepared({"heartbeats": other}, {"client_id": "client.id"})["heartbeats"]
    assert_df_equality(came, expected, ignore_nullable=True)


def test_one_error_has_every_column_of_all_tables_and_what_to_type(spark: SparkSession) -> None:
    heartbeats = frame(spark, HEARTBEATS, [heartbeat_row()]).withColumnsRenamed(
        {"client_id": "clientId", "consumer_group": "grp"}
    )
    heartbeats = heartbeats.withColumn("last_heartbeat_at", F.lit(1_767_614_400_000))
    routes = frame(spark, TOPIC_ROUTES, [route_row()]).drop("snapshot_time")
    routes = routes.withColumn("perm", F.col("perm").cast("string")).selectExpr(
        "*", "TIMESTAMP_NTZ '2026-01-05 12:00:00' AS snapshot_time"
    )
    with pytest.raises(ContractError) as error:
        prepared({"heartbeats": heartbeats, "topic_routes": routes})
    said = str(error.value)
    for part in (
        "  client_id: expected string, is missing",
        "  perm: expected int, came string",
        "  snapshot_time: expected timestamp, came timestamp without a zone",
        'audit(..., columns={"heartbeats": {"consumer_group": "...", "client_id": "clientId", '
        '"last_heartbeat_at": F.expr("timestamp_millis(`last_heartbeat_at`)")}, '
        '"topic_routes": {"snapshot_time": F.expr("CAST(`snapshot_time` AS string)"), '
        '"perm": F.expr("try_cast(`perm` AS int)")}})',
        "last_heartbeat_at: timestamp_seconds or timestamp_micros if it does not count",
        "snapshot_time: its times are taken for UTC",
        '"..." is the name of a column, or a column that is made, as F.lit("prod"); heartbeats has '
        "besides: grp string",
    ):
        assert part in said
    with pytest.raises(InputError, match="no snapshot table has a column 'clientid': client_id"):
        prepared({"heartbeats": heartbeats}, {"clientid": "x"})


def test_what_columns_has_and_no_table_has_is_refused_by_name(spark: SparkSession) -> None:
    heartbeats = frame(spark, HEARTBEATS, [heartbeat_row()]).withColumnsRenamed(
        {"client_addr": "addr", "version": "ver"}
    )
    columns = {
        # A slip must not leave the column of that name in its place.
        "heartbeats": {"client_id": "clientIdd", "cluster": F.upper("clustre")},
        "version": F.col("ver").cast("string"),
        "perm": "of no table here",
    }
    with pytest.raises(ContractError) as error:
        prepared({"heartbeats": heartbeats}, columns)
    said = str(error.value)
    for part in (
        "heartbeats.client_id: columns names 'clientIdd', which is not there",
        "heartbeats.cluster: Spark refuses what columns has for it: [UNRESOLVED_COLUMN",
        '{"heartbeats": {"client_addr": "addr"}}',
        "heartbeats.version: make of it int in columns",
    ):
        assert part in said
    mended = {"client_addr": "addr", "version": F.col("ver"), "client_id": "clientIdd"}
    with pytest.raises(ContractError, match=r"^heartbeats\.client_id: columns names 'clientIdd'"):
        prepared({"heartbeats": heartbeats}, mended)
    routes = frame(spark, TOPIC_ROUTES, [route_row()]).withColumnRenamed("cluster", "cl")
    everywhere = {"client_addr": "addr", "version": F.col("ver"), "cluster": "cl"}
    prepared({"heartbeats": heartbeats, "topic_routes": routes}, everywhere)


def test_a_column_may_be_made_of_others_in_the_tables_that_have_them(spark: SparkSession) -> None:
    heartbeats = frame(spark, HEARTBEATS, [heartbeat_row()])
    routes = frame(spark, TOPIC_ROUTES, [route_row()])
    millis = heartbeats.selectExpr("*", "unix_millis(snapshot_time) AS ts").drop("snapshot_time")
    columns = {"snapshot_time": F.timestamp_millis(F.col("ts"))}
    came = prepared({"heartbeats": millis, "topic_routes": routes}, columns)
    plain = prepared({"heartbeats": heartbeats, "topic_routes": routes})
    for name, rows in came.items():
        assert_df_equality(rows, plain[name], ignore_nullable=True)


def test_times_within_lists_travel_as_microseconds(spark: SparkSession) -> None:
    at = datetime(2026, 1, 5, 12, tzinfo=UTC)
    queue = {"topic": "T", "broker_name": "b", "queue_id": 1, "last_pull_at": at}
    row = {"cluster": "c", "source": "RUNNING_INFO", "queues": [queue]}
    row |= {"consumer_group": "G", "client_id": "a", "snapshot_time": at, "observed_at": at}
    states = frame(spark, CLIENT_STATES, [row])
    came = arrived(CLIENT_STATES, prepared({"client_states": states})["client_states"]).to_pydict()
    (of_row,) = came["queues"]
    assert of_row[0]["last_pull_at"] == at


def test_a_list_that_is_null_arrives_as_null_and_every_other_one_as_it_was(
    spark: SparkSession,
) -> None:
    doubtful: list[Any] = [None, [], [None], [{"topic": "T", "percent": 7}], [None, None]]
    rows = frame(
        spark,
        HEARTBEATS,
        [
            heartbeat_row(client_id=f"{n}", doubtful_topics=lists)
            for n, lists in enumerate(doubtful)
        ],
    )
    came = arrived(HEARTBEATS, prepared({"heartbeats": rows})["heartbeats"]).to_pydict()
    lists_by_id = dict(zip(came["client_id"], came["doubtful_topics"], strict=True))
    assert lists_by_id == {str(number): lists for number, lists in enumerate(doubtful)}
    dropped = rows.drop("doubtful_topics")
    for missing in (dropped, dropped.selectExpr("*", "NULL AS doubtful_topics")):
        came = arrived(HEARTBEATS, prepared({"heartbeats": missing})["heartbeats"]).to_pydict()
        assert came["doubtful_topics"] == [None] * len(doubtful)
    of_nulls = dropped.selectExpr("*", "array(NULL, NULL) AS doubtful_topics")
    came = arrived(HEARTBEATS, prepared({"heartbeats": of_nulls})["heartbeats"]).to_pydict()
    assert came["doubtful_topics"] == [[None, None]] * len(doubtful)
