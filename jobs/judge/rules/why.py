"""stalls, running infos -> why a queue does not move: what its process reports, in all topics.

A member that is cut off from a broker stays in its list for about two minutes after its last
heartbeat (``ConsumerManager.scanNotActiveChannel`` 4.9.4). Until then its queues there stall, and
where it has no others it looks frozen; from then on the brokers' lists differ. That is one outage,
and one finding.

A broker does not give messages that a filter leaves out, and a client commits over them where it
has none in its cache (``correctTagsOffset`` of ``DefaultMQPushConsumerImpl`` 4.9.4 to 5.3.3).
Native Go clients do so from 2.1.1 on; before, the method was empty
(``consumer/push_consumer.go``): the offset stays until a message comes that the filter lets pass,
although all is read.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from rebalance_core.descriptions import EXPRESSION_MISMATCH, normalise_expression
from rebalance_core.english import MOST_NAMES, agreeing, list_of
from rebalance_core.findings import SHARED_BY_BROKER
from rebalance_core.repairs import BROKER_VIEW_DIVERGENCE, GROUP_NOT_ON_BROKER
from rebalance_core.state import NO_FILTER
from rebalance_core.texts import Text

from ...declared.contents import MEMBER_FACTS
from ...declared.kinds import CRITICAL, FROZEN_PROCESS, INFO, WARNING
from ...schemas import NOT_CONSUMING, NOT_COUNTING, NOT_FINISHING, NOT_LOCKED, NOT_PULLING
from ...texts.shown import shell_word
from ..observe.backlog import last_up_to, reading
from ..observe.brokers import refusals
from ..observe.core_verdict import QueueKey
from ..observe.holdings import Holding
from ..observe.in_words import clients_in_words, queues_in_words, zoned_clock
from ..times import Extent, usual_gap
from .case import Case
from .found import FaultEpisode, GroupFindings, Stall

#: A broker lists some members no more, or none at all.
OUTAGES = (BROKER_VIEW_DIVERGENCE, GROUP_NOT_ON_BROKER)
UPDATE_GO = Text(
    "nothing, if its listener gets the messages that pass the filter; with client-go 2.1.1 or "
    "later the offset moves over what the filter leaves out"
)

_GO_VERSION = re.compile(r"v([0-9]+)\.([0-9]+)\.([0-9]+)", re.ASCII)
#: The first version by its own word that commits over what a filter leaves out: 2.1.1 still says of
#: itself that it is v2.1.0, and 2.1.2 that it is v2.1.1 (``internal/client.go``).
_COMMITS_SURELY = (2, 1, 1)

NOBODY_HOLDS_IT = Text("no process holds it: look at the running infos of the clients that should")
FROZEN = Text("frozen process: none of the queues of its process moves")
_OF_ACTIVITY = {
    NOT_LOCKED: Text(
        "no lock: its process consumes in order and does not get the queue's lock from the "
        "broker; another process may hold it"
    ),
    NOT_CONSUMING: Text(
        "a listener hangs: its process has messages of the queue and has consumed none for over "
        "60 s"
    ),
    NOT_COUNTING: Text(
        "a wrong count: its process counts cached messages, up to the limit, and has none (no "
        "first and no last offset), so that it pulls no more until it is restarted; early Go "
        "clients do that: restart it, and update it"
    ),
    NOT_PULLING: Text(
        "no pull: its process has no messages of the queue and has not asked for any for over 60 s"
    ),
}
CUT_OFF = Text(
    "its process does not reach the broker, which drops it from its list about two minutes later"
)
REFUSED = Text(
    "its process asks for messages and makes no progress: the application suspended the "
    "consumer, or the broker refuses its pulls (the subscription is not known there)"
)
DISABLED = Text(
    "the broker refuses every pull of the group: consumeEnable of its subscription group is false"
)
MAY_BE_FILTERED = Text(
    "all members filter the topic, and by POP an offset may stay at messages that the filter "
    "leaves out: what waits may be nothing else"
)
SHARED = Text(
    "the broker deals its messages out to any member, and nothing shows which one had them: one "
    "that is not finished, at the committed offset, holds up those behind it where messages are "
    "consumed in order; or no member asks for its messages"
)
OTHER_FILTER = Text(
    "the broker refuses the pulls of its process: members filter the topic differently, the broker "
    "keeps the filter that came last, and serves nobody else (SUBSCRIPTION_NOT_LATEST)"
)


class MayBeRead(NamedTuple):
    """Words for what may be, and the worst severity of what nothing else shows."""

    what: Text
    at_most: str


def explained(case: Case, found: GroupFindings) -> GroupFindings:
    """The stalls with what the processes show of them."""
    mismatches = _filters_that_differ(found.faults)
    frozen = [fault for fault in found.faults if fault.fault == FROZEN_PROCESS]
    outages = [fault for fault in found.faults if fault.fault in OUTAGES and fault.extent.lasts]
    stalls = (_explained(case, stall, mismatches, frozen, outages) for stall in found.stalls)
    return replace(found, stalls=tuple(stalls))


def without_refused(case: Case, found: GroupFindings) -> GroupFindings:
    """Leaves out processes that are frozen by their offsets alone while members filter the topic
    differently, or each of their brokers refuses the group or has no master: their pulls are
    refused, and they are well. So are those whose filter may leave out all that waits.

    One whose listener hangs in its running info is frozen all the same. ``judge/test_why`` has
    the refusals, ``cases/test_left_out_by_a_filter`` the filters.
    """
    mismatches = _filters_that_differ(found.faults)

    def is_well(fault: FaultEpisode) -> bool:
        ids, time = fault.client_ids, fault.extent
        answers = case.holdings[fault.topic].of_clients(ids, time)
        if any(NOT_CONSUMING in answer.activities.values() for answer in answers):
            return False
        refusing = {absence.broker_name for absence in case.absences_in(fault)}
        refusing |= refusals(case.dossier, time).keys()
        is_refused = _is_at_once(fault, mismatches) or refusing.issuperset(fault.broker_names)
        return is_refused or left_out_by_filter(case, fault.topic, ids, time, answers) is not None

    kept = (fault for fault in found.faults if fault.fault != FROZEN_PROCESS or not is_well(fault))
    return replace(found, faults=tuple(kept))


def _filters_that_differ(faults: Iterable[FaultEpisode]) -> list[FaultEpisode]:
    return [fault for fault in faults if fault.fault == EXPRESSION_MISMATCH and fault.extent.lasts]


def _is_at_once(one: Stall | FaultEpisode, faults: Iterable[FaultEpisode]) -> bool:
    return any(fault.topic == one.topic and fault.overlaps(one) for fault in faults)


def has_moving_queue(
    case: Case,
    topics: Iterable[str],
    client_id: str,
    time: Extent,
    but: Collection[tuple[str, QueueKey]] = (),
) -> bool:
    """True if a queue of the client moved in that time, of these topics, ``but`` for some."""
    times = [(time.first_seen, time.last_seen)]
    return any(
        reading(case.offsets.get((topic, *queue)), times).moved
        for topic in topics
        for queue in _queues_of(case, client_id, topic, time)
        if (topic, queue) not in but
    )


def _queues_of(case: Case, client_id: str, topic: str, time: Extent) -> set[QueueKey]:
    """The queues that the client reported to hold, else those computed for it alone."""
    if reported := case.holdings[topic].of_clients([client_id], time):
        return set().union(*[holding.activities for holding in reported])
    phases = [phase for phase in case.timelines[topic].phases if phase.first_seen <= time.last_seen]
    allocated = phases[-1].evaluated.allocations() if phases else ()
    mine = [allocation.queues for allocation in allocated if allocation.client_id == client_id]
    others = [allocation.queues for allocation in allocated if allocation.client_id != client_id]
    found: set[QueueKey] = set().union(*mine)
    return found.difference(*others)


#: Faults of one kind.
_Faults: TypeAlias = Sequence[FaultEpisode]


def _explained(
    case: Case, stall: Stall, mismatches: _Faults, frozen: _Faults, outages: _Faults
) -> Stall:
    """The stall with ``held`` and ``why``, from the other faults of the group."""
    topic_holdings, time = case.holdings[stall.topic], stall.extent
    holders = topic_holdings.holders_in(stall.queue, time)
    held = bool(holders) if holders or topic_holdings.is_unheld(stall.queue, time) else None
    verdict = case.verdict_at(stall.topic, stall.last_seen)
    is_filtered = verdict is not None and verdict.is_filtered
    is_refused = _is_at_once(stall, mismatches)
    left_out = _left_out(case, stall, holders) if is_filtered and not is_refused else None
    why: str | None = None
    at_most = CRITICAL
    away = [one for one in case.absences_in(stall) if one.broker_name == stall.queue[0]]
    if stall.queue[0] in refusals(case.dossier, time):
        why = DISABLED
    elif away:
        why = Text(
            "{away}: a slave serves pulls from 5.0 on only with slaveReadEnable=true, and "
            "consumers in order lock their queues at the master alone",
            away=away[-1].what,
        )
    elif any(is_of_outage(outage, stall) and outage.overlaps(stall) for outage in outages):
        why = CUT_OFF
    elif left_out and (holders or held is None):
        why, at_most = left_out
    elif holders:
        why = _failing_process(case, stall, holders) or (OTHER_FILTER if is_refused else REFUSED)
    elif verdict and verdict.coverage == SHARED_BY_BROKER:
        # Running infos do not show what is read by POP (``cases/test_shared_by_broker``).
        held, why = None, MAY_BE_FILTERED if is_filtered else SHARED
        at_most = WARNING if is_filtered else CRITICAL
    elif held is False:
        why = NOBODY_HOLDS_IT
    elif is_refused:
        why = OTHER_FILTER
    elif _is_at_once(stall, [fault for fault in frozen if {*fault.client_ids} <= {*stall.owners}]):
        why = FROZEN
    return replace(stall, held=held, why=why, at_most=at_most)


def _left_out(case: Case, stall: Stall, holders: Sequence[Holding]) -> MayBeRead | None:
    """Words for a stall of which the owner's filter may leave out all that waits."""
    ids = {holder.process.client_id for holder in holders} or stall.owners
    on_queue = [replace(e, activities={stall.queue: e.activities[stall.queue]}) for e in holders]
    return left_out_by_filter(case, stall.topic, ids, stall.extent, on_queue) if ids else None


