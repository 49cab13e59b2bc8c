"""A topic that a group subscribes to and that no nameserver knows."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import BROKERS, MEMBERS, MINUTES, asked, members, offsets, route


def only(found, name):
    (fault,) = (each for each in found["group_faults"] if each["fault"] == name)
    return fault


@pytest.mark.parametrize("routed", [range(3), ()])
def test_a_topic_that_was_deleted_is_not_written_wrongly(audit, routed):
    """Of T there is a route all the time, of GONE in these minutes."""

    def lines():
        for minute in MINUTES:
            yield from asked(minute, topics=("T", "GONE"))
            yield route(60 * minute, *(["broker-a"] if minute in routed else []), topic="GONE")

    fault = only(audit(lines()), "UNKNOWN_TOPIC")
    deleted = "it had a route until 10:02:00 UTC: it was deleted"
    assert fault["evidence"].endswith(deleted) == bool(routed)
    assert ("whether the topic's name is written" in fault["remedy"]) != bool(routed)


@pytest.mark.parametrize(
    ("brokers_left", "says"),
    [((), "its messages are gone"), (("broker-b",), "bring broker-a back into the route")],
)
def test_unread_messages_of_a_topic_are_gone_and_those_of_a_broker_not(audit, brokers_left, says):
    """Queue 0 of broker-a has stood at 9,000 of 10,000 when its topic, or its broker, leaves."""

    def lines():
        for minute in MINUTES:
            names = BROKERS if minute < 8 else brokers_left
            yield route(60 * minute, *names)
            for name in BROKERS:
                yield members(60 * minute + 1, name, MEMBERS)
                if name in names:
                    read = 10_000 + 60 * minute
                    stuck = {0: (read, 9_000)} if name == "broker-a" else {}
                    now = dict.fromkeys(range(4), (read, read)) | stuck
                    yield offsets(60 * minute + 5, name, now)

    fault = only(audit(lines()), "QUEUES_LEFT_ROUTE")
    assert fault["unread_messages"] == 10_420 - 9_000
    assert says in fault["remedy"]
