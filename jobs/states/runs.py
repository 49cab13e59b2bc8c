"""fingerprints -> runs: the stretches of snapshots in which nothing changed (gaps and islands)."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def find_runs(fingerprints: DataFrame, keys: list[str]) -> DataFrame:
    """One row per ``keys`` and unbroken run of snapshots with one fingerprint.

    Columns: the keys, ``fingerprint``, ``run`` (0, 1, ... in time within the keys),
    ``first_seen``, ``last_seen`` and ``snapshot_times`` (ascending). A missing snapshot is a gap
    of knowledge, not a change: it ends no run.
    """
    in_time = Window.partitionBy(*keys).orderBy("snapshot_time")
    changed = F.coalesce(F.col("fingerprint") != F.lag("fingerprint").over(in_time), F.lit(False))
    numbered = fingerprints.withColumn("_changed", changed.cast("int")).withColumn(
        "run", F.sum("_changed").over(in_time)
    )
    return (
        numbered.groupBy(*keys, "run")
        .agg(
            F.first("fingerprint").alias("fingerprint"),
            F.array_sort(F.collect_list("snapshot_time")).alias("snapshot_times"),
        )
        .select(
            *keys,
            "fingerprint",
            "run",
            F.element_at("snapshot_times", 1).alias("first_seen"),
            F.element_at("snapshot_times", -1).alias("last_seen"),
            "snapshot_times",
        )
    )
