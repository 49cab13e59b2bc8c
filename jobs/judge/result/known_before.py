"""faults -> the same, with what the window shows before them: remedies that fit it."""

from bisect import bisect_left
from dataclasses import replace
from itertools import chain

import numpy as np

from rebalance_core.descriptions import GROUP_OFFLINE_REMEDY, UNKNOWN_TOPIC
from rebalance_core.english import MOST_NAMES, list_of
from rebalance_core.repairs import GROUP_NOT_ON_BROKER
from rebalance_core.texts import Text

from ...declared.dossier import Broker, Dossier
from ...declared.instants import Instant
from ...declared.kinds import GROUP_NOT_CONSUMING
from ...schemas import ANSWERED, NO_ANSWER, NOT_ONLINE
from ..observe.answers import Answers, asked_answers
from ..observe.brokers import NoConfig, address_changes, last_change
from ..observe.in_words import zoned_clock
from ..observe.what_happened import restarts
from ..rules.case import Case
from ..rules.found import FaultEpisode, GroupFindings
from .health import members_elsewhere


def with_history(case: Case, found: GroupFindings) -> GroupFindings:
    """Makes the remedies fit what a broker or topic was before.

    One whose master is away needs that. One that listed members of the group before has the group:
    its clients are to come back, and ``updateSubGroup`` changes nothing. A topic that had a route
    before was deleted, and its name is right. Members that are all gone need what made them go. A
    group that no broker has any more was deleted (``cases/test_deleted``).
    """
    config = case.no_config

    def better(fault: FaultEpisode) -> FaultEpisode:
        is_of_group = fault.fault == GROUP_NOT_CONSUMING or fault.remedy == GROUP_OFFLINE_REMEDY
        if is_of_group and config is not None and config.begins <= fault.last_seen:
            return fault.saying([config.what], remedy=_no_config_remedy(config))
        if fault.fault == UNKNOWN_TOPIC:
            return _deleted_explained(fault, case.dossier)
        if fault.remedy == GROUP_OFFLINE_REMEDY:
            return _offline_explained(fault, case)
        return replace(fault, remedy=_remedy(fault, case.dossier))

    return replace(found, faults=tuple(map(better, found.faults)))


#: The fewest times that members whose heartbeats come too rarely were dropped and came back.
_CAME_BACK = 3
_HEARTBEATS_TOO_RARE = Text(
    "check how often the members send heartbeats: heartbeatBrokerInterval (30,000 ms), long pauses "
    "of their processes, timeouts in their log; a broker drops a member that is silent for 120 s"
)


def _offline_explained(fault: FaultEpisode, case: Case) -> FaultEpisode:
    """A group without members with what the dumps show beside it.

    Each broker that listed them was away between its last list and the time of the fault: they went
    with it, and did not come back. The same processes were dropped by a broker and came back, again
    and again: their heartbeats come too rarely (rocketmq#1871; ``cases/test_gone_at_once``).
    """
    listed: dict[str, Instant] = {}
    for run in case.dossier.polls:
        before = bisect_left(run.times, fault.first_seen)
        if before and run.answer in case.dossier.list_members and not run.broker[1]:
            last_seen = run.times[before - 1]
            listed[run.broker[0]] = max(last_seen, listed.get(run.broker[0], last_seen))
    happened = [
        last_change(case.dossier, case.masters_away, name, time, fault.first_seen)
        for name, time in listed.items()
    ]
    if happened and all(happened):
        were_listed = Text(
            "the members were listed until {time}", time=zoned_clock(max(listed.values()))
        )
        remedy = Text(
            "the members did not come back to {these_brokers}: look for the reason in their logs "
            "(send heart beat to broker failed, connect failed), restart those that still run, "
            "and start the others",
            these_brokers=list_of(sorted(listed), MOST_NAMES),
        )
        return fault.saying(
            [were_listed, *[broker_change.what for broker_change in happened if broker_change]],
            remedy=remedy,
        )
    elsewhere = [*members_elsewhere(case.dossier)]
    if elsewhere and fault.extent.ongoing:
        remedy = Text(
            "if the group is to be in {cluster} alone, consume what waits here and delete the "
            "subscription group; else give the clients a nameserver (namesrvAddr), or topics, "
            "of this cluster",
            cluster=list_of(sorted(case.dossier.elsewhere), MOST_NAMES),
        )
        return fault.saying(elsewhere, remedy=remedy)
    back = _came_back(case.dossier, fault.last_seen)
    # Processes that restart come back for another reason, and their start times show it.
    if back < _CAME_BACK or restarts(case.dossier.clients):
        return fault
    dropped = Text("the same members were dropped and came back {number} times", number=back)
    return fault.saying([dropped], remedy=_HEARTBEATS_TOO_RARE)


