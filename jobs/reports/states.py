"""states -> allocations, state_runs, group_health."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.schemas import ALLOCATIONS, GROUP_HEALTH, STATE_RUNS


def allocations(states: DataFrame) -> DataFrame:
    """The table ``allocations``: once per state, not once per snapshot."""
    rows = states.select(
        "cluster",
        "consumer_group",
        "topic",
        "state_id",
        F.explode("allocations").alias("allocation"),
    )
    return conform(
        rows.select("cluster", "consumer_group", "topic", "state_id", "allocation.*"), ALLOCATIONS
    )


def state_runs(segments: DataFrame) -> DataFrame:
    """The table ``state_runs``."""
    return conform(segments, STATE_RUNS)


def group_health(
    segments: DataFrame, states: DataFrame, described: DataFrame, stalled: DataFrame
) -> DataFrame:
    """The table ``group_health``: every group and topic of the window, audited or not.

    ``described`` are the orphaned and duplicated queues, ``stalled`` the stalled ones.
    """
    pair = ["cluster", "consumer_group", "topic"]
    covered = segments.select(*pair, "state_id", "first_seen", "last_seen", "snapshots").join(
        states, [*pair, "state_id"], "inner"
    )
    at_end = F.struct(
        "coverage",
        "reason",
        "members",
        "processes",
        "queues",
        "idle_clients",
        "imbalance",
        "strategy_source",
    )
    # What is known counts over what is later but not known.
    order = F.struct(F.col("known"), F.col("last_seen"))
    audited = F.when(F.col("coverage") == "AUDITED", F.col("snapshots")).otherwise(0)
    health = covered.groupBy(*pair).agg(
        F.max_by(at_end, order).alias("end"),
        F.sum("snapshots").alias("snapshots"),
        F.sum(audited).alias("audited_snapshots"),
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.coalesce(F.min(F.when(F.col("known"), F.col("completeness"))), F.lit(0.0)).alias(
            "completeness"
        ),
    )
    minutes = (F.col("last_seen").cast("double") - F.col("first_seen").cast("double")) / 60
    weighted = minutes * F.col("probability")
    rank = F.when(F.col("severity") == "CRITICAL", 3).when(F.col("severity") == "WARNING", 2)
    found = described.unionByName(
        stalled.select(*pair, "first_seen", "last_seen", "severity"), allowMissingColumns=True
    )
    of_findings = found.groupBy(*pair).agg(
        # Rounded: the last digits of a sum depend on the order of its rows, which no run repeats.
        *[
            F.round(F.sum(F.when(F.col("kind") == kind, weighted)), 6).alias(f"{name}_minutes")
            for kind, name in (("ORPHANED", "orphan_queue"), ("DUPLICATE", "duplicate_queue"))
        ],
        F.max_by("severity", rank.otherwise(1)).alias("worst_severity"),
    )
    rows = (
        health.select(*[c for c in health.columns if c != "end"], "end.*")
        .join(of_findings, pair, "left")
        .fillna(0.0, ["orphan_queue_minutes", "duplicate_queue_minutes"])
    )
    return conform(rows, GROUP_HEALTH)


_NO_GROUP = "NO_GROUP"


def topics_without_group(
    route_runs: DataFrame, route_states: DataFrame, group_topics: DataFrame
) -> DataFrame:
    """Rows of ``group_health`` for the topics that have a route and that no group subscribes to.

    The group is that of a retry topic's name, else empty: nobody reads the topic, or whoever does
    was not polled.
    """
    topic = ["cluster", "topic"]
    readable = F.transform(
        F.filter("routes", lambda each: each["perm"].bitwiseAND(F.lit(4)) > 0),
        lambda each: F.struct(each["broker_name"], each["read_queue_nums"].alias("queues")),
    )
    queues = F.aggregate(
        F.array_distinct(readable), F.lit(0), lambda sum_, each: sum_ + each["queues"]
    )
    at_end = route_states.select(*topic, "fingerprint", queues.alias("queues"))
    unread = (
        route_runs.join(group_topics, topic, "left_anti")
        .groupBy(*topic)
        .agg(
            F.sum(F.size("snapshot_times")).alias("snapshots"),
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
            F.max_by("fingerprint", "run").alias("fingerprint"),
        )
        .join(at_end, [*topic, "fingerprint"], "inner")
    )
    of_retry = F.regexp_extract("topic", "^%RETRY%(?s)(.*)$", 1)
    nothing = dict.fromkeys(
        ("audited_snapshots", "members", "processes", "idle_clients", "imbalance"), F.lit(0)
    )
    none_yet = dict.fromkeys(
        ("completeness", "orphan_queue_minutes", "duplicate_queue_minutes"), F.lit(0.0)
    )
    rows = unread.withColumns(
        {
            "consumer_group": of_retry,
            "coverage": F.lit(_NO_GROUP),
            "reason": F.lit("no member of any group in the dumps subscribes to the topic"),
            "strategy_source": F.lit(None),
            "worst_severity": F.lit(None),
            **nothing,
            **none_yet,
        }
    )
    return conform(rows, GROUP_HEALTH)
