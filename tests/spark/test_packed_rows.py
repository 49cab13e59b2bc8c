"""Rows that travelled -> rows of the table, without Spark."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.schemas import HEARTBEATS, SNAPSHOT_TABLES, TOPIC_ROUTES
from jobs.spark.dataframe_rows import FACTS, columns_read, packed, packed_columns, unpacked

TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]))
SUBSCRIPTION = st.fixed_dictionaries(
    {"topic": TEXTS, "expression": TEXTS, "expression_type": TEXTS}
)
FACTS_OF_A_CLIENT = st.fixed_dictionaries(
    {
        "language": TEXTS,
        "version": st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
        "pull_consumer": st.none() | st.booleans(),
        "subscriptions": st.none() | st.lists(st.none() | SUBSCRIPTION, max_size=3),
    }
)


def travelled(rows: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    """Rows as Spark sends them: null is left out of the text, but not of a list."""

    def text(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: text(each) for name, each in value.items() if each is not None}
        return [text(each) for each in value] if isinstance(value, list) else value

    ids = [str(number) for number in range(len(rows))]
    texts = [json.dumps(text(row), ensure_ascii=False) for row in rows]
    table = pa.table({"client_id": ids, "snapshot_time": [7] * len(rows), FACTS: texts})
    return table.to_batches(2)


@given(st.lists(FACTS_OF_A_CLIENT, min_size=1, max_size=7))
def test_each_row_comes_as_it_was(rows: list[dict[str, Any]]) -> None:
    came = [
        row
        for batch in unpacked(HEARTBEATS, iter(travelled(rows)))
        for row in pa.Table.from_batches([batch]).to_pylist()
    ]
    assert [row["client_id"] for row in came] == [str(number) for number in range(len(rows))]
    assert [{name: row[name] for name in rows[0]} for row in came] == rows
    assert {row["message_model"] for row in came} == {None}


def test_rows_have_the_types_of_the_table() -> None:
    (batch,) = unpacked(HEARTBEATS, iter(travelled([{"language": "JAVA"}])))
    for field in batch.schema:
        declared: pa.DataType = HEARTBEATS.schema.field(field.name).type
        of_text = field.name in packed_columns(HEARTBEATS) and pa.types.is_string(declared)
        assert field.type == (pa.dictionary(pa.int32(), declared) if of_text else declared)


def test_a_text_of_many_megabytes_is_one_row() -> None:
    topics = [{"topic": f"T{number}" * 9, "expression": "*"} for number in range(30_000)]
    (batch,) = unpacked(HEARTBEATS, iter(travelled([{"subscriptions": topics}])))
    assert len(batch.column("subscriptions")[0]) == len(topics)


def test_what_has_no_list_travels_as_it_is_and_without_facts_there_is_nothing_to_read() -> None:
    (offsets,) = [table for table in SNAPSHOT_TABLES if table.name == "queue_offsets"]
    assert packed_columns(offsets) == []
    made = {name: f"`{name}`" for name in offsets.schema.names}
    assert list(packed(offsets, made)) == [f"`{n}` AS `{n}`" for n in columns_read(offsets)]
    rows = pa.table({"queue_id": pa.array([1], pa.int32()), "snapshot_time": [7]})
    (batch,) = unpacked(offsets, iter(rows.to_batches()))
    assert batch.num_rows == 1
    assert not list(unpacked(TOPIC_ROUTES, iter([])))


def test_a_field_that_nobody_declared_is_an_error() -> None:
    with pytest.raises(pa.ArrowInvalid, match="unexpected field"):
        list(unpacked(HEARTBEATS, iter(travelled([{"langauge": "JAVA"}]))))
