"""stalls -> frozen processes: clients none of whose queues moves while those of others do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jobs.judge.case import Case
from jobs.judge.confirmation import HoldingsOfTopic
from jobs.judge.evaluated import QueueKey
from jobs.judge.extents import Extent, persistence
from jobs.judge.findings import Fault, Found
from jobs.judge.stalls import (
    NOT_KNOWN,
    Flags,
    Intervals,
    Longs,
    find_intervals,
    orphaned_queues,
    spans,
    stall_episodes,
)
from jobs.judge.why import moves
from jobs.judge.words import between, queues_in_words, waiting_in_words
from jobs.kinds import FROZEN_PROCESS
from jobs.schemas import NOT_LOCKED
from rebalance_core.english import agreeing
from rebalance_core.texts import Text

_REMEDY = Text(
    "see whether the process is stopped, in a long garbage collection or blocked in its "
    "listener, and restart it; its queues go to others about 130 s after its last "
    "heartbeat, at once if it shuts down in order"
)


def stalled_queues(case: Case, found: Found) -> Found:
    """The stalled queues, and the faults FROZEN_PROCESS of those who should have moved them."""
    seconds, orphaned = case.persistence_seconds, orphaned_queues(found)
    for topic in case.dossier.offsets:
        # There may be offsets of a topic that no member was seen to subscribe to.
        periods = case.situations.by_topic.get(topic, ())
        intervals = find_intervals(
            case.dossier, topic, periods, case.evaluated, orphaned.get(topic, {})
        )

        def moves_elsewhere(client_id: str, time: Extent, topic: str = topic) -> bool:
            return moves(case, case.timelines.keys() - {topic}, client_id, time)

        frozen = frozen_processes(intervals, seconds, case.holdings.get(topic), moves_elsewhere)
        found = found.plus(frozen, stalls=stall_episodes(intervals, seconds))
    return found


def frozen_processes(
    intervals: Intervals,
    persistence_seconds: int,
    holdings: HoldingsOfTopic | None = None,
    moves_elsewhere: Callable[[str, Extent], bool] = lambda *_: False,
) -> Iterator[Fault]:
    """One fault per client and unbroken run of polls in which all its queues with messages stalled.

    Its queues are those that it reports to hold, if it answered between the two polls, else those
    that are computed for it. Where one of its queues moves, of whatever topic, the process lives:
    that is a message that cannot be consumed, or a lock. A client that shares a queue is left out:
    either may be the one that does not move. When nobody at all moved, that this client did not
    is no evidence against it.
    """
    for client_id, had in _suspects(intervals).items():
        reported = _reported(intervals, holdings, client_id)
        rows = np.union1d(
            np.array([row for row, _ in had], np.int64), np.flatnonzero(reported.holds.any(axis=1))
        )
        held, frozen = _held_and_frozen(intervals, rows, had, reported)
        polls = np.flatnonzero(held.any(axis=0))
        for start, end in spans(frozen[polls]):
            of_run = polls[start:end]
            in_run = np.zeros_like(held)
            in_run[:, of_run] = held[:, of_run]
            first_seen = int(intervals.times[intervals.before[rows][in_run].min()])
            last_seen = int(intervals.times[of_run[-1]])
            lasts = persistence(first_seen, last_seen, persistence_seconds)
            ongoing = bool(last_seen == intervals.times[-1])
            extent = Extent(first_seen, last_seen, len(of_run) + 1, lasts, ongoing)
            if moves_elsewhere(client_id, extent):
                continue
            queues = sorted(intervals.queues[row] for row in rows[in_run.any(axis=1)])
            waiting = int(intervals.backlog[rows, of_run[-1]][held[:, of_run[-1]]].sum())
            answered = bool(reported.answered[of_run].any())
            yield Fault(
                intervals.topic,
                extent,
                FROZEN_PROCESS,
                evidence=_evidence(client_id, queues, extent, waiting, answered=answered),
                remedy=_REMEDY,
                client_ids=(client_id,),
                broker_names=tuple(dict.fromkeys(broker_name for broker_name, _ in queues)),
                queues_affected=len(queues),
            )


class _Reported(NamedTuple):
    """What a client reported to hold of the topic, between a poll and the one before.

    Between two equal answers in one phase it holds the same.
    """

    #: By poll whether it answered.
    answered: Flags
    #: [queue, poll]; a queue whose lock it waits for is none that it could move.
    holds: Flags


def _reported(intervals: Intervals, holdings: HoldingsOfTopic | None, client_id: str) -> _Reported:
    shape = len(intervals.queues), len(intervals.times)
    reported = _Reported(np.zeros(shape[1], np.bool_), np.zeros(shape, np.bool_))
    places = {queue: row for row, queue in enumerate(intervals.queues)}
    for each in holdings.holdings if holdings else ():
        if each.process.client_id == client_id and not each.process.is_log:
            first, last = np.searchsorted(intervals.times, [each.since, each.until])
            reported.answered[first : last + 1] = True
            for queue in each.held:
                if queue in places and each.activities.get(queue) != NOT_LOCKED:
                    reported.holds[places[queue], first : last + 1] = True
    return reported


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
    intervals: Intervals, rows: Longs, had: Mapping[tuple[int, int], bool], reported: _Reported
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
    owns = np.where(reported.answered, reported.holds[rows], is_owner[places, situation])
    held = intervals.counts[rows] & intervals.any_keeps_up & owns
    lives = held & ~(intervals.stalled[rows] & is_sole[places, situation])
    return held, np.logical_or.reduce(held) & ~np.logical_or.reduce(lives)


def _evidence(
    client_id: str, queues: Sequence[QueueKey], time: Extent, waiting: int, *, answered: bool
) -> Text:
    """``answered``: the client itself reports to hold them; else they are computed for it."""
    named = queues_in_words(queues)
    if answered:
        owned = Text("{client} holds {queues}", client=client_id, queues=named)
    else:
        owned = agreeing(
            len(queues),
            "{queues} is computed for {client}",
            "{queues} are computed for {client}",
            client=client_id,
            queues=named,
        )
    moved = agreeing(len(queues), "it did not move", "none of them moved")
    return Text(
        "{owned}; {moved} {time} while other clients' queues did; {waiting}",
        owned=owned,
        moved=moved,
        time=between(time.first_seen, time.last_seen),
        waiting=waiting_in_words(waiting),
    )
