"""offsets -> a group that fails at nearly all that it consumes.

Lists and offsets of such a group are those of a healthy one: a message at which the listener fails
is consumed, and comes again from %RETRY%group, up to 16 times 10 s to 2 h later
(``SubscriptionGroupConfig.retryMaxTimes``, ``MessageStoreConfig.messageDelayLevel``), or as often
as the client's ``maxReconsumeTimes`` says; then it goes to %DLQ%group
(``SendMessageProcessor.asyncConsumerSendMsgBack`` 4.9.4,
``AbstractSendMessageProcessor.consumerSendMsgBack`` 5.3.3), which nobody consumes. So each try that
fails is a step of one of the two, and each try at all is a step of the group's offsets.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rebalance_core.english import agreeing, joined
from rebalance_core.findings import SHARED_BY_BROKER
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.texts import Text

from ...declared.dossier import Dossier
from ...declared.instants import SECOND
from ...declared.kinds import MESSAGES_FAIL
from ..observe.in_words import between
from ..times.extents import Extent, persistence
from .case import Case
from .found import FaultEpisode, GroupFindings
from .read_twice import covered

#: The times of a queue's polls, and an offset at each.
_Polls: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]

#: The time over which tries are counted: what fails in an outage of some minutes comes again, and
#: is consumed.
_FAILS_FOR = 600 * SECOND
#: The share of the tries from which on nearly all fail.
_NEARLY_ALL = 0.9
#: The share of what was consumed from which on retries are more than a bad message now and then.
_MANY_RETRIED = 0.1
#: A few messages show nothing.
_FEWEST_MESSAGES = 100
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


def failing(case: Case, found: GroupFindings) -> GroupFindings:
    """A fault for each time of ten minutes or more in which nearly all tries failed.

    A restart breaks none, nor do rounds that are missing: offsets count what nobody saw.

    By POP a message that comes again is no failure: those that are given up count alone.

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
        since, until = int(times[first]), int(times[last])
        lasts = persistence(since, until, case.persistence_seconds)
        number, failures, lost = (round(sums[last] - sums[first]) for sums in (tries, failed, dead))
        what = Text(
            _FAILED if is_pulled[last] else _NEVER_ACKNOWLEDGED,
            share=min(failures / number, 1),
            tries=number,
            time=between(since, until),
        )
        evidence = joined([what, *_given_up(case.dossier, lost)])
        extent = Extent(since, until, last - first + 1, lasts, is_open)
        remedy = Text(
            "find in the clients' log why the listener fails, and fix it; each message is "
            "tried a limited number of times, so stop the clients until then if none may be "
            "lost; then resend what is in %DLQ%{group}",
            group=case.dossier.consumer_group,
        )
        faults.append(FaultEpisode(case.main_topic, extent, MESSAGES_FAIL, evidence, remedy))
    return found.plus(faults)


def _joined(
    runs: Sequence[_Run], times: NDArray[np.int64], tries: _Sums, failed: _Sums
) -> Iterator[_Run]:
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
        yield Text(
            _CAME_AGAIN if is_popped.any() else _SENT_BACK,
            again=again,
            consumed=consumed,
            group=dossier.consumer_group,
        )
    yield from _given_up(dossier, _came(offsets.dead))


def _given_up(dossier: Dossier, messages: int) -> Iterator[Text]:
    if messages:
        yield agreeing(
            messages,
            "{messages:,} [message was|messages were] given up and [is|are] in %DLQ%{group}",
            messages=messages,
            group=dossier.consumer_group,
        )


class _RetryOffsets(NamedTuple):
    """The offsets of a group's queues, by what they count."""

    #: Messages consumed for the first time, and those that came again and were consumed.
    consumed: list[_Polls]
    retried: list[_Polls]
    #: Messages that failed and may be tried again, and those given up.
    again: list[_Polls]
    dead: list[_Polls]


def _counted(dossier: Dossier) -> _RetryOffsets:
    dead = [(dead_letter.times, dead_letter.broker_offsets) for dead_letter in dossier.dead_letters]
    of = _RetryOffsets([], [], [], dead)
    subscribed = dossier.subscribed
    for offsets in chain.from_iterable(dossier.offsets.values()):
        if is_own_retry_topic(offsets.topic, dossier.consumer_group, subscribed):
            of.retried.append((offsets.times, offsets.consumer_offsets))
            of.again.append((offsets.times, offsets.broker_offsets))
        else:
            of.consumed.append((offsets.times, offsets.consumer_offsets))
    return of


def steps(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The steps of an offset from poll to poll, from the first that is known; back is 0."""
    return np.where(offsets[:-1] > 0, np.maximum(np.diff(offsets), 0), 0)


def _came(queues: Iterable[_Polls]) -> int:
    return sum(int(steps(offsets).sum()) for _, offsets in queues)


def _sums(
    queues: Iterable[_Polls], times: NDArray[np.int64], counts: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """The sum of the steps of all queues up to each time; of those to times that count."""
    found = np.zeros(len(times))
    for polls, offsets in queues:
        found += np.interp(times, polls, np.cumsum(np.append(0, steps(offsets))))
    return found if counts is None else np.cumsum(np.diff(found, prepend=0) * counts)


def _is_popped(case: Case, times: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True for each time at which the group's members get messages of its main topic by POP."""
    in_force = case.situations.in_force(case.main_topic or "", times)
    popped = {
        each
        for each in {*in_force}
        if each and case.evaluated[each].verdict.coverage == SHARED_BY_BROKER
    }
    return np.array([each in popped for each in in_force], np.bool_)
