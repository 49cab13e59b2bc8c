"""offsets -> backlog: what was not consumed of a queue when a finding ended, and how it grew; and
whether somebody reads it; and what waits in a whole topic at the end.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...declared.dossier import QueueOffsets
from ...declared.instants import SECOND, Instant
from ..times import SEVERAL, longest_unseen
from .answers import BRIDGED_AT_LEAST, longest_bridge

#: The fewest moves of the offset of a queue that somebody reads: an administrator who resets an
#: offset, or a last commit of who had the queue before, moves it once.
READ_AGAIN = 2
#: A reader commits what it has read each 5 s (``persistConsumerOffsetInterval``): at a poll a small
#: part of what came since the last poll is left, here at most a half.
_NOT_FAR = 2
#: The share of the intervals in which a queue has to keep up.
_HALF = 0.5
#: The time before the end in which the growth of the backlog is measured; else the last two polls.
_RECENT: Instant = 600 * SECOND

#: The most points of a curve; a telephone shows no more.
_MOST_POINTS = 60


class Backlog(NamedTuple):
    """Messages that were not consumed; None where the offsets do not show it."""

    #: The messages at the last poll up to the end.
    messages: int | None = None
    #: The growth since the last poll up to the beginning; where there is none, since the first poll
    #: of all.
    growth: int | None = None
    #: The growth, of the messages that came meanwhile; None where none came.
    unread_share: float | None = None


NOT_KNOWN = Backlog()


def backlog(offsets: QueueOffsets | None, first_seen: Instant, last_seen: Instant) -> Backlog:
    """The backlog of a queue over the time of a finding.

    The messages there when it ends; those seen later have been consumed since.

    >>> polls = QueueOffsets(
    ...     "T", "b", 0, np.array([1, 4, 9]), np.array([10, 50, 90]), np.array([10, 20, 90])
    ... )
    >>> backlog(polls, first_seen=2, last_seen=5)
    Backlog(messages=30, growth=30, unread_share=0.75)
    """
    if offsets is None or (end := last_up_to(offsets, last_seen)) < 0:
        return NOT_KNOWN
    start = max(last_up_to(offsets, first_seen), 0)
    messages = int(offsets.waiting[end])
    if offsets.times[end] == offsets.times[start]:
        return Backlog(messages)
    came, read = (
        int(of[end]) - int(of[start]) for of in (offsets.broker_offsets, offsets.consumer_offsets)
    )
    return Backlog(messages, came - read, (came - read) / came if came else None)


class UnreadMessages(NamedTuple):
    """The messages that waited in a queue, at its first poll and at its last one."""

    at_first: int
    at_last: int


def left_unread(offsets: QueueOffsets | None, ends: Instant | None) -> UnreadMessages | None:
    """The messages that wait in the queue at its last poll before it is back; None: too few."""
    if offsets is None:
        return None
    polls = None if ends is None else np.searchsorted(offsets.times, ends)
    written, consumed = offsets.broker_offsets[:polls], offsets.consumer_offsets[:polls]
    waiting = offsets.waiting[:polls]
    # Messages on their way, and those that came since the poll before; nothing for one poll.
    lately = [int(step) for offsets_of in (consumed, written) for step in np.diff(offsets_of)[-1:]]
    if not waiting.size or waiting[-1] <= max([0, *lately]):
        return None
    return UnreadMessages(int(waiting[0]), int(waiting[-1]))


def shows_what_waits(offsets: QueueOffsets, time: Instant) -> bool:
    """True if the offsets of a queue show what of it waits at a time.

    They do not where the last of them are older than polls usually come, or of a few polls than 30
    minutes: it may have been consumed since, or more may have come. Nor where the group never
    committed an offset and nothing came since the first poll (``QueueOffsets.waiting``).

    >>> polls = np.array([0, 60, 120]) * SECOND
    >>> read = QueueOffsets("T", "b", 0, polls, np.array([5, 6, 7]), np.array([5, 6, 7]))
    >>> [shows_what_waits(read, minutes * 60 * SECOND) for minutes in (2, 30, 60)]
    [True, True, False]
    >>> shows_what_waits(read._replace(consumer_offsets=np.zeros(3, int)), 120 * SECOND)
    True
    >>> new = QueueOffsets("T", "b", 0, polls, np.array([5, 5, 5]), np.zeros(3, int))
    >>> shows_what_waits(new, 120 * SECOND)
    False
    """
    # Those of a round may come a moment after its lists.
    place = max(last_up_to(offsets, time), 0)
    age = abs(time - int(offsets.times[place]))
    if age > BRIDGED_AT_LEAST:  # few are so old, and need to be looked at
        is_known = offsets.times.size > SEVERAL
        if age > (longest_bridge(offsets.times) if is_known else longest_unseen(0, 0)):
            return False
    return bool(offsets.broker_offsets[place] <= 0 or not offsets.is_untouched[place])


def still_waits(offsets: QueueOffsets, time: Instant, orphaned_since: Instant | None) -> bool:
    """True if what waited at old offsets of a queue waits at a time all the same.

    Nobody can have consumed it: the queue has been an orphan since then. More may have come.

    >>> polls = np.array([0, 60]) * SECOND
    >>> stuck = QueueOffsets("T", "b", 0, polls, np.array([5, 9]), np.array([5, 5]))
    >>> [still_waits(stuck, 3600 * SECOND, since) for since in (30 * SECOND, 90 * SECOND, None)]
    [True, False, False]
    """
    if orphaned_since is None or not offsets.times.size:
        return False
    place = max(last_up_to(offsets, time), 0)
    return bool(orphaned_since <= offsets.times[place] and offsets.waiting[place])


class TopicBacklog(NamedTuple):
    """The messages of a topic that wait for a group, as ``group_health`` has them; None: unknown.

    ``waiting_since``: the first offsets that have the oldest of them; None: no message waits.
    """

    backlog: int | None = None
    backlog_per_minute: float | None = None
    waiting_since: Instant | None = None


def topic_backlog(queues: Iterable[QueueOffsets]) -> TopicBacklog:
    """The messages that wait in the queues of a topic at the last offsets of each.

    >>> times = np.arange(4) * 60 * SECOND
    >>> stuck = QueueOffsets("T", "b", 0, times, np.array([5, 10, 20, 30]), np.array([5, 5, 9, 9]))
    >>> read = QueueOffsets("T", "b", 1, times, np.array([5, 10, 20, 30]), np.array([5, 9, 9, 30]))
    >>> topic_backlog([stuck, read]) == TopicBacklog(21, 7.0, 60 * SECOND)
    True
    >>> topic_backlog([read]), topic_backlog([])[0]
    (TopicBacklog(backlog=0, backlog_per_minute=0.0, waiting_since=None), None)
    """
    known = [queue for queue in queues if queue.times.size]
    if not known:
        return TopicBacklog()
    messages, per_minute, first_seen = 0, 0.0, []
    for offsets in known:
        consumed = offsets.consumer_offsets[-1]
        # Nearly all have nothing, and need no more than this.
        if offsets.broker_offsets[-1] <= consumed or not (left := offsets.waiting)[-1]:
            continue
        messages += int(left[-1])
        recent = int(np.searchsorted(offsets.times, offsets.times[-1] - _RECENT))
        start = max(min(recent, offsets.times.size - 2), 0)
        if minutes := int(offsets.times[-1] - offsets.times[start]) / (60 * SECOND):
            per_minute += int(left[-1] - left[start]) / minutes
        not_there = np.flatnonzero(offsets.broker_offsets <= consumed)
        first_seen.append(int(offsets.times[not_there[-1] + 1 if not_there.size else 0]))
    return TopicBacklog(messages, round(per_minute, 6), min(first_seen, default=None))


def backlog_over_time(queues: Iterable[QueueOffsets]) -> list[tuple[Instant, int]]:
    """The messages that wait in the queues of a topic, at up to ``_MOST_POINTS`` of their polls.

    Of each queue those at its last poll up to then; before its first one, those at that.

    >>> times = np.arange(4) * SECOND
    >>> stuck = QueueOffsets("T", "b", 0, times, np.array([5, 10, 20, 30]), np.array([5, 5, 5, 5]))
    >>> later = QueueOffsets("T", "c", 0, times[2:], np.array([4, 4]), np.array([3, 4]))
    >>> [messages for _, messages in backlog_over_time([stuck, later])]
    [1, 6, 16, 25]
    >>> backlog_over_time([])
    []
    """
    known = [queue for queue in queues if queue.times.size]
    if not known:
        return []
    polls = np.unique(np.concatenate([offsets.times for offsets in known]))
    chosen = np.linspace(0, polls.size - 1, min(polls.size, _MOST_POINTS)).astype(int)
    times = polls[chosen]
    waiting = np.zeros(times.size, np.int64)
    for offsets in known:
        places = np.searchsorted(offsets.times, times, "right") - 1
        waiting += offsets.waiting[np.maximum(places, 0)]
    return list(zip(times.tolist(), waiting.tolist(), strict=True))


class ReadIntervals(NamedTuple):
    """The intervals between polls of a queue, counted by what its offsets show of its readers; only
    those in which there was something to read.
    """

    #: The offset moved.
    moved: int = 0
    #: The offset did not move, and messages waited.
    unmoved: int = 0
    #: The offset moved, and at most half of what came was left.
    kept_up: int = 0
    #: The offset moved, and more than what came was left: what lay there before is being read.
    worked_off: int = 0
    #: The share of these times that lies between two polls.
    share_shown: float = 0.0

    @property
    def is_read(self) -> bool | None:
        """True if somebody reads the queue.

        True: the offset moved in at least half of the intervals, again and again, and in most of
        them what waited at the end was less than half of what came: a reader is never far behind,
        while an owner for a moment reads all that waits and leaves again. Who works off a backlog
        without a break reads too. False: messages waited, and it did not move. None: the offsets do
        not show it.
        """
        every = self.moved + self.unmoved
        if self.moved >= max(READ_AGAIN, self.unmoved):
            return self.kept_up >= _HALF * every or self.worked_off == every or None
        return False if self.unmoved and not self.moved else None

    @property
    def is_always_read(self) -> bool:
        """True if it was read in every interval, and never much was left.

        A queue that has a reader for most of the time is not always read.
        """
        return self.moved >= READ_AGAIN and not self.unmoved and self.kept_up == self.moved


def reading(
    offsets: QueueOffsets | None, times: Iterable[tuple[Instant, Instant]]
) -> ReadIntervals:
    """Counts what the offsets of a queue show of its readers in these times (both ends included).

    >>> def shown(*consumed):
    ...     seconds, came = np.array([0, 60, 120, 180]), np.array([10, 20, 30, 40])
    ...     return reading(QueueOffsets("T", "b", 0, seconds, came, np.array(consumed)), [(0, 180)])
    >>> shown(10, 20, 30, 40).is_read, shown(5, 5, 5, 5).is_read
    (True, False)
    >>> shown(5, 5, 30, 30).is_read, shown(8, 14, 22, 33).is_read
    (None, None)
    >>> shown(10, 20, 30, 40).is_always_read, shown(8, 18, 29, 38).is_always_read
    (True, True)
    >>> shown(10, 20, 20, 40).is_always_read, shown(10, 14, 29, 38).is_always_read
    (False, False)
    >>> polls = QueueOffsets("T", "b", 0, np.array([60, 120]), np.array([1, 2]), np.array([1, 2]))
    >>> reading(polls, [(0, 150), (300, 330)]).share_shown
    0.3333333333333333
    """
    if offsets is None:
        return ReadIntervals()
    moved = unmoved = kept_up = worked_off = shown = whole = 0
    for first_seen, last_seen in times:
        start, end = np.searchsorted(offsets.times, first_seen), last_up_to(offsets, last_seen) + 1
        waiting = offsets.waiting[start:end]
        came = np.diff(offsets.broker_offsets[start:end])
        steps = np.diff(offsets.consumer_offsets[start:end])
        before, left = waiting[:-1], waiting[1:]
        moved += int(np.count_nonzero(steps > 0))
        unmoved += int(np.count_nonzero((steps <= 0) & ((before > 0) | (came > 0)) & (left > 0)))
        kept_up += int(np.count_nonzero((steps > 0) & (_NOT_FAR * left <= came)))
        worked_off += int(np.count_nonzero((steps > 0) & (left > came)))
        shown += int(offsets.times[end - 1] - offsets.times[start]) if start < end else 0
        whole += last_seen - first_seen
    return ReadIntervals(moved, unmoved, kept_up, worked_off, shown / whole if whole else 0.0)


def last_up_to(offsets: QueueOffsets, time: Instant) -> int:
    """The place of the last poll up to a time; -1: there is none."""
    return int(np.searchsorted(offsets.times, time, side="right")) - 1