def _failing_process(case: Case, stall: Stall, holders: Sequence[Holding]) -> Text | None:
    """The failing of the process that answered last; None: it does all that it should."""
    last = max(holders, key=lambda holding: max(stall.extent.those_of(holding.moments)))
    activity = last.activities[stall.queue]
    if activity is None:
        return None
    in_order, stalled = bool(last.run.consume_orderly), [(stall.topic, stall.queue)]
    if activity == NOT_FINISHING and not in_order:
        return _unfinished(case, stall)
    if has_moving_queue(case, case.timelines, last.process.client_id, stall.extent, stalled):
        if activity == NOT_FINISHING:
            return _unfinished(case, stall, in_order=True)
        return _OF_ACTIVITY[activity]
    # In order no newer message is done: where nothing moves it is no single one that holds it up
    # (``cases/test_standing_queues``).
    why = _OF_ACTIVITY[NOT_CONSUMING if activity == NOT_FINISHING else activity]
    return Text("{why}; no other queue of the process moves", why=why)


def _unfinished(case: Case, stall: Stall, *, in_order: bool = False) -> Text:
    """One message holds the queue up: that at the committed offset."""
    template = (
        "one message is not finished although newer ones are: the one at offset {offset:,}, since "
        "{time}; its listener waits, or fails on it again and again (mqadmin queryMsgByOffset "
        "-t {topic} -b {broker} -i {queue} -o {number})"
    )
    if in_order:
        template = (
            "one message is not finished, and those behind it wait, for the group consumes in "
            "order: the one at offset {offset:,}, since {time}; its listener waits, or fails on it "
            "again and again (mqadmin queryMsgByOffset -t {topic} -b {broker} -i {queue} "
            "-o {number})"
        )
    name, number = stall.queue
    offsets = case.offsets[stall.topic, name, number]
    offset = int(offsets.consumer_offsets[last_up_to(offsets, stall.last_seen)])
    return Text(
        template,
        offset=offset,
        time=zoned_clock(stall.first_seen),
        topic=shell_word(stall.topic),
        broker=shell_word(name),
        queue=number,
        number=offset,
    )


