"""segments -> timeline: the segments of a group and topic that say something, numbered in time."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def build_timeline(segments: DataFrame, states: DataFrame) -> DataFrame:
    """One row per segment whose state is known, with the state's columns.

    Adds ``position`` (1, 2, ... in time within cluster, consumer_group, topic) and ``timeline_end``
    (the last snapshot of the timeline). Segments in which nothing was known (no broker answered,
    no route) are left out, so that they end no episode.
    """
    of_pair = ["cluster", "consumer_group", "topic"]
    in_time = Window.partitionBy(*of_pair).orderBy("first_seen")
    whole = Window.partitionBy(*of_pair)
    return (
        segments.drop("group_fingerprint", "route_fingerprint")
        .join(states.where("known"), [*of_pair, "state_id"], "inner")
        .withColumns(
            {
                "position": F.row_number().over(in_time),
                "timeline_end": F.max("last_seen").over(whole),
            }
        )
    )
