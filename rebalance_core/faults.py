"""From causes to faults: what an operator is told, in words and as values.

A fault is a cause of findings, or something that is wrong without one: members that filter a topic
differently lose messages with no orphan and no lag.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from rebalance_core.causes import GROUP_OFFLINE, UNEXPLAINED, Causes, Cure, key_of
from rebalance_core.client_kinds import STALE_CHANNEL_REMEDY, own_ids_for
from rebalance_core.english import list_of, named_broker, noun, queues_of, verb
from rebalance_core.findings import (
    DUPLICATE,
    ORPHANED,
    TOO_MANY_QUEUES,
    Evaluation,
    Finding,
    evaluate,
    offline_share,
)
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
    GROUP_NOT_ON_BROKER,
    MANUAL_ASSIGNMENT,
    MIXED_MESSAGE_MODEL,
    ROOM_NOT_SERVED,
    ROUTE_DIVERGENCE,
    STALE_CHANNEL,
    STRATEGY_MISMATCH,
    SUBSCRIPTION_MISMATCH,
    Situation,
    brokers_without_group,
    is_stranger,
    lists_of_topic,
    part_copies,
)
from rebalance_core.state import BROADCASTING, GROUP_TABLE, SURE, Member, State
from rebalance_core.strategies import AllocationStrategy, Sdk, own_copy, sdk_of
from rebalance_core.strategies.by_machine_room import MachineRoomUnfiltered
from rebalance_core.views import asked_brokers, readable_queues

EXPRESSION_MISMATCH = "EXPRESSION_MISMATCH"

GROUP_OFFLINE_REMEDY = (
    "start the group's consumers, or delete the subscription group if it is no longer used"
)


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
    faults: list[Fault] = []
    for fault, found in findings_of.items():
        after = causes.after.get(cure_of[fault])
        if fault in _TELLERS:
            told = _TELLERS[fault](situation, found)
            faults.append(_as_fault(fault, told, evaluation, found, after))
        else:
            faults += _of_each_id(fault, situation, evaluation, found, after)
    mismatch = _expression_mismatch(situation.state)
    if mismatch is not None:
        faults.append(Fault(EXPRESSION_MISMATCH, *mismatch))
    is_small = evaluation.coverage != TOO_MANY_QUEUES
    if is_small and ROUTE_DIVERGENCE not in findings_of and _routes_differ(situation.state):
        # Clients of a nameserver that gives no queue keep what they have: no queue shows it yet.
        faults.append(Fault(ROUTE_DIVERGENCE, *_routes(situation, [])))
    if MIXED_MESSAGE_MODEL not in findings_of and _models(situation.state) > 1:
        faults.append(Fault(MIXED_MESSAGE_MODEL, *_mixed_models(situation, [])))
    return tuple(faults)


def _as_fault(
    fault: str,
    told: _Told,
    before: Evaluation,
    findings: Sequence[Finding],
    after: Evaluation | None,
) -> Fault:
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


#: Of more client ids than this the moves stand with the first alone: they are the same for all.
_MOST_PREVIEWS = 10


def _of_each_id(
    fault: str,
    situation: Situation,
    before: Evaluation,
    findings: list[Finding],
    after: Evaluation | None,
) -> list[Fault]:
    """A fault for each client id that has it, with the findings of that id.

    What a repair does is told for all of them together: ``after`` is the evaluation then.
    """
    concerns, tell = _TELLERS_OF_ONE_ID[fault]
    stacked = [each for each in find_stacked_ids(situation.state) if concerns(each)]
    addresses = _addresses_in_one_list(situation.state, stacked)
    of_ids = _findings_of_ids([each.client_id for each in stacked], situation, findings)
    preview = _as_fault(fault, _Told("", ""), before, findings, after)
    told = [(each, own) for each in stacked if (own := of_ids[each.client_id])]
    return [
        replace(
            preview,
            **tell(each, addresses[each.client_id], own)._asdict(),
            queues_affected=len({finding.queue for finding in own}),
            moves=preview.moves if number == 0 or len(told) <= _MOST_PREVIEWS else (),
        )
        for number, (each, own) in enumerate(told)
    ]


def _findings_of_ids(
    client_ids: Iterable[str], situation: Situation, findings: Iterable[Finding]
) -> dict[str, list[Finding]]:
    """By client id the findings that are its own; what is nobody's own is everybody's.

    A queue that several take is that of the id that claims it. One that nobody takes is in the slot
    of a copy: the id whose copies would take it, had each copy an id of its own.
    """
    ids = list(client_ids)
    if len(ids) == 1:
        return {ids[0]: list(findings)}
    parted = part_copies(situation)
    takers: dict[MessageQueue, set[str]] = defaultdict(set)
    for allocation in evaluate(parted.state, parted.rules).allocations:
        original, copy = own_copy(allocation.client_id)
        if copy:
            for queue in allocation.queues:
                takers[queue].add(original)
    own: dict[str, list[Finding]] = {client_id: [] for client_id in ids}
    for finding in findings:
        whose = (
            takers[finding.queue]
            if finding.kind == ORPHANED
            else {claimant.client_id for claimant in finding.claimants if claimant.processes > 1}
        )
        for client_id in whose.intersection(ids) or ids:
            own[client_id].append(finding)
    return own


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


def _effect(findings: list[Finding], possibly: str = "at times") -> str:
    """What the findings say: how many queues, and which, are consumed twice or by nobody.

    ``possibly``: how it is so where it is not so for sure.
    """
    parts = []
    for kind, text in ((DUPLICATE, "taken by several"), (ORPHANED, "taken by nobody")):
        found = [finding for finding in findings if finding.kind == kind]
        if found:
            sure = all(finding.certainty == "CERTAIN" for finding in found)
            are = noun(len({finding.queue for finding in found}), "is", "are")
            taken = f"{are} {text}" if sure else f"{are} {possibly} {text}"
            parts.append(f"{queue_ranges(f.queue for f in found)} {taken}")
    return "; ".join(parts)


def _members(state: State, which: Callable[[Member], bool]) -> tuple[str, ...]:
    """The client ids of the members that fit, in order, each once."""
    return tuple(sorted({m.client_id for m in state.members if which(m)}))


def _routes_differ(state: State) -> bool:
    """Whether the nameservers give other queues to read."""
    return len({readable_queues(state.topic, route) for route in state.topic_routes}) > 1


def _models(state: State) -> int:
    return len({m.message_model for m in state.members})


def _duplicate_id(
    stacked: StackedId, addresses: Sequence[str], findings: Iterable[Finding]
) -> _Told:
    every = list(findings)
    evidence = f"{stacked.client_id} is used by {stacked.processes} processes, {_and(addresses)}"
    taken = {finding.queue for finding in every if finding.kind == DUPLICATE}
    if taken:
        who = "both" if stacked.processes == 2 else "all"
        evidence += f"; {who} take {queue_ranges(taken)}"
    orphans = {finding.queue for finding in every if finding.kind == ORPHANED}
    if orphans:
        evidence += (
            f"; the share of the later copies ({len(orphans)} {noun(len(orphans), 'queue')}: "
            f"{queue_ranges(orphans)}) has no owner"
        )
    return _Told(
        evidence=evidence,
        remedy=own_ids_for([stacked.made_by]),
        client_ids=(stacked.client_id,),
        client_addrs=stacked.client_addrs,
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


def _stale_channel(
    stacked: StackedId, addresses: Sequence[str], findings: Iterable[Finding]
) -> _Told:
    return _Told(
        evidence=f"{stacked.client_id} is {stacked.copies} times in a broker's list "
        f"({_and(addresses)}) and has "
        f"{stacked.processes} {noun(stacked.processes, 'process', 'processes')}: a channel that "
        f"was not closed takes a slot; {_effect(list(findings))}",
        remedy=STALE_CHANNEL_REMEDY,
        client_ids=(stacked.client_id,),
        client_addrs=stacked.client_addrs,
    )


def _ghosts(situation: Situation, findings: list[Finding]) -> _Told:
    addresses = {address for _, _, address in silent_members(situation.state)}
    ghosts = _members(situation.state, lambda member: member.client_addr in addresses)
    dead = {each.client_id for each in situation.state.process_counts if not each.processes}
    does = f"{verb('send', len(ghosts))} no heartbeats"
    if dead.issuperset(ghosts):
        does = f"{verb('answer', len(ghosts))} no question for running infos"
    return _Told(
        evidence=f"{_and(ghosts)} {does} any more and still "
        f"{verb('take', len(ghosts))} a slot; {_effect(findings)}",
        remedy="see whether the process lives, and restart it; the broker drops it about 130 s "
        "after its last heartbeat (let clients shut down in order: then they leave at once)",
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
    topic = situation.state.topic
    strangers = _members(situation.state, is_stranger)
    percents = {m.subscribed_percent for m in situation.state.members if m.subscribed} - {SURE}
    evidence, remedy, possibly = [], "", "at times"
    if strangers:
        evidence.append(
            f"{_and(strangers)} {verb('do', len(strangers))} not subscribe to {topic} and "
            f"{verb('take', len(strangers))} a slot of it all the same"
        )
    if percents:
        evidence.append(
            f"the group's subscription table has {topic} in about {min(percents)} % of the polls "
            "and lacks it in the others: every heartbeat overwrites the table, so some members "
            "subscribe to the topic and some do not; nothing that was collected shows which"
        )
        remedy = "collect the running infos of the members, or heartbeats, to see which; "
        possibly = "perhaps"
    return _Told(
        evidence=f"{'; '.join(evidence)}; {_effect(findings, possibly)}",
        remedy=f"{remedy}let all members of the group subscribe to the same topics, or give those "
        "that do not a group of their own",
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
    not_read = _cut_off(situation.state)
    return _Told(
        evidence=f"{told or 'the brokers list an id a different number of times'}{not_read}; "
        f"a client asks a random broker at every rebalance, so the shares change from one to the "
        f"next; {_effect(findings)}",
        remedy="see whether those clients reach those brokers (network, firewall, name server "
        "addresses); while one starts or leaves this passes by itself",
        client_ids=tuple(sorted({each for missing in short.values() for each in missing})),
        broker_names=tuple(dict.fromkeys(name for name, _ in short)),
    )


def _cut_off(state: State) -> str:
    """The subscribers that do not reach a broker of the topic, in words, each part after a ``; ``.

    A client sends heartbeats to the brokers of its own topics alone
    (``MQClientInstance.sendHeartbeatToAllBroker``): one that does not subscribe to the topic is not
    expected there. Where the group's table alone shows what a client subscribes to, that may be so.
    """
    subscribed = {each.client_id: each for each in state.members if each.subscribed}
    cut_off: dict[str, list[str]] = defaultdict(list)
    for client_id, broker_name in state.unreachable:
        if client_id in subscribed:
            cut_off[broker_name].append(client_id)
    told = "".join(
        f"; {_and(sorted(client_ids))} {verb('do', len(client_ids))} not reach {broker_name} and "
        f"{verb('read', len(client_ids))} no queue of it"
        for broker_name, client_ids in sorted(cut_off.items())
    )
    of_table = sorted(
        {
            client_id
            for client_ids in cut_off.values()
            for client_id in client_ids
            if subscribed[client_id].subscription_source == GROUP_TABLE
        }
    )
    if not of_table:
        return told
    return (
        f"{told}; or {_and(of_table)} {verb('subscribe', len(of_table))} to other topics alone "
        f"(the group's table does not show whose topics they are), {verb('take', len(of_table))} "
        "a slot all the same, and no heartbeat is due there: running infos show which"
    )


def _group_not_on_broker(situation: Situation, findings: list[Finding]) -> _Told:
    group = situation.state.consumer_group
    without = brokers_without_group(situation.state)
    names = [named_broker(*of) for of in without]
    return _Told(
        evidence=f"{_and(names)} {verb('answer', len(names))} that the group has no member there, "
        f"while other brokers list members: the group is missing on the broker, or no client "
        f"reaches it; {_effect(findings)}",
        remedy="see whether the broker has the group: with autoCreateSubscriptionGroup=false it "
        f"has to be created there (mqadmin updateSubGroup -b BROKER_ADDRESS -g {group}); if it "
        "has, see whether the clients reach the broker",
        broker_names=tuple(dict.fromkeys(name for name, _ in without)),
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
    effect = _effect(findings)
    return _Told(
        evidence=f"the nameservers differ on {situation.state.topic}: {told}"
        f"{'; ' + effect if effect else ''}",
        remedy="see whether every broker registers with every nameserver; stop a nameserver with "
        "which no broker registers any more",
        broker_names=tuple(sorted({b.broker_name for b in situation.state.brokers})),
    )


def _group_offline(situation: Situation, findings: list[Finding]) -> _Told:
    who = "no broker" if offline_share(situation.state) == 1.0 else "no broker that answered"
    return _of_queues(
        f"{who} knows any member of the group",
        GROUP_OFFLINE_REMEDY,
    )(situation, findings)


def _rooms(situation: Situation, findings: list[Finding]) -> _Told:
    evidence = "no member serves the room of these brokers"
    remedy = (
        "if the room should be served, add it to consumeridcs of the members (a broker's room is "
        "what its name has before the @); if it is left out on purpose, stop the producers there "
        f"(mqadmin updateTopic -b BROKER_ADDRESS -t {situation.state.topic} -r READ_QUEUES "
        "-w WRITE_QUEUES -p 4) and move what is unread, or name it as a known issue"
    )
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


#: Which client ids have the fault, and what is said of one: each is a fault of its own.
_TELLERS_OF_ONE_ID: Mapping[
    str,
    tuple[
        Callable[[StackedId], bool],
        Callable[[StackedId, Sequence[str], Iterable[Finding]], _Told],
    ],
] = {
    DUPLICATE_CLIENT_ID: (lambda stacked: stacked.processes > 1, _duplicate_id),
    STALE_CHANNEL: (lambda stacked: stacked.copies > stacked.processes, _stale_channel),
}
_TELLERS: Mapping[str, Callable[[Situation, list[Finding]], _Told]] = {
    GHOST_MEMBER: _ghosts,
    STRATEGY_MISMATCH: _strategies,
    SUBSCRIPTION_MISMATCH: _subscriptions,
    MANUAL_ASSIGNMENT: _manual_assignment,
    MIXED_MESSAGE_MODEL: _mixed_models,
    BROKER_VIEW_DIVERGENCE: _broker_views,
    GROUP_NOT_ON_BROKER: _group_not_on_broker,
    ROUTE_DIVERGENCE: _routes,
    ROOM_NOT_SERVED: _rooms,
    CONFIG_OVERLAP: _of_queues(
        "these queues are in the lists of several clients",
        "leave each queue in one client's list",
    ),
    CONFIG_GAP: _of_queues(
        "these queues are in no client's list",
        "add each queue to one client's list, %RETRY% topics included",
    ),
    GROUP_OFFLINE: _group_offline,
    UNEXPLAINED: _of_queues(
        "no fault that the audit can compute, alone or with others, explains these queues",
        "look at the allocations of the state",
    ),
}

#: Every fault that a state can show.
FAULTS = (*_TELLERS_OF_ONE_ID, *_TELLERS, EXPRESSION_MISMATCH)