# ---------------------------------------------------------------- brokers that are out of reach


def outages_dated_back(case: Case, found: GroupFindings) -> GroupFindings:
    """The lasting outages since the first of their members' queues on their brokers stopped, up to
    the time in which a broker drops a member before; without the FROZEN_PROCESS of that outage
    (``S15``, ``cases/test_offsets_and_masters``).

    Worked example: at 10:04 c is cut off from broker-b, and its two queues there stop. At 10:06:10
    broker-b drops c. The lists differ since then, and the outage is from 10:04 on.
    """
    faults: list[FaultEpisode] = []
    outages: list[FaultEpisode] = []
    for fault in found.faults:
        is_outage = fault.fault in OUTAGES and fault.extent.lasts
        stopped = [stall for stall in found.stalls if is_outage and _leads_to(stall, fault, case)]
        outages += [_begun_with_stalls(fault, stopped)] if stopped else []
        faults.append(outages[-1] if stopped else fault)
    frozen = (fault for fault in faults if fault.fault == FROZEN_PROCESS)
    parts = [one for one in frozen if any(_is_part(one, outage) for outage in outages)]
    return replace(found, faults=tuple(fault for fault in faults if fault not in parts))


def is_of_outage(outage: FaultEpisode, stall: Stall) -> bool:
    """True if a queue that stalls is one of its members' on its brokers, whatever the topic."""
    is_theirs = bool(stall.owners) and _is_of_members(outage, stall.owners)
    return is_theirs and stall.queue[0] in outage.broker_names


