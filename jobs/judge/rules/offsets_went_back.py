"""committed offsets -> OFFSETS_WENT_BACK: messages that a group consumes again."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from rebalance_core.english import agreeing, joined
from rebalance_core.findings import DUPLICATE
from rebalance_core.texts import Text

from ...declared.dossier import QueueOffsets
from ...declared.instants import SECOND, Instant
from ...declared.kinds import OFFSETS_WENT_BACK, PERSISTENT
from ..observe.brokers import last_change
from ..observe.core_verdict import QueueKey
from ..observe.in_words import between, clients_in_words, clock, queues_in_words, zoned_clock
from ..times.extents import Extent
from .case import Case
from .found import FaultEpisode, GroupFindings, QueueFinding

#: The fewest steps back of one queue, with its return in between, that two make who commit in turn;
#: fewer where two are known to read it: somebody may set an offset back twice.
_TO_AND_FRO, _OF_TWO = 3, 2


_STOP_ONE = Text(
    "find out why two processes commit offsets of one queue, and stop one of them or give it a "
    "group of its own: after its next restart whoever reads the queue begins at the offset that "
    "was committed last"
)


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

    @property
    def queue(self) -> QueueKey:
        """The queue's broker and id."""
        return self.broker_name, self.queue_id


def went_back(case: Case, found: GroupFindings) -> GroupFindings:
    """One fault of all queues of a topic whose committed offset went back.

    Further than it was ``persistence_seconds`` before: a slave that answers for its master is some
    seconds behind, and a broker that restarts loses the last ones. Around an absence of a master
    the polls that show one of two copies do not count (``Absence.is_blind_between``): what is lower
    after it than it was before went back. A broker without a slave has one copy.

    Worked example: at 10:00 to 10:05 a queue's offset is 100, 200, 300, 400, 500 and then 50: since
    10:04 the group consumes again what it had consumed before 10:01.

    Where two processes commit in turn, neither consumes again what is between the two offsets. The
    net counts: how far the last step back ends before where the first one began.
    """
    duplicates = [queue for queue in found.queues if queue.kind == DUPLICATE]
    return found.plus(
        _topic_fault(case, topic, by_queue, duplicates)
        for topic, offsets in case.dossier.offsets.items()
        if (by_queue := [steps for offset in offsets if (steps := [*_went_back(case, offset)])])
    )


def _topic_fault(
    case: Case,
    topic: str,
    by_queue: Sequence[Sequence[_Step]],
    duplicates: Sequence[QueueFinding],
) -> FaultEpisode:
    steps = list(chain.from_iterable(by_queue))
    last, furthest = max(steps), max(steps, key=lambda step: step.again)
    read_by_two = {duplicate.queue for duplicate in duplicates if duplicate.topic == topic}
    to_and_fro = [each for each in by_queue if _is_to_and_fro(each, read_by_two)]
    back = [each for each in by_queue if each not in to_and_fro]
    evidence = [_again(each) for each in [list(chain.from_iterable(back))] if each]
    why, remedy = _why(case, last)
    if to_and_fro:
        writers = _writers(case, topic, chain.from_iterable(to_and_fro))
        evidence.append(_in_turn(to_and_fro))
        if writers:
            evidence.append(
                agreeing(
                    len(writers),
                    "by running infos {clients} [commits|commit] the lower offset",
                    clients=clients_in_words(writers, case.dossier.languages),
                )
            )
        if not back:
            remedy = _STOP_ONE
    far = Text(
        "the furthest is {queue}, from {before:,} to {now:,}",
        queue=queues_in_words([furthest.queue]),
        before=furthest.before,
        now=furthest.now,
    )
    polls = {step.until for step in steps}
    extent = Extent(min(steps).since, last.until, len(polls), PERSISTENT, ongoing=False)
    whole = joined([*evidence, far, *why])
    names = tuple(sorted({step.broker_name for step in steps}))
    return FaultEpisode(topic, extent, OFFSETS_WENT_BACK, whole, remedy, broker_names=names)


def _is_to_and_fro(steps: Sequence[_Step], read_by_two: Collection[QueueKey]) -> bool:
    """True if the offset went back again and again, and returned each time in between."""
    enough = _OF_TWO if steps[0].queue in read_by_two else _TO_AND_FRO
    returned = all(after.before >= before.before for before, after in pairwise(steps))
    return returned and len(steps) >= enough


def _again(steps: Sequence[_Step]) -> Text:
    last, again = max(steps), sum(step.again for step in steps)
    return agreeing(
        again,
        "the offsets of {queues} went back, last between {before} and {after}: {number:,} "
        "[message is|messages are] consumed again",
        queues=queues_in_words({step.queue for step in steps}),
        before=clock(last.since),
        after=zoned_clock(last.until),
        number=again,
    )


def _in_turn(by_queue: Sequence[Sequence[_Step]]) -> Text:
    steps = list(chain.from_iterable(by_queue))
    net = sum(max(each[0].before - each[-1].now, 0) for each in by_queue)
    return agreeing(
        net,
        "the offsets of {queues} went to and fro {time}, {times} times back: two processes commit "
        "in turn; by the net {number:,} [message is|messages are] consumed again",
        queues=queues_in_words({step.queue for step in steps}),
        time=between(min(steps).since, max(steps).until),
        times=len(steps),
        number=net,
    )


def _writers(case: Case, topic: str, steps: Iterable[_Step]) -> set[str]:
    """The clients whose own offset of a queue is lower than what was committed before, in that
    time: who commits the higher one is never behind it.
    """
    every = list(steps)
    queues = {(topic, *step.queue) for step in every}
    since, until = min(every).since, max(every).until
    return {
        run.client_id
        for run in case.dossier.clients
        if any(since <= at <= until for _, at in run.times)
        and not queues.isdisjoint(
            queue[:3] for place, queue in enumerate(run.queues or ()) if place in (run.behind or ())
        )
    }


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
    """Steps back of an offset to below what it lately was; the broker's own did not go back.

    An offset beyond the broker's end is no position: whoever pulls there is sent back to the end,
    or to the beginning (OFFSET_ILLEGAL, ``DefaultMessageStore.nextOffsetCorrection`` 4.9.4 and
    5.3.3), and consumes again what is before the last position that was one. Where two commit in
    turn, the poll of that long ago may have the lower offset, and the one before it the higher.
    """
    hidden = offsets.consumer_offsets > offsets.broker_offsets
    for absence in case.masters_away:
        if absence.broker_name == offsets.broker_name:
            hidden |= absence.is_blind_between(offsets.times, offsets.times)
    times, written, consumed = (column[~hidden] for column in offsets[3:6])
    lately = times[1:] - case.persistence_seconds * SECOND
    before = np.maximum(np.searchsorted(times, lately, side="right") - 1, 0)
    was = np.maximum(consumed[before], consumed[np.maximum(before - 1, 0)])
    back = (consumed[1:] < consumed[:-1]) & (consumed[1:] < was)
    back &= written[1:] >= written[:-1]
    for poll in np.flatnonzero(back).tolist():
        since, until = times[poll : poll + 2].tolist()
        were, are = consumed[poll : poll + 2].tolist()
        yield _Step(since, until, offsets.broker_name, offsets.queue_id, were, are)
