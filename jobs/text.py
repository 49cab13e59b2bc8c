"""Values of the tables as text, times among them: for JSON, for CSV, for whoever reads.

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


def in_utc(time: datetime) -> datetime:
    """The time in UTC; one without a zone is in UTC already."""
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def iso(time: datetime, timespec: str = "milliseconds") -> str:
    """The time as ISO 8601 in UTC.

    >>> iso(datetime(2026, 11, 20, 2, 4, 7)), iso(datetime(2026, 11, 20, 2, 4, 7), "seconds")
    ('2026-11-20T02:04:07.000Z', '2026-11-20T02:04:07Z')
    """
    return in_utc(time).isoformat(timespec=timespec).replace("+00:00", "Z")


def day_and_time(time: datetime) -> str:
    """The time in UTC as a person reads it.

    >>> day_and_time(datetime(2026, 11, 20, 2, 4, 7))
    '2026-11-20 02:04:07'
    """
    return f"{in_utc(time):%Y-%m-%d %H:%M:%S}"


def time_of_day(time: datetime) -> str:
    """The time of day in UTC.

    >>> time_of_day(datetime(2026, 11, 20, 2, 4, 7))
    '02:04:07'
    """
    return f"{in_utc(time):%H:%M:%S}"


def span(since: datetime, until: datetime) -> str:
    """From when until when; the date of the end only where it is another.

    >>> begin = datetime(2026, 11, 20, 2, 4, 7)
    >>> span(begin, begin.replace(hour=3)), span(begin, begin)
    ('2026-11-20 02:04:07 to 03:04:07', '2026-11-20 02:04:07')
    >>> span(begin, begin.replace(day=21))
    '2026-11-20 02:04:07 to 2026-11-21 02:04:07'
    """
    if since == until:
        return day_and_time(since)
    same_day = in_utc(since).date() == in_utc(until).date()
    return f"{day_and_time(since)} to {(time_of_day if same_day else day_and_time)(until)}"


def of_the_time(share: float | None) -> str:
    """For how much of a time something was there, where it was not there for all of it.

    None: a run that did not publish it, in which nothing had a gap.

    >>> of_the_time(0.88), of_the_time(0.999), of_the_time(1.0), of_the_time(None)
    ('88 % of the time', '99 % of the time', '', '')
    """
    return "" if share is None or share >= 1 else f"{min(round(100 * share), 99)} % of the time"


def as_plain(value: Any) -> Any:
    """The value as JSON has it: times as ISO 8601 in UTC, bytes in hexadecimal."""
    if isinstance(value, datetime):
        return iso(value)
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
