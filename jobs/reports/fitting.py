"""Rows of text as fits a terminal: a table with folded cells, else a block for each row.

Cells are ``visible`` before: nothing in them moves the cursor.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rebalance_core.english import count

from ..declared.kinds import SEVERITY_COLUMNS
from ..texts.shown import padded

_GAP = "  "
#: A folded column is no narrower, so that a name or a few words are on one line of it.
_NARROWEST = 24
#: A line below the names of the columns, and nothing else; in every encoding.
_RULE = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
_STYLES = {"CRITICAL": "bold red", "WARNING": "yellow", "INFO": "cyan"}

Cells = Sequence[str]


class _Hanging:
    """A cell. Lines after its first are indented: a name must not pass for a row."""

    def __init__(self, text: str, style: str) -> None:
        self.text = Text(text, style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        lines = [self.text]
        if cell_len(self.text.plain) > options.max_width:
            lines = list(self.text.wrap(console, options.max_width - len(_GAP)))
        yield Text(f"\n{_GAP}").join(lines)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self.text)


def fitted(names: Cells, rows: Sequence[Cells], console: Console) -> ConsoleRenderable:
    """The rows as wide as the terminal.

    As a table where every column can have its name and some 24 characters, cells folded where they
    are longer; else as one ``column  value`` block for each row.
    """
    natural = [max(map(cell_len, column)) for column in zip(names, *rows, strict=True)]
    least = [min(_NARROWEST, each) for each in natural]
    fits = sum(least) + len(_GAP) * (len(names) - 1) <= console.width
    parts = [_table(names, rows, least)] if fits else _blocks(names, rows)
    return Group(*parts, Text(f"({count(len(rows), 'row')})"))


def _table(names: Cells, rows: Sequence[Cells], least: Sequence[int]) -> Table:
    table = Table(
        box=_RULE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="none"
    )
    for name, width in zip(names, least, strict=True):
        table.add_column(Text(name, "bold"), min_width=width)
    for row in rows:
        table.add_row(*map(_cell, names, row))
    return table


def _blocks(names: Cells, rows: Sequence[Cells]) -> Iterator[Text | Table]:
    for number, row in enumerate(rows, 1):
        yield Text(f"-- row {number} of {len(rows)} --")
        block = Table.grid(padding=(0, len(_GAP), 0, 0))
        block.add_column(overflow="fold")
        block.add_column()
        for name, cell in zip(names, row, strict=True):
            block.add_row(Text(name, "bold"), _cell(name, cell))
        yield block


def _cell(name: str, cell: str) -> _Hanging:
    return _Hanging(cell, _STYLES.get(cell, "") if name in SEVERITY_COLUMNS else "")


def wide(names: Cells, rows: Sequence[Cells]) -> Iterable[str]:
    """The rows as a table with a line for each row, as wide as they need it."""
    widths = [max(map(cell_len, column)) for column in zip(names, *rows, strict=True)]
    for row in (names, ["-" * width for width in widths], *rows):
        yield _GAP.join(map(padded, row, widths)).rstrip()
    yield f"({count(len(rows), 'row')})"
