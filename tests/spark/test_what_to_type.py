"""What the error tells to type is typed here, and must give the rows that it promises."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.errors import ContractError
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from jobs.spark.dataframe_rows import prepared
from tests.spark.test_auditing import set_to
from tests.support.snapshots import frame, heartbeat_row, route_row, subscriptions
from tests.support.travelled import arrived

pytestmark = pytest.mark.spark

#: Of RocketMQ, as its JSON has it: SubscriptionData has more fields than these.
OF_ROCKETMQ = '{"classFilterMode":false,"topic":"T","subString":"a || b","expressionType":"TAG"}'
BY_TAGS = [("T", "TAG", "a || b")]
#: Without a type it is one by tags, and without an expression one to all.
UNTYPED, TO_ALL = [("T", None, "a || b")], [("T", None, None)]

#: What their column has, of which name, for which of ours, and what the audit must read.
MENDED: list[tuple[str, str, str, Any]] = [
    ("map('T', 'a || b')", "subscriptions", "subscriptions", UNTYPED),
    ("map('T', 'a || b')", "subs", "subscriptions", UNTYPED),
    ("CAST(NULL AS map<string,string>)", "subscriptions", "subscriptions", None),
    ("map('T', CAST(NULL AS string))", "subscriptions", "subscriptions", TO_ALL),
    (f"'[{OF_ROCKETMQ}]'", "subscriptions", "subscriptions", BY_TAGS),
    (f"""'{{"T":{OF_ROCKETMQ}}}'""", "subscriptions", "subscriptions", BY_TAGS),
    ("""'{"T":"a || b"}'""", "subscriptions", "subscriptions", UNTYPED),
    (
        """'[{"topic":"T","expression_type":"TAG","expression":"a || b"}]'""",
        *("subscriptions", "subscriptions", BY_TAGS),
    ),
    ("'no JSON'", "subscriptions", "subscriptions", None),
    ("array('T')", "subscriptions", "subscriptions", TO_ALL),
    (
        "array(named_struct('topic', 'T', 'subString', 'a || b', 'expressionType', 'TAG'))",
        *("subscriptions", "subscriptions", BY_TAGS),
    ),
    (
        "named_struct('Topic', 'T', 'type', 'TAG', 'expr', 'a || b')",
        *("subscriptions", "subscriptions", BY_TAGS),
    ),
    (
        "map('T', named_struct('topic', 'T', 'subString', 'a || b', 'expressionType', 'TAG'))",
        *("subscriptions", "subscriptions", BY_TAGS),
    ),
    ("'7'", "broker_id", "broker_id", 7),
    ("7.0D", "version", "version", 7),
    ("'seven'", "broker_id", "broker_id", None),
    ("17", "clientId", "client_id", "17"),
    ("1767614400000L", "time", "snapshot_time", 1_767_614_400_000_000),
    ("1767614400.5D", "snapshot_time", "snapshot_time", 1_767_614_400_500_000),
    (
        "TIMESTAMP_NTZ '2026-01-05 12:00:00'",
        *("snapshot_time", "snapshot_time", 1_767_614_400_000_000),
    ),
    ("'true'", "client_rebalance", "client_rebalance", True),
    # A name that SQL and Python would both read otherwise.
    ("'7'", "broker`\"'id", "broker_id", 7),
    ("'7'", "brokerId\U0001f600", "broker_id", 7),
]


def their_heartbeats(spark: SparkSession, made: str, theirs: str, ours: str) -> DataFrame:
    rows = frame(spark, HEARTBEATS, [heartbeat_row()]).drop(ours)
    return rows.select("*", F.expr(made).alias(theirs))


def error_of(rows: DataFrame) -> str:
    with pytest.raises(ContractError) as error:
        prepared({"heartbeats": rows})
    return str(error.value)


def typed(said: str) -> Any:
    """What is there once the line of an error is typed."""
    told = re.search(r"audit\(\.\.\., columns=(.*)\)$", said, re.M)
    assert told is not None, said
    return eval(told[1], {"F": F})  # noqa: S307 - it is meant to be typed


@pytest.mark.parametrize("ansi", ["true", pytest.param("false", marks=pytest.mark.house)])
def test_a_line_that_is_told_gives_the_rows(spark: SparkSession, ansi: str) -> None:
    settings = {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": "Asia/Shanghai"}
    came = []
    with set_to(spark, settings):
        for made, theirs, ours, _ in MENDED:
            rows = their_heartbeats(spark, made, theirs, ours)
            came.append(prepared({"heartbeats": rows}, typed(error_of(rows)))["heartbeats"])
        found = arrived(HEARTBEATS, reduce(DataFrame.unionAll, came))
    assert found.num_rows == len(MENDED)
    for number, (made, _, ours, expected) in enumerate(MENDED):
        # Times as microseconds, subscriptions as tuples.
        column = found[ours].slice(number, 1)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        (value,) = column.to_pylist()
        if isinstance(value, list):
            value = [each and tuple(each.values()) for each in value]
        assert value == expected, made


def test_what_no_line_mends_is_said_in_a_sentence(spark: SparkSession) -> None:
    rows = their_heartbeats(spark, "DATE '2026-01-05'", "snapshot_time", "snapshot_time")
    of_tags = F.expr("array(named_struct('topic', 'T', 'tags', array('a')))")
    said = error_of(rows.withColumn("subscriptions", of_tags)).splitlines()
    assert said[-2:] == [
        "heartbeats.snapshot_time: no line is known that makes timestamp of snapshot_time, which "
        "is date",
        "heartbeats.subscriptions: no line is known that makes "
        "array<struct<topic:string,expression_type:string,expression:string>> of subscriptions, "
        "which is array<struct<topic:string,tags:array<string>>>",
    ]
    assert "audit(..., columns" not in "\n".join(said)


def test_the_name_of_a_broker_is_neither_its_id_nor_its_ids(spark: SparkSession) -> None:
    routes = frame(spark, TOPIC_ROUTES, [route_row()])
    routes = routes.drop("cluster", "broker_ids").withColumnRenamed("broker_name", "broker")
    with pytest.raises(ContractError) as error:
        prepared({"topic_routes": routes})
    assert '{"topic_routes": {"cluster": "...", "broker_name": "broker"}}' in str(error.value)


def test_a_line_goes_by_what_the_others_leave(spark: SparkSession) -> None:
    rows = frame(spark, HEARTBEATS, [heartbeat_row(subscriptions=subscriptions("T"))])
    rows = rows.selectExpr(
        "snapshot_time AS seenAt",
        "cluster",
        # One that is the name of a broker is no id.
        "broker_name AS broker",
        "consumer_group AS `group`",
        "client_id AS clientId",
        "client_addr AS address",
        "language AS lang",
        "map('T', '*') AS subs",
    )
    said = error_of(rows)
    assert (
        '{"heartbeats": {"snapshot_time": "...", "broker_name": "broker", "broker_id": "...", '
        '"consumer_group": "group", "client_id": "clientId", "client_addr": "...", '
        '"language": "lang", "subscriptions": F.expr('
    ) in said
    assert said.endswith("heartbeats has besides: seenAt timestamp, address string")
