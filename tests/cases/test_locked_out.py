"""A group that consumes in order, and whose members divide the queues by two strategies."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import MEMBERS, MINUTES, QUEUES, asked, holds, in_turn
from tests.support.audited import queues

PACKAGE = "org.apache.rocketmq.client.consumer.rebalance"
AVG = f"{PACKAGE}.AllocateMessageQueueAveragely"
CIRCLE = f"{PACKAGE}.AllocateMessageQueueAveragelyByCircle"
#: The first two take each fourth queue, a0 and b0, a1 and b1; the others take b0 and b1, b2 and b3.
SHARES = [QUEUES[0::4], QUEUES[1::4], QUEUES[4:6], QUEUES[6:8]]
TWICE = {("T", "broker-b", 0), ("T", "broker-b", 1)}
NOBODY = {("T", "broker-a", 2), ("T", "broker-a", 3)}


def mixed(*, in_order, waits=(), read=None):
    """The first two get the locks; the third one, if there are locks, holds none of its queues,
    or waits for them.
    """
    for minute in MINUTES:
        yield from asked(minute, read=read)
        for number, client_id in enumerate(MEMBERS):
            held = waits if in_order and number == 2 else SHARES[number]
            of = {"PROP_CONSUMEORDERLY": str(in_order).lower()}
            strategy = CIRCLE if number < 2 else AVG
            yield holds(60 * minute + 20 + number, client_id, held, strategy, **of)


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


@pytest.mark.parametrize("waits", [[], {queue: {"locked": False} for queue in SHARES[2]}])
def test_where_locks_and_offsets_refute_all_that_two_strategies_do_they_are_a_warning(audit, waits):
    found = audit(mixed(in_order=True, waits=waits, read=in_turn))
    assert found["duplicate_queues"] == found["orphaned_queues"] == []
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("STRATEGY_MISMATCH", "WARNING")
    assert fault["queues_affected"] == 0
