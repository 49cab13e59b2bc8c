"""The window of a run: which snapshots it audits; the times that ask for it, and the clock."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SettingsError
from ..schemas import CLIENT_STATES, Table
from ..texts.shown import in_utc, iso

#: The first and the last moment that there is.
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Window:
    """The snapshots to audit: ``since`` (inclusive) to ``until`` (exclusive); None: no bound.

    ``future``: from then on a snapshot lies in the future, and is left out; None: none does.

    >>> window = Window.of_date(date(2026, 11, 20))
    >>> window.last_date, str(window.ends)
    ('2026-11-20', '2026-11-21 00:00:00+00:00')
    """

    since: datetime | None = None
    until: datetime | None = None
    future: datetime | None = None

    @classmethod
    def of_date(cls, day: date) -> "Window":
        """The whole day, in UTC; of the last day that there is, all but its last microsecond."""
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return cls(start, _LAST if day == date.max else start + timedelta(days=1))

    @property
    def ends(self) -> datetime | None:
        """The time from which on no snapshot is read, if there is one."""
        return min(filter(None, (self.until, self.future)), default=None)

    @property
    def newest_date(self) -> str | None:
        """The last date that a run of the window can be published under, if there is one."""
        if self.ends is None:
            return None
        # Of the first moment that there is, its own date.
        before = self.ends - timedelta(microseconds=self.ends > _FIRST)
        return before.date().isoformat()

    @property
    def last_date(self) -> str | None:
        """The last date that it holds a part of, if it ends, and not in the future."""
        return self.newest_date if self.ends == self.until else None

    @property
    def words(self) -> str:
        """The beginning and the end in words.

        >>> Window.of_date(date(2026, 11, 20)).words
        '2026-11-20T00:00:00Z to 2026-11-21T00:00:00Z, exclusive'
        """
        if self.since is None and self.until is None:
            return "all snapshots"
        since = "the first snapshot" if self.since is None else iso(self.since, "seconds")
        until = "the last one" if self.until is None else f"{iso(self.until, 'seconds')}, exclusive"
        return f"{since} to {until}"

    def earlier(self, seconds: int) -> "Window":
        """The window that begins so many seconds before this one, and ends with it."""
        since = self.since
        if since is not None:
            # Nothing is older than the first moment that there is.
            is_first = since - _FIRST < timedelta(seconds=seconds)
            since = None if is_first else since - timedelta(seconds=seconds)
        return replace(self, since=since)

    def filter(self, time: Any, type_: pa.DataType) -> Any:
        """The condition that a time lies in the window, for PyArrow.

        ``type_`` is the column's: Spark's INT96 has no zone, say.
        """

        def moment(bound: datetime) -> Any:
            value: Any = pa.scalar(bound.astimezone(UTC), pa.timestamp("us", "UTC"))
            return pc.scalar(value.cast(type_, safe=False))

        holds: Any = pc.scalar(True)
        if self.since is not None:
            holds &= time >= moment(self.since)
        if self.ends is not None:
            holds &= time < moment(self.ends)
        return holds

    def filter_of(self, table: Table, came: pa.Schema) -> Any:
        """The condition that a snapshot table's row counts, for PyArrow.

        ``client_states``: the running infos of the window, and all log lines up to its end. A log
        line belongs to no snapshot, and one that was written before the window is still in force in
        it. Without a time of its writing it counts as of when it was collected.
        """
        at_snapshot = self.filter(pc.field("snapshot_time"), came.field("snapshot_time").type)
        if table is not CLIENT_STATES:
            return at_snapshot
        written = replace(self, since=None)
        logged, observed = pc.field("logged_at"), pc.field("observed_at")
        lines = (logged.is_valid() & written.filter(logged, came.field("logged_at").type)) | (
            logged.is_null() & written.filter(observed, came.field("observed_at").type)
        )
        is_line = pc.field("snapshot_time").is_null()
        return (is_line & lines) | (~is_line & at_snapshot)


def asked_window(
    day: date | None,
    since: datetime | None,
    until: datetime | None,
    future: datetime,
    option: str = "",
) -> Window:
    """The window that is asked for: a day, or from and up to a time.

    Raises SettingsError where both are named, or the end is not after the beginning; ``option``
    comes before each name.
    """
    if day and (since or until):
        raise SettingsError(f"expected {option}date or {option}since/{option}until, came both")
    if day:
        return Window.of_date(day)
    if since and until and since >= until:
        raise SettingsError(
            f"expected {option}since before {option}until, came {iso(since)} and {iso(until)}"
        )
    return Window(since, until, future)


def future_after(now: datetime, days: int) -> datetime:
    """The time from which on a time lies in the future: so many days after now, for clocks differ.

    >>> future_after(datetime(2026, 11, 20, tzinfo=UTC), 1).isoformat()
    '2026-11-21T00:00:00+00:00'
    """
    return _LAST if _LAST - now < timedelta(days=days) else now + timedelta(days=days)


def time_of(
    option: str, text: str | None, otherwise: str = "", zone: tzinfo = UTC
) -> datetime | None:
    """The time that an option names, in UTC; ``zone`` is meant where none is named."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
        return in_utc(time if time.tzinfo else time.replace(tzinfo=zone))
    except ValueError as error:
        raise SettingsError(
            f"{option}: expected a time as ISO 8601{otherwise}, came {text!r}: write it "
            "as 2026-11-20T10:00:00Z"
        ) from error
    except OverflowError as error:
        raise SettingsError(
            f"{option}: expected a time of the years 1 to 9999 in UTC, came {text!r}"
        ) from error


def now() -> datetime:
    """The time, in UTC: nothing else reads the clock."""
    return datetime.now(UTC)
