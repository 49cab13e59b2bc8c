"""situations -> the core's verdict on each, once however often it was so.

Each situation becomes a state of the core, with the lists that it names. In one process it is
evaluated as it is; on Spark it is a row of ``situations``, which the pandas UDF
``recompute_allocations`` gets: what a person reads of it, in columns.

What is in a column is not in the rest, which travels packed beside it: the core computes from the
columns. All brokers list the same in nearly all situations, and all nameservers give the same
queues, so a row has one list and one route, and those that differ beside them.
"""

import json
import traceback
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NamedTuple

import rebalance_core as core
from rebalance_core import Member, MessageQueue, State
from rebalance_core.findings import Allocation, most_queues
from rebalance_core.processes import strategies_of
from rebalance_core.state import CLUSTERING, SURE, ProcessCount
from rebalance_core.strategy import AllocationStrategy, original_id
from rebalance_core.strategy_factory import strategy_of
from rebalance_core.strategy_rules import overridden
from rebalance_core.texts import Text
from rebalance_core.views import possible_views, readable_queues

from ...declared.contents import MEMBER_FACTS
from ...declared.dossier import Broker
from ...engines.pieces import in_parts, pack_value, unpack_value
from ...schemas import NO_ANSWER, NOT_ONLINE
from ...texts.failures import is_of_the_machine, sentence_of
from .core_verdict import AllocationRows, FoundQueue, Verdict, allocation_rows
from .situations import TopicSituation

#: A member of a list: its facts, in the order of ``contents.MEMBER_FACTS``.
MemberFacts = tuple[Any, ...]


class Failure(NamedTuple):
    """The error of a group in one sentence, and its stack."""

    cluster: str
    consumer_group: str
    sentence: str
    stack: str

    @classmethod
    def of(cls, cluster: str, consumer_group: str, error: Exception) -> "Failure":
        """The failure, while the error is handled; what is the machine's is raised again."""
        if is_of_the_machine(error):
            raise error
        return cls(cluster, consumer_group, sentence_of(error), traceback.format_exc())


# ---------------------------------------------------------------- situations to states


class ListPart(NamedTuple):
    """A part of a broker's list: the members of ``only`` these clients, or all but these."""

    broker: Broker
    list_id: str
    client_ids: tuple[str, ...] = ()
    only: bool = False

    def has(self, client_id: str) -> bool:
        """True if the members of the client belong to the part."""
        return (client_id in self.client_ids) == self.only


def listed(situation: TopicSituation) -> Iterator[ListPart]:
    """The lists that the brokers gave, part by part: see ``membership.Patch``."""
    for broker, answer in situation.answers:
        patches = [patch for patch in situation.patches if patch.broker == broker]
        if any(patch.later == NOT_ONLINE for patch in patches):
            continue
        if answer not in (NOT_ONLINE, NO_ANSWER):
            replaced = chain.from_iterable(patch.client_ids for patch in patches)
            yield ListPart(broker, answer, tuple(replaced))
        for patch in patches:
            yield ListPart(broker, patch.later, patch.client_ids, only=True)


class TopicSubscriptions:
    """The subscriptions of members, by topic: a member with 20,000 of them is asked for each."""

    def __init__(self) -> None:
        #: Entries by identity, with what has it, which nothing else has for as long.
        self._found: dict[int, tuple[Any, dict[str, tuple[Any, ...]]]] = {}

    def of(self, topic: str, subscriptions: Any, doubtful: Any) -> tuple[bool, int, str | None]:
        """True if the member subscribes to the topic; the percentage of polls; the filter."""
        expression = self._expression(topic, subscriptions)
        if expression is None:
            return False, SURE, None
        return True, dict(doubtful or ()).get(topic, SURE), core.normalise_expression(*expression)

    def _expression(self, topic: str, subscriptions: Any) -> tuple[Any, ...] | None:
        if id(subscriptions) not in self._found:
            # The first of equal topics counts.
            by_topic = {topic: tuple(rest) for topic, *rest in reversed(subscriptions or ())}
            self._found[id(subscriptions)] = subscriptions, by_topic
        return self._found[id(subscriptions)][1].get(topic)


class SeenState(NamedTuple):
    """A situation as the core has it; a failure where it cannot be made."""

    cluster: str
    consumer_group: str
    topic: str
    state_id: str
    state: State | Failure

    @classmethod
    def failed(cls, place: tuple[str, str, str, str], error: Exception) -> "SeenState":
        """The situation of a place, while the error is handled."""
        return cls(*place, Failure.of(place[0], place[1], error))

    def size(self) -> int:
        """The members of all its lists."""
        return 0 if isinstance(self.state, Failure) else sum(1 for _ in self.state.members)


