"""What the window shows of brokers and offsets over time: remedies that fit it, and offsets that
went back."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rebalance_core.english import agreeing, list_of
from rebalance_core.repairs import GROUP_NOT_ON_BROKER
from rebalance_core.texts import Text

from ..instants import SECOND
from ..kinds import OFFSETS_WENT_BACK, PERSISTENT
from .brokers import address_changes
from .case import Case
from .dossier import Dossier, QueueOffsets
from .extents import Extent
from .findings import Fault, Found
from .words import MOST_NAMES, clock, queues_in_words


def with_history(case: Case, found: Found) -> Found:
    """What a broker without the group needs follows from what it was before.

    One whose master is away needs that. One that listed members of the group before has the group:
    its clients are to come back, and ``updateSubGroup`` changes nothing.
    """
    faults = (replace(each, remedy=_remedy(each, case.dossier)) for each in found.faults)
    return replace(found, faults=tuple(faults))


def _remedy(fault: Fault, dossier: Dossier) -> str:
    if fault.fault != GROUP_NOT_ON_BROKER:
        return fault.remedy
    names = set(fault.broker_names)
    away = names - {
        each.broker_name
        for run in dossier.routes.get(fault.topic, ())
        if any(fault.first_seen <= time <= fault.last_seen for time in run.times)
        for each in run.brokers
        if each.has_master
    }
    if away:
        return Text(
            "bring the master of {brokers} back: the route gives no address of it",
            brokers=list_of(sorted(away), MOST_NAMES),
        )
    moved = [
        each
        for each in address_changes(dossier)
        if each.broker[0] in names and each.since <= fault.last_seen
    ]
    if moved:
        name, _ = moved[-1].broker
        return Text(
            "the address of {broker} changed from {before} to {now}: restart the clients that "
            "still hold the old one, and see whether they reach the new one",
            broker=name,
            before=moved[-1].before,
            now=moved[-1].now,
        )
    listed = {
        run.broker[0]
        for run in dossier.polls
        if run.answer in dossier.list_members and min(run.times) < fault.first_seen
    }
    if names <= listed:
        return Text(
            "{brokers} listed the group before, so that it is there: see whether the clients reach "
            "the broker, by its present address too, and restart those that do not",
            brokers=list_of(sorted(names), MOST_NAMES),
        )
    return fault.remedy


def went_back(case: Case, found: Found) -> Found:
    """One fault of all queues of a topic whose committed offset went back.

    Further than it was ``persistence_seconds`` before: a slave that answers for its master is some
    seconds behind, and a broker that restarts loses the last ones. Nor does it count where the
    master was away: before and after it two brokers answer, each with a copy of its own.

    Worked example: at 10:00 to 10:05 a queue's offset is 100, 200, 300, 400, 500 and then 50: since
    10:04 the group consumes again what it had consumed before 10:01.
    """
    return found.plus(
        fault
        for topic, offsets in case.dossier.offsets.items()
        for fault in _of_topic(case, topic, offsets)
    )


def _of_topic(case: Case, topic: str, offsets: Iterable[QueueOffsets]) -> Iterator[Fault]:
    went = [(each, poll) for each in offsets for poll in _went_back(case, each)]
    queues = {(each.broker_name, each.queue_id) for each, _ in went}
    times = [(int(each.times[poll]), int(each.times[poll + 1])) for each, poll in went]
    again = sum(
        int(each.consumer_offsets[poll] - each.consumer_offsets[poll + 1]) for each, poll in went
    )
    if not queues:
        return
    last_seen, polls = max(later for _, later in times), len({later for _, later in times})
    yield Fault(
        topic,
        Extent(min(times)[0], last_seen, polls, PERSISTENT, ongoing=False),
        OFFSETS_WENT_BACK,
        evidence=agreeing(
            again,
            "the offsets of {queues} went back, last between {before} and {after} UTC: {number:,} "
            "[message that was|messages that were] consumed [is|are] consumed again",
            queues=queues_in_words(queues),
            before=clock(max(times)[0]),
            after=clock(last_seen),
            number=again,
        ),
        remedy=Text(
            "see who set them back: mqadmin resetOffsetByTime, the dashboard, or one of two "
            "processes that consume the same queue and commit in turn"
        ),
        broker_names=tuple(sorted({name for name, _ in queues})),
    )


def _went_back(case: Case, offsets: QueueOffsets) -> Sequence[int]:
    """The polls after which it was lower than lately, while the broker's own did not go back, and
    the master was there."""
    consumed, times = offsets.consumer_offsets, offsets.times
    lately = times - case.persistence_seconds * SECOND
    before = np.maximum(np.searchsorted(times, lately, side="right") - 1, 0)
    back = (consumed[1:] < consumed[:-1]) & (consumed[1:] < consumed[before[:-1]])
    back &= offsets.broker_offsets[1:] >= offsets.broker_offsets[:-1]
    for absence in case.masters_away:
        if absence.broker_name == offsets.broker_name:
            back &= ~absence.is_within(times[:-1], times[1:])
    polls: list[int] = np.flatnonzero(back).tolist()
    return polls
