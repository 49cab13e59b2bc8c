"""What the window shows of brokers and offsets over time: remedies that fit it, and offsets that
went back."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rebalance_core.descriptions import UNKNOWN_TOPIC
from rebalance_core.english import agreeing, joined, list_of
from rebalance_core.repairs import GROUP_NOT_ON_BROKER
from rebalance_core.texts import Text

from ..instants import SECOND, Instant
from ..kinds import OFFSETS_WENT_BACK, PERSISTENT
from ..schemas import NO_ANSWER
from .brokers import address_changes
from .case import Case
from .dossier import Dossier, QueueOffsets
from .extents import Extent
from .findings import Fault, Found
from .words import MOST_NAMES, clock, queues_in_words


def with_history(case: Case, found: Found) -> Found:
    """What a broker without the group needs follows from what it was before.

    One whose master is away needs that. One that listed members of the group before has the group:
    its clients are to come back, and ``updateSubGroup`` changes nothing. A topic that had a route
    before was deleted, and its name is right.
    """
    faults = (
        _of_deleted(each, case.dossier)
        if each.fault == UNKNOWN_TOPIC
        else replace(each, remedy=_remedy(each, case.dossier))
        for each in found.faults
    )
    return replace(found, faults=tuple(faults))


def _of_deleted(fault: Fault, dossier: Dossier) -> Fault:
    """Of a topic that no nameserver knows; as it is where none ever did."""
    routed = [
        time
        for run in dossier.routes.get(fault.topic, ())
        for time in run.times
        if run.brokers and time < fault.first_seen
    ]
    if not routed:
        return fault
    had = Text("it had a route until {time} UTC: it was deleted", time=clock(max(routed)))
    return replace(
        fault,
        evidence=joined([fault.evidence, had]),
        remedy=Text(
            "take {topic} out of the subscription; if somebody deleted it by mistake, create it "
            "again (mqadmin updateTopic)",
            topic=fault.topic,
        ),
    )


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
            "still hold the old one, and check whether they reach the new one",
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
            "{brokers} listed the group before, so that it is there: check whether the clients "
            "reach the broker, by its present address too, and restart those that do not",
            brokers=list_of(sorted(names), MOST_NAMES),
        )
    return fault.remedy


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
        """So many messages are consumed again."""
        return self.before - self.now


def went_back(case: Case, found: Found) -> Found:
    """One fault of all queues of a topic whose committed offset went back.

    Further than it was ``persistence_seconds`` before: a slave that answers for its master is some
    seconds behind, and a broker that restarts loses the last ones. Around an absence of a master
    the polls that show one of two copies do not count (``Absence.hides``): what is lower after it
    than it was before went back. A broker without a slave has one copy.

    Worked example: at 10:00 to 10:05 a queue's offset is 100, 200, 300, 400, 500 and then 50: since
    10:04 the group consumes again what it had consumed before 10:01.
    """
    return found.plus(
        _of_topic(case, topic, steps)
        for topic, offsets in case.dossier.offsets.items()
        if (steps := [step for each in offsets for step in _went_back(case, each)])
    )


def _of_topic(case: Case, topic: str, steps: Sequence[_Step]) -> Fault:
    last, furthest = max(steps), max(steps, key=lambda each: each.again)
    again = sum(each.again for each in steps)
    evidence = agreeing(
        again,
        "the offsets of {queues} went back, last between {before} and {after} UTC: {number:,} "
        "[message that was|messages that were] consumed [is|are] consumed again",
        queues=queues_in_words({(each.broker_name, each.queue_id) for each in steps}),
        before=clock(last.since),
        after=clock(last.until),
        number=again,
    )
    far = Text(
        "the furthest is {queue}, from {before:,} to {now:,}",
        queue=queues_in_words([(furthest.broker_name, furthest.queue_id)]),
        before=furthest.before,
        now=furthest.now,
    )
    why, remedy = _why(case, last)
    return Fault(
        topic,
        Extent(
            min(steps).since,
            last.until,
            len({each.until for each in steps}),
            PERSISTENT,
            ongoing=False,
        ),
        OFFSETS_WENT_BACK,
        evidence=joined([evidence, far, *why]),
        remedy=remedy,
        broker_names=tuple(sorted({each.broker_name for each in steps})),
    )


def _why(case: Case, step: _Step) -> tuple[list[Text], Text]:
    """What happened to the broker between the two polls, and the remedy of that."""
    polls = [run for run in case.dossier.polls if run.broker == (step.broker_name, 0)]
    silent = [
        time
        for run in polls
        if run.answer == NO_ANSWER
        for time in run.times
        if step.since <= time <= step.until
    ]
    moved = [
        each
        for each in address_changes(case.dossier)
        if each.broker == (step.broker_name, 0) and step.since < each.since <= step.until
    ]
    if moved:
        change = moved[-1]
        return [
            Text(
                "the master of {broker} changed at {time} UTC, from {before} to {now}",
                broker=step.broker_name,
                time=clock(change.since),
                before=change.before,
                now=change.now,
            )
        ], Text(
            "see why the new master of {broker} had older offsets: a slave copies them from its "
            "master each 10 s, and its log has SyncConsumerOffset Exception where it cannot",
            broker=step.broker_name,
        )
    away = [
        each.what
        for each in case.masters_away
        if each.broker_name == step.broker_name
        and each.begins <= step.until
        and (each.ends is None or each.ends > step.since)
    ]
    if not (away or silent):
        return [], Text(
            "see who set them back: mqadmin resetOffsetByTime, the dashboard, or one of two "
            "processes that consume the same queue and commit in turn"
        )
    broker, time = step.broker_name, clock(min(silent, default=step.since))
    return away[-1:] or [
        Text("{broker} did not answer at {time} UTC", broker=broker, time=time)
    ], Text(
        "see why {broker} came back with older offsets: a broker has them in "
        "config/consumerOffset.json of its store, which must outlive a restart (a volume, not the "
        "container's own disk), and writes them each 5 s and as it shuts down",
        broker=broker,
    )


def _went_back(case: Case, offsets: QueueOffsets) -> Iterator[_Step]:
    """Where it was lower than lately, while the broker's own did not go back."""
    hidden = np.zeros(len(offsets.times), np.bool_)
    for absence in case.masters_away:
        if absence.broker_name == offsets.broker_name:
            hidden |= absence.hides(offsets.times, offsets.times)
    times, written, consumed = (column[~hidden] for column in offsets[3:6])
    lately = times - case.persistence_seconds * SECOND
    before = np.maximum(np.searchsorted(times, lately, side="right") - 1, 0)
    back = (consumed[1:] < consumed[:-1]) & (consumed[1:] < consumed[before[:-1]])
    back &= written[1:] >= written[:-1]
    for poll in np.flatnonzero(back).tolist():
        since, until = times[poll : poll + 2].tolist()
        were, are = consumed[poll : poll + 2].tolist()
        yield _Step(since, until, offsets.broker_name, offsets.queue_id, were, are)
