"""holdings -> index: what the processes had of a topic, by queue, by time and by round."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

from rebalance_core.grouping import grouped

from ...declared.instants import Instant
from ...schemas import NOT_LOCKED
from ..times.extents import Extent
from .core_verdict import QueueKey
from .holdings import Holding
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
    """A part of a finding's time in which the answers refute it: from ``since`` up to ``until``,
    without it. Beyond them the finding ends, an answer shows it, or the situation is another one.
    """

    since: Instant
    until: Instant
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
        # Of two that consume in order, the one that the broker gave no lock waits.
        reading = (one for one in self.holders(queue) if one.activities[queue] != NOT_LOCKED)
        answered = Counter(round_ for holding in reading for round_ in holding.answered)
        return any(
            answer_round.is_of_one_phase and answered[answer_round.round_] > 1
            for answer_round in self.within(time)
        )

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
            return all(
                answer_round.is_complete and answer_round.round_ not in held
                for answer_round in around
            )
        return any(
            answer_round.is_complete and answer_round.round_ not in held for answer_round in within
        )

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
        runs = [
            (shows, [answer_round for _, answer_round in of_run])
            for shows, of_run in groupby(shown, key=itemgetter(0))
        ]
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
        return grouped(
            (queue, holding)
            for holding in self.holdings
            if not holding.broadcasts
            for queue in holding.activities
            if queue[0] not in holding.beyond_reach
        )


class HoldingsIndex(dict[str, HoldingsOfTopic]):
    """The holdings of each topic; a topic that no process reported any of has none."""

    def __missing__(self, _: str) -> HoldingsOfTopic:
        return HoldingsOfTopic(())


def index_holdings(holdings: Iterable[Holding]) -> HoldingsIndex:
    """The holdings by topic."""
    by_topic = grouped((holding.topic, holding) for holding in holdings)
    return HoldingsIndex((topic, HoldingsOfTopic(holdings)) for topic, holdings in by_topic.items())
