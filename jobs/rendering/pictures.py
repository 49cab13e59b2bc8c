"""Pictures of a problem: who had which queue when, and who would after the repair.

Values alone, without coordinates: times, queues, owners and marks.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple

from rebalance_core import MessageQueue, sort_client_ids
from rebalance_core.descriptions import queue_ranges
from rebalance_core.english import count, list_of
from rebalance_core.grouping import grouped
from rebalance_core.repairs import ROUTE_DIVERGENCE
from rebalance_core.texts import Text

from ..declared.kinds import PERSISTENT, STALLED
from ..reports.problems import Problem
from ..reports.run_findings import PlaceFinding, PlaceQueue

#: A row that a template shows: of a table, or put together of several of its rows.
ShownRow = Mapping[str, Any]
ShownRows = Sequence[ShownRow]
#: The beginning and the end.
Span = tuple[datetime, datetime]


class Taker(NamedTuple):
    """Processes of one client id that take a queue, ``share`` of the time."""

    client_id: str
    processes: int
    share: float


class Ownership(NamedTuple):
    """A queue and a time in which the same processes took it."""

    begins: datetime
    ends: datetime
    takers: tuple[Taker, ...]


class Mark(NamedTuple):
    """A finding on a queue: ``kind`` is ORPHANED, DUPLICATE or STALLED."""

    kind: str
    begins: datetime
    ends: datetime
    possible: bool
    lasts: bool


class Lane(NamedTuple):
    """A queue over time."""

    queue: PlaceQueue
    periods: tuple[Ownership, ...]
    marks: tuple[Mark, ...]


class Handover(NamedTuple):
    """A moment in which queues changed hands, in words; ``sign`` is ``+``, ``-`` or ``*``."""

    at: datetime
    sign: str
    text: str


class TimelinePicture(NamedTuple):
    """The owners of each queue over time, of one topic of one group.

    ``faults`` has by fault when it was; ``client_ids`` are those that take any of its queues.
    """

    begins: datetime
    ends: datetime
    lanes: tuple[Lane, ...]
    lanes_left_out: int
    changes: tuple[Handover, ...]
    faults: Mapping[str, Sequence[Span]]
    client_ids: frozenset[str]


class AfterRepair(NamedTuple):
    """The takers of each queue now, and those if the fault, a row of its table, were mended.

    ``takers`` are all that take or could take a queue, as they are shown; ``now`` and ``then`` have
    by queue who takes it, once for each process.
    """

    fault: ShownRow
    takers: tuple[str, ...]
    queues: tuple[PlaceQueue, ...]
    queues_left_out: int
    now: Mapping[PlaceQueue, tuple[str, ...]]
    then: Mapping[PlaceQueue, tuple[str, ...]]

    @property
    def moved(self) -> int:
        """The number of queues that change hands."""
        return sum(before != self.then[queue] for queue, before in self.now.items())

    @property
    def gone(self) -> frozenset[PlaceQueue]:
        """The queues that are in no route any more: a repair leaves no finding, and no taker.

        A repair that makes all routes one may leave others: there only such queues lose theirs.
        """
        if self.fault["findings_left"] and self.fault["fault"] != ROUTE_DIVERGENCE:
            return frozenset()
        return frozenset(queue for queue, takers in self.then.items() if not takers)


#: The columns that pictures are made of, by table.
DRAWN = {
    "group_faults": "fault last_seen first_seen moves findings_cleared findings_left",
    "state_runs": "state_id first_seen last_seen snapshots",
    "allocations": "state_id client_id strategy processes view_weight queues",
    "reassignments": "changed_at clients_joined clients_left queues_before queues queues_moved",
}
#: More queues than this make no picture; those with findings come first.
MOST_LANES = 24
#: More fault bars than this hide the queues.
_MOST_FAULTS = 4
#: More client ids than this hide what happened to them.
_MOST_NAMES = 3
#: A run of snapshots reaches to the next one, unless it is further away than so many intervals.
_GAP_INTERVALS = 3
_AT_TIMES = " (at times)"
_OF_SEVERAL = re.compile(r"\A(.*) \(process (\d+)\)\Z", re.DOTALL)


def _queue(row: ShownRow) -> PlaceQueue:
    return PlaceQueue(row["broker_name"], row["queue_id"])


class States:
    """The runs of a place's states over time, and who takes what in each.

    ``runs`` are rows of ``state_runs``, ``allocations`` rows of ``allocations``, of one place.
    """

    def __init__(self, runs: Iterable[ShownRow], allocations: Iterable[ShownRow]) -> None:
        self._runs = sorted(runs, key=lambda run: run["first_seen"])
        self._first_seen: list[datetime] = [run["first_seen"] for run in self._runs]
        #: The takers by state and queue.
        self.takers: dict[str, dict[PlaceQueue, list[Taker]]] = defaultdict(
            lambda: defaultdict(list)
        )
        #: The client ids of each state, with queues or without.
        self.members: dict[str, set[str]] = defaultdict(set)
        shares: dict[tuple[str, PlaceQueue, str, str, int], float] = defaultdict(float)
        for row in allocations:
            self.members[row["state_id"]].add(row["client_id"])
            for queue in set(map(_queue, row["queues"])):
                key = (row["state_id"], queue, row["client_id"], row["strategy"], row["processes"])
                shares[key] += row["view_weight"]
        for (state_id, queue, client_id, _, processes), share in shares.items():
            self.takers[state_id][queue].append(Taker(client_id, processes, share))
        #: The usual time between two snapshots.
        self.interval = _interval(self._runs)

    @property
    def extent(self) -> Span | None:
        """The first snapshot, and the end of the last one."""
        return (
            (self._first_seen[0], self.ends_of(self._runs[-1]["last_seen"])) if self._runs else None
        )

    def ends_of(self, last_seen: datetime) -> datetime:
        """The latest end of what a snapshot shows: the next one, if it comes in time."""
        place = bisect_right(self._first_seen, last_seen)
        longest = last_seen + _GAP_INTERVALS * self.interval
        if place < len(self._first_seen) and self._first_seen[place] <= longest:
            return self._first_seen[place]
        return last_seen + self.interval

    def state_at(self, time: datetime) -> str | None:
        """The state in force at a time, if any is."""
        place = bisect_right(self._first_seen, time) - 1
        if place < 0 or self._runs[place]["last_seen"] < time:
            return None
        return str(self._runs[place]["state_id"])

    def periods(self, queue: PlaceQueue, begins: datetime, ends: datetime) -> tuple[Ownership, ...]:
        """The takers of a queue from one time to another; runs of the same takers are joined."""
        joined: list[Ownership] = []
        for run in self._runs:
            run_begins, run_ends = (
                max(run["first_seen"], begins),
                min(self.ends_of(run["last_seen"]), ends),
            )
            taken = self.takers[run["state_id"]].get(queue, ())
            takers = tuple(sorted(taken, key=lambda taker: (-taker.share, taker.client_id)))
            if run_begins >= run_ends:
                continue
            if joined and joined[-1].takers == takers and joined[-1].ends == run_begins:
                run_begins = joined.pop().begins
            joined.append(Ownership(run_begins, run_ends, takers))
        return tuple(joined)


def _interval(runs: ShownRows) -> timedelta:
    within: list[timedelta] = [
        (run["last_seen"] - run["first_seen"]) / (run["snapshots"] - 1)
        for run in runs
        if run["snapshots"] > 1
    ]
    between = [after["first_seen"] - run["last_seen"] for run, after in pairwise(runs)]
    usual: timedelta = median(within or between or [timedelta(minutes=1)])
    return usual


def number_clients(client_ids: Iterable[str]) -> dict[str, int]:
    """A number for each client id, in the order in which RocketMQ sorts them."""
    return {client_id: n for n, client_id in enumerate(sort_client_ids(set(client_ids)), 1)}


def timeline(
    states: States, findings: Sequence[PlaceFinding], faults: ShownRows, reassignments: ShownRows
) -> TimelinePicture | None:
    """The picture of a place; None where no state of it was published.

    ``faults`` and ``reassignments`` are rows of their tables. The picture begins a little before
    the first finding or fault and ends a little after the last one.
    """
    extent = states.extent
    if extent is None:
        return None
    queue_findings = [finding for finding in findings if finding.queues]
    times = [(finding.first_seen, finding.last_seen) for finding in queue_findings]
    times += [(row["first_seen"], row["last_seen"]) for row in faults]
    begins, ends = _focus(states, extent, times)
    marks = grouped(
        (queue, _mark(states, finding)) for finding in queue_findings for queue in finding.queues
    )
    queues = marks.keys() | set[PlaceQueue]().union(*states.takers.values())
    lanes = tuple(
        Lane(queue, states.periods(queue, begins, ends), tuple(marks.get(queue, ())))
        for queue in _first_of(marks, queues)
    )
    seen = {t.client_id for lane in lanes for period in lane.periods for t in period.takers}
    return TimelinePicture(
        begins=begins,
        ends=ends,
        lanes=lanes,
        lanes_left_out=len(queues) - len(lanes),
        changes=tuple(_change(row) for row in reassignments if begins <= row["changed_at"] <= ends),
        faults=_longest(states, faults),
        client_ids=frozenset(seen),
    )


def _first_of(faulty: Iterable[PlaceQueue], queues: Iterable[PlaceQueue]) -> tuple[PlaceQueue, ...]:
    """The queues that a picture has room for, in their order; the faulty are chosen first."""
    chosen = dict.fromkeys([*sorted(faulty), *sorted(queues)])
    return tuple(sorted(list(chosen)[:MOST_LANES]))


def _focus(states: States, extent: Span, times: Sequence[Span]) -> Span:
    if not times:
        return extent
    begins = min(begins for begins, _ in times)
    ends = states.ends_of(max(ends for _, ends in times))
    margin = max((ends - begins) / 8, 4 * states.interval)
    return max(extent[0], begins - margin), min(extent[1], ends + margin)


def _mark(states: States, finding: PlaceFinding) -> Mark:
    is_stall = finding.kind == STALLED
    return Mark(
        kind=finding.kind,
        begins=finding.first_seen,
        ends=finding.last_seen if is_stall else states.ends_of(finding.last_seen),
        possible=finding.certainty == "POSSIBLE",
        lasts=finding.persistence == PERSISTENT,
    )


def _change(row: ShownRow) -> Handover:
    joined, left = row["clients_joined"], row["clients_left"]
    parts = [Text("{clients} joined", clients=list_of(joined, _MOST_NAMES))] if joined else []
    parts += [Text("{clients} left", clients=list_of(left, _MOST_NAMES))] if left else []
    if row["queues"] != (before := row["queues_before"]):
        queues = count(row["queues"], "queue")
        parts.append(Text("{queues} instead of {before}", queues=queues, before=before))
    parts.append(Text("{queues} moved", queues=count(row["queues_moved"], "queue")))
    sign = "+" if joined and not left else "-" if left and not joined else "*"
    text, *further = parts
    for part in further:
        text = Text("{change}, {further}", change=text, further=part)
    return Handover(row["changed_at"], sign, text)


def _longest(states: States, faults: ShownRows) -> dict[str, list[Span]]:
    """The times of the faults that were there for longest, these first."""
    in_time = sorted(faults, key=itemgetter("first_seen"))
    periods = grouped(
        (row["fault"], (row["first_seen"], states.ends_of(row["last_seen"]))) for row in in_time
    )
    length = {fault: sum((e - s for s, e in of), timedelta()) for fault, of in periods.items()}
    shortest_first = sorted(periods, key=length.__getitem__)
    return {fault: periods[fault] for fault in reversed(shortest_first[-_MOST_FAULTS:])}


def after_repair(states: States, fault: ShownRow) -> AfterRepair | None:
    """The allocation in the last state that shows a fault, and that after its repair.

    The second follows from ``moves`` of the table: the page proves nothing by itself.

    ``fault`` is a row of ``group_faults``; None where the state was not published or the repair
    moves no queue.
    """
    state_id = states.state_at(fault["last_seen"])
    if state_id is None or not fault["moves"]:
        return None
    now = {queue: _shown(takers) for queue, takers in states.takers[state_id].items()}
    moves = {_queue(each): each for each in fault["moves"]}
    now |= {queue: tuple(move["before"]) for queue, move in moves.items()}
    then = now | {queue: tuple(move["after"]) for queue, move in moves.items()}
    shown = _first_of(moves, now)
    taking = {whole(taker) for each in (now, then) for takers in each.values() for taker in takers}
    return AfterRepair(
        fault=fault,
        takers=tuple(sort_client_ids(taking | states.members[state_id])),
        queues=shown,
        queues_left_out=len(now) - len(shown),
        now=now,
        then=then,
    )


def _shown(takers: Iterable[Taker]) -> tuple[str, ...]:
    """The takers as ``moves`` writes them down."""
    return tuple(
        taker.client_id if taker.share > 1 - 1e-9 else f"{taker.client_id}{_AT_TIMES}"
        for taker in sorted(takers, key=lambda each: (each.client_id, each.processes))
        for _ in range(taker.processes)
    )


def is_at_times(taker: str) -> bool:
    """True if a taker, as it is shown, takes the queue under some views only."""
    return taker.endswith(_AT_TIMES)


def whole(taker: str) -> str:
    """A taker, as it is shown, whether it takes the queue always or at times."""
    return taker.removesuffix(_AT_TIMES)


def client_of(taker: str) -> str:
    """The client id of a taker, as it is shown.

    >>> client_of("a (process 2) (at times)"), client_of("a")
    ('a', 'a')
    """
    return _OF_SEVERAL.sub(r"\1", whole(taker))


def named_taker(taker: str, client: str) -> str:
    """A taker with another name for its client id: a shorter one, or one with a number.

    >>> named_taker("a (process 2) (at times)", "1 a")
    '1 a (process 2) (at times)'
    """
    one_of_several = _OF_SEVERAL.fullmatch(whole(taker))
    if one_of_several:
        client = Text("{client} (process {number})", client=client, number=one_of_several[2])
    return Text("{client} (at times)", client=client) if is_at_times(taker) else client


# ---------------------------------------------------------------- of a problem


class Pictures(NamedTuple):
    """Pictures of a problem: who had which queue when, and who would after the repair.

    ``numbers`` has the number of each owner; ``moved`` are rows of queues.
    """

    timeline: TimelinePicture | None
    repair: AfterRepair | None
    numbers: Mapping[str, int]
    moved: tuple[ShownRow, ...]


def pictures_of(
    problem: Problem, findings: Sequence[PlaceFinding], rows: Sequence[ShownRows]
) -> Pictures:
    """The pictures of a problem, of its rows of the tables of ``DRAWN``."""
    faults, runs, allocations, reassignments = rows
    states = States(runs, allocations)
    seen = timeline(states, findings, faults, reassignments)
    repair = _best_repair(states, problem, faults)
    takers = {*(seen.client_ids if seen else ()), *(repair.takers if repair else ())}
    return Pictures(
        timeline=seen,
        repair=repair,
        numbers=number_clients(takers & set().union(*states.members.values())),
        moved=_moved(problem.place.topic, repair) if repair else (),
    )


def _best_repair(states: States, problem: Problem, faults: ShownRows) -> AfterRepair | None:
    """The repair of the fault that explains most, of those that move anything."""
    repairs = (
        after_repair(states, row)
        for fault in problem.why
        for row in faults
        if (row["fault"], row["last_seen"]) == (fault.fault, fault.last_seen)
    )
    return next(filter(None, repairs), None)


def _moved(topic: str, repair: AfterRepair) -> tuple[ShownRow, ...]:
    """Queues that the repair moves alike, a row each."""
    gone, then = repair.gone, repair.then
    alike = grouped(
        (
            (_names(now), Text("not there") if place_queue in gone else _names(then[place_queue])),
            place_queue,
        )
        for place_queue, now in repair.now.items()
        if now != then[place_queue]
    )
    return tuple(
        {"queues": ranges(topic, queues), "before": before, "after": after}
        for (before, after), queues in sorted(alike.items(), key=lambda each: min(each[1]))
    )


def _names(takers: Sequence[str]) -> str:
    if not takers:
        return Text("nobody")
    named = [(named_taker(each, client_of(each)), n) for each, n in Counter(takers).items()]
    return list_of(
        [Text("{client} x {number}", client=name, number=n) if n > 1 else name for name, n in named]
    )


def ranges(topic: str, queues: Iterable[tuple[str, int]]) -> str:
    """The queues in words."""
    return queue_ranges(MessageQueue(topic, *queue) for queue in queues)
