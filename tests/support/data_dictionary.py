"""Writes the docs about tables and kinds: python -m tests.support.data_dictionary, or make docs.

docs/data_dictionary.md has every table with its grain, every column with its type and its meaning,
as jobs/schemas.py has them; docs/zh has the same in Chinese, by the translations beside it. The
index of docs/findings has every kind, as jobs/kinds.py has it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from jobs.contract import Values, type_name, values_of
from jobs.kinds import FAULTS, KINDS
from jobs.schemas import REPORT_TABLES, SNAPSHOT_TABLES, Table, comment_of

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = DOCS / "data_dictionary.md"
CHINESE_PAGE = DOCS / "zh" / "data_dictionary.md"
#: By English text the Chinese one.
CHINESE = DOCS / "zh" / "data_dictionary.toml"
INDEX = DOCS / "findings" / "README.md"
#: What comes before the tables of the index is written by hand.
_INDEX_MARK = "<!-- What follows is written by `make docs` from jobs/kinds.py. -->\n"

_INTRODUCTION = """\
# {title}

<!-- Written by `make docs` from jobs/schemas.py; whatever is changed here is lost. -->

{text}
"""
_TEXT = (
    "All times are UTC instants. A column that may be null says so; in a snapshot table it may "
    "also be\nmissing. A row of a snapshot table whose values are others is not audited: the table "
    "`quarantine`\nnames it, and the run counts as incomplete. Of the report tables columns are "
    "added, never changed or removed."
)

#: Gives a text of the page in its language.
Translate = Callable[[str], str]


def dictionary(
    snapshots: Iterable[Table], reports: Iterable[Table], translate: Translate = str
) -> str:
    """The page, as Markdown."""
    introduction = _INTRODUCTION.format(title=translate("Data dictionary"), text=translate(_TEXT))
    sections = [
        ("Snapshot tables", "Snapshot tables, what the audit reads: {tables}.", snapshots),
        ("Report tables", "Report tables, what it publishes: {tables}.", reports),
    ]
    return "\n".join([introduction, *(_section(*each, translate) for each in sections)])


def _section(title: str, text: str, tables: Iterable[Table], translate: Translate) -> str:
    named = list(tables)
    listed = translate(", ").join(f"[{table.name}](#{table.name})" for table in named)
    head = f"## {translate(title)}\n\n{translate(text).format(tables=listed)}\n"
    return "\n".join([head, *(_table(table, translate) for table in named)])


def _table(table: Table, translate: Translate) -> str:
    grain = translate("Grain: {grain}.").format(grain=cell(translate(table.grain)))
    return "\n".join([f"### {table.name}\n\n{grain}\n", *_columns(table, translate), ""])


def _columns(table: Table, translate: Translate) -> Iterator[str]:
    yield translate("| column | type | meaning |")
    yield "|---|---|---|"
    for field in table.schema:
        type_ = f"`{type_name(field.type)}`" + (
            translate(", may be null") if field.nullable else ""
        )
        if table in SNAPSHOT_TABLES:
            type_ += _values(values_of(field), translate)
        yield f"| `{field.name}` | {type_} | {cell(translate(comment_of(field)))} |"


def _values(values: Values, translate: Translate) -> str:
    """What the values of a column must be, where the type does not say it."""
    if values.one_of:
        return translate(", one of {names}").format(names=cell(", ".join(values.one_of)))
    if values.filled:
        return translate(", not empty")
    if values.most is not None:
        return translate(", {least} to {most}").format(least=values.least, most=values.most)
    if values.least is not None:
        return translate(", {least} or more").format(least=values.least)
    return ""


def in_chinese(file: Path = CHINESE) -> Translate:
    """Gives a text of the page in Chinese.

    Raises:
        KeyError: the file of translations does not have the text.
    """
    translations: dict[str, str] = tomllib.loads(file.read_text(encoding="utf-8"))

    def translate(text: str) -> str:
        if text in translations:
            return translations[text]
        raise KeyError(f"docs/zh/{file.name} has no line for {text!r}: add it in Chinese")

    return translate


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


def cell(text: str) -> str:
    """The text as Markdown shows it literally in a table."""
    for character in "\\|<>*_":
        text = text.replace(character, "\\" + character)
    return text


def main() -> None:
    """Writes the pages."""
    # A table that is read and published is described once.
    reports = [table for table in REPORT_TABLES if table not in SNAPSHOT_TABLES]
    write = partial(dictionary, SNAPSHOT_TABLES, reports)
    PAGE.write_text(write(), encoding="utf-8")
    CHINESE_PAGE.write_text(write(in_chinese()), encoding="utf-8")
    INDEX.write_text(index(INDEX.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
