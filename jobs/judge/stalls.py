"""queue offsets and periods -> stalls: queues that have an owner and do not move all the same.

A frozen process stays in every broker's list for about two minutes, and one that is stuck but still
heartbeats stays for ever: its queues have an owner by computation, and only their offsets show it.

The offsets of a topic are a matrix: a row for each queue, a column for each poll.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jobs.instants import Instant
from jobs.judge.dossier import Dossier, QueueOffsets
from jobs.judge.evaluated import Evaluated, QueueKey
from jobs.judge.extents import Extent, persistence
from jobs.judge.findings import Found, Stall
from jobs.judge.situations import Period
from rebalance_core.findings import ORPHANED

Flags: TypeAlias = NDArray[np.bool_]
Longs: TypeAlias = NDArray[np.int64]
#: By queue from when to when it had no owner, both included.
Orphaned: TypeAlias = Mapping[QueueKey, Collection[tuple[Instant, Instant]]]


class Owners(NamedTuple):
    """The client ids that a queue was computed for, sorted; ``sole``: one process owns it."""

    client_ids: tuple[str, ...]
    sole: bool


NOT_KNOWN = Owners((), False)


@dataclass(frozen=True)
class Intervals:
    """The times between two polls of each queue of a topic: [queue, poll] is what ends at the poll.

    It has no queues if none ever failed to move while another kept up.
    """

    queues: tuple[QueueKey, ...]
    #: Of each poll.
    times: Longs
    #: The queue's poll before, as a column.
    before: Longs
    #: Messages not consumed at the poll.
    backlog: Longs
    #: The queue had messages to consume; nothing else counts.
    counts: Flags
    #: The interval belongs to a stall.
    stalled: Flags
    #: By poll: some queue of the topic keeps up.
    any_keeps_up: Flags
    #: The situation in force at the poll before, as a place in ``owners``.
    situation: Longs
    #: By situation and queue; the last one is for the time before the first situation.
    owners: tuple[Mapping[QueueKey, Owners], ...]
    topic: str

    def owners_at(self, row: int, poll: int) -> Owners:
        """Who had the queue when the interval that ends at the poll began."""
        return self.owners[int(self.situation[row, poll])].get(self.queues[row], NOT_KNOWN)


def find_intervals(
    dossier: Dossier,
    topic: str,
    periods: Sequence[Period],
    evaluated: Mapping[str, Evaluated],
    orphaned: Orphaned,
) -> Intervals:
    """The intervals of a topic.

    A queue does not move if messages wait at both polls and its offset is the same. It is stalled
    if it has an owner and another queue kept up: without one to compare with, the whole group
    may not move, or have nothing to do. So a stall lasts from the first to the last time that
    another kept up.
    """
    offsets = dossier.offsets.get(topic, [])
    if not any(map(_stands_somewhere, offsets)):
        return _nothing(topic)
    polls = Polls.of(offsets)
    keeps_up = keeps_up_at(polls)
    any_keeps_up = np.logical_or.reduce(keeps_up)
    if not (polls.unmoved & any_keeps_up).any():
        return _nothing(topic)
    counts = polls.paired & ((polls.backlog_before > 0) | (polls.step != 0) | keeps_up)
    situation, owners, unowned = _owners(polls, counts, periods, evaluated)
    unmoved = polls.unmoved & ~unowned & ~orphaned_at(polls, orphaned)
    return Intervals(
        polls.queues,
        polls.times,
        polls.before,
        polls.backlog,
        counts,
        _stalled(unmoved, counts, any_keeps_up),
        any_keeps_up,
        situation,
        owners,
        topic,
    )


def orphaned_queues(found: Found) -> Mapping[str, Orphaned]:
    """By topic the queues that were orphaned at some time, whatever the certainty."""
    times: dict[str, dict[QueueKey, set[tuple[Instant, Instant]]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for each in found.queues:
        if each.kind == ORPHANED:
            whole = ((each.first_seen, each.last_seen),)
            times[each.topic][each.queue].update(each.times or whole)
    return times


def stall_episodes(intervals: Intervals, persistence_seconds: int) -> Iterator[Stall]:
    """The stalls of a topic: one per queue and unbroken run of polls over which it did not move."""
    times, backlog = intervals.times, intervals.backlog
    for row in np.flatnonzero(intervals.stalled.any(axis=1)).tolist():
        polls = np.flatnonzero(intervals.counts[row])
        for start, end in spans(intervals.stalled[row, polls]):
            before, last = intervals.before[row, polls[start]], polls[end - 1]
            first_seen, last_seen = int(times[before]), int(times[last])
            lasts = persistence(first_seen, last_seen, persistence_seconds)
            yield Stall(
                intervals.topic,
                Extent(first_seen, last_seen, end - start + 1, lasts, bool(last_seen == times[-1])),
                intervals.queues[row],
                backlog=int(backlog[row, last]),
                backlog_growth=int(backlog[row, last] - backlog[row, before]),
                owners=intervals.owners_at(row, last).client_ids,
            )


def spans(flags: Flags) -> list[tuple[int, int]]:
    """Where the flags are set: the start (inclusive) and end (exclusive) of each unbroken run.

    >>> spans(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _stands_somewhere(offsets: QueueOffsets) -> bool:
    """Whether the queue ever does not move: cheap to see, and in most topics all do."""
    waiting = offsets.broker_offsets > offsets.consumer_offsets
    if not waiting.any():
        return False
    still = offsets.consumer_offsets[1:] == offsets.consumer_offsets[:-1]
    return bool((waiting[1:] & waiting[:-1] & still).any())


def _nothing(topic: str) -> Intervals:
    longs, flags = np.zeros((0, 0), np.int64), np.zeros((0, 0), np.bool_)
    return Intervals(
        (), longs.ravel(), longs, longs, flags, flags, flags.ravel(), longs, ({},), topic
    )


@dataclass(frozen=True)
class Polls:
    """The polls of a topic's queues, each with the queue's poll before."""

    queues: tuple[QueueKey, ...]
    times: Longs
    present: Flags
    backlog: Longs
    #: The column of the queue's poll before; 0 where there is none.
    before: Longs
    #: The queue has this poll and one before.
    paired: Flags
    backlog_before: Longs
    #: By how much the consumer offset moved since then.
    step: Longs

    @classmethod
    def of(cls, offsets: Sequence[QueueOffsets]) -> Polls:
        """The polls of these queues."""
        # Nearly always all queues of a topic are asked at the same times.
        schedules = {each.times.tobytes(): each.times for each in offsets}
        times = np.unique(np.concatenate(list(schedules.values())))
        columns_of = {key: np.searchsorted(times, each) for key, each in schedules.items()}
        shape = len(offsets), len(times)
        present = np.zeros(shape, np.bool_)
        consumed = np.zeros(shape, np.int64)
        backlog = np.zeros(shape, np.int64)
        for row, each in enumerate(offsets):
            columns = columns_of[each.times.tobytes()]
            present[row, columns] = True
            consumed[row, columns] = each.consumer_offsets
            backlog[row, columns] = np.maximum(each.broker_offsets - each.consumer_offsets, 0)
        # The last poll that the queue has, as of each column; shifted by one, the poll before.
        latest = np.maximum.accumulate(np.where(present, np.arange(shape[1]), -1), axis=1)
        before = np.roll(latest, 1, axis=1)
        before[:, 0] = -1
        paired = present & (before >= 0)
        before = np.maximum(before, 0)
        return cls(
            tuple((each.broker_name, each.queue_id) for each in offsets),
            times,
            present,
            backlog,
            before,
            paired,
            np.take_along_axis(backlog, before, axis=1),
            consumed - np.take_along_axis(consumed, before, axis=1),
        )

    @property
    def waits(self) -> Flags:
        """Messages wait, and the offset is that of the poll before."""
        waits: Flags = self.paired & (self.backlog > 0) & (self.step == 0)
        return waits

    @property
    def unmoved(self) -> Flags:
        """Messages wait at both polls, and the offset is the same."""
        unmoved: Flags = self.waits & (self.backlog_before > 0)
        return unmoved


def keeps_up_at(polls: Polls) -> Flags:
    """Whether the queue keeps up at the poll.

    A queue keeps up where its offset moves; and, once moved, for as long as nothing waits in it and
    nothing new happens to the topic's queues: after a burst of messages nobody moves, and those
    that are done with their share kept up. What happens is that a queue moves, or that messages
    come to one that had none and stay: from there on it may be that no queue moves.
    """
    columns = np.arange(len(polls.times))
    # Of a queue that was missing from a poll nothing shows when it moved.
    since = np.where(polls.paired, polls.before, -1)
    moved = polls.paired & (polls.step > 0) & (since == since.max(axis=0))
    happened = (moved | (polls.waits & (polls.backlog_before == 0))).any(axis=0)
    moved_at = np.maximum.accumulate(np.where(moved, columns, -1), axis=1)
    happened_at = np.maximum.accumulate(np.where(happened, columns, -1))
    is_latest = (moved_at >= 0) & (moved_at == happened_at)
    keeps_up: Flags = is_latest & ((moved_at == columns) | (polls.backlog == 0))
    return keeps_up & polls.present


def _stalled(unmoved: Flags, counts: Flags, any_keeps_up: Flags) -> Flags:
    """Of each unbroken run without a move, from the first to the last time another kept up."""
    stalled = np.zeros_like(unmoved)
    for row in np.flatnonzero((unmoved & any_keeps_up).any(axis=1)).tolist():
        polls = np.flatnonzero(counts[row])
        for start, end in spans(unmoved[row, polls]):
            run = polls[start:end]
            contrasted = np.flatnonzero(any_keeps_up[run])
            if contrasted.size:
                stalled[row, run[contrasted[0] : contrasted[-1] + 1]] = True
    return stalled


def orphaned_at(polls: Polls, orphaned: Orphaned) -> Flags:
    """Where nobody owned the queue at one of the polls, or in half of the time between them."""
    explained = np.zeros_like(polls.present)
    for row, queue in enumerate(polls.queues):
        for first, last in orphaned.get(queue, ()):
            since, until = polls.times[polls.before[row]], polls.times
            at_a_poll = ((first <= since) & (since <= last)) | ((first <= until) & (until <= last))
            shared = np.minimum(last, until) - np.maximum(first, since)
            explained[row] |= at_a_poll | (2 * shared >= until - since)
    return explained


def _owners(
    polls: Polls,
    counts: Flags,
    periods: Sequence[Period],
    evaluated: Mapping[str, Evaluated],
) -> tuple[Longs, tuple[Mapping[QueueKey, Owners], ...], Flags]:
    """The situation of each interval, the owners by situation, and where nobody has the queue.

    A situation holds until the snapshot that shows another: offsets have their polls at other
    times. Nothing shows whose a queue is before the first, nor where it was not audited; where it
    was, a queue that nobody takes has no owner.
    """
    first_seen = np.array([each.first_seen for each in periods], np.int64)
    in_force = np.searchsorted(first_seen, polls.times, side="right") - 1
    numbers: dict[str, int] = {}
    of_period = [numbers.setdefault(each.situation.situation_id, len(numbers)) for each in periods]
    # The last place is for the time before the first period: -1 finds it.
    situation = np.array([*of_period, len(numbers)], np.int64)[in_force][polls.before]
    owners: list[Mapping[QueueKey, Owners]] = [{}] * (len(numbers) + 1)
    unowned = np.zeros((len(numbers) + 1, len(polls.queues)), np.bool_)
    is_asked = np.zeros(len(numbers) + 1, np.bool_)
    is_asked[situation[counts]] = True
    for situation_id, number in numbers.items():
        if is_asked[number]:
            owners[number] = _owners_of(evaluated[situation_id])
            if evaluated[situation_id].coverage == "AUDITED":
                unowned[number] = [queue not in owners[number] for queue in polls.queues]
    rows = np.arange(len(polls.queues))[:, np.newaxis]
    return situation, tuple(owners), unowned[situation, rows]


def _owners_of(evaluated: Evaluated) -> Mapping[QueueKey, Owners]:
    client_ids: dict[QueueKey, set[str]] = defaultdict(set)
    processes: dict[QueueKey, float] = defaultdict(float)
    for each in evaluated.allocations():
        for queue in each.queues:
            client_ids[queue].add(each.client_id)
            processes[queue] += each.processes * each.view_weight
    return {
        queue: Owners(tuple(sorted(ids)), len(ids) == 1 and abs(processes[queue] - 1) < 1e-9)
        for queue, ids in client_ids.items()
    }
