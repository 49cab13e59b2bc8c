"""episodes and holdings -> confirmation: whether what the processes held shows the finding."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from jobs.instants import Instant
from jobs.judge.evaluated import QueueKey
from jobs.judge.findings import QueueFinding
from jobs.judge.holdings import Holding
from rebalance_core.findings import CERTAIN, DUPLICATE


@dataclass(frozen=True)
class HeldOfQueue:
    """What the processes held of one queue; all instants are those of rounds, ascending.

    A process that broadcasts reads every queue for itself, and holds none for the group.
    """

    #: A process held it, no change before explaining that.
    settled: Sequence[Instant]
    #: Two processes held it, or more.
    shared: Sequence[Instant]
    #: All processes answered and none held it.
    unheld: Sequence[Instant]
    #: The periods of logs whose result has it, once no change explains it, by their start.
    results: Sequence[Holding]


@dataclass
class Round:
    """The answers of one round about one topic."""

    #: When the last of them came.
    moment: Instant
    #: The phases in which they came: of several, a queue may have gone from one to another.
    positions: set[int]
    #: So many processes answered.
    answered: int
    #: So many there are.
    processes: int
    #: No change explains what any of them holds.
    is_settled: bool

    @property
    def is_of_one_phase(self) -> bool:
        """Whether the answers are of one moment, as far as the lists and routes show."""
        return len(self.positions) == 1

    @property
    def is_complete(self) -> bool:
        """Whether as many processes answered as there are, all of them in one phase."""
        return self.is_of_one_phase and self.answered >= self.processes


@dataclass(frozen=True)
class HoldingsOfTopic:
    """What the processes had of one topic, found by queue and time."""

    holdings: Sequence[Holding]
    _queues: dict[QueueKey, HeldOfQueue] = field(default_factory=dict)

    def of_queue(self, queue: QueueKey) -> HeldOfQueue:
        """Who had the queue, and when. Made when it is asked for: most queues have no finding."""
        if queue not in self._queues:
            self._queues[queue] = self._of_queue(queue)
        return self._queues[queue]

    def _of_queue(self, queue: QueueKey) -> HeldOfQueue:
        holders = self.holders(queue)
        answered = Counter(round_ for each in holders for round_ in each.answered)
        held = {round_ for each in holders for round_ in each.rounds}
        return HeldOfQueue(
            settled=sorted({time for each in holders if each.is_settled for time in each.moments}),
            shared=sorted(
                self.rounds[round_].moment
                for round_, processes in answered.items()
                if processes > 1 and self.rounds[round_].is_of_one_phase
            ),
            unheld=[
                each.moment
                for round_, each in self.rounds.items()
                if each.is_complete and round_ not in held
            ],
            results=sorted(
                (each for each in holders if each.process.is_log and each.is_settled),
                key=lambda each: (each.first_seen, each.last_seen, each.process.client_id),
            ),
        )

    def holders(self, queue: QueueKey) -> Sequence[Holding]:
        """Each time that a process held the queue for the group, and could read it."""
        return self._holders.get(queue, ())

    @cached_property
    def settled(self) -> Sequence[Instant]:
        """The complete rounds in which no change explains what the processes hold."""
        return [
            each.moment for each in self.rounds.values() if each.is_complete and each.is_settled
        ]

    @cached_property
    def rounds(self) -> Mapping[Instant, Round]:
        """The rounds, in the order of their last answers."""
        rounds: dict[Instant, Round] = {}
        for each in self.holdings:
            for round_, moment in zip(each.rounds, each.moments, strict=True):
                found = rounds.get(round_)
                if found is None:
                    found = rounds[round_] = Round(moment, set(), 0, 0, True)
                found.moment = max(found.moment, moment)
                found.positions.add(each.phase.position)
                found.answered += 1
                found.processes = max(found.processes, each.phase.verdict.processes)
                found.is_settled &= each.is_settled
        return dict(sorted(rounds.items(), key=lambda each: each[1].moment))

    @cached_property
    def _holders(self) -> Mapping[QueueKey, Sequence[Holding]]:
        holders: dict[QueueKey, list[Holding]] = defaultdict(list)
        for each in self.holdings:
            if not each.broadcasts:
                for queue in each.held:
                    if queue[0] not in each.beyond_reach:
                        holders[queue].append(each)
        return holders


#: By topic.
HoldingsIndex: TypeAlias = Mapping[str, HoldingsOfTopic]


def index_holdings(holdings: Iterable[Holding]) -> HoldingsIndex:
    """The holdings by topic, as ``confirm`` looks them up."""
    by_topic: dict[str, list[Holding]] = defaultdict(list)
    for each in holdings:
        by_topic[each.topic].append(each)
    return {topic: HoldingsOfTopic(of_topic) for topic, of_topic in by_topic.items()}


def confirm(episode: QueueFinding, index: HoldingsIndex) -> bool | None:
    """Whether what the processes held shows the finding; None where too few of them answered.

    DUPLICATE: true where two processes held the queue in one round; false where complete rounds
    never showed two. Where no round decides, two logs confirm it whose results have the queue at
    the same time: they show what was computed, which is less than what was held. ORPHANED: true if
    a complete round showed no holder; false where rounds showed one, and none did that. Soon after
    a change processes hold what they had before, which refutes nothing; and what is POSSIBLE is
    there at times, so that no round without it refutes it.
    """
    if episode.topic not in index:
        return None
    of_topic = index[episode.topic]
    of_queue = of_topic.of_queue(episode.queue)
    is_duplicate = episode.kind == DUPLICATE
    if episode.extent.those_of(of_queue.shared if is_duplicate else of_queue.unheld):
        return True
    if episode.extent.those_of(of_topic.settled if is_duplicate else of_queue.settled):
        return False if episode.certainty == CERTAIN else None
    if is_duplicate and _results_overlap(of_queue.results, episode):
        return True
    return None


def _results_overlap(results: Sequence[Holding], episode: QueueFinding) -> bool:
    """Whether the results of two processes of claimants have the queue at one time of the run.

    In the order of their starts, two that overlap have neighbours between them that do; and they
    are of two processes, for one has no two at a time.
    """
    claimants = {claimant.client_id for claimant in episode.claimants}
    claimed = [
        each for each in results if each.process.client_id in claimants and episode.overlaps(each)
    ]
    return any(one.last_seen >= following.first_seen for one, following in pairwise(claimed))
