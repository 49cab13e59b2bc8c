"""From causes to faults: what an operator is told, in words and as values.

A fault is a cause of findings, or something that is wrong without one: members that filter a topic
differently lose messages with no orphan and no lag.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from rebalance_core.causes import GROUP_OFFLINE, UNEXPLAINED, Causes, Cure, key_of
from rebalance_core.english import list_of, named_broker, noun, queues_of, verb
from rebalance_core.findings import DUPLICATE, ORPHANED, Evaluation, Finding, offline_share
from rebalance_core.message_queue import MessageQueue, sort_message_queues
from rebalance_core.processes import (
    StackedId,
    find_processes,
    find_stacked_ids,
    silent_members,
)
from rebalance_core.repairs import (
    BROKER_VIEW_DIVERGENCE,
    CONFIG_GAP,
    CONFIG_OVERLAP,
    DUPLICATE_CLIENT_ID,
    GHOST_MEMBER,
    MANUAL_ASSIGNMENT,
    MIXED_MESSAGE_MODEL,
    ROOM_NOT_SERVED,
    ROUTE_DIVERGENCE,
    STALE_CHANNEL,
    STRATEGY_MISMATCH,
    SUBSCRIPTION_MISMATCH,
    Situation,
    is_stranger,
    lists_of_topic,
)
from rebalance_core.state import BROADCASTING, Member, State
from rebalance_core.strategies import AllocationStrategy, Sdk, own_copy, sdk_of
from rebalance_core.strategies.by_machine_room import MachineRoomUnfiltered
from rebalance_core.views import asked_brokers

EXPRESSION_MISMATCH = "EXPRESSION_MISMATCH"


@dataclass(frozen=True, slots=True)
class Move:
    """A queue whose takers change with a repair, by client id, once for each process.

    One that takes it under some views alone is followed by "(at times)".
    """

    queue: MessageQueue
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
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


class _Told(NamedTuple):
    """The first fields of a ``Fault`` but for its name."""

    evidence: str
    remedy: str
    client_ids: tuple[str, ...] = ()
    client_addrs: tuple[str, ...] = ()
    broker_names: tuple[str, ...] = ()


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
    faults = [
        _as_fault(fault, situation, evaluation, found, causes.after.get(cure_of[fault]))
        for fault, found in findings_of.items()
    ]
    told = _expression_mismatch(situation.state)
    if told is not None:
        faults.append(Fault(EXPRESSION_MISMATCH, *told))
    if MIXED_MESSAGE_MODEL not in findings_of and _models(situation.state) > 1:
        faults.append(Fault(MIXED_MESSAGE_MODEL, *_mixed_models(situation, [])))
    return tuple(faults)


def _as_fault(
    fault: str,
    situation: Situation,
    before: Evaluation,
    findings: list[Finding],
    after: Evaluation | None,
) -> Fault:
    told = _TELLERS[fault](situation, findings)
    remaining = {key_of(finding) for finding in after.findings} if after else set()
    gone = [finding for finding in before.findings if after and key_of(finding) not in remaining]
    return Fault(
        fault,
        *told,
        queues_affected=len({finding.queue for finding in findings}),
        cleared=len(gone),
        left=len(remaining) if after else len(before.findings),
        moves=find_moves(before, after) if after else (),
    )


def find_moves(before: Evaluation, after: Evaluation) -> tuple[Move, ...]:
    """The queues whose takers are others after than before, in Java's order."""
    takers = _takers(before), _takers(after)
    queues = sort_message_queues(list({*takers[0], *takers[1]}))
    moves = (Move(q, takers[0].get(q, ()), takers[1].get(q, ())) for q in queues)
    return tuple(move for move in moves if move.before != move.after)


