"""The data dictionary: written from the schemas, up to date, with every table and column."""

from __future__ import annotations

import re

import pytest

from jobs.data_dictionary import PAGE, dictionary
from jobs.schemas import REPORT_TABLES, SNAPSHOT_TABLES, Table

TABLES = {table.name: table for table in (*SNAPSHOT_TABLES, *REPORT_TABLES)}


def test_the_page_is_what_the_schemas_say() -> None:
    reports = [table for table in REPORT_TABLES if table not in SNAPSHOT_TABLES]
    assert PAGE.read_text(encoding="utf-8") == dictionary(SNAPSHOT_TABLES, reports), "make docs"


def test_every_table_is_told_of_once() -> None:
    named = re.findall(r"^### (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(TABLES)


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_column_has_its_type_and_a_meaning(table: Table) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition(f"### {table.name}\n")[2].partition("\n### ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
    assert list(rows) == table.schema.names
    for name, (type_, meaning) in ((n, row.split(" | ", 1)) for n, row in rows.items()):
        assert table.schema[name].dataType.simpleString() in type_
        assert len(meaning) > 5
