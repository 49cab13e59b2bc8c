"""Who could read which queue, and when: steps in time, exact to the millisecond."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clock import MINUTE, Millis

Value = TypeVar("Value")
Spans = list[tuple[Millis, Millis]]


class Steps(Generic[Value]):
    """A value that changes at times.

    >>> steps = Steps(0)
    >>> steps.put(10, 1); steps.put(20, 0); steps.put(30, 2)
    >>> steps.at(15), list(steps.spans(bool, 0, 40))
    (1, [(10, 20), (30, 40)])
    """

    def __init__(self, first: Value) -> None:
        self.times: list[Millis] = [-(10**12)]
        self.values: list[Value] = [first]

    def put(self, time: Millis, value: Value) -> None:
        if time == self.times[-1]:
            self.values[-1] = value
        elif value != self.values[-1]:
            self.times.append(time)
            self.values.append(value)

    def at(self, time: Millis) -> Value:
        return self.values[bisect_right(self.times, time) - 1]

    def spans(
        self, wanted: Callable[[Value], bool], start: Millis, end: Millis
    ) -> Iterator[tuple[Millis, Millis]]:
        """The times from start to end in which the value is a wanted one."""
        begun = None
        first = max(bisect_right(self.times, start) - 1, 0)
        for time, value in zip(self.times[first:], self.values[first:], strict=True):
            if time >= end:
                break
            if wanted(value):
                begun = max(time, start) if begun is None else begun
            elif begun is not None:
                yield begun, time
                begun = None
        if begun is not None:
            yield begun, end


def common(some: Spans, others: Spans) -> Spans:
    """The times that are in both.

    >>> common([(0, 10), (20, 30)], [(5, 25)])
    [(5, 10), (20, 25)]
    """
    both = ((max(a, c), min(b, d)) for a, b in some for c, d in others)
    return [(start, end) for start, end in both if start < end]


def without(some: Spans, others: Spans) -> Spans:
    """The times of the first that are not in the others.

    >>> without([(0, 10), (20, 30)], [(5, 25)])
    [(0, 5), (25, 30)]
    """
    for start, end in others:
        some = [
            part
            for a, b in some
            for part in ((a, min(b, start)), (max(a, end), b))
            if part[0] < part[1]
        ]
    return some


def length(spans: Spans) -> Millis:
    return sum(end - start for start, end in spans)


@dataclass
class Truth:
    """Of each queue: which processes hold it and can read it, and whether there is such a queue.

    ``consumers``: those of its readers that handle what they read.

    A queue of a broker that is down is none: nobody could read it.
    """

    readers: dict[MessageQueue, Steps[frozenset[str]]] = field(
        default_factory=lambda: defaultdict(lambda: Steps(frozenset()))
    )
    consumers: dict[MessageQueue, Steps[frozenset[str]]] = field(
        default_factory=lambda: defaultdict(lambda: Steps(frozenset()))
    )
    exists: dict[MessageQueue, Steps[bool]] = field(
        default_factory=lambda: defaultdict(lambda: Steps(False))
    )
    #: By client id the processes that run, and those of them that are neither frozen nor blocked.
    running: dict[str, Steps[frozenset[str]]] = field(
        default_factory=lambda: defaultdict(lambda: Steps(frozenset()))
    )
    working: dict[str, Steps[frozenset[str]]] = field(
        default_factory=lambda: defaultdict(lambda: Steps(frozenset()))
    )
    _read_by: dict[str, frozenset[MessageQueue]] = field(default_factory=dict)
    _consumed_by: dict[str, frozenset[MessageQueue]] = field(default_factory=dict)

    def reads(
        self,
        time: Millis,
        label: str,
        queues: frozenset[MessageQueue],
        consumed: frozenset[MessageQueue] | None = None,
    ) -> None:
        """From now on a process can read just these queues, and handles these of them, or all."""
        _put(self.readers, self._read_by, time, label, queues)
        handled = queues if consumed is None else consumed
        _put(self.consumers, self._consumed_by, time, label, handled)

    def is_behind(
        self, time: Millis, client_id: str, label: str, *, alive: bool, works: bool
    ) -> None:
        """From now on a process with this id runs, or not, and works, or not."""
        for steps, is_so in ((self.running[client_id], alive), (self.working[client_id], works)):
            others = steps.values[-1] - {label}
            steps.put(time, others | {label} if is_so else others)

    def queues_are(self, time: Millis, queues: set[MessageQueue]) -> None:
        """From now on there are just these queues."""
        for queue in {*self.exists, *queues}:
            self.exists[queue].put(time, queue in queues)

    def orphaned(self, queue: MessageQueue, start: Millis, end: Millis) -> Spans:
        """When there was the queue and nobody could read it."""
        there = list(self.exists[queue].spans(bool, start, end))
        return common(list(self.readers[queue].spans(lambda who: not who, start, end)), there)

    def unconsumed(self, queue: MessageQueue, start: Millis, end: Millis) -> Spans:
        """When nobody handled its messages, whether it had a reader or not."""
        return list(self.consumers[queue].spans(lambda who: not who, start, end))

    def unread(self, queue: MessageQueue, start: Millis, end: Millis) -> Spans:
        """When nobody could read it, whether the broker was there or not."""
        return list(self.readers[queue].spans(lambda who: not who, start, end))

    def duplicated(self, queue: MessageQueue, start: Millis, end: Millis) -> Spans:
        """When several processes could read it."""
        return list(self.readers[queue].spans(lambda who: len(who) > 1, start, end))


def _put(
    steps_of: dict[MessageQueue, Steps[frozenset[str]]],
    by_label: dict[str, frozenset[MessageQueue]],
    time: Millis,
    label: str,
    queues: frozenset[MessageQueue],
) -> None:
    before = by_label.get(label, frozenset())
    by_label[label] = queues
    for queue in before ^ queues:
        steps = steps_of[queue]
        steps.put(time, steps.values[-1] ^ {label})


#: Who takes a queue needs so long for its first message, and then reads so much faster than
#: messages come. Who has a queue for a moment only reads nothing of it.
FIRST_READ: Millis = 500
CATCHES_UP = 10
#: ``ClientConfig.persistConsumerOffsetInterval``; it also commits what it lets go.
COMMITS_EACH: Millis = 5000


#: Messages have come for an hour before zero.
FIRST_MESSAGE: Millis = -60 * MINUTE


class Progress:
    """How far the group has read each queue: up to the messages of which time.

    >>> truth, queue = Truth(), MessageQueue("T", "broker-a", 0)
    >>> progress = Progress(truth)
    >>> progress.committed(queue, 0)
    >>> truth.reads(1_000, "p1", frozenset({queue})); truth.reads(61_000, "p1", frozenset())
    >>> progress.committed(queue, 61_500)
    61000
    >>> truth.reads(120_000, "p2", frozenset({queue})); truth.reads(121_500, "p2", frozenset())
    >>> progress.committed(queue, 200_000)
    71000
    """

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._asked: dict[MessageQueue, tuple[Millis, Millis, Millis]] = {}
        self._forgotten: dict[MessageQueue, tuple[Millis, bool]] = {}

    def go_back(self, queue: MessageQueue, now: Millis, by: Millis | None) -> None:
        """Sets the group back by the messages of so much time; None: to the first one."""
        if self.committed(queue, now) is not None:
            _, read, told = self._asked[queue]
            first = (FIRST_MESSAGE,) * 2
            self._asked[queue] = (now, *((read - by, told - by) if by is not None else first))

    def forget(self, queue: MessageQueue, now: Millis, *, from_first: bool) -> None:
        """There is no offset until somebody handles the queue again: from the first message on, or
        from the last one.
        """
        self._forgotten[queue] = now, from_first

    def is_forgotten(self, queue: MessageQueue, now: Millis) -> bool:
        """Whether the broker had an offset of the queue and has none now."""
        return self.committed(queue, now) is None and queue in self._forgotten

    def committed(self, queue: MessageQueue, now: Millis) -> Millis | None:
        """The time up to whose messages the committed offset goes; None: nobody read any."""
        steps = self._truth.consumers[queue]
        if len(steps.times) == 1:
            return None
        if queue in self._forgotten:
            since, from_first = self._forgotten[queue]
            again = next(steps.spans(bool, since, now), None)
            if again is None:
                return None
            del self._forgotten[queue]
            self._asked[queue] = (again[0], *(FIRST_MESSAGE if from_first else again[0],) * 2)
        asked, read, told = self._asked.get(queue, (steps.times[1],) * 3)
        for start, end in steps.spans(bool, asked, now):
            read = min(end, read + CATCHES_UP * max(end - start - FIRST_READ, 0))
        is_read = bool(steps.values[-1])
        told = max(told, min(read, now - now % COMMITS_EACH) if is_read else read)
        self._asked[queue] = (now, read, told)
        return told
