"""offsets, consumeTps -> messages that come again, or are lost, where no list shows it.

A broker counts what it gives a group (``BrokerStatsManager.incGroupGetNums``, by pull and by POP)
and gives the rate of the last minute with the offsets (``AdminBrokerProcessor.getConsumeStats``
4.9.4 to 5.3.3), whoever reads: behind a proxy too, whose clients no broker lists. So it shows what
is read twice: 1.2 times what the offsets moved by, over 10 minutes, of 100 messages or more.

Lists and offsets of a group that fails at nearly all that it consumes are those of a healthy one: a
message at which the listener fails is consumed, and comes again from %RETRY%group, up to 16 times
10 s to 2 h later (``SubscriptionGroupConfig.retryMaxTimes``,
``MessageStoreConfig.messageDelayLevel``), or as often as the client's ``maxReconsumeTimes`` says;
then it goes to %DLQ%group (``SendMessageProcessor.asyncConsumerSendMsgBack`` 4.9.4,
``AbstractSendMessageProcessor.consumerSendMsgBack`` 5.3.3), which nobody consumes. So each try that
fails is a step of one of the two, and each try at all is a step of the group's offsets. Nine of ten
tries over 10 minutes, of 100 or more, are nearly all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rebalance_core.descriptions import ASSIGN_EACH_ONCE, EXPRESSION_MISMATCH
from rebalance_core.english import MOST_NAMES, agreeing, joined
from rebalance_core.findings import DUPLICATE, QUEUES_CHOSEN, SHARED_BY_BROKER
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_mock_broker, is_own_retry_topic
from rebalance_core.repairs import MIXED_REQUEST_MODE
from rebalance_core.texts import Text

from ...declared.dossier import Dossier, QueueOffsets
from ...declared.instants import SECOND, Instant
from ...declared.kinds import MESSAGES_FAIL, PERSISTENT, READ_TWICE
from ..observe.in_words import between
from ..times import Extent, widest
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

#: A number by poll.
_Longs: TypeAlias = NDArray[np.int64]


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
        first_seen, last_seen = self.extent[:2]
        seconds = (last_seen - first_seen) / SECOND
        return Text(
            "{broker} gave the group {given:,.1f} messages a second {time}, and its offsets "
            "advanced by {moved:,.1f} a second",
            broker=self.broker_name,
            given=self.given / seconds,
            time=between(first_seen, last_seen),
            moved=self.moved / seconds,
        )


def read_twice(case: Case, found: GroupFindings) -> GroupFindings:
    """The one fault of a group that gets more messages than its offsets move by, or none; and how
    much is lost where its members filter differently.

    If a queue of the broker is a lasting duplicate, that is why, but where members pull beside POP.
    A group that gets less by a filter that all members share is well (``cases/test_read_twice``).

    Worked example: for 20 minutes a broker gives a group 3.1 messages a second, and its offsets
    move by 2.0: 1,300 messages were read again.
    """
    # Logical queues lie on several brokers, each with its own rate (``cases/test_static_topics``).
    real = (one for one in case.offsets.values() if not is_mock_broker(one.broker_name))
    by_broker = grouped((offsets.broker_name, offsets) for offsets in real)
    runs = [run for _, queues in sorted(by_broker.items()) for run in _runs(case, queues)]
    lasting = (queue for queue in found.queues if queue.kind == DUPLICATE and queue.extent.lasts)
    duplicates = [finding for finding in lasting if MIXED_REQUEST_MODE not in finding.causes]

    def is_explained(given: _GivenMessages) -> bool:
        broker_duplicates = (one for one in duplicates if one.queue[0] == given.broker_name)
        return any(map(given.extent.overlaps, broker_duplicates))

    lasts = case.persistence_seconds * SECOND
    every = (given for run in runs for given in run.read_twice())
    long = (one for one in every if one.extent.last_seen - one.extent.first_seen >= lasts)
    twice = [given for given in long if not is_explained(given)]
    shown = {
        EXPRESSION_MISMATCH: ([given for run in runs for given in run.lost()], _LOST),
        MIXED_REQUEST_MODE: (twice, _PULLED_AND_POPPED),
    }

    def with_rates(fault: FaultEpisode) -> FaultEpisode:
        """The fault with what the rates show of it."""
        rates, what = shown.get(fault.fault, ((), ""))
        meanwhile = [rate.what for rate in rates if fault.overlaps(rate.extent)][:MOST_NAMES]
        return fault.saying([*meanwhile, what]) if meanwhile else fault

    mixed = [one for one in found.faults if one.fault == MIXED_REQUEST_MODE and one.extent.lasts]
    unexplained = [given for given in twice if not any(map(given.extent.overlaps, mixed))]
    with_all = found.with_faults(with_rates)
    return with_all.plus([_read_twice(case, unexplained)] if unexplained else ())


def _read_twice(case: Case, twice: Sequence[_GivenMessages]) -> FaultEpisode:
    moved = sum(given.moved for given in twice)
    again = sum(given.given for given in twice) - moved
    topic = case.main_topic or min(case.dossier.offsets)
    extent = widest([given.extent for given in twice])
    names = tuple(sorted({given.broker_name for given in twice}))
    verdict = case.verdict_at(topic, extent.last_seen)
    coverage = verdict.coverage if verdict else None
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


class _BrokerPolls:
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
            first_seen, last_seen = self._times[[first, last]].tolist()
            is_open = self._is_last and self._times[-1] - last_seen <= _LAG
            extent = Extent(first_seen, last_seen, last - first + 1, PERSISTENT, is_open)
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
    every = np.concatenate([np.empty(0, np.int64), *rates])
    return bool(every.size) and not every.any()


def _runs(case: Case, queues: Sequence[QueueOffsets]) -> Iterator[_BrokerPolls]:
    """The unbroken polls of all queues of a broker; without rates none."""
    name = queues[0].broker_name
    times = np.unique(np.concatenate([queue.times for queue in queues]))
    values = np.full((3, len(queues), len(times)), _NONE)
    for row, offsets in enumerate(queues):
        if len(offsets.given):
            values[:, row, np.searchsorted(times, offsets.times)] = offsets[4:]
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
    for begins, ends in _disturbed(case, name):
        is_broken |= (times[1:] >= begins) & (times[:-1] <= ends)
    sums = np.stack([*np.where(is_polled, values[:2], 0).sum(axis=1), rate])
    for start, end in spans(~is_broken):
        part = slice(start, end + 1)
        yield _BrokerPolls(name, times[part], sums[:, part], is_last=end == len(is_broken))


def _disturbed(case: Case, broker_name: str) -> Iterator[tuple[Instant, Instant]]:
    """Disturbances: times when queues changed hands or the broker had no master, and for as long as
    a rate after that (``cases/test_read_twice``).
    """
    for row in chain.from_iterable(case.reassignments.values()):
        yield row.seen_before, row.changed_at + _LAG
    for absence in case.masters_away:
        if absence.broker_name == broker_name:
            yield absence.begins, absence.last_seen if absence.ends is None else absence.ends + _LAG


# ---------------------------------------------------------------- failing


#: The times of a queue's polls, and an offset at each.
_Polls: TypeAlias = tuple[_Longs, _Longs]

#: The time over which tries are counted: what fails in an outage of some minutes comes again, and
#: is consumed.
_FAILS_FOR = 600 * SECOND
#: The share of the tries from which on nearly all fail.
_NEARLY_ALL = 0.9
#: The share of what was consumed from which on retries are more than a bad message now and then.
_MANY_RETRIED = 0.1
#: The time after a gap in which what piled up meanwhile has come again most of its times.
_COMES_AGAIN = 1800 * SECOND
#: Fewer tries than these show no end either: the clients are away, or nothing comes.
_A_FEW = 10

#: The places of a time's first and last poll, and whether it goes on.
_Run: TypeAlias = tuple[int, int, bool]
_Sums: TypeAlias = NDArray[np.float64]

#: A message of POP comes again whenever it is not acknowledged in its invisible time, whether its
#: listener failed or takes longer (``PopReviveService.reviveRetry`` 5.3.3).
_CAME_AGAIN = (
    "{again:,} messages came again while {consumed:,} were consumed: by POP each comes again that "
    "is not acknowledged in its invisible time, as its listener failed or takes longer; the last "
    "time it goes to %DLQ%{group}, which nobody reads"
)
_SENT_BACK = (
    "{again:,} messages were sent back for another try, each time that one of them failed, while "
    "{consumed:,} were consumed: the listener fails on them, and after the last try they go to "
    "%DLQ%{group}, which nobody reads"
)
_FAILED = "{share:.0%} of {tries:,} attempts to consume a message failed {time}"
_NEVER_ACKNOWLEDGED = (
    "{share:.0%} of {tries:,} messages were given up {time}: none of them was acknowledged in its "
    "invisible time"
)
_FIX_LISTENER = (
    "find in the clients' log why the listener fails, and fix it; each message is tried a limited "
    "number of times, so stop the clients until then if none may be lost; then resend what is in "
    "%DLQ%{group}"
)


def failing(case: Case, found: GroupFindings) -> GroupFindings:
    """A fault for each time of ten minutes or more in which nearly all tries failed.

    A restart breaks none, nor do rounds that are missing: offsets count what nobody saw
    (``cases/test_facts``).

    By POP a message that comes again is no failure: those that are given up count alone (seen on
    5.3.3; ``cases/test_shared_by_broker``).

    Worked example: 120 messages come in a minute, all fail, and each is tried twice more: of 360
    tries a minute 240 go to %RETRY% and 120 to %DLQ%. From 10:30 to 10:45 the clients are away;
    retries come due, and are tried when they are back. Over all this time nearly all failed.
    """
    offsets = _counted(case.dossier)
    if case.main_topic is None or _came([*offsets.again, *offsets.dead]) < _FEWEST_MESSAGES:
        return found
    times = np.unique(np.concatenate([polls for polls, _ in chain(*offsets)]))
    is_pulled = ~_is_popped(case, times)
    consumed, dead = _sums(offsets.consumed, times), _sums(offsets.dead, times)
    tries = consumed + _sums(offsets.retried, times, is_pulled)
    failed = _sums(offsets.again, times, is_pulled) + dead
    starts = np.searchsorted(times, times - _FAILS_FOR, side="right") - 1
    tried, failing_ = tries - tries[starts], failed - failed[starts]
    shows = (starts >= 0) & (tried >= _FEWEST_MESSAGES) & (failing_ >= _NEARLY_ALL * tried)
    steps = np.diff(failed, prepend=0) > np.diff(tries, prepend=0) / 2
    faults = []
    for first, last, is_open in _joined(list(covered(shows, starts, steps)), times, tries, failed):
        first_seen, last_seen = int(times[first]), int(times[last])
        number, failures, lost = (round(sums[last] - sums[first]) for sums in (tries, failed, dead))
        what = Text(
            _FAILED if is_pulled[last] else _NEVER_ACKNOWLEDGED,
            share=min(failures / number, 1),
            tries=number,
            time=between(first_seen, last_seen),
        )
        evidence = joined([what, *_given_up(case.dossier, lost)])
        extent = case.extent(first_seen, last_seen, last - first + 1, ongoing=is_open)
        remedy = Text(_FIX_LISTENER, group=case.dossier.consumer_group)
        faults.append(FaultEpisode(case.main_topic, extent, MESSAGES_FAIL, evidence, remedy))
    return found.plus(faults)


def _joined(runs: Sequence[_Run], times: _Longs, tries: _Sums, failed: _Sums) -> Iterator[_Run]:
    """The runs, put together where nearly all tries failed from before a gap until after it; the
    last one goes on to the end, unless tries that succeed show that it is over.

    What failed comes again later than it was tried, and dead letters are asked for more seldom: a
    few minutes alone do not show it.
    """

    def fails(first: int, last: int) -> bool:
        return bool(failed[last] - failed[first] >= _NEARLY_ALL * (tries[last] - tries[first]))

    def around(first: int, last: int) -> tuple[int, int]:
        edges = np.searchsorted(times, [times[first] - _FAILS_FOR, times[last] + _COMES_AGAIN])
        return int(edges[0]), min(int(edges[1]), len(times) - 1)

    every: list[_Run] = []
    for first, last, is_open in runs:
        goes_on = bool(every) and fails(*around(every[-1][1], first))
        every.append((every.pop()[0] if goes_on else first, last, is_open))
    for first, last, is_open in every:
        is_new = times[-1] - times[last] < _FAILS_FOR or tries[-1] - tries[last] < _A_FEW
        goes_on = last == every[-1][1] and (is_new or fails(last, len(times) - 1))
        yield first, last, is_open or goes_on


def retries(case: Case) -> Iterator[Text]:
    """The messages sent back for another try, beside those consumed, and those given up.

    The retries do not show how many messages fail: each comes again several times.
    """
    dossier = case.dossier
    offsets = _counted(dossier)
    again, consumed = _came(offsets.again), _came(offsets.consumed)
    if again >= max(_FEWEST_MESSAGES, _MANY_RETRIED * consumed):
        is_popped = _is_popped(case, np.concatenate([polls for polls, _ in offsets.again]))
        template = _CAME_AGAIN if is_popped.any() else _SENT_BACK
        yield Text(template, again=again, consumed=consumed, group=dossier.consumer_group)
    yield from _given_up(dossier, _came(offsets.dead))


def _given_up(dossier: Dossier, messages: int) -> Iterator[Text]:
    template = "{messages:,} [message was|messages were] given up and [is|are] in %DLQ%{group}"
    if messages:
        yield agreeing(messages, template, messages=messages, group=dossier.consumer_group)


class _RetryOffsets(NamedTuple):
    """The offsets of a group's queues, by what they count."""

    #: Messages consumed for the first time, and those that came again and were consumed.
    consumed: list[_Polls]
    retried: list[_Polls]
    #: Messages that failed and may be tried again, and those given up.
    again: list[_Polls]
    dead: list[_Polls]


