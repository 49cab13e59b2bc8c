"""What the core says of a state has a name wherever a sentence needs one, whatever did not come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rebalance_core import State, evaluate, find_causes, find_faults
from rebalance_core.repairs import BROKER_VIEW_DIVERGENCE, Situation
from rebalance_core.state import ClientList
from tests.core.test_causes import PLAIN
from tests.languages.test_core_texts import SITUATIONS
from tests.support.sentences import holes
from tests.support.snapshots import one_list_each


def with_less(state: State) -> Iterator[State]:
    """The state without a list, a member of one, a route, a broker of one; or in which a client,
    or the group, does not reach a broker; or without the addresses of connections.
    """
    yield state
    lists, routes = state.client_lists, state.topic_routes
    for number, entry in enumerate(lists):
        others = lists[:number], lists[number + 1 :]
        without = replace(state, client_lists=(*others[0], *others[1]))
        yield without
        yield replace(without, offline_brokers=(*state.offline_brokers, entry.broker))
        for place in range(min(len(entry.members), 3)):
            fewer = replace(entry, members=entry.members[:place] + entry.members[place + 1 :])
            yield replace(state, client_lists=(*others[0], fewer, *others[1]))
    for number, route in enumerate(routes):
        around = routes[:number], routes[number + 1 :]
        yield replace(state, topic_routes=(*around[0], *around[1]))
        for place in range(len(route.brokers)):
            smaller = replace(route, brokers=route.brokers[:place] + route.brokers[place + 1 :])
            yield replace(state, topic_routes=(*around[0], smaller, *around[1]))
    ids = sorted({each.client_id for each in state.members})[:3]
    for name in sorted({each.broker_name for each in state.brokers})[:3]:
        for client_id in (None, *ids):
            yield replace(state, unreachable=(*state.unreachable, (client_id, name)))
    yield replace(state, client_lists=tuple(map(without_addresses, lists)))


def without_addresses(entry: ClientList) -> ClientList:
    return replace(entry, members=tuple(each._replace(client_addr="") for each in entry.members))


@pytest.mark.parametrize("name", SITUATIONS)
def test_no_sentence_lacks_a_name(name: str) -> None:
    of = SITUATIONS[name]
    situation = Situation(of, PLAIN) if isinstance(of, State) else of
    for state in with_less(situation.state):
        assert_whole(replace(situation, state=state))


def assert_whole(situation: Situation) -> dict[str, tuple[str, str]]:
    """Every fault has words, and they have all names; by fault they are its evidence and remedy."""
    evaluation = evaluate(situation.state, situation.rules)
    found = find_faults(situation, evaluation, find_causes(situation, evaluation))
    for fault in found:
        for text in (fault.evidence, fault.remedy):
            assert text, fault
            assert holes(text) == [], text
    return {each.fault: (each.evidence, each.remedy) for each in found}


def test_a_client_that_does_not_reach_a_broker_is_named_where_that_gave_no_list() -> None:
    """The list of broker-a did not come; that c does not reach it is known from before."""
    state = one_list_each({"broker-a": "ab", "broker-b": "abc"}, queues=8)
    silent = replace(state, client_lists=state.client_lists[1:], unreachable=(("c", "broker-a"),))
    evidence, remedy = assert_whole(Situation(silent, PLAIN))[BROKER_VIEW_DIVERGENCE]
    assert evidence.startswith("c does not reach broker-a and reads no queue of it; a client asks")
    assert remedy.startswith("check whether broker-a can be reached from c (network")


def test_where_a_list_lacks_a_client_that_client_alone_is_named() -> None:
    state = one_list_each({"broker-a": "ab", "broker-b": "abc"}, queues=8)
    cut_off = replace(state, unreachable=(("c", "broker-a"), ("b", "broker-b")))
    evidence, remedy = assert_whole(Situation(cut_off, PLAIN))[BROKER_VIEW_DIVERGENCE]
    assert evidence.startswith("the list of broker-a lacks c, which other brokers list; ")
    assert remedy.startswith("check whether broker-a can be reached from c (network")
