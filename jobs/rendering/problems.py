"""Problems: all that is wrong with one topic of one group, worst first.

A queue finding is a row per queue and run, far too many for a person; a problem is a row per
cluster, group and topic. It holds what the rows of the place show together, and why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, NamedTuple

import pyarrow as pa

from jobs.kinds import (
    INFO,
    OF_ONE_CLIENT,
    PERSISTENT,
    QUEUE_FINDINGS,
    Kind,
    badness,
    kind_of,
    lasts,
    worst,
)
from jobs.languages.rows import TEXTS, with_texts
from jobs.rendering.tables import PLACE, Place, Tables, place_of
from jobs.rendering.words import titles
from jobs.text import of_the_time, span
from rebalance_core.english import count
from rebalance_core.texts import Text

#: The tables of findings, by kind, in the order in which they are shown.
FINDINGS = {kind: table for table, kind in QUEUE_FINDINGS.items()}
#: By kind how queues are consumed, always and at times.
_HOW = {
    "ORPHANED": (Text("consumed by nobody"), Text("at times consumed by nobody")),
    "DUPLICATE": (Text("consumed by several"), Text("at times consumed by several")),
    "STALLED": (Text("stalled"), Text("at times stalled")),
}


@dataclass(frozen=True)
class ShownFault:
    """One fault of a place: its worst run, and how many runs of it there were.

    Of what is about one client id one per id (``kinds.OF_ONE_CLIENT``), of every other fault one.
    """

    fault: str
    first_seen: datetime
    last_seen: datetime
    runs: int
    persistence: str
    severity: str
    ongoing: bool
    evidence: str
    remedy: str
    queues_affected: int
    findings_cleared: int
    findings_left: int
    share_of_time: float | None = None
    known_issue: str | None = None
    client_ids: tuple[str, ...] = ()
    broker_names: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """The fault in words."""
        return kind_of(self.fault)

    @property
    def lasts(self) -> bool:
        """Whether it is more than a deploy or a restart."""
        return lasts(self.fault, self.persistence)

    @property
    def adds(self) -> bool:
        """Whether it is bad by itself: of one that has findings these say how bad it is."""
        return self.severity != INFO and not self.queues_affected

    @property
    def time(self) -> str:
        """When its worst run was, and for how much of that time."""
        return time_with_gaps(self.first_seen, self.last_seen, self.share_of_time)

    @property
    def weight(self) -> tuple[bool, bool, float]:
        """The larger, the more it explains: whether it lasts and goes on, queues times seconds."""
        seconds = (self.last_seen - self.first_seen).total_seconds() + 1
        return self.lasts, self.ongoing, self.queues_affected * seconds


def time_with_gaps(first_seen: datetime, last_seen: datetime, share: float | None) -> str:
    """From when until when, and for how much of it, where there are gaps.

    >>> time_with_gaps(datetime(2026, 11, 20, 10), datetime(2026, 11, 20, 11), 0.88)
    '2026-11-20 10:00:00 to 11:00:00, 88 % of the time'
    """
    time, gaps = span(first_seen, last_seen), of_the_time(share)
    return Text("{time}, {gaps}", time=time, gaps=gaps) if gaps else time


class Grade(NamedTuple):
    """How bad one thing of a problem is, and the known issue that it matches."""

    severity: str
    ongoing: bool
    known_issue: str | None


@dataclass
class Problem:
    """What is wrong with one topic of one group.

    ``lasting`` and ``passing`` count the distinct queues of its persistent and of its transient
    findings, by kind; ``possible_only`` are the kinds of which none is certain.
    """

    place: Place
    grades: list[Grade] = field(default_factory=list)
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    lasting: dict[str, int] = field(default_factory=dict)
    passing: dict[str, int] = field(default_factory=dict)
    possible_only: set[str] = field(default_factory=set)
    statuses: set[str] = field(default_factory=set)
    faults: list[ShownFault] = field(default_factory=list)
    orphan_minutes: float = 0.0
    duplicate_minutes: float = 0.0
    #: Over the nights before; None where it passed.
    open_since: datetime | None = None
    nights_open: int = 0

    @property
    def is_known(self) -> bool:
        """Whether known issues explain all of it."""
        return bool(self.grades) and all(each.known_issue is not None for each in self.grades)

    @property
    def known_issues(self) -> list[str]:
        """The reasons that its known issues give."""
        return sorted({each.known_issue for each in self.grades if each.known_issue is not None})

    @property
    def _counted(self) -> list[Grade]:
        """What no known issue explains, or all of it where there is no such."""
        return [each for each in self.grades if each.known_issue is None] or self.grades

    @property
    def severity(self) -> str:
        """The worst of what no known issue explains; where known issues explain all, of that."""
        return worst(each.severity for each in self._counted)

    @property
    def ongoing(self) -> bool:
        """Whether it is there at the end; where nothing of it is graded, whether a fault is."""
        return any(each.ongoing for each in self._counted or self.faults)

    @property
    def counts(self) -> bool:
        """Whether it belongs into the verdict: it lasts and is no known issue."""
        return self.severity != INFO and not self.is_known

    @property
    def has_begun(self) -> bool:
        """Whether it is there at the end and does not count: too new, or too improbable."""
        return self.ongoing and not (self.counts or self.is_known)

    @property
    def has_passed(self) -> bool:
        """Whether it passed by itself."""
        return not (self.counts or self.is_known or self.ongoing)

    @property
    def headline(self) -> str:
        """What is wrong, in a few words."""
        if self.lasting:
            return self._queues(self.lasting)
        lasting = [fault for fault in self.faults if fault.lasts]
        if self.passing and not lasting:
            queues = self._queues(self.passing)
            if self.ongoing:
                return Text("{queues}, just begun", queues=queues)
            return Text("{queues}, for a moment", queues=queues)
        return titles(list(dict.fromkeys(fault.kind for fault in lasting or self.faults)))

    def _queues(self, queues: Mapping[str, int]) -> str:
        """How many queues are consumed how: of the first kind, and of up to two others."""
        how = {kind: _HOW[kind][kind in self.possible_only] for kind in queues}
        (kind, number), *others = queues.items()
        first = Text("{queues} {how}", queues=count(number, "queue"), how=how[kind])
        rest = [Text("{number:,} {how}", number=n, how=how[kind]) for kind, n in others]
        if len(rest) == 2:
            second, third = rest
            return Text("{first}, {second} and {third}", first=first, second=second, third=third)
        return Text("{first} and {second}", first=first, second=rest[0]) if rest else first

    @property
    def time(self) -> str:
        """When it was."""
        if self.first_seen is None or self.last_seen is None:
            return ""
        return span(self.first_seen, self.last_seen)

    @property
    def cause(self) -> ShownFault | None:
        """The fault that explains most of it."""
        return self.faults[0] if self.faults else None

    @property
    def main_kind(self) -> Kind:
        """What it is filed under: its main cause, else what its queues show."""
        return kind_of(
            self.cause.fault if self.cause else next(iter({**self.lasting, **self.passing}))
        )

    @property
    def is_of_retry_topic(self) -> bool:
        """Whether its topic is the one from which the group reads again what failed."""
        return self.place.topic == f"%RETRY%{self.place.consumer_group}"

    @property
    def remedy(self) -> str:
        """What to do about its main cause."""
        return self.cause.remedy if self.cause else ""

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts the worst first; known issues last."""
        return (
            self.is_known,
            badness(
                self.severity,
                ongoing=self.ongoing,
                queue_minutes=self.orphan_minutes + self.duplicate_minutes,
                queues=sum(self.lasting.values()),
            ),
            self.place,
        )

    def saw(self, first: datetime, last: datetime) -> None:
        """Widens its time."""
        self.first_seen = first if self.first_seen is None else min(self.first_seen, first)
        self.last_seen = last if self.last_seen is None else max(self.last_seen, last)


