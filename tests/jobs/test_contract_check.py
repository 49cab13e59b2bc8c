"""What the check of a snapshot table lets through, and what it says of the rest."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.console.progress import complain
from jobs.contract import check_tables
from jobs.errors import ContractError
from jobs.schemas import (
    BROKER_POLLS,
    HEARTBEATS,
    REPORT_TABLES,
    SNAPSHOT_TABLES,
    TOPIC_ROUTES,
    Table,
)
from jobs.storage import Location, Snapshots

SUBSCRIPTION = {"topic": pa.string(), "expression_type": pa.string(), "expression": pa.string()}


def changed(of: Table, *missing: str, **types: pa.DataType) -> pa.Schema:
    """The table's columns without some, and with others of another type, or new."""
    columns = {field.name: field.type for field in of.schema if field.name not in missing}
    return pa.schema(columns | types)


@pytest.mark.parametrize("table", (*SNAPSHOT_TABLES, *REPORT_TABLES), ids=lambda each: each.name)
def test_a_table_as_declared_fits(table: Table) -> None:
    check_tables([(table, table.schema)])


def test_every_missing_and_every_mistyped_column_is_named_at_once() -> None:
    texts = {"broker_ids": pa.list_(pa.string()), "read_queue_nums": pa.string()}
    with pytest.raises(ContractError) as raised:
        check_tables([(TOPIC_ROUTES, changed(TOPIC_ROUTES, "topic", "perm", **texts))])

    first, *problems = str(raised.value).splitlines()
    assert first.startswith("table topic_routes (cluster, snapshot_time, namesrv_addr, ")
    assert problems == [
        "  topic: expected string, is missing",
        "  broker_ids: expected array<bigint>, came array<string>",
        "  perm: expected int, is missing",
        "  read_queue_nums: expected int, came string",
    ]


def test_a_column_without_a_value_has_its_type_in_a_lake_where_it_may_be_null(
    tmp_path: Path,
) -> None:
    """pandas writes a column of nothing but None so, and another file has values."""
    folder = tmp_path / "broker_polls"
    folder.mkdir()
    for number, address in enumerate([pa.nulls(1), pa.array(["broker-a:10911"])]):
        nothing = {field.name: pa.nulls(1, field.type) for field in BROKER_POLLS.schema}
        table = pa.table(nothing | {"broker_addr": address, "cluster": pa.nulls(1)})
        pq.write_table(table, folder / f"{number}.parquet")

    rows = Snapshots.open(Location(tmp_path)).unchecked("broker_polls")

    assert rows.to_table()["broker_addr"].to_pylist() == [None, "broker-a:10911"]
    with pytest.raises(ContractError, match="cluster: expected string, came null"):
        check_tables([(BROKER_POLLS, rows.schema)])


def test_of_several_tables_each_line_is_shown_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ContractError) as raised:
        check_tables([(table, changed(table, "cluster")) for table in (TOPIC_ROUTES, HEARTBEATS)])
    complain(str(raised.value))
    lines = [line.split(" (")[0].strip() for line in capsys.readouterr().err.splitlines()]
    missing = "cluster: expected string, is missing"
    routes, heartbeats = "rebalance-audit: table topic_routes", "table heartbeats"
    assert lines == [routes, missing, heartbeats, missing]


def test_a_struct_without_one_of_its_fields_is_a_mistyped_column() -> None:
    topics = pa.list_(pa.struct({"topic": pa.string()}))
    with pytest.raises(ContractError, match="subscriptions: expected array<struct<topic:string"):
        check_tables([(HEARTBEATS, changed(HEARTBEATS, subscriptions=topics))])


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
    check_tables([(HEARTBEATS, changed(HEARTBEATS, "language", "strategy", **types))])


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
        check_tables([(HEARTBEATS, changed(HEARTBEATS, **types))])
