"""What the Spark contenders have in common after they allocated: from findings to episodes."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tests.bench.contenders.views import AT_SNAPSHOT, known_lists

QUEUE = ["consumer_group", "topic", "broker_name", "queue_id", "kind"]


def in_all_views(
    spark: SparkSession, snapshots: Path, rows: DataFrame, orphans: Column, duplicates: Column
) -> DataFrame:
    """One row per snapshot and queue that every view has: ``orphans`` and ``duplicates`` are the
    positions in the ``queues`` of a view.
    """

    def of_kind(kind: str, positions: Column) -> Column:
        return F.transform(
            positions,
            lambda position: F.struct(
                F.lit(kind).alias("kind"), F.get("queues", position).alias("queue")
            ),
        )

    found = F.concat(of_kind("ORPHANED", orphans), of_kind("DUPLICATE", duplicates))
    per_view = rows.select(*AT_SNAPSHOT, "topic", F.explode(found).alias("found"))
    views = known_lists(spark, snapshots).groupBy(*AT_SNAPSHOT).agg(F.count("*").alias("views"))
    return (
        per_view.groupBy(*AT_SNAPSHOT, "topic", "found.queue", "found.kind")
        .agg(F.count("*").alias("seen"))
        .join(views, AT_SNAPSHOT, "inner")
        .where("seen = views")
        .select(*AT_SNAPSHOT, "topic", "queue.broker_name", "queue.queue_id", "kind")
    )


def write_episodes(spark: SparkSession, snapshots: Path, found: DataFrame, output: Path) -> None:
    """Joins findings of consecutive snapshots of the group, and writes them."""
    in_time = Window.partitionBy("consumer_group").orderBy("snapshot_time")
    positions = (
        known_lists(spark, snapshots)
        .select(*AT_SNAPSHOT)
        .distinct()
        .withColumn("position", F.row_number().over(in_time))
    )
    of_queue = Window.partitionBy(*QUEUE).orderBy("position")
    (
        found.join(positions, AT_SNAPSHOT, "inner")
        .withColumn("island", F.col("position") - F.row_number().over(of_queue))
        .groupBy(*QUEUE, "island")
        .agg(F.min("snapshot_time").alias("first_seen"), F.max("snapshot_time").alias("last_seen"))
        .select(*QUEUE, "first_seen", "last_seen")
        .write.mode("overwrite")
        .parquet(str(output / "findings"))
    )
