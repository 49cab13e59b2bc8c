"""routes -> route changes: when the readable queues of a topic changed under its group."""

from __future__ import annotations

import pytest

from jobs.judge.route_changes import route_changes
from tests.judge.phases import at, broker, route

A, B = broker("broker-a"), broker("broker-b")


def changes(*routes, namesrv_addr="ns-1"):
    """Of a route a minute."""
    runs = [route(of_time, 60 * minute) for minute, of_time in enumerate(routes)]
    return route_changes("T", runs)


def test_more_queues_are_one_change_at_their_first_poll():
    more = [broker("broker-a", 6), B]

    (change,) = changes([A, B], [A, B], more, more)

    assert (change.topic, change.fault) == ("T", "ROUTE_CHANGED")
    assert (change.first_seen, change.last_seen, change.snapshots) == (at(120), at(120), 1)
    assert (change.persistence, change.ongoing) == ("TRANSIENT", False)
    assert change.evidence == (
        "the readable queues changed from broker-a 4, broker-b 4 to broker-a 6, broker-b 4; "
        "for up to 50 s clients work from different lists"
    )
    assert change.remedy == "none, if it was meant: every client follows within 50 s"
    assert change.broker_names == ("broker-a",)
    assert (change.queues_affected, change.client_ids, change.moves) == (0, (), ())


@pytest.mark.parametrize(
    "then",
    [
        pytest.param([broker("broker-a", write_queue_nums=8), B], id="write numbers"),
        pytest.param([broker("broker-a", perm=4), B], id="no WRITE"),
        pytest.param([broker("broker-a", broker_ids=(0, 1)), B], id="a slave more"),
        pytest.param([B, A], id="another order"),
        pytest.param([A, B, broker("c", 0)], id="a broker without queues to read"),
        pytest.param([A, B, broker("c", perm=2)], id="a broker without READ"),
    ],
)
def test_what_leaves_the_readable_queues_alone_is_no_change(then):
    assert changes([A, B], then) == []


def test_one_more_nameserver_that_says_the_same_is_no_change():
    routes = [route([A, B], 0, 60), route([A, B], 60, namesrv_addr="ns-2")]
    assert route_changes("T", routes) == []


def test_the_first_route_is_no_change():
    assert changes([A]) == []
    assert route_changes("T", []) == []


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param([A, broker("broker-b", perm=2)], id="perm loses READ"),
        pytest.param([A], id="no such broker"),
    ],
)
def test_a_broker_that_loses_read_or_leaves_is_a_change_as_is_its_return(gone):
    found = changes([A, B], gone, [A, B])

    assert [(each.first_seen, each.broker_names) for each in found] == [
        (at(60), ("broker-b",)),
        (at(120), ("broker-b",)),
    ]


def test_a_topic_that_no_nameserver_knows_any_more_has_no_readable_queues():
    (change,) = changes([A], [])
    assert change.evidence.startswith("the readable queues changed from broker-a 4 to none;")
