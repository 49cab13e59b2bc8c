"""lists -> the core's state: each connection of a broker once, whatever the order of the rows."""

from __future__ import annotations

from itertools import permutations

from jobs.declared.contents import MEMBER_FACTS
from jobs.judge.observe.evaluation import state_of
from jobs.judge.observe.situations import TopicSituation


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
