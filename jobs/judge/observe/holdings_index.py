"""holdings -> index: what the processes had of a topic, by queue, by time and by round; and drift:
what clients held, or computed, against what was computed for them.

A client computes its share and then has to get it: a broker that it cannot reach, a lock that it
is not given, an offset that cannot be read, and it holds less than its share. Just after a change
it holds what it had before. A log shows more: what the client itself computed, and from lists of
which lengths. A result that no view gives comes from lists that no broker has, or not at all.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeAlias

from rebalance_core.grouping import grouped

from ...declared.dossier import ClientRun
from ...declared.instants import Instant
from ...declared.kinds import COMPUTED_NOT_HELD, HELD_NOT_COMPUTED, PERSISTENT
from ...schemas import NOT_LOCKED
from ..times import Extent, persistence
from .arrow_tables import Row
from .brokers import Absence
from .core_verdict import QueueKey
from .holdings import Holding, ReportingProcess
from .timeline import Phase

_moment = attrgetter("moment")


@dataclass
class AnswerRound:
    """The answers of one round about one topic."""

    round_: Instant
    #: The time of the last of them.
    moment: Instant
    #: The phases in which they came, by position: of several, a queue may have gone from one to
    #: another.
    phases: dict[int, Phase]
    #: The number of processes that answered, and their client ids.
    answered: int
    client_ids: set[str]
    #: The number of processes there are.
    processes: int
    #: No change explains what any of them holds.
    is_settled: bool
    #: The number of those whose answers are missing, and follow from others: see ``Holding``.
    bridged: int = 0

    @property
    def is_of_one_phase(self) -> bool:
        """True if the answers are of one moment, as far as the lists and routes show."""
        return len(self.phases) == 1

    @property
    def phase(self) -> Phase:
        """The one phase in which they came."""
        (phase,) = self.phases.values()
        return phase

    @property
    def position(self) -> int:
        """The position of that phase."""
        return self.phase.position

    @property
    def is_complete(self) -> bool:
        """True if as many processes answered as there are, all of them in one phase."""
        return self.is_of_one_phase and self.answered >= self.processes

    @property
    def tells_all(self) -> bool:
        """True if no change explains what the processes hold, and each answered itself: of two that
        share an id a broker asks the one or the other.
        """
        is_of_all = self.answered - self.bridged >= self.processes
        return self.is_complete and self.is_settled and is_of_all


class Refuted(NamedTuple):
    """A part of a finding's time in which the answers refute it: from ``begins`` up to ``ends``,
    without it. Beyond them the finding ends, an answer shows it, or the situation is another one.
    """

    begins: Instant
    ends: Instant
    #: The time from the first to the last of these answers.
    lasts: Instant


@dataclass(frozen=True)
class HoldingsOfTopic:
    """The holdings of one topic, found by queue and time.

    A process that broadcasts reads every queue for itself, and holds none for the group.
    """

    holdings: Sequence[Holding]

    def is_shared(self, queue: QueueKey, time: Extent) -> bool:
        """True if two or more processes held the queue in a round of that time."""
        # Of two that consume in order, the one that the broker gave no lock waits
        # (``cases/test_locked_out``).
        reading = (one for one in self.holders(queue) if one.activities[queue] != NOT_LOCKED)
        answered = Counter(round_ for holding in reading for round_ in holding.answered)
        rounds = (one for one in self.within(time) if one.is_of_one_phase)
        return any(answered[one.round_] > 1 for one in rounds)

    def is_unheld(self, queue: QueueKey, time: Extent) -> bool:
        """True where in a round of that time all processes answered and none held the queue; of a
        time without any, in the one before and the one after it, of one phase.
        """
        held = {round_ for holder in self.holders(queue) for round_ in holder.rounds}
        within = self.within(time)
        if not within:
            after = bisect_left(self.rounds, time.first_seen, key=_moment)
            around = self.rounds[max(after - 1, 0) : after + 1]
            if len(around) < 2 or around[0].phases.keys() != around[1].phases.keys():
                return False
            return all(one.is_complete and one.round_ not in held for one in around)
        return any(one.is_complete and one.round_ not in held for one in within)

    def is_settled(self, time: Extent) -> bool:
        """True if a round of that time shows for sure what the processes hold."""
        return any(answer_round.tells_all for answer_round in self.within(time))

    def refuted(self, queue: QueueKey, time: Extent, *, is_duplicate: bool) -> list[Refuted]:
        """The parts of that time whose rounds refute that several processes hold the queue, or that
        none does, one after the other and none between them that shows it; up to the nearest answer
        that does, but no further than the situation of the first and of the last of them goes: what
        is held follows from it, and says nothing of another one.
        """
        holders = Counter(
            round_
            for holder in self.holders(queue)
            if not is_duplicate or holder.activities[queue] != NOT_LOCKED
            for round_ in (holder.answered if is_duplicate else holder.rounds)
        )
        shown: list[tuple[bool, AnswerRound]] = []
        for answer_round in self.within(time):
            number = holders[answer_round.round_]
            shows = number > 1 if is_duplicate else answer_round.is_complete and not number
            refutes = answer_round.tells_all if is_duplicate else answer_round.is_settled and number
            if answer_round.is_of_one_phase and (shows or refutes):
                shown.append((shows, answer_round))
        by_shown = groupby(shown, key=itemgetter(0))
        runs = [(shows, [one for _, one in pairs]) for shows, pairs in by_shown]
        return [
            Refuted(
                of[0].moment if before else max(of[0].phase.first_seen, time.first_seen),
                after[0].moment if after else min(of[-1].phase.last_seen, time.last_seen) + 1,
                of[-1].moment - of[0].moment,
            )
            for (_, before), (shows, of), (_, after) in zip(
                [(True, []), *runs], runs, [*runs[1:], (True, [])], strict=False
            )
            if not shows
        ]

    def is_held(self, queue: QueueKey, time: Extent) -> bool:
        """True if a process held the queue then, no change before explaining that."""
        return any(holding.is_settled for holding in self.holders_in(queue, time))

    def holders_in(self, queue: QueueKey, time: Extent) -> list[Holding]:
        """The holders that answered in that time."""
        return [holder for holder in self.holders(queue) if time.those_of(holder.moments)]

    def of_clients(self, client_ids: Container[str], time: Extent) -> list[Holding]:
        """The holdings of these clients by answers of that time."""
        theirs = (holding for holding in self.holdings if holding.process.client_id in client_ids)
        return [holding for holding in theirs if time.those_of(holding.moments)]

    def within(self, time: Extent) -> Sequence[AnswerRound]:
        """The rounds whose last answers came in that time."""
        first = bisect_left(self.rounds, time.first_seen, key=_moment)
        return self.rounds[first : bisect_right(self.rounds, time.last_seen, key=_moment)]

    def holders(self, queue: QueueKey) -> Sequence[Holding]:
        """Each time that a process held the queue for the group, and could read it."""
        return self._holders.get(queue, ())

    @cached_property
    def rounds(self) -> Sequence[AnswerRound]:
        """The rounds, in the order of their last answers."""
        rounds: dict[Instant, AnswerRound] = {}
        for holding in self.holdings:
            for round_, moment in zip(holding.rounds, holding.moments, strict=True):
                found = rounds.get(round_)
                if found is None:
                    found = rounds[round_] = AnswerRound(round_, moment, {}, 0, set(), 0, True)
                found.moment = max(found.moment, moment)
                found.phases[holding.phase.position] = holding.phase
                found.answered += 1
                found.bridged += round_ in holding.bridged
                found.client_ids.add(holding.process.client_id)
                found.processes = max(found.processes, holding.phase.verdict.processes)
                found.is_settled &= holding.is_settled
        return sorted(rounds.values(), key=_moment)

    @cached_property
    def _holders(self) -> Mapping[QueueKey, Sequence[Holding]]:
        shared = (holding for holding in self.holdings if not holding.broadcasts)
        every = ((queue, holding) for holding in shared for queue in holding.activities)
        return grouped(pair for pair in every if pair[0][0] not in pair[1].beyond_reach)


class HoldingsIndex(dict[str, HoldingsOfTopic]):
    """The holdings of each topic; a topic that no process reported any of has none."""

    def __missing__(self, _: str) -> HoldingsOfTopic:
        return HoldingsOfTopic(())


def index_holdings(holdings: Iterable[Holding]) -> HoldingsIndex:
    """The holdings by topic."""
    by_topic = grouped((holding.topic, holding) for holding in holdings)
    return HoldingsIndex((topic, HoldingsOfTopic(holdings)) for topic, holdings in by_topic.items())


# ---------------------------------------------------------------- drift

SHARE_KEPT = "SHARE_KEPT"


class Drift(NamedTuple):
    """A row of ``allocation_drift``: a process, a queue and a time in which it drifted so."""

    topic: str
    process: ReportingProcess
    queue: QueueKey
    drift: str
    #: The largest share of the views under which the queue was computed for the process.
    probability: float
    first_seen: Instant
    last_seen: Instant
    observations: int
    persistence: str
    attributed_to: str | None
    #: The report of the process when it drifted last.
    run: ClientRun

    @property
    def client_id(self) -> str:
        """The client whose queues drift."""
        return self.process.client_id

    @property
    def is_extra(self) -> bool:
        """True if the queue is held and not computed; else it is computed and not held."""
        return self.drift == HELD_NOT_COMPUTED

    def is_within(self, absence: Absence) -> bool:
        """True where the queue's broker had no master in all of its time."""
        is_before = absence.ends is None or self.last_seen < absence.ends
        is_same = self.queue[0] == absence.broker_name
        return is_same and absence.begins <= self.first_seen and is_before

    @property
    def lasts(self) -> bool:
        """True if it lasts for more than a moment."""
        return self.persistence == PERSISTENT

    def row(self) -> Row:
        """The row, but for its group."""
        broker_name, queue_id = self.queue
        values = self._asdict()
        del values["queue"], values["run"]
        return {
            **values,
            **self.process._asdict(),
            "broker_name": broker_name,
            "queue_id": queue_id,
            "queue_count": self.run.queue_count,
            "client_count": self.run.client_count,
        }


