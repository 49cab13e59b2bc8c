"""stalls, running infos -> why a queue does not move: what its process reports, in all topics."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from rebalance_core.descriptions import EXPRESSION_MISMATCH
from rebalance_core.findings import SHARED_BY_BROKER, Evaluation
from rebalance_core.texts import Text

from ...declared.kinds import CRITICAL, FROZEN_PROCESS, WARNING
from ...schemas import NOT_CONSUMING, NOT_COUNTING, NOT_FINISHING, NOT_LOCKED, NOT_PULLING
from ...texts.shown import shell_word
from ..observe.backlog import last_up_to, reading
from ..observe.brokers import refusals
from ..observe.core_verdict import QueueKey
from ..observe.holdings import Holding
from ..observe.in_words import zoned_clock
from ..times.extents import Extent
from .case import Case
from .cut_off import OUTAGES, is_of_outage
from .filtered import MayBeRead, left_out_by_filter
from .found import FaultEpisode, GroupFindings, Stall

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


def explained(case: Case, found: GroupFindings) -> GroupFindings:
    """The stalls with what the processes show of them."""
    mismatches = _filters_that_differ(found.faults)
    frozen = [fault for fault in found.faults if fault.fault == FROZEN_PROCESS]
    differ = [fault for fault in found.faults if fault.fault in OUTAGES]
    stalls = tuple(explain(case, stall, mismatches, frozen, differ) for stall in found.stalls)
    return replace(found, stalls=stalls)


def without_refused(case: Case, found: GroupFindings) -> GroupFindings:
    """Leaves out processes that are frozen by their offsets alone while members filter the topic
    differently, or each of their brokers refuses the group or has no master: their pulls are
    refused, and they are well. So are those whose filter may leave out all that waits.

    One whose listener hangs in its running info is frozen all the same.
    """
    mismatches = _filters_that_differ(found.faults)

    def is_well(fault: FaultEpisode) -> bool:
        away = (absence for absence in case.masters_away if absence.explains(fault, case.snapshots))
        refusing = refusals(case.dossier, fault.extent).keys() | {
            absence.broker_name for absence in away
        }
        answers = case.holdings[fault.topic].of_clients(fault.client_ids, fault.extent)
        ids, time = fault.client_ids, fault.extent
        is_refused = _is_at_once(fault, mismatches) or refusing >= set(fault.broker_names)
        is_refused |= left_out_by_filter(case, fault.topic, ids, time, answers) is not None
        return is_refused and not any(
            NOT_CONSUMING in answer.activities.values() for answer in answers
        )

    kept = (each for each in found.faults if each.fault != FROZEN_PROCESS or not is_well(each))
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
    began = [phase for phase in case.timelines[topic].phases if phase.first_seen <= time.last_seen]
    allocated = began[-1].evaluated.allocations() if began else ()
    mine = [allocation.queues for allocation in allocated if allocation.client_id == client_id]
    others = [allocation.queues for allocation in allocated if allocation.client_id != client_id]
    found: set[QueueKey] = set().union(*mine)
    return found.difference(*others)


#: Faults of one kind.
_Faults: TypeAlias = Sequence[FaultEpisode]


def explain(
    case: Case, stall: Stall, mismatches: _Faults, frozen: _Faults, differ: _Faults = ()
) -> Stall:
    """The stall with ``held`` and ``why``, from the other faults of the group."""
    of_topic, time = case.holdings[stall.topic], stall.extent
    holders = of_topic.holders_in(stall.queue, time)
    held = bool(holders) if holders or of_topic.is_unheld(stall.queue, time) else None
    is_refused = _is_at_once(stall, mismatches)
    left_out = None if is_refused else _left_out(case, stall, holders)
    why: str | None = None
    at_most = CRITICAL
    of_broker = (absence for absence in case.masters_away if absence.broker_name == stall.queue[0])
    away = [absence for absence in of_broker if absence.explains(stall, case.snapshots)]
    outages = (fault for fault in differ if fault.extent.lasts and fault.overlaps(stall))
    if stall.queue[0] in refusals(case.dossier, time):
        why = DISABLED
    elif away:
        why = Text(
            "{away}: a slave serves pulls from 5.0 on only with slaveReadEnable=true, and "
            "consumers in order lock their queues at the master alone",
            away=away[-1].what,
        )
    elif any(is_of_outage(outage, stall) for outage in outages):
        why = CUT_OFF
    elif left_out and (holders or held is None):
        why, at_most = left_out
    elif holders:
        why = _failing_process(case, stall, holders) or (OTHER_FILTER if is_refused else REFUSED)
    elif (verdict := _verdict_at_end(case, stall)) and verdict.coverage == SHARED_BY_BROKER:
        # Running infos do not show what is read by POP.
        held, why = None, MAY_BE_FILTERED if verdict.is_filtered else SHARED
        at_most = WARNING if verdict.is_filtered else CRITICAL
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
    if not ids or (verdict := _verdict_at_end(case, stall)) is None or not verdict.is_filtered:
        return None
    of_queue = [replace(e, activities={stall.queue: e.activities[stall.queue]}) for e in holders]
    return left_out_by_filter(case, stall.topic, tuple(ids), stall.extent, of_queue)


def _verdict_at_end(case: Case, stall: Stall) -> Evaluation | None:
    (situation_id,) = case.situations.in_force(stall.topic, np.array([stall.last_seen]))
    return None if situation_id is None else case.evaluated[situation_id].verdict


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
    # In order no newer message is done: where nothing moves it is no single one that holds it up.
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
