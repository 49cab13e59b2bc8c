"""Writes the docs about tables and kinds: python -m tests.support.data_dictionary, or make docs.

docs/data_dictionary.md has every table with its grain, every column with its type and its meaning,
as jobs/schemas.py has them. The index of docs/findings has every kind, as jobs/declared/kinds.py
has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

import pyarrow as pa

from jobs.contract import Values, type_name, values_of
from jobs.declared.kinds import FAULTS, KINDS
from jobs.schemas import REPORT_TABLES, RUNS, SNAPSHOT_TABLES, Table, comment_of

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = DOCS / "data_dictionary.md"
INDEX = DOCS / "findings" / "README.md"
#: What comes before the lists of the index is written by hand.
_INDEX_MARK = "<!-- What follows is written by `make docs` from jobs/declared/kinds.py. -->\n"

_INTRODUCTION = """\
# Data dictionary

<!-- Written by `make docs` from jobs/schemas.py; whatever is changed here is lost. -->

All times are UTC instants. A column whose type has a `?` may be null; in a snapshot table it may
also be missing. A row of a snapshot table with other values is not audited: `quarantine` names it,
and the run counts as incomplete. Columns are added to report tables, never changed or removed. A
table has the columns of its grain, its own ones, and those after "Also".
"""


def dictionary(snapshots: Iterable[Table], reports: Iterable[Table]) -> str:
    """The page, as Markdown: what several tables have alike is described once."""
    read, published = list(snapshots), list(reports)
    # The first table that has these very columns.
    first: dict[tuple[str, ...], Table] = {}
    for table in (*read, *published):
        first.setdefault(_columns(table), table)
    counted = Counter(column for columns in first for column in columns)
    shared: dict[str, str] = {}
    for table in first.values():
        for field in table.schema:
            if counted[_described(field)] > 1:
                shared.setdefault(_described(field), _column(field, table))

    def section(table: Table) -> str:
        same_as = first[_columns(table)]
        return _table(table, shared) if same_as is table else _like(table, same_as)

    sections = [
        ("Snapshot tables", read),
        ("Report tables", published),
    ]
    return "\n".join(
        [
            f"{_INTRODUCTION}\n## Columns of several tables\n\n{''.join(shared.values())}",
            *(
                "\n".join([f"## {title}\n", *(section(each) for each in tables)])
                for title, tables in sections
            ),
        ]
    )


def _columns(table: Table) -> tuple[str, ...]:
    return tuple(_described(field) for field in table.schema)


def _table(table: Table, shared: Collection[str]) -> str:
    own = [_column(field, table) for field in table.schema if _described(field) not in shared]
    keys = key_columns(table)
    also = ", ".join(
        f"`{each.name}`"
        for each in table.schema
        if _described(each) in shared and each.name not in keys
    )
    parts = [_head(table), "".join(own)]
    return "\n".join(filter(None, [*parts, also and f"Also: {also}.\n"]))


def _like(table: Table, other: Table) -> str:
    return f"{_head(table)}\nColumns: those of {cell(other.name)}.\n"


def _head(table: Table) -> str:
    return f"### {table.name}\n\nGrain: {cell(table.grain)}.\n"


def key_columns(table: Table) -> set[str]:
    """The columns that the table's grain names."""
    return {*table.grain.partition(":")[0].split(", ")} & {*table.schema.names}


def _described(field: pa.Field) -> str:
    """All that the page says of a column, whatever its values must be."""
    type_ = f"`{type_name(field.type)}{'?' if field.nullable else ''}`"
    return f"`{field.name}` {type_}: {cell(comment_of(field))}"


def _column(field: pa.Field, table: Table) -> str:
    values = _values(values_of(field), comment_of(field)) if table in SNAPSHOT_TABLES else ""
    return f"- {_described(field)}{values and f' ({values})'}\n"


def _values(values: Values, comment: str) -> str:
    """What the values of a column must be, where neither its type nor its comment says it."""
    if values.one_of and all(each in comment for each in values.one_of):
        return ""
    if values.one_of:
        return f"one of {cell(', '.join(values.one_of))}"
    if values.filled:
        return "not empty"
    if values.most is not None:
        return f"{values.least} to {values.most}"
    return "" if values.least is None else f"{values.least} or more"


def index(page: str) -> str:
    """The index of docs/findings with its lists written anew."""
    by_hand, mark, _ = page.partition(_INDEX_MARK)
    findings = [name for name in KINDS if name not in FAULTS]
    faults = [name for name in KINDS if name in FAULTS]
    return by_hand + mark + f"\n{_kinds('Findings', findings)}\n{_kinds('Faults', faults)}"


def _kinds(title: str, names: Iterable[str]) -> str:
    rows = [f"- [{name}]({KINDS[name].page}): {KINDS[name].title}\n" for name in names]
    return f"## {title}\n\n{''.join(rows)}"


def cell(text: str) -> str:
    """The text as Markdown shows it literally in a table."""
    for character in "\\|<>*_":
        text = text.replace(character, "\\" + character)
    return text


def main() -> None:
    """Writes the pages."""
    # A table that is read and published is described once.
    reports = [*(table for table in REPORT_TABLES if table not in SNAPSHOT_TABLES), RUNS]
    PAGE.write_text(dictionary(SNAPSHOT_TABLES, reports), encoding="utf-8")
    INDEX.write_text(index(INDEX.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
