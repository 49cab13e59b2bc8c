"""periods -> timeline: the phases of a topic that show who owns what, numbered in time.

Where the members' strategy is not known, or they choose their queues, no owners are computed. Such
a phase is in the timeline all the same: what the members hold is judged in it.

Its phases show when the queues changed hands, and between whom. A client that joins, leaves or is
dropped, a queue count that changes: for up to 20 s (50 s after a change of the route) the clients
still hold what they had before. What is found in that time is the change, and no fault of it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, pairwise
from typing import NamedTuple

from rebalance_core.findings import POSSIBLE, ROUTE_NOT_KNOWN, SHOWN_BY_HOLDINGS, Evaluation
from rebalance_core.state import Unreachable

from ...declared.instants import Instant
from ..times import Portion, runs_of, watches
from .core_verdict import QueueKey, Verdict
from .situations import Period


class Phase(NamedTuple):
    """A period whose situation shows who owns what, or who may, with its evaluation."""

    topic: str
    situation_id: str
    #: Counts the unbroken runs of the group's lists, whatever the topic.
    group_run: int
    first_seen: Instant
    last_seen: Instant
    snapshots: int
    evaluated: Verdict
    #: 1, 2, ... in time within the topic.
    position: int = 0
    #: True if it does not show whether what was found before has ended: see ``build_timeline``.
    is_blind: bool = False
    #: The number of the watch that it is in: see ``times.watches``.
    watch: int = 0
    #: The brokers that clients do not reach: see the core's ``State``.
    unreachable: tuple[Unreachable, ...] = ()

    @property
    def verdict(self) -> Evaluation:
        """The core's verdict on its situation."""
        return self.evaluated.verdict

    @property
    def is_computed(self) -> bool:
        """False: nothing is computed, for the members' strategy is not known, or they choose."""
        return self.verdict.coverage not in SHOWN_BY_HOLDINGS


@dataclass(frozen=True)
class Timeline:
    """The phases of one topic of the group, in time."""

    topic: str
    phases: tuple[Phase, ...]

    def members_at(self, moment: Instant) -> int:
        """The number of members that the group has by then; only of a timeline with phases."""
        place = bisect_right(self.phases, moment, key=lambda phase: phase.first_seen)
        return self.phases[max(place - 1, 0)].verdict.members

    @cached_property
    def runs(self) -> Sequence[Portion]:
        """The run of each phase, as episodes count them."""
        return self._runs(lambda phase: not phase.is_blind)

    @cached_property
    def runs_of_reports(self) -> Sequence[Portion]:
        """The runs as they count for what members and routes say by themselves, without any share:
        where nothing is computed they say it too.
        """
        return self._runs(lambda phase: not (phase.is_blind and phase.is_computed))

    def _runs(self, counts: Callable[[Phase], bool]) -> Sequence[Portion]:
        parts = [
            Portion(phase.first_seen, phase.last_seen, phase.snapshots, counts(phase), phase.watch)
            for phase in self.phases
        ]
        return runs_of(parts)


def build_timeline(topic: str, phases: Iterable[Phase]) -> Timeline:
    """The timeline of a topic from all its phases in time, see ``phases_of``.

    Periods without evidence (no broker answered, no route) are left out, so that they end no
    episode. A phase is blind if all lists agree for the one reason that fewer of them came: lists
    differ before and after, and in all the time between them fewer brokers answered than then, so
    that the list that differs may be among those that are missing. It is blind as well if nothing
    is computed, as the members' strategy was not found.
    """
    informed = [phase for phase in phases if phase.verdict.shows_owners or not phase.is_computed]
    places = zip(informed, count(1), _blind(informed), strict=False)
    numbered = (phase._replace(position=n, is_blind=is_blind) for phase, n, is_blind in places)
    return Timeline(topic, tuple(numbered))


def without_route(topic: str, phases: Iterable[Phase]) -> Timeline:
    """The timeline of a topic of which no route is known at times, nor so an owner.

    What its members report then shows faults all the same. They end where owners are known: from
    there on ``build_timeline`` has what is wrong.
    """
    found = [
        phase if is_routeless else phase._replace(evaluated=replace(phase.evaluated, faults=()))
        for phase in phases
        if (is_routeless := phase.verdict.coverage == ROUTE_NOT_KNOWN) or phase.verdict.shows_owners
    ]
    is_any = any(phase.verdict.coverage == ROUTE_NOT_KNOWN for phase in found)
    return Timeline(topic, tuple(found) if is_any else ())