def find_problems(tables: Tables) -> list[Problem]:
    """Every place with findings or faults, worst first."""
    problems: dict[Place, Problem] = {}

    def at(row: dict[str, Any]) -> Problem:
        place = place_of(row)
        return problems.setdefault(place, Problem(place))

    for kind, name in FINDINGS.items():
        findings = tables.read(name, [*PLACE, *_COLUMNS])
        _add_findings(at, kind, _text_where_null(findings))
    for row, fault in _faults(tables):
        problem = at(row)
        problem.faults.append(fault)
        if fault.adds:
            problem.grades.append(Grade(fault.severity, fault.ongoing, fault.known_issue))
        problem.saw(fault.first_seen, fault.last_seen)
    minutes = ("orphan_queue_minutes", "duplicate_queue_minutes")
    for row in tables.read("group_health", [*PLACE, *minutes]).to_pylist():
        problem_here = problems.get(place_of(row))
        if problem_here is not None:
            problem_here.orphan_minutes = row[minutes[0]]
            problem_here.duplicate_minutes = row[minutes[1]]
    _add_nights(problems, tables)
    for problem in problems.values():
        problem.faults.sort(key=lambda fault: fault.weight, reverse=True)
    return sorted(problems.values(), key=lambda problem: problem.rank)


def _add_nights(problems: Mapping[Place, Problem], tables: Tables) -> None:
    """Since when each problem is open: its oldest finding or fault, and its longest."""
    for name in (*FINDINGS.values(), "group_faults"):
        rows = tables.read(name, [*PLACE, "open_since", "nights_open"])
        of_places = rows.group_by([*PLACE]).aggregate(
            [("open_since", "min"), ("nights_open", "max")]
        )
        for row in of_places.to_pylist():
            problem, since = problems.get(place_of(row)), row["open_since_min"]
            if problem is not None and since is not None:
                problem.open_since = min(problem.open_since or since, since)
                problem.nights_open = max(problem.nights_open, row["nights_open_max"])


