"""runs -> segments: the stretches in which a group's lists and its topic's route stay the same."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.states.runs import find_runs
from jobs.states.segments import find_segments, route_intervals
from tests.support.snapshots import CLUSTER, GROUP, TOPIC, at, frame

pytestmark = pytest.mark.spark

FINGERPRINT = "struct<high:bigint,low:bigint>"
LISTS, OTHER_LISTS = (1, 1), (1, 2)
ROUTE, OTHER_ROUTE = (2, 1), (2, 2)


def runs(spark, name, fingerprints):
    """The runs of one group or topic from what was seen of it, by time."""
    rows = [
        (CLUSTER, GROUP if name == "consumer_group" else TOPIC, at(time), value)
        for time, value in fingerprints.items()
    ]
    schema = f"cluster string, {name} string, snapshot_time timestamp, fingerprint {FINGERPRINT}"
    return find_runs(frame(spark, schema, rows), ["cluster", name])


def segments(spark, lists, routes, route_max_age_seconds=900):
    topics = frame(
        spark, "cluster string, consumer_group string, topic string", [(CLUSTER, GROUP, TOPIC)]
    )
    return find_segments(
        runs(spark, "consumer_group", lists),
        topics,
        route_intervals(runs(spark, "topic", routes), route_max_age_seconds),
    )


def expect(spark, actual, rows):
    """``rows``: group and route fingerprint, number of the group's run, first, last, snapshots."""
    schema = (
        "cluster string, consumer_group string, topic string, "
        f"group_fingerprint {FINGERPRINT}, route_fingerprint {FINGERPRINT}, group_run bigint, "
        "first_seen timestamp, last_seen timestamp, snapshots bigint"
    )
    expected = [
        (CLUSTER, GROUP, TOPIC, lists, route, run, at(first), at(last), snapshots)
        for lists, route, run, first, last, snapshots in rows
    ]
    assert_df_equality(
        actual.drop("state_id"),
        frame(spark, schema, expected),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_a_route_that_is_polled_less_often_than_the_group_holds_between_its_polls(spark):
    lists = dict.fromkeys(range(0, 300, 60), LISTS)

    actual = segments(spark, lists, {0: ROUTE, 180: ROUTE})

    expect(spark, actual, [(LISTS, ROUTE, 0, 0, 240, 5)])


def test_a_route_is_not_known_before_its_first_poll_and_beyond_its_age(spark):
    lists = dict.fromkeys(range(0, 420, 60), LISTS)

    actual = segments(spark, lists, {60: ROUTE, 120: ROUTE}, route_max_age_seconds=120)

    expect(
        spark,
        actual,
        [(LISTS, None, 0, 0, 0, 1), (LISTS, ROUTE, 0, 60, 180, 3), (LISTS, None, 0, 240, 360, 3)],
    )


def test_a_route_that_comes_back_after_a_time_without_is_known_again(spark):
    lists = dict.fromkeys(range(0, 420, 60), LISTS)

    actual = segments(spark, lists, {0: ROUTE, 300: OTHER_ROUTE}, route_max_age_seconds=120)

    expect(
        spark,
        actual,
        [
            (LISTS, ROUTE, 0, 0, 60, 2),
            (LISTS, None, 0, 120, 240, 3),
            (LISTS, OTHER_ROUTE, 0, 300, 360, 2),
        ],
    )


def test_a_topic_without_any_route_keeps_its_segment(spark):
    actual = segments(spark, {0: LISTS, 60: LISTS}, {})

    expect(spark, actual, [(LISTS, None, 0, 0, 60, 2)])


def test_a_change_of_the_route_cuts_a_run_of_the_group_and_shares_out_its_snapshots(spark):
    lists = {0: LISTS, 60: LISTS, 120: LISTS, 180: LISTS, 240: OTHER_LISTS, 300: OTHER_LISTS}
    routes = {0: ROUTE, 30: ROUTE, 90: OTHER_ROUTE, 300: OTHER_ROUTE}

    actual = segments(spark, lists, routes)

    expect(
        spark,
        actual,
        [
            (LISTS, ROUTE, 0, 0, 60, 2),
            (LISTS, OTHER_ROUTE, 0, 120, 180, 2),
            (OTHER_LISTS, OTHER_ROUTE, 1, 240, 300, 2),
        ],
    )


def test_a_state_that_comes_back_has_the_same_id_and_another_route_gives_another(spark):
    lists = {0: LISTS, 60: OTHER_LISTS, 120: LISTS, 180: LISTS}

    ids = segments(spark, lists, {0: ROUTE, 180: OTHER_ROUTE}).select("first_seen", "state_id")

    by_time = {row["first_seen"].minute: row["state_id"] for row in ids.collect()}
    assert by_time[0] == by_time[2]
    assert len({by_time[0], by_time[1], by_time[3]}) == 3