def _no_config_remedy(config: NoConfig) -> Text:
    """The remedy of a group without members that brokers have no configuration of."""
    if config.has_members:
        return Text(
            "it was deleted while it had members: a broker that does not create groups by itself "
            "(autoCreateSubscriptionGroup=false) takes no heartbeat of them any more and refuses "
            "their pulls; create it again (mqadmin updateSubGroup), or stop them"
        )
    if config.unknown:
        return Text(
            "if the group was deleted on purpose, delete it on {brokers} too, with its offsets "
            "(mqadmin deleteSubGroup -r true); else create it again (mqadmin updateSubGroup) and "
            "start its consumers",
            brokers=list_of(sorted(config.unknown), MOST_NAMES),
        )
    if config.last_seen is None:
        return Text(
            "its offsets are left over if it was deleted before: delete them too (mqadmin "
            "deleteSubGroup -r true), or leave them; if it is still to consume, create it (mqadmin "
            "updateSubGroup), where brokers do not create groups by themselves, and start its "
            "clients"
        )
    return Text(
        "nobody is missing: its offsets are left over; delete them too (mqadmin deleteSubGroup "
        "-r true), or leave them; if it was deleted by mistake, create it again (mqadmin "
        "updateSubGroup)"
    )


def _came_back(dossier: Dossier, last_seen: Instant) -> int:
    """The most times that a broker which knew no member any more listed the old ones again."""
    said = (run for run in dossier.polls if run.answer not in (NO_ANSWER, ANSWERED))
    master_answers = asked_answers(run for run in said if not run.broker[1])
    return max((_back_at(answers, dossier, last_seen) for answers in master_answers), default=0)


def _back_at(answers: Answers[Broker], dossier: Dossier, last_seen: Instant) -> int:
    """The number of times that this broker listed members again."""
    back, known = 0, set[str]()
    said = answers.contents[answers.snapshots <= last_seen]
    for place in np.flatnonzero(np.diff(said)).tolist():
        before, now = answers.name_of(place), answers.name_of(place + 1)
        if before in dossier.list_members:
            known.update(dossier.list_members[before]().client_ids)
        if before == NOT_ONLINE and now in dossier.list_members:
            back += not known.isdisjoint(dossier.list_members[now]().client_ids)
    return back


def _deleted_explained(fault: FaultEpisode, dossier: Dossier) -> FaultEpisode:
    """Describes a topic that no nameserver knows as deleted; unchanged where none ever knew it."""
    known = (run.times for run in dossier.routes.get(fault.topic, ()) if run.brokers)
    routed = [time for time in chain.from_iterable(known) if time < fault.first_seen]
    if not routed:
        return fault
    had = Text("it had a route until {time}: it was deleted", time=zoned_clock(max(routed)))
    remedy = Text(
        "take {this_topic} out of the subscription; if somebody deleted it by mistake, create it "
        "again (mqadmin updateTopic)",
        this_topic=fault.topic,
    )
    return fault.saying([had], remedy=remedy)


def _remedy(fault: FaultEpisode, dossier: Dossier) -> str:
    if fault.fault != GROUP_NOT_ON_BROKER:
        return fault.remedy
    names = set(fault.broker_names)
    away = names - {
        broker.broker_name
        for run in dossier.routes.get(fault.topic, ())
        if any(fault.first_seen <= time <= fault.last_seen for time in run.times)
        for broker in run.brokers
        if broker.has_master
    }
    if away:
        return Text(
            "bring the master of {brokers} back: the route gives no address of it",
            brokers=list_of(sorted(away), MOST_NAMES),
        )
    changes = (change for change in address_changes(dossier) if change.broker[0] in names)
    moved = [change for change in changes if change.begins <= fault.last_seen]
    if moved:
        name, _ = moved[-1].broker
        return Text(
            "the address of {broker} changed from {before} to {now}: restart the clients that "
            "still hold the old one, and check whether they reach the new one",
            broker=name,
            before=moved[-1].before,
            now=moved[-1].now,
        )
    listing = (run for run in dossier.polls if run.answer in dossier.list_members)
    listed = {run.broker[0] for run in listing if run.times[0] < fault.first_seen}
    if names <= listed:
        return Text(
            "check whether the clients reach {brokers}, also at the present address, and restart "
            "those that do not; the group exists there, for it was listed before",
            brokers=list_of(sorted(names), MOST_NAMES),
        )
    return fault.remedy
