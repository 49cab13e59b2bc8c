"""A Python UDF per client row: each member asks for its own share, as RocketMQ's clients do."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.bench.contenders.episodes import in_all_views, write_episodes
from tests.bench.contenders.views import VIEW, views_with_clients


def allocate(strategy: str, client_id: str, client_ids: list[str], queues: int) -> list[int]:
    """The positions of the queues that a client takes."""
    index, clients = client_ids.index(client_id), len(client_ids)
    if strategy == "AVG_BY_CIRCLE":
        return list(range(index, queues, clients))
    size, rest = divmod(queues, clients)
    start = index * size + min(index, rest)
    return list(range(start, start + size + (index < rest)))


def run(spark: SparkSession, snapshots: Path, output: Path) -> None:
    """The list of all client ids travels to Python with every client."""
    views = views_with_clients(spark, snapshots)
    clients = (
        views.select(*VIEW, "queues", F.col("clients.client_id").alias("ids"), F.explode("clients"))
        .select(*VIEW, "queues", "ids", "col.*")
        .where(F.array_contains("topics", F.col("topic")) & F.col("heard"))
    )
    claim = F.udf(allocate, "array<int>", useArrow=False)
    claims = clients.select(
        *VIEW,
        F.explode(claim("strategy", "client_id", "ids", F.size("queues"))).alias("position"),
    )
    owners = (
        claims.groupBy(*VIEW, "position")
        .agg(F.count("*").alias("owners"))
        .groupBy(*VIEW)
        .agg(
            F.collect_list("position").alias("owned"),
            F.collect_list(F.when(F.col("owners") > 1, F.col("position"))).alias("duplicates"),
        )
    )
    nothing = F.array().cast("array<int>")
    rows = views.join(owners, VIEW, "left")
    every = F.sequence(F.lit(0), F.size("queues") - 1)
    found = in_all_views(
        spark,
        snapshots,
        rows,
        F.array_except(every, F.coalesce("owned", nothing)),
        F.coalesce("duplicates", nothing),
    )
    write_episodes(spark, snapshots, found, output)
