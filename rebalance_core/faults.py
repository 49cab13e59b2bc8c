"""From causes to faults: what an operator reads, in words and as values.

A fault is a cause of findings, or something that is wrong without one: members that filter a topic
differently lose messages with no orphan and no lag.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from rebalance_core.causes import GROUP_OFFLINE, UNEXPLAINED, Causes, Cure, key_of
from rebalance_core.client_kinds import STALE_CHANNEL_REMEDY, own_ids_for
from rebalance_core.english import agreeing, count, joined, list_of, named_broker, queues_of
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
from rebalance_core.state import BROADCASTING, GROUP_TABLE, SURE, Member, State, TopicRoute
from rebalance_core.strategies import AllocationStrategy, Sdk, own_copy, sdk_of
from rebalance_core.strategies.by_machine_room import MachineRoomUnfiltered
from rebalance_core.texts import Text
from rebalance_core.views import asked_brokers, readable_queues

EXPRESSION_MISMATCH = "EXPRESSION_MISMATCH"

GROUP_OFFLINE_REMEDY = Text(
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


class _Description(NamedTuple):
    """The fields of a ``Fault`` that describe it: those after its name, in their order."""

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
        if fault in _DESCRIBE:
            description = _DESCRIBE[fault](situation, found)
            faults.append(_as_fault(fault, description, evaluation, found, after))
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
    description: _Description,
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
    concerns, describe = _DESCRIBE_ONE_ID[fault]
    stacked = [each for each in find_stacked_ids(situation.state) if concerns(each)]
    addresses = _addresses_in_one_list(situation.state, stacked)
    of_ids = _findings_of_ids([each.client_id for each in stacked], situation, findings)
    preview = _as_fault(fault, _Description("", ""), before, findings, after)
    harmful = [(each, of_id) for each in stacked if (of_id := of_ids[each.client_id])]
    return [
        replace(
            preview,
            **describe(each, addresses[each.client_id], of_id)._asdict(),
            queues_affected=len({finding.queue for finding in of_id}),
            moves=preview.moves if number == 0 or len(harmful) <= _MOST_PREVIEWS else (),
        )
        for number, (each, of_id) in enumerate(harmful)
    ]


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
        original, copy = own_copy(allocation.client_id)
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
            client_id if share > 1 - 1e-9 else Text("{client} (at times)", client=client_id)
            for (client_id, processes), share in sorted(of_queue.items())
            for _ in range(processes)
        )
        for queue, of_queue in shares.items()
    }


def shown_id(client_id: str) -> str:
    """A client id as a person reads it; the id that a process would get, by the process's number.

    >>> from rebalance_core.strategies import own_id
    >>> shown_id("10.0.0.1@app"), shown_id(own_id("10.0.0.1@app", 1))
    ('10.0.0.1@app', '10.0.0.1@app (process 2)')
    """
    original, copy = own_copy(client_id)
    if copy == 0:
        return original
    return Text("{client} (process {number})", client=original, number=copy + 1)


def queue_ranges(queues: Iterable[MessageQueue]) -> str:
    """Queues as a person writes them down.

    >>> queue_ranges([MessageQueue("T", b, n) for b, n in (("a", 0), ("a", 1), ("a", 3), ("b", 2))])
    'queues 0-1, 3 of a and queue 2 of b'
    """
    by_broker: dict[str, list[int]] = defaultdict(list)
    for queue in sort_message_queues(list(set(queues))):
        by_broker[queue.broker_name].append(queue.queue_id)
    in_words = (queues_of(*each) for each in by_broker.items())
    return list_of(in_words, _MOST_NAMES, ("more broker", "more brokers"))


#: More names than this in one sentence nobody reads; the columns have them all.
_MOST_NAMES = 5


def _and(parts: Iterable[str]) -> str:
    return list_of(parts, _MOST_NAMES)


def _sentences(*parts: str) -> str:
    """The parts that are not empty, one after the other."""
    return joined(part for part in parts if part)


_SURELY, _AT_TIMES, _PERHAPS = "surely", "at times", "perhaps"
#: What a finding says of its queues, by kind and by how it is so: of one queue, and of several.
_EFFECTS = {
    (DUPLICATE, _SURELY): ("{queues} is taken by several", "{queues} are taken by several"),
    (DUPLICATE, _AT_TIMES): (
        "{queues} is at times taken by several",
        "{queues} are at times taken by several",
    ),
    (DUPLICATE, _PERHAPS): (
        "{queues} is perhaps taken by several",
        "{queues} are perhaps taken by several",
    ),
    (ORPHANED, _SURELY): ("{queues} is taken by nobody", "{queues} are taken by nobody"),
    (ORPHANED, _AT_TIMES): (
        "{queues} is at times taken by nobody",
        "{queues} are at times taken by nobody",
    ),
    (ORPHANED, _PERHAPS): (
        "{queues} is perhaps taken by nobody",
        "{queues} are perhaps taken by nobody",
    ),
}


def _effect(findings: list[Finding], possibly: str = _AT_TIMES) -> str:
    """What the findings say: how many queues, and which, are consumed twice or by nobody.

    ``possibly``: how it is so where it is not so for sure.
    """
    parts = []
    for kind in (DUPLICATE, ORPHANED):
        found = [finding for finding in findings if finding.kind == kind]
        if found:
            sure = all(finding.certainty == "CERTAIN" for finding in found)
            queues = {finding.queue for finding in found}
            templates = _EFFECTS[kind, _SURELY if sure else possibly]
            parts.append(agreeing(len(queues), *templates, queues=queue_ranges(queues)))
    return _sentences(*parts)


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
) -> _Description:
    every = list(findings)
    taken = {finding.queue for finding in every if finding.kind == DUPLICATE}
    orphans = {finding.queue for finding in every if finding.kind == ORPHANED}
    taking = "both take {queues}" if stacked.processes == 2 else "all take {queues}"
    return _Description(
        evidence=_sentences(
            Text(
                "{client} is used by {number} processes, {addresses}",
                client=stacked.client_id,
                number=stacked.processes,
                addresses=_and(addresses),
            ),
            Text(taking, queues=queue_ranges(taken)) if taken else "",
            Text(
                "the share of the later copies ({number}: {queues}) has no owner",
                number=count(len(orphans), "queue"),
                queues=queue_ranges(orphans),
            )
            if orphans
            else "",
        ),
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
) -> _Description:
    return _Description(
        evidence=_sentences(
            Text(
                "{client} is {copies} times in a broker's list ({addresses}) and has {processes}: "
                "a channel that was not closed takes a slot",
                client=stacked.client_id,
                copies=stacked.copies,
                addresses=_and(addresses),
                processes=count(stacked.processes, "process", "processes"),
            ),
            _effect(list(findings)),
        ),
        remedy=STALE_CHANNEL_REMEDY,
        client_ids=(stacked.client_id,),
        client_addrs=stacked.client_addrs,
    )


def _ghosts(situation: Situation, findings: list[Finding]) -> _Description:
    addresses = {address for _, _, address in silent_members(situation.state)}
    ghosts = _members(situation.state, lambda member: member.client_addr in addresses)
    dead = {each.client_id for each in situation.state.process_counts if not each.processes}
    templates = (
        "{clients} sends no heartbeats any more and still takes a slot",
        "{clients} send no heartbeats any more and still take a slot",
    )
    if dead.issuperset(ghosts):
        templates = (
            "{clients} no longer answers requests for running infos and still takes a slot",
            "{clients} no longer answer requests for running infos and still take a slot",
        )
    return _Description(
        evidence=_sentences(
            agreeing(len(ghosts), *templates, clients=_and(ghosts)), _effect(findings)
        ),
        remedy=Text(
            "see whether the process is alive, and restart it; the broker drops it about 130 s "
            "after its last heartbeat (a client that is shut down properly leaves at once)"
        ),
        client_ids=ghosts,
    )


def _strategies(situation: Situation, findings: list[Finding]) -> _Description:
    users: dict[str, list[str]] = defaultdict(list)
    in_use = _strategies_in_use(situation)
    for client_id, strategy in in_use:
        users[strategy.full_name].append(client_id)
    most_first = _most_first(users)
    who = joined(
        agreeing(
            len(ids),
            "{clients} uses {strategy}",
            "{clients} use {strategy}",
            clients=_and(ids),
            strategy=strategy,
        )
        for strategy, ids in most_first
    )
    if len(users) == 1:
        who = Text("{users} with different parameters", users=who)
    return _Description(
        evidence=_sentences(who, _effect(findings)),
        remedy=_one_strategy(situation.state, [strategy for _, strategy in in_use]),
        client_ids=_of_the_others(most_first),
    )


def _most_first(users: Mapping[str, Collection[str]]) -> list[tuple[str, list[str]]]:
    """What is used and the ids that use it, in order; what most of them use comes first."""
    in_order = sorted(users.items(), key=lambda each: (-len(each[1]), each[0]))
    return [(what, sorted(ids)) for what, ids in in_order]


def _of_the_others(most_first: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """The ids that do not use what most use."""
    return tuple(sorted({client_id for _, ids in most_first[1:] for client_id in ids}))


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
    remedy = Text("give all members of the group the same strategy")
    if len(sdks) > 1 and Sdk.CPP in sdks:
        remedy = Text(
            "give all members of the group the same strategy: AVG, which is all that client-cpp has"
        )
    elif len(sdks) > 1 and Sdk.GO in sdks:
        remedy = Text(
            "give all members of the group the same strategy: AVG or AVG_BY_CIRCLE, which "
            "client-go computes as Java does"
        )
    bytewise = any(strategy.sorts_bytewise for strategy in in_use)
    names = Text("name clients and brokers in ASCII, which all SDKs sort alike") if bytewise else ""
    return _sentences(remedy, _update(in_use), names)


def _subscriptions(situation: Situation, findings: list[Finding]) -> _Description:
    topic = situation.state.topic
    strangers = _members(situation.state, is_stranger)
    percents = {m.subscribed_percent for m in situation.state.members if m.subscribed} - {SURE}
    evidence, remedy, possibly = [], "", _AT_TIMES
    if strangers:
        evidence.append(
            agreeing(
                len(strangers),
                "{clients} does not subscribe to {topic} and still takes a slot of it",
                "{clients} do not subscribe to {topic} and still take a slot of it",
                clients=_and(strangers),
                topic=topic,
            )
        )
    if percents:
        evidence.append(
            Text(
                "the group's subscription table has {topic} in about {percent} % of the polls "
                "and lacks it in the others: every heartbeat overwrites the table, so some members "
                "subscribe to the topic and some do not; nothing that was collected shows which",
                topic=topic,
                percent=min(percents),
            )
        )
        remedy = Text("collect the running infos of the members, or heartbeats, to see which")
        possibly = _PERHAPS
    return _Description(
        evidence=_sentences(*evidence, _effect(findings, possibly)),
        remedy=_sentences(
            remedy,
            Text(
                "let all members of the group subscribe to the same topics, or give those that do "
                "not a group of their own"
            ),
        ),
        client_ids=strangers,
    )


def _manual_assignment(situation: Situation, findings: list[Finding]) -> _Description:
    choosers = _members(situation.state, lambda member: member.chooses_queues)
    return _Description(
        evidence=_sentences(
            agreeing(
                len(choosers),
                "{clients} chooses queues by assign() or by the pull consumer and still takes a "
                "slot (nobody can compute which queues it reads)",
                "{clients} choose queues by assign() or by the pull consumer and still take a slot "
                "(nobody can compute which queues they read)",
                clients=_and(choosers),
            ),
            _effect(findings),
        ),
        remedy=Text("give members that choose their queues themselves a group of their own"),
        client_ids=choosers,
    )


def _mixed_models(situation: Situation, findings: list[Finding]) -> _Description:
    broadcasting = _members(situation.state, lambda m: m.message_model == BROADCASTING)
    return _Description(
        evidence=_sentences(
            agreeing(
                len(broadcasting),
                "{clients} broadcasts in a clustering group, reading every queue and taking slots",
                "{clients} broadcast in a clustering group, reading every queue and taking slots",
                clients=_and(broadcasting),
            ),
            _effect(findings),
        ),
        remedy=Text("give broadcasting members a group of their own"),
        client_ids=broadcasting,
    )


def _broker_views(situation: Situation, findings: list[Finding]) -> _Description:
    every = {m.client_id for entry in lists_of_topic(situation.state) for m in entry.members}
    asked = asked_brokers(situation.state)
    lacking = {
        entry.broker: sorted(every - {member.client_id for member in entry.members})
        for entry in sorted(situation.state.client_lists, key=attrgetter("broker"))
        if entry.broker in asked
    }
    short = {broker: missing for broker, missing in lacking.items() if missing}
    differences = joined(
        Text(
            "the list of {broker} lacks {clients}, which other brokers list",
            broker=named_broker(*of),
            clients=_and(missing),
        )
        for of, missing in short.items()
    )
    return _Description(
        evidence=_sentences(
            differences or Text("the brokers list an id a different number of times"),
            *_cut_off(situation.state),
            Text(
                "a client asks a random broker at every rebalance, so the shares change from one "
                "to the next"
            ),
            _effect(findings),
        ),
        remedy=Text(
            "see whether those clients reach those brokers (network, firewall, name server "
            "addresses); while one starts or leaves this passes by itself"
        ),
        client_ids=tuple(sorted({each for missing in short.values() for each in missing})),
        broker_names=tuple(dict.fromkeys(name for name, _ in short)),
    )


def _cut_off(state: State) -> Iterator[Text]:
    """The subscribers that do not reach a broker of the topic, in words.

    A client sends heartbeats to the brokers of its topics alone
    (``MQClientInstance.sendHeartbeatToAllBroker``): one that does not subscribe to the topic is not
    expected there. Where the group's table alone shows what a client subscribes to, that may be so.
    """
    subscribed = {each.client_id: each for each in state.members if each.subscribed}
    cut_off: dict[str, list[str]] = defaultdict(list)
    for client_id, broker_name in state.unreachable:
        if client_id in subscribed:
            cut_off[broker_name].append(client_id)
    for broker_name, client_ids in sorted(cut_off.items()):
        yield agreeing(
            len(client_ids),
            "{clients} does not reach {broker} and reads no queue of it",
            "{clients} do not reach {broker} and read no queue of it",
            clients=_and(sorted(client_ids)),
            broker=broker_name,
        )
    of_table = sorted(
        {
            client_id
            for client_ids in cut_off.values()
            for client_id in client_ids
            if subscribed[client_id].subscription_source == GROUP_TABLE
        }
    )
    if of_table:
        yield agreeing(
            len(of_table),
            "or {clients} subscribes to other topics alone (the group's table does not show whose "
            "topics they are), still takes a slot, and sends no heartbeat there: running infos "
            "show which",
            "or {clients} subscribe to other topics alone (the group's table does not show whose "
            "topics they are), still take a slot, and send no heartbeat there: running infos show "
            "which",
            clients=_and(of_table),
        )


def _group_not_on_broker(situation: Situation, findings: list[Finding]) -> _Description:
    without = brokers_without_group(situation.state)
    return _Description(
        evidence=_sentences(
            agreeing(
                len(without),
                "{brokers} answers that the group has no member there, while other brokers list "
                "members: the group is missing on the broker, or no client reaches it",
                "{brokers} answer that the group has no member there, while other brokers list "
                "members: the group is missing on the broker, or no client reaches it",
                brokers=_and(named_broker(*of) for of in without),
            ),
            _effect(findings),
        ),
        remedy=Text(
            "see whether the broker has the group: with autoCreateSubscriptionGroup=false it "
            "has to be created there (mqadmin updateSubGroup -b BROKER_ADDRESS -g {group}); if it "
            "has, see whether the clients reach the broker",
            group=situation.state.consumer_group,
        ),
        broker_names=tuple(dict.fromkeys(name for name, _ in without)),
    )


def _routes(situation: Situation, findings: list[Finding]) -> _Description:
    state = situation.state
    return _Description(
        evidence=_sentences(
            Text(
                "the nameservers differ on {topic}: {routes}",
                topic=state.topic,
                routes=joined(_route(each) for each in state.topic_routes),
            ),
            _effect(findings),
        ),
        remedy=Text(
            "see whether every broker registers with every nameserver; stop a nameserver with "
            "which no broker registers any more"
        ),
        broker_names=tuple(sorted({b.broker_name for b in state.brokers})),
    )


def _route(route: TopicRoute) -> Text:
    brokers = sorted(
        (each for each in route.brokers if each.is_readable), key=lambda each: each.broker_name
    )
    if not brokers:
        return Text("{nameserver} gives no readable broker", nameserver=route.namesrv_addr)
    return Text(
        "{nameserver} gives {brokers}",
        nameserver=route.namesrv_addr,
        brokers=_and(
            Text(
                "{broker} with {queues}",
                broker=each.broker_name,
                queues=count(each.read_queue_nums, "queue"),
            )
            for each in brokers
        ),
    )


def _group_offline(situation: Situation, findings: list[Finding]) -> _Description:
    all_answered = offline_share(situation.state) == 1.0
    return _of_queues(
        Text("no broker knows any member of the group")
        if all_answered
        else Text("no broker that answered knows any member of the group"),
        GROUP_OFFLINE_REMEDY,
    )(situation, findings)


def _rooms(situation: Situation, findings: list[Finding]) -> _Description:
    evidence = Text("no member serves the room of these brokers")
    unfiltered = {
        client_id: strategy
        for client_id, strategy in _strategies_in_use(situation)
        if isinstance(strategy, MachineRoomUnfiltered)
    }
    if unfiltered:
        names = {strategy.full_name for strategy in unfiltered.values()}
        evidence = agreeing(
            len(unfiltered),
            "{clients} uses {strategies}, whose blocks are cut from the queues of all rooms: those "
            "of a room that no member serves take the place of others",
            "{clients} use {strategies}, whose blocks are cut from the queues of all rooms: those "
            "of a room that no member serves take the place of others",
            clients=_and(sorted(unfiltered)),
            strategies=_and(sorted(names)),
        )
    remedy = Text(
        "if the room should be served, add it to consumeridcs of the members (a broker's room is "
        "what its name has before the @); if it is left out on purpose, stop the producers there "
        "(mqadmin updateTopic -b BROKER_ADDRESS -t {topic} -r READ_QUEUES -w WRITE_QUEUES -p 4) "
        "and move what is unread, or name it as a known issue",
        topic=situation.state.topic,
    )
    return _of_queues(evidence, _sentences(remedy, _update(unfiltered.values())))(
        situation, findings
    )


def _update(in_use: Iterable[AllocationStrategy]) -> str:
    is_old = any(strategy.variant == Sdk.JAVA_BEFORE_4_8_0.value for strategy in in_use)
    return Text("update the clients before 4.8.0") if is_old else ""


def _of_queues(what: str, remedy: str) -> Callable[[Situation, list[Finding]], _Description]:
    def describe(situation: Situation, findings: list[Finding]) -> _Description:
        del situation
        return _Description(
            evidence=Text("{what}: {queues}", what=what, queues=_effect(findings)),
            remedy=remedy,
            broker_names=tuple(sorted({finding.queue.broker_name for finding in findings})),
        )

    return describe


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


def _expression_mismatch(state: State) -> _Description | None:
    subscribed = [m for m in state.members if m.subscribed]
    if len({member.expression for member in subscribed} - {None}) < 2:
        return None
    users: dict[str, set[str]] = defaultdict(set)
    for member in subscribed:
        if member.expression is not None:
            users[member.expression].add(member.client_id)
    most_first = _most_first(users)
    who = joined(
        agreeing(
            len(ids),
            "{clients} filters by {filter}",
            "{clients} filter by {filter}",
            clients=_and(ids),
            filter=expression,
        )
        for expression, ids in most_first
    )
    return _Description(
        evidence=Text(
            "{users}: each client drops the messages of its queues that its filter does not let "
            "pass, and no lag shows it",
            users=who,
        ),
        remedy=Text("let all members of the group use one filter, or a group for each filter"),
        client_ids=_of_the_others(most_first),
    )


#: Which client ids have the fault, and what describes one: each is a separate fault.
_DESCRIBE_ONE_ID: Mapping[
    str,
    tuple[
        Callable[[StackedId], bool],
        Callable[[StackedId, Sequence[str], Iterable[Finding]], _Description],
    ],
] = {
    DUPLICATE_CLIENT_ID: (lambda stacked: stacked.processes > 1, _duplicate_id),
    STALE_CHANNEL: (lambda stacked: stacked.copies > stacked.processes, _stale_channel),
}
#: What describes a fault of the whole group, in evidence and remedy.
_DESCRIBE: Mapping[str, Callable[[Situation, list[Finding]], _Description]] = {
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
        Text("these queues are in the lists of several clients"),
        Text("leave each queue in one client's list"),
    ),
    CONFIG_GAP: _of_queues(
        Text("these queues are in no client's list"),
        Text("add each queue to one client's list, %RETRY% topics included"),
    ),
    GROUP_OFFLINE: _group_offline,
    UNEXPLAINED: _of_queues(
        Text("no fault that the audit can compute, alone or with others, explains these queues"),
        Text(
            "compare the tables allocations and allocation_drift; if the application has a "
            "strategy that is not RocketMQ's, its shares cannot be computed"
        ),
    ),
}

#: Every fault that a state can show.
FAULTS = (*_DESCRIBE_ONE_ID, *_DESCRIBE, EXPRESSION_MISMATCH)
