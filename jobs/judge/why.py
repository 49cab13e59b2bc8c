"""stalls, running infos -> why a queue does not move: what its process reports, in all topics."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.instants import Instant
from jobs.judge.confirmation import HoldingsIndex
from jobs.judge.dossier import QueueOffsets
from jobs.judge.episodes import FaultEpisode
from jobs.judge.evaluated import QueueKey
from jobs.judge.holdings import Holding
from jobs.judge.tables import Row
from jobs.judge.timeline import Timeline
from jobs.kinds import FROZEN_PROCESS, PERSISTENT
from jobs.schemas import NOT_CONSUMING, NOT_LOCKED, NOT_PULLING
from rebalance_core.descriptions import EXPRESSION_MISMATCH
from rebalance_core.texts import Text

NOBODY_HOLDS_IT = Text(
    "no process holds it: see the running infos of those that it is computed for"
)
FROZEN = Text("frozen process: none of the queues of its process moves")
_OF_ACTIVITY = {
    NOT_LOCKED: Text(
        "no lock: its process consumes in order and does not get the queue's lock from the "
        "broker; another process may hold it"
    ),
    NOT_CONSUMING: Text(
        "a listener hangs: its process has messages of the queue and has consumed none for over "
        "60 s"
    ),
    NOT_PULLING: Text(
        "no pull: its process has no messages of the queue and has not asked for any for over 60 s"
    ),
}
REFUSED = Text(
    "its process asks for messages and does not get on: the broker refuses its pulls (the "
    "subscription is not known there), or the same messages fail again and again"
)
OTHER_FILTER = Text(
    "the broker refuses the pulls of its process: members filter the topic differently, the broker "
    "keeps the filter that came last, and serves nobody else (SUBSCRIPTION_NOT_LATEST)"
)


@dataclass(frozen=True)
class Processes:
    """What the group's processes hold, and whether it moves, over all topics."""

    holdings: HoldingsIndex
    timelines: Mapping[str, Timeline]
    #: By (topic, broker name, queue id).
    offsets: Mapping[tuple[str, str, int], QueueOffsets]

    def moves_elsewhere(
        self, client_id: str, but: Iterable[tuple[str, QueueKey]], since: Instant, until: Instant
    ) -> bool:
        """Whether a queue of the client moved in that time, but for these (topic, queue)."""
        left_out = set(but)
        return any(
            self._moved(topic, queue, since, until)
            for topic in self.timelines
            for queue in self._queues_of(client_id, topic, since, until)
            if (topic, queue) not in left_out
        )

    def moves_in_another_topic(
        self, topic: str, client_id: str, since: Instant, until: Instant
    ) -> bool:
        """Whether a queue of the client moved in that time, of any topic but this."""
        return any(
            self._moved(other, queue, since, until)
            for other in self.timelines
            if other != topic
            for queue in self._queues_of(client_id, other, since, until)
        )

    def without_refused(self, faults: Iterable[FaultEpisode]) -> list[FaultEpisode]:
        """The faults, but for processes that are frozen by their offsets alone while members filter
        the topic differently: a broker refuses their pulls, and they are well.

        One whose listener hangs in its running info is frozen all the same.
        """
        every = list(faults)
        return [
            each
            for each in every
            if each.fault != FROZEN_PROCESS
            or not _differs_in_filter(each.topic, each.first_seen, each.last_seen, every)
            or self._hangs(each)
        ]

    def _hangs(self, fault: FaultEpisode) -> bool:
        return any(
            each.process.client_id in fault.client_ids
            and NOT_CONSUMING in each.activities.values()
            and any(_moments(each, fault.first_seen, fault.last_seen))
            for each in (
                self.holdings[fault.topic].holdings if fault.topic in self.holdings else ()
            )
        )

    def _queues_of(
        self, client_id: str, topic: str, since: Instant, until: Instant
    ) -> set[QueueKey]:
        """What the client reported to hold, else what is computed for it alone."""
        if topic in self.holdings:
            reported = [
                each
                for each in self.holdings[topic].holdings
                if each.process.client_id == client_id and list(_moments(each, since, until))
            ]
            if reported:
                return {queue for each in reported for queue in each.held}
        began = [each for each in self.timelines[topic].phases if each.first_seen <= until]
        if not began:
            return set()
        mine: set[QueueKey] = set()
        others: set[QueueKey] = set()
        for each in began[-1].evaluated.allocations():
            (mine if each.client_id == client_id else others).update(each.queues)
        return mine - others

    def _moved(self, topic: str, queue: QueueKey, since: Instant, until: Instant) -> bool:
        offsets = self.offsets.get((topic, *queue))
        if offsets is None:
            return False
        start = np.searchsorted(offsets.times, since)
        end = np.searchsorted(offsets.times, until, side="right")
        return bool((np.diff(offsets.consumer_offsets[start:end]) > 0).any())

    def explain(self, stall: Row, faults: Iterable[FaultEpisode]) -> Mapping[str, object]:
        """The columns ``held`` and ``why`` of a stalled queue."""
        topic, queue = stall["topic"], (stall["broker_name"], stall["queue_id"])
        since, until = stall["first_seen"], stall["last_seen"]
        holders = self._holders(topic, queue, since, until)
        held = True if holders else None
        if not holders and topic in self.holdings:
            unheld = self.holdings[topic].of_queue(queue).unheld
            place = bisect_left(unheld, since)
            if place < len(unheld) and unheld[place] <= until:
                held = False
        return {"held": held, "why": self._why(stall, queue, holders, held, faults)}

    def _holders(
        self, topic: str, queue: QueueKey, since: Instant, until: Instant
    ) -> Sequence[Holding]:
        if topic not in self.holdings:
            return []
        return [
            each
            for each in self.holdings[topic].holders(queue)
            if not each.process.is_log and list(_moments(each, since, until))
        ]

    def _why(
        self,
        stall: Row,
        queue: QueueKey,
        holders: Sequence[Holding],
        held: bool | None,
        faults: Iterable[FaultEpisode],
    ) -> str | None:
        if held is False:
            return NOBODY_HOLDS_IT
        since, until = stall["first_seen"], stall["last_seen"]
        is_refused = _differs_in_filter(stall["topic"], since, until, faults)
        if holders:
            last = max(holders, key=lambda each: max(_moments(each, since, until)))
            activity = last.activities.get(queue)
            if activity is None:
                return OTHER_FILTER if is_refused else REFUSED
            client_id = last.process.client_id
            moves = self.moves_elsewhere(client_id, [(stall["topic"], queue)], since, until)
            why = _OF_ACTIVITY[activity]
            return why if moves else Text("{why}; no other queue of the process moves", why=why)
        if is_refused:
            return OTHER_FILTER
        is_frozen = any(
            fault.fault == FROZEN_PROCESS
            and fault.topic == stall["topic"]
            and set(fault.client_ids) <= set(stall["owners"])
            and fault.first_seen <= until
            and since <= fault.last_seen
            for fault in faults
        )
        return FROZEN if is_frozen else None


def _differs_in_filter(
    topic: str, since: Instant, until: Instant, faults: Iterable[FaultEpisode]
) -> bool:
    return any(
        (each.fault, each.topic, each.persistence) == (EXPRESSION_MISMATCH, topic, PERSISTENT)
        and each.first_seen <= until
        and since <= each.last_seen
        for each in faults
    )


def _moments(holding: Holding, since: Instant, until: Instant) -> Iterator[Instant]:
    """The answers of a holding in that time."""
    for place in range(bisect_left(holding.moments, since), len(holding.moments)):
        if holding.moments[place] > until:
            return
        yield holding.moments[place]
