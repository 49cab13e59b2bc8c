"""committed offsets -> OFFSETS_WENT_BACK: messages that a group consumes again."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rebalance_core.english import agreeing, joined
from rebalance_core.texts import Text

from ..declared.instants import SECOND, Instant
from ..declared.kinds import OFFSETS_WENT_BACK, PERSISTENT
from .brokers import last_change
from .case import Case
from .dossier import QueueOffsets
from .extents import Extent
from .found import FaultEpisode, GroupFindings
from .in_words import clock, queues_in_words, zoned_clock


class _Step(NamedTuple):
    """Between two polls the committed offset of a queue went back."""

    since: Instant
    until: Instant
    broker_name: str
    queue_id: int
    before: int
    now: int

    @property
    def again(self) -> int:
        """The number of messages that are consumed again."""
        return self.before - self.now


def went_back(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault of all queues of a topic whose committed offset went back.

    Further than it was ``persistence_seconds`` before: a slave that answers for its master is some
    seconds behind, and a broker that restarts loses the last ones. Around an absence of a master
    the polls that show one of two copies do not count (``Absence.is_blind_between``): what is lower
    after it than it was before went back. A broker without a slave has one copy.

    Worked example: at 10:00 to 10:05 a queue's offset is 100, 200, 300, 400, 500 and then 50: since
    10:04 the group consumes again what it had consumed before 10:01.
    """
    return found.plus(
        _topic_fault(case, topic, steps)
        for topic, offsets in case.dossier.offsets.items()
        if (steps := [step for each in offsets for step in _went_back(case, each)])
    )


def _topic_fault(case: Case, topic: str, steps: Sequence[_Step]) -> FaultEpisode:
    last, furthest = max(steps), max(steps, key=lambda each: each.again)
    again = sum(each.again for each in steps)
    evidence = agreeing(
        again,
        "the offsets of {queues} went back, last between {before} and {after}: {number:,} "
        "[message is|messages are] consumed again",
        queues=queues_in_words({(each.broker_name, each.queue_id) for each in steps}),
        before=clock(last.since),
        after=zoned_clock(last.until),
        number=again,
    )
    far = Text(
        "the furthest is {queue}, from {before:,} to {now:,}",
        queue=queues_in_words([(furthest.broker_name, furthest.queue_id)]),
        before=furthest.before,
        now=furthest.now,
    )
    why, remedy = _why(case, last)
    polls = {each.until for each in steps}
    extent = Extent(min(steps).since, last.until, len(polls), PERSISTENT, ongoing=False)
    whole = joined([evidence, far, *why])
    names = tuple(sorted({each.broker_name for each in steps}))
    return FaultEpisode(topic, extent, OFFSETS_WENT_BACK, whole, remedy, broker_names=names)


def _why(case: Case, step: _Step) -> tuple[list[Text], Text]:
    """The change of the broker between the two polls, and its remedy."""
    change = last_change(case.dossier, case.masters_away, step.broker_name, step.since, step.until)
    if change is None:
        return [], Text(
            "find out who set them back: mqadmin resetOffsetByTime, the dashboard, or one of "
            "two processes that consume the same queue and commit in turn"
        )
    template = (
        "find out why {broker} came back with older offsets: a broker keeps them in "
        "config/consumerOffset.json of its store, which must survive a restart (a volume, not "
        "the container's own disk), and writes them every 5 s and at shutdown"
    )
    if change.is_of_slave:
        template = (
            "find out why the slave of {broker} that took over had older offsets: a slave copies "
            "them from its master every 10 s; if it cannot, its log has SyncConsumerOffset "
            "Exception"
        )
    return [change.what], Text(template, broker=step.broker_name)


def _went_back(case: Case, offsets: QueueOffsets) -> Iterator[_Step]:
    """Steps back of an offset to below what it lately was; the broker's own did not go back."""
    hidden = np.zeros(len(offsets.times), np.bool_)
    for absence in case.masters_away:
        if absence.broker_name == offsets.broker_name:
            hidden |= absence.is_blind_between(offsets.times, offsets.times)
    times, written, consumed = (column[~hidden] for column in offsets[3:6])
    lately = times - case.persistence_seconds * SECOND
    before = np.maximum(np.searchsorted(times, lately, side="right") - 1, 0)
    back = (consumed[1:] < consumed[:-1]) & (consumed[1:] < consumed[before[:-1]])
    back &= written[1:] >= written[:-1]
    for poll in np.flatnonzero(back).tolist():
        since, until = times[poll : poll + 2].tolist()
        were, are = consumed[poll : poll + 2].tolist()
        yield _Step(since, until, offsets.broker_name, offsets.queue_id, were, are)