def _is_of_members(outage: FaultEpisode, client_ids: Sequence[str]) -> bool:
    """True if they are among those that the broker lists no more: all, where it lists nobody."""
    return outage.fault == GROUP_NOT_ON_BROKER or {*client_ids} <= {*outage.client_ids}


def _leads_to(stall: Stall, outage: FaultEpisode, case: Case) -> bool:
    """True if a queue of it stopped no longer before than a silent member is listed, and a poll or
    two.
    """
    polls = 2 * usual_gap(np.diff(case.snapshots))
    is_soon = 0 < outage.first_seen - stall.first_seen <= case.expiry + polls
    return is_soon and is_of_outage(outage, stall)


def _begun_with_stalls(fault: FaultEpisode, stopped: Sequence[Stall]) -> FaultEpisode:
    first_seen = min(stall.first_seen for stall in stopped)
    queues = {stall.queue for stall in stopped}
    why = agreeing(
        len(queues),
        "{queues} [has|have] not moved since {time}, before the list changed: a broker drops a "
        "member some two minutes after its last heartbeat",
        queues=queues_in_words(queues),
        time=zoned_clock(first_seen),
    )
    return fault.saying([why], extent=fault.extent._replace(first_seen=first_seen))


def _is_part(frozen: FaultEpisode, outage: FaultEpisode) -> bool:
    is_its = _is_of_members(outage, frozen.client_ids) and frozen.overlaps(outage)
    return is_its and {*frozen.broker_names} <= {*outage.broker_names}


# ---------------------------------------------------------------- what a filter leaves out


def left_out_by_filter(
    case: Case, topic: str, client_ids: Collection[str], time: Extent, answers: Sequence[Holding]
) -> MayBeRead | None:
    """Words for offsets of a topic that stay, where all may be read; None: it is not read.

    ``client_ids``: who has it; empty: any of those that subscribe. All of these are native Go
    clients that filter the topic, and none is known to commit over what the filter leaves out.
    ``answers``: what they hold of it, in that time. Where one of these lacks an activity it is not
    read: nobody asks for messages, or some wait. Without answers it is in doubt
    (``cases/test_left_out_by_a_filter``).
    """
    filters = _filters(case, topic, time)
    who = client_ids or filters.keys()
    found = {filters.get(client_id, _NO_GO) for client_id in who}
    said = (run.client_version for run in case.dossier.clients if run.client_id in who)
    versions = {version for version in said if version}
    if not found or _NO_GO in found or any(map(_commits_surely, versions)):
        return None
    if any(activity for answer in answers for activity in answer.activities.values()):
        return None
    template = (
        "{clients} [filters|filter] the topic by {filter}: native Go clients before 2.1.1 commit "
        "nothing over what the filter leaves out, so that the offset may stay although all is read"
    )
    named = {"clients": clients_in_words(who, {}), "filter": list_of(sorted(found), MOST_NAMES)}
    what = agreeing(len(who), template, **named)
    if versions:
        template = "{what} ([it says that it is|they say that they are] {versions})"
        named = {"what": what, "versions": list_of(sorted(versions), MOST_NAMES)}
        what = agreeing(len(who), template, **named)
    if not answers:
        return MayBeRead(what, WARNING)
    shown = "{what}; [it asks|they ask] for messages, and [has|have] none that waits"
    return MayBeRead(agreeing(len(who), shown, what=what), INFO)


_filter_facts = itemgetter(
    *map([fact.name for fact in MEMBER_FACTS].index, ("client_id", "language", "subscriptions"))
)
#: The filter of who is no native Go client, or does not filter.
_NO_GO = ""


def _filters(case: Case, topic: str, time: Extent) -> dict[str, str]:
    """The filter on the topic of each client that subscribes to it, by the lists of that time."""
    found: dict[str, set[str]] = defaultdict(set)
    for list_id in case.dossier.lists_between(time.first_seen, time.last_seen):
        members = map(_filter_facts, case.dossier.list_records[list_id])
        for client_id, language, subscriptions in members:
            for subscribed, kind, expression in subscriptions or ():
                if subscribed == topic:
                    used = normalise_expression(kind, expression)
                    is_go = (language or "").upper() == "GO" and used != NO_FILTER
                    found[client_id].add(used if is_go else _NO_GO)
    return {client_id: min(values) for client_id, values in found.items()}


def _commits_surely(version: str) -> bool:
    """True if a client of that version commits over what a filter leaves out.

    >>> [_commits_surely(each) for each in ("v2.1.0", "v2.1.1", "v3.0.0", "V4_9_4")]
    [False, True, True, False]
    """
    found = _GO_VERSION.match(version)
    return found is not None and tuple(map(int, found.groups())) >= _COMMITS_SURELY
