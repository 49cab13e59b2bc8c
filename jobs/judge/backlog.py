"""offsets -> backlog: what was not consumed of a queue when a finding ended, and how it grew; and
whether somebody reads it.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..instants import Instant
from .dossier import QueueOffsets

#: So often at least the offset of a queue moves that somebody reads: an administrator who resets
#: an offset, or a last commit of who had the queue before, moves it once.
_READ_AGAIN = 2
#: A reader commits what it has read each 5 s (``persistConsumerOffsetInterval``): at a poll a small
#: part of what came since the last poll is left, here at most a half.
_NOT_FAR = 2
#: In at least half of the intervals.
_MOST = 2


class Backlog(NamedTuple):
    """Messages that were not consumed; None where the offsets do not show it."""

    #: At the last poll up to the end.
    messages: int | None = None
    #: Since the last poll up to the beginning; where there is none, since the first poll of all.
    growth: int | None = None
    #: The growth, of the messages that came meanwhile; None where none came.
    unread_share: float | None = None


NOT_KNOWN = Backlog()


def backlog(offsets: QueueOffsets | None, first_seen: Instant, last_seen: Instant) -> Backlog:
    """The backlog of a queue over the time of a finding.

    What lies there when it ends; what was seen later has been consumed since.

    >>> polls = QueueOffsets(
    ...     "T", "b", 0, np.array([1, 4, 9]), np.array([10, 50, 90]), np.array([10, 20, 90])
    ... )
    >>> backlog(polls, first_seen=2, last_seen=5)
    Backlog(messages=30, growth=30, unread_share=0.75)
    """
    end = -1 if offsets is None else last_up_to(offsets, last_seen)
    if offsets is None or end < 0:
        return NOT_KNOWN
    start = max(last_up_to(offsets, first_seen), 0)
    messages = waiting_at(offsets, end)
    if offsets.times[end] == offsets.times[start]:
        return Backlog(messages)
    growth = messages - waiting_at(offsets, start)
    came = int(offsets.broker_offsets[end]) - int(offsets.broker_offsets[start])
    return Backlog(messages, growth, growth / came if came else None)


def is_read(offsets: QueueOffsets | None, times: Iterable[tuple[Instant, Instant]]) -> bool | None:
    """Whether somebody reads the queue, as its offsets show in these times (both ends included).

    True: where there was something to read, the offset moved in at least half of the intervals
    between two polls, again and again, and in most of these intervals what waited at the end was
    less than half of what came: a reader is never far behind, while an owner for a moment reads all
    that waits and leaves again. Who works off a backlog without a break reads too. False: messages
    waited, and it did not move. None: the offsets do not show it.

    >>> seconds, came = np.array([0, 60, 120, 180]), np.array([10, 20, 30, 40])
    >>> [
    ...     is_read(QueueOffsets("T", "b", 0, seconds, came, np.array(consumed)), [(0, 180)])
    ...     for consumed in ([10, 20, 30, 40], [5, 5, 5, 5], [5, 5, 30, 30], [8, 14, 22, 33])
    ... ]
    [True, False, None, None]
    """
    if offsets is None:
        return None
    moved, unmoved, kept_up, worked_off = _intervals(offsets, times)
    if moved >= max(_READ_AGAIN, unmoved):
        reads = _MOST * kept_up >= moved + unmoved or worked_off == moved + unmoved
        return True if reads else None
    return False if unmoved and not moved else None


def is_always_read(offsets: QueueOffsets | None, times: Iterable[tuple[Instant, Instant]]) -> bool:
    """Whether the queue was read in every interval of these times, and never much was left.

    As ``is_read``, but of every interval in which there was something to read: a queue that has a
    reader for most of the time is not always read.

    >>> seconds, came = np.array([0, 60, 120, 180]), np.array([10, 20, 30, 40])
    >>> [
    ...     is_always_read(QueueOffsets("T", "b", 0, seconds, came, np.array(read)), [(0, 180)])
    ...     for read in ([10, 20, 30, 40], [8, 18, 29, 38], [10, 20, 20, 40], [10, 14, 29, 38])
    ... ]
    [True, True, False, False]
    """
    if offsets is None:
        return False
    moved, unmoved, kept_up, _ = _intervals(offsets, times)
    return moved >= _READ_AGAIN and not unmoved and kept_up == moved


def share_shown(offsets: QueueOffsets | None, times: Iterable[tuple[Instant, Instant]]) -> float:
    """Of these times (both ends included) the share that lies between two polls of the queue.

    >>> share_shown(
    ...     QueueOffsets("T", "b", 0, np.array([60, 120]), np.array([1, 2]), np.array([1, 2])),
    ...     [(0, 150), (300, 330)],
    ... )
    0.3333333333333333
    """
    if offsets is None:
        return 0.0
    shown = whole = 0
    for since, until in times:
        polls = offsets.times[(offsets.times >= since) & (offsets.times <= until)]
        shown += int(np.ptp(polls)) if polls.size else 0
        whole += until - since
    return shown / whole if whole else 0.0


class _Intervals(NamedTuple):
    """How many intervals between two polls there are of each kind."""

    #: The offset moved.
    moved: int
    #: It did not, and messages waited.
    unmoved: int
    #: It moved, and at most half of what came was left.
    kept_up: int
    #: It moved, and more than what came was left: what lay there before is being read.
    worked_off: int


def _intervals(offsets: QueueOffsets, times: Iterable[tuple[Instant, Instant]]) -> _Intervals:
    moved = unmoved = kept_up = worked_off = 0
    for since, until in times:
        start, end = np.searchsorted(offsets.times, since), last_up_to(offsets, until) + 1
        waiting = offsets.broker_offsets[start:end] > offsets.consumer_offsets[start:end]
        came = np.diff(offsets.broker_offsets[start:end])
        steps = np.diff(offsets.consumer_offsets[start:end])
        left = (offsets.broker_offsets - offsets.consumer_offsets)[start:end][1:]
        moved += int(np.count_nonzero(steps > 0))
        unmoved += int(np.count_nonzero((steps <= 0) & (waiting[:-1] | (came > 0)) & waiting[1:]))
        kept_up += int(np.count_nonzero((steps > 0) & (_NOT_FAR * left <= came)))
        worked_off += int(np.count_nonzero((steps > 0) & (left > came)))
    return _Intervals(moved, unmoved, kept_up, worked_off)


def last_up_to(offsets: QueueOffsets, time: Instant) -> int:
    """The place of the last poll up to a time; -1: there is none."""
    return int(np.searchsorted(offsets.times, time, side="right")) - 1


def waiting_at(offsets: QueueOffsets, poll: int) -> int:
    """The messages that nobody had consumed at a poll."""
    return max(int(offsets.broker_offsets[poll]) - int(offsets.consumer_offsets[poll]), 0)
