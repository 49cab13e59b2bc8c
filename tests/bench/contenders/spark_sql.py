"""Native Spark SQL: the arithmetic of the two strategies as expressions over arrays."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.bench.contenders.episodes import in_all_views, write_episodes
from tests.bench.contenders.views import VIEW, views_with_clients

#: The members that take part, with the slot of the first of their id (indexOf counts from 0).
_SLOTS = """
    transform(
        filter(clients, c -> c.heard AND array_contains(c.topics, topic)),
        c -> struct(c.strategy AS strategy, array_position(ids, c.client_id) - 1 AS slot))
"""
_CLAIMS = """
    flatten(transform(slots, s ->
        CASE
            WHEN s.strategy = 'AVG_BY_CIRCLE' THEN
                IF(s.slot < q, sequence(s.slot, q - 1, n), array())
            WHEN q DIV n + IF(s.slot < q % n, 1, 0) = 0 THEN array()
            ELSE sequence(
                s.slot * (q DIV n) + least(s.slot, q % n),
                s.slot * (q DIV n) + least(s.slot, q % n)
                    + q DIV n + IF(s.slot < q % n, 1, 0) - 1)
        END))
"""


def run(spark: SparkSession, snapshots: Path, output: Path) -> None:
    """No row leaves the JVM, and no claim becomes a row: only findings do."""
    claims = (
        views_with_clients(spark, snapshots)
        .withColumns(
            {
                "ids": F.col("clients.client_id"),
                "n": F.size("clients").cast("bigint"),
                "q": F.size("queues").cast("bigint"),
            }
        )
        .withColumn("slots", F.expr(_SLOTS))
        .select(*VIEW, "queues", "q", F.array_sort(F.expr(_CLAIMS)).alias("claims"))
    )
    rows = claims.select(
        *VIEW,
        "queues",
        F.expr("array_except(sequence(0L, q - 1), claims)").alias("orphans"),
        F.expr(
            "array_distinct(filter(claims, (claim, i) -> i > 0 AND claim = get(claims, i - 1)))"
        ).alias("duplicates"),
    )
    positions = [F.col(kind).cast("array<int>") for kind in ("orphans", "duplicates")]
    write_episodes(spark, snapshots, in_all_views(spark, snapshots, rows, *positions), output)
