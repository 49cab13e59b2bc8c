"""Tables of events: a row for each heartbeat, at a time of its own, as a sink has them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

from jobs.schemas import HEARTBEATS, TOPIC_ROUTES
from tests.support.snapshots import Row, at, heartbeat_row, route_row, subscriptions, table

#: Whose rows share a time.
SHARE: dict[str, Callable[[Row], Any]] = {
    "connection": lambda row: (row["broker_name"], row["broker_id"], row["client_addr"]),
    "client": lambda row: (row["client_id"], row["client_addr"].split(":")[0]),
    "broker": lambda row: (row["broker_name"], row["broker_id"]),
}
#: What is wrong with ``three_groups``.
ORPHANED = {("TWICE", n) for n in (3, 4, 5)} | {("MIXED", n) for n in (4, 6)}
DUPLICATE = {("TWICE", n) for n in (0, 1, 2)} | {("MIXED", n) for n in (1, 3)}


def late(heartbeats: pa.Table, by: str, seed: int = 1, step_ms: int = 1) -> pa.Table:
    """Each row 0 to 59 s later: all of a connection, a client or a broker by the same."""
    dice = Random(f"{by} {seed}")  # noqa: S311 - reproducible, not secret
    names = ["broker_name", "broker_id", "client_id", "client_addr"]
    late_by: dict[Any, int] = {}
    added = []
    for row in heartbeats.select(names).to_pylist():
        key = SHARE[by](row)
        if key not in late_by:
            late_by[key] = dice.randrange(0, 59_001, step_ms) * 1000
        added.append(late_by[key])
    place = heartbeats.column_names.index("snapshot_time")
    field = heartbeats.schema.field(place)
    times = heartbeats["snapshot_time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    moved = [time + more for time, more in zip(times.to_pylist(), added, strict=True)]
    column = pa.array(moved, pa.int64()).cast(pa.timestamp("us", "UTC"))
    return heartbeats.set_column(place, field, column)


def three_groups(rounds: int = 8) -> dict[str, pa.Table]:
    """Rounds of two brokers with four queues each: a healthy group; one with an id that two
    processes share; one whose two members divide by different strategies.
    """
    groups = {
        "WELL": [("c1", 1, "AVG"), ("c2", 2, "AVG")],
        "TWICE": [("a", 1, "AVG"), ("a", 2, "AVG"), ("b", 3, "AVG")],
        "MIXED": [("x", 1, "AVG"), ("y", 2, "AVG_BY_CIRCLE")],
    }
    brokers = ("broker-a", "broker-b")
    heartbeats = [
        heartbeat_row(
            consumer_group=group,
            broker_name=broker,
            client_id=client_id,
            client_addr=f"10.0.0.{host}:{7000 + 10 * place + host}",
            strategy=strategy,
            strategy_source="RUNNING_INFO",
            subscriptions=subscriptions(f"T_{group}"),
            snapshot_time=at(60 * round_),
        )
        for round_ in range(rounds)
        for place, broker in enumerate(brokers)
        for group, members in groups.items()
        for client_id, host, strategy in members
    ]
    routes = [
        route_row(topic=f"T_{group}", broker_name=broker, snapshot_time=at(60 * round_))
        for round_ in range(rounds)
        for broker in brokers
        for group in groups
    ]
    return {
        "heartbeats": table(HEARTBEATS, heartbeats),
        "topic_routes": table(TOPIC_ROUTES, routes),
    }


def lasting_queues(rows: pa.Table) -> set[tuple[str, int]]:
    """Group, and the number of a queue among all of the topic, of rows that last."""
    return {
        (row["consumer_group"], row["queue_id"] + 4 * (row["broker_name"] == "broker-b"))
        for row in rows.to_pylist()
        if row["persistence"] == "PERSISTENT"
    }
