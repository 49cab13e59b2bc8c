"""A situation as a row: its columns are the truth, and the rest has nothing of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from jobs.declared.contents import MEMBER_FACTS
from jobs.judge.observe.evaluation import (
    Failure,
    SeenState,
    SituationRow,
    from_row,
    rules_of,
    state_of,
    to_row,
)
from jobs.judge.observe.situations import TopicSituation
from rebalance_core import (
    ClientList,
    Member,
    MessageQueue,
    RouteBroker,
    State,
    StrategyRule,
    StrategyRules,
    TopicRoute,
)

RULES = StrategyRules([StrategyRule("G_RING", "CONSISTENT_HASH", params={"virtual_node_count": 3})])


def listed(broker: str, ids: str, number: int = 0, **facts: Any) -> ClientList:
    """A list of clients by one letter each, one connection a letter."""
    members = [Member(each, f"h:{broker}{place}", **facts) for place, each in enumerate(ids)]
    return ClientList(broker, number, tuple(members))


def route(addr: str, **queues: int) -> TopicRoute:
    return TopicRoute(addr, tuple(RouteBroker(b, read_queue_nums=n) for b, n in queues.items()))


def state(*lists: ClientList, group: str = "G", routes: Any = (), **more: Any) -> State:
    return State(group, "T", lists, tuple(routes) or (route("ns", a=2, b=1),), **more)


def row_of(of: State, rules: StrategyRules = RULES) -> SituationRow:
    row = to_row(SeenState("c", of.consumer_group, of.topic, "id", of), rules)
    assert from_row(row) == ("c", of.consumer_group, of.topic, "id", of)
    return row


def names(queues: Any) -> str:
    return " ".join(f"{each['broker_name']}{each['queue_id']}" for each in queues)


PLAIN = state(listed("a", "xyz"), listed("b", "xyz"))


def test_what_all_witnesses_gave_is_there_once() -> None:
    row = row_of(PLAIN)
    assert (row.strategy, row.parameters, row.views) == ("AVG", None, 1)
    assert names(row.queues) == "a0 a1 b0"
    assert {each["topic"] for each in row.queues or ()} == {"T"}
    assert (*row.client_ids,) == ("x", "y", "z")
    assert (row.other_strategies, row.other_routes, row.other_lists) == ([], [], [])
    assert row.connections == 6


def test_who_gave_something_else_is_named_with_it() -> None:
    of = state(
        listed("a", "xyz"),
        listed("b", "xxyz"),
        listed("b", "xyz", 1),
        routes=[route("ns-1", a=2), route("ns-2", a=3, b=1), route("ns-3", a=2)],
    )
    row = row_of(of)
    assert (*row.client_ids,) == ("x", "y", "z")
    assert names(row.queues) == "a0 a1"
    ((nameserver, queues),) = (each.values() for each in row.other_routes)
    assert (nameserver, names(queues)) == ("ns-2", "a0 a1 a2 b0")
    ((broker, number, ids),) = (each.values() for each in row.other_lists)
    assert (broker, number, ids) == ("b", 0, ("x", "x", "y", "z"))
    assert row.views == 3


def test_what_is_in_a_column_is_what_the_state_is_made_of() -> None:
    row = row_of(PLAIN)
    queues = [{"topic": "U", "broker_name": name, "queue_id": 0} for name in "ab"]
    other = row._replace(topic="U", client_ids=["u", "v", "w"], queues=queues)
    came = from_row(other).state
    assert isinstance(came, State)
    assert came.topic == "U"
    assert [member.client_id for member in came.members] == ["u", "v", "w"] * 2
    assert [broker.read_queue_nums for broker in came.brokers] == [1, 1]
    assert replace(came, topic="T", client_lists=(), topic_routes=()) == replace(
        PLAIN, client_lists=(), topic_routes=()
    )


def using(strategy: str | None, ids: str, **facts: Any) -> ClientList:
    """A list whose clients use a strategy."""
    return listed(f"of-{strategy}-{ids}", ids, strategy=strategy, **facts)


#: Lists and the group; the strategy and the parameters of the row, and the others with their users.
STRATEGIES = [
    ([using("AVG_BY_CIRCLE", "xy")], "G", "AVG_BY_CIRCLE", None, []),
    # Where nothing is seen of one, it is what was seen of the others.
    ([using("AVG_BY_CIRCLE", "x"), using(None, "xy")], "G", "AVG_BY_CIRCLE", None, []),
    ([using(None, "xy")], "G_RING", "CONSISTENT_HASH", '{"virtual_node_count": 3}', []),
    ([using("AVG", "z"), using("AVG_BY_CIRCLE", "xy")], "G", "AVG_BY_CIRCLE", None, ["AVG: z"]),
    ([using("AVG", "x", language="GO")], "G", "AVG", None, []),
    # Nobody knows its parameters; this SDK computes something else under the name; a client shows
    # two; nobody is there.
    ([using("CONFIG", "x"), using("AVG", "y")], "G", None, None, []),
    ([using("CONSISTENT_HASH", "x", language="GO"), using("AVG", "y")], "G", None, None, []),
    ([using("AVG", "x"), using("AVG_BY_CIRCLE", "xy")], "G", None, None, []),
    ([], "G", None, None, []),
]


@pytest.mark.parametrize(("lists", "group", "strategy", "parameters", "others"), STRATEGIES)
def test_the_strategies_are_those_of_all_clients(
    lists: list[ClientList], group: str, strategy: str | None, parameters: str | None, others: Any
) -> None:
    row = row_of(state(*lists, group=group))
    assert (row.strategy, row.parameters) == (strategy, parameters)
    found = [f"{each['strategy']}: {' '.join(each['client_ids'])}" for each in row.other_strategies]
    assert found == others
    assert (rules_of(row, RULES) is RULES) == (strategy is None)


def test_two_rules_that_say_the_same_stay_two_strategies() -> None:
    """The core takes them for two, and finds a fault: by one name they would be one."""
    each = {"virtual_node_count": 3}
    rules = [StrategyRule(".*", "CONSISTENT_HASH", client, each) for client in "xy"]
    assert row_of(state(listed("a", "xy")), StrategyRules(rules)).strategy is None


def test_a_queue_of_config_may_be_one_of_the_cores() -> None:
    queues = [MessageQueue("T", "a", 1)]
    rules = StrategyRules([StrategyRule(".*", "CONFIG", params={"config_queues": queues})])
    row = row_of(PLAIN, rules)
    assert (row.strategy, row.parameters) == ("CONFIG", '{"config_queues": [["T", "a", 1]]}')


def test_of_too_many_queues_none_is_made() -> None:
    row = row_of(state(listed("a", "x"), routes=[route("ns", a=10**9)]))
    assert (row.queues, row.views, (*row.client_ids,)) == (None, None, ("x",))


def test_without_a_route_or_a_list_there_is_no_view() -> None:
    row = row_of(replace(PLAIN, topic_routes=()))
    assert (row.queues, row.views) == (None, 0)
    row = row_of(state(offline_brokers=(("a", 0),)))
    assert ((*row.client_ids,), row.connections, row.views) == ((), 0, 0)


def test_a_failure_is_the_rest_of_a_row() -> None:
    failure = Failure("c", "G", "IndexError", "stack")
    seen = SeenState("c", "G", "T", "id", failure)
    row = to_row(seen, RULES)
    assert (row.strategy, row.queues, row.client_ids) == (None, None, ())
    assert from_row(row) == seen


# ---------------------------------------------------------------- lists -> the core's state


def connection(client_id, addr, version):
    values = {"client_id": client_id, "client_addr": addr, "version": version}
    return tuple(values.get(fact.name) for fact in MEMBER_FACTS)


def members(rows):
    situation = TopicSituation("s", "c", "G", "T", ((("x", 0), "list"),), (), (), (), ())
    (of_broker,) = state_of(situation, {"list": rows}).client_lists
    return of_broker.members


def test_a_row_that_repeats_a_connection_is_dropped_whatever_comes_first():
    seen = [("a", "h:1", 401), ("a", "h:1", 399), ("a", "h:2", 401), ("b", "h:1", 401)]
    rows = [connection(*each) for each in seen]
    (found,) = {members(of_order) for of_order in permutations(rows)}
    kept = [(each.client_id, each.client_addr) for each in found]
    assert kept == [("a", "h:1"), ("a", "h:2"), ("b", "h:1")]


def test_without_an_address_a_row_that_repeats_an_id_is_a_copy_of_it():
    rows = [connection("a", "", 401), connection("a", "", 401), connection("b", None, 401)]
    assert [each.client_id for each in members(rows)] == ["a", "a", "b"]
