"""The window of a run: which snapshots it audits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from jobs.schemas import CLIENT_STATES, Table


@dataclass(frozen=True)
class Window:
    """The snapshots to audit: ``since`` (inclusive) to ``until`` (exclusive); None: no bound.

    >>> window = Window.of_date(date(2026, 11, 20))
    >>> window.last_date, window.sql("snapshot_time")
    ... # doctest: +NORMALIZE_WHITESPACE
    ('2026-11-20', "snapshot_time >= TIMESTAMP '2026-11-20T00:00:00.000000Z' AND
     snapshot_time < TIMESTAMP '2026-11-21T00:00:00.000000Z'")
    """

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

    def sql(self, time: str) -> str:
        """Whether a time, an expression of Spark SQL, lies in the window."""
        conditions = []
        if self.since is not None:
            conditions.append(f"{time} >= {instant_sql(self.since)}")
        if self.until is not None:
            conditions.append(f"{time} < {instant_sql(self.until)}")
        return " AND ".join(conditions) or "true"

    def client_states_sql(self) -> str:
        """Which rows of ``client_states`` count, in Spark SQL: see ``filter_of``."""
        lines = "snapshot_time IS NULL"
        written = Window(None, self.until).sql("coalesce(logged_at, observed_at)")
        return f"CASE WHEN {lines} THEN {written} ELSE {self.sql('snapshot_time')} END"

    def filter(self, time: Any, type_: pa.DataType) -> Any:
        """The same for PyArrow; ``type_`` is the column's: Spark's INT96 has no zone, say."""

        def moment(bound: datetime) -> Any:
            value: Any = pa.scalar(bound.astimezone(UTC), pa.timestamp("us", "UTC"))
            return ds.scalar(value.cast(type_, safe=False))

        holds: Any = ds.scalar(True)
        if self.since is not None:
            holds &= time >= moment(self.since)
        if self.until is not None:
            holds &= time < moment(self.until)
        return holds

    def filter_of(self, table: Table, came: pa.Schema) -> Any:
        """Which rows of a snapshot table count, for PyArrow.

        Of ``client_states`` the running infos of the window, and all log lines up to its end: a log
        line belongs to no snapshot, and one that was written before the window is still in force in
        it. Without a time of its writing it counts as of when it was collected.
        """
        at_snapshot = self.filter(ds.field("snapshot_time"), came.field("snapshot_time").type)
        if table is not CLIENT_STATES:
            return at_snapshot
        written = Window(None, self.until)
        logged, observed = ds.field("logged_at"), ds.field("observed_at")
        lines = (logged.is_valid() & written.filter(logged, came.field("logged_at").type)) | (
            logged.is_null() & written.filter(observed, came.field("observed_at").type)
        )
        is_line = ds.field("snapshot_time").is_null()
        return (is_line & lines) | (~is_line & at_snapshot)


def instant_sql(time: datetime) -> str:
    """The time as a literal of Spark SQL, whatever the session's zone."""
    return f"TIMESTAMP '{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}'"
