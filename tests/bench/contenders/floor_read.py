"""The floor of reading: Spark reads the columns that the audit reads and does nothing with them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

#: All that the audit looks at.
_COLUMNS = {
    "heartbeats": (
        "cluster, snapshot_time, broker_name, broker_id, consumer_group, client_id, client_addr, "
        "language, version, consume_type, message_model, subscriptions, subscription_source, "
        "strategy, client_rebalance, pull_consumer, last_heartbeat_at"
    ),
    "broker_polls": (
        "cluster, snapshot_time, broker_name, broker_id, consumer_group, outcome, connections"
    ),
    "topic_routes": (
        "cluster, snapshot_time, namesrv_addr, topic, broker_name, broker_ids, perm, "
        "read_queue_nums, write_queue_nums, zone_name"
    ),
}


def run(spark: SparkSession, snapshots: Path, output: Path) -> None:
    """Once over each table."""
    for table, columns in _COLUMNS.items():
        rows = spark.read.parquet(str(snapshots / table)).select(*columns.split(", "))
        rows.write.format("noop").mode("overwrite").save()
