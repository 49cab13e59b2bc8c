"""episodes -> duplicate_queues, orphaned_queues, stalled_queues, stacked_client_ids, ..."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.reports.known_issues import KNOWN_ISSUE, not_marked
from jobs.schemas import (
    GROUP_FAULTS,
    STACKED_CLIENT_IDS,
    STALLED_QUEUES,
    UNREADABLE_QUEUES,
    Table,
)
from jobs.settings import SeverityThresholds

#: Messages that came and were not read pile up from this share on.
_PILED_UP_SHARE = 0.1


def severity(thresholds: SeverityThresholds) -> Column:
    """INFO: it passed by itself. WARNING, CRITICAL: it persists, by kind, probability and harm.

    A queue that nobody reads loses time until somebody does; one that two read is read twice but
    read: a lasting orphan is critical, a lasting duplicate a warning. Where messages pile up they
    are certainly not read, however improbable the orphan (a few are always on their way: a tenth of
    what came counts); and where messages are to be consumed in order, two that read a queue break
    the order.
    """
    persists = F.col("persistence") == "PERSISTENT"
    likely = F.col("probability")
    most_likely = likely >= thresholds.critical_probability
    unread = F.coalesce(F.col("unread_share") >= _PILED_UP_SHARE, F.lit(False))
    orderly = F.coalesce("orderly", F.lit(False))
    return (
        F.when(~persists | (likely < thresholds.warning_probability), F.lit("INFO"))
        .when((F.col("kind") == "ORPHANED") & (most_likely | unread), F.lit("CRITICAL"))
        .when((F.col("kind") == "DUPLICATE") & most_likely & orderly, F.lit("CRITICAL"))
        .otherwise(F.lit("WARNING"))
    )


def stall_severity() -> Column:
    """CRITICAL: it persists and messages pile up; WARNING: it persists; INFO: it passed."""
    return (
        F.when(F.col("persistence") != "PERSISTENT", F.lit("INFO"))
        .when(F.col("backlog_growth") > 0, F.lit("CRITICAL"))
        .otherwise(F.lit("WARNING"))
    )


def finding_id() -> Column:
    """Stable over runs and restarts: cluster, group, topic, queue, kind."""
    identity = F.to_json(
        F.struct("cluster", "consumer_group", "topic", "broker_name", "queue_id", "kind")
    )
    return F.substring(F.md5(identity), 1, 16)


def describe_findings(
    episodes: DataFrame,
    queue_offsets: DataFrame | None,
    client_states: DataFrame | None,
    thresholds: SeverityThresholds,
) -> DataFrame:
    """The episodes of ``queue_episodes`` with all that the tables say of them."""
    return (
        _with_orderly(_with_backlog(episodes, queue_offsets), client_states)
        .withColumn("severity", severity(thresholds))
        .withColumn("finding_id", finding_id())
    )


def _with_backlog(episodes: DataFrame, queue_offsets: DataFrame | None) -> DataFrame:
    """Adds ``backlog``, ``backlog_growth`` and ``unread_share``: the growth, of what came.

    Null where the offsets do not tell.
    """
    if queue_offsets is None:
        unknown = F.lit(None).cast("bigint")
        return episodes.withColumns(
            {
                "backlog": unknown,
                "backlog_growth": unknown,
                "unread_share": F.lit(None).cast("double"),
            }
        )
    queue = ["cluster", "consumer_group", "topic", "broker_name", "queue_id"]
    lag = F.greatest(F.col("broker_offset") - F.col("consumer_offset"), F.lit(0))
    lags = queue_offsets.groupBy(*queue).agg(
        F.array_sort(
            F.collect_list(F.struct("snapshot_time", lag.alias("lag"), "broker_offset"))
        ).alias("_lags")
    )
    # What lies there when the fault ends; what was seen later has been consumed since.
    by_then = F.filter("_lags", lambda each: each["snapshot_time"] <= F.col("last_seen"))
    before = F.filter("_lags", lambda each: each["snapshot_time"] <= F.col("first_seen"))
    end = F.get(F.slice("_by_then", -1, 1), F.lit(0))
    start = F.coalesce(F.get(F.slice(before, -1, 1), F.lit(0)), F.get("_by_then", F.lit(0)))
    return (
        episodes.join(lags, queue, "left")
        .withColumn("_by_then", by_then)
        .withColumns(
            {
                "backlog": end["lag"],
                "backlog_growth": F.when(
                    end["snapshot_time"] > start["snapshot_time"], end["lag"] - start["lag"]
                ),
                "came": end["broker_offset"] - start["broker_offset"],
            }
        )
        .withColumn("unread_share", F.try_divide("backlog_growth", "came"))
        .drop("_lags", "_by_then", "came")
    )


def _with_orderly(episodes: DataFrame, client_states: DataFrame | None) -> DataFrame:
    """Adds ``orderly``: whether a client of the group consumes in order; null: none was asked."""
    if client_states is None:
        return episodes.withColumn("orderly", F.lit(None).cast("boolean"))
    group = ["cluster", "consumer_group"]
    orderly = client_states.groupBy(*group).agg(F.bool_or("consume_orderly").alias("orderly"))
    return episodes.join(orderly, group, "left")


def queue_findings(described: DataFrame, kind: str, table: Table) -> DataFrame:
    """One of the two tables of faulty queues."""
    rows = described.where(F.col("kind") == kind).withColumns(
        {"status": F.lit(None).cast("string"), KNOWN_ISSUE: not_marked()}
    )
    return conform(rows, table)


def group_faults(*faults: DataFrame) -> DataFrame:
    """The table ``group_faults``: what ``fault_episodes`` and the like found, put together."""
    marked = [conform(each.withColumn(KNOWN_ISSUE, not_marked()), GROUP_FAULTS) for each in faults]
    return reduce(DataFrame.unionByName, marked)


def stalled_queues(episodes: DataFrame) -> DataFrame:
    """The table ``stalled_queues``: from ``stall_episodes``."""
    rows = episodes.withColumns({"severity": stall_severity(), KNOWN_ISSUE: not_marked()})
    return conform(rows, STALLED_QUEUES)


def stacked_client_ids(episodes: DataFrame) -> DataFrame:
    """The table ``stacked_client_ids``."""
    return conform(episodes.withColumn(KNOWN_ISSUE, not_marked()), STACKED_CLIENT_IDS)


def unreadable_queues(segments: DataFrame, states: DataFrame) -> DataFrame:
    """The table ``unreadable_queues``: from the first to the last snapshot that shows it.

    Of all segments: the route tells, whether or not the group could be recomputed.
    """
    pair = ["cluster", "consumer_group", "topic"]
    unreadable = states.where(F.size("unreadable") > 0).select(*pair, "state_id", "unreadable")
    rows = (
        segments.join(unreadable, [*pair, "state_id"], "inner")
        .select("*", F.explode("unreadable").alias("queue"))
        .groupBy("cluster", "consumer_group", "topic", "queue.broker_name", "queue.queue_id")
        .agg(
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
            F.sum("snapshots").alias("snapshots"),
        )
    )
    return conform(rows, UNREADABLE_QUEUES)
