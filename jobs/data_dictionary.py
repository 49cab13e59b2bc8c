"""Writes what docs say of tables and kinds: python -m jobs.data_dictionary, or make docs.

docs/data_dictionary.md has every table with its grain, every column with its type and its meaning,
as jobs/schemas.py has them; the index of docs/findings has every kind, as jobs/kinds.py has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from jobs.contract import type_name
from jobs.kinds import FAULTS, KINDS
from jobs.schemas import REPORT_TABLES, SNAPSHOT_TABLES, Table, comment_of

_DOCS = Path(__file__).parent.parent / "docs"
PAGE = _DOCS / "data_dictionary.md"
INDEX = _DOCS / "findings" / "README.md"
#: What stands before the tables of the index is written by hand.
_INDEX_MARK = "<!-- What follows is written by `make docs` from jobs/kinds.py. -->\n"

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
        type_ = f"`{type_name(field.type)}`" + (", may be null" if field.nullable else "")
        yield f"| `{field.name}` | {type_} | {_cell(comment_of(field))} |"


#: The types as Spark's SQL calls them.
def index(page: str) -> str:
    """The index of docs/findings with its tables written anew."""
    by_hand, mark, _ = page.partition(_INDEX_MARK)
    findings = [name for name in KINDS if name not in FAULTS]
    faults = [name for name in KINDS if name in FAULTS]
    return by_hand + mark + f"\n{_kinds('Findings', findings)}\n{_kinds('Faults', faults)}"


def _kinds(title: str, names: Iterable[str]) -> str:
    rows = [
        f"| [{name}]({KINDS[name].page}) | {KINDS[name].title} | {KINDS[name].meaning} |\n"
        for name in names
    ]
    return f"## {title}\n\n| kind | what it is | what it means |\n|---|---|---|\n{''.join(rows)}"


def _cell(text: str) -> str:
    """The text as Markdown shows it literally in a table."""
    for character in "\\|<>*_":
        text = text.replace(character, "\\" + character)
    return text


def main() -> None:
    """Writes both pages."""
    # A table that is read and published is told of once.
    reports = [table for table in REPORT_TABLES if table not in SNAPSHOT_TABLES]
    PAGE.write_text(dictionary(SNAPSHOT_TABLES, reports), encoding="utf-8")
    INDEX.write_text(index(INDEX.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
