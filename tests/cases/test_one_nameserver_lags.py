"""A topic grows at one of two nameservers, and the other gives the old route for some minutes."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import MEMBERS, MINUTES, holds, instant, members, offsets, route
from tests.support.audited import lasting, queues

BROKERS = ("broker-a", "broker-b")


def grows(stands):
    """From 10:05 on each broker has six queues of T, and at ns2 four of them up to 10:11. The
    queues that ``stands`` are not read meanwhile, all others are.
    """
    for minute in MINUTES:
        for number, namesrv in enumerate(("ns1:9876", "ns2:9876")):
            given = route(60 * minute + number, *BROKERS)
            body = given["body"]
            if minute >= (12 if number else 5):
                body = body.replace('QueueNums": 4', 'QueueNums": 6')
            yield given | {"namesrv_addr": namesrv, "body": body}
        for number, name in enumerate(BROKERS, start=1):
            yield members(60 * minute + number, name, MEMBERS)
            of_queue = dict.fromkeys(
                range(6 if minute >= 5 else 4), (100 * minute + 9, 100 * minute)
            )
            if 5 <= minute < 12:
                of_queue |= {queue: (100 * minute + 9, 400) for of, queue in stands if of == name}
            yield offsets(60 * minute + 10 + number, name, of_queue)


def divergence(found):
    (fault,) = lasting(found["group_faults"])
    assert (fault["fault"], fault["first_seen"]) == ("ROUTE_DIVERGENCE", instant(300))
    return fault


def test_where_all_queues_are_read_every_client_has_the_longer_route(audit):
    found = audit(grows(stands=[]))
    assert found["orphaned_queues"] == found["duplicate_queues"] == []
    # A client that starts with the other nameserver gets a shorter route all the same.
    fault = divergence(found)
    assert (fault["severity"], fault["queues_affected"]) == ("WARNING", 0)
    assert fault["evidence"].endswith("no client has the shorter route")


def test_where_running_infos_show_two_that_hold_a_queue_a_client_has_the_shorter_route(audit):
    """The last member has it: b2 is the third one's as well. Somebody reads b4 and b5."""
    longer = [(name, number) for name in BROKERS for number in range(6)]
    shares = [longer[:3], longer[3:6], longer[6:9], longer[8:10]]

    def lines():
        yield from grows(stands=[])
        for minute in range(5, 12):
            for number, (client_id, held) in enumerate(zip(MEMBERS, shares, strict=True)):
                yield holds(60 * minute + 20 + number, client_id, held)

    found = audit(lines())
    assert queues(found["duplicate_queues"]) >= {("T", "broker-b", 2)}
    assert "no client has the shorter route" not in divergence(found)["evidence"]


def test_where_some_are_not_read_a_client_has_the_shorter_route(audit):
    """The last member has it, and takes b2 and b3 in place of b3, b4 and b5: the third one has b2
    as well, and nobody b4 and b5.
    """
    stands = [("broker-b", 4), ("broker-b", 5)]
    found = audit(grows(stands))
    orphans = {
        queue: row["severity"]
        for row in found["orphaned_queues"]
        for queue in queues([row])
        if row["moved"] is not False
    }
    assert orphans == {("T", *queue): "CRITICAL" for queue in stands}
    assert queues(found["duplicate_queues"]) >= {("T", "broker-b", 2)}
    fault = divergence(found)
    assert fault["severity"] == "CRITICAL"
    assert "no client has the shorter route" not in fault["evidence"]


def test_a_shared_id_and_a_route_that_lags_leave_queues_that_stand(audit):
    """The first two members have one id, and so the first share of each route: a0 to a2, or a0 and
    a1. Nobody has a4 and a5, which are in the second one of the longer route.
    """
    stands = [("broker-a", 4), ("broker-a", 5)]
    shared = (MEMBERS[0], MEMBERS[0], *MEMBERS[2:])
    lines = [
        members(int(each["collected_at"][14:16]) * 60 + 1, each["broker_name"], shared)
        if each["kind"] == "consumer_connection"
        else each
        for each in grows(stands)
    ]
    found = audit(lines)
    assert queues(lasting(found["orphaned_queues"])) >= {("T", *queue) for queue in stands}
    (evidence,) = (
        row["evidence"] for row in found["group_faults"] if row["fault"] == "ROUTE_DIVERGENCE"
    )
    assert "no client has the shorter route" not in evidence


@pytest.mark.parametrize(("since", "began"), [(0, False), (5, True)])
def test_what_leads_did_not_begin_with_nameservers_that_differ_beside_it(audit, since, began):
    """All members reach all brokers, so that no queue shows that ns2 lacks broker-b. Two processes
    have one id, all the time: with rounds before it, the routes that differ began alone.
    """
    shared = (MEMBERS[0], *MEMBERS[:3])

    def lines():
        for minute in MINUTES:
            yield route(60 * minute, *BROKERS)
            left = BROKERS if minute < since else BROKERS[:1]
            yield route(60 * minute + 1, *left) | {"namesrv_addr": "ns2:9876"}
            for number, name in enumerate(BROKERS, start=1):
                yield members(60 * minute + 2 + number, name, shared)

    found = audit(lines())
    (event,) = (each for each in found["events"] if each["kind"] == "NAMESERVERS_DIFFER")
    assert (event["begins"] > instant(0)) == began
    (problem,) = (each for each in found["problems"] if each["topic"] == "T")
    assert problem["kind"] == "DUPLICATE_CLIENT_ID"
    assert problem["began_with"] is None
    (routes,) = (each for each in found["group_faults"] if each["fault"] == "ROUTE_DIVERGENCE")
    assert routes["event_id"] == event["event_id"]
