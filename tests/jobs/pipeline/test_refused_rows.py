"""Rows that break the contract of their table, in a whole audit: named, on each engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from jobs.api import audit
from jobs.errors import ContractError
from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from jobs.verdict.gaps import ROWS_LOST, gaps_of
from tests.support.snapshots import at, heartbeat_row, route_row, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IDS = ("a", "a", "b")
#: What is replaced in one row, by table; and what the quarantine says of it.
BROKEN = [
    ("heartbeats", "client_id", None, "client_id: expected a text that is not empty, came null"),
    ("heartbeats", "subscriptions", None, "subscriptions: expected a value, came null"),
    ("heartbeats", "broker_id", -1, "broker_id: expected 0 or more, came -1"),
    ("heartbeats", "snapshot_time", None, "snapshot_time: expected a value, came null"),
    ("topic_routes", "read_queue_nums", -1, "read_queue_nums: expected 0 to 2147483647, came -1"),
]


def tables(broken: str = "", column: str = "", value: Any = None) -> dict[str, pa.Table]:
    """Two processes share an id, in five rounds of two brokers; in one row a value is another."""
    ids = list(enumerate(IDS))
    lists = [(n, broker) for n in range(5) for broker in ("broker-a", "broker-b")]
    rows = {
        "heartbeats": [
            heartbeat_row(
                client_id=client_id,
                client_addr=f"h:{place}",
                snapshot_time=at(60 * number),
                broker_name=broker,
            )
            for number, broker in lists
            for place, client_id in ids
        ],
        "topic_routes": [route_row(snapshot_time=at(60 * number)) for number in range(5)],
    }
    if broken:
        rows[broken][len(rows[broken]) // 2][column] = value
    declared = {"heartbeats": HEARTBEATS, "topic_routes": TOPIC_ROUTES}
    return {name: table(declared[name], of_table) for name, of_table in rows.items()}


def findings(report: Mapping[str, pa.Table]) -> list[Any]:
    names = ("orphaned_queues", "duplicate_queues")
    found = {name: report[name].select(["queue_id", "first_seen"]).to_pylist() for name in names}
    return sorted(str((name, row)) for name, rows in found.items() for row in rows)


def check(report: Any, whole: Any, name: str, column: str, reason: str) -> None:
    (row,) = report["quarantine"].to_pylist()
    assert (row["file"], row["reason"]) == (name, f"table {name}: {reason}")
    assert json.loads(row["line"])["cluster"] == "DefaultCluster"
    (gap,) = [each for each in gaps_of(report.summary) if each.kind == ROWS_LOST]
    assert f"table {name}: 1 of " in gap.text
    assert reason in gap.text
    if column != "snapshot_time":  # nobody knows of which list the row was
        assert findings(report) == findings(whole) != []


@pytest.mark.parametrize(("name", "column", "value", "reason"), BROKEN)
def test_a_row_that_breaks_the_contract_is_named_and_bends_nothing(
    name: str, column: str, value: Any, reason: str
) -> None:
    check(audit(tables(name, column, value)), audit(tables()), name, column, reason)


def of_two_clusters(broken: str, column: str, places: slice) -> dict[str, pa.Table]:
    """The rows of both have the same faults; of another one a column is null in these places."""
    found = {}
    for name, rows in tables().items():
        others = [row | {"cluster": "Other"} for row in rows.to_pylist()]
        for row in others[places] if name == broken else ():
            row[column] = None
        found[name] = pa.Table.from_pylist([*rows.to_pylist(), *others], _nullable(rows).schema)
    return found


@pytest.mark.parametrize(
    ("name", "column"),
    [("heartbeats", "client_id"), ("heartbeats", "broker_name"), ("topic_routes", "topic")],
)
def test_where_most_rows_of_a_cluster_break_the_contract_it_alone_is_not_audited(
    name: str, column: str
) -> None:
    report, whole = audit(of_two_clusters(name, column, slice(1, None))), audit(tables())
    assert findings(report) == findings(whole) != []
    assert report["group_health"].to_pylist() == whole["group_health"].to_pylist()
    (gap,) = [each for each in gaps_of(report.summary) if each.kind == ROWS_LOST]
    assert gap.text.startswith("cluster Other was not audited: ")
    assert f" rows in table {name} break the contract, for example {column}: " in gap.text


def test_where_few_rows_of_a_cluster_break_the_contract_it_is_audited() -> None:
    report = audit(of_two_clusters("heartbeats", "client_id", slice(1)))
    assert {row["cluster"] for row in report["group_health"].to_pylist()} > {"Other"}
    (gap,) = [each for each in gaps_of(report.summary) if each.kind == ROWS_LOST]
    assert gap.text.startswith("table heartbeats: 1 of 60 rows ")


def test_where_no_cluster_is_left_nothing_is_published() -> None:
    every = of_two_clusters("heartbeats", "client_id", slice(None))
    rows = every["topic_routes"].to_pylist()
    for row in rows[:5]:
        row["namesrv_addr"] = None
    every["topic_routes"] = pa.Table.from_pylist(rows, every["topic_routes"].schema)
    with pytest.raises(ContractError, match=r"(?s)table heartbeats: 30 of .*table topic_routes: 5"):
        audit(every)


def test_an_audit_of_whole_tables_has_an_empty_quarantine_and_lacks_nothing() -> None:
    report = audit(tables())
    assert report["quarantine"].num_rows == 0
    assert [gap for gap in gaps_of(report.summary) if gap.kind == ROWS_LOST] == []


def test_the_problems_of_all_tables_come_at_once() -> None:
    every = {name: rows.drop_columns("cluster") for name, rows in tables().items()}
    with pytest.raises(ContractError, match=r"(?s)table heartbeats .*table topic_routes "):
        audit(every)


@pytest.mark.spark
def test_a_dataframe_is_held_to_the_same_contract(spark: SparkSession) -> None:
    name, column, value, reason = BROKEN[0]
    every = tables(name, column, value)
    frames = {each: spark.createDataFrame(_nullable(rows)) for each, rows in every.items()}
    check(audit(frames), audit(tables()), name, column, reason)


def _nullable(rows: pa.Table) -> pa.Table:
    return pa.table(rows.to_pydict(), pa.schema([(each.name, each.type) for each in rows.schema]))
