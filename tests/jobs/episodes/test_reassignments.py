"""timeline -> reassignments: when queues changed hands, and between whom."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from jobs.episodes.reassignments import reassignments
from jobs.states.evaluation import EVALUATION
from tests.support.snapshots import CLUSTER, at, frame

pytestmark = pytest.mark.spark

ALLOCATIONS = EVALUATION["allocations"].dataType.simpleString()
TIMELINE = (
    "cluster string, consumer_group string, topic string, position int, state_id string, "
    f"first_seen timestamp, last_seen timestamp, queues int, allocations {ALLOCATIONS}, "
    "is_blind boolean"
)


def allocation(client_id, numbers, brokers=("broker-a",), weight=1.0):
    queues = [("broker-a", number) for number in numbers]
    return (client_id, 1, True, "AVG", "assumed", list(brokers), weight, 4, 2, queues)


def found(spark, *states, queues=4, blind=()):
    """The reassignments between states that follow each other, each of 60 s."""
    rows = [
        (
            *(CLUSTER, "G", "T", n + 1, state_id),
            *(at(60 * n), at(60 * n + 50), queues, allocations, state_id in blind),
        )
        for n, (state_id, allocations) in enumerate(states)
    ]
    changes = reassignments(frame(spark, TIMELINE, rows)).sort("changed_at")
    for time in ("changed_at", "seen_before", "settled_at"):
        changes = changes.withColumn(time, F.unix_seconds(time) - int(at(0).timestamp()))
    return [row.asDict() for row in changes.collect()]


def test_a_client_that_joins_takes_queues_from_the_other(spark):
    alone = [allocation("a", range(4))]
    both = [allocation("a", range(2)), allocation("b", (2, 3))]

    (row,) = found(spark, ("s1", alone), ("s2", both))

    assert (row["seen_before"], row["changed_at"], row["settled_at"]) == (50, 60, 60)
    assert (row["clients_joined"], row["clients_left"]) == (["b"], [])
    assert (row["state_id_before"], row["state_id"]) == ("s1", "s2")
    assert (row["queues_moved"], row["lists_agree"]) == (2, True)


def test_a_state_that_gives_everybody_the_same_is_no_reassignment(spark):
    assert (
        found(spark, ("s1", [allocation("a", range(4))]), ("s2", [allocation("a", range(4))])) == []
    )


def test_while_the_lists_differ_it_is_not_settled(spark):
    both = [allocation("a", range(2)), allocation("b", (2, 3))]
    torn = [
        *[
            allocation(*each, brokers=["broker-a"], weight=0.5)
            for each in (("a", (0, 1)), ("b", (2, 3)))
        ],
        *[
            allocation(*each, brokers=["broker-b"], weight=0.5)
            for each in (("a", range(4)), ("b", ()))
        ],
    ]
    alone = [allocation("a", range(4))]

    expired, gone = found(spark, ("s1", both), ("s2", torn), ("s3", alone))

    assert (expired["lists_agree"], expired["settled_at"], expired["clients_left"]) == (
        False,
        120,
        [],
    )
    assert (gone["lists_agree"], gone["settled_at"], gone["clients_left"]) == (True, 120, ["b"])
    assert expired["queues_moved"] == gone["queues_moved"] == 4

    (ongoing,) = found(spark, ("s1", both), ("s2", torn))
    assert ongoing["settled_at"] is None

    # A broker that is not answered for makes nobody give up a queue.
    (only,) = found(spark, ("s1", both), ("s2", torn), ("s3", alone), ("s2", torn), blind=("s3",))
    assert (only["changed_at"], only["settled_at"]) == (60, None)


def test_the_last_client_that_leaves_leaves_all_its_queues(spark):
    (row,) = found(spark, ("s1", [allocation("a", range(4))]), ("s2", []))

    assert (row["clients_left"], row["queues_moved"], row["lists_agree"]) == (["a"], 4, True)
