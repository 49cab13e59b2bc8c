"""answers without offsets -> OFFSETS_GONE: a broker lost how far a group had consumed.

A broker gives the offsets of the topics of which it has some (``whichTopicByConsumer`` of
``ConsumerOffsetManager`` 4.9.4 to 5.3.3): an empty answer after one with offsets is the loss of all
of them. Clients that run commit what they know within 5 s; a group that is away begins anew.
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

from ..declared.instants import SECOND, Instant
from ..declared.kinds import OFFSETS_GONE, PERSISTENT
from ..texts.shown import shell_word
from .brokers import last_change
from .case import Case
from .dossier import QueueOffsets
from .extents import Extent
from .found import FaultEpisode, GroupFindings
from .in_words import queues_in_words, zoned_clock

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
_BY_POP = Text(
    "by POP the broker itself keeps the offsets, and begins anew with the next request: messages "
    "may be read again"
)


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

    @property
    def waiting(self) -> int:
        """The messages that waited in the queues when their offsets were seen last."""
        ends = (int(np.searchsorted(each.times, self.rounds[0])) - 1 for each in self.queues)
        waits = zip(self.queues, ends, strict=True)
        return sum(int(each.waiting[end]) for each, end in waits)


def offsets_gone(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault of a topic whose offsets a broker lost, from the first answer without them on.

    It is there at once: what comes of it can be kept off until the group starts. It is none where
    the route has no queue of the topic on the broker any more; where members run that do not
    subscribe to it, for a broker leaves such topics out; and where the group was there again with
    what it knew.

    Worked example: until 10:04 a broker has the offsets of a group that is away, at 10:05 it gives
    none, after a restart without its consumerOffset.json.
    """
    return found.plus(
        _fault(case, topic, losses) for topic, losses in grouped(_losses(case)).items()
    )


def _losses(case: Case) -> Iterator[tuple[str, _Loss]]:
    for name, of_broker in sorted(case.dossier.without_offsets.items()):
        for topic, every in sorted(case.dossier.offsets.items()):
            queues = [each for each in every if each.broker_name == name and each.times.size]
            polls = sorted({*chain.from_iterable(each.times.tolist() for each in queues)})
            places = grouped((bisect_left(polls, at), at) for at in sorted(of_broker))
            for place, rounds in places.items():
                if not place:
                    continue
                had = [each for each in queues if _committed(each, rounds[0]) > 0]
                begins, ongoing = of_broker[rounds[-1]], place == len(polls)
                loss = _Loss(name, polls[place - 1], rounds, begins, ongoing, had)
                if had and _is_read_there(case, topic, loss) and not _came_back(case, loss):
                    yield topic, loss


def _committed(queue: QueueOffsets, before: Instant) -> int:
    end = int(np.searchsorted(queue.times, before)) - 1
    return int(queue.consumer_offsets[end]) if end >= 0 else 0


def _is_read_there(case: Case, topic: str, loss: _Loss) -> bool:
    """True if the topic has queues on the broker, and no member runs without it at the end."""
    latest = {}
    for run in sorted(case.dossier.routes.get(topic, ()), key=lambda each: each.times[-1]):
        latest[run.namesrv_addr] = run
    has_queues = not latest or any(
        each.broker_name == loss.broker_name and each.read_queue_nums
        for run in latest.values()
        for each in run.brokers
    )
    lists = case.dossier.lists_between(loss.rounds[-1], loss.rounds[-1])
    return has_queues and (
        not lists or any(topic in case.dossier.list_topics[each] for each in lists)
    )


def _came_back(case: Case, loss: _Loss) -> bool:
    """True if members that ran commit what they know: that they do not has to last. A list has the
    topics of before for two minutes, where only the group's table shows them.
    """
    since, until = loss.rounds[0], loss.rounds[-1]
    lasts = until - since >= case.persistence_seconds * SECOND
    return bool(case.dossier.lists_between(since, until)) and not (loss.ongoing and lasts)


def _fault(case: Case, topic: str, losses: Sequence[_Loss]) -> FaultEpisode:
    last, dossier = max(losses, key=lambda each: each.rounds[-1]), case.dossier
    names = sorted({each.broker_name for each in losses})
    queues = {(queue.broker_name, queue.queue_id) for each in losses for queue in each.queues}
    waiting = sum(each.waiting for each in losses)
    what = agreeing(
        waiting,
        "since {time} {broker} answers without any offset of the group; until {before} it had "
        "those of {queues}, where {messages:,} [message|messages] waited",
        time=zoned_clock(last.rounds[0]),
        broker=last.broker_name,
        before=zoned_clock(last.before),
        queues=queues_in_words(queues),
        messages=waiting,
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
    rounds = sorted({*chain.from_iterable(each.rounds for each in losses)})
    ongoing = any(each.ongoing for each in losses)
    extent = Extent(rounds[0], rounds[-1], len(rounds), PERSISTENT, ongoing)
    evidence = joined([what, *([change.what] if change else []), starts])
    return FaultEpisode(
        topic,
        extent,
        OFFSETS_GONE,
        evidence,
        remedy,
        broker_names=tuple(names),
    )
