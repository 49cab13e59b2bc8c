"""DataFrames in, DataFrames out: what an audit of the same tables as files publishes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chispa.schema_comparer import assert_schema_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.errors import InputError
from jobs.schemas import EVENTS, HEARTBEATS
from jobs.spark import audit, schemas
from tests.support.runs import audit_locally, task
from tests.support.snapshots import at, frame, frame_of, heartbeat_row, poll_row, route_row, table
from tests.support.stacked import STALLED

pytestmark = pytest.mark.spark

#: Of each list one row that cannot be: a null, a negative number, an empty text.
BROKEN = {
    "heartbeats": [heartbeat_row(consumer_group="G2", client_id=None)],
    "topic_routes": [route_row(topic="T2", read_queue_nums=-1), route_row(topic="")],
}
#: A broker that answers about one group alone, and one that never does.
SILENT = [
    poll_row(snapshot_time=at(60 * minute), broker_name=broker, consumer_group=group, outcome=said)
    for minute in range(5)
    for broker, group, said in (
        ("broker-y", "G2", "NOT_ONLINE"),
        ("broker-y", "G3", "NO_ANSWER"),
        ("broker-z", "G3", "NO_ANSWER"),
    )
]
ADDED = {**BROKEN, "broker_polls": SILENT}
FILLED = "expected a text that is not empty"
TABLES = [(of, [*rows, *ADDED.get(of.name, [])]) for of, rows in STALLED]


def rows_of(of: Any, rows: list[Any]) -> pa.Table:
    schema = pa.schema(column.with_nullable(True) for column in of.schema)
    return pa.Table.from_pylist(rows, schema)


@contextmanager
def set_to(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def as_others_have_them(spark: SparkSession) -> dict[str, DataFrame]:
    """The tables with other names, cases and types, in several partitions."""
    found = {of.name: frame_of(spark, rows_of(of, rows)) for of, rows in TABLES}
    found["heartbeats"] = found["heartbeats"].selectExpr(
        *[f"`{n}` AS {n.upper()}" for n in HEARTBEATS.schema.names[3:] if n != "client_id"],
        "cluster AS Cluster",
        "broker_name",
        "client_id AS clientId",
        "concat(CAST(timestamp_micros(unix_micros(snapshot_time)) AS string), '') AS ts",
    )
    return found


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("files")
    for of, rows in TABLES:
        (folder / "snapshots" / of.name).mkdir(parents=True)
        pq.write_table(rows_of(of, rows), folder / "snapshots" / of.name / "part-0.parquet")
    return audit_locally(task(folder / "snapshots", folder / "reports"))


#: Sessions as others have them.
SETTINGS = {
    "spark.sql.session.timeZone": "Asia/Shanghai",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "3",
}


def test_frames_give_what_an_audit_of_the_same_files_publishes(
    spark: SparkSession, published: Any
) -> None:
    tables = as_others_have_them(spark)
    utc = tables["heartbeats"]  # its texts were made in UTC
    utc = utc.localCheckpoint()
    with set_to(spark, SETTINGS):
        local = F.date_format("snapshot_time", "yyyy-MM-dd HH:mm:ss.SSSSSS")
        routes = tables["topic_routes"].withColumn("local", local).drop("snapshot_time")
        columns = {
            "client_id": "CLIENTID",
            "heartbeats": {"snapshot_time": "TS"},
            # What is made of theirs is made by the settings of their session.
            "topic_routes": {"snapshot_time": F.to_timestamp("local")},
        }
        offsets = tables["queue_offsets"]
        result = audit(utc, routes, tables["broker_polls"], queue_offsets=offsets, columns=columns)
        assert list(result) == [*published.published["tables"], "runs"]
        # The run's id is in these.
        for name in result.keys() - {EVENTS.name, "verdict", "quarantine", "runs"}:
            came = getattr(result, name)
            # Spark takes whatever a UDF gives for null.
            is_of_udf = name == "allocations"
            assert_schema_equality(came.schema, getattr(schemas, name.upper()), is_of_udf)
            wanted = published.rows(name)
            assert sorted(map(repr, result[name].to_pylist())) == sorted(map(repr, wanted)), name
        comment = result.orphaned_queues.schema["queue_id"].metadata["comment"]
        assert comment == "the queue's number on its broker"
        refused = sorted((row.file, row.reason) for row in result.quarantine.collect())
        assert refused == [
            ("heartbeats", f"table heartbeats: client_id: {FILLED}, came null"),
            (
                "topic_routes",
                "table topic_routes: read_queue_nums: expected 0 to 2147483647, came -1",
            ),
            ("topic_routes", f"table topic_routes: topic: {FILLED}, came ''"),
        ]
        gaps = result._published.summary["incomplete"]
        assert gaps == published.summary["incomplete"]
        silent = {values.get("group") for _, values, kind in gaps if kind == "BROKER_SILENT"}
        assert silent == {"G3", None}
        plan = plan_of(result.allocations)
        assert re.search(
            r"(?s)inline.*ArrowEvalPython .recompute_allocations.*Exchange.*Scan", plan
        )
        found = result.orphaned_queues.join(result.group_health, ["cluster", "consumer_group"])
        assert found.where("queue_id = 0").count() == 1
    assert "CRITICAL  G / T" in repr(result)
    with pytest.raises(AttributeError, match="did you mean 'orphaned_queues'"):
        result.orphaned_queue  # noqa: B018


def plan_of(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]


def test_views_and_tables_of_arrow_and_pandas_are_tables(
    spark: SparkSession, published: Any
) -> None:
    of = {each.name: table(each, rows) for each, rows in STALLED}
    frame(spark, *STALLED[0]).createOrReplaceTempView("lists")
    polls, offsets = of["broker_polls"].to_pandas(), of["queue_offsets"]
    result = audit("lists", of["topic_routes"], polls, queue_offsets=offsets, spark=spark)
    assert result.orphaned_queues.count() == len(published.rows("orphaned_queues"))
    # The rows of one group and its topics are asked for again: every queue has one owner, of which
    # the run says that it stands still to the end.
    (ongoing,) = {row.ongoing for row in result.stalled_queues.collect()}
    assert ongoing
    said = result.explain("G", "T")
    assert "Still there, CRITICAL from 2026-01-05 00:02:00 on: 2 queues stalled" in said
    assert "By lists and routes alone: 6 queues, 2 processes; every queue has one owner" in said


def test_what_is_no_table_is_said_in_a_sentence(spark: SparkSession) -> None:
    heartbeats = frame(spark, HEARTBEATS, [heartbeat_row()])
    for arguments, sentence in (
        ([heartbeats], "no table topic_routes: expected heartbeats, the lists of the brokers, and"),
        ([{"heartbeats": heartbeats}], r"came a mapping: audit\(\*\*tables\)"),
        ([heartbeats, [1]], "topic_routes: expected a DataFrame, the name of a table .* came list"),
        (["nowhere", heartbeats], "heartbeats: no table or view 'nowhere' in this session"),
    ):
        with pytest.raises(InputError, match=sentence) as error:
            audit(*arguments)
        assert "--" not in str(error.value)
