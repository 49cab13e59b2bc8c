"""What clients held, against what was computed for them."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.conform import conform
from jobs.episodes.drift import drift_episodes
from jobs.schemas import ALLOCATION_DRIFT, CLIENT_STATES
from tests.support.snapshots import CLUSTER, GROUP, TOPIC, at, frame

pytestmark = pytest.mark.spark

SEGMENTS = (
    "cluster string, consumer_group string, topic string, state_id string, first_seen timestamp, "
    "last_seen timestamp"
)
STATES = (
    "cluster string, consumer_group string, topic string, state_id string, known boolean, "
    "allocations array<struct<client_id:string,view_weight:double,"
    "queues:array<struct<broker_name:string,queue_id:int>>>>"
)
CHANGES = "cluster string, consumer_group string, topic string, first_seen timestamp"


def info(client_id, seconds, held, started=0, **overrides):
    """One running info: the queues of broker-a that the process holds."""
    values = dict.fromkeys(CLIENT_STATES.schema.names) | {
        "cluster": CLUSTER,
        "snapshot_time": at(seconds),
        "observed_at": at(seconds),
        "source": "RUNNING_INFO",
        "consumer_group": GROUP,
        "client_id": client_id,
        "start_timestamp": at(started),
        "queues": [(TOPIC, "broker-a", number, False, None) for number in held],
    }
    values |= overrides
    return tuple(values[name] for name in CLIENT_STATES.schema.names)


def both(*queue_ids):
    return [("broker-a", number) for number in queue_ids]


AGREED = [("a", 1.0, both(0, 1)), ("b", 1.0, both(2, 3))]


def drift(spark, infos, segments=None, allocations=AGREED, changes=(), known=True):
    segments = segments or [("one", at(0), at(600))]
    return conform(
        drift_episodes(
            frame(spark, SEGMENTS, [(CLUSTER, GROUP, TOPIC, *each) for each in segments]),
            frame(
                spark,
                STATES,
                [
                    (CLUSTER, GROUP, TOPIC, state_id, known, allocations)
                    for state_id in sorted({each[0] for each in segments})
                ],
            ),
            frame(spark, CLIENT_STATES, infos),
            frame(spark, CHANGES, [(CLUSTER, GROUP, TOPIC, at(each)) for each in changes]),
            60,
        ),
        ALLOCATION_DRIFT,
    )


def row(client_id, queue_id, kind, probability, first, last, observations, attributed_to=None):
    return (
        CLUSTER,
        GROUP,
        TOPIC,
        client_id,
        at(0),
        "broker-a",
        queue_id,
        kind,
        probability,
        at(first),
        at(last),
        observations,
        "PERSISTENT" if last - first >= 60 else "TRANSIENT",
        attributed_to,
    )


def assert_drift(spark, actual, rows):
    assert_df_equality(
        actual, frame(spark, ALLOCATION_DRIFT, rows), ignore_row_order=True, ignore_nullable=True
    )


def test_who_holds_what_was_computed_does_not_drift(spark):
    infos = [info("a", 60, [1, 0]), info("b", 60, [2, 3]), info("a", 120, [0, 1])]
    assert_drift(spark, drift(spark, infos), [])


def test_what_is_missing_and_what_is_too_much_are_told_from_first_to_last(spark):
    infos = [
        info("a", 60, [0]),
        info("a", 120, [0]),
        info("a", 180, [0, 1]),
        info("b", 60, [1, 2, 3]),
    ]
    assert_drift(
        spark,
        drift(spark, infos),
        [
            row("a", 1, "COMPUTED_NOT_HELD", 1.0, 60, 120, 2),
            row("b", 1, "HELD_NOT_COMPUTED", 0.0, 60, 60, 1),
        ],
    )


def test_a_queue_that_is_being_released_is_not_held(spark):
    queues = [(TOPIC, "broker-a", number, number == 1, None) for number in (0, 1)]
    assert_drift(
        spark,
        drift(spark, [info("a", 60, [], queues=queues)]),
        [row("a", 1, "COMPUTED_NOT_HELD", 1.0, 60, 60, 1)],
    )


def test_where_views_differ_the_probability_tells_how_much_to_make_of_it(spark):
    allocations = [("a", 0.25, both(0)), ("a", 0.75, both(0, 1))]
    assert_drift(
        spark,
        drift(spark, [info("a", 60, [])], allocations=allocations),
        [
            row("a", 0, "COMPUTED_NOT_HELD", 1.0, 60, 60, 1),
            row("a", 1, "COMPUTED_NOT_HELD", 0.75, 60, 60, 1),
        ],
    )


def test_processes_that_share_an_id_are_each_held_against_its_share(spark):
    infos = [info("a", 60, [0, 1]), info("a", 60, [0], started=5)]
    (only,) = drift(spark, infos).collect()
    assert (only["start_timestamp"].second, only["queue_id"]) == (at(5).second, 1)


def test_what_follows_a_change_is_attributed_to_it_for_as_long_as_it_explains_it(spark):
    segments = [("one", at(0), at(100)), ("two", at(110), at(600))]
    infos = [info("a", 115, [0]), info("b", 115, [2]), info("b", 300, [2])]
    assert_drift(
        spark,
        drift(spark, infos, segments),
        [
            row("a", 1, "COMPUTED_NOT_HELD", 1.0, 115, 115, 1, "STATE_CHANGED"),
            row("b", 3, "COMPUTED_NOT_HELD", 1.0, 115, 300, 2),
        ],
    )
    assert_drift(
        spark,
        drift(spark, infos[:1], segments, changes=[70]),
        [row("a", 1, "COMPUTED_NOT_HELD", 1.0, 115, 115, 1, "ROUTE_CHANGED")],
    )


def test_nothing_is_compared_where_nothing_is_known(spark):
    outside = [info("a", 700, []), info("a", 60, [], error_code=1), info("a", 60, [], queues=None)]
    assert_drift(spark, drift(spark, outside), [])
    assert_drift(spark, drift(spark, [info("a", 60, [])], known=False), [])