def _takers(evaluation: Evaluation) -> dict[MessageQueue, tuple[str, ...]]:
    """By queue who takes it, once for each process."""
    shares: dict[MessageQueue, dict[tuple[str, int], float]] = defaultdict(
        lambda: defaultdict(float)
    )
    for allocation in evaluation.allocations:
        taker = (shown_id(allocation.client_id), allocation.processes)
        for queue in set(allocation.queues):
            shares[queue][taker] += allocation.view_weight
    return {
        queue: tuple(
            client_id if share > 1 - 1e-9 else f"{client_id} (at times)"
            for (client_id, processes), share in sorted(of_queue.items())
            for _ in range(processes)
        )
        for queue, of_queue in shares.items()
    }


def shown_id(client_id: str) -> str:
    """A client id as a person reads it: of an own id the number of the process behind it.

    >>> from rebalance_core.strategies import own_id
    >>> shown_id("10.0.0.1@app"), shown_id(own_id("10.0.0.1@app", 1))
    ('10.0.0.1@app', '10.0.0.1@app (process 2)')
    """
    original, copy = own_copy(client_id)
    return original if copy == 0 else f"{original} (process {copy + 1})"


def queue_ranges(queues: Iterable[MessageQueue]) -> str:
    """Queues as a person writes them down.

    >>> queue_ranges([MessageQueue("T", b, n) for b, n in (("a", 0), ("a", 1), ("a", 3), ("b", 2))])
    'queues 0-1, 3 of a and queue 2 of b'
    """
    by_broker: dict[str, list[int]] = defaultdict(list)
    for queue in sort_message_queues(list(set(queues))):
        by_broker[queue.broker_name].append(queue.queue_id)
    return _and(queues_of(*each) for each in by_broker.items())


#: More names than this in one sentence nobody reads; the columns have them all.
_MOST_NAMES = 5


def _and(parts: Iterable[str]) -> str:
    return list_of(parts, _MOST_NAMES)


def _effect(findings: list[Finding]) -> str:
    """What the findings say: how many queues, and which, are consumed twice or by nobody."""
    parts = []
    for kind, text in ((DUPLICATE, "taken by several"), (ORPHANED, "taken by nobody")):
        found = [finding for finding in findings if finding.kind == kind]
        if found:
            sure = all(finding.certainty == "CERTAIN" for finding in found)
            are = noun(len({finding.queue for finding in found}), "is", "are")
            taken = f"{are} {text}" if sure else f"{are} at times {text}"
            parts.append(f"{queue_ranges(f.queue for f in found)} {taken}")
    return "; ".join(parts)


def _members(state: State, which: Callable[[Member], bool]) -> tuple[str, ...]:
    """The client ids of the members that fit, in order, each once."""
    return tuple(sorted({m.client_id for m in state.members if which(m)}))


def _models(state: State) -> int:
    return len({m.message_model for m in state.members})


def _duplicate_ids(situation: Situation, findings: list[Finding]) -> _Told:
    stacked = [each for each in find_stacked_ids(situation.state) if each.processes > 1]
    addresses_of = _addresses_in_one_list(situation.state, stacked)
    taken_by: dict[str, set[MessageQueue]] = defaultdict(set)
    for finding in findings:
        if finding.kind == DUPLICATE:
            for claimant in finding.claimants:
                taken_by[claimant.client_id].add(finding.queue)
    sentences = []
    for each in stacked:
        addresses = addresses_of[each.client_id]
        taken = queue_ranges(taken_by[each.client_id])
        takes = f"; {'both' if each.processes == 2 else 'all'} take {taken}" if taken else ""
        sentences.append(
            f"{each.client_id} is used by {each.processes} processes, {_and(addresses)}{takes}"
        )
    orphans = {finding.queue for finding in findings if finding.kind == ORPHANED}
    if orphans:
        sentences.append(
            f"the share of the later copies ({len(orphans)} {noun(len(orphans), 'queue')}: "
            f"{queue_ranges(orphans)}) has no owner"
        )
    return _Told(
        evidence="; ".join(sentences),
        remedy="give each process its own instanceName, or let the client choose it (4.9.0 and "
        "later append the start time)",
        client_ids=tuple(each.client_id for each in stacked),
        client_addrs=tuple(address for each in stacked for address in each.client_addrs),
    )