_ALIKE = ("severity", "persistence", "ongoing", "status", "certainty", "known_issue")
_COLUMNS = ("broker_name", "queue_id", "first_seen", "last_seen", *_ALIKE)


def _text_where_null(table: pa.Table) -> pa.Table:
    """The table with columns of nothing but nulls as texts, by which rows can be grouped."""
    for number, column in enumerate(table.schema):
        if pa.types.is_null(column.type):
            table = table.set_column(number, column.name, table[column.name].cast(pa.string()))
    return table


def _add_findings(at: Callable[[dict[str, Any]], Problem], kind: str, findings: pa.Table) -> None:
    if not findings.num_rows:
        return
    tallies = findings.group_by([*PLACE, *_ALIKE]).aggregate(
        [("first_seen", "min"), ("last_seen", "max")]
    )
    certain: set[Place] = set()
    for row in tallies.to_pylist():
        problem = at(row)
        problem.grades.append(Grade(row["severity"], row["ongoing"], row["known_issue"]))
        problem.saw(row["first_seen_min"], row["last_seen_max"])
        if row["status"] is not None:
            problem.statuses.add(row["status"])
        if row["certainty"] != "POSSIBLE":
            certain.add(problem.place)
    queues_of = findings.group_by([*PLACE, "persistence", "broker_name", "queue_id"]).aggregate([])
    counts = queues_of.group_by([*PLACE, "persistence"]).aggregate([([], "count_all")])
    for row in counts.to_pylist():
        problem = at(row)
        queues = problem.lasting if row["persistence"] == PERSISTENT else problem.passing
        queues[kind] = row["count_all"]
        if problem.place not in certain:
            problem.possible_only.add(kind)


#: The columns of ``group_faults`` that a ``ShownFault`` is made of.
_FAULT_COLUMNS = [each.name for each in fields(ShownFault) if each.name != "runs"]


def _faults(tables: Tables) -> Iterable[tuple[dict[str, Any], ShownFault]]:
    runs: dict[tuple[Any, ...], list[tuple[dict[str, Any], ShownFault]]] = defaultdict(list)
    for each in tables.read("group_faults", [*PLACE, *_FAULT_COLUMNS, TEXTS]).to_pylist():
        row = with_texts(each)
        values = {name: row[name] for name in _FAULT_COLUMNS}
        for names in ("client_ids", "broker_names"):
            values[names] = tuple(row[names] or ())
        client_ids = values["client_ids"] if row["fault"] in OF_ONE_CLIENT else ()
        key = (place_of(row), row["fault"], client_ids)
        runs[key].append((row, ShownFault(**values, runs=1)))
    for of_fault in runs.values():
        row, worst = max(of_fault, key=lambda each: (each[1].weight, each[1].last_seen))
        every = [fault for _, fault in of_fault]
        # One run that nobody knows of makes the fault one that counts.
        unknown = any(fault.known_issue is None for fault in every)
        known_issue = None if unknown else worst.known_issue
        yield row, replace(worst, runs=len(every), known_issue=known_issue)
