"""offsets, consumeTps -> messages that are read twice, or lost, where no list shows it.

A broker counts what it gives a group (``BrokerStatsManager.incGroupGetNums``, by pull and by POP)
and gives the rate of the last minute with the offsets (``AdminBrokerProcessor.getConsumeStats``
4.9.4 to 5.3.3), whoever reads: behind a proxy too, whose clients no broker lists.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rebalance_core.descriptions import ASSIGN_EACH_ONCE, EXPRESSION_MISMATCH
from rebalance_core.english import MOST_NAMES, joined
from rebalance_core.findings import DUPLICATE, QUEUES_CHOSEN, SHARED_BY_BROKER
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_mock_broker
from rebalance_core.repairs import MIXED_REQUEST_MODE
from rebalance_core.texts import Text

from ...declared.dossier import QueueOffsets
from ...declared.instants import SECOND, Instant
from ...declared.kinds import PERSISTENT, READ_TWICE
from ..observe.in_words import between
from ..times.extents import Extent, widest
from .case import Case
from .found import FaultEpisode, GroupFindings
from .stalls import spans

_MINUTE = 60 * SECOND
#: A rate is that of one minute: a longer time between two polls it does not describe.
_MOST_BETWEEN_POLLS = 75 * SECOND
#: The rate of a poll counts what was given up to so long before it: a minute, by samples taken
#: each 10 s (``StatsItem``).
_LAG = 70 * SECOND
#: The time over which messages are counted: what is read again as members come and go shows for a
#: minute or two.
_READ_TWICE_FOR = 600 * SECOND
#: The ratios beyond which it counts; healthy groups have 1.0: a rate and offsets that are polled
#: seconds apart differ by a few percent.
_READ_TWICE_RATIO, _LOST_RATIO = 1.2, 0.8
#: A few messages show nothing.
_FEWEST_MESSAGES = 100
#: The value in place of what was not polled.
_NONE = np.iinfo(np.int64).min

_LOST = Text("filters drop the others, and nobody gets them")
_PULLED_AND_POPPED = Text("the others are those that are read twice")
_REMEDY = Text(
    "find out who else consumes as this group: clients of a proxy (gRPC) are in no broker's "
    "list, and Java clients beside them read the same queues; stop the clients of one kind, or "
    "give them a group of their own"
)

#: A client drops what it took longer ago (``ConsumeMessagePopConcurrentlyService``,
#: ``PopProcessQueue`` 5.3.3), so that given again does not mean consumed again.
_INVISIBLE = Text(
    "compare the invisible time (popInvisibleTime, 60 s by default) with how long the listener "
    "takes for a batch, and find what blocks it: a longer invisible time or a faster listener ends "
    "it"
)
_REMEDIES: Mapping[str | None, str] = {
    QUEUES_CHOSEN: ASSIGN_EACH_ONCE,
    SHARED_BY_BROKER: joined(
        [_INVISIBLE, Text("if neither is so, find out who else consumes as this group")]
    ),
}

_Longs = NDArray[np.int64]


class _GivenMessages(NamedTuple):
    """The messages that a broker gave in a time, and the group's progress meanwhile."""

    broker_name: str
    #: Always lasting: what does not last is left out.
    extent: Extent
    given: float
    moved: int

    @property
    def what(self) -> Text:
        """The rates in words."""
        since, until = self.extent[:2]
        seconds = (until - since) / SECOND
        return Text(
            "{broker} gave the group {given:,.1f} messages a second {time}, and its offsets "
            "advanced by {moved:,.1f} a second",
            broker=self.broker_name,
            given=self.given / seconds,
            time=between(since, until),
            moved=self.moved / seconds,
        )


def read_twice(case: Case, found: GroupFindings) -> GroupFindings:
    """The one fault of a group that gets more messages than its offsets move by, or none; and how
    much is lost where its members filter differently.

    If a queue of the broker is a lasting duplicate, that is why. A group that gets less by a filter
    that all members share is well.

    Worked example: for 20 minutes a broker gives a group 3.1 messages a second, and its offsets
    move by 2.0: 1,300 messages were read again.
    """
    every_queue = chain.from_iterable(case.dossier.offsets.values())
    # The logical queues of a static topic lie on several brokers, each with its own rate.
    real = (offsets for offsets in every_queue if not is_mock_broker(offsets.broker_name))
    by_broker = grouped((offsets.broker_name, offsets) for offsets in real)
    runs = [run for _, queues in sorted(by_broker.items()) for run in _runs(case, queues)]
    lasts = case.persistence_seconds * SECOND
    lasting = (queue for queue in found.queues if queue.kind == DUPLICATE and queue.extent.lasts)
    duplicates = [finding for finding in lasting if MIXED_REQUEST_MODE not in finding.causes]
    every = [given for run in runs for given in run.read_twice()]
    twice = [
        given
        for given in every
        if given.extent.last_seen - given.extent.first_seen >= lasts
        and not any(
            d.queue[0] == given.broker_name and d.overlaps(given.extent) for d in duplicates
        )
    ]
    shown = {
        EXPRESSION_MISMATCH: ([given for run in runs for given in run.lost()], _LOST),
        MIXED_REQUEST_MODE: (twice, _PULLED_AND_POPPED),
    }
    faults = tuple(_with_rates(fault, *shown.get(fault.fault, ((), ""))) for fault in found.faults)
    mixed = [fault for fault in faults if fault.fault == MIXED_REQUEST_MODE and fault.extent.lasts]
    unexplained = [given for given in twice if not any(map(given.extent.overlaps, mixed))]
    return replace(found, faults=faults).plus([_fault(case, unexplained)] if unexplained else ())


