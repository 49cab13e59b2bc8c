"""snapshots -> fingerprints: equal for equal lists in any order, different for near-equal ones."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality
from pyspark.sql import functions as F

from jobs.schemas import BROKER_POLLS, TOPIC_ROUTES
from jobs.states.fingerprints import group_fingerprints, route_fingerprints
from tests.support.snapshots import (
    at,
    frame,
    heartbeat_row,
    marked_heartbeats,
    poll_row,
    route_row,
    subscriptions,
)

pytestmark = pytest.mark.spark

AB = [{"client_id": "a"}, {"client_id": "b"}]

#: Two lists of members each, as overrides of rows, that differ as the name says.
DIFFERENT_LISTS = {
    "one more copy": (AB, [*AB, {"client_id": "b", "client_addr": "b:2"}]),
    "an exact row twice more": (AB, [*AB, {"client_id": "c"}, {"client_id": "c"}]),
    "a pair of equal rows in place of another": (
        [*AB, {"client_id": "c"}, {"client_id": "c"}],
        [*AB, {"client_id": "d"}, {"client_id": "d"}],
    ),
    "another id in its place": (AB, [{"client_id": "a"}, {"client_id": "c", "client_addr": "b:1"}]),
    "swapped ports": (
        [{"client_id": "a", "client_addr": "h:1"}, {"client_id": "b", "client_addr": "h:2"}],
        [{"client_id": "a", "client_addr": "h:2"}, {"client_id": "b", "client_addr": "h:1"}],
    ),
    "moved to another broker": (AB, [AB[0], AB[1] | {"broker_name": "broker-b"}]),
    "moved to the slave": (AB, [AB[0], AB[1] | {"broker_id": 1}]),
    "subscriptions that swap members": (
        [
            AB[0] | {"subscriptions": subscriptions("T1")},
            AB[1] | {"subscriptions": subscriptions("T2")},
        ],
        [
            AB[0] | {"subscriptions": subscriptions("T2")},
            AB[1] | {"subscriptions": subscriptions("T1")},
        ],
    ),
    "a subscription that moves to the next member": (
        [AB[0] | {"subscriptions": subscriptions("T1", "T2")}, AB[1] | {"subscriptions": []}],
        [
            AB[0] | {"subscriptions": subscriptions("T1")},
            AB[1] | {"subscriptions": subscriptions("T2")},
        ],
    ),
    "no subscription any more": (AB, [AB[0], AB[1] | {"subscriptions": []}]),
    "another expression": (
        AB,
        [AB[0], AB[1] | {"subscriptions": subscriptions("T", expression="x")}],
    ),
    "no language": (AB, [AB[0], AB[1] | {"language": None}]),
    "no version": (AB, [AB[0], AB[1] | {"version": None}]),
    "no message model": (AB, [AB[0], AB[1] | {"message_model": None}]),
    "a strategy": (AB, [AB[0], AB[1] | {"strategy": "AVG"}]),
    "a strategy in place of a language": (
        [AB[0] | {"language": "AVG"}],
        [AB[0] | {"language": None, "strategy": "AVG"}],
    ),
    "assigned by the broker": (AB, [AB[0], AB[1] | {"client_rebalance": False}]),
    "assigned by itself": (
        [AB[0] | {"client_rebalance": False}],
        [AB[0] | {"client_rebalance": True}],
    ),
    "silent for too long": (
        [AB[0], AB[1] | {"last_heartbeat_at": at(-70)}],
        [AB[0], AB[1] | {"last_heartbeat_at": at(-70)}],
    ),
}

EQUAL_LISTS = {
    "in another order": (AB, AB[::-1]),
    "a copy elsewhere in the list": ([AB[0], AB[1], AB[0]], [AB[0], AB[0], AB[1]]),
    "what says nothing of who takes what": (
        AB,
        [
            AB[0] | {"subscription_source": "GROUP_TABLE", "last_heartbeat_at": at(1)},
            AB[1] | {"consume_type": None},
        ],
    ),
}


def rows_of(cases, row, name):
    """The first of each case's pair at the first snapshot, the second at the second."""
    return [
        row(**{name: case, "snapshot_time": at(60 * place)}, **overrides)
        for case, pair in cases.items()
        for place, variant in enumerate(pair)
        for overrides in variant
    ]


