"""answers without offsets -> OFFSETS_GONE: a broker lost how far a group had consumed.

A broker gives the offsets of the topics of which it has some (``whichTopicByConsumer`` of
``ConsumerOffsetManager`` 4.9.4 to 5.3.3): an empty answer after one with offsets is the loss of all
of them. Clients that run commit what they know within 5 s; a group that is away begins anew. So do
clients that run where the route lacked the broker for a while: they drop its queues, and what they
know of them (``RebalanceImpl.truncateMessageQueueNotMyTopic``, ``removeUnnecessaryMessageQueue``
4.9.4 to 5.3.3). What they read again the broker counts (see ``read_twice``).
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from rebalance_core.english import agreeing, joined
from rebalance_core.grouping import grouped
from rebalance_core.state import POP
from rebalance_core.texts import Text

from ...declared.dossier import QueueOffsets
from ...declared.instants import SECOND, Instant
from ...declared.kinds import OFFSETS_GONE, PERSISTENT
from ...texts.shown import shell_word
from ..observe.brokers import last_change
from ..observe.in_words import queues_in_words, zoned_clock
from ..times.extents import Extent
from .case import Case
from .found import FaultEpisode, GroupFindings

_AT_ITS_START = {
    "CONSUME_FROM_LAST_OFFSET": Text(
        "at its next start the group reads from the end (consumeFromWhere of its members is "
        "CONSUME_FROM_LAST_OFFSET): what waits until then is skipped; of a queue whose first "
        "messages are still in memory, from the beginning"
    ),
    "CONSUME_FROM_FIRST_OFFSET": Text(
        "at its next start the group reads from the beginning (consumeFromWhere of its members is "
        "CONSUME_FROM_FIRST_OFFSET): all that the broker keeps is consumed again"
    ),
    "CONSUME_FROM_TIMESTAMP": Text(
        "at its next start the group reads from consumeTimestamp of its members on, by default "
        "half an hour before they start (CONSUME_FROM_TIMESTAMP)"
    ),
}
_SOMEWHERE = Text(
    "at its next start the group reads from the beginning or from the end, as consumeFromWhere of "
    "its members says"
)
_STORE = Text(
    "find out who deleted the offsets, or why config/consumerOffset.json of the broker did not "
    "outlive a restart (a volume, not the container's own disk); the consumers have to bear "
    "messages that come twice"
)
#: A broker takes a sample of what it gave each 10 s and gives the rate of the last minute, as far
#: as it has run: of one sample alone too (``StatsItem`` 4.9.4 to 5.3.3).
_SAMPLE, _MINUTE = 10 * SECOND, 60 * SECOND
#: The time for which rates show what is read again: clients find the broker again within 50 s.
_SHOWN_FOR = 120 * SECOND
#: A few messages show nothing.
_FEWEST_MESSAGES = 100
_BY_POP = Text(
    "by POP the broker itself keeps the offsets, and begins anew with the next request: messages "
    "may be read again"
)


class _ReadAgain(NamedTuple):
    """At least so many messages, and the messages a second that the broker gave at that time."""

    messages: int
    at: Instant
    rate: float


class _Loss(NamedTuple):
    """The polls in which a broker had no offsets, between two in which it had some."""

    broker_name: str
    before: Instant
    rounds: Sequence[Instant]
    #: The place where the members begin (``ConsumeFromWhere``).
    begins: str | None
    #: No offsets came later.
    ongoing: bool
    #: The queues of one topic whose offsets were lost.
    queues: Sequence[QueueOffsets]
    #: Members ran, and committed again what they knew, or began anew.
    came_back: bool = False
    #: The messages that the group read again from the broker, as far as rates show it.
    again: _ReadAgain | None = None

    @property
    def waiting(self) -> int:
        """The messages that waited in the queues when their offsets were seen last."""
        ends = (int(np.searchsorted(queue.times, self.rounds[0])) - 1 for queue in self.queues)
        waits = zip(self.queues, ends, strict=True)
        return sum(int(offsets.waiting[end]) for offsets, end in waits)


def offsets_gone(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault of a topic whose offsets a broker lost, from the first answer without them on.

    It is there at once: what comes of it can be kept off until the group starts. It is none where
    the route has no queue of the topic on the broker any more; where members run that do not
    subscribe to it, for a broker leaves such topics out; where the group was there again with what
    it knew; and where the group was deleted.

    Worked example: until 10:04 a broker has the offsets of a group that is away, at 10:05 it gives
    none, after a restart without its consumerOffset.json.
    """
    return found.plus(
        _fault(case, topic, losses) for topic, losses in grouped(_losses(case)).items()
    )


