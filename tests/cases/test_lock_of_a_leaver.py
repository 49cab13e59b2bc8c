"""A member of a group that consumes in order leaves the lists, goes on, and keeps its locks."""

from __future__ import annotations

import json

from tests.cases.small_dumps import (
    MEMBERS,
    MINUTES,
    QUEUES,
    holds,
    instant,
    members,
    offsets,
    route,
)
from tests.support.audited import lasting, queues

AVG = "org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@4"
#: Of three members the first two have three queues and the last one two: those of the leaver.
OF_THREE = [QUEUES[:3], QUEUES[3:6], QUEUES[6:]]
LOCKED = QUEUES[6:]


def left(*, is_read, is_held=False):
    """At 10:05 the last member leaves. Its queues, b2 and b3, are then computed for the third one,
    which gets no lock of them.
    """
    for minute in MINUTES:
        second, is_gone = 60 * minute, minute >= 5
        listed = MEMBERS[:3] if is_gone else MEMBERS
        yield route(second, "broker-a", "broker-b")
        for number, name in enumerate(("broker-a", "broker-b"), start=1):
            yield members(second + number, name, listed)
            read = dict.fromkeys(range(4), (100 * minute + 9, 100 * minute))
            if name == "broker-b" and not is_read:
                read |= dict.fromkeys((2, 3), (100 * minute + 9, 100 * min(minute, 5)))
            yield offsets(second + 10 + number, name, read)
        for number, client_id in enumerate(listed):
            share = OF_THREE[number] if is_gone else QUEUES[2 * number : 2 * number + 2]
            held = [each for each in share if is_held or not (is_gone and each in LOCKED)]
            given = holds(second + 20 + number, client_id, held, "Any")
            body = json.loads(given["body"])
            body["properties"] |= {
                "allocateMessageQueueStrategy": AVG,
                "PROP_CONSUMEORDERLY": "true",
            }
            yield given | {"body": json.dumps(body)}


def test_who_left_the_lists_and_reads_its_queues_is_a_consumer_that_nobody_lists(audit):
    found = audit(left(is_read=True))
    assert found["orphaned_queues"] == []
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("UNLISTED_CONSUMER", "WARNING")
    # It waits for their locks.
    assert fault["client_ids"] == [MEMBERS[2]]
    assert (fault["first_seen"], fault["ongoing"]) == (instant(322), True)
    assert "none had queues 2-3 of broker-b in its running info from 10:05:22" in fault["evidence"]


def test_queues_that_it_keeps_locked_and_does_not_read_are_orphans(audit):
    found = audit(left(is_read=False))
    assert queues(lasting(found["orphaned_queues"])) == {("T", *queue) for queue in LOCKED}
    lasts = {row["fault"] for row in lasting(found["group_faults"])}
    assert lasts == {"QUEUE_NOT_HELD"}


def test_where_the_third_member_gets_the_locks_nothing_is_found(audit):
    assert audit(left(is_read=True, is_held=True))["group_faults"] == []
