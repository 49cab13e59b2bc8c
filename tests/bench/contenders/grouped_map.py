"""groupBy + applyInPandas: one pandas frame per snapshot, group and topic."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.bench.contenders.episodes import write_episodes
from tests.bench.contenders.row_udf import allocate
from tests.bench.contenders.views import AT_SNAPSHOT, heard, read, views

_FOUND = "snapshot_time timestamp, consumer_group string, topic string, kind string, position int"


def find(members: pd.DataFrame) -> pd.DataFrame:
    """The faulty queues of one snapshot, group and topic: those that are so in every list."""
    queues = int(members["queue_count"].iloc[0])
    orphans, duplicates = set(range(queues)), set(range(queues))
    for _, listed in members.groupby("listing_broker"):
        client_ids = sorted(listed["client_id"].dropna())
        takers = listed[listed["takes"]]
        owners = Counter(
            position
            for client_id, strategy in zip(takers["client_id"], takers["strategy"], strict=True)
            for position in allocate(strategy, client_id, client_ids, queues)
        )
        orphans -= set(owners)
        duplicates &= {position for position, count in owners.items() if count > 1}
    found = [("ORPHANED", each) for each in orphans] + [("DUPLICATE", each) for each in duplicates]
    first = members.iloc[0]
    return pd.DataFrame(
        [
            (first["snapshot_time"], first["consumer_group"], first["topic"], *each)
            for each in found
        ],
        columns=["snapshot_time", "consumer_group", "topic", "kind", "position"],
    )


def run(spark: SparkSession, snapshots: Path, output: Path) -> None:
    """Every list is laid out as rows once per topic, so that the frame has all it needs."""
    of_topics = views(spark, snapshots)
    members = read(spark, snapshots, "heartbeats").select(
        *AT_SNAPSHOT,
        F.col("broker_name").alias("listing_broker"),
        "client_id",
        "strategy",
        F.col("subscriptions.topic").alias("topics"),
        heard().alias("heard"),
    )
    takes = F.array_contains("topics", F.col("topic")) & F.col("heard")
    rows = of_topics.join(members, [*AT_SNAPSHOT, "listing_broker"], "left").select(
        *AT_SNAPSHOT,
        "topic",
        "listing_broker",
        "client_id",
        "strategy",
        F.coalesce(takes, F.lit(False)).alias("takes"),
        F.size("queues").alias("queue_count"),
    )
    found = rows.groupBy(*AT_SNAPSHOT, "topic").applyInPandas(find, _FOUND)
    routes = of_topics.select(*AT_SNAPSHOT, "topic", "queues").dropDuplicates(
        [*AT_SNAPSHOT, "topic"]
    )
    named = (
        found.join(routes, [*AT_SNAPSHOT, "topic"], "inner")
        .withColumn("queue", F.get("queues", "position"))
        .select(*AT_SNAPSHOT, "topic", "queue.broker_name", "queue.queue_id", "kind")
    )
    write_episodes(spark, snapshots, named, output)
