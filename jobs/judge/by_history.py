"""What the window shows of brokers and offsets over time: remedies that fit it, and offsets that
went back."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rebalance_core.descriptions import GROUP_OFFLINE_REMEDY, UNKNOWN_TOPIC
from rebalance_core.english import agreeing, joined, list_of
from rebalance_core.grouping import grouped
from rebalance_core.repairs import GROUP_NOT_ON_BROKER
from rebalance_core.texts import Text

from ..declared.instants import SECOND, Instant
from ..declared.kinds import OFFSETS_WENT_BACK, PERSISTENT
from ..schemas import ANSWERED, NO_ANSWER, NOT_ONLINE
from .brokers import address_changes
from .case import Case
from .dossier import Dossier, PollRun, QueueOffsets
from .events import restarts
from .extents import Extent
from .facts import members_elsewhere
from .found import FaultEpisode, Found
from .in_words import MOST_NAMES, clock, queues_in_words, zoned_clock


def with_history(case: Case, found: Found) -> Found:
    """What a broker without the group needs follows from what it was before.

    One whose master is away needs that. One that listed members of the group before has the group:
    its clients are to come back, and ``updateSubGroup`` changes nothing. A topic that had a route
    before was deleted, and its name is right. Members that are all gone need what made them go.
    """

    def better(fault: FaultEpisode) -> FaultEpisode:
        if fault.fault == UNKNOWN_TOPIC:
            return _of_deleted(fault, case.dossier)
        if fault.remedy == GROUP_OFFLINE_REMEDY:
            return _of_offline(fault, case)
        return replace(fault, remedy=_remedy(fault, case.dossier))

    return replace(found, faults=tuple(map(better, found.faults)))


#: So often at least members were dropped and came back whose heartbeats come too rarely.
_CAME_BACK = 3


def _of_offline(fault: FaultEpisode, case: Case) -> FaultEpisode:
    """A group without members with what the dumps show beside it.

    Each broker that listed them was away between its last list and the time of the fault: they went
    with it, and did not come back. The same processes were dropped by a broker and came back, again
    and again: their heartbeats come too rarely.
    """
    listed: dict[str, Instant] = {}
    for run in case.dossier.polls:
        before = bisect_left(run.times, fault.first_seen)
        if before and run.answer in case.dossier.list_members and not run.broker[1]:
            last = run.times[before - 1]
            listed[run.broker[0]] = max(last, listed.get(run.broker[0], last))
    happened = [_happened(case, name, time, fault.first_seen) for name, time in listed.items()]
    if happened and all(happened):
        since = Text("the members were listed until {time}", time=zoned_clock(max(listed.values())))
        return replace(
            fault,
            evidence=joined([fault.evidence, since, *[each.what for each in happened if each]]),
            remedy=Text(
                "the members did not come back to {these_brokers}: look for the reason in "
                "their logs (send heart beat to broker failed, connect failed), restart those "
                "that still run, and start the others",
                these_brokers=list_of(sorted(listed), MOST_NAMES),
            ),
        )
    elsewhere = [*members_elsewhere(case.dossier)]
    if elsewhere and fault.extent.ongoing:
        return replace(
            fault,
            evidence=joined([fault.evidence, *elsewhere]),
            remedy=Text(
                "if the group is to be in {cluster} alone, consume what waits here and delete the "
                "subscription group; else give the clients a nameserver (namesrvAddr), or topics, "
                "of this cluster",
                cluster=list_of(sorted(case.dossier.elsewhere), MOST_NAMES),
            ),
        )
    back = _came_back(case.dossier, fault.last_seen)
    if back < _CAME_BACK or restarts(case.dossier.clients):
        return fault
    return replace(
        fault,
        evidence=joined(
            [
                fault.evidence,
                Text("the same members were dropped and came back {number} times", number=back),
            ]
        ),
        remedy=Text(
            "check how often the members send heartbeats: heartbeatBrokerInterval (30,000 ms), "
            "long pauses of their processes, timeouts in their log; a broker drops a member "
            "that is silent for 120 s"
        ),
    )


def _came_back(dossier: Dossier, until: Instant) -> int:
    """How often a broker that knew no member any more listed again those that it had listed."""
    of_brokers = grouped(
        (run.broker[0], run)
        for run in dossier.polls
        if not run.broker[1] and run.answer not in (NO_ANSWER, ANSWERED)
    )
    return max((_back_at(runs, dossier, until) for runs in of_brokers.values()), default=0)


def _back_at(runs: Sequence[PollRun], dossier: Dossier, until: Instant) -> int:
    """How often this broker listed members again."""
    offline = min((run.times[0] for run in runs if run.answer == NOT_ONLINE), default=until)
    # Mostly nobody came back: then its times need not be looked at one by one.
    if not any(offline < run.times[-1] for run in runs if run.answer in dossier.list_members):
        return 0
    answers = sorted((time, run.answer) for run in runs for time in run.times if time <= until)
    back, known = 0, set[str]()
    for (_, before), (_, now) in pairwise(answers):
        if before in dossier.list_members:
            known.update(dossier.list_members[before]().client_ids)
        if before == NOT_ONLINE and now in dossier.list_members:
            back += not known.isdisjoint(dossier.list_members[now]().client_ids)
    return back


def _of_deleted(fault: FaultEpisode, dossier: Dossier) -> FaultEpisode:
    """Of a topic that no nameserver knows; as it is where none ever did."""
    routed = [
        time
        for run in dossier.routes.get(fault.topic, ())
        for time in run.times
        if run.brokers and time < fault.first_seen
    ]
    if not routed:
        return fault
    had = Text("it had a route until {time}: it was deleted", time=zoned_clock(max(routed)))
    return replace(
        fault,
        evidence=joined([fault.evidence, had]),
        remedy=Text(
            "take {topic} out of the subscription; if somebody deleted it by mistake, create it "
            "again (mqadmin updateTopic)",
            topic=fault.topic,
        ),
    )


def _remedy(fault: FaultEpisode, dossier: Dossier) -> str:
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
            "{brokers} listed the group before, so the group exists there: check whether the "
            "clients reach the broker, also at its present address, and restart those that do "
            "not",
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


def _of_topic(case: Case, topic: str, steps: Sequence[_Step]) -> FaultEpisode:
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
    return FaultEpisode(
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
    happened = _happened(case, step.broker_name, step.since, step.until)
    if happened is None:
        return [], Text(
            "find out who set them back: mqadmin resetOffsetByTime, the dashboard, or one of "
            "two processes that consume the same queue and commit in turn"
        )
    if happened.is_of_slave:
        return [happened.what], Text(
            "find out why the slave of {broker} that took over had older offsets: a slave copies "
            "them from its master every 10 s; if it cannot, its log has SyncConsumerOffset "
            "Exception",
            broker=step.broker_name,
        )
    return [happened.what], Text(
        "find out why {broker} came back with older offsets: a broker keeps them in "
        "config/consumerOffset.json of its store, which must survive a restart (a volume, not "
        "the container's own disk), and writes them every 5 s and at shutdown",
        broker=step.broker_name,
    )


class _Happened(NamedTuple):
    """What happened to a broker, in words; whether a slave serves it since, or is its master."""

    what: Text
    is_of_slave: bool = False


def _happened(case: Case, broker_name: str, since: Instant, until: Instant) -> _Happened | None:
    """What happened to the broker between two polls, as far as anything shows it."""
    moved = [
        each
        for each in address_changes(case.dossier)
        if each.broker == (broker_name, 0) and since < each.since <= until
    ]
    if moved:
        change = moved[-1]
        what = Text(
            "the master of {broker} changed at {time}, from {before} to {now}",
            broker=broker_name,
            time=zoned_clock(change.since),
            before=change.before,
            now=change.now,
        )
        return _Happened(what, is_of_slave=True)
    away = [
        each
        for each in case.masters_away
        if each.broker_name == broker_name
        and each.begins <= until
        and (each.ends is None or each.ends > since)
    ]
    if away:
        last = away[-1]
        serves = last.followed is not None and (last.ends is None or last.ends > until)
        return _Happened(last.what, is_of_slave=serves)
    silent = [
        time
        for run in case.dossier.polls
        if run.broker == (broker_name, 0) and run.answer == NO_ANSWER
        for time in run.times
        if since <= time <= until
    ]
    if not silent:
        return None
    time = zoned_clock(min(silent))
    return _Happened(Text("{broker} did not answer at {time}", broker=broker_name, time=time))


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
