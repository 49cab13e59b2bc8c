"""routes -> route changes: when the readable queues of a topic changed under its group."""

from __future__ import annotations

import pytest

from jobs.declared.dossier import Dossier
from jobs.judge.observe.routes import find_route_changes
from jobs.judge.rules.found import GroupFindings
from jobs.judge.rules.route_changes import queues_left_route, route_changed
from rebalance_core.strategy_rules import MOST_TOPIC_QUEUES
from tests.judge.phases import at, broker, case, route
from tests.judge.witnesses import offsets

A, B = broker("broker-a"), broker("broker-b")


def changes(*routes, namesrv_addr="ns-1"):
    """Of a route a minute."""
    runs = [route(of_time, 60 * minute) for minute, of_time in enumerate(routes)]
    of = case(route_changes={"T": find_route_changes(runs, MOST_TOPIC_QUEUES)})
    return list(route_changed(of, GroupFindings()).faults)


def test_more_queues_are_one_change_at_their_first_poll():
    more = [broker("broker-a", 6), B]

    (change,) = changes([A, B], [A, B], more, more)

    assert (change.topic, change.fault) == ("T", "ROUTE_CHANGED")
    assert (change.first_seen, change.last_seen, change.extent.snapshots) == (at(120), at(120), 1)
    assert (change.extent.persistence, change.extent.ongoing) == ("TRANSIENT", False)
    assert change.evidence == (
        "the readable queues changed from broker-a 4, broker-b 4 to broker-a 6, broker-b 4; "
        "for up to 50 s clients work from different lists"
    )
    assert change.remedy == "none if it was intended: every client follows within 50 s"
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


def test_nameservers_that_are_asked_at_different_times_and_differ_are_no_change():
    routes = [route([A, B], 0, 120, 240), route([A], 60, 180, 300, namesrv_addr="ns-2")]
    assert find_route_changes(routes, MOST_TOPIC_QUEUES) == []


def test_the_change_of_one_nameserver_is_a_change_once():
    routes = [
        route([A], 0, 120),
        route([A, B], 240, 360),
        route([A], 60, 180, namesrv_addr="ns-2"),
        route([A, B], 300, namesrv_addr="ns-2"),
    ]
    assert [each.first_seen for each in find_route_changes(routes, MOST_TOPIC_QUEUES)] == [at(240)]


# ---------------------------------------------------------------- queues that left the route

BEFORE, AFTER = [broker("broker-a", 4)], [broker("broker-a", 2)]


def left(*routes, waiting=()):
    """The faults; a route a minute, and the offsets of queues as polls by second."""
    runs = [route(of_time, 60 * minute) for minute, of_time in enumerate(routes)]
    of = case(
        dossier=Dossier("C", "G", routes={"T": runs}),
        route_changes={"T": find_route_changes(runs, MOST_TOPIC_QUEUES)},
        offsets={
            ("T", "broker-a", queue_id): offsets(queue_id, polls) for queue_id, polls in waiting
        },
    )
    return list(queues_left_route(of, GroupFindings()).faults)


def test_it_is_over_when_the_queues_are_back():
    unread = {0: (100, 40)}
    (fault,) = left(BEFORE, AFTER, AFTER, BEFORE, BEFORE, waiting=[(2, unread)])
    assert (fault.first_seen, fault.last_seen) == (at(60), at(180))
    assert (fault.extent.persistence, fault.extent.ongoing) == ("TRANSIENT", False)


@pytest.mark.parametrize(
    "polls",
    [
        pytest.param({0: (100, 100), 60: (120, 120)}, id="nothing waits"),
        # It reads 60 a minute: five messages are on their way.
        pytest.param({0: (60, 55), 60: (120, 115)}, id="what waits is about to be read"),
        pytest.param({0: (100, 40), 60: (100, 50), 240: (100, 100)}, id="read in the end"),
        # The group reads little: the last message came after the poll before.
        pytest.param({0: (100, 100), 60: (101, 100)}, id="a message that just came"),
    ],
)
def test_queues_that_were_read_leave_nothing_behind(polls):
    assert left(BEFORE, BEFORE, *[AFTER] * 5, waiting=[(2, polls)]) == []


def test_a_message_that_was_there_at_the_poll_before_waits():
    (fault,) = left(BEFORE, BEFORE, *[AFTER] * 5, waiting=[(2, {0: (101, 100), 60: (102, 100)})])
    assert "with 2 messages unread (1 at the first poll)" in fault.evidence
    # Of one poll alone nothing shows that it is on its way.
    (fault,) = left(BEFORE, BEFORE, *[AFTER] * 5, waiting=[(2, {60: (101, 100)})])
    assert "with 1 message unread: " in fault.evidence


def test_a_broker_that_left_is_to_come_back():
    (fault,) = left([A, B], *[[B]] * 5, waiting=[(0, {0: (9, 1)})])
    assert fault.remedy.startswith("bring broker-a back into the route")
    assert fault.broker_names == ("broker-a",)


@pytest.mark.parametrize("others", [[B], []])
def test_a_broker_that_has_no_queues_to_read_any_more_may_be_read(others):
    routes = [A, *others], *[[broker("broker-a", 0), *others]] * 5
    (fault,) = left(*routes, waiting=[(0, {0: (9, 1)})])
    assert fault.evidence.startswith("queue 0 of broker-a left the route at 00:01:00 UTC")
    assert fault.remedy.startswith("set the read queue number back")


def test_a_broker_that_may_not_be_read_is_still_there():
    shut = broker("broker-a", perm=2)
    (fault,) = left([A, B], *[[shut, B]] * 5, waiting=[(0, {0: (3_009, 1)})])
    assert fault.evidence == (
        "queue 0 of broker-a lost the permission to read at 00:01:00 UTC with 3008 messages "
        "unread: no client reads it"
    )
    assert fault.remedy.startswith("give broker-a the permission to read the topic again")
    # Nor was the topic deleted where no broker may be read any more.
    (fault,) = left([A], *[[shut]] * 5, waiting=[(0, {0: (3_009, 1)})])
    assert fault.remedy.startswith("give broker-a the permission to read the topic again")
