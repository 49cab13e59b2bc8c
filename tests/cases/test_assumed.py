"""Queues that are wrong by a strategy that nobody saw: which ones depends on it."""

from __future__ import annotations

from tests.cases.small_dumps import MEMBERS, MINUTES, QUEUES, asked, holds, in_turn
from tests.support.audited import lasting, queues

#: Two processes have the first id, and one the second. The eight queues are in three slots.
SHARED = [MEMBERS[0], MEMBERS[0], MEMBERS[1]]
#: Read twice are a0 a1 a2 by AVG, and a0 a3 b2 by AVG_BY_CIRCLE; by nobody a3 b0 b1, or a1 b0 b3.
TWICE, NOBODY = set(QUEUES[:3]), set(QUEUES[3:6])
BOTH = {QUEUES[0], QUEUES[4]}


def shared(*, strategy=None, read=None):
    addrs = ["10.0.0.0:40001", "10.0.0.9:40001", "10.0.0.1:40001"]
    for minute in MINUTES:
        yield from asked(minute, SHARED, read, addrs=addrs)
        if strategy:
            yield holds(60 * minute + 30, MEMBERS[1], QUEUES[6:], strategy)


def certainties(found):
    rows = [*lasting(found["orphaned_queues"]), *lasting(found["duplicate_queues"])]
    return {(row["broker_name"], row["queue_id"]): row["certainty"] for row in rows}


def test_what_an_assumed_strategy_decides_is_possible(audit):
    found = audit(shared())
    assert queues(lasting(found["duplicate_queues"])) == {("T", *each) for each in TWICE}
    assert queues(lasting(found["orphaned_queues"])) == {("T", *each) for each in NOBODY}
    of_queues = certainties(found)
    assert {queue for queue, each in of_queues.items() if each == "CERTAIN"} == BOTH
    # That something is wrong is certain, and as bad as it was.
    assert {row["severity"] for row in found["orphaned_queues"]} == {"CRITICAL"}
    (fault,) = found["group_faults"]
    assert (fault["fault"], fault["severity"]) == ("DUPLICATE_CLIENT_ID", "CRITICAL")
    assert "by AVG_BY_CIRCLE some of the queues would be others" in fault["evidence"]


def test_by_a_strategy_that_was_seen_all_are_certain(audit):
    package = "org.apache.rocketmq.client.consumer.rebalance"
    found = audit(shared(strategy=f"{package}.AllocateMessageQueueAveragely"))
    assert set(certainties(found).values()) == {"CERTAIN"}
    assert "AVG_BY_CIRCLE" not in found["group_faults"][0]["evidence"]


def test_orphans_that_the_offsets_show_are_certain(audit):
    """Nobody reads a3, b0 and b1: it is AVG."""

    def read(minute, name):
        return {
            number: (in_turn(minute)[0], 1 if (name, number) in NOBODY else in_turn(minute)[1] + 1)
            for number in range(4)
        }

    found = audit(shared(read=read))
    orphans = lasting(found["orphaned_queues"])
    assert queues(orphans) == {("T", *each) for each in NOBODY}
    assert {row["certainty"] for row in orphans} == {"CERTAIN"}
