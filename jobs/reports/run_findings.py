"""The findings of a run: rows of its tables that differ in nothing but the queue."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from heapq import nsmallest
from itertools import compress, zip_longest
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.grouping import grouped

from ..declared import kinds
from ..declared.instants import Instant, to_instant
from ..declared.kinds import GRADED_TABLES, INFO, OF_ONE_GROUP, PERSISTENT, QUEUE_FINDINGS
from ..errors import InputError
from ..languages.translated_rows import TEXTS, with_texts
from ..schemas import EVENTS, GROUP_FAULTS
from ..texts.shown import shortened
from ..texts.waiting import WaitingMessages
from .tables import PLACE, Place, Tables, by_place, place_of


class PlaceQueue(NamedTuple):
    """A queue of a topic."""

    broker_name: str
    queue_id: int


@dataclass(frozen=True, kw_only=True)
class PlaceFinding:
    """A finding of a place: rows of a table of queues that differ in nothing but the queue.

    Or a fault that no finding of a queue shows (``group_faults.is_finding``): it has no ``queues``.
    ``ids`` has one finding id for each row, and an id is the same from run to run. ``status``: NEW
    or PERSISTING against the published run before, None for what passed; ``open_since`` and
    ``nights_open`` are over the runs before. ``share_of_time`` is that between ``first_seen`` and
    ``last_seen``. ``backlogs``: the messages of each of its queues, None where not known.
    """

    place: Place
    kind: str
    severity: str
    persistence: str
    ongoing: bool
    first_seen: datetime
    last_seen: datetime
    known_issue: str | None = None
    open_since: datetime | None = None
    nights_open: int | None = None
    status: str | None = None
    certainty: str | None = None
    #: A stall is an unbroken run of offset polls, and has no share.
    share_of_time: float = 1.0
    causes: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    queues: tuple[PlaceQueue, ...] = ()
    backlogs: tuple[int | None, ...] = ()

    @property
    def is_severe(self) -> bool:
        """True if it counts: it is there for long, and is likely."""
        return self.severity != kinds.INFO

    @property
    def waiting(self) -> WaitingMessages:
        """The messages of its queues."""
        known = [backlog for backlog in self.backlogs if backlog is not None]
        queues = len(self.queues)
        return WaitingMessages(
            sum(known) if known else None, queues=queues, without_offsets=queues - len(known)
        )

    @property
    def rows(self) -> list[tuple[str, PlaceQueue | None]]:
        """Its rows: the finding id, and the queue where it is of one."""
        return list(zip_longest(self.ids, self.queues))

    def without(self, ids: Iterable[str]) -> "PlaceFinding | None":
        """The finding without the rows of some finding ids; None where no row is left."""
        kept = [id_ not in ids for id_ in self.ids]
        if not any(kept):
            return None
        return replace(
            self,
            ids=tuple(compress(self.ids, kept)),
            queues=tuple(compress(self.queues, kept)),
            backlogs=tuple(compress(self.backlogs, kept)),
        )


#: Columns that rows of one finding share; one that a table lacks is null.
_SHARED_COLUMNS = (
    *(*PLACE, "severity", "persistence", "ongoing", "status", "certainty", "known_issue"),
    *("first_seen", "last_seen", "share_of_time", "causes", "open_since", "nights_open"),
)
#: Columns that they have each.
_EACH = ("finding_id", "broker_name", "queue_id", "backlog")
_BETWEEN = "\n"


def read_findings(
    tables: Tables, places: Collection[Place] | None = None
) -> dict[Place, list[PlaceFinding]]:
    """The findings of a run, or those of some places, by place."""
    return grouped((finding.place, finding) for finding in _findings(tables, places))


def _findings(tables: Tables, places: Collection[Place] | None) -> Iterator[PlaceFinding]:
    """The findings, put together by Arrow: a run may have a million rows."""
    for table, kind in kinds.QUEUE_FINDINGS.items():
        rows = tables.read(table, [*_SHARED_COLUMNS, *_EACH], places)
        if kind != kinds.STALLED:  # a stall names no cause
            causes: Any = pc.binary_join(rows["causes"], _BETWEEN)
            rows = rows.set_column(rows.column_names.index("causes"), "causes", causes)
        alike = rows.group_by(list(_SHARED_COLUMNS), use_threads=False)
        for row in alike.aggregate([(each, "list") for each in _EACH]).to_pylist():
            ids, brokers, numbers, backlogs = (row[f"{each}_list"] for each in _EACH)
            row["causes"] = tuple(filter(None, (row["causes"] or "").split(_BETWEEN)))
            queues = tuple(map(PlaceQueue, brokers, numbers))
            yield _finding(kind, row, ids=tuple(ids), queues=queues, backlogs=tuple(backlogs))
    names = {*_SHARED_COLUMNS, "fault", "finding_id", "is_finding"}
    faults = tables.read(
        GROUP_FAULTS.name, [*names.intersection(GROUP_FAULTS.schema.names)], places
    )
    for row in faults.filter(pc.field("is_finding")).to_pylist():
        fault = row["fault"]
        yield _finding(fault, row, causes=(fault,), ids=(row["finding_id"],))


def _finding(kind: str, row: Mapping[str, Any], **values: Any) -> PlaceFinding:
    there = [field.name for field in fields(PlaceFinding) if row.get(field.name) is not None]
    return PlaceFinding(
        place=place_of(row), kind=kind, **{each: row[each] for each in there}, **values
    )


_OF_ROWS = (
    *("finding_id", "fault", "kind", "broker_name", "queue_id", "broker_names", "causes"),
    *("severity", "persistence", "ongoing", "first_seen", "last_seen"),
    *("known_issue", "backlog", "computed"),
)


class FindingRow(NamedTuple):
    """One episode of a finding; of a fault ``queue`` is None. ``is_held_alone``: only what the
    processes hold shows it, and not the lists and routes.
    """

    finding_id: str
    kind: str
    place: Place
    queue: tuple[str, int] | None
    broker_names: tuple[str, ...]
    causes: frozenset[str]
    severity: str
    lasts: bool
    ongoing: bool
    first_seen: Instant
    last_seen: Instant
    known_issue: str | None
    backlog: int
    is_held_alone: bool

    @property
    def counts(self) -> bool:
        """True if it belongs in the verdict."""
        return self.severity != INFO and self.known_issue is None


def place_of_finding(
    tables: Tables, finding_id: str, names: Sequence[str] = GRADED_TABLES
) -> Place:
    """The place of the finding of an id, in tables of these names; InputError: there is none."""
    for name in names:
        rows = tables.read(name, ["finding_id", *PLACE])
        for row in rows.filter(pc.field("finding_id") == pa.scalar(finding_id)).to_pylist():
            return place_of(row)
    raise InputError(
        f"no finding {shortened(finding_id)} in this run; its finding_id is a column of "
        f"{', '.join(GRADED_TABLES)}: show TABLE --columns finding_id,consumer_group,topic"
    )


def read_rows(
    tables: Tables,
    places: Collection[Place] | None = None,
    names: Sequence[str] = GRADED_TABLES,
) -> Iterator[FindingRow]:
    """The episodes of all findings and faults, of these places alone, in tables of these names."""
    for name in names:
        for place, rows in by_place(tables, name, _OF_ROWS, places).items():
            for row in rows:
                yield _row(QUEUE_FINDINGS.get(name), place, row)


def _row(kind: str | None, place: Place, row: dict[str, Any]) -> FindingRow:
    kind = kind or row["fault"] or row["kind"]
    return FindingRow(
        row["finding_id"],
        kind,
        place,
        (row["broker_name"], row["queue_id"]) if kind in QUEUE_FINDINGS.values() else None,
        tuple(row["broker_names"] or ()),
        frozenset(row["causes"] or ()),
        row["severity"],
        row["persistence"] == PERSISTENT,
        bool(row["ongoing"]),
        to_instant(row["first_seen"]),
        to_instant(row["last_seen"]),
        row["known_issue"],
        row["backlog"] or 0,
        row["computed"] is False,
    )


def counted_rows(rows: Collection[FindingRow]) -> list[FindingRow]:
    """The rows that count, without the faults that a finding of a queue names as its cause."""
    counted = [row for row in rows if row.counts]
    named = {(row.place, cause) for row in counted for cause in row.causes}
    return [row for row in counted if row.queue or (row.place, row.kind) not in named]


_OF_EVENTS = (
    *("event_id", "cluster", "kind", "begins", "ends", "headline", "evidence", "findings"),
    *("groups_touched", "queues_lost", "queues_read_twice", TEXTS),
)


class LeadingEvent(NamedTuple):
    """An event in one line: what it was and what it cost; with its evidence.

    ``ends`` is None where it goes on. ``groups_touched``: how many.
    """

    cluster: str
    begins: datetime
    ends: datetime | None
    headline: str
    evidence: str
    groups_touched: int


def leading_events(tables: Tables, most: int) -> tuple[list[LeadingEvent], int]:
    """The first ``most`` events, those that touched most groups first, and the number of others."""
    rows = tables.read(EVENTS.name, _OF_EVENTS)
    leading = rows.filter((pc.field("findings") > 0) | ~pc.field("kind").isin(OF_ONE_GROUP))
    first = map(with_texts, nsmallest(most, leading.to_pylist(), key=_weight))
    found = [LeadingEvent(*(row[name] for name in LeadingEvent._fields)) for row in first]
    return found, rows.num_rows - len(found)


def _weight(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sorts by groups touched, most first, then by cost."""
    cost, touched = row["queues_lost"] + row["queues_read_twice"], row["groups_touched"]
    many = -touched if touched > 1 else 0
    return many, -cost, -row["findings"], row["begins"], row["event_id"]
