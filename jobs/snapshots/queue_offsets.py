"""records -> queue_offsets: how far a group has consumed each queue."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.dumps.bodies import CONSUME_STATS
from jobs.schemas import QUEUE_OFFSETS


def make_queue_offsets(records: DataFrame) -> DataFrame:
    """The table ``queue_offsets``; of answers that were collected twice the later counts."""
    entries = records.where(F.col("kind") == CONSUME_STATS).select(
        "cluster",
        "snapshot_time",
        "collected_at",
        "consumer_group",
        F.explode(F.col(CONSUME_STATS)["offsetTable"]).alias("entry"),
    )
    queue, offsets = F.col("entry")["key"], F.col("entry")["value"]
    rows = entries.select(
        "cluster",
        "snapshot_time",
        "collected_at",
        "consumer_group",
        queue["topic"].alias("topic"),
        queue["brokerName"].alias("broker_name"),
        queue["queueId"].alias("queue_id"),
        offsets["brokerOffset"].alias("broker_offset"),
        offsets["consumerOffset"].alias("consumer_offset"),
        F.when(offsets["lastTimestamp"] > 0, F.timestamp_millis(offsets["lastTimestamp"])).alias(
            "last_timestamp"
        ),
    )
    keys = ["cluster", "snapshot_time", "consumer_group", "topic", "broker_name", "queue_id"]
    values = ["broker_offset", "consumer_offset", "last_timestamp"]
    known = rows.where(F.col("broker_offset").isNotNull() & F.col("consumer_offset").isNotNull())
    last = known.groupBy(*keys).agg(F.max_by(F.struct(*values), "collected_at").alias("last"))
    return conform(last.select(*keys, "last.*"), QUEUE_OFFSETS)
