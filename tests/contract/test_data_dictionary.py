"""The data dictionary: written from the schemas, up to date, with every table and column."""

from __future__ import annotations

import re
import tomllib

import pytest

from jobs.schemas import REPORT_TABLES, SNAPSHOT_TABLES, Table
from tests.support.data_dictionary import (
    CHINESE,
    CHINESE_PAGE,
    INDEX,
    PAGE,
    dictionary,
    in_chinese,
    index,
    type_name,
)

TABLES = {table.name: table for table in (*SNAPSHOT_TABLES, *REPORT_TABLES)}


def test_the_page_is_what_the_schemas_say() -> None:
    reports = [table for table in REPORT_TABLES if table not in SNAPSHOT_TABLES]
    assert PAGE.read_text(encoding="utf-8") == dictionary(SNAPSHOT_TABLES, reports), "make docs"


def test_the_chinese_page_is_what_the_schemas_say() -> None:
    reports = [table for table in REPORT_TABLES if table not in SNAPSHOT_TABLES]
    page = CHINESE_PAGE.read_text(encoding="utf-8")
    assert page == dictionary(SNAPSHOT_TABLES, reports, in_chinese()), "make docs"


def test_a_text_without_a_translation_is_named() -> None:
    with pytest.raises(KeyError, match=r"data_dictionary.toml has no line for 'a new column'"):
        in_chinese()("a new column")


def test_no_translation_of_the_page_is_left_over_or_english() -> None:
    asked: set[str] = set()
    chinese = in_chinese()

    def remembered(text: str) -> str:
        asked.add(text)
        return chinese(text)

    dictionary(SNAPSHOT_TABLES, REPORT_TABLES, remembered)
    translations = tomllib.loads(CHINESE.read_text(encoding="utf-8"))
    assert set(translations) == asked
    # Some are names alone.
    english = {text for text, translation in translations.items() if text == translation}
    assert english == {"cluster, consumer_group, topic"}


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
    section = page.partition(f"### {table.name}\n")[2].partition("\n### ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE))
    assert list(rows) == table.schema.names
    for name, (type_, meaning) in ((n, row.split(" | ", 1)) for n, row in rows.items()):
        assert type_name(table.schema.field(name).type) in type_
        assert len(meaning) > 5
