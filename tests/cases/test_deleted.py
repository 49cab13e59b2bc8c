"""A topic that a group subscribes to and that no nameserver knows."""

from __future__ import annotations

import pytest

from tests.cases.test_small_dumps import MEMBERS, MINUTES, members, route

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
