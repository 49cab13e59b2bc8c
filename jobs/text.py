"""Values of the tables as text: for JSON, for CSV, for whoever reads.

Client ids, topics and groups are chosen by strangers. What they contain must command neither a
terminal, nor a spreadsheet, nor the direction in which a line is read.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def visible(text: str) -> str:
    r"""The text with control, direction and other unprintable characters as escapes.

    >>> visible("order\n\u202eevil")
    'order\\n\\u202eevil'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def as_plain(value: Any) -> Any:
    """The value as JSON has it: times as ISO 8601 in UTC, bytes in hexadecimal."""
    if isinstance(value, datetime):
        instant = value if value.tzinfo else value.replace(tzinfo=UTC)
        text = instant.astimezone(UTC).isoformat(timespec="milliseconds")
        return text.replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: as_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(each) for each in value]
    return value


def csv_line(values: Sequence[Any]) -> str:
    """One line of CSV; lists and structs as JSON.

    A text that a spreadsheet would take for a formula gets an apostrophe before it.

    >>> csv_line(["=1+1", 2, ["a"]])
    '\\'=1+1,2,"[""a""]"'
    """
    buffer = io.StringIO()
    # A cell is quoted for the line ends that the writer itself writes: it must write one.
    csv.writer(buffer, lineterminator="\r\n").writerow([_csv_cell(as_plain(v)) for v in values])
    return buffer.getvalue().removesuffix("\r\n")


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return value