def changes(fingerprints, name):
    """For each case, whether the fingerprint changed."""
    return fingerprints.groupBy(name).agg((F.countDistinct("fingerprint") > 1).alias("changed"))


def test_lists_that_differ_have_different_fingerprints_and_those_in_another_order_the_same(spark):
    rows = rows_of(DIFFERENT_LISTS | EQUAL_LISTS, heartbeat_row, "consumer_group")

    fingerprints = group_fingerprints(marked_heartbeats(spark, rows), None)

    expected = [(case, True) for case in DIFFERENT_LISTS] + [(case, False) for case in EQUAL_LISTS]
    assert_df_equality(
        changes(fingerprints, "consumer_group"),
        frame(spark, "consumer_group string, changed boolean", expected),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_brokers_without_a_list_are_part_of_what_a_group_looks_like(spark):
    second = {"broker_name": "broker-b", "connections": 0}
    no_answer, offline = second | {"outcome": "NO_ANSWER"}, second | {"outcome": "NOT_ONLINE"}
    cases = {
        "one answers no longer": ([{}], [{}, no_answer]),
        "one that did not answer is offline": ([{}, no_answer], [{}, offline]),
        "another one is offline": ([{}, offline], [{}, offline | {"broker_name": "broker-c"}]),
        "how many connections an answer has": ([{}], [{"connections": 7}]),
        "an empty answer is as good as offline": ([{}, offline], [{}, second]),
    }
    members = rows_of({case: ([{}], [{}]) for case in cases}, heartbeat_row, "consumer_group")

    fingerprints = group_fingerprints(
        marked_heartbeats(spark, members),
        frame(spark, BROKER_POLLS, rows_of(cases, poll_row, "consumer_group")),
    )

    expected = list(zip(cases, [True, True, True, False, False], strict=True))
    assert_df_equality(
        changes(fingerprints, "consumer_group"),
        frame(spark, "consumer_group string, changed boolean", expected),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_a_group_of_which_only_polls_are_known_has_a_fingerprint(spark):
    fingerprints = group_fingerprints(
        marked_heartbeats(spark, []),
        frame(spark, BROKER_POLLS, [poll_row(outcome="NOT_ONLINE", connections=0)]),
    )

    assert_df_equality(
        fingerprints.select("consumer_group", "snapshot_time"),
        frame(spark, "consumer_group string, snapshot_time timestamp", [("G", at(0))]),
        ignore_nullable=True,
    )


def test_routes_that_differ_have_different_fingerprints_and_those_in_another_order_the_same(spark):
    b = {"broker_name": "broker-b"}
    different = {
        "one more broker": ([{}], [{}, b]),
        "swapped queue numbers": ([{}, b | {"read_queue_nums": 8}], [{"read_queue_nums": 8}, b]),
        "read and write swapped": (
            [{"read_queue_nums": 4, "write_queue_nums": 8}],
            [{"read_queue_nums": 8, "write_queue_nums": 4}],
        ),
        "a slave more": ([{}], [{"broker_ids": [0, 1]}]),
        "ids not known": ([{"broker_ids": []}], [{"broker_ids": None}]),
        "read only": ([{}], [{"perm": 4}]),
        "of another nameserver": ([{}], [{"namesrv_addr": "ns-2"}]),
        "not there any more": (
            [{}],
            [{"broker_name": None, "broker_ids": None, "perm": 0}],
        ),
    }
    equal = {
        "in another order": ([{}, b], [b, {}]),
        "ids in another order": ([{"broker_ids": [1, 0]}], [{"broker_ids": [0, 1]}]),
    }
    rows = rows_of(different | equal, route_row, "topic")

    fingerprints = route_fingerprints(frame(spark, TOPIC_ROUTES, rows))

    expected = [(case, True) for case in different] + [(case, False) for case in equal]
    assert_df_equality(
        changes(fingerprints, "topic"),
        frame(spark, "topic string, changed boolean", expected),
        ignore_row_order=True,
        ignore_nullable=True,
    )
