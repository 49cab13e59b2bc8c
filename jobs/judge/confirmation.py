"""episodes and holdings -> confirmation: whether what the processes held shows the finding."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from jobs.instants import Instant
from jobs.judge.episodes import QueueEpisode
from jobs.judge.evaluated import QueueKey
from jobs.judge.holdings import Holding
from rebalance_core.findings import CERTAIN, DUPLICATE


@dataclass(frozen=True)
class _Queue:
    """What the processes held of one queue; all instants are rounds of running infos, ascending."""

    #: A process held it, no change before explaining that.
    settled: Sequence[Instant]
    #: Two processes held it, or more.
    shared: Sequence[Instant]
    #: All processes answered and none held it.
    unheld: Sequence[Instant]
    #: The stretches of logs whose result has it, once no change explains it, by their start.
    results: Sequence[Holding]


@dataclass(frozen=True)
class HoldingsOfTopic:
    """What the processes had of one topic, found by queue and time.

    A round of running infos is complete where as many processes answered as the phase has.
    """

    holdings: Sequence[Holding]
    _queues: dict[QueueKey, _Queue] = field(default_factory=dict)

    def of_queue(self, queue: QueueKey) -> _Queue:
        """Who had the queue, and when. Made when it is asked for: most queues have no finding."""
        if queue not in self._queues:
            self._queues[queue] = self._of_queue(queue)
        return self._queues[queue]

    def _of_queue(self, queue: QueueKey) -> _Queue:
        holders = self._holders.get(queue, ())
        held = Counter[Instant]()
        for each in holders:
            held.update(each.rounds)
        return _Queue(
            settled=sorted({time for each in holders if each.is_settled for time in each.rounds}),
            shared=sorted(time for time, processes in held.items() if processes > 1),
            unheld=[time for time in self._complete if time not in held],
            results=sorted(
                (each for each in holders if each.process.is_log and each.is_settled),
                key=lambda each: (each.since, each.until, each.process.client_id),
            ),
        )

    @cached_property
    def settled(self) -> Sequence[Instant]:
        """The complete rounds in which no change explains what some process holds."""
        settled = {time for each in self.holdings if each.is_settled for time in each.rounds}
        return [time for time in self._complete if time in settled]

    @cached_property
    def _complete(self) -> Sequence[Instant]:
        answered = Counter[Instant]()
        processes: dict[Instant, int] = {}
        for each in self.holdings:
            answered.update(each.rounds)
            processes.update(dict.fromkeys(each.rounds, each.processes))
        return sorted(time for time, number in answered.items() if number >= processes[time])

    @cached_property
    def _holders(self) -> Mapping[QueueKey, Sequence[Holding]]:
        holders: dict[QueueKey, list[Holding]] = defaultdict(list)
        for each in self.holdings:
            for queue in each.held:
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


def confirm(episode: QueueEpisode, index: HoldingsIndex) -> bool | None:
    """Whether what the processes held shows the finding; None where too few of them answered.

    DUPLICATE: true where two processes held the queue in one round; false where complete rounds
    never showed two. Where no round tells, two logs confirm it whose results have the queue at one
    time: they say what was computed, which is less than what was held. ORPHANED: true where a
    complete round showed no holder; false where rounds showed one, and none did that. Soon after a
    change processes hold what they had before, which refutes nothing; and what is POSSIBLE is there
    at times, so that no round without it refutes it.
    """
    if episode.topic not in index:
        return None
    of_topic = index[episode.topic]
    of_queue = of_topic.of_queue(episode.queue)
    is_duplicate = episode.kind == DUPLICATE
    if _any_in_run(of_queue.shared if is_duplicate else of_queue.unheld, episode):
        return True
    if _any_in_run(of_topic.settled if is_duplicate else of_queue.settled, episode):
        return False if episode.certainty == CERTAIN else None
    if is_duplicate and _results_overlap(of_queue.results, episode):
        return True
    return None


def _any_in_run(times: Sequence[Instant], episode: QueueEpisode) -> bool:
    place = bisect_left(times, episode.first_seen)
    return place < len(times) and times[place] <= episode.last_seen


def _results_overlap(results: Sequence[Holding], episode: QueueEpisode) -> bool:
    """Whether the results of two processes of claimants have the queue at one time of the run.

    In the order of their starts, two that overlap have neighbours between them that do; and they
    are of two processes, for one has no two at a time.
    """
    claimants = {claimant.client_id for claimant in episode.claimants}
    claimed = [
        each
        for each in results
        if each.process.client_id in claimants
        and each.since <= episode.last_seen
        and each.until >= episode.first_seen
    ]
    return any(one.until >= following.since for one, following in pairwise(claimed))