def seen_states(
    situations: Iterable[TopicSituation], members: Mapping[str, Sequence[MemberFacts]]
) -> Iterator[SeenState]:
    """The state of each situation; ``members`` by list id."""
    subscribed = TopicSubscriptions()
    for situation in situations:
        place = situation.cluster, situation.consumer_group, situation.topic, situation.situation_id
        try:
            yield SeenState(*place, state_of(situation, members, subscribed))
        except Exception as error:
            yield SeenState.failed(place, error)


def state_of(
    situation: TopicSituation,
    members: Mapping[str, Sequence[MemberFacts]],
    subscribed: TopicSubscriptions | None = None,
) -> State:
    """The core's state of a situation; ``members`` has the lists that it names, by id, and others.

    ``subscribed``: the same for all situations of these members.
    """
    subscribed, topic = subscribed or TopicSubscriptions(), situation.topic
    lists: dict[Broker, list[Member]] = {}
    for part in listed(situation):
        chosen = [record for record in members[part.list_id] if part.has(record[_CLIENT_ID])]
        if chosen:
            lists.setdefault(part.broker, []).extend(_members_in(chosen, topic, subscribed))
    patched = {patch.broker: patch.later for patch in situation.patches}
    answers = dict(situation.answers) | patched
    return State(
        consumer_group=situation.consumer_group,
        topic=topic,
        # In order, for the order in which rows come, or a broker prints a set, has no meaning.
        client_lists=tuple(
            core.ClientList(*broker, _each_once(members))
            for broker, members in sorted(lists.items())
        ),
        topic_routes=tuple(
            # Each name once.
            core.TopicRoute(addr, tuple({b.broker_name: b for b in brokers}.values()))
            for addr, brokers in sorted(situation.routes, key=itemgetter(0))
        ),
        offline_brokers=tuple(answer for answer in answers if answers[answer] == NOT_ONLINE),
        process_counts=tuple(
            # Every reason is a template without slots, so that a column needs no more than it.
            ProcessCount(client_id, processes, Text(because))
            for client_id, processes, because in situation.process_counts
        ),
        unreachable=situation.unreachable,
        request_mode=situation.request_mode,
        locks_at_master=situation.locks_at_master,
    )


_CLIENT_ID = [fact.name for fact in MEMBER_FACTS].index("client_id")


def _members_in(
    records: Iterable[MemberFacts], topic: str, subscribed: TopicSubscriptions
) -> Iterator[Member]:
    """The members, with what they subscribe to narrowed to the topic.

    There are millions of them, and equal subscriptions are one object as a rule.
    """
    found: dict[tuple[int, int], tuple[bool, int, str | None]] = {}
    for record in records:
        client_id, addr, language, version, message_model, strategy, rebalances = record[:7]
        is_expired, chooses_queues, source, doubtful_topics, subscriptions = record[7:]
        key = id(subscriptions), id(doubtful_topics)
        if key not in found:
            found[key] = subscribed.of(topic, subscriptions, doubtful_topics)
        is_subscribed, percent, expression = found[key]
        yield Member(
            client_id,
            addr,
            is_subscribed,
            message_model or CLUSTERING,
            strategy,
            rebalances,
            language,
            # -1: the list has none.
            None if version is None or version < 0 else version,
            expression,
            is_expired,
            chooses_queues,
            source,
            percent,
        )


def _each_once(members: Iterable[Member]) -> tuple[Member, ...]:
    """The members of one list, in order. A connection is once in a broker's list: a row that
    repeats one is dropped. Copies of an id have different addresses, and stay.
    """
    every = list(members)
    if len({member[:2] for member in every if member.client_addr}) == len(every):
        return tuple(sorted(every))  # as it nearly always is: these two decide
    found: dict[tuple[str, Any], Member] = {}
    unaddressed: list[Member] = []
    for member in every:
        if not member.client_addr:
            unaddressed.append(member)
            continue
        key = (member.client_id, member.client_addr)
        found[key] = min(found[key], member, key=str) if key in found else member
    for number, member in enumerate(sorted(unaddressed, key=str)):
        # Without an address a repeated row looks like a copy of the id: it counts.
        addr = Text("(address {number} not known)", number=number)
        found[member.client_id, addr] = member._replace(client_addr=addr)
    return tuple([found[key] for key in sorted(found)])


# ---------------------------------------------------------------- states to verdicts


