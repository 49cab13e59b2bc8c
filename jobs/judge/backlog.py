"""offsets -> backlog: what was not consumed of a queue when a finding ended, and how it grew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jobs.instants import Instant
from jobs.judge.dossier import QueueOffsets


class Backlog(NamedTuple):
    """Messages that were not consumed; None where the offsets do not tell."""

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
    if offsets is None:
        return NOT_KNOWN
    end = _last_up_to(offsets, last_seen)
    if end < 0:
        return NOT_KNOWN
    start = max(_last_up_to(offsets, first_seen), 0)
    messages = _waiting(offsets, end)
    if offsets.times[end] == offsets.times[start]:
        return Backlog(messages)
    growth = messages - _waiting(offsets, start)
    came = int(offsets.broker_offsets[end]) - int(offsets.broker_offsets[start])
    return Backlog(messages, growth, growth / came if came else None)


def _last_up_to(offsets: QueueOffsets, time: Instant) -> int:
    return int(np.searchsorted(offsets.times, time, side="right")) - 1


def _waiting(offsets: QueueOffsets, poll: int) -> int:
    return max(int(offsets.broker_offsets[poll]) - int(offsets.consumer_offsets[poll]), 0)
