"""runs -> segments: the stretches in which a group's lists AND its topic's route stayed the same.

Groups and routes are polled on their own schedules. A route holds from the poll that brought it
until the next poll that brings another, but no longer than ``route_max_age_seconds`` after the
last poll that did: then it is not known, and the segment says so by a null route.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

# Long before any broker and long after: the ends of what is not known.


def _beginning() -> Column:
    return F.lit("1900-01-01T00:00:00Z").cast("timestamp")


def _end() -> Column:
    return F.lit("9999-01-01T00:00:00Z").cast("timestamp")


def route_intervals(route_runs: DataFrame, route_max_age_seconds: int) -> DataFrame:
    """One row per cluster, topic and stretch of time with one known route, or with none.

    Columns: cluster, topic, ``route_fingerprint`` (null: not known), ``valid_from`` (inclusive),
    ``valid_until`` (exclusive). The stretches of a topic cover all time.
    """
    in_time = Window.partitionBy("cluster", "topic").orderBy("run")
    next_change = F.coalesce(F.lead("first_seen").over(in_time), _end())
    expiry = F.col("last_seen") + F.make_interval(secs=F.lit(route_max_age_seconds))
    known = route_runs.select(
        "cluster",
        "topic",
        "run",
        "fingerprint",
        "first_seen",
        F.least(next_change, expiry).alias("known_until"),
        next_change.alias("next_change"),
    )
    nothing = F.lit(None).cast(route_runs.schema["fingerprint"].dataType)
    stretches = F.array(
        _stretch(nothing, _beginning(), F.when(F.col("run") == 0, F.col("first_seen"))),
        _stretch(F.col("fingerprint"), F.col("first_seen"), F.col("known_until")),
        _stretch(nothing, F.col("known_until"), F.col("next_change")),
    )
    return (
        known.select("cluster", "topic", F.explode(stretches).alias("stretch"))
        .select("cluster", "topic", "stretch.*")
        .where(F.col("valid_from") < F.col("valid_until"))
    )


def _stretch(fingerprint: Column, valid_from: Column, valid_until: Column) -> Column:
    return F.struct(
        fingerprint.alias("route_fingerprint"),
        valid_from.alias("valid_from"),
        valid_until.alias("valid_until"),
    )


def find_segments(
    group_runs: DataFrame, group_topics: DataFrame, intervals: DataFrame
) -> DataFrame:
    """One row per cluster, consumer_group, topic and stretch with one state.

    Columns: those, ``state_id`` (over group, topic and both fingerprints), ``group_fingerprint``,
    ``route_fingerprint`` (null: not known), ``group_run``, ``first_seen``, ``last_seen``,
    ``snapshots``. A topic without any route keeps its segments: it must not disappear.
    """
    of_topics = group_runs.join(group_topics, ["cluster", "consumer_group"], "inner")
    overlaps = (
        (of_topics["cluster"] == intervals["cluster"])
        & (of_topics["topic"] == intervals["topic"])
        & (intervals["valid_from"] <= of_topics["last_seen"])
        & (intervals["valid_until"] > of_topics["first_seen"])
    )
    times = F.filter(
        of_topics["snapshot_times"],
        lambda time: (
            (time >= F.coalesce(intervals["valid_from"], _beginning()))
            & (time < F.coalesce(intervals["valid_until"], _end()))
        ),
    )
    cut = of_topics.join(intervals, overlaps, "left").select(
        of_topics["cluster"],
        of_topics["consumer_group"],
        of_topics["topic"],
        of_topics["fingerprint"].alias("group_fingerprint"),
        of_topics["run"].alias("group_run"),
        "route_fingerprint",
        times.alias("times"),
    )
    identity = F.to_json(
        F.struct("cluster", "consumer_group", "topic", "group_fingerprint", "route_fingerprint")
    )
    return cut.where(F.size("times") > 0).select(
        "cluster",
        "consumer_group",
        "topic",
        F.md5(identity).alias("state_id"),
        "group_fingerprint",
        "route_fingerprint",
        "group_run",
        F.element_at("times", 1).alias("first_seen"),
        F.element_at("times", -1).alias("last_seen"),
        F.size("times").cast("bigint").alias("snapshots"),
    )
