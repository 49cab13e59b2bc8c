"""One run of the audit: what it is made of, what it read, and what it found."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from ..config.known_issues import KnownIssue, KnownIssues
from ..config.settings import Settings
from ..config.window import Window
from ..declared.instants import Instant, to_datetime
from ..engines.pieces import Piece
from ..errors import NothingToAuditError
from ..fold.slice_facts import BrokerPolls
from ..schemas import Table
from ..storage import Location, PublishedRun, ReportHistory, Reports
from ..verdict.gaps import Gap, gaps_of
from ..verdict.silence import AnswerTimes
from .earlier import Witnesses


@dataclass(frozen=True)
class Run:
    """The identity of a run, and its beginning."""

    run_id: str
    started_at: datetime


@dataclass(frozen=True)
class Task:
    """The task of a run, whichever engine does it."""

    run: Run
    snapshots: Location
    reports: Location
    window: Window
    settings: Settings
    known_issues: KnownIssues
    since_last: bool = False
    #: The files of settings and known issues, by which of them it is; None where none was read.
    sources: Mapping[str, str | None] = field(default_factory=dict)
    #: True if the snapshot tables lie there for this run alone, so that nobody knows the files.
    are_staged: bool = False
    #: The reports that it compares itself with; None: those where it writes.
    compared_with: ReportHistory | None = None

    @property
    def history(self) -> ReportHistory:
        """The reports of earlier dates, with which the run compares itself."""
        return self.compared_with or Reports(self.reports)

    @property
    def where(self) -> str:
        """The place of the snapshot tables, for a person."""
        return "in the tables" if self.are_staged else f"at {self.snapshots}"


@dataclass(frozen=True)
class Scope:
    """The scope of a run: what it covers, under which date, and what was published before.

    ``first_seen``, ``last_seen``: snapshots of the groups in the window; ``rounds``: by cluster all
    of them.
    ``witnesses``: who was asked. ``given``: when nameservers gave routes, brokers offsets.
    ``polls``: when each broker was asked about members.
    ``known_issues``: those that are in force on the date.
    """

    first_seen: datetime
    last_seen: datetime
    rounds: Mapping[str, Collection[Instant]]
    witnesses: Witnesses
    given: Mapping[str, AnswerTimes]
    polls: BrokerPolls
    date: str
    previous: PublishedRun | None
    known_issues: tuple[KnownIssue, ...]

    @classmethod
    def of(
        cls,
        task: Task,
        rounds: Mapping[str, Collection[Instant]],
        witnesses: Witnesses,
        given: Mapping[str, AnswerTimes],
        polls: BrokerPolls,
        ingested: Mapping[str, Any] | None = None,
    ) -> "Scope":
        """Finds the scope. NothingToAuditError with the ingest's gaps where there are no snapshots.

        The date is the window's last one, else that of the last snapshot: the same input gives the
        same date.
        """
        times = set().union(*rounds.values())
        if not times:
            window, gaps = task.window, [f"{text}; " for _, text in gaps_of(ingested)]
            is_bounded = window.since is not None or window.until is not None
            when = f" from {window.words}," if is_bounded else ""
            raise NothingToAuditError(
                f"{''.join(gaps[:1])}no list of members{when} {task.where}: expected rows of "
                "heartbeats, in dumps lines of the kind consumer_connection, came none; collect "
                "asks brokers for them",
                "; audit --dry-run shows the window, the rows of the tables and their times",
            )
        first_seen, last_seen = to_datetime(min(times)), to_datetime(max(times))
        published = task.window.last_date or last_seen.date().isoformat()
        previous = task.history.before(published)
        known_issues = task.known_issues.in_force(date.fromisoformat(published))
        return cls(
            first_seen,
            last_seen,
            rounds,
            witnesses,
            given,
            polls,
            published,
            previous,
            known_issues,
        )


@dataclass(frozen=True)
class EngineResult:
    """The result of an engine: pieces of the report tables, each with its table's name as kind.

    ``refused``: the rows of the quarantine, for what broke a table's contract and those of the
    ingest. ``gaps``: what the run lacks of its tables. ``asked``: the groups of which a member was
    asked for its running info, by cluster and name.
    """

    tables: Sequence[Table]
    pieces: Iterable[Piece]
    refused: Iterable[pa.Table]
    gaps: Sequence[Gap]
    asked: Collection[tuple[str, str]]
    engine: str
    versions: Mapping[str, str]
