"""findings, against the previous published run -> what is new, what goes on, what ended."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.schemas import FORMER_FINDINGS

NEW = "NEW"
PERSISTING = "PERSISTING"
RESOLVED = "RESOLVED"
NOT_AUDITED = "NOT_AUDITED"

#: What tells of a finding to whoever reads that it has ended.
_TOLD = (
    "cluster",
    "consumer_group",
    "topic",
    "broker_name",
    "queue_id",
    "first_seen",
    "last_seen",
    "severity",
    "causes",
)


def open_findings(*tables: DataFrame) -> DataFrame:
    """Of the finding tables of a run, one row per finding that had lasted and was not over.

    Columns: ``finding_id``, ``kind`` and what ``former_findings`` tells of it.
    """
    every = reduce(DataFrame.unionByName, tables)
    lasting = every.where((F.col("persistence") == "PERSISTENT") & F.col("ongoing"))
    return (
        lasting.withColumn("first_seen", F.col("episode_first_seen"))
        .groupBy("finding_id", "kind")
        .agg(F.max_by(F.struct(*_TOLD), "last_seen").alias("told"))
        .select("finding_id", "kind", "told.*")
    )


def first_status(findings: DataFrame) -> DataFrame:
    """The findings with ``status`` where there is no previous run: what lasts is NEW."""
    is_new = F.when(F.col("persistence") == "PERSISTENT", F.lit(NEW))
    return findings.withColumn("status", is_new)


def with_status(findings: DataFrame, before: DataFrame) -> DataFrame:
    """The findings with ``status``, against the open findings of the previous run.

    PERSISTING where it was open then and lasts or is not over; NEW where it lasts; null for what
    passed by itself.
    """
    known = before.select("finding_id", F.lit(True).alias("_known")).distinct()
    lasts = F.col("persistence") == "PERSISTENT"
    status = F.when(F.col("_known") & (lasts | F.col("ongoing")), F.lit(PERSISTING)).when(
        lasts, F.lit(NEW)
    )
    return (
        findings.join(F.broadcast(known), "finding_id", "left")
        .withColumn("status", status)
        .drop("_known")
    )


def former_findings(findings: DataFrame, before: DataFrame, health: DataFrame) -> DataFrame:
    """The table ``former_findings``: what was open in the previous run and is not there any more.

    RESOLVED where the group and topic were recomputed in this window; NOT_AUDITED where nothing
    was known of them: then nobody can tell.
    """
    lasts = (F.col("persistence") == "PERSISTENT") | F.col("ongoing")
    gone = before.join(findings.where(lasts).select("finding_id"), "finding_id", "left_anti")
    audited = health.where(F.col("audited_snapshots") > 0).select(
        "cluster", "consumer_group", "topic", F.lit(RESOLVED).alias("status")
    )
    rows = gone.join(audited, ["cluster", "consumer_group", "topic"], "left")
    return conform(
        rows.withColumn("status", F.coalesce("status", F.lit(NOT_AUDITED))), FORMER_FINDINGS
    )
