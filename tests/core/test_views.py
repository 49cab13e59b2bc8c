"""Which lists a member may work from, and how likely."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.views import possible_views, unreadable_queues
from tests.support.snapshots import TOPIC, client_list, queue, route, route_broker, state


def drawn(views) -> dict[tuple[str, ...], float]:
    """The weight of each list of client ids."""
    return {view.client_ids: view.weight for view in views.views}


def queue_count(view) -> int:
    return len(view.queues)


def test_equal_lists_of_several_brokers_are_one_view():
    views = possible_views(
        state(
            client_lists=(
                client_list("b", "a", broker_name="broker-b"),
                client_list("a", "b", broker_name="broker-a"),
            ),
            topic_routes=(route(route_broker(), route_broker(broker_name="broker-b")),),
        )
    )

    assert len(views.views) == 1
    assert [(view.client_ids, view.weight, view.brokers) for view in views.views] == [
        (("a", "b"), 1.0, ("broker-a", "broker-b"))
    ]


def test_copies_of_an_id_stay_in_the_list():
    views = possible_views(state(client_lists=(client_list("a", "b", "a"),)))

    assert drawn(views) == {("a", "a", "b"): 1.0}


def test_client_ids_and_queues_are_in_java_order():
    views = possible_views(
        state(
            client_lists=(client_list("\uff21", "\U0001f600", broker_name="broker-10"),),
            topic_routes=(
                route(
                    route_broker(broker_name="broker-2", read_queue_nums=1),
                    route_broker(broker_name="broker-10", read_queue_nums=11),
                ),
            ),
        )
    )

    assert drawn(views) == {("\U0001f600", "\uff21"): 1.0}
    in_order = [queue(i, "broker-10") for i in range(11)] + [queue(0, "broker-2")]
    assert list(views.views[0].queues) == in_order


def test_a_list_that_two_of_three_brokers_give_weighs_two_thirds():
    views = possible_views(
        state(
            client_lists=(
                client_list("a", broker_name="broker-a"),
                client_list("a", "b", broker_name="broker-b"),
                client_list("a", "b", broker_name="broker-c"),
            ),
            topic_routes=(route(*[route_broker(broker_name=f"broker-{x}") for x in "abc"]),),
        )
    )

    assert len(views.views) > 1
    assert drawn(views) == pytest.approx({("a", "b"): 2 / 3, ("a",): 1 / 3})
    assert [view.brokers for view in views.views] == [("broker-b", "broker-c"), ("broker-a",)]


@pytest.mark.parametrize("broker_ids", [(0, 1), None], ids=["master and slave", "ids not known"])
def test_a_slave_is_not_asked_where_there_is_a_master(broker_ids):
    views = possible_views(
        state(
            client_lists=(client_list("a", "b", broker_id=0), client_list("a", broker_id=1)),
            topic_routes=(route(route_broker(broker_ids=broker_ids)),),
        )
    )

    assert drawn(views) == {("a", "b"): 1.0}
    assert views.completeness == 1.0


def test_slaves_share_the_weight_of_a_broker_without_a_master():
    views = possible_views(
        state(
            client_lists=(
                client_list("a", "b", broker_name="broker-a", broker_id=1),
                client_list("b", broker_name="broker-a", broker_id=2),
                client_list("a", broker_name="broker-b"),
            ),
            topic_routes=(
                route(route_broker(broker_ids=(1, 2)), route_broker(broker_name="broker-b")),
            ),
        )
    )

    assert drawn(views) == {("a",): 0.5, ("a", "b"): 0.25, ("b",): 0.25}
    assert views.completeness == 1.0


def test_a_slave_without_a_list_halves_what_is_known_of_its_broker():
    views = possible_views(
        state(
            client_lists=(client_list("a", broker_id=1),),
            topic_routes=(route(route_broker(broker_ids=(1, 2))),),
        )
    )

    assert drawn(views) == {("a",): 1.0}
    assert views.completeness == 0.5


def test_nameservers_with_different_routes_give_views_of_equal_weight():
    views = possible_views(
        state(
            topic_routes=(
                route(route_broker(read_queue_nums=8), namesrv_addr="ns-1"),
                route(route_broker(read_queue_nums=4), namesrv_addr="ns-2"),
            )
        )
    )

    assert sorted((queue_count(view), view.weight) for view in views.views) == [(4, 0.5), (8, 0.5)]


def test_a_nameserver_weighs_its_half_whatever_the_number_of_its_brokers():
    views = possible_views(
        state(
            client_lists=(
                client_list("a", broker_name="broker-a"),
                client_list("b", broker_name="broker-b"),
            ),
            topic_routes=(
                route(route_broker(), route_broker(broker_name="broker-b"), namesrv_addr="ns-1"),
                route(route_broker(), namesrv_addr="ns-2"),
            ),
        )
    )

    weights = {(queue_count(view), view.client_ids): view.weight for view in views.views}
    assert weights == {(4, ("a",)): 0.5, (8, ("a",)): 0.25, (8, ("b",)): 0.25}


def test_a_broker_without_read_gives_a_list_but_no_queues():
    views = possible_views(
        state(
            client_lists=(
                client_list("a", broker_name="broker-a"),
                client_list("a", "b", broker_name="broker-b"),
            ),
            topic_routes=(route(route_broker(), route_broker(broker_name="broker-b", perm=2)),),
        )
    )

    assert drawn(views) == {("a",): 0.5, ("a", "b"): 0.5}
    assert {view.queues for view in views.views} == {tuple(queue(i) for i in range(4))}


def test_a_broker_without_an_address_has_queues_but_is_not_asked():
    views = possible_views(
        state(
            client_lists=(
                client_list("a", broker_name="broker-a"),
                client_list("a", "b", broker_name="broker-b"),
            ),
            topic_routes=(
                route(route_broker(), route_broker(broker_name="broker-b", broker_ids=())),
            ),
        )
    )

    assert drawn(views) == {("a",): 1.0}
    assert {each.broker_name for each in views.views[0].queues} == {"broker-a", "broker-b"}
    assert views.completeness == 1.0


@pytest.mark.parametrize(
    "offline", [(), (("broker-b", 0),)], ids=["broker-b did not answer", "broker-b is offline"]
)
def test_a_broker_without_a_list_gives_no_view_and_lowers_the_completeness(offline):
    views = possible_views(
        state(
            client_lists=(client_list("a", "b"),),
            topic_routes=(route(route_broker(), route_broker(broker_name="broker-b")),),
            offline_brokers=offline,
        )
    )

    assert drawn(views) == {("a", "b"): 1.0}
    assert views.completeness == 0.5


def test_a_list_of_a_broker_that_is_not_in_the_route_is_no_view():
    views = possible_views(
        state(client_lists=(client_list("a"), client_list("b", broker_name="broker-x")))
    )

    assert drawn(views) == {("a",): 1.0}


def test_without_any_list_there_is_no_view_and_nothing_is_complete():
    views = possible_views(state(client_lists=()))

    assert (views.views, views.completeness) == ((), 0.0)


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
    views = possible_views(
        state(
            client_lists=tuple(
                client_list(*ids, broker_name=name, broker_id=number)
                for (name, number), ids in lists.items()
            ),
            topic_routes=tuple(
                route(*brokers, namesrv_addr=f"ns-{number}")
                for number, brokers in enumerate(routes)
            ),
        )
    )

    if views.views:
        assert sum(view.weight for view in views.views) == pytest.approx(1.0, abs=1e-12)
        assert len({(view.queues, view.client_ids) for view in views.views}) == len(views.views)
    assert bool(views.views) == (views.completeness > 0)
    assert 0.0 <= views.completeness <= 1.0