class Verdicts(NamedTuple):
    """The core's verdicts on some situations, in their order, or its failures."""

    state_ids: Sequence[str]
    verdicts: Sequence[Verdict | Failure]
    allocations: AllocationRows

    def by_id(self) -> dict[str, Verdict]:
        """The verdict of each situation, with its allocations."""
        every = zip(self.state_ids, self.verdicts, self.allocations.loaders(), strict=True)
        return {
            state_id: replace(verdict, allocations=rows)
            for state_id, verdict, rows in every
            if not isinstance(verdict, Failure)
        }

    def failed(self) -> Iterator[Failure]:
        """The groups on which it failed."""
        return (verdict for verdict in self.verdicts if isinstance(verdict, Failure))


#: The number of members, of however many situations, that are evaluated at a time: some 100 ms of
#: work, and no more than some megabytes of members and of what each of them takes.
MEMBERS_AT_ONCE = 20_000


def at_once(states: Iterable[SeenState]) -> Iterator[list[SeenState]]:
    """The states in parts of about equal work."""
    return in_parts(states, MEMBERS_AT_ONCE, SeenState.size)


def evaluate(states: Iterable[SeenState], rules: core.StrategyRules) -> Verdicts:
    """The core's verdicts on some situations."""
    some = list(states)
    verdicts, allocations = zip(*(evaluate_one(seen, rules) for seen in some), strict=True)
    rows = allocation_rows([seen[:4] for seen in some], allocations)
    return Verdicts([seen.state_id for seen in some], verdicts, rows)


def evaluate_one(
    seen: SeenState, rules: core.StrategyRules
) -> tuple[Verdict | Failure, Sequence[Allocation[MessageQueue]]]:
    """The core's verdict on a situation, or its failure, and who takes what under which view."""
    if isinstance(seen.state, Failure):
        return seen.state, ()
    try:
        evaluation = core.evaluate(seen.state, rules)
        verdict = to_verdict(evaluation, core.Situation(seen.state, rules))
    except Exception as error:
        return Failure.of(seen.cluster, seen.consumer_group, error), ()
    return verdict, evaluation.allocations


def to_verdict(evaluation: core.Evaluation, situation: core.Situation) -> Verdict:
    """The verdict without its allocations; only a state with findings pays for their causes."""
    causes = core.find_causes(situation, evaluation)
    return Verdict(
        verdict=replace(evaluation, findings=(), allocations=()),
        nameservers=len(situation.state.topic_routes),
        findings=tuple(
            FoundQueue(
                found.kind,
                (found.queue.broker_name, found.queue.queue_id),
                found.certainty,
                found.probability,
                found.claimants,
                causes.names(found),
                is_assumed=found.is_assumed,
            )
            for found in evaluation.findings
        ),
        faults=core.find_faults(situation, evaluation, causes),
    )


# ---------------------------------------------------------------- situations as rows


class SituationRow(NamedTuple):
    """A row of ``schemas.SITUATIONS``, and the rest of the situation, packed."""

    cluster: str
    consumer_group: str
    topic: str
    state_id: str
    strategy: str | None
    parameters: str | None
    queues: Sequence[Mapping[str, Any]] | None
    client_ids: Sequence[str]
    other_strategies: Sequence[Mapping[str, Any]]
    other_routes: Sequence[Mapping[str, Any]]
    other_lists: Sequence[Mapping[str, Any]]
    connections: int
    views: int | None
    rest: bytes


#: The facts of a list's members after the client id, by column: one value where all have the same.
_Facts = list[Any]


def to_row(seen: SeenState, rules: core.StrategyRules) -> SituationRow:
    """The row of a situation; of one that the core cannot be given, the failure is the rest."""
    place, state = seen[:4], seen.state
    if isinstance(state, Failure):
        return SituationRow(*place, None, None, None, (), (), (), (), 0, None, _packed(state))
    ids = {of.broker: tuple(m.client_id for m in of.members) for of in state.client_lists}
    ((client_ids, _),) = Counter(ids.values()).most_common(1) or [((), 0)]
    routes = {}
    if is_divided := most_queues(state) <= rules.most_queues:
        routes = {r.namesrv_addr: readable_queues(state.topic, r) for r in state.topic_routes}
    given = list(routes.values())
    queues = max(given, key=given.count) if given else None
    strategies = _strategies(strategies_of(state, rules), rules)
    lists = [(of.broker, _facts(of.members)) for of in state.client_lists]
    stripped = [
        (route.namesrv_addr, [_without_queues(b) if is_divided else b for b in route.brokers])
        for route in state.topic_routes
    ]
    bare = replace(state, consumer_group="", topic="", client_lists=(), topic_routes=())
    return SituationRow(
        *place,
        *strategies[0][:2],
        None if queues is None else list(map(_struct, queues)),
        client_ids,
        [
            dict(zip(("strategy", "parameters", "client_ids"), use, strict=True))
            for use in strategies[1:]
        ],
        [
            {"namesrv_addr": addr, "queues": list(map(_struct, others))}
            for addr, others in routes.items()
            if others != queues
        ],
        [
            {"broker_name": name, "broker_id": number, "client_ids": others}
            for (name, number), others in ids.items()
            if others != client_ids
        ],
        sum(map(len, ids.values())),
        len(possible_views(state).views) if is_divided else None,
        _packed((bare, lists, stripped)),
    )


