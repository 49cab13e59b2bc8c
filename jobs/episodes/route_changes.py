"""route runs -> route changes: when the queues of a topic changed under its groups."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.kinds import ROUTE_CHANGED
from jobs.schemas import MOVES

_PERM_READ = 4


def route_changes(
    route_runs: DataFrame, route_states: DataFrame, group_topics: DataFrame
) -> DataFrame:
    """One row per group of a topic and change of the topic's readable queues, at its first poll.

    Until every client has polled the route (30 s) and rebalanced (20 s) they work from different
    lists; what they hold in that time lags what is computed.
    """
    topic = ["cluster", "topic"]
    in_time = Window.partitionBy(*topic).orderBy("run")
    readable = route_runs.join(route_states, [*topic, "fingerprint"], "inner").select(
        *topic, "run", "first_seen", _readable("routes").alias("readable")
    )
    changed = (
        readable.withColumn("before", F.lag("readable").over(in_time))
        .where(F.col("before").isNotNull() & (F.col("before") != F.col("readable")))
        .join(group_topics, topic, "inner")
    )
    nothing = F.array().cast("array<string>")
    return changed.select(
        "cluster",
        "consumer_group",
        "topic",
        F.lit(ROUTE_CHANGED).alias("fault"),
        "first_seen",
        F.col("first_seen").alias("last_seen"),
        F.lit(1).alias("snapshots"),
        F.lit("TRANSIENT").alias("persistence"),
        F.lit(False).alias("ongoing"),
        F.concat(
            F.lit("the readable queues changed from "),
            _told("before"),
            F.lit(" to "),
            _told("readable"),
            F.lit("; for up to 50 s clients work from different lists"),
        ).alias("evidence"),
        F.lit("none, if it was meant: every client follows within 50 s").alias("remedy"),
        nothing.alias("client_ids"),
        nothing.alias("client_addrs"),
        F.array_sort(
            F.array_distinct(
                F.concat(
                    F.transform(F.array_except("readable", "before"), lambda e: e["broker_name"]),
                    F.transform(F.array_except("before", "readable"), lambda e: e["broker_name"]),
                )
            )
        ).alias("broker_names"),
        F.lit(0).alias("queues_affected"),
        F.lit(0).alias("findings_cleared"),
        F.lit(0).alias("findings_left"),
        F.array().cast(MOVES).alias("moves"),
    )


def _readable(routes: str) -> Column:
    """The readable brokers of all nameservers' routes with their queue numbers, sorted."""
    readable = F.filter(
        routes,
        lambda each: (each["perm"].bitwiseAND(_PERM_READ) != 0) & (each["read_queue_nums"] > 0),
    )
    return F.array_sort(
        F.array_distinct(
            F.transform(
                readable,
                lambda each: F.struct(
                    each["broker_name"].alias("broker_name"),
                    each["read_queue_nums"].alias("queues"),
                ),
            )
        )
    )


def _told(readable: str) -> Column:
    brokers = F.transform(
        readable, lambda each: F.concat(each["broker_name"], F.lit(" "), each["queues"])
    )
    none = F.lit("none")
    return F.when(F.size(readable) == 0, none).otherwise(F.array_join(brokers, ", "))
