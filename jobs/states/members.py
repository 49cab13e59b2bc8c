"""heartbeats -> heartbeats that tell what a member's own words and its silence say of it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def mark_members(heartbeats: DataFrame, heartbeat_expiry_seconds: int) -> DataFrame:
    """Adds ``is_expired`` and ``chooses_queues``.

    ``is_expired``: the last heartbeat is older than a broker keeps a silent member. False where no
    heartbeat of the member was collected: nothing is known of it then. It is a flag and not an age,
    so that a state does not change with every snapshot.

    ``chooses_queues``: a ``DefaultMQPullConsumer``, whose application pulls what it likes, or one
    that pulls and itself says that it subscribes to nothing: it takes its queues by ``assign()``
    (``DefaultLitePullConsumerImpl`` 5.3.3). What the group's table says does not count: the last
    heartbeat of any member wrote it.
    """
    silent_seconds = F.col("snapshot_time").cast("double") - F.col("last_heartbeat_at").cast(
        "double"
    )
    assigns = (
        (F.col("consume_type") == "CONSUME_ACTIVELY")
        & (F.size("subscriptions") == 0)
        & (F.col("subscription_source") != "GROUP_TABLE")
    )
    return heartbeats.withColumns(
        {
            "is_expired": F.coalesce(silent_seconds > heartbeat_expiry_seconds, F.lit(False)),
            "chooses_queues": F.coalesce(F.col("pull_consumer"), F.lit(False))
            | F.coalesce(assigns, F.lit(False)),
        }
    )
