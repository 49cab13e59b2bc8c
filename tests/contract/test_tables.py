"""The report tables as a public contract: columns are added, never changed or removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.schemas import REPORT_TABLES, RUNS, SNAPSHOT_TABLES, Table, comment_of
from tests.support.data_dictionary import type_name

PUBLISHED = json.loads((Path(__file__).parent / "tables_v1.json").read_text())
TABLES = {table.name: table for table in (*SNAPSHOT_TABLES, *REPORT_TABLES, RUNS)}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_no_published_column_is_gone_or_of_another_type(name: str) -> None:
    columns = {field.name: type_name(field.type) for field in TABLES[name].schema}
    assert PUBLISHED[name].items() <= columns.items()


def test_every_table_and_every_column_is_under_contract() -> None:
    """A column that is not there could be taken away again, and no test would fail."""
    columns = {name: set(table.schema.names) for name, table in TABLES.items()}
    assert {name: set(published) for name, published in PUBLISHED.items()} == columns


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_table_has_a_grain_and_every_column_a_comment(table: Table) -> None:
    assert table.grain
    for field in table.schema:
        assert len(comment_of(field)) > 5, field.name