def phases_of(
    periods: Sequence[Period], evaluated: Mapping[str, Verdict], snapshots: Sequence[Instant]
) -> Iterator[Phase]:
    """The phases of a topic, not numbered yet, from its periods in time and, by situation id, the
    evaluations.

    ``snapshots`` are those of the group, ascending: a period in which nobody looked for a time
    becomes several phases, one in each watch.
    """
    cuts = watches(snapshots)[1:]
    for period in periods:
        situation = period.situation
        id_, unreachable = situation.situation_id, situation.unreachable
        phase = Phase(situation.topic, id_, *period[1:], evaluated[id_], unreachable=unreachable)
        first, end = bisect_right(cuts, period.first_seen), bisect_right(cuts, period.last_seen)
        if first == end:
            yield phase._replace(watch=first)
            continue
        start = bisect_left(snapshots, period.first_seen)
        own = snapshots[start : bisect_right(snapshots, period.last_seen)]
        places = [0, *[bisect_left(own, cut) for cut in cuts[first:end]], len(own)]
        for watch, (place, following) in enumerate(pairwise(places), start=first):
            part = phase._replace(first_seen=own[place], last_seen=own[following - 1])
            yield part._replace(snapshots=following - place, watch=watch)


def _blind(phases: Sequence[Phase]) -> list[bool]:
    """The blindness of each phase, in time."""
    # Where nothing is computed, no list that differs would show.
    lists = [
        phase.verdict.completeness * phase.evaluated.nameservers * phase.verdict.shows_owners
        for phase in phases
    ]
    certainties = ({found.certainty for found in phase.evaluated.findings} for phase in phases)
    differing = [number for number, shown in enumerate(certainties) if POSSIBLE in shown]
    blind = [not phase.verdict.shows_owners for phase in phases]
    for before, after in pairwise(differing):
        most = max(lists[before + 1 : after], default=0.0)
        if most < lists[before] and most < lists[after]:
            blind[before + 1 : after] = [True] * (after - before - 1)
    return blind


# ---------------------------------------------------------------- reassignments


class _PhaseShares(NamedTuple):
    """The takers of each queue in a phase."""

    phase: Phase
    clients: frozenset[str]
    #: The takers of each queue, with their processes and how likely: doubt is a change too.
    takers: frozenset[tuple[QueueKey, str, int, float]]
    lists_agree: bool


class Reassignment(NamedTuple):
    """A row of ``reassignments``: one change of who takes which queue."""

    topic: str
    changed_at: Instant
    seen_before: Instant
    #: The first snapshot since in which the brokers' lists agree.
    settled_at: Instant | None
    state_id_before: str
    state_id: str
    clients_joined: list[str]
    clients_left: list[str]
    queues_before: int
    queues: int
    queues_moved: int
    lists_agree: bool


def find_reassignments(timeline: Timeline) -> list[Reassignment]:
    """One per phase that gives the queues to others.

    A phase that differs in addresses alone (a client reconnected) is not a reassignment, nor is one
    in which fewer lists came than before and after (``judge/test_timeline``).
    """
    seen = [phase for phase in reversed(timeline.phases) if not phase.is_blind]
    found: list[Reassignment] = []
    settled_at: Instant | None = None
    for now, before in pairwise(map(_shares, seen)) if len(seen) > 1 else ():
        if now.lists_agree:
            settled_at = now.phase.first_seen
        joined, left = now.clients - before.clients, before.clients - now.clients
        moved = {queue for queue, *_ in now.takers ^ before.takers}
        queues_before, queues = before.phase.verdict.queues, now.phase.verdict.queues
        if moved or joined or left or queues_before != queues:
            change = Reassignment(
                now.phase.topic,
                now.phase.first_seen,
                before.phase.last_seen,
                settled_at,
                before.phase.situation_id,
                now.phase.situation_id,
                sorted(joined),
                sorted(left),
                queues_before,
                queues,
                len(moved),
                now.lists_agree,
            )
            found.append(change)
    return found[::-1]


def _shares(phase: Phase) -> _PhaseShares:
    allocations = phase.evaluated.allocations()
    return _PhaseShares(
        phase,
        frozenset(allocation.client_id for allocation in allocations),
        frozenset(
            (queue, allocation.client_id, allocation.processes, allocation.view_weight)
            for allocation in allocations
            for queue in allocation.queues
        ),
        len({allocation.view_brokers for allocation in allocations}) <= 1,
    )