def _losses(case: Case) -> Iterator[tuple[str, _Loss]]:
    for name, of_broker in sorted(case.dossier.without_offsets.items()):
        for topic, every in sorted(case.dossier.offsets.items()):
            queues = [
                offsets for offsets in every if offsets.broker_name == name and offsets.times.size
            ]
            polls = sorted({*chain.from_iterable(queue.times.tolist() for queue in queues)})
            places = grouped((bisect_left(polls, at), at) for at in sorted(of_broker))
            for place, rounds in places.items():
                if not place:
                    continue
                had = [queue for queue in queues if _committed(queue, rounds[0]) > 0]
                begins, ongoing = of_broker[rounds[-1]], place == len(polls)
                loss = _Loss(name, polls[place - 1], rounds, begins, ongoing, had)
                if not had or not _is_read_there(case, topic, loss) or _is_deleted(case, loss):
                    continue
                again = _read_again(case, loss)
                if again or not _came_back(case, loss):
                    yield topic, loss._replace(came_back=_came_back(case, loss), again=again)


def _committed(queue: QueueOffsets, before: Instant) -> int:
    end = int(np.searchsorted(queue.times, before)) - 1
    return int(queue.consumer_offsets[end]) if end >= 0 else 0


def _is_read_there(case: Case, topic: str, loss: _Loss) -> bool:
    """True if the topic has queues on the broker, and no member runs without it at the end."""
    latest = {}
    for run in sorted(
        case.dossier.routes.get(topic, ()), key=lambda route_run: route_run.times[-1]
    ):
        latest[run.namesrv_addr] = run
    has_queues = not latest or any(
        broker.broker_name == loss.broker_name and broker.read_queue_nums
        for run in latest.values()
        for broker in run.brokers
    )
    lists = case.dossier.lists_between(loss.rounds[-1], loss.rounds[-1])
    return has_queues and (
        not lists or any(topic in case.dossier.list_topics[list_] for list_ in lists)
    )


def _came_back(case: Case, loss: _Loss) -> bool:
    """True if members that ran commit what they know: that they do not has to last. A list has the
    topics of before for two minutes, where only the group's table shows them.
    """
    since, until = loss.rounds[0], loss.rounds[-1]
    lasts = until - since >= case.persistence_seconds * SECOND
    return bool(case.dossier.lists_between(since, until)) and not (loss.ongoing and lasts)


def _is_deleted(case: Case, loss: _Loss) -> bool:
    """True if the broker said meanwhile that it had no configuration of the group."""
    said = case.dossier.configured.get(loss.broker_name, {})
    return any(not has and loss.before <= at <= loss.rounds[-1] for at, has in said.items())