#: A holding that shows a queue drift, and what explains it.
_Shown: TypeAlias = tuple[Holding, str | None]


def find_drift(holdings: Iterable[Holding], persistence_seconds: int) -> list[Drift]:
    """One per process, queue, drift and unbroken run of its holdings that show it.

    ``probability`` is the share of the views under which the queue was computed for the process:
    where the brokers' lists differ, one that is computed at times may well not be held. A log line
    drifts where it equals the result of no view, and then by what all views have in common.
    ``attributed_to`` says what explains it when it was last seen: what lasts longer than a change
    explains is not explained by it. A process that broadcasts reads every queue, whatever is
    computed. ``holdings`` are those of ``find_holdings``, in its order.
    """
    compared = (held for held in holdings if held.phase.is_computed and not held.broadcasts)
    return [
        _drift(drift, queue, shown, persistence_seconds)
        for _, process_holdings in groupby(compared, key=attrgetter("process", "topic"))
        for drift, queue, shown in _unbroken(process_holdings)
    ]


def _unbroken(in_time: Iterable[Holding]) -> list[tuple[str, QueueKey, list[_Shown]]]:
    """The drifts of one process and topic, each with the consecutive holdings that show it."""
    runs: list[tuple[str, QueueKey, list[_Shown]]] = []
    open_: dict[tuple[str, QueueKey], list[_Shown]] = {}
    share: frozenset[QueueKey] | None = None
    for holding in in_time:
        held = frozenset(holding.activities)
        follows = any(view.queues == held for view in holding.computed)
        attributed_to = holding.explained_by
        if follows and not holding.process.is_log:
            share = held
        elif attributed_to is None and held == share:
            # Still what it last had by the computation: it is suspended, or its rebalance fails.
            attributed_to = SHARE_KEPT
        before, open_ = open_, {}
        for drift, queue in _drifts(holding, held):
            shown = before.get((drift, queue))
            if shown is None:
                shown = []
                runs.append((drift, queue, shown))
            shown.append((holding, attributed_to))
            open_[drift, queue] = shown
    return runs


