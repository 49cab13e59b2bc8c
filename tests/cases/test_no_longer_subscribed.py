"""A topic that a release no longer subscribes to: brokers give no offsets of it from then on."""

from __future__ import annotations

import json

import pytest

from tests.cases.small_dumps import MEMBERS, instant, members, of_broker, route

BROKERS = ("broker-a", "broker-b")


def released(without_u, left, *, comes=True):
    """100 messages a minute come to each queue of T and, if it ``comes``, of U. In ``without_u`` no
    member subscribes to U; in the minute before, ``left`` of them are not read in each of U's
    queues of broker-b.
    """
    for minute in range(15):
        yield from (route(60 * minute, *BROKERS, topic=each) for each in "TU")
        topics = ("T",) if minute in without_u else ("T", "U")
        for number, name in enumerate(BROKERS, start=1):
            yield members(60 * minute + number, name, MEMBERS, topics)
            written = 1_000 + 100 * minute
            unread = left if name == "broker-b" and minute == min(without_u) - 1 else 3
            of_u = (written, written - unread) if comes else (1_000, 1_000)
            of_queues = {
                (topic, queue): of_u if topic == "U" else (written, written - 3)
                for topic in topics
                for queue in range(4)
            }
            table = {
                json.dumps({"brokerName": name, "queueId": queue, "topic": topic}): {
                    "brokerOffset": offset,
                    "consumerOffset": read,
                    "lastTimestamp": 0,
                }
                for (topic, queue), (offset, read) in of_queues.items()
            }
            answer = {"consumeTps": 0.0, "offsetTable": table}
            yield of_broker("consume_stats", 60 * minute + 10 + number, name, answer)


def test_messages_of_a_topic_that_a_release_gave_up_are_read_by_nobody(audit):
    (fault,) = audit(released(range(7, 15), left=150))["group_faults"]
    assert (fault["fault"], fault["topic"]) == ("GROUP_NOT_CONSUMING", "U")
    assert (fault["first_seen"], fault["ongoing"]) == (instant(420), True)
    assert (fault["severity"], fault["unread_messages"]) == ("CRITICAL", 600)
    assert fault["evidence"].startswith("no member has subscribed to the topic since 10:07:00 UTC")


def test_a_topic_that_is_given_up_while_messages_come_is_a_warning(audit):
    """What waits is on its way: less than came in the last minute. Nobody knows what came after."""
    (fault,) = audit(released(range(7, 15), left=90))["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("GROUP_NOT_CONSUMING", "WARNING")
    assert "800 messages came to it between the last two polls of" in fault["evidence"]


@pytest.mark.parametrize(
    "dump",
    [
        # Its producers had stopped, and all was read.
        {"without_u": range(7, 15), "left": 0, "comes": False},
        # A later heartbeat subscribes again.
        {"without_u": range(7, 13), "left": 150},
        # It was subscribed to for two minutes.
        {"without_u": [*range(5), *range(7, 15)], "left": 3},
    ],
)
def test_a_topic_that_ended_or_is_read_again_is_not_given_up(audit, dump):
    assert audit(released(**dump))["group_faults"] == []
