"""A group that consumes in order, and whose members divide the queues by two strategies."""

from __future__ import annotations

import json

from tests.cases.small_dumps import MEMBERS, MINUTES, QUEUES, asked, holds
from tests.support.audited import queues

PACKAGE = "org.apache.rocketmq.client.consumer.rebalance"
AVG = f"{PACKAGE}.AllocateMessageQueueAveragely@4"
CIRCLE = f"{PACKAGE}.AllocateMessageQueueAveragelyByCircle@4"
#: The first two take each fourth queue, a0 and b0, a1 and b1; the others take b0 and b1, b2 and b3.
SHARES = [QUEUES[0::4], QUEUES[1::4], QUEUES[4:6], QUEUES[6:8]]
TWICE = {("T", "broker-b", 0), ("T", "broker-b", 1)}
NOBODY = {("T", "broker-a", 2), ("T", "broker-a", 3)}


def mixed(*, in_order):
    """The first two get the locks; the third one, if there are locks, holds none of its queues."""
    for minute in MINUTES:
        yield from asked(minute)
        for number, client_id in enumerate(MEMBERS):
            held = [] if in_order and number == 2 else SHARES[number]
            given = holds(60 * minute + 20 + number, client_id, held, "Any")
            body = json.loads(given["body"])
            body["properties"] |= {
                "allocateMessageQueueStrategy": CIRCLE if number < 2 else AVG,
                "PROP_CONSUMEORDERLY": str(in_order).lower(),
            }
            yield given | {"body": json.dumps(body)}


def test_who_waits_for_a_lock_reads_no_queue_a_second_time(audit):
    found = audit(mixed(in_order=True))
    assert found["duplicate_queues"] == []
    assert queues(found["orphaned_queues"]) >= NOBODY
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("STRATEGY_MISMATCH", "CRITICAL")


def test_without_locks_both_read_them(audit):
    found = audit(mixed(in_order=False))
    assert queues(found["duplicate_queues"]) == TWICE
    assert {row["severity"] for row in found["duplicate_queues"]} == {"WARNING"}
