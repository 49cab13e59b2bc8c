"""What a run takes over from the one before, and why it takes over no more.

Whatever a published run has of the window is taken over only where it is sure to be what reading
the rounds again would give. Everything else is read, and one line gives the reason.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from jobs.contract import has_columns
from jobs.errors import DamagedError, InputError
from jobs.fold.runs import STATES_VERSION, uses_ids
from jobs.schemas import (
    BROKER_POLLS,
    HEARTBEATS,
    MEMBER_LISTS,
    ROUTE_CONTENTS,
    ROUTE_POLLS,
    TOPIC_ROUTES,
    Table,
)
from jobs.settings import Settings
from jobs.storage import Published, Reports, Snapshots
from jobs.window import Window

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recorded:
    """What a published run recorded of its state tables, in its summary under ``states``.

    ``since`` and ``until`` (exclusive): when its window began (null: no bound), and its last
    snapshot. This is left to the next run: while a round is being collected, rows of it still come.
    ``input_rows``: the rows of each input from there to there. ``ingested``: the manifest of the
    ingest job that wrote them; null where they came from elsewhere. ``rows``: those of its tables.
    """

    version: int
    settings: str
    snapshots: str
    ingested: dict[str, int] | None
    since: str | None
    until: str
    input_rows: dict[str, int]
    rows: dict[str, int]

    @classmethod
    def of(cls, published: Published) -> Recorded | None:
        """What the run recorded; None for one that published no state tables, or other ones."""
        values = published.summary.get("states")
        if values is None or values["version"] != STATES_VERSION:
            return None
        return cls(**values)

    @property
    def window(self) -> Window:
        """The rounds that the tables may answer for."""
        since = None if self.since is None else datetime.fromisoformat(self.since)
        return Window(since, datetime.fromisoformat(self.until))


class Inputs:
    """The files of the tables that state tables answer for, as they are listed before Spark does.

    Rows that come while a run reads are thus not among those that it records as read: the next
    run finds more of them, and reads them.
    """

    def __init__(self, snapshots: Snapshots, settings: Settings) -> None:
        self.snapshots = snapshots
        self.settings = settings
        #: Files, bytes, lines and quarantined lines; None where the tables came from elsewhere.
        self.ingested = None if snapshots.ingested is None else dict(snapshots.ingested)
        self._tables: dict[str, ds.Dataset | None] = {}
        for table in (HEARTBEATS, BROKER_POLLS, TOPIC_ROUTES):
            there = snapshots.has(table.name)
            self._tables[table.name] = snapshots.parquet(table.name) if there else None

    def sentence(self) -> str:
        """The line for a person: which tables are read, and whether they could be checked."""
        place = self.snapshots
        if place.run_id is None:
            return f"reads the tables at {place.root}; they have no manifest, and are not checked"
        return f"reads the tables at {place.root} that run {place.run_id} ingested"

    def warn_of_future(self, window: Window) -> None:
        """A warning where snapshots are left out because they lie in the future of the window."""
        if window.future is None or window.end != window.future:
            return
        ahead = self.count(Window(since=window.future))
        if any(ahead.values()) and not any(self.count(Window(until=window.future)).values()):
            raise InputError(
                f"every snapshot at {self.snapshots.root} is later than {_iso(window.future)}, "
                f"which is {self.settings.bounds.future_days} days (bounds.future_days) after this "
                "machine's clock: nothing was published; set the clock right that is wrong, this "
                "machine's or the collector's, or ask for a date with --date"
            )
        if any(ahead.values()):
            rows = ", ".join(f"{count:,} of {name}" for name, count in ahead.items() if count)
            _LOGGER.warning(
                "snapshots after %s lie in the future and are not audited (rows: %s): mend the "
                "clock that stamped them, or ask for their date with --date (bounds.future_days "
                "is %d)",
                _iso(window.future),
                rows,
                self.settings.bounds.future_days,
            )

    def has_list_ids(self) -> bool:
        """Whether the ids of lists that ``ingest`` wrote are those that this audit would compute.

        An earlier ingest wrote other facts of a member, or none of the tables: then rows count.
        """
        polls = self._tables[BROKER_POLLS.name]
        if not uses_ids(polls, self.ingested, self.settings.heartbeat_expiry_seconds):
            return False
        return self._has_all(BROKER_POLLS, MEMBER_LISTS)

    def has_route_ids(self) -> bool:
        """Whether there are ids of routes: they do not depend on a setting.

        The polls that have them say when each nameserver was asked, which the rows do not.
        """
        return self._has_all(ROUTE_POLLS, ROUTE_CONTENTS)

    def _has_all(self, *tables: Table) -> bool:
        """Whether the tables are there, with all their columns."""
        there = self.snapshots
        return all(
            there.has(table.name) and has_columns(table, there.parquet(table.name).schema)
            for table in tables
        )

    def count(self, window: Window) -> dict[str, int]:
        """The rows of each table in the window.

        The files' footers show most of it; of the other files the one column is read.
        """
        # A route that was polled shortly before the window still holds when it begins.
        of_routes = window.earlier(self.settings.route_max_age_seconds)
        return {
            name: _count(table, of_routes if name == TOPIC_ROUTES.name else window)
            for name, table in self._tables.items()
        }

    def record(self, window: Window, last: datetime) -> dict[str, Any]:
        """What this run records of its state tables, without ``rows``: they are not written yet."""
        recorded = Recorded(
            version=STATES_VERSION,
            settings=self.settings.fingerprint(),
            snapshots=str(self.snapshots.root),
            ingested=self.ingested,
            since=None if window.since is None else _iso(window.since),
            until=_iso(last),
            input_rows=self.count(replace(window, until=last)),
            rows={},
        )
        return asdict(recorded)


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds")


def _count(table: ds.Dataset | None, window: Window) -> int:
    if table is None or "snapshot_time" not in table.schema.names:
        return 0  # the contract's check reports what is missing
    type_ = table.schema.field("snapshot_time").type
    return int(table.count_rows(filter=window.filter(ds.field("snapshot_time"), type_)))


@dataclass(frozen=True)
class Continuation:
    """What a run takes over of another: nothing, its evaluated situations alone, or its rounds too.

    ``last`` is the run. ``until``: the rounds before it are not read; None: all are. ``reason``:
    why they are.
    """

    last: Published | None = None
    until: datetime | None = None
    reason: str | None = None

    def to_summary(self) -> dict[str, str | None]:
        """The entry of the summary."""
        until = None if self.until is None else _iso(self.until)
        run_id = None if self.last is None else self.last.run_id
        return {"run_id": run_id, "until": until, "reason": self.reason}

    def sentence(self) -> str:
        """The line for a person."""
        if self.last is not None and self.until is not None:
            return (
                f"goes on from run {self.last.run_id}: rounds before {_iso(self.until)} are not "
                "read"
            )
        text = f"every round of the window is read: {self.reason}"
        if self.last is None:
            return text
        return f"{text}; evaluated situations of {self.last.run_id} count"

    def rest(self, window: Window) -> Window:
        """The part of a window that is to be read."""
        if self.until is None or (window.since is not None and window.since >= self.until):
            return window
        return replace(window, since=self.until)


def window_of_last(last: Published | None, window: Window) -> Window:
    """A window that has no beginning begins with that of the last published run."""
    if last is None or window.since is not None:
        return window
    recorded = Recorded.of(last)
    if recorded is not None:
        return replace(window, since=recorded.window.since)
    since = last.summary["window"]["since"]
    return replace(window, since=since and datetime.fromisoformat(since))


def continue_from(
    reports: Reports, last: Published | None, window: Window, inputs: Inputs
) -> Continuation:
    """What the run of a window takes over from the last published one."""
    if last is None:
        return Continuation(reason="no run was published yet")
    recorded = Recorded.of(last)
    if recorded is None:
        return Continuation(
            reason=f"run {last.run_id} published no state tables of version {STATES_VERSION}"
        )
    if recorded.settings != inputs.settings.fingerprint():
        return Continuation(reason=f"run {last.run_id} had other settings")
    for name, rows in recorded.rows.items():
        try:
            is_whole = reports.dataset(last, f"_states/{name}").count_rows() == rows
        except (DamagedError, OSError, pa.ArrowInvalid):
            is_whole = False
        if not is_whole:
            return Continuation(reason=f"{name} of run {last.run_id} is not there, or not whole")
    reason = _why_not(recorded, last, window, inputs)
    return Continuation(last, None if reason else recorded.window.until, reason)


def _why_not(recorded: Recorded, last: Published, window: Window, inputs: Inputs) -> str | None:
    """Why the run's tables do not answer for the rounds of the window that it audited."""
    run = f"run {last.run_id}"
    began = recorded.window.since
    if window.since is not None and datetime.fromisoformat(recorded.until) <= window.since:
        return f"{run} ended before"
    if began is not None and (window.since is None or window.since < began):
        return f"{run} began later"
    if recorded.snapshots != str(inputs.snapshots.root):
        return f"{run} read {recorded.snapshots}"
    if recorded.ingested != inputs.ingested:
        # What was seen later holds for earlier rounds too: strategies, subscriptions.
        return f"the dumps were ingested anew since {run}"
    counts = inputs.count(recorded.window)
    for name, count in counts.items():
        before = recorded.input_rows[name]
        if count != before:
            return (
                f"{name} has {count:,} rows before {recorded.until}, and had {before:,} "
                f"when {run} read them"
            )
    return None
