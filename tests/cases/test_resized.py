"""A topic that gets fewer queues: what its event says of those that go."""

from __future__ import annotations

import json

import pytest

from tests.cases.test_small_dumps import MEMBERS, MINUTES, members, offsets, route


def lowered(waiting):
    """At 10:05 broker-b has two read queues in place of four; so many messages wait in the others.

    100 messages a minute come to all others, and are read.
    """
    for minute in MINUTES:
        given = route(60 * minute, "broker-a", "broker-b")
        body = json.loads(given["body"])
        if minute >= 5:
            body["queueDatas"][1] |= {"readQueueNums": 2, "writeQueueNums": 2}
        yield given | {"body": json.dumps(body)}
        for number, name in enumerate(("broker-a", "broker-b"), start=1):
            yield members(60 * minute + number, name, MEMBERS)
            now = dict.fromkeys(range(4), (100 * minute + 9, 100 * minute))
            if name == "broker-b" and minute >= 5:
                now |= dict.fromkeys((2, 3), (1_400, 1_400 - waiting))
            yield offsets(60 * minute + 10 + number, name, now)


@pytest.mark.parametrize(
    ("waiting", "lost", "cost"),
    [
        (700, 2, "2 queues lost, 1,400 messages left unread"),
        (0, 0, "1 recovered by 10:06:00, no queue lost"),
    ],
)
def test_the_event_counts_the_queues_that_left_with_unread_messages(audit, waiting, lost, cost):
    found = audit(lowered(waiting))
    (event,) = found["events"]
    assert (event["kind"], event["queues_lost"]) == ("TOPIC_RESIZED", lost)
    assert event["messages_lost"] == 2 * waiting
    assert event["headline"].endswith(f"1 group touched, {cost}")
    left = [each for each in found["group_faults"] if each["fault"] == "QUEUES_LEFT_ROUTE"]
    assert [each["queues_affected"] for each in left] == [2][:lost]
