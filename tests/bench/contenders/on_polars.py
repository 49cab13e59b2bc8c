"""Polars on one node: lists, slots, claims and episodes as one lazy query."""

from __future__ import annotations

from pathlib import Path

import polars as pl

_AT_SNAPSHOT = ["snapshot_time", "consumer_group"]
_LIST = [*_AT_SNAPSHOT, "broker_name"]
_QUEUE = ["consumer_group", "topic", "broker_name", "queue_id", "kind"]


def _scan(snapshots: Path, table: str) -> pl.LazyFrame:
    return pl.scan_parquet(snapshots / table / "*.parquet")


def _queues(snapshots: Path) -> pl.LazyFrame:
    """One row per snapshot, topic and queue, with its position in RocketMQ's order."""
    at_route = ["snapshot_time", "topic"]
    return (
        _scan(snapshots, "topic_routes")
        .filter((pl.col("read_queue_nums") > 0) & (pl.col("perm") & 4 != 0))
        .select(*at_route, "broker_name", queue_id=pl.int_ranges(0, "read_queue_nums"))
        .explode("queue_id")
        .sort(*at_route, "broker_name", "queue_id")
        .with_columns(
            position=pl.int_range(pl.len()).over(at_route), queues=pl.len().over(at_route)
        )
    )


def _claims(snapshots: Path, queues: pl.LazyFrame) -> pl.LazyFrame:
    """One row per claim: who is listed takes the slot of the first of its id."""
    silent = pl.col("snapshot_time") - pl.col("last_heartbeat_at")
    topics = pl.col("subscriptions").list.eval(pl.element().struct.field("topic"))
    listed = (
        _scan(snapshots, "heartbeats")
        .select(*_LIST, "client_id", "strategy", topics.alias("topic"), silent.alias("silent"))
        .with_columns(
            slot=pl.col("client_id").rank("min").over(_LIST).cast(pl.Int64) - 1,
            n=pl.len().over(_LIST).cast(pl.Int64),
        )
        .filter(pl.col("silent") <= pl.duration(seconds=130))
        .explode("topic")
    )
    lengths = queues.select("snapshot_time", "topic", q=pl.col("queues").cast(pl.Int64)).unique()
    size, rest = pl.col("q") // pl.col("n"), pl.col("q") % pl.col("n")
    circle = pl.col("strategy") == "AVG_BY_CIRCLE"
    start = (
        pl.when(circle)
        .then("slot")
        .otherwise(pl.col("slot") * size + pl.min_horizontal(pl.col("slot"), rest))
    )
    count = size + (pl.col("slot") < rest).cast(pl.Int64)
    step = pl.when(circle).then("n").otherwise(1)
    return (
        listed.join(lengths, on=["snapshot_time", "topic"])
        .select(*_LIST, "topic", start=start, step=step, number=pl.int_ranges(0, count))
        .explode("number", empty_as_null=False)
        .select(*_LIST, "topic", position=pl.col("start") + pl.col("step") * pl.col("number"))
    )


def _found(snapshots: Path) -> pl.LazyFrame:
    """One row per snapshot, topic and queue that every view finds orphaned, or duplicated."""
    queues = _queues(snapshots)
    topics = (
        _scan(snapshots, "heartbeats")
        .select(
            "consumer_group",
            pl.col("subscriptions").list.eval(pl.element().struct.field("topic")).alias("topic"),
        )
        .explode("topic")
        .unique()
    )
    known = (
        _scan(snapshots, "broker_polls")
        .filter(pl.col("outcome") != "NO_ANSWER")
        .group_by(_AT_SNAPSHOT)
        .agg(views=pl.len())
    )
    owned = (
        _claims(snapshots, queues)
        .group_by(*_LIST, "topic", "position")
        .agg(owners=pl.len())
        .group_by(*_AT_SNAPSHOT, "topic", "position")
        .agg(doubled=(pl.col("owners") > 1).sum())
    )
    return (
        known.join(topics, on="consumer_group")
        .join(queues, on=["snapshot_time", "topic"])
        .join(owned, on=[*_AT_SNAPSHOT, "topic", "position"], how="left")
        .with_columns(
            kind=pl.when(pl.col("doubled").is_null())
            .then(pl.lit("ORPHANED"))
            .when(pl.col("doubled") == pl.col("views"))
            .then(pl.lit("DUPLICATE"))
        )
        .filter(pl.col("kind").is_not_null())
    )


def run(_: None, snapshots: Path, output: Path) -> None:
    """In time by the group's own snapshots, then islands of consecutive ones."""
    positions = (
        _scan(snapshots, "broker_polls")
        .filter(pl.col("outcome") != "NO_ANSWER")
        .select(_AT_SNAPSHOT)
        .unique()
        .with_columns(at=pl.col("snapshot_time").rank("ordinal").over("consumer_group"))
    )
    (output / "findings").mkdir(parents=True, exist_ok=True)
    (
        _found(snapshots)
        .join(positions, on=_AT_SNAPSHOT)
        .with_columns(
            island=pl.col("at").cast(pl.Int64)
            - pl.col("at").rank("ordinal").over(_QUEUE).cast(pl.Int64)
        )
        .group_by(*_QUEUE, "island")
        .agg(first_seen=pl.col("snapshot_time").min(), last_seen=pl.col("snapshot_time").max())
        .select(*_QUEUE, "first_seen", "last_seen")
        .collect()
        .write_parquet(output / "findings" / "findings.parquet")
    )
