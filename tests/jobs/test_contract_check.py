"""What the check of a snapshot table lets through, and what it says of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from jobs.contract import check_columns
from jobs.errors import ContractError
from jobs.schemas import HEARTBEATS, REPORT_TABLES, SNAPSHOT_TABLES, TOPIC_ROUTES, Table
from tests.support.snapshots import frame, heartbeat_row, route_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBSCRIPTION = {"topic": pa.string(), "expression_type": pa.string(), "expression": pa.string()}


def changed(of: Table, *missing: str, **types: pa.DataType) -> pa.Schema:
    """The table's columns without some, and with others of another type, or new."""
    columns = {field.name: field.type for field in of.schema if field.name not in missing}
    return pa.schema(columns | types)


@pytest.mark.parametrize("table", (*SNAPSHOT_TABLES, *REPORT_TABLES), ids=lambda each: each.name)
def test_a_table_as_declared_fits(table: Table) -> None:
    check_columns(table, table.schema)


def test_every_missing_and_every_mistyped_column_is_named_at_once() -> None:
    texts = {"broker_ids": pa.list_(pa.string()), "read_queue_nums": pa.string()}
    with pytest.raises(ContractError) as raised:
        check_columns(TOPIC_ROUTES, changed(TOPIC_ROUTES, "topic", "perm", **texts))

    first, *problems = str(raised.value).splitlines()
    assert first.startswith("table topic_routes (cluster, snapshot_time, namesrv_addr, ")
    assert problems == [
        "  topic: expected string, is missing",
        "  broker_ids: expected array<bigint>, came array<string>",
        "  perm: expected int, is missing",
        "  read_queue_nums: expected int, came string",
    ]


def test_a_struct_without_one_of_its_fields_is_a_mistyped_column() -> None:
    topics = pa.list_(pa.struct({"topic": pa.string()}))
    with pytest.raises(ContractError, match="subscriptions: expected array<struct<topic:string"):
        check_columns(HEARTBEATS, changed(HEARTBEATS, subscriptions=topics))


@pytest.mark.parametrize(
    "types",
    [
        # Other widths, and the units of other writers.
        {"version": pa.int64(), "broker_id": pa.int16()},
        {"snapshot_time": pa.timestamp("ns")},
        {"client_id": pa.large_string()},
        {"client_id": pa.dictionary(pa.int32(), pa.string())},
        {"subscriptions": pa.large_list(pa.struct(SUBSCRIPTION))},
        # The fields of structs are matched by name.
        {"subscriptions": pa.list_(pa.struct(dict(reversed(SUBSCRIPTION.items()))))},
        {"subscriptions": pa.list_(pa.struct({"more": pa.int8(), **SUBSCRIPTION}))},
        {"more": pa.int8()},
    ],
    ids=str,
)
def test_what_can_be_read_as_declared_fits(types: dict[str, pa.DataType]) -> None:
    check_columns(HEARTBEATS, changed(HEARTBEATS, "language", "strategy", **types))


@pytest.mark.parametrize(
    "types",
    [
        {"version": pa.float64()},
        {"snapshot_time": pa.date32()},
        {"client_id": pa.binary()},
        {"pull_consumer": pa.string()},
    ],
    ids=str,
)
def test_what_cannot_is_refused(types: dict[str, pa.DataType]) -> None:
    (name,) = types
    with pytest.raises(ContractError, match=f"  {name}: expected "):
        check_columns(HEARTBEATS, changed(HEARTBEATS, **types))


@pytest.mark.spark
def test_a_frame_comes_through_with_the_columns_as_declared(spark: SparkSession) -> None:
    from jobs.spark.frames import check_contract  # noqa: PLC0415 - pyspark
    from jobs.spark.schemas import spark_schema  # noqa: PLC0415

    heartbeats = frame(spark, HEARTBEATS, [heartbeat_row(language=None, version=None)])
    expected = heartbeats.collect()
    assert check_contract(HEARTBEATS, heartbeats).collect() == expected
    other = heartbeats.drop("language", "version").selectExpr(
        "1 AS more",
        *[f"`{name}`" for name in reversed(HEARTBEATS.schema.names) if name not in OTHERS],
        "CAST(broker_id AS smallint) AS broker_id",
        "transform(subscriptions, s -> named_struct('expression', s.expression, 'more', 1, "
        "'topic', s.topic, 'expression_type', s.expression_type)) AS subscriptions",
    )
    came = check_contract(HEARTBEATS, other)
    assert came.collect() == expected
    assert [field.dataType for field in came.schema] == [
        field.dataType for field in spark_schema(HEARTBEATS)
    ]
    routes = frame(spark, TOPIC_ROUTES, [route_row()])
    with pytest.raises(ContractError, match="perm: expected int, is missing"):
        check_contract(TOPIC_ROUTES, routes.drop("perm"))


OTHERS = {"language", "version", "broker_id", "subscriptions"}
