"""segments -> timeline: the segments of a group and topic that say something, numbered in time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

_PAIR = ["cluster", "consumer_group", "topic"]


def build_timeline(segments: DataFrame, states: DataFrame) -> DataFrame:
    """One row per segment whose state is known, with the state's columns.

    Adds ``position`` (1, 2, ... in time within cluster, consumer_group, topic), ``timeline_end``
    (the last snapshot of the timeline), ``is_blind`` (it cannot tell whether what was found before
    has ended) and ``known_position``, which counts those that are not. Segments in which nothing
    was known (no broker answered, no route) are left out, so that they end no episode.
    """
    in_time = Window.partitionBy(*_PAIR).orderBy("first_seen")
    whole = Window.partitionBy(*_PAIR)
    return (
        segments.drop("group_fingerprint", "route_fingerprint")
        .join(states.where("known"), [*_PAIR, "state_id"], "inner")
        .withColumns(
            {
                "position": F.row_number().over(in_time),
                "timeline_end": F.max("last_seen").over(whole),
                "_known": F.col("completeness") * F.col("nameservers"),
                "_differ": F.exists("findings", lambda each: each["certainty"] == "POSSIBLE"),
            }
        )
        .withColumn("_stretch", F.sum(F.col("_differ").cast("int")).over(in_time))
        .withColumn("is_blind", _is_blind())
        .withColumn("known_position", F.sum((~F.col("is_blind")).cast("int")).over(in_time))
        .drop("_known", "_differ", "_stretch")
    )


def _is_blind() -> Column:
    """Whether all lists agree for the one reason that fewer of them are known.

    Lists of brokers or nameservers differ before and after, and in all the time between them fewer
    answered than then: the list that differs may be among those that are missing.
    """
    differ, lists = F.col("_differ"), F.col("_known")
    stretch = Window.partitionBy(*_PAIR, "_stretch")
    later = Window.partitionBy(*_PAIR).orderBy("position").rowsBetween(1, Window.unboundedFollowing)
    known = F.max(F.when(~differ, lists)).over(stretch)
    known_before = F.max(F.when(differ, lists)).over(stretch)
    known_after = F.first(F.when(differ, lists), ignorenulls=True).over(later)
    return F.coalesce(~differ & (known < known_before) & (known < known_after), F.lit(False))
