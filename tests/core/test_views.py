"""Which lists a member may work from, and how likely."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.views import possible_views, unreadable_queues
from tests.support.snapshots import TOPIC, lists_of, queue, route, route_broker, route_of, state


def views_of(lists, *routes, offline=()):
    """The views of members whom brokers (a name, or ``name/id``) list so."""
    return possible_views(
        state(client_lists=lists_of(lists), topic_routes=routes, offline_brokers=offline)
    )


@pytest.mark.parametrize(
    ("lists", "brokers", "drawn", "queues", "completeness"),
    [
        # Equal lists of several brokers are one view; the copies of an id stay in it.
        ({"b": "ba", "a": "ab"}, {"a": {}, "b": {}}, {("ab", "ab"): 1}, "aaaabbbb", 1),
        ({"a": "aba"}, {"a": {}}, {("aab", "a"): 1}, "aaaa", 1),
        (
            {"a": "a", "b": "ab", "c": "ab"},
            {"a": {}, "b": {}, "c": {}},
            {("ab", "bc"): 2 / 3, ("a", "a"): 1 / 3},
            "aaaabbbbcccc",
            1,
        ),
        # A slave is asked where there is no master alone; slaves share its weight.
        ({"a": "ab", "a/1": "a"}, {"a": {"broker_ids": (0, 1)}}, {("ab", "a"): 1}, "aaaa", 1),
        ({"a": "ab", "a/1": "a"}, {"a": {"broker_ids": None}}, {("ab", "a"): 1}, "aaaa", 1),
        (
            {"a/1": "ab", "a/2": "b", "b": "a"},
            {"a": {"broker_ids": (1, 2)}, "b": {}},
            {("a", "b"): 0.5, ("ab", "a"): 0.25, ("b", "a"): 0.25},
            "aaaabbbb",
            1,
        ),
        ({"a/1": "a"}, {"a": {"broker_ids": (1, 2)}}, {("a", "a"): 1}, "aaaa", 0.5),
        # Without READ a broker gives a list and no queues, without an address queues and no list.
        (
            {"a": "a", "b": "ab"},
            {"a": {}, "b": {"perm": 2}},
            {("a", "a"): 0.5, ("ab", "b"): 0.5},
            "aaaa",
            1,
        ),
        ({"a": "a", "b": "ab"}, {"a": {}, "b": {"broker_ids": ()}}, {("a", "a"): 1}, "aaaabbbb", 1),
        ({"a": "ab"}, {"a": {}, "b": {}}, {("ab", "a"): 1}, "aaaabbbb", 0.5),
        ({"a": "a", "x": "b"}, {"a": {}}, {("a", "a"): 1}, "aaaa", 1),
        ({}, {"a": {}}, {}, "", 0),
    ],
)
def test_the_lists_of_the_routes_brokers_are_drawn_by_their_weight(
    lists, brokers, drawn, queues, completeness
):
    of_route = route(*[route_broker(broker_name=name, **told) for name, told in brokers.items()])
    views = views_of(lists, of_route)
    found = {("".join(each.client_ids), "".join(each.brokers)): each for each in views.views}
    assert list(found) == list(drawn)
    assert {key: view.weight for key, view in found.items()} == pytest.approx(drawn)
    assert {"".join(q.broker_name for q in view.queues) for view in views.views} <= {queues}
    assert views.completeness == completeness


def test_a_broker_that_calls_the_group_offline_gives_no_view():
    views = views_of({"a": "ab"}, route_of("ab"), offline=(("b", 0),))
    assert [view.client_ids for view in views.views] == [("a", "b")]
    assert views.completeness == 0.5


def test_client_ids_and_queues_are_in_java_order():
    sizes = {"broker-2": 1, "broker-10": 11}
    brokers = [route_broker(broker_name=name, read_queue_nums=n) for name, n in sizes.items()]
    (view,) = views_of({"broker-10": "\uff21\U0001f600"}, route(*brokers)).views
    assert view.client_ids == ("\U0001f600", "\uff21")
    in_order = [queue(i, "broker-10") for i in range(11)] + [queue(0, "broker-2")]
    assert list(view.queues) == in_order


@pytest.mark.parametrize(
    ("of_first", "of_second", "weights"),
    [
        ({"read_queue_nums": 8}, "a", {(4, ("a",)): 0.5, (8, ("a",)): 0.5}),
        # Whatever the number of its brokers.
        ({}, "b", {(4, ("a",)): 0.5, (8, ("a",)): 0.25, (8, ("b",)): 0.25}),
    ],
)
def test_each_nameserver_weighs_its_half(of_first, of_second, weights):
    first = route_of(sorted({"a", of_second}), "ns-1", **of_first)
    views = views_of({"a": "a", of_second: of_second}, first, route_of("a", "ns-2")).views
    assert {(len(view.queues), view.client_ids): view.weight for view in views} == weights


@pytest.mark.parametrize(
    ("broker", "unreadable"),
    [
        pytest.param({"read_queue_nums": 2, "write_queue_nums": 4}, [2, 3], id="more are written"),
        pytest.param({"read_queue_nums": 4, "write_queue_nums": 2}, [], id="more are read"),
        pytest.param({"perm": 2, "write_queue_nums": 3}, [0, 1, 2], id="no READ"),
        pytest.param({"perm": 4, "read_queue_nums": 1}, [], id="no WRITE"),
        pytest.param({"perm": 0}, [], id="neither READ nor WRITE"),
    ],
)
def test_queues_are_unreadable_where_they_are_written_and_not_read(broker, unreadable):
    found = unreadable_queues(TOPIC, route(route_broker(**broker)))

    assert list(found) == [queue(number) for number in unreadable]


_names = st.sampled_from(["broker-a", "broker-b", "broker-c"])
_brokers = st.builds(
    route_broker,
    broker_name=_names,
    broker_ids=st.sampled_from([(0,), (0, 1), (1, 2), (), None]),
    perm=st.sampled_from([2, 4, 6]),
    read_queue_nums=st.integers(0, 3),
)
_routes = st.lists(_brokers, max_size=3, unique_by=lambda each: each.broker_name)
_lists = st.dictionaries(
    st.tuples(_names, st.integers(0, 2)),
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),
    max_size=6,
)


@given(lists=_lists, routes=st.lists(_routes, min_size=1, max_size=3))
def test_the_weights_of_all_views_add_up_to_one(lists, routes):
    of_each = (route(*brokers, namesrv_addr=f"ns-{n}") for n, brokers in enumerate(routes))
    views = views_of({f"{name}/{n}": ids for (name, n), ids in lists.items()}, *of_each)
    if views.views:
        assert sum(view.weight for view in views.views) == pytest.approx(1.0, abs=1e-12)
        assert len({(view.queues, view.client_ids) for view in views.views}) == len(views.views)
    assert bool(views.views) == (views.completeness > 0)
    assert 0.0 <= views.completeness <= 1.0
