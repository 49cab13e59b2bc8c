"""fingerprints -> states: of each distinct fingerprint, the rows of one snapshot, collected."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.schemas import NOT_ONLINE
from jobs.states.polls import unlisted_brokers

_MEMBER = [
    "broker_name",
    "broker_id",
    "client_id",
    "client_addr",
    "language",
    "version",
    "message_model",
    "strategy",
    "client_rebalance",
    "is_expired",
    "chooses_queues",
    "subscriptions",
]


def first_snapshots(group_runs: DataFrame, channel_expiry_seconds: int) -> DataFrame:
    """One row per cluster, consumer_group, fingerprint: ``snapshot_time`` and ``lasting``.

    ``snapshot_time`` is the first that shows it. ``lasting`` tells whether the lists, addresses
    included, once stayed so for longer than a broker keeps a channel on which nothing comes: then
    every channel in them is alive.
    """
    seconds = F.col("last_seen").cast("double") - F.col("first_seen").cast("double")
    return group_runs.groupBy("cluster", "consumer_group", "fingerprint").agg(
        F.min("first_seen").alias("snapshot_time"),
        (F.max(seconds) > channel_expiry_seconds).alias("lasting"),
    )


def collect_group_states(
    group_runs: DataFrame,
    heartbeats: DataFrame,
    broker_polls: DataFrame | None,
    channel_expiry_seconds: int,
) -> DataFrame:
    """One row per cluster, consumer_group, fingerprint: ``members`` and ``offline`` as arrays.

    A group without any member keeps its row, with an empty array. ``lasting`` as in
    ``first_snapshots``.
    """
    keys = ["cluster", "consumer_group"]
    snapshots = first_snapshots(group_runs, channel_expiry_seconds)
    at_snapshot = [*keys, "snapshot_time"]
    members = (
        heartbeats.join(snapshots, at_snapshot, "left_semi")
        .groupBy(*at_snapshot)
        .agg(F.collect_list(F.struct(*_MEMBER)).alias("members"))
    )
    states = snapshots.join(members, at_snapshot, "left")
    if broker_polls is not None:
        offline = (
            unlisted_brokers(broker_polls)
            .where(F.col("outcome") == NOT_ONLINE)
            .groupBy(*at_snapshot)
            .agg(F.collect_list(F.struct("broker_name", "broker_id")).alias("offline"))
        )
        states = states.join(offline, at_snapshot, "left")
    else:
        states = states.withColumn(
            "offline", F.lit(None).cast("array<struct<broker_name:string,broker_id:bigint>>")
        )
    return states.drop("snapshot_time")


def collect_route_states(route_runs: DataFrame, topic_routes: DataFrame) -> DataFrame:
    """One row per cluster, topic, fingerprint: ``routes``, the rows of all nameservers."""
    keys = ["cluster", "topic"]
    snapshots = route_runs.groupBy(*keys, "fingerprint").agg(
        F.min("first_seen").alias("snapshot_time")
    )
    at_snapshot = [*keys, "snapshot_time"]
    route = F.struct(
        "namesrv_addr",
        "broker_name",
        "broker_ids",
        "perm",
        "read_queue_nums",
        "write_queue_nums",
        "zone_name",
    )
    return (
        topic_routes.join(snapshots, at_snapshot, "inner")
        .groupBy(*keys, "fingerprint")
        .agg(F.collect_list(route).alias("routes"))
    )


def find_group_topics(group_states: DataFrame) -> DataFrame:
    """One row per cluster, consumer_group, topic that some member subscribed to in the window.

    A group that subscribed to nothing, or had no member, has one row with an empty topic: it must
    not disappear.

    A topic stays with its group in the snapshots in which the group has no member: that is when
    all its queues have no owner. Where members are there and none subscribes to it, it is known to
    be no topic of the group's (any more), which is another thing.
    """
    group = ["cluster", "consumer_group"]
    subscribed = (
        group_states.select(*group, F.explode("members").alias("member"))
        .select(*group, F.explode("member.subscriptions.topic").alias("topic"))
        .distinct()
    )
    return (
        group_states.select(*group)
        .distinct()
        .join(subscribed, group, "left")
        .withColumn("topic", F.coalesce("topic", F.lit("")))
    )