def _read_again(case: Case, loss: _Loss) -> _ReadAgain | None:
    """The messages that the broker gave soon after the loss beyond those that can be new, at least;
    None: no rate shows it.

    New is what was not committed before, or was written since. As much as the broker gave a second
    before it gave anyhow: messages that two read, or what was given before the loss.

    Worked example: 1,000 messages are committed, the rate is 2.0. At the second poll after the loss
    the broker gave 104.0 a second, in 10 s at least, and 1,020 messages are written: of 1,040 that
    it gave 20 are new, and 20 it gives in any 10 s. 1,000 were read again.
    """
    since, polls = loss.rounds[-1], dict[Instant, tuple[int, int, int]]()
    queues = [*chain.from_iterable(case.dossier.offsets.values())]
    for offsets in (
        one for one in queues if one.broker_name == loss.broker_name and len(one.given)
    ):
        columns = (offsets.times, offsets.broker_offsets, offsets.consumer_offsets, offsets.given)
        for at, *values in zip(*(column.tolist() for column in columns), strict=True):
            if at == loss.before or since < at <= since + _SHOWN_FOR:
                written, committed, rate = polls.get(at, (0, 0, values[2]))
                polls[at] = (written + values[0], committed + values[1], max(rate, values[2]))
    _, known, usual = polls.pop(loss.before, (0, 0, -1))
    given = {at: (written, rate) for at, (written, _, rate) in polls.items() if rate > 0}
    if usual < 0 or not given:
        return None
    found = []
    for at, (written, rate) in given.items():
        samples = (at - min(given)) // _SAMPLE
        seconds = min(max(samples * _SAMPLE, _SAMPLE), _MINUTE) / SECOND
        new = written - known
        again = int((rate - usual) / 1000 * seconds) - new
        if again >= max(_FEWEST_MESSAGES, new):
            found.append(_ReadAgain(again, at, rate / 1000))
    return max(found, default=None)


def _fault(case: Case, topic: str, losses: Sequence[_Loss]) -> FaultEpisode:
    last, dossier = max(losses, key=lambda each: each.rounds[-1]), case.dossier
    names = sorted({each.broker_name for each in losses})
    queues = {(queue.broker_name, queue.queue_id) for each in losses for queue in each.queues}
    waiting = sum(each.waiting for each in losses)
    loss = {
        "time": zoned_clock(last.rounds[0]),
        "broker": last.broker_name,
        "before": zoned_clock(last.before),
        "queues": queues_in_words(queues),
    }
    what: str = agreeing(
        waiting,
        "since {time} {broker} answers without any offset of the group; until {before} it had "
        "those of {queues}, where {messages:,} [message|messages] waited",
        messages=waiting,
        **loss,
    )
    if last.came_back:
        what = Text(
            "at {time} {broker} answered without any offset of the group, whose members ran; until "
            "{before} it had those of {queues}",
            **loss,
        )
    change = last_change(dossier, case.masters_away, last.broker_name, last.before, last.rounds[0])
    starts = _AT_ITS_START.get(last.begins or "", _SOMEWHERE)
    if dossier.request_mode(topic) == POP:
        starts = _BY_POP
    remedy = Text(
        "before the group starts, give the broker its config/consumerOffset.json back (of its "
        "store, or of its slave), or set the offsets anew: mqadmin resetOffsetByTime -g {group} -t "
        "{topic} -s {millis}; and find out who deleted them, or why the file did not outlive a "
        "restart (a volume, not the container's own disk)",
        group=shell_word(dossier.consumer_group),
        topic=shell_word(topic),
        millis=last.before // 1000,
    )
    evidence = [what, *([change.what] if change else []), *([] if last.came_back else [starts])]
    if last.again:
        evidence.append(_begun_anew(last.broker_name, last.again))
        remedy = _STORE
    rounds = sorted({*chain.from_iterable(each.rounds for each in losses)})
    ongoing = any(each.ongoing for each in losses)
    extent = Extent(rounds[0], rounds[-1], len(rounds), PERSISTENT, ongoing)
    return FaultEpisode(
        topic,
        extent,
        OFFSETS_GONE,
        joined(evidence),
        remedy,
        broker_names=tuple(names),
    )


def _begun_anew(broker_name: str, again: _ReadAgain) -> Text:
    return agreeing(
        again.messages,
        "the group began anew there: at least {messages:,} [message was|messages were] read "
        "again, for {broker} gave {rate:,.1f} a second (consumeTps at {time})",
        messages=again.messages,
        broker=broker_name,
        rate=again.rate,
        time=zoned_clock(again.at),
    )
