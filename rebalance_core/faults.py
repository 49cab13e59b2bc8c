"""From causes to faults: what an operator reads, in words and as values.

A fault is a cause of findings, or something that is wrong without one: members that filter a topic
differently lose messages with no orphan and no lag.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from rebalance_core.causes import Causes, Cure, key_of
from rebalance_core.descriptions import (
    DESCRIBE,
    DESCRIBE_ONE_ID,
    EXPRESSION_MISMATCH,
    MIXED_REQUEST_MODE,
    UNKNOWN_TOPIC,
    Description,
    expression_mismatch,
    message_models,
    pulling_beside_pop,
    routes_differ,
    subscriptions_differ,
)
from rebalance_core.findings import (
    ORPHANED,
    ROUTE_NOT_KNOWN,
    SHARED_BY_BROKER,
    TOO_MANY_QUEUES,
    Evaluation,
    Finding,
    evaluate,
)
from rebalance_core.message_queue import MessageQueue, is_retry_topic
from rebalance_core.moves import Move, find_moves
from rebalance_core.processes import StackedId, find_stacked_ids
from rebalance_core.repairs import (
    MIXED_MESSAGE_MODEL,
    ROUTE_DIVERGENCE,
    SUBSCRIPTION_MISMATCH,
    Situation,
    part_copies,
)
from rebalance_core.state import State
from rebalance_core.strategies import original_and_copy


@dataclass(frozen=True)
class Fault:
    """One fault of a state.

    ``evidence`` says what was seen, ``remedy`` what repairs it; ``client_ids``, ``client_addrs``
    and ``broker_names`` are those that it concerns. ``queues_affected`` counts the queues whose
    findings it causes, ``cleared`` and ``left`` the findings that go and stay with the repair
    (alone, or with the others of its cure), ``moves`` the queues that change hands.
    """

    fault: str
    evidence: str
    remedy: str
    client_ids: tuple[str, ...] = ()
    client_addrs: tuple[str, ...] = ()
    broker_names: tuple[str, ...] = ()
    queues_affected: int = 0
    cleared: int = 0
    left: int = 0
    moves: tuple[Move, ...] = ()


def find_faults(situation: Situation, evaluation: Evaluation, causes: Causes) -> tuple[Fault, ...]:
    """The faults of an evaluated situation: every cause of its findings, and those without one."""
    findings_of: dict[str, list[Finding]] = defaultdict(list)
    cure_of: dict[str, Cure] = {}
    for finding in evaluation.findings:
        for cure in causes.cures[key_of(finding)]:
            for fault in cure:
                findings_of[fault].append(finding)
                # Of the cures that a fault is part of the one with fewest others is previewed.
                cure_of[fault] = min(cure_of.get(fault, cure), cure, key=len)
    faults: list[Fault] = []
    for fault, found in findings_of.items():
        after = causes.after.get(cure_of[fault])
        if fault in DESCRIBE:
            description = DESCRIBE[fault](situation, found)
            faults.append(_as_fault(fault, description, evaluation, found, after))
        else:
            faults += _of_each_id(fault, situation, evaluation, found, after)
    mismatch = expression_mismatch(situation.state)
    if mismatch is not None:
        faults.append(Fault(EXPRESSION_MISMATCH, *mismatch))
    faults += [
        Fault(fault, *DESCRIBE[fault](situation, []))
        for fault, is_so in _WITHOUT_FINDINGS.items()
        if fault not in findings_of and is_so(situation.state, evaluation.coverage)
    ]
    return tuple(faults)


#: What is wrong without a finding that shows it, by state and coverage.
_WITHOUT_FINDINGS: Mapping[str, Callable[[State, str], bool]] = {
    # Clients of a nameserver that gives no queue keep what they have: no queue shows it yet.
    ROUTE_DIVERGENCE: lambda state, coverage: coverage != TOO_MANY_QUEUES and routes_differ(state),
    # Nothing is computed without the route, and yet some member reads what others do not.
    SUBSCRIPTION_MISMATCH: lambda state, coverage: (
        coverage == ROUTE_NOT_KNOWN and subscriptions_differ(state)
    ),
    UNKNOWN_TOPIC: lambda state, coverage: (
        coverage == ROUTE_NOT_KNOWN
        and bool(state.topic_routes)
        and not is_retry_topic(state.topic)
        and any(member.subscribed for member in state.members)
    ),
    MIXED_REQUEST_MODE: lambda state, coverage: (
        coverage == SHARED_BY_BROKER and bool(pulling_beside_pop(state))
    ),
    MIXED_MESSAGE_MODEL: lambda state, _: message_models(state) > 1,
}


def _as_fault(
    fault: str,
    description: Description,
    before: Evaluation,
    findings: Sequence[Finding],
    after: Evaluation | None,
) -> Fault:
    remaining = {key_of(finding) for finding in after.findings} if after else set()
    gone = [finding for finding in before.findings if after and key_of(finding) not in remaining]
    return Fault(
        fault,
        *description,
        queues_affected=len({finding.queue for finding in findings}),
        cleared=len(gone),
        left=len(remaining) if after else len(before.findings),
        moves=find_moves(before, after) if after else (),
    )


#: Of more client ids than this the first alone has the moves: they are the same for all.
_MOST_PREVIEWS = 10


def _of_each_id(
    fault: str,
    situation: Situation,
    before: Evaluation,
    findings: list[Finding],
    after: Evaluation | None,
) -> list[Fault]:
    """A fault for each client id that has it, with the findings of that id.

    What a repair does is computed for all of them together: ``after`` is the evaluation then.
    """
    concerns, describe = DESCRIBE_ONE_ID[fault]
    stacked = [
        stacked_id for stacked_id in find_stacked_ids(situation.state) if concerns(stacked_id)
    ]
    addresses = _addresses_in_one_list(situation.state, stacked)
    of_ids = _findings_of_ids([stacked_id.client_id for stacked_id in stacked], situation, findings)
    preview = _as_fault(fault, Description("", ""), before, findings, after)
    harmful = [
        (stacked_id, of_id) for stacked_id in stacked if (of_id := of_ids[stacked_id.client_id])
    ]
    return [
        replace(
            preview,
            **describe(each, addresses[each.client_id], of_id)._asdict(),
            queues_affected=len({finding.queue for finding in of_id}),
            moves=preview.moves if number == 0 or len(harmful) <= _MOST_PREVIEWS else (),
        )
        for number, (each, of_id) in enumerate(harmful)
    ]


def _addresses_in_one_list(state: State, stacked: Iterable[StackedId]) -> dict[str, list[str]]:
    """By id its addresses in the list that shows most of its copies."""
    most: dict[str, list[str]] = {stacked_id.client_id: [] for stacked_id in stacked}
    for entry in sorted(state.client_lists, key=attrgetter("broker")):
        here: dict[str, list[str]] = defaultdict(list)
        for member in entry.members:
            if member.client_id in most:
                here[member.client_id].append(member.client_addr)
        for client_id, addresses in here.items():
            if len(addresses) > len(most[client_id]):
                most[client_id] = sorted(addresses)
    return most


def _findings_of_ids(
    client_ids: Iterable[str], situation: Situation, findings: Iterable[Finding]
) -> dict[str, list[Finding]]:
    """By client id the findings that it has caused; one that no id alone has caused is in all.

    A queue that several take is that of the id that claims it. One that nobody takes is in the slot
    of a copy: the id whose copies would take it, had each copy a separate id.
    """
    ids = list(client_ids)
    if len(ids) == 1:
        return {ids[0]: list(findings)}
    parted = part_copies(situation)
    takers: dict[MessageQueue, set[str]] = defaultdict(set)
    for allocation in evaluate(parted.state, parted.rules).allocations:
        original, copy = original_and_copy(allocation.client_id)
        if copy:
            for queue in allocation.queues:
                takers[queue].add(original)
    by_id: dict[str, list[Finding]] = {client_id: [] for client_id in ids}
    for finding in findings:
        whose = (
            takers[finding.queue]
            if finding.kind == ORPHANED
            else {claimant.client_id for claimant in finding.claimants if claimant.processes > 1}
        )
        for client_id in whose.intersection(ids) or ids:
            by_id[client_id].append(finding)
    return by_id


#: Every fault that a state can show.
FAULTS = (*DESCRIBE_ONE_ID, *DESCRIBE, EXPRESSION_MISMATCH)
