"""Rows of text as fits a terminal: a table with folded cells, else a block for each row.

Cells are ``visible`` before: nothing in them moves the cursor.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from jobs.terminal import Paint
from jobs.text import display_width

_GAP = "  "
#: A folded column is no narrower, so that a name or a few words are on one line of it.
_NARROWEST = 20
#: The columns whose cells name the style that they are painted in.
_PAINTED = ("severity", "worst_severity")
#: Chinese, Japanese and Korean characters and marks; and those of them that begin no line.
_WIDE = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef"
_CLOSING = "\u3001\u3002\u3009\u300b\u300d\u300f\u3011\uff01\uff09\uff0c\uff1a\uff1b\uff1f"
#: What stays on a line: a word, or a wide character with the marks behind it.
_PIECE = re.compile(rf"\s*(?:[{_WIDE}][{_CLOSING}]*|[^\s{_WIDE}]+)")

Row = Sequence[str]


def fitted(names: Row, rows: Sequence[Row], width: int, paint: Paint) -> Iterator[str]:
    """The rows as lines of at most ``width`` columns of a terminal.

    As a table where every column can have its name and some 20 characters, cells folded where
    they are longer; else as one ``column  value`` block for each row.
    """
    natural = _natural_widths(names, rows)
    widths = _fitting_widths(names, natural, width)
    if widths is None:
        return _records(names, rows, width, paint)
    return _table(names, rows, widths, paint)


def wide(names: Row, rows: Sequence[Row], paint: Paint) -> Iterator[str]:
    """The rows as a table with a line for each row, as wide as they need it."""
    return _table(names, rows, _natural_widths(names, rows), paint)


def _natural_widths(names: Row, rows: Sequence[Row]) -> list[int]:
    return [max(map(display_width, column)) for column in zip(names, *rows, strict=True)]


def _fitting_widths(names: Row, natural: Sequence[int], width: int) -> list[int] | None:
    """The widths of the columns, the widest ones narrowed to one width; None: they do not fit.

    >>> _fitting_widths(["topic", "evidence"], [6, 90], 60), _fitting_widths(["a"], [90], 10)
    ([6, 52], None)
    """
    room = width - len(_GAP) * (len(names) - 1)
    least = [
        max(display_width(name), min(_NARROWEST, each))
        for name, each in zip(names, natural, strict=True)
    ]
    if sum(least) > room:
        return None

    def narrowed(widest: int) -> list[int]:
        pairs = zip(least, natural, strict=True)
        return [max(narrow, min(each, widest)) for narrow, each in pairs]

    return narrowed(bisect_right(range(max(natural) + 1), room, key=lambda w: sum(narrowed(w))) - 1)


def _table(names: Row, rows: Sequence[Row], widths: Sequence[int], paint: Paint) -> Iterator[str]:
    yield _line(names, widths, ["head"] * len(names), paint)
    yield _GAP.join("-" * width for width in widths)
    for row in rows:
        cells = [_hanging(cell, width) for cell, width in zip(row, widths, strict=True)]
        styles = [_style(name, cell) for name, cell in zip(names, row, strict=True)]
        for number in range(max(map(len, cells))):
            parts = [cell[number] if number < len(cell) else "" for cell in cells]
            yield _line(parts, widths, styles, paint)
    yield _total(rows)


def _hanging(cell: str, width: int) -> list[str]:
    """The lines of a cell. Those that follow are indented: a name must not pass for a row."""
    if display_width(cell) <= width:
        return [cell]
    head, *others = wrapped(cell, width - len(_GAP))
    return [head, *[_GAP + each for each in others]]


def _line(cells: Row, widths: Iterable[int], styles: Iterable[str], paint: Paint) -> str:
    """One line; what is painted has no blanks in it, so that it ends where its text ends."""
    line = ""
    at = 0
    for cell, width, style in zip(cells, widths, styles, strict=True):
        if cell:
            line += " " * at + paint(cell, style)
            at = 0
        at += width - display_width(cell) + len(_GAP)
    return line


def _records(names: Row, rows: Sequence[Row], width: int, paint: Paint) -> Iterator[str]:
    label = max(map(display_width, names))
    beside = width - label - len(_GAP)
    for number, row in enumerate(rows, 1):
        yield f"-- row {number} of {len(rows)} --"
        for name, cell in zip(names, row, strict=True):
            yield from _field(name, cell, label, beside, width, paint)
    yield _total(rows)


def _field(
    name: str, cell: str, label: int, beside: int, width: int, paint: Paint
) -> Iterator[str]:
    """A column of a row; below its name where there is no room beside it."""
    style = _style(name, cell)
    if beside < _NARROWEST:
        yield paint(name, "head")
        for part in wrapped(cell, max(width - len(_GAP), len(_GAP))):
            yield _GAP + paint(part, style)
        return
    head, *others = wrapped(cell, beside)
    gap = " " * (label - display_width(name)) + _GAP if head else ""
    yield f"{paint(name, 'head')}{gap}{paint(head, style)}"
    for part in others:
        yield " " * label + _GAP + paint(part, style)


def _style(name: str, cell: str) -> str:
    return cell if name in _PAINTED else ""


def _total(rows: Sequence[Row]) -> str:
    return f"({len(rows)} {'row' if len(rows) == 1 else 'rows'})"


def wrapped(text: str, width: int) -> list[str]:
    """The text as lines of at most ``width`` columns, 2 at least; blanks at their ends are lost.

    It is folded at blanks and between wide characters; a longer word is cut.

    >>> wrapped("restart 10.0.0.1@app, or wait", 14)
    ['restart', '10.0.0.1@app,', 'or wait']
    >>> wrapped("没有心跳。重启", 11), wrapped("abcdef", 4), wrapped("", 4)
    (['没有心跳。', '重启'], ['abcd', 'ef'], [''])
    """
    if display_width(text) <= width:
        return [text]
    lines, line = [], ""
    for piece in _PIECE.findall(text):
        if line and display_width(line) + display_width(piece) <= width:
            line += piece
            continue
        *whole, line = [*([line] if line else []), *_chunks(piece.lstrip(), width)]
        lines += whole
    return [*lines, line]


def _chunks(word: str, width: int) -> Iterator[str]:
    """The word cut where it is longer than a line."""
    begin = used = 0
    for number, character in enumerate(word):
        used += (taken := display_width(character))
        if used > width and number > begin:
            yield word[begin:number]
            begin, used = number, taken
    yield word[begin:]
