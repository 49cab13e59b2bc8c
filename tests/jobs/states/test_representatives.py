"""fingerprints -> states: of each distinct fingerprint, the rows of one snapshot, collected."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality
from pyspark.sql import functions as F

from jobs.schemas import BROKER_POLLS, TOPIC_ROUTES
from jobs.states.representatives import (
    collect_group_states,
    collect_route_states,
    find_group_topics,
)
from tests.support.snapshots import (
    CLUSTER,
    at,
    frame,
    heartbeat_row,
    marked_heartbeats,
    poll_row,
    route_row,
    subscriptions,
)

pytestmark = pytest.mark.spark

A, B = (1, 1), (1, 2)


def runs(spark, name, rows):
    """``rows``: group or topic, fingerprint, the one snapshot."""
    return frame(
        spark,
        f"cluster string, {name} string, fingerprint struct<high:bigint,low:bigint>, "
        "first_seen timestamp, last_seen timestamp",
        [(CLUSTER, each, value, at(time), at(time)) for each, value, time in rows],
    )


def test_a_state_that_comes_back_is_collected_once_from_its_first_snapshot(spark):
    heartbeats = marked_heartbeats(
        spark,
        [
            heartbeat_row(snapshot_time=at(time), client_id=client_id, client_addr=f"h:{time}")
            for time in (0, 60, 120)
            for client_id in (("a", "b") if time != 60 else ("a",))
        ],
    )

    states = collect_group_states(
        runs(spark, "consumer_group", [("G", A, 0), ("G", B, 60), ("G", A, 120)]),
        heartbeats,
        None,
        130,
    )

    members = F.array_sort(
        F.transform(
            "members", lambda each: F.concat_ws(" ", each["client_id"], each["client_addr"])
        )
    )
    assert_df_equality(
        states.select("fingerprint", members.alias("members"), "offline"),
        frame(
            spark,
            "fingerprint struct<high:bigint,low:bigint>, members array<string>, "
            "offline array<struct<broker_name:string,broker_id:bigint>>",
            [(A, ["a h:0", "b h:0"], None), (B, ["a h:60"], None)],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_a_group_without_members_keeps_its_state_and_the_brokers_that_said_so(spark):
    polls = [
        poll_row(outcome="NOT_ONLINE", connections=0),
        poll_row(broker_name="broker-b", outcome="ANSWERED", connections=0),
        poll_row(broker_name="broker-c", outcome="NO_ANSWER", connections=0),
        poll_row(broker_name="broker-d", outcome="NOT_ONLINE", snapshot_time=at(60)),
    ]

    states = collect_group_states(
        runs(spark, "consumer_group", [("G", A, 0)]),
        marked_heartbeats(spark, []),
        frame(spark, BROKER_POLLS, polls),
        130,
    )

    assert_df_equality(
        states.select(
            "consumer_group",
            F.size(F.coalesce("members", F.array())).alias("members"),
            F.array_sort("offline").alias("offline"),
        ),
        frame(
            spark,
            "consumer_group string, members int, "
            "offline array<struct<broker_name:string,broker_id:bigint>>",
            [("G", 0, [("broker-a", 0), ("broker-b", 0)])],
        ),
        ignore_nullable=True,
    )


def test_a_route_state_has_the_rows_of_all_nameservers_at_its_first_snapshot(spark):
    routes = [
        route_row(namesrv_addr="ns-1"),
        route_row(namesrv_addr="ns-2", broker_name="broker-b", perm=4, zone_name="z1"),
        route_row(namesrv_addr="ns-1", snapshot_time=at(60), read_queue_nums=8),
    ]

    states = collect_route_states(
        runs(spark, "topic", [("T", A, 0)]), frame(spark, TOPIC_ROUTES, routes)
    )

    assert_df_equality(
        states.select("cluster", "topic", "fingerprint", F.array_sort("routes").alias("routes")),
        frame(
            spark,
            "cluster string, topic string, fingerprint struct<high:bigint,low:bigint>, "
            "routes array<struct<namesrv_addr:string,broker_name:string,broker_ids:array<bigint>,"
            "perm:int,read_queue_nums:int,write_queue_nums:int,zone_name:string>>",
            [
                (
                    CLUSTER,
                    "T",
                    A,
                    [
                        ("ns-1", "broker-a", [0], 6, 4, 4, None),
                        ("ns-2", "broker-b", [0], 4, 4, 4, "z1"),
                    ],
                )
            ],
        ),
        ignore_nullable=True,
    )


def test_lists_last_where_one_run_of_them_is_longer_than_a_silent_channel_lives(spark):
    seconds = {A: (0, 130), B: (200, 331)}
    group_runs = frame(
        spark,
        "cluster string, consumer_group string, fingerprint struct<high:bigint,low:bigint>, "
        "first_seen timestamp, last_seen timestamp",
        [
            (CLUSTER, "G", fingerprint, at(first), at(last))
            for fingerprint, (first, last) in [*seconds.items(), (B, (400, 410))]
        ],
    )

    states = collect_group_states(group_runs, marked_heartbeats(spark, []), None, 130)

    assert {(tuple(row.fingerprint), row.lasting) for row in states.collect()} == {
        (A, False),
        (B, True),
    }


def test_topics_are_those_of_any_state_and_a_group_without_one_stays_with_an_empty_one(spark):
    heartbeats = [
        heartbeat_row(client_id="a", subscriptions=subscriptions("T1", "T2")),
        heartbeat_row(client_id="b", subscriptions=subscriptions("T1")),
        heartbeat_row(snapshot_time=at(60), subscriptions=subscriptions("T3")),
        heartbeat_row(consumer_group="H", subscriptions=[]),
    ]
    group_runs = runs(spark, "consumer_group", [("G", A, 0), ("G", B, 60), ("H", A, 0)])

    topics = find_group_topics(
        collect_group_states(group_runs, marked_heartbeats(spark, heartbeats), None, 130)
    )

    assert_df_equality(
        topics,
        frame(
            spark,
            "cluster string, consumer_group string, topic string",
            [*[(CLUSTER, "G", topic) for topic in ("T1", "T2", "T3")], (CLUSTER, "H", "")],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )
