"""A situation as a row of ``situations``, and back: what a person reads of it, in columns.

What is in a column is not in the rest, which travels packed beside it: the core computes from the
columns. All brokers list the same in nearly all situations, and all nameservers give the same
queues, so a row has one list and one route, and those that differ beside them.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from itertools import repeat
from typing import Any, NamedTuple

from rebalance_core import ClientList, Member, RouteBroker, StrategyRules, TopicRoute
from rebalance_core.findings import most_queues
from rebalance_core.processes import strategies_of
from rebalance_core.strategy import AllocationStrategy, original_id
from rebalance_core.strategy_factory import strategy_of
from rebalance_core.strategy_rules import overridden
from rebalance_core.views import possible_views, readable_queues

from ...engines.pieces import pack_value, unpack_value
from .evaluation import Failure, SeenState


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


def to_row(seen: SeenState, rules: StrategyRules) -> SituationRow:
    """The row of a situation; of one that the core cannot be given, the failure is the rest."""
    place, state = seen[:4], seen.state
    if isinstance(state, Failure):
        return SituationRow(*place, None, None, None, (), (), (), (), 0, None, _packed(state))
    ids = {
        client_list.broker: tuple(m.client_id for m in client_list.members)
        for client_list in state.client_lists
    }
    ((client_ids, _),) = Counter(ids.values()).most_common(1) or [((), 0)]
    routes = {}
    if is_divided := most_queues(state) <= rules.most_queues:
        routes = {r.namesrv_addr: readable_queues(state.topic, r) for r in state.topic_routes}
    given = list(routes.values())
    queues = max(given, key=given.count) if given else None
    strategies = _strategies(strategies_of(state, rules), rules)
    lists = [
        (client_list.broker, _facts(client_list.members)) for client_list in state.client_lists
    ]
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
            {"strategy": name, "parameters": parameters, "client_ids": each}
            for name, parameters, each in strategies[1:]
        ],
        [
            {"namesrv_addr": addr, "queues": list(map(_struct, each))}
            for addr, each in routes.items()
            if each != queues
        ],
        [
            {"broker_name": name, "broker_id": number, "client_ids": each}
            for (name, number), each in ids.items()
            if each != client_ids
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
    ids = {
        (other_list["broker_name"], other_list["broker_id"]): other_list["client_ids"]
        for other_list in row.other_lists
    }
    queues = {
        other_route["namesrv_addr"]: other_route["queues"] for other_route in row.other_routes
    }
    state = replace(
        bare,
        consumer_group=row.consumer_group,
        topic=row.topic,
        client_lists=tuple(
            ClientList(
                name, number, tuple(_members(ids.get((name, number), row.client_ids), facts))
            )
            for (name, number), facts in lists
        ),
        topic_routes=tuple(
            TopicRoute(addr, tuple(_with_queues(brokers, queues.get(addr, row.queues))))
            for addr, brokers in routes
        ),
    )
    return SeenState(*place, state)


def rules_of(row: SituationRow, rules: StrategyRules) -> StrategyRules:
    """The rules by which members whose strategy is known use that of the row, if it has one.

    Raises AllocationError for a strategy that is unknown, or not made with such parameters.
    """
    if row.strategy is None:
        return rules
    most = strategy_of(row.strategy, row.parameters)
    others = {
        client_id: strategy_of(other_strategy["strategy"], other_strategy["parameters"])
        for other_strategy in row.other_strategies
        for client_id in other_strategy["client_ids"]
    }
    return overridden(rules, lambda client_id, _: others.get(original_id(client_id), most))


#: A strategy, its parameters as JSON, and who uses it.
_Use = tuple[str | None, str | None, Sequence[str]]


def _strategies(
    users: Mapping[AllocationStrategy, Collection[str]], rules: StrategyRules
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
    if not uses or not is_named or len({each[:2] for each in uses}) < len(uses):
        return [(None, None, ())]
    most, *others = sorted(uses, key=lambda each: (-len(each[2]), str(each[:2])))
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


def _without_queues(broker: RouteBroker) -> RouteBroker:
    """The broker of a route without the number of its queues, where they are in the column."""
    is_there = broker.is_readable and broker.read_queue_nums > 0
    return replace(broker, read_queue_nums=None) if is_there else broker  # type: ignore[arg-type]


def _with_queues(brokers: Sequence[RouteBroker], queues: Any) -> Iterator[RouteBroker]:
    number = Counter(queue["broker_name"] for queue in queues) if queues is not None else {}
    for broker in brokers:
        is_there = broker.read_queue_nums is not None
        yield broker if is_there else replace(broker, read_queue_nums=number[broker.broker_name])