def _fault(case: Case, twice: Sequence[_GivenMessages]) -> FaultEpisode:
    moved = sum(given.moved for given in twice)
    again = sum(given.given for given in twice) - moved
    topic = case.main_topic or min(case.dossier.offsets)
    extent = widest([given.extent for given in twice])
    names = tuple(sorted({given.broker_name for given in twice}))
    (situation_id,) = case.situations.in_force(topic, np.array([extent.last_seen]))
    coverage = case.evaluated[situation_id].verdict.coverage if situation_id else None
    template = (
        "{again:,} messages were read again, {share:.0%} of those that were consumed, and no "
        "list shows by whom"
    )
    if coverage == SHARED_BY_BROKER:
        template = (
            "{again:,} messages were given again, {share:.0%} of those that were consumed: by POP "
            "a broker gives a message anew that nobody acknowledged within its invisible time"
        )
    in_all = Text(template, again=round(again), share=again / max(moved, 1))
    evidence = joined([*(given.what for given in twice[:MOST_NAMES]), in_all])
    remedy = _REMEDIES.get(coverage, _REMEDY)
    return FaultEpisode(topic, extent, READ_TWICE, evidence, remedy, broker_names=names)


def _with_rates(fault: FaultEpisode, rates: Sequence[_GivenMessages], what: str) -> FaultEpisode:
    """The fault with what the rates show of it."""
    meanwhile = [rate.what for rate in rates if fault.overlaps(rate.extent)][:MOST_NAMES]
    return fault.saying([*meanwhile, what]) if meanwhile else fault


class _Sweep:
    """Polls of all queues that the group has on a broker, one soon after the other, with nothing
    between them after which members read again.

    By poll, over all queues: what was written, what was committed, and what the broker gave since
    the poll before.
    """

    def __init__(self, broker_name: str, times: _Longs, sums: _Longs, *, is_last: bool) -> None:
        """``sums``: by poll what was written, what was committed, and the rate."""
        self._name, self._times, self._is_last = broker_name, times, is_last
        self._written, self._committed, rates = sums
        # A rate shows only its minute of a longer time.
        steps = np.minimum(np.diff(times, prepend=times[:1]), _MINUTE)
        self._given = steps * (rates / (1000 * SECOND))
        self._moved = np.diff(self._committed, prepend=self._committed[:1])
        self._starts = self._last_up_to(times - _READ_TWICE_FOR)

    def read_twice(self) -> Iterator[_GivenMessages]:
        """Times in which more was given than can be new.

        Messages given for the first time in a window lie between the offset committed when its
        first rate began and the last one written.
        """
        begins = self._last_up_to(self._times[self._starts] - _LAG)
        given, moved = self._sums_of_windows(self._given), self._sums_of_windows(self._moved)
        is_again = given > self._written - self._committed[begins]
        shows = is_again & (given > _READ_TWICE_RATIO * moved)
        shows &= (given - moved >= _FEWEST_MESSAGES) & (moved > 0) & (begins >= 0)
        yield from self._times_of(shows, self._given - _READ_TWICE_RATIO * self._moved)

    def lost(self) -> Iterator[_GivenMessages]:
        """Times in which less was given than was consumed.

        Messages that were committed before the last rate ended, and were not there as the window
        began, were given in it.
        """
        ended = self._last_up_to(self._times - _LAG)
        given = self._sums_of_windows(self._given)
        consumed = self._committed[ended] - self._written[self._starts]
        shows = (given < _LOST_RATIO * consumed) & (consumed - given >= _FEWEST_MESSAGES)
        yield from self._times_of(shows, _LOST_RATIO * self._moved - self._given)

    def _last_up_to(self, times: _Longs) -> _Longs:
        """The last poll up to each time; -1: there is none."""
        return np.searchsorted(self._times, times, side="right") - 1

    def _sums_of_windows(self, steps: Any) -> Any:
        """The sum over the window that ends with each poll."""
        sums = np.cumsum(steps)
        return sums - sums[self._starts]

    def _times_of(self, windows: Any, excess: Any) -> Iterator[_GivenMessages]:
        """The times that these windows cover, without what adds nothing to the sum of the excess at
        both ends. A step alone shows little: a rate is that of the last minute, and offsets come in
        lumps.
        """
        every = np.ones(len(windows), np.bool_)
        for before, end, _ in covered(windows & (self._starts >= 0), self._starts, every):
            sums = np.append(0.0, np.cumsum(excess[before + 1 : end + 1]))
            last = int(np.argmax(sums - np.minimum.accumulate(sums)))
            first, last = before + int(np.argmin(sums[: last + 1])), before + last
            (since, until), polls = self._times[[first, last]].tolist(), last - first + 1
            is_open = self._is_last and self._times[-1] - until <= _LAG
            extent = Extent(since, until, polls, PERSISTENT, is_open)
            given = float(self._given[first + 1 : last + 1].sum())
            moved = int(self._committed[last] - self._committed[first])
            yield _GivenMessages(self._name, extent, given, moved)


