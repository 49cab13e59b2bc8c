"""What the Spark contenders have in common before they allocate: every broker's list, every topic.

A view is what one broker tells a group of one topic in one snapshot. Nothing is deduplicated.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

AT_SNAPSHOT = ["snapshot_time", "consumer_group"]
VIEW = [*AT_SNAPSHOT, "topic", "listing_broker"]


def read(spark: SparkSession, snapshots: Path, table: str) -> DataFrame:
    """One snapshot table."""
    return spark.read.parquet(str(snapshots / table))


def heard() -> Column:
    """Whether the member still sends heartbeats: a broker drops it after 130 s of silence."""
    silent = F.col("snapshot_time").cast("double") - F.col("last_heartbeat_at").cast("double")
    return silent <= 130


def known_lists(spark: SparkSession, snapshots: Path) -> DataFrame:
    """One row per snapshot, group and broker that answered, with a list or that there is none."""
    polls = read(spark, snapshots, "broker_polls").where("outcome <> 'NO_ANSWER'")
    return polls.select(*AT_SNAPSHOT, F.col("broker_name").alias("listing_broker"))


def views(spark: SparkSession, snapshots: Path) -> DataFrame:
    """One row per view, with ``queues``: broker name and queue id, in RocketMQ's order.

    A topic stays with its group where the group has no member, which is when nobody reads it.
    """
    topics = (
        read(spark, snapshots, "heartbeats")
        .select("consumer_group", F.explode("subscriptions.topic").alias("topic"))
        .distinct()
    )
    of_broker = F.transform(
        F.sequence(F.lit(0), F.col("read_queue_nums") - 1),
        lambda number: F.struct("broker_name", number.alias("queue_id")),
    )
    routes = (
        read(spark, snapshots, "topic_routes")
        .where("read_queue_nums > 0 AND perm & 4 <> 0")
        .groupBy("snapshot_time", "topic")
        .agg(F.sort_array(F.flatten(F.collect_list(of_broker))).alias("queues"))
    )
    return (
        known_lists(spark, snapshots)
        .join(topics, "consumer_group", "inner")
        .join(routes, ["snapshot_time", "topic"], "inner")
    )


def views_with_clients(spark: SparkSession, snapshots: Path) -> DataFrame:
    """The views with ``clients``: the members that the broker lists, sorted by client id."""
    client = F.struct(
        "client_id",
        "strategy",
        F.col("subscriptions.topic").alias("topics"),
        heard().alias("heard"),
    )
    lists = (
        read(spark, snapshots, "heartbeats")
        .groupBy(*AT_SNAPSHOT, F.col("broker_name").alias("listing_broker"))
        .agg(F.sort_array(F.collect_list(client)).alias("clients"))
    )
    return (
        views(spark, snapshots)
        .join(lists, [*AT_SNAPSHOT, "listing_broker"], "left")
        .withColumn(
            "clients", F.coalesce("clients", F.array().cast(lists.schema["clients"].dataType))
        )
    )
