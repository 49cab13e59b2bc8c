"""The data dictionary: written from the schemas, up to date, with every table and column."""

from __future__ import annotations

import re

import pytest

from jobs.schemas import REPORT_TABLES, RUNS, SNAPSHOT_TABLES, Table, comment_of
from tests.support.data_dictionary import (
    INDEX,
    PAGE,
    cell,
    dictionary,
    index,
    key_columns,
    type_name,
)

TABLES = {table.name: table for table in (*SNAPSHOT_TABLES, *REPORT_TABLES, RUNS)}


def test_the_page_is_what_the_schemas_say() -> None:
    reports = [*(table for table in REPORT_TABLES if table not in SNAPSHOT_TABLES), RUNS]
    assert PAGE.read_text(encoding="utf-8") == dictionary(SNAPSHOT_TABLES, reports), "make docs"


def test_every_table_is_told_of_once() -> None:
    named = re.findall(r"^### (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(TABLES)


def test_the_index_of_the_findings_is_what_the_kinds_say() -> None:
    page = INDEX.read_text(encoding="utf-8")
    assert page == index(page), "make docs"


def test_types_are_called_as_spark_calls_them() -> None:
    from jobs.spark.schemas import spark_schema  # noqa: PLC0415 - pyspark

    for table in TABLES.values():
        for field, in_spark in zip(table.schema, spark_schema(table), strict=True):
            assert type_name(field.type) == in_spark.dataType.simpleString()


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_column_has_its_type_and_a_meaning(table: Table) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition(f"### {table.name}\n")[2].partition("\n##")[0]
    if like := re.search(r"\nColumns: those of (.*)\.\n", section):
        other = TABLES[like[1].replace("\\", "")]
        section = page.partition(f"### {other.name}\n")[2].partition("\n##")[0]
    own, _, also = section.partition("\nAlso: ")
    described = page.partition("\n## Columns of several tables\n")[2].partition("\n##")[0]
    own_names = re.findall(r"^- `(\w+)`", own, re.M)
    named = [*own_names, *re.findall(r"\w+", also)]
    assert len({*named}) == len(named)
    assert {*named} | key_columns(table) == {*table.schema.names}
    for field in table.schema:
        type_ = type_name(field.type) + ("?" if field.nullable else "")
        line = f"\n- `{field.name}` `{type_}`: {cell(comment_of(field))}"
        assert line in (own if field.name in own_names else described), field.name
