"""Writes docs/data_dictionary.md from the schemas: python -m jobs.data_dictionary, or make docs.

Every table with its grain, every column with its type and its meaning, as jobs/schemas.py has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from jobs.schemas import REPORT_TABLES, SNAPSHOT_TABLES, Table

PAGE = Path(__file__).parent.parent / "docs" / "data_dictionary.md"

_INTRODUCTION = """\
# Data dictionary

<!-- Written by `make docs` from jobs/schemas.py; whatever is changed here is lost. -->

All times are UTC instants. A column that may be null says so; in a snapshot table it may also be
missing. Of the report tables columns are added, never changed or removed.
"""


def dictionary(snapshots: Iterable[Table], reports: Iterable[Table]) -> str:
    """The page, as Markdown."""
    parts = [_INTRODUCTION, _section("Snapshot tables", "what the audit reads", snapshots)]
    parts.append(_section("Report tables", "what it publishes", reports))
    return "\n".join(parts)


def _section(title: str, what: str, tables: Iterable[Table]) -> str:
    named = list(tables)
    listed = ", ".join(f"[{table.name}](#{table.name})" for table in named)
    return "\n".join([f"## {title}\n\n{title}, {what}: {listed}.\n", *map(_table, named)])


def _table(table: Table) -> str:
    return "\n".join([f"### {table.name}\n\nGrain: {_cell(table.grain)}.\n", *_columns(table), ""])


def _columns(table: Table) -> Iterator[str]:
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    for field in table.schema:
        type_ = f"`{field.dataType.simpleString()}`" + (", may be null" if field.nullable else "")
        yield f"| `{field.name}` | {type_} | {_cell(field.metadata['comment'])} |"


def _cell(text: str) -> str:
    """The text as Markdown shows it literally in a table."""
    for character in "\\|<>*_":
        text = text.replace(character, "\\" + character)
    return text


def main() -> None:
    """Writes the page."""
    # A table that is read and published is told of once.
    reports = [table for table in REPORT_TABLES if table not in SNAPSHOT_TABLES]
    PAGE.write_text(dictionary(SNAPSHOT_TABLES, reports), encoding="utf-8")


if __name__ == "__main__":
    main()