def _addresses_in_one_list(state: State, stacked: Iterable[StackedId]) -> dict[str, list[str]]:
    """By id its addresses in the list that shows most of its copies."""
    most: dict[str, list[str]] = {each.client_id: [] for each in stacked}
    for entry in sorted(state.client_lists, key=attrgetter("broker")):
        here: dict[str, list[str]] = defaultdict(list)
        for member in entry.members:
            if member.client_id in most:
                here[member.client_id].append(member.client_addr)
        for client_id, addresses in here.items():
            if len(addresses) > len(most[client_id]):
                most[client_id] = sorted(addresses)
    return most


def _stale_channels(situation: Situation, findings: list[Finding]) -> _Told:
    stacked = [each for each in find_stacked_ids(situation.state) if each.copies > each.processes]
    addresses_of = _addresses_in_one_list(situation.state, stacked)
    told = _and(
        f"{each.client_id} stands {each.copies} times in a broker's list "
        f"({_and(addresses_of[each.client_id])}) and has "
        f"{each.processes} {noun(each.processes, 'process', 'processes')}"
        for each in stacked
    )
    return _Told(
        evidence=f"{told}: a channel that was not closed takes a slot; {_effect(findings)}",
        remedy="none: the broker drops a silent channel within about 130 s; if it comes again, "
        "look for heartbeats that time out",
        client_ids=tuple(each.client_id for each in stacked),
        client_addrs=tuple(address for each in stacked for address in each.client_addrs),
    )


def _ghosts(situation: Situation, findings: list[Finding]) -> _Told:
    addresses = {address for _, _, address in silent_members(situation.state)}
    ghosts = _members(situation.state, lambda member: member.client_addr in addresses)
    return _Told(
        evidence=f"{_and(ghosts)} sent no heartbeat for longer than a broker keeps a silent "
        f"member and still {verb('take', len(ghosts))} a slot; {_effect(findings)}",
        remedy="see whether the process lives; restart it, or wait for the broker to drop it",
        client_ids=ghosts,
    )


def _strategies(situation: Situation, findings: list[Finding]) -> _Told:
    users: dict[str, list[str]] = defaultdict(list)
    in_use = _strategies_in_use(situation)
    for client_id, strategy in in_use:
        users[strategy.full_name].append(client_id)
    told, others = _by_users(users, "use")
    if len(users) == 1:
        told += " with different parameters"
    return _Told(
        evidence=f"{told}; {_effect(findings)}",
        remedy=_one_strategy(situation.state, [strategy for _, strategy in in_use]),
        client_ids=others,
    )


def _by_users(
    users: Mapping[str, Collection[str]], does: str, how: str = ""
) -> tuple[str, tuple[str, ...]]:
    """Who does what, most of them first, in words; and the ids of all but those."""
    by_number = sorted(users.items(), key=lambda each: (-len(each[1]), each[0]))
    told = (f"{_and(sorted(ids))} {verb(does, len(ids))} {how}{it}" for it, ids in by_number)
    return "; ".join(told), tuple(sorted({each for _, ids in by_number[1:] for each in ids}))


def _strategies_in_use(situation: Situation) -> list[tuple[str, AllocationStrategy]]:
    """Client id and strategy of every process that takes part."""
    return [
        (process.client_id, process.strategy.strategy)
        for process in find_processes(situation.state, situation.rules)
        if process.claims and process.strategy.strategy is not None
    ]


def _one_strategy(state: State, in_use: Collection[AllocationStrategy]) -> str:
    """What makes all members of the group compute the same, whatever SDK each is built on."""
    members = [m for m in state.members if m.subscribed]
    sdks = {sdk_of(member.language, member.version) for member in members}
    common = ""
    if len(sdks) > 1 and Sdk.CPP in sdks:
        common = ": AVG, which is all that client-cpp has"
    elif len(sdks) > 1 and Sdk.GO in sdks:
        common = ": AVG or AVG_BY_CIRCLE, which client-go computes as Java does"
    remedy = f"give all members of the group the same strategy{common}{_update(in_use)}"
    if any(strategy.sorts_bytewise for strategy in in_use):
        remedy += "; name clients and brokers in ASCII, which all SDKs sort alike"
    return remedy