def from_row(row: SituationRow) -> SeenState:
    """The situation of a row, whose lists are sequences of any kind."""
    place, rest = row[:4], unpack_value(row.rest)
    if isinstance(rest, Failure):
        return SeenState(*place, rest)
    bare, lists, routes = rest
    ids = {(of["broker_name"], of["broker_id"]): of["client_ids"] for of in row.other_lists}
    queues = {route["namesrv_addr"]: route["queues"] for route in row.other_routes}
    state = replace(
        bare,
        consumer_group=row.consumer_group,
        topic=row.topic,
        client_lists=tuple(
            core.ClientList(
                name, number, tuple(_members(ids.get((name, number), row.client_ids), facts))
            )
            for (name, number), facts in lists
        ),
        topic_routes=tuple(
            core.TopicRoute(addr, tuple(_with_queues(brokers, queues.get(addr, row.queues))))
            for addr, brokers in routes
        ),
    )
    return SeenState(*place, state)


def rules_of(row: SituationRow, rules: core.StrategyRules) -> core.StrategyRules:
    """The rules by which members whose strategy is known use that of the row, if it has one.

    Raises AllocationError for a strategy that is unknown, or not made with such parameters.
    """
    if row.strategy is None:
        return rules
    most = strategy_of(row.strategy, row.parameters)
    others = {
        client_id: strategy_of(other["strategy"], other["parameters"])
        for other in row.other_strategies
        for client_id in other["client_ids"]
    }
    return overridden(rules, lambda client_id, _: others.get(original_id(client_id), most))


#: A strategy, its parameters as JSON, and who uses it.
_Use = tuple[str | None, str | None, Sequence[str]]


def _strategies(
    users: Mapping[AllocationStrategy, Collection[str]], rules: core.StrategyRules
) -> list[_Use]:
    """The strategies in use, that of most clients first. One of no name where none is
    known, where an SDK computes something else under a name, or two have a name alike.
    """
    uses: list[_Use] = []
    for strategy, client_ids in users.items():
        # A queue of CONFIG may be one of the core's.
        parameters = json.dumps(dict(rules.parameters_of(strategy)), default=astuple)
        uses.append((strategy.name, None if parameters == "{}" else parameters, [*client_ids]))
    is_named = not any(strategy.variant for strategy in users)
    if not uses or not is_named or len({use[:2] for use in uses}) < len(uses):
        return [(None, None, ())]
    most, *others = sorted(uses, key=lambda use: (-len(use[2]), str(use[:2])))
    return [most, *((*other[:2], sorted(other[2])) for other in others)]


def _packed(value: Any) -> bytes:
    return pack_value(0, "", value).data


def _struct(queue: Any) -> dict[str, Any]:
    return {"topic": queue.topic, "broker_name": queue.broker_name, "queue_id": queue.queue_id}


def _facts(members: Sequence[Member]) -> _Facts:
    _, *columns = zip(*members, strict=True)
    return [column if len(set(column)) > 1 else column[0] for column in columns]


def _members(client_ids: Sequence[str], facts: _Facts) -> Iterator[Member]:
    columns = (fact if isinstance(fact, tuple) else repeat(fact) for fact in facts)
    return map(Member, client_ids, *columns)


def _without_queues(broker: core.RouteBroker) -> core.RouteBroker:
    """The broker of a route without the number of its queues, where they are in the column."""
    is_there = broker.is_readable and broker.read_queue_nums > 0
    return replace(broker, read_queue_nums=None) if is_there else broker  # type: ignore[arg-type]


def _with_queues(brokers: Sequence[core.RouteBroker], queues: Any) -> Iterator[core.RouteBroker]:
    number = Counter(queue["broker_name"] for queue in queues) if queues is not None else {}
    for broker in brokers:
        is_there = broker.read_queue_nums is not None
        yield broker if is_there else replace(broker, read_queue_nums=number[broker.broker_name])
