"""Faults in words: for each the evidence, the remedy, and the clients and brokers that it concerns.

Each description is made of a situation and of the findings that the fault causes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from operator import attrgetter, or_
from typing import NamedTuple, TypeAlias

from . import repairs
from .causes import GROUP_OFFLINE, UNEXPLAINED
from .english import MOST_NAMES, agreeing, count, joined, list_of, named_broker, queues_in_words
from .findings import CERTAIN, DUPLICATE, ORPHANED, Finding, offline_share
from .grouping import grouped
from .message_queue import MessageQueue, sort_message_queues
from .processes import NOT_YET_KNOWN, StackedId, silent_members
from .repairs import Situation, is_stranger, lists_of_topic
from .state import BROADCASTING, GROUP_TABLE, NO_FILTER, SURE, Member, State, TopicRoute
from .strategies import MachineRoomUnfiltered
from .strategy import AllocationStrategy, Sdk, sdk_of
from .texts import Text, TextValue, for_slots
from .views import BrokerId, asked_brokers

EXPRESSION_MISMATCH = "EXPRESSION_MISMATCH"
UNKNOWN_TOPIC = "UNKNOWN_TOPIC"

GROUP_OFFLINE_REMEDY = Text(
    "start the group's consumers, or delete the subscription group if it is no longer used"
)


class Description(NamedTuple):
    """The words about a fault: fields of a ``Fault``, by their names."""

    evidence: str
    remedy: str
    client_ids: tuple[str, ...] = ()
    broker_names: tuple[str, ...] = ()


_Describe: TypeAlias = Callable[[Situation, list[Finding]], Description]


def queue_ranges(queues: Iterable[MessageQueue]) -> str:
    """Queues as a person writes them down.

    >>> queue_ranges([MessageQueue("T", b, n) for b, n in (("a", 0), ("a", 1), ("a", 3), ("b", 2))])
    'queues 0-1, 3 of a and queue 2 of b'
    """
    in_order = sort_message_queues(set(queues))
    return queues_in_words((queue.broker_name, queue.queue_id) for queue in in_order)


def _and(parts: Iterable[str]) -> str:
    return list_of(parts, MOST_NAMES)


def _about_clients(client_ids: Collection[str], template: str, **values: TextValue) -> Text:
    """The template filled with ``{clients}``, in the singular or the plural."""
    return agreeing(len(client_ids), template, clients=_and(client_ids), **values)


def _sentences(*parts: str) -> str:
    """The parts that are not empty, one after the other."""
    return joined(part for part in parts if part)


def _queues(findings: Iterable[Finding], kind: str) -> set[MessageQueue]:
    return {finding.queue for finding in findings if finding.kind == kind}


_SURELY, _AT_TIMES, _PERHAPS = "surely", "at times", "perhaps"
#: Duplicates of which the lock of a group in order lets one client read.
_LOCKED = "LOCKED"
#: The sentence of a finding about its queues, by kind and by how it is so.
_EFFECTS: Mapping[tuple[str, str], str] = {
    (DUPLICATE, _SURELY): "{queues} [is|are] taken by several",
    (DUPLICATE, _AT_TIMES): "{queues} [is|are] at times taken by several",
    (DUPLICATE, _PERHAPS): "{queues} [is|are] perhaps taken by several",
    (_LOCKED, _SURELY): "{queues} [is|are] computed by several; the lock lets one of them read",
    (_LOCKED, _AT_TIMES): "{queues} [is|are] at times computed by several; the lock lets one of "
    "them read",
    (ORPHANED, _SURELY): "{queues} [is|are] taken by nobody",
    (ORPHANED, _AT_TIMES): "{queues} [is|are] at times taken by nobody",
    (ORPHANED, _PERHAPS): "{queues} [is|are] perhaps taken by nobody",
}


def _effect(findings: list[Finding], possibly: str = _AT_TIMES) -> str:
    """The effect of the findings: how many queues, and which, are consumed twice or by nobody.

    ``possibly``: the key of the wording for an effect that is not certain.
    """
    return _sentences(
        *[
            _taken(kind, [finding for finding in findings if finding.kind == kind], possibly)
            for kind in (DUPLICATE, ORPHANED)
        ]
    )


def _taken(kind: str, findings: Collection[Finding], possibly: str) -> str:
    """The sentence of findings of one kind; empty where there are none."""
    if not findings:
        return ""
    sure = all(finding.certainty == CERTAIN for finding in findings)
    return taken_by(kind, {f.queue for f in findings}, _SURELY if sure else possibly)


def _effect_in(state: State, findings: list[Finding]) -> str:
    """The same; where the members consume in order, a broker gives the lock of a queue to one
    client id (``RebalanceLockManager`` 4.9.4 to 5.3.3), whoever computes it.
    """
    locked = [finding for finding in findings if state.locks_at_master and _are_of_ids(finding)]
    others = [finding for finding in findings if finding not in locked]
    return _sentences(_taken(_LOCKED, locked, _AT_TIMES), _effect(others))


def _are_of_ids(finding: Finding) -> bool:
    """True if each of several that claim the queue is a client id of its own."""
    ids = {claimant.client_id for claimant in finding.claimants}
    processes = sum(claimant.processes for claimant in finding.claimants)
    return finding.kind == DUPLICATE and len(ids) == processes > 1


#: The remedy of members that use assign(): nothing else divides their queues.
ASSIGN_EACH_ONCE = Text(
    "look in the application, or its configuration, where it says which member is to assign() "
    "which queue, and let it give each queue to one member"
)


def taken_by(kind: str, queues: Collection[MessageQueue], how: str = _SURELY) -> str:
    """The sentence of a kind of finding about its queues.

    >>> taken_by("ORPHANED", [MessageQueue("T", "a", 0)])
    'queue 0 of a is taken by nobody'
    """
    return agreeing(len(queues), _EFFECTS[kind, how], queues=queue_ranges(queues))


#: Sentences, by two flags: queues would have no owner, and several.
_WOULD_HAVE: Mapping[tuple[bool, bool], str] = {
    (True, False): "harmless today: with [one member|{number:,} members] fewer ({clients}) "
    "{orphans} would have no owner",
    (False, True): "harmless today: with [one member|{number:,} members] fewer ({clients}) "
    "{duplicates} would have several owners",
    (True, True): "harmless today: with [one member|{number:,} members] fewer ({clients}) "
    "{orphans} would have no owner, and {duplicates} several",
}


def harmless_today(without: Sequence[str], findings: Collection[Finding]) -> Text:
    """The harm of a latent fault in words: the findings as soon as these clients have left."""
    orphans, duplicates = (_queues(findings, kind) for kind in (ORPHANED, DUPLICATE))
    template = _WOULD_HAVE[bool(orphans), bool(duplicates)]
    values = {
        "number": len(without),
        "clients": _and(without),
        "orphans": queue_ranges(orphans),
        "duplicates": queue_ranges(duplicates),
    }
    return agreeing(len(without), template, **for_slots(template, values))


def _members(state: State, which: Callable[[Member], bool]) -> tuple[str, ...]:
    """The client ids of the members that fit, in order, each once."""
    return tuple(sorted({m.client_id for m in state.members if which(m)}))


#: The doubt about several processes of an id that lists alone show, and no time.
_NOT_SEEN_TO_STAY = Text(
    "no list shows yet that its connections stay: of one process that reconnected the old one goes "
    "within about 130 s"
)


def _duplicate_id(stacked: StackedId, addresses: Sequence[str], findings: list[Finding]) -> str:
    taken, orphans = _queues(findings, DUPLICATE), _queues(findings, ORPHANED)
    taking = "both take {queues}" if stacked.processes == 2 else "all take {queues}"
    template = "{client} is used by {number} processes"
    if known := [*filter(None, addresses)]:
        template = "{client} is used by {number} processes, {addresses}"
    values = {"client": stacked.client_id, "number": stacked.processes, "addresses": _and(known)}
    return _sentences(
        Text(template, **for_slots(template, values)),
        Text(taking, queues=queue_ranges(taken)) if taken else "",
        Text(
            "the share of the later copies ({number}: {queues}) has no owner",
            number=count(len(orphans), "queue"),
            queues=queue_ranges(orphans),
        )
        if orphans
        else "",
        "" if stacked.is_settled else _NOT_SEEN_TO_STAY,
    )


def _stale_channel(stacked: StackedId, addresses: Sequence[str], findings: list[Finding]) -> str:
    template = "a broker lists {client} {copies} times"
    if known := [*filter(None, addresses)]:
        template = "a broker lists {client} {copies} times ({addresses})"
    values = {"client": stacked.client_id, "copies": stacked.copies, "addresses": _and(known)}
    channels = Text(template, **for_slots(template, values))
    if not stacked.is_settled:
        return _sentences(channels, NOT_YET_KNOWN, _effect(findings))
    left_behind = Text(
        "{channels} and has {processes}: a channel that was not closed takes a slot",
        channels=channels,
        processes=count(stacked.processes, "process", "processes"),
    )
    return _sentences(left_behind, _effect(findings))


def _ghosts(situation: Situation, findings: list[Finding]) -> Description:
    state = situation.state
    addresses = {address for _, _, address in silent_members(state)}
    ghosts = _members(state, lambda member: member.client_addr in addresses)
    template = "{clients} [sends|send] no heartbeats any more and still [takes|take] a slot"
    if state.ids_of_nobody.issuperset(ghosts):
        template = (
            "{clients} no longer [answers|answer] requests for running infos and still "
            "[takes|take] a slot"
        )
    remedy = Text(
        "check whether any process of {these_clients} is alive, and restart it; the broker drops "
        "a client about 130 s after its last heartbeat (one that is shut down properly leaves at "
        "once)",
        these_clients=_and(ghosts),
    )
    evidence = _sentences(_about_clients(ghosts, template), _effect(findings))
    return Description(evidence, remedy, client_ids=ghosts)


def _strategies(situation: Situation, findings: list[Finding]) -> Description:
    in_use = repairs.strategies_in_use(situation)
    users = grouped((strategy.full_name, client_id) for client_id, strategy in in_use)
    who, others = _who_uses(users, "{clients} [uses|use] {strategy}", "strategy")
    if len(users) == 1:
        who = Text("{users} with different parameters", users=who)
    remedy = _one_strategy(situation.state, [strategy for _, strategy in in_use])
    return Description(_sentences(who, _effect_in(situation.state, findings)), remedy, others)


def _who_uses(
    users: Mapping[str, Collection[str]], template: str, slot: str
) -> tuple[str, tuple[str, ...]]:
    """The users of each thing, in words, and the ids that do not use the commonest one."""
    most_first = sorted(users.items(), key=lambda use: (-len(use[1]), use[0]))
    who = joined(_about_clients(sorted(ids), template, **{slot: what}) for what, ids in most_first)
    return who, tuple(sorted({client_id for _, ids in most_first[1:] for client_id in ids}))


def _one_strategy(state: State, in_use: Collection[AllocationStrategy]) -> str:
    """The remedy that makes all members compute the same, whatever SDK each is built on."""
    sdks = {sdk_of(m.language, m.version) for m in state.members if m.subscribed}
    remedy = Text("give all members of the group the same strategy")
    if len(sdks) > 1 and Sdk.CPP in sdks:
        remedy = Text(
            "give all members of the group the same strategy: AVG, the only one that client-cpp has"
        )
    elif len(sdks) > 1 and Sdk.GO in sdks:
        remedy = Text(
            "give all members of the group the same strategy: AVG or AVG_BY_CIRCLE, which "
            "client-go computes as Java does"
        )
    update = Text("update the clients before 4.8.0") if _is_any_old(in_use) else ""
    bytewise = any(strategy.sorts_bytewise for strategy in in_use)
    names = Text("name clients and brokers in ASCII, which all SDKs sort alike") if bytewise else ""
    return _sentences(remedy, update, names)


def subscriptions_differ(state: State) -> bool:
    """True if some members reported that they subscribe to the topic, and others that they do not.

    A subscription in the group's table does not count: it may be anybody's.
    """
    reported = [m for m in state.members if m.subscription_source not in (None, GROUP_TABLE)]
    return any(member.subscribed for member in reported) and any(map(is_stranger, reported))


def _subscriptions(situation: Situation, findings: list[Finding]) -> Description:
    topic = situation.state.topic
    strangers = _members(situation.state, is_stranger)
    percents = {m.subscribed_percent for m in situation.state.members if m.subscribed} - {SURE}
    evidence, remedies, possibly = [], [], _AT_TIMES
    # Another process with the id of one that does not subscribe does.
    shared = {m.client_id for m in situation.state.members if m.subscribed}.intersection(strangers)
    if others := [stranger for stranger in strangers if stranger not in shared]:
        sentence = (
            "{clients} [does|do] not subscribe to {topic} and still [takes|take] a slot of it"
        )
        evidence.append(_about_clients(others, sentence, topic=topic))
    if shared:
        template = (
            "[a process|processes] of {clients} [does|do] not subscribe to {topic} and still "
            "[takes|take] a slot of it"
        )
        evidence.append(_about_clients(sorted(shared), template, topic=topic))
    if percents:
        template = (
            "the group's subscription table has {topic} in about {percent} % of the polls "
            "and lacks it in the others: every heartbeat overwrites the table, so some members "
            "subscribe to the topic and some do not; nothing that was collected shows which"
        )
        evidence.append(Text(template, topic=topic, percent=min(percents)))
        which = Text("collect the running infos of the members, or heartbeats, to see which")
        remedies.append(which)
        possibly = _PERHAPS
    effect = _effect(findings, possibly)
    if not situation.state.topic_routes:
        effect = Text(
            "which of its queues nobody takes cannot be computed: no route of {topic} was "
            "collected",
            topic=topic,
        )
    separate = Text(
        "let all members of the group subscribe to the same topics, or put those that do not into "
        "a separate group"
    )
    if shared:
        separate = Text(
            "put the processes that do not subscribe to {topic} into a separate group; or give "
            "each process its own instanceName, and then let all of them subscribe to the same "
            "topics",
            topic=topic,
        )
    return Description(_sentences(*evidence, effect), joined([*remedies, separate]), strangers)


def _describe_members(which: Callable[[Member], bool], template: str, what_to_do: str) -> _Describe:
    """Describes what some members are or do; ``{topic}`` and ``{group}`` are those of the state."""

    def describe(situation: Situation, findings: list[Finding]) -> Description:
        state = situation.state
        client_ids = _members(state, which)
        clients = _and(client_ids)
        values = {"clients": clients, "topic": state.topic, "group": state.consumer_group}
        evidence = agreeing(len(client_ids), template, **for_slots(template, values))
        remedy = Text(what_to_do, **for_slots(what_to_do, values))
        return Description(_sentences(evidence, _effect(findings)), remedy, client_ids)

    return describe


def _lacking(state: State) -> dict[BrokerId, Counter[str]]:
    """The client ids that the list of each broker lacks, as often as another list has them more;
    of the brokers that clients of the topic ask.
    """
    most = reduce(or_, (entry.copies for entry in lists_of_topic(state)), Counter[str]())
    asked = asked_brokers(state.brokers)
    lists = sorted(state.client_lists, key=attrgetter("broker"))
    lacking = {entry.broker: most - entry.copies for entry in lists if entry.broker in asked}
    return {broker: fewer for broker, fewer in lacking.items() if fewer}


def _broker_views(situation: Situation, findings: list[Finding]) -> Description:
    state, lost = situation.state, repairs.lost_brokers(situation.state)
    fewer = {broker: less for broker, less in _lacking(state).items() if broker[0] not in lost}
    listed = {entry.broker: entry.copies for entry in state.client_lists}
    lacking = {broker: sorted(less.keys() - listed[broker]) for broker, less in fewer.items()}
    short = {broker: client_ids for broker, client_ids in lacking.items() if client_ids}
    template = "the list of {broker} lacks {clients}, which other brokers list"
    differences = [
        Text(template, broker=named_broker(*broker), clients=_and(missing))
        for broker, missing in short.items()
    ]
    if fewer and not short:
        differences = [Text("the brokers list an id a different number of times")]
    # A list that did not come lacks nobody: who does not reach that broker is known all the same.
    unreached = sorted((name, client_id) for client_id, name in state.unreachable if client_id)
    if fewer or not unreached:
        short_lists = (fewer or _lacking(state)).items()
        unreached = [(named_broker(*broker), id_) for broker, less in short_lists for id_ in less]
    return Description(
        _sentences(
            *differences,
            *_without_a_broker(state),
            Text(
                "a client asks a random broker at every rebalance, so the shares change from one "
                "to the next"
            ),
            _effect_in(state, findings),
        ),
        Text(
            "check whether {these_brokers} can be reached from {these_clients} (network, firewall, "
            "name server addresses); while a client starts or leaves this passes by itself",
            these_brokers=_and(dict.fromkeys(name for name, _ in unreached)),
            these_clients=_and(sorted({client_id for _, client_id in unreached})),
        ),
        client_ids=tuple(sorted(set[str]().union(*short.values()))),
        broker_names=tuple(dict.fromkeys(name for name, _ in short)),
    )


def _without_a_broker(state: State) -> Iterator[Text]:
    """The subscribers that do not reach a broker of the topic, in words.

    A client sends heartbeats to the brokers of its topics alone
    (``MQClientInstance.sendHeartbeatToAllBroker``): one that does not subscribe to the topic is not
    expected there. Where the group's table alone shows what a client subscribes to, that may be so.
    """
    subscribed = {member.client_id: member for member in state.members if member.subscribed}
    lost = repairs.lost_brokers(state)
    lacking = [(name, id_) for id_, name in state.unreachable if id_ in subscribed]
    not_reaching = grouped((name, id_) for name, id_ in lacking if name not in lost)
    for broker_name, client_ids in sorted(not_reaching.items()):
        template = "{clients} [does|do] not reach {broker} and [reads|read] no queue of it"
        yield _about_clients(sorted(client_ids), template, broker=broker_name)
    every = set[str]().union(*not_reaching.values())
    by_table = {id_ for id_ in every if subscribed[id_].subscription_source == GROUP_TABLE}
    if by_table:
        yield _about_clients(
            sorted(by_table),
            "or {clients} [subscribes|subscribe] to other topics alone (the group's table does not "
            "show whose topics they are), still [takes|take] a slot, and [sends|send] no heartbeat "
            "there: running infos show which",
        )


def _group_not_on_broker(situation: Situation, findings: list[Finding]) -> Description:
    """The ACL asks for SUB: ``PlainAccessResource`` 4.9.4, ``DefaultAuthorizationContextBuilder``
    5.3.3.
    """
    without = repairs.brokers_without_group(situation.state)
    brokers = _and(named_broker(*broker) for broker in without)
    missing = agreeing(
        len(without),
        "{brokers} [answers|answer] that the group has no member there, while other brokers list "
        "members: the group is missing on the broker, or no client reaches it",
        brokers=brokers,
    )
    remedy = Text(
        "check that the group exists on {these_brokers}; if it does not, create it (mqadmin "
        "updateSubGroup -b BROKER_ADDRESS -g {this_group}, for each of them); if it does, "
        "check that the clients reach {these_brokers}, and that the broker's ACL lets them: it "
        "refuses heartbeats without SUB on the group and its topics",
        these_brokers=brokers,
        this_group=situation.state.consumer_group,
    )
    names = tuple(dict.fromkeys(name for name, _ in without))
    return Description(_sentences(missing, _effect(findings)), remedy, broker_names=names)


def _routes(situation: Situation, findings: list[Finding]) -> Description:
    state, lost = situation.state, repairs.lost_brokers(situation.state)
    routes = joined(map(_route, state.topic_routes))
    differ = Text("the nameservers differ on {topic}: {routes}", topic=state.topic, routes=routes)
    remedy = Text(
        "check whether every broker registers with every nameserver; stop a nameserver with "
        "which no broker registers any more"
    )
    brokers = tuple(sorted({b.broker_name for b in state.brokers}))
    forgetting = grouped(
        (name, client_id)
        for client_id, name in state.unreachable
        if findings and client_id is not None and name in lost
    )
    forgotten = [
        Text(
            "the list of {broker} lacks {clients}: a client of {nameservers}, which {name} is "
            "missing at, sends it no heartbeats and reads nothing of it",
            broker=name,
            clients=_and(sorted({*client_ids})),
            nameservers=_and(
                route.namesrv_addr
                for route in state.topic_routes
                if route.brokers and name not in {broker.broker_name for broker in route.brokers}
            ),
            name=name,
        )
        for name, client_ids in sorted(forgetting.items())
    ]
    harmless = [] if findings else [*_would_lack(state, lost)]
    return Description(
        _sentences(differ, *forgotten, *harmless, _effect_in(state, findings)),
        remedy,
        client_ids=tuple(sorted(set[str]().union(*forgetting.values()))),
        broker_names=brokers,
    )


def _would_lack(state: State, lost: Collection[str]) -> Iterator[Text]:
    """The brokers that a client would lack, were its nameserver one whose route lacks them."""
    for route in state.topic_routes:
        lacks = sorted({*lost}.difference(broker.broker_name for broker in route.brokers))
        if route.brokers and lacks:
            yield Text(
                "no queue of the group shows it today: a client that starts with {nameserver} "
                "reads nothing of {brokers}",
                nameserver=route.namesrv_addr,
                brokers=_and(lacks),
            )


def _route(route: TopicRoute) -> Text:
    brokers = [
        Text(
            "{broker} with {queues}"
            if broker.has_master
            else "{broker}, without its master, with {queues}",
            broker=broker.broker_name,
            queues=count(broker.read_queue_nums, "queue"),
        )
        for broker in sorted(route.brokers, key=attrgetter("broker_name"))
        if broker.is_readable
    ]
    if not brokers:
        return Text("{nameserver} gives no readable broker", nameserver=route.namesrv_addr)
    given = _and(brokers)
    return Text("{nameserver} gives {brokers}", nameserver=route.namesrv_addr, brokers=given)


def _group_offline(situation: Situation, findings: list[Finding]) -> Description:
    what = Text("no broker that answered knows any member of the group")
    if offline_share(situation.state) == 1.0:
        what = Text("no broker knows any member of the group")
    return _describe_queues(what, GROUP_OFFLINE_REMEDY)(situation, findings)


def _master_away(situation: Situation, findings: list[Finding]) -> Description:
    away = tuple(sorted(situation.state.without_master))
    readers = _members(situation.state, lambda member: member.language == "GO")
    template = (
        "the route has no [master|masters] of {brokers}; {clients} use client-go, which does "
        "not read from slaves"
    )
    mending = (
        "bring the master of {these_brokers} back, or let a slave act for it "
        "(enableSlaveActingMaster); Java's clients read from the slave meanwhile"
    )
    if situation.state.locks_at_master:
        readers = ()
        template = (
            "the route has no [master|masters] of {brokers}, and the members consume in order: "
            "they lock each queue at the master, and read nothing without it"
        )
        mending = (
            "bring the master of {these_brokers} back, or let a slave act for it "
            "(enableSlaveActingMaster); a restart of the clients changes nothing"
        )
    values = for_slots(template, {"brokers": _and(away), "clients": _and(readers)})
    evidence = _sentences(agreeing(len(away), template, **values), _effect(findings))
    return Description(evidence, Text(mending, these_brokers=_and(away)), readers, away)


def _rooms(situation: Situation, findings: list[Finding]) -> Description:
    """Describes rooms that no member serves, and the cost to served rooms where clients cut their
    blocks from the queues of all rooms: the one that is left out does no harm.
    """
    unfiltered = repairs.users_of(situation, MachineRoomUnfiltered)
    brokers = {finding.queue.broker_name for finding in findings}
    served = {name for name in brokers if any(room.serves(name) for room in unfiltered.values())}
    displaced = [finding for finding in findings if finding.queue.broker_name in served]
    left_out = [finding for finding in findings if finding.queue.broker_name not in served]
    parts = []
    if displaced:
        names = {strategy.full_name for strategy in unfiltered.values()}
        evidence = _about_clients(
            sorted(unfiltered),
            "{clients} [uses|use] {strategies}, whose blocks are cut from the queues of all rooms: "
            "those of a room that no member serves take the place of others",
            strategies=_and(sorted(names)),
        )
        remedy = Text(
            "update {these_clients} to 4.8.0 or later, which divides the queues of "
            "consumeridcs alone"
            if _is_any_old(unfiltered.values())
            else "give {these_clients} another strategy, or all rooms: client-go has no other "
            "MACHINE_ROOM",
            these_clients=_and(sorted(unfiltered)),
        )
        parts.append(_describe_queues(evidence, remedy)(situation, displaced))
    if left_out:
        evidence = Text("no member serves the room of these brokers")
        remedy = Text(
            "if the room should be served, add it to consumeridcs of the members (a broker's room "
            "is what its name has before the @); if it is left out on purpose, stop the producers "
            "there (mqadmin updateTopic -b BROKER_ADDRESS -t {topic} -r READ_QUEUES -w "
            "WRITE_QUEUES -p 4) and move what is unread, or name it as a known issue",
            topic=situation.state.topic,
        )
        parts.append(_describe_queues(evidence, remedy)(situation, left_out))
    return Description(
        joined(part.evidence for part in parts),
        joined(part.remedy for part in parts),
        client_ids=tuple(sorted(unfiltered)) if displaced else (),
        broker_names=tuple(sorted({name for part in parts for name in part.broker_names})),
    )


def _is_any_old(in_use: Iterable[AllocationStrategy]) -> bool:
    return any(strategy.variant == Sdk.JAVA_BEFORE_4_8_0.value for strategy in in_use)


def _describe_queues(what: str, remedy: str) -> _Describe:
    return lambda _, findings: Description(
        evidence=Text("{what}: {queues}", what=what, queues=_effect(findings)),
        remedy=remedy,
        broker_names=tuple(sorted({finding.queue.broker_name for finding in findings})),
    )


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
    return NO_FILTER if not tags or "*" in tags else "TAG " + " || ".join(tags)


def filter_users(state: State) -> dict[str, set[str]]:
    """The client ids that use each filter on the topic."""
    users: dict[str, set[str]] = defaultdict(set)
    for member in state.members:
        if member.subscribed and member.expression is not None:
            users[member.expression].add(member.client_id)
    return users


def _expressions(situation: Situation, _: list[Finding]) -> Description:
    users = filter_users(situation.state)
    who, others = _who_uses(users, "{clients} [filters|filter] by {filter}", "filter")
    evidence = Text(
        "{users}: each client drops the messages of its queues that its filter does not let pass, "
        "and no lag shows it",
        users=who,
    )
    remedy = Text("let all members of the group use one filter, or a group for each filter")
    return Description(evidence, remedy, client_ids=others)


#: The client ids that have the fault, and the evidence of one: each is a separate fault.
DESCRIBE_ONE_ID: Mapping[
    str,
    tuple[Callable[[StackedId], bool], Callable[[StackedId, Sequence[str], list[Finding]], str]],
] = {
    repairs.DUPLICATE_CLIENT_ID: (lambda stacked: stacked.processes > 1, _duplicate_id),
    repairs.STALE_CHANNEL: (lambda stacked: stacked.copies > stacked.processes, _stale_channel),
}
#: The descriptions of faults of the whole group, in evidence and remedy.
DESCRIBE: Mapping[str, _Describe] = {
    repairs.GHOST_MEMBER: _ghosts,
    repairs.STRATEGY_MISMATCH: _strategies,
    repairs.SUBSCRIPTION_MISMATCH: _subscriptions,
    repairs.MANUAL_ASSIGNMENT: _describe_members(
        lambda member: member.chooses_queues,
        "{clients} [chooses|choose] queues by assign() or by the pull consumer and still "
        "[takes|take] a slot (nobody can compute which queues [it reads|they read])",
        "put members that choose their queues themselves into a separate group",
    ),
    repairs.MIXED_MESSAGE_MODEL: _describe_members(
        lambda member: member.message_model == BROADCASTING,
        "{clients} [broadcasts|broadcast] in a clustering group, reading every queue and taking "
        "slots",
        "put broadcasting members into a separate group",
    ),
    repairs.BROKER_VIEW_DIVERGENCE: _broker_views,
    repairs.GROUP_NOT_ON_BROKER: _group_not_on_broker,
    repairs.ROUTE_DIVERGENCE: _routes,
    repairs.MASTER_AWAY: _master_away,
    EXPRESSION_MISMATCH: _expressions,
    UNKNOWN_TOPIC: _describe_members(
        lambda member: member.subscribed,
        "{clients} [subscribes|subscribe] to {topic}, which no nameserver knows",
        "check whether the topic's name is written as its producers write it; if it is, create "
        "the topic (mqadmin updateTopic), or take it out of the subscription",
    ),
    repairs.MIXED_REQUEST_MODE: _describe_members(
        lambda member: member.subscribed and member.client_rebalance is True,
        "{clients} [divides the queues itself|divide the queues themselves] (clientRebalance "
        "true) and [pulls its share|pull their shares], while other members get messages of all "
        "queues by POP: what is pulled is read twice",
        "let all members leave the assignment to the broker (clientRebalance false), or let "
        "the group pull (mqadmin setConsumeMode -c CLUSTER -t {topic} -g {group} -m PULL)",
    ),
    repairs.ROOM_NOT_SERVED: _rooms,
    repairs.CONFIG_OVERLAP: _describe_queues(
        Text("these queues are in the lists of several clients"),
        Text("leave each queue in one client's list"),
    ),
    repairs.CONFIG_GAP: _describe_queues(
        Text("these queues are in no client's list"),
        Text("add each queue to one client's list, %RETRY% topics included"),
    ),
    GROUP_OFFLINE: _group_offline,
    UNEXPLAINED: _describe_queues(
        Text("no fault that the audit can compute, alone or with others, explains these queues"),
        Text(
            "compare the tables allocations and allocation_drift; if the application has a "
            "strategy that is not RocketMQ's, its shares cannot be computed"
        ),
    ),
}
