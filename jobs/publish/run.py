"""One run of the audit: what it is made of, what it read, and what it found."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ..errors import InputError
from ..instants import Instant, to_datetime
from ..known_issues import KnownIssues
from ..pieces import Piece
from ..schemas import Table
from ..settings import Settings
from ..storage import Location
from ..window import Window


@dataclass(frozen=True)
class Run:
    """What distinguishes a run from others, and when it began."""

    run_id: str
    started_at: datetime


@dataclass(frozen=True)
class Task:
    """What a run is asked to do, whichever engine does it."""

    run: Run
    snapshots: Location
    reports: Location
    window: Window
    settings: Settings
    known_issues: KnownIssues
    since_last: bool = False
    #: The files of settings and known issues, by which of them it is; None where none was read.
    sources: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """The first and the last snapshot of the groups in the window; by cluster all of them."""

    first: datetime
    last: datetime
    rounds: Mapping[str, Collection[Instant]]

    @classmethod
    def of(cls, snapshots: Location, rounds: Mapping[str, Collection[Instant]]) -> "Seen":
        """From the snapshots by cluster; InputError where there are none."""
        times = set().union(*rounds.values())
        if not times:
            raise InputError(
                f"no group in the window at {snapshots}: the members of a group are those that the "
                "brokers list (heartbeats; in dumps: consumer_connection), and there are none; "
                "audit --dry-run shows the window, the rows of the tables and their times"
            )
        return cls(to_datetime(min(times)), to_datetime(max(times)), rounds)


@dataclass(frozen=True)
class Made:
    """What an engine made: the pieces of the report tables, each with its table's name as kind."""

    tables: Sequence[Table]
    pieces: Iterable[Piece]
    engine: str
    versions: Mapping[str, str]