def _counted(dossier: Dossier) -> _RetryOffsets:
    group, subscribed = dossier.consumer_group, dossier.subscribed
    offsets_by_retry = grouped(
        (is_own_retry_topic(offsets.topic, group, subscribed), offsets)
        for offsets in chain.from_iterable(dossier.offsets.values())
    )
    retried = offsets_by_retry.get(True, [])
    return _RetryOffsets(
        [(offsets.times, offsets.consumer_offsets) for offsets in offsets_by_retry.get(False, ())],
        [(offsets.times, offsets.consumer_offsets) for offsets in retried],
        [(offsets.times, offsets.broker_offsets) for offsets in retried],
        [(offsets.times, offsets.broker_offsets) for offsets in dossier.dead_letters],
    )


def steps(offsets: _Longs) -> _Longs:
    """The steps of an offset from poll to poll, from the first that is known; back is 0."""
    return np.where(offsets[:-1] > 0, np.maximum(np.diff(offsets), 0), 0)


def _came(queues: Iterable[_Polls]) -> int:
    return sum(int(steps(offsets).sum()) for _, offsets in queues)


def _sums(
    queues: Iterable[_Polls], times: _Longs, counts: NDArray[np.bool_] | None = None
) -> _Sums:
    """The sum of the steps of all queues up to each time; of those to times that count."""
    found = np.zeros(len(times))
    for polls, offsets in queues:
        found += np.interp(times, polls, np.cumsum(np.append(0, steps(offsets))))
    return found if counts is None else np.cumsum(np.diff(found, prepend=0) * counts)


def _is_popped(case: Case, times: _Longs) -> NDArray[np.bool_]:
    """True for each time at which the group's members get messages of its main topic by POP."""
    verdicts = case.verdicts_at(case.main_topic or "", times)
    popped = [verdict is not None and verdict.coverage == SHARED_BY_BROKER for verdict in verdicts]
    return np.array(popped, np.bool_)
