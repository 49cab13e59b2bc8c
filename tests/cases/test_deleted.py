"""A topic that a group subscribes to and that no nameserver knows."""

from __future__ import annotations

import pytest

from tests.cases.test_small_dumps import MEMBERS, MINUTES, members, offsets, route

NO_ROUTE = {"error_code": 17, "error_message": "No topic route info in name server"}


def polled(routed):
    """Of T there is a route all the time, of GONE in these minutes."""
    for minute in MINUTES:
        yield route(60 * minute, "broker-a", "broker-b")
        given = route(60 * minute, "broker-a", topic="GONE")
        if minute not in routed:
            del given["body"]
            given |= NO_ROUTE
        yield given
        for number, name in enumerate(("broker-a", "broker-b"), start=1):
            yield members(60 * minute + number, name, MEMBERS, ("T", "GONE"))


@pytest.mark.parametrize("routed", [range(3), ()])
def test_a_topic_that_was_deleted_is_not_written_wrongly(audit, routed):
    (fault,) = (
        each for each in audit(polled(routed))["group_faults"] if each["fault"] == "UNKNOWN_TOPIC"
    )
    deleted = "it had a route until 10:02:00 UTC: it was deleted"
    assert fault["evidence"].endswith(deleted) == bool(routed)
    assert ("whether the topic's name is written" in fault["remedy"]) != bool(routed)


@pytest.mark.parametrize(
    ("brokers_left", "says"),
    [((), "its messages are gone"), (("broker-b",), "bring broker-a back into the route")],
)
def test_unread_messages_of_a_deleted_topic_are_gone_and_those_of_a_broker_are_not(
    audit, brokers_left, says
):
    """Queue 0 of broker-a has stood at 9,000 of 10,000 when its topic, or its broker, leaves."""

    def lines():
        for minute in MINUTES:
            names = ("broker-a", "broker-b") if minute < 8 else brokers_left
            given = route(60 * minute, *names)
            if not names:
                del given["body"]
                given |= NO_ROUTE
            yield given
            for name in ("broker-a", "broker-b"):
                yield members(60 * minute + 1, name, MEMBERS)
                if name in names:
                    read = 10_000 + 60 * minute
                    queues = dict.fromkeys(range(4), (read, read))
                    stuck = {0: (read, 9_000)} if name == "broker-a" else {}
                    yield offsets(60 * minute + 5, name, queues | stuck)

    (fault,) = (
        each for each in audit(lines())["group_faults"] if each["fault"] == "QUEUES_LEFT_ROUTE"
    )
    assert fault["unread_messages"] == 10_420 - 9_000
    assert says in fault["remedy"]