def _drifts(holding: Holding, held: frozenset[QueueKey]) -> Iterator[tuple[str, QueueKey]]:
    """Each queue that is held and not computed, or the other way round.

    A log's result that equals that of one view has nothing beyond it, and all that the views have
    in common: it has no drift.
    """
    views = [view.queues for view in holding.computed]
    if holding.has_lengths_of_phase:
        lengths = holding.run.queue_count, holding.run.client_count
        views = [view.queues for view in holding.computed if view.lengths == lengths] or views
    possible = frozenset[QueueKey]().union(*views)
    due = possible.intersection(*views) if holding.process.is_log else possible
    for queue in sorted(held - possible):
        yield HELD_NOT_COMPUTED, queue
    for queue in sorted(due - held):
        yield COMPUTED_NOT_HELD, queue


def _drift(drift: str, queue: QueueKey, shown: list[_Shown], persistence_seconds: int) -> Drift:
    (first, _), (last, attributed_to) = shown[0], shown[-1]
    probabilities = (
        sum((share.view_weight for share in holding.computed if queue in share.queues), start=0.0)
        for holding, _ in shown
    )
    return Drift(
        last.topic,
        last.process,
        queue,
        drift,
        min(1.0, max(probabilities)),
        first.first_seen,
        last.last_seen,
        # A log's period is one.
        sum(len(holding.answered) or 1 for holding, _ in shown),
        persistence(first.first_seen, last.last_seen, persistence_seconds),
        attributed_to,
        last.run,
    )