def _subscriptions(situation: Situation, findings: list[Finding]) -> _Told:
    strangers = _members(situation.state, is_stranger)
    return _Told(
        evidence=f"{_and(strangers)} {verb('do', len(strangers))} not subscribe to "
        f"{situation.state.topic} and {verb('take', len(strangers))} a slot of it all the same; "
        f"{_effect(findings)}",
        remedy="let all members of the group subscribe to the same topics, or give those that do "
        "not a group of their own",
        client_ids=strangers,
    )


def _manual_assignment(situation: Situation, findings: list[Finding]) -> _Told:
    choosers = _members(situation.state, lambda member: member.chooses_queues)
    number = len(choosers)
    return _Told(
        evidence=f"{_and(choosers)} {verb('choose', number)} queues by assign() or by the pull "
        f"consumer and {verb('take', number)} a slot all the same (which queues they read "
        f"nobody can compute); {_effect(findings)}",
        remedy="give members that choose their queues themselves a group of their own",
        client_ids=choosers,
    )


def _mixed_models(situation: Situation, findings: list[Finding]) -> _Told:
    broadcasting = _members(situation.state, lambda m: m.message_model == BROADCASTING)
    effect = _effect(findings)
    return _Told(
        evidence=f"{_and(broadcasting)} {verb('broadcast', len(broadcasting))} in a clustering "
        f"group, reading every queue and taking slots{'; ' + effect if effect else ''}",
        remedy="give broadcasting members a group of their own",
        client_ids=broadcasting,
    )


def _broker_views(situation: Situation, findings: list[Finding]) -> _Told:
    every = {m.client_id for entry in lists_of_topic(situation.state) for m in entry.members}
    asked = asked_brokers(situation.state)
    lacking = {
        entry.broker: sorted(every - {member.client_id for member in entry.members})
        for entry in sorted(situation.state.client_lists, key=attrgetter("broker"))
        if entry.broker in asked
    }
    short = {broker: missing for broker, missing in lacking.items() if missing}
    told = "; ".join(
        f"the list of {named_broker(*of)} lacks {_and(missing)}, which other brokers list"
        for of, missing in short.items()
    )
    return _Told(
        evidence=f"{told or 'the brokers list an id a different number of times'}; a client asks "
        f"a random broker at every rebalance, so the shares change from one to the next; "
        f"{_effect(findings)}",
        remedy="see whether those clients reach those brokers (network, firewall, name server "
        "addresses); while one starts or leaves this passes by itself",
        client_ids=tuple(sorted({each for missing in short.values() for each in missing})),
        broker_names=tuple(dict.fromkeys(name for name, _ in short)),
    )


def _routes(situation: Situation, findings: list[Finding]) -> _Told:
    told = "; ".join(
        f"{route.namesrv_addr} gives "
        + (
            _and(
                f"{broker.broker_name} with {broker.read_queue_nums} queues"
                for broker in sorted(route.brokers, key=lambda each: each.broker_name)
                if broker.is_readable
            )
            if any(broker.is_readable for broker in route.brokers)
            else "no readable broker"
        )
        for route in situation.state.topic_routes
    )
    return _Told(
        evidence=f"the nameservers differ on {situation.state.topic}: {told}; {_effect(findings)}",
        remedy="see whether every broker registers with every nameserver",
        broker_names=tuple(sorted({b.broker_name for b in situation.state.brokers})),
    )


def _group_offline(situation: Situation, findings: list[Finding]) -> _Told:
    who = "no broker" if offline_share(situation.state) == 1.0 else "no broker that answered"
    return _of_queues(
        f"{who} knows any member of the group",
        "start the group's consumers, or delete the subscription group if it is no longer used",
    )(situation, findings)