def covered(windows: Any, starts: _Longs, steps: Any) -> Iterator[tuple[int, int, bool]]:
    """The polls from and to which some windows lie side by side, without the steps at both ends
    that are none of these; and whether the last poll is in them.

    ``windows``: by poll, whether the one that ends there counts; it begins at the poll ``starts``.

    >>> marked = [np.array([0, 0, 0, 1, 1, 0]) > 0, np.array([0, 0, 0, 0, 1, 2])]
    >>> [*covered(*marked, np.array([0, 0, 1, 1, 1, 0]) > 0)]
    [(1, 4, False)]
    """
    edges = np.zeros(len(starts) + 1, np.int64)
    ends = np.flatnonzero(windows)
    np.add.at(edges, starts[ends] + 1, 1)
    np.add.at(edges, ends + 1, -1)
    for start, end in spans(np.cumsum(edges)[:-1] > 0):
        shown = start + np.flatnonzero(steps[start:end])
        yield int(shown[0]) - 1, int(shown[-1]), end == len(starts)


def gave_nothing(queues: Iterable[QueueOffsets], time: Extent) -> bool:
    """True if the brokers gave the group no message in a time, by each rate of that time alone;
    False where no rate shows it.
    """
    rates = [
        queue.given[(queue.times >= time.first_seen + _LAG) & (queue.times <= time.last_seen)]
        for queue in queues
        if len(queue.given)
    ]
    every = np.concatenate(rates) if rates else np.empty(0, np.int64)
    return bool(every.size) and not every.any()


def _runs(case: Case, queues: Sequence[QueueOffsets]) -> Iterator[_Sweep]:
    """The unbroken polls of all queues of a broker; without rates none."""
    name = queues[0].broker_name
    times = np.unique(np.concatenate([queue.times for queue in queues]))
    values = np.full((3, len(queues), len(times)), _NONE)
    for row, each in enumerate(queues):
        if len(each.given):
            values[:, row, np.searchsorted(times, each.times)] = each[4:]
    written, committed, rates = values
    is_polled = written > _NONE
    # One rate is that of all queues of one answer: what came in several has no such rate.
    rate = rates.max(axis=0)
    is_known = (rate >= 0) & ((rates == rate) | ~is_polled).all(axis=0)
    before, now = values[:, :, :-1], values[:, :, 1:]
    is_broken = (
        (is_polled[:, 1:] != is_polled[:, :-1])
        | (now[:2] < before[:2]).any(axis=0)
        # The first commit is not a step of what was consumed.
        | ((committed[:, :-1] <= 0) & (committed[:, 1:] > 0))
    ).any(axis=0)
    is_broken |= ~is_known[1:] | (np.diff(times) > _MOST_BETWEEN_POLLS)
    for since, until in _disturbed(case, name):
        is_broken |= (times[1:] >= since) & (times[:-1] <= until)
    sums = np.stack([*np.where(is_polled, values[:2], 0).sum(axis=1), rate])
    for start, end in spans(~is_broken):
        part = slice(start, end + 1)
        yield _Sweep(name, times[part], sums[:, part], is_last=end == len(is_broken))


def _disturbed(case: Case, broker_name: str) -> Iterator[tuple[Instant, Instant]]:
    """Disturbances: times when queues changed hands or the broker had no master, and for as long as
    a rate after that.
    """
    for row in chain.from_iterable(case.reassignments.values()):
        yield row.seen_before, row.changed_at + _LAG
    for absence in case.masters_away:
        if absence.broker_name == broker_name:
            yield absence.begins, absence.last_seen if absence.ends is None else absence.ends + _LAG
