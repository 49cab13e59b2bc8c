"""Faults in words: for each the evidence, the remedy, and the clients and brokers that it concerns.

Each description is made of a situation and of the findings that the fault causes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from operator import attrgetter, or_
from typing import NamedTuple

from rebalance_core.causes import GROUP_OFFLINE, UNEXPLAINED
from rebalance_core.english import agreeing, count, joined, list_of, named_broker, queues_of
from rebalance_core.findings import DUPLICATE, ORPHANED, Finding, offline_share
from rebalance_core.message_queue import MessageQueue, sort_message_queues
from rebalance_core.processes import NOT_YET_KNOWN, StackedId, find_processes, silent_members
from rebalance_core.repairs import (
    BROKER_VIEW_DIVERGENCE,
    CONFIG_GAP,
    CONFIG_OVERLAP,
    DUPLICATE_CLIENT_ID,
    GHOST_MEMBER,
    GROUP_NOT_ON_BROKER,
    MANUAL_ASSIGNMENT,
    MASTER_AWAY,
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
)
from rebalance_core.state import (
    BROADCASTING,
    GROUP_TABLE,
    SURE,
    ClientList,
    Member,
    State,
    TopicRoute,
)
from rebalance_core.strategies import AllocationStrategy, Sdk, sdk_of
from rebalance_core.strategies.by_machine_room import MachineRoomUnfiltered
from rebalance_core.texts import Text, Value, slots
from rebalance_core.views import asked_brokers, readable_queues

EXPRESSION_MISMATCH = "EXPRESSION_MISMATCH"
UNKNOWN_TOPIC = "UNKNOWN_TOPIC"
MIXED_REQUEST_MODE = "MIXED_REQUEST_MODE"

GROUP_OFFLINE_REMEDY = Text(
    "start the group's consumers, or delete the subscription group if it is no longer used"
)


class Description(NamedTuple):
    """The fields of a ``Fault`` that describe it: those after its name, in their order."""

    evidence: str
    remedy: str
    client_ids: tuple[str, ...] = ()
    client_addrs: tuple[str, ...] = ()
    broker_names: tuple[str, ...] = ()


def queue_ranges(queues: Iterable[MessageQueue]) -> str:
    """Queues as a person writes them down.

    >>> queue_ranges([MessageQueue("T", b, n) for b, n in (("a", 0), ("a", 1), ("a", 3), ("b", 2))])
    'queues 0-1, 3 of a and queue 2 of b'
    """
    by_broker: dict[str, list[int]] = defaultdict(list)
    for queue in sort_message_queues(list(set(queues))):
        by_broker[queue.broker_name].append(queue.queue_id)
    in_words = (queues_of(name, numbers) for name, numbers in by_broker.items())
    return list_of(in_words, _MOST_NAMES, ("more broker", "more brokers"))


#: More names than this in one sentence nobody reads; the columns have them all.
_MOST_NAMES = 5


def _and(parts: Iterable[str]) -> str:
    return list_of(parts, _MOST_NAMES)


def _of_clients(client_ids: Collection[str], template: str, **values: Value) -> Text:
    """What the template says of some ``{clients}``, of one or of many."""
    return agreeing(len(client_ids), template, clients=_and(client_ids), **values)


def _sentences(*parts: str) -> str:
    """The parts that are not empty, one after the other."""
    return joined(part for part in parts if part)


_SURELY, _AT_TIMES, _PERHAPS = "surely", "at times", "perhaps"
#: What a finding says of its queues, by kind and by how it is so.
_EFFECTS = {
    (DUPLICATE, _SURELY): "{queues} [is|are] taken by several",
    (DUPLICATE, _AT_TIMES): "{queues} [is|are] at times taken by several",
    (DUPLICATE, _PERHAPS): "{queues} [is|are] perhaps taken by several",
    (ORPHANED, _SURELY): "{queues} [is|are] taken by nobody",
    (ORPHANED, _AT_TIMES): "{queues} [is|are] at times taken by nobody",
    (ORPHANED, _PERHAPS): "{queues} [is|are] perhaps taken by nobody",
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
            template = _EFFECTS[kind, _SURELY if sure else possibly]
            parts.append(agreeing(len(queues), template, queues=queue_ranges(queues)))
    return _sentences(*parts)


def _members(state: State, which: Callable[[Member], bool]) -> tuple[str, ...]:
    """The client ids of the members that fit, in order, each once."""
    return tuple(sorted({m.client_id for m in state.members if which(m)}))


def routes_differ(state: State) -> bool:
    """Whether the nameservers give other queues to read."""
    return len({readable_queues(state.topic, route) for route in state.topic_routes}) > 1


def message_models(state: State) -> int:
    """How many message models the members have."""
    return len({m.message_model for m in state.members})


def _duplicate_id(
    stacked: StackedId, addresses: Sequence[str], findings: Iterable[Finding]
) -> Description:
    every = list(findings)
    taken = {finding.queue for finding in every if finding.kind == DUPLICATE}
    orphans = {finding.queue for finding in every if finding.kind == ORPHANED}
    taking = "both take {queues}" if stacked.processes == 2 else "all take {queues}"
    return Description(
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
        remedy=stacked.remedy,
        client_ids=(stacked.client_id,),
        client_addrs=stacked.client_addrs,
    )


def _stale_channel(
    stacked: StackedId, addresses: Sequence[str], findings: Iterable[Finding]
) -> Description:
    channels = Text(
        "{client} is {copies} times in a broker's list ({addresses})",
        client=stacked.client_id,
        copies=stacked.copies,
        addresses=_and(addresses),
    )
    left_behind = Text(
        "{channels} and has {processes}: a channel that was not closed takes a slot",
        channels=channels,
        processes=count(stacked.processes, "process", "processes"),
    )
    is_known = stacked.because != NOT_YET_KNOWN
    return Description(
        evidence=_sentences(
            *((left_behind,) if is_known else (channels, stacked.because)), _effect(list(findings))
        ),
        remedy=stacked.remedy,
        client_ids=(stacked.client_id,),
        client_addrs=stacked.client_addrs,
    )


def _ghosts(situation: Situation, findings: list[Finding]) -> Description:
    addresses = {address for _, _, address in silent_members(situation.state)}
    ghosts = _members(situation.state, lambda member: member.client_addr in addresses)
    dead = {
        counted.client_id for counted in situation.state.process_counts if not counted.processes
    }
    template = "{clients} [sends|send] no heartbeats any more and still [takes|take] a slot"
    if dead.issuperset(ghosts):
        template = (
            "{clients} no longer [answers|answer] requests for running infos and still "
            "[takes|take] a slot"
        )
    return Description(
        evidence=_sentences(_of_clients(ghosts, template), _effect(findings)),
        remedy=Text(
            "see whether any process of {these_clients} is alive, and restart it; the broker drops "
            "a client about 130 s after its last heartbeat (one that is shut down properly leaves "
            "at once)",
            these_clients=_and(ghosts),
        ),
        client_ids=ghosts,
    )


def _strategies(situation: Situation, findings: list[Finding]) -> Description:
    users: dict[str, list[str]] = defaultdict(list)
    in_use = _strategies_in_use(situation)
    for client_id, strategy in in_use:
        users[strategy.full_name].append(client_id)
    who, others = _who_uses(users, "{clients} [uses|use] {strategy}", "strategy")
    if len(users) == 1:
        who = Text("{users} with different parameters", users=who)
    return Description(
        evidence=_sentences(who, _effect(findings)),
        remedy=_one_strategy(situation.state, [strategy for _, strategy in in_use]),
        client_ids=others,
    )


def _who_uses(
    users: Mapping[str, Collection[str]], template: str, slot: str
) -> tuple[str, tuple[str, ...]]:
    """Who uses what, in words, and the ids that do not use what most of them use."""
    most_first = sorted(users.items(), key=lambda use: (-len(use[1]), use[0]))
    who = joined(_of_clients(sorted(ids), template, **{slot: what}) for what, ids in most_first)
    return who, tuple(sorted({client_id for _, ids in most_first[1:] for client_id in ids}))


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


def subscriptions_differ(state: State) -> bool:
    """Whether members reported themselves that they subscribe to the topic, and others that they
    do not; what the group's table has of it may be anybody's.
    """
    reported = [
        member for member in state.members if member.subscription_source not in (None, GROUP_TABLE)
    ]
    return any(member.subscribed for member in reported) and any(map(is_stranger, reported))


def _subscriptions(situation: Situation, findings: list[Finding]) -> Description:
    topic = situation.state.topic
    strangers = _members(situation.state, is_stranger)
    percents = {m.subscribed_percent for m in situation.state.members if m.subscribed} - {SURE}
    evidence, remedy, possibly = [], "", _AT_TIMES
    if strangers:
        template = (
            "{clients} [does|do] not subscribe to {topic} and still [takes|take] a slot of it"
        )
        evidence.append(_of_clients(strangers, template, topic=topic))
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
    effect = _effect(findings, possibly)
    if not situation.state.topic_routes:
        effect = Text(
            "which of its queues nobody takes cannot be computed, for no route of {topic} was "
            "collected",
            topic=topic,
        )
    return Description(
        evidence=_sentences(*evidence, effect),
        remedy=_sentences(
            remedy,
            Text(
                "let all members of the group subscribe to the same topics, or put those that do "
                "not into a separate group"
            ),
        ),
        client_ids=strangers,
    )


def _of_members(
    ids_of: Callable[[State], tuple[str, ...]], template: str, what_to_do: str
) -> Callable[[Situation, list[Finding]], Description]:
    """Describes what some members are or do; ``{topic}`` and ``{group}`` are those of the state."""

    def describe(situation: Situation, findings: list[Finding]) -> Description:
        state = situation.state
        client_ids = ids_of(state)
        of_state = {"topic": state.topic, "group": state.consumer_group}

        def named_in(text: str) -> dict[str, str]:
            return {name: value for name, value in of_state.items() if name in slots(text)}

        evidence = _of_clients(client_ids, template, **named_in(template))
        remedy = Text(what_to_do, **named_in(what_to_do))
        return Description(_sentences(evidence, _effect(findings)), remedy, client_ids)

    return describe


def _broker_views(situation: Situation, findings: list[Finding]) -> Description:
    most = reduce(or_, map(_times_listed, lists_of_topic(situation.state)), Counter[str]())
    asked = asked_brokers(situation.state)
    listed = {
        entry.broker: _times_listed(entry)
        for entry in sorted(situation.state.client_lists, key=attrgetter("broker"))
        if entry.broker in asked
    }
    fewer = {broker: less for broker, times in listed.items() if (less := most - times)}
    short = {
        broker: missing
        for broker, times in listed.items()
        if (missing := sorted(most.keys() - times.keys()))
    }
    differences = joined(
        Text(
            "the list of {broker} lacks {clients}, which other brokers list",
            broker=named_broker(*of),
            clients=_and(missing),
        )
        for of, missing in short.items()
    )
    return Description(
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
            "see whether {these_brokers} can be reached from {these_clients} (network, firewall, "
            "name server addresses); while a client starts or leaves this passes by itself",
            these_brokers=_and(named_broker(*of) for of in fewer),
            these_clients=_and(sorted({each for less in fewer.values() for each in less})),
        ),
        client_ids=tuple(
            sorted({client_id for missing in short.values() for client_id in missing})
        ),
        broker_names=tuple(dict.fromkeys(name for name, _ in short)),
    )


def _times_listed(entry: ClientList) -> Counter[str]:
    return Counter(member.client_id for member in entry.members)


def _cut_off(state: State) -> Iterator[Text]:
    """The subscribers that do not reach a broker of the topic, in words.

    A client sends heartbeats to the brokers of its topics alone
    (``MQClientInstance.sendHeartbeatToAllBroker``): one that does not subscribe to the topic is not
    expected there. Where the group's table alone shows what a client subscribes to, that may be so.
    """
    subscribed = {member.client_id: member for member in state.members if member.subscribed}
    cut_off: dict[str, list[str]] = defaultdict(list)
    for client_id, broker_name in state.unreachable:
        if client_id in subscribed:
            cut_off[broker_name].append(client_id)
    for broker_name, client_ids in sorted(cut_off.items()):
        yield _of_clients(
            sorted(client_ids),
            "{clients} [does|do] not reach {broker} and [reads|read] no queue of it",
            broker=broker_name,
        )
    by_table = {
        client_id
        for client_ids in cut_off.values()
        for client_id in client_ids
        if subscribed[client_id].subscription_source == GROUP_TABLE
    }
    if by_table:
        yield _of_clients(
            sorted(by_table),
            "or {clients} [subscribes|subscribe] to other topics alone (the group's table does not "
            "show whose topics they are), still [takes|take] a slot, and [sends|send] no heartbeat "
            "there: running infos show which",
        )


def _group_not_on_broker(situation: Situation, findings: list[Finding]) -> Description:
    without = brokers_without_group(situation.state)
    return Description(
        evidence=_sentences(
            agreeing(
                len(without),
                "{brokers} [answers|answer] that the group has no member there, while other "
                "brokers list members: the group is missing on the broker, or no client reaches it",
                brokers=_and(named_broker(*of) for of in without),
            ),
            _effect(findings),
        ),
        remedy=Text(
            "see whether the group is on {these_brokers}: with autoCreateSubscriptionGroup=false "
            "it has to be created there (mqadmin updateSubGroup -b BROKER_ADDRESS -g "
            "{this_group}); if it is, see whether the clients get through",
            these_brokers=_and(named_broker(*of) for of in without),
            this_group=situation.state.consumer_group,
        ),
        broker_names=tuple(dict.fromkeys(name for name, _ in without)),
    )


def _routes(situation: Situation, findings: list[Finding]) -> Description:
    state = situation.state
    return Description(
        evidence=_sentences(
            Text(
                "the nameservers differ on {topic}: {routes}",
                topic=state.topic,
                routes=joined(_route(route) for route in state.topic_routes),
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
        (broker for broker in route.brokers if broker.is_readable),
        key=lambda broker: broker.broker_name,
    )
    if not brokers:
        return Text("{nameserver} gives no readable broker", nameserver=route.namesrv_addr)
    return Text(
        "{nameserver} gives {brokers}",
        nameserver=route.namesrv_addr,
        brokers=_and(
            Text(
                "{broker} with {queues}"
                if broker.has_master
                else "{broker}, without its master, with {queues}",
                broker=broker.broker_name,
                queues=count(broker.read_queue_nums, "queue"),
            )
            for broker in brokers
        ),
    )


def _group_offline(situation: Situation, findings: list[Finding]) -> Description:
    all_answered = offline_share(situation.state) == 1.0
    return _of_queues(
        Text("no broker knows any member of the group")
        if all_answered
        else Text("no broker that answered knows any member of the group"),
        GROUP_OFFLINE_REMEDY,
    )(situation, findings)


def _master_away(situation: Situation, findings: list[Finding]) -> Description:
    away = tuple(sorted(situation.state.without_master))
    readers = _members(situation.state, lambda member: member.language == "GO")
    return Description(
        evidence=_sentences(
            agreeing(
                len(away),
                "the route has no [master|masters] of {brokers}; {clients} of client-go read from "
                "no slave",
                brokers=_and(away),
                clients=_and(readers),
            ),
            _effect(findings),
        ),
        remedy=Text(
            "bring the master of {these_brokers} back, or let a slave act for it "
            "(enableSlaveActingMaster); Java's clients read from the slave meanwhile",
            these_brokers=_and(away),
        ),
        client_ids=readers,
        broker_names=away,
    )


def pulling_beside_pop(state: State) -> tuple[str, ...]:
    """The subscribers that divide the queues themselves where others leave that to the broker."""
    modes = {member.client_rebalance for member in state.members if member.subscribed}
    if not modes.issuperset((True, False)):
        return ()
    return _members(state, lambda member: member.subscribed and member.client_rebalance is True)


def _rooms(situation: Situation, findings: list[Finding]) -> Description:
    evidence = Text("no member serves the room of these brokers")
    unfiltered = {
        client_id: strategy
        for client_id, strategy in _strategies_in_use(situation)
        if isinstance(strategy, MachineRoomUnfiltered)
    }
    if unfiltered:
        names = {strategy.full_name for strategy in unfiltered.values()}
        evidence = _of_clients(
            sorted(unfiltered),
            "{clients} [uses|use] {strategies}, whose blocks are cut from the queues of all rooms: "
            "those of a room that no member serves take the place of others",
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


def _of_queues(what: str, remedy: str) -> Callable[[Situation, list[Finding]], Description]:
    def describe(situation: Situation, findings: list[Finding]) -> Description:
        del situation
        return Description(
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


def expression_mismatch(state: State) -> Description | None:
    """What describes EXPRESSION_MISMATCH; None where all members use one filter."""
    users: dict[str, set[str]] = defaultdict(set)
    for member in state.members:
        if member.subscribed and member.expression is not None:
            users[member.expression].add(member.client_id)
    if len(users) < 2:
        return None
    who, others = _who_uses(users, "{clients} [filters|filter] by {filter}", "filter")
    return Description(
        evidence=Text(
            "{users}: each client drops the messages of its queues that its filter does not let "
            "pass, and no lag shows it",
            users=who,
        ),
        remedy=Text("let all members of the group use one filter, or a group for each filter"),
        client_ids=others,
    )


#: Which client ids have the fault, and what describes one: each is a separate fault.
DESCRIBE_ONE_ID: Mapping[
    str,
    tuple[
        Callable[[StackedId], bool],
        Callable[[StackedId, Sequence[str], Iterable[Finding]], Description],
    ],
] = {
    DUPLICATE_CLIENT_ID: (lambda stacked: stacked.processes > 1, _duplicate_id),
    STALE_CHANNEL: (lambda stacked: stacked.copies > stacked.processes, _stale_channel),
}
#: What describes a fault of the whole group, in evidence and remedy.
DESCRIBE: Mapping[str, Callable[[Situation, list[Finding]], Description]] = {
    GHOST_MEMBER: _ghosts,
    STRATEGY_MISMATCH: _strategies,
    SUBSCRIPTION_MISMATCH: _subscriptions,
    MANUAL_ASSIGNMENT: _of_members(
        lambda state: _members(state, lambda member: member.chooses_queues),
        "{clients} [chooses|choose] queues by assign() or by the pull consumer and still "
        "[takes|take] a slot (nobody can compute which queues [it reads|they read])",
        "put members that choose their queues themselves into a separate group",
    ),
    MIXED_MESSAGE_MODEL: _of_members(
        lambda state: _members(state, lambda member: member.message_model == BROADCASTING),
        "{clients} [broadcasts|broadcast] in a clustering group, reading every queue and taking "
        "slots",
        "put broadcasting members into a separate group",
    ),
    BROKER_VIEW_DIVERGENCE: _broker_views,
    GROUP_NOT_ON_BROKER: _group_not_on_broker,
    ROUTE_DIVERGENCE: _routes,
    MASTER_AWAY: _master_away,
    UNKNOWN_TOPIC: _of_members(
        lambda state: _members(state, lambda member: member.subscribed),
        "{clients} [subscribes|subscribe] to {topic}, which no nameserver knows",
        "see whether the topic's name is written as its producers write it; if it is, create "
        "the topic (mqadmin updateTopic), or take it out of the subscription",
    ),
    MIXED_REQUEST_MODE: _of_members(
        pulling_beside_pop,
        "{clients} [divides the queues itself|divide the queues themselves] (clientRebalance "
        "true) and [pulls its share|pull their shares], while other members get messages by "
        "POP: the offsets of the other shares do not move",
        "let all members leave the assignment to the broker (clientRebalance false), or let "
        "the group pull (mqadmin setConsumeMode -c CLUSTER -t {topic} -g {group} -m PULL)",
    ),
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
