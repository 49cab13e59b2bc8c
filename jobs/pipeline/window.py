"""The window of a run: which snapshots it audits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


@dataclass(frozen=True)
class Window:
    """The snapshots to audit: ``since`` (inclusive) to ``until`` (exclusive); None: no bound."""

    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def of_date(cls, day: date) -> Window:
        """The whole day, in UTC."""
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        return cls(start, start + timedelta(days=1))

    @property
    def last_date(self) -> str | None:
        """The last date that it holds a part of, if it ends."""
        if self.until is None:
            return None
        return (self.until - timedelta(microseconds=1)).date().isoformat()

    def earlier(self, seconds: int) -> Window:
        """The window that begins so many seconds before this one, and ends with it."""
        return Window(self.since and self.since - timedelta(seconds=seconds), self.until)

    def holds(self, time: Column) -> Column:
        """Whether the time lies in the window."""
        holds = F.lit(True)
        if self.since is not None:
            holds &= time >= instant(self.since)
        if self.until is not None:
            holds &= time < instant(self.until)
        return holds

    def cut(self, rows: DataFrame) -> DataFrame:
        """The rows whose snapshot lies in the window."""
        if self == Window():
            return rows
        return rows.where(self.holds(F.col("snapshot_time")))

    def cut_client_states(self, rows: DataFrame) -> DataFrame:
        """The running infos of the window, and all log lines up to its end.

        A log line belongs to no snapshot, and one that was written before the window is still in
        force in it. Without its own time it counts as of when it was collected.
        """
        is_line = F.col("snapshot_time").isNull()
        lines = rows.where(is_line)
        if self.until is not None:
            written_at = F.coalesce("logged_at", "observed_at")
            lines = lines.where(written_at < instant(self.until))
        return self.cut(rows.where(~is_line)).unionByName(lines)


def instant(time: datetime) -> Column:
    """The time as a literal, whatever the session's zone."""
    return F.lit(time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")).cast("timestamp")
