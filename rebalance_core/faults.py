"""Faults: causes as an operator reads them, in words and as values.

A fault is a cause of findings, or something that is wrong without one: members that filter a topic
differently lose messages with no orphan and no lag.

A **latent** fault is that of members that differ and cost no queue, for as long as the others are
so many. A member that does not subscribe takes a slot of the topic. With more members than queues
the last slots are empty: if its own is one of them, nothing is wrong until others leave. So do
strategies give the same shares for some numbers of members.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from . import descriptions, findings, repairs
from .causes import Causes, Cure
from .division import Move, find_moves
from .english import joined
from .findings import Evaluation, Finding, evaluate
from .message_queue import MessageQueue, is_own_retry_topic, sort_client_ids
from .processes import find_processes, find_stacked_ids
from .repairs import Situation, is_stranger, most_copies, part_copies
from .state import GROUP_TABLE, State
from .strategy import original_and_copy
from .views import readable_queues


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
    #: True if it does no harm as long as the members are so many.
    is_latent: bool = False


def find_faults(situation: Situation, evaluation: Evaluation, causes: Causes) -> tuple[Fault, ...]:
    """The faults of an evaluated situation: every cause of its findings, and those without one."""
    findings_of: dict[str, list[Finding]] = defaultdict(list)
    cure_of: dict[str, Cure] = {}
    for finding in evaluation.findings:
        for cure in causes.cures[finding.key]:
            for fault in cure:
                findings_of[fault].append(finding)
                # The cure with fewest other faults is previewed, of those that a fault is part of.
                cure_of[fault] = min(cure_of.get(fault, cure), cure, key=len)
    faults: list[Fault] = []
    for fault, found in findings_of.items():
        effect = _effect(evaluation, causes.after.get(cure_of[fault]))
        if fault in descriptions.DESCRIBE:
            effect["queues_affected"] = len({finding.queue for finding in found})
            described = descriptions.DESCRIBE[fault](situation, found)
            faults.append(Fault(fault, **described._asdict(), **effect))
        else:
            faults += _fault_of_each_id(fault, situation, found, effect)
    faults += [
        Fault(fault, **descriptions.DESCRIBE[fault](situation, [])._asdict())
        for fault, is_so in _WITHOUT_FINDINGS.items()
        if fault not in findings_of and is_so(situation.state, evaluation.coverage)
    ]
    faults += _latent_faults(situation, evaluation, findings_of)
    return tuple(faults)


#: The faults of members that differ.
LATENT = (
    repairs.STRATEGY_MISMATCH,
    repairs.SUBSCRIPTION_MISMATCH,
    repairs.MANUAL_ASSIGNMENT,
)

#: Each try divides all queues anew, some 30 times for a state: of a larger group that takes too
#: long.
_MOST_CLIENTS = 1_000


def _latent_faults(
    situation: Situation, evaluation: Evaluation, shown: Collection[str]
) -> Iterator[Fault]:
    """The faults that no finding shows yet, with what they would do.

    None of the group's own retry topic, to which a client subscribes by itself: members that differ
    do so in the other topics, too.
    """
    if is_own_retry_topic(situation.state.topic, situation.state.consumer_group):
        return
    for fault in LATENT:
        harm = None if fault in shown else _harm_with_fewer(situation, evaluation, fault)
        if harm is not None:
            described = descriptions.DESCRIBE[fault](situation, [])
            evidence = joined([described.evidence, descriptions.harmless_today(*harm)])
            yield Fault(fault, **described._replace(evidence=evidence)._asdict(), is_latent=True)


def _harm_with_fewer(
    situation: Situation, evaluation: Evaluation, fault: str
) -> tuple[Sequence[str], tuple[Finding, ...]] | None:
    """The fewest of the clients in the first slots with which gone a fault does harm that has done
    none yet, and the findings then; None: members do not differ so, or however few are left no
    queue shows it.

    Worked example: nine clients share eight queues, and the ninth does not subscribe. Without the
    first one the ninth has the eighth slot, and the eighth queue no owner.
    """
    repair = repairs.REPAIRS[fault]
    if evaluation.coverage != findings.AUDITED or not _is_seen(situation, fault):
        return None
    processes = find_processes(situation.state, situation.rules)
    clients = sort_client_ids({process.client_id for process in processes if process.takes_part})
    if repair(situation) is situation or len(clients) > _MOST_CLIENTS:
        return None

    def findings_without(gone: Collection[str]) -> tuple[Finding, ...]:
        left = repairs.unlist_clients(situation, gone)
        mended = repair(left)
        now, then = evaluate(left.state, left.rules), evaluate(mended.state, mended.rules)
        if {now.coverage, then.coverage} != {findings.AUDITED}:
            return ()
        others = evaluation.finding_keys | then.finding_keys
        return tuple(finding for finding in now.findings if finding.key not in others)

    # At last there may be nobody left who differs, or all who are left do.
    steps = [1 << power for power in range(len(clients).bit_length())]
    numbers = {*steps, *(len(clients) - 1 - step for step in steps)}
    harmless, harmful = 0, 0
    found: tuple[Finding, ...] = ()
    for number in sorted(numbers.intersection(range(1, len(clients)))):
        harmless, harmful = harmful, number
        if found := findings_without(clients[:number]):
            break
    while found and harmful - harmless > 1:
        between = (harmless + harmful) // 2
        if fewer := findings_without(clients[:between]):
            harmful, found = between, fewer
        else:
            harmless = between
    return (clients[:harmful], found) if found else None


def _is_seen(situation: Situation, fault: str) -> bool:
    """True if it was seen of the members themselves: the group's table has what any of them
    subscribes to.
    """
    strangers = filter(is_stranger, situation.state.members)
    reported = any(member.subscription_source != GROUP_TABLE for member in strangers)
    return reported or fault != repairs.SUBSCRIPTION_MISMATCH


#: Faults without a finding that shows them, by state and coverage.
_WITHOUT_FINDINGS: Mapping[str, Callable[[State, str], bool]] = {
    descriptions.EXPRESSION_MISMATCH: lambda state, _: len(descriptions.filter_users(state)) > 1,
    # Clients of a nameserver that gives no queue keep what they have: no queue shows it yet. Who
    # chooses its queues divides none by a route. The topics of a group say it for its retry topic.
    repairs.ROUTE_DIVERGENCE: lambda state, coverage: (
        coverage not in (findings.TOO_MANY_QUEUES, findings.QUEUES_CHOSEN)
        and not is_own_retry_topic(state.topic, state.consumer_group)
        and len({readable_queues(state.topic, route) for route in state.topic_routes}) > 1
    ),
    # Nothing is computed without the route, and yet some member reads what others do not.
    repairs.SUBSCRIPTION_MISMATCH: lambda state, coverage: (
        coverage == findings.ROUTE_NOT_KNOWN and descriptions.subscriptions_differ(state)
    ),
    descriptions.UNKNOWN_TOPIC: lambda state, coverage: (
        coverage == findings.ROUTE_NOT_KNOWN
        and bool(state.topic_routes)
        and not is_own_retry_topic(state.topic, state.consumer_group)
        and any(member.subscribed for member in state.members)
    ),
    repairs.MIXED_REQUEST_MODE: lambda state, coverage: (
        coverage == findings.SHARED_BY_BROKER
        and {m.client_rebalance for m in state.members if m.subscribed} >= {True, False}
    ),
    repairs.MIXED_MESSAGE_MODEL: lambda state, _: len({m.message_model for m in state.members}) > 1,
}


def _effect(before: Evaluation, after: Evaluation | None) -> dict[str, Any]:
    """The effect of a repair, as fields of a ``Fault``; ``after`` is the evaluation then."""
    if after is None:
        return {"left": len(before.findings)}
    gone, left = before.finding_keys - after.finding_keys, len(after.finding_keys)
    return {"cleared": len(gone), "left": left, "moves": find_moves(before, after)}


#: The most client ids that have moves each; of more only the first has: they are the same for all.
_MOST_PREVIEWS = 10


def _fault_of_each_id(
    fault: str, situation: Situation, found: list[Finding], effect: Mapping[str, Any]
) -> Iterator[Fault]:
    """A fault for each client id that has it, with the findings of that id.

    The effect of a repair is computed for all of them together.
    """
    concerns, evidence = descriptions.DESCRIBE_ONE_ID[fault]
    concerned = filter(concerns, find_stacked_ids(situation.state))
    stacked = {stacked_id.client_id: stacked_id for stacked_id in concerned}
    findings_by_id = _findings_of_ids(stacked, situation, found)
    most = most_copies(sorted(situation.state.client_lists, key=attrgetter("broker")))
    harmful = [client_id for client_id in stacked if findings_by_id[client_id]]
    for client_id in harmful:
        id_findings = findings_by_id[client_id]
        addresses = sorted(member.client_addr for member in most[client_id])
        yield Fault(
            fault,
            evidence(stacked[client_id], addresses, id_findings),
            stacked[client_id].remedy,
            client_ids=(client_id,),
            client_addrs=stacked[client_id].client_addrs,
            queues_affected=len({finding.queue for finding in id_findings}),
            **effect,
        )
        if len(harmful) > _MOST_PREVIEWS:
            effect = {**effect, "moves": ()}


def _findings_of_ids(
    ids: Collection[str], situation: Situation, found: list[Finding]
) -> dict[str, list[Finding]]:
    """The findings that each client id has caused; one that no id alone has caused is in all.

    A queue that several take is that of the id that claims it. One that nobody takes is in the slot
    of a copy: the id whose copies would take it, had each copy a separate id.
    """
    if len(ids) == 1:
        return dict.fromkeys(ids, found)
    parted = part_copies(situation)
    takers: dict[MessageQueue, set[str]] = defaultdict(set)
    for allocation in evaluate(parted.state, parted.rules).allocations:
        original, copy = original_and_copy(allocation.client_id)
        if copy:
            for queue in allocation.queues:
                takers[queue].add(original)
    by_id: dict[str, list[Finding]] = {client_id: [] for client_id in ids}
    for finding in found:
        whose = (
            takers[finding.queue]
            if finding.kind == findings.ORPHANED
            else {claimant.client_id for claimant in finding.claimants if claimant.processes > 1}
        )
        for client_id in whose.intersection(ids) or ids:
            by_id[client_id].append(finding)
    return by_id


#: Every fault that a state can show.
FAULTS = (*descriptions.DESCRIBE_ONE_ID, *descriptions.DESCRIBE)
