"""stalls -> frozen processes: clients none of whose queues moves while those of others do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby

import numpy as np

from jobs.instants import Instant
from jobs.judge.episodes import FaultEpisode, persistence
from jobs.judge.evaluated import QueueKey
from jobs.judge.stalls import NOT_KNOWN, Flags, Intervals, Longs, spans
from jobs.kinds import FROZEN_PROCESS
from jobs.text import time_of_day
from rebalance_core.english import list_of, noun, queues_of

#: More names than this in one sentence nobody reads; the columns have them all.
_MOST_NAMES = 5

_REMEDY = (
    "see whether the process is stopped, in a long garbage collection or blocked in its "
    "listener, and restart it; its queues go to others about 130 s after its last "
    "heartbeat, at once if it shuts down in order"
)


def frozen_processes(intervals: Intervals, persistence_seconds: int) -> list[FaultEpisode]:
    """One fault per client and unbroken run of polls in which all its queues with messages stalled.

    Where one of its queues moves the process lives: that is a message that cannot be consumed, or a
    lock. A client that shares a queue is left out: either may be the one that stands still. When
    nobody at all moved, that this client did not says nothing about it.
    """
    faults: list[FaultEpisode] = []
    for client_id, had in _suspects(intervals).items():
        rows = np.array(sorted({row for row, _ in had}), np.int64)
        held, frozen = _held_and_frozen(intervals, rows, had)
        polls = np.flatnonzero(held.any(axis=0))
        for start, end in spans(frozen[polls]):
            faults.append(
                _fault(intervals, client_id, rows, held, polls[start:end], persistence_seconds)
            )
    return faults


def _suspects(intervals: Intervals) -> Mapping[str, Mapping[tuple[int, int], bool]]:
    """By client that had a stalled queue alone: the queues of each situation that it had, as
    (row, situation), and whether alone.
    """
    stalled = np.argwhere(intervals.stalled & intervals.any_keeps_up).tolist()
    owners = {intervals.owners_at(row, poll) for row, poll in stalled}
    suspects = {client_id for each in owners if each.sole for client_id in each.client_ids}
    had: dict[str, dict[tuple[int, int], bool]] = {each: {} for each in sorted(suspects)}
    if suspects:
        for number, by_queue in enumerate(intervals.owners):
            for row, queue in enumerate(intervals.queues):
                owner = by_queue.get(queue, NOT_KNOWN)
                for client_id in suspects.intersection(owner.client_ids):
                    had[client_id][row, number] = owner.sole
    return had


def _held_and_frozen(
    intervals: Intervals, rows: Longs, had: Mapping[tuple[int, int], bool]
) -> tuple[Flags, Flags]:
    """[queue, poll] which intervals count of the queues that a client had, and by poll whether all
    of these stalled.
    """
    is_owner = np.zeros((len(rows), len(intervals.owners)), np.bool_)
    is_sole = np.zeros_like(is_owner)
    for (row, number), sole in had.items():
        place = np.searchsorted(rows, row)
        is_owner[place, number] = True
        is_sole[place, number] = sole
    situation = intervals.situation[rows]
    places = np.arange(len(rows))[:, np.newaxis]
    held = intervals.counts[rows] & intervals.any_keeps_up & is_owner[places, situation]
    lives = held & ~(intervals.stalled[rows] & is_sole[places, situation])
    return held, np.logical_or.reduce(held) & ~np.logical_or.reduce(lives)


def _fault(
    intervals: Intervals,
    client_id: str,
    rows: Longs,
    held: Flags,
    polls: Longs,
    persistence_seconds: int,
) -> FaultEpisode:
    """The fault of a client over these polls."""
    in_run = np.zeros_like(held)
    in_run[:, polls] = held[:, polls]
    first_seen = int(intervals.times[intervals.before[rows][in_run].min()])
    last_seen = int(intervals.times[polls[-1]])
    queues = sorted(intervals.queues[row] for row in rows[in_run.any(axis=1)])
    waiting = int(intervals.backlog[rows, polls[-1]][held[:, polls[-1]]].sum())
    return FaultEpisode(
        topic=intervals.topic,
        fault=FROZEN_PROCESS,
        first_seen=first_seen,
        last_seen=last_seen,
        snapshots=len(polls) + 1,
        persistence=persistence(first_seen, last_seen, persistence_seconds),
        ongoing=bool(last_seen == intervals.times[-1]),
        evidence=_evidence(client_id, queues, first_seen, last_seen, waiting),
        remedy=_REMEDY,
        client_ids=(client_id,),
        client_addrs=(),
        broker_names=tuple(dict.fromkeys(broker_name for broker_name, _ in queues)),
        queues_affected=len(queues),
        findings_cleared=0,
        findings_left=0,
        moves=(),
    )


def _evidence(
    client_id: str,
    queues: Sequence[QueueKey],
    first_seen: Instant,
    last_seen: Instant,
    waiting: int,
) -> str:
    held = list_of(
        (
            queues_of(broker_name, [queue_id for _, queue_id in of_broker])
            for broker_name, of_broker in groupby(queues, key=lambda queue: queue[0])
        ),
        _MOST_NAMES,
        "more brokers",
    )
    moved = "none of them moved" if len(queues) > 1 else "it did not move"
    return (
        f"{client_id} holds {held}; {moved} from {_time_of_day(first_seen)} to "
        f"{_time_of_day(last_seen)} UTC while other clients' queues did; "
        f"{waiting} {noun(waiting, 'message waits', 'messages wait')}"
    )


def _time_of_day(moment: Instant) -> str:
    return time_of_day(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment))
