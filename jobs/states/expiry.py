"""heartbeats -> heartbeats that tell whether a member is silent for too long."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def mark_expired(heartbeats: DataFrame, heartbeat_expiry_seconds: int) -> DataFrame:
    """Adds ``is_expired``: the last heartbeat is older than a broker keeps a silent member.

    False where no heartbeat of the member was collected: nothing is known of it then. It is a
    flag and not an age, so that a state does not change with every snapshot.
    """
    silent_seconds = F.col("snapshot_time").cast("double") - F.col("last_heartbeat_at").cast(
        "double"
    )
    expired = F.coalesce(silent_seconds > heartbeat_expiry_seconds, F.lit(False))
    return heartbeats.withColumn("is_expired", expired)