def _rooms(situation: Situation, findings: list[Finding]) -> _Told:
    evidence = "no member serves the room of these brokers"
    remedy = "add the room to consumeridcs, or name the brokers room@broker"
    unfiltered = {
        client_id: strategy
        for client_id, strategy in _strategies_in_use(situation)
        if isinstance(strategy, MachineRoomUnfiltered)
    }
    if unfiltered:
        names = sorted({strategy.full_name for strategy in unfiltered.values()})
        evidence = (
            f"{_and(sorted(unfiltered))} {verb('use', len(unfiltered))} {_and(names)}, whose "
            "blocks are cut from the queues of all rooms: those of a room that no member serves "
            "take the place of others"
        )
        remedy += _update(unfiltered.values())
    return _of_queues(evidence, remedy)(situation, findings)


def _update(in_use: Iterable[AllocationStrategy]) -> str:
    is_old = any(strategy.variant == Sdk.JAVA_BEFORE_4_8_0.value for strategy in in_use)
    return "; update the clients before 4.8.0" if is_old else ""


def _of_queues(sentence: str, remedy: str) -> Callable[[Situation, list[Finding]], _Told]:
    def tell(situation: Situation, findings: list[Finding]) -> _Told:
        del situation
        return _Told(
            evidence=f"{sentence}: {_effect(findings)}",
            remedy=remedy,
            broker_names=tuple(sorted({finding.queue.broker_name for finding in findings})),
        )

    return tell


@lru_cache(maxsize=1_024)
def normalise_expression(expression_type: str | None, expression: str | None) -> str:
    """A filter in one spelling: tags in any order are the same filter, and none is ``*``.

    >>> normalise_expression("TAG", "b||a"), normalise_expression("TAG", "a || b")
    ('TAG a || b', 'TAG a || b')
    """
    text = expression or ""
    if expression_type not in (None, "", "TAG"):
        return f"{expression_type} {text.strip()}"
    tags = sorted({tag.strip() for tag in text.split("||")} - {""})
    return "TAG " + ("*" if not tags or "*" in tags else " || ".join(tags))


def _expression_mismatch(state: State) -> _Told | None:
    subscribed = [m for m in state.members if m.subscribed]
    if len({member.expression for member in subscribed} - {None}) < 2:
        return None
    users: dict[str, set[str]] = defaultdict(set)
    for member in subscribed:
        if member.expression is not None:
            users[member.expression].add(member.client_id)
    told, others = _by_users(users, "filter", "by ")
    return _Told(
        evidence=f"{told}: of what a client's queues hold, it drops what its own filter does not "
        "let pass, with no lag to show for it",
        remedy="let all members of the group use one filter, or a group for each filter",
        client_ids=others,
    )


_TELLERS: Mapping[str, Callable[[Situation, list[Finding]], _Told]] = {
    DUPLICATE_CLIENT_ID: _duplicate_ids,
    STALE_CHANNEL: _stale_channels,
    GHOST_MEMBER: _ghosts,
    STRATEGY_MISMATCH: _strategies,
    SUBSCRIPTION_MISMATCH: _subscriptions,
    MANUAL_ASSIGNMENT: _manual_assignment,
    MIXED_MESSAGE_MODEL: _mixed_models,
    BROKER_VIEW_DIVERGENCE: _broker_views,
    ROUTE_DIVERGENCE: _routes,
    ROOM_NOT_SERVED: _rooms,
    CONFIG_OVERLAP: _of_queues(
        "these queues stand in the lists of several clients",
        "leave each queue in one client's list",
    ),
    CONFIG_GAP: _of_queues(
        "these queues stand in no client's list",
        "add each queue to one client's list, %RETRY% topics included",
    ),
    GROUP_OFFLINE: _group_offline,
    UNEXPLAINED: _of_queues(
        "no single fault that is known, and no set of them, explains these queues",
        "look at the allocations of the state",
    ),
}

#: Every fault that a state can show.
FAULTS = (*_TELLERS, EXPRESSION_MISMATCH)
