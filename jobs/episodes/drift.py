"""states and client states -> drift: what clients held, against what was computed for them.

A client computes its share and then has to get it: a broker that it cannot reach, a lock that it
is not given, an offset that cannot be read, and it holds less than its share. Just after a change
it holds what it had before.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.episodes.episodes import number_episodes, persistence
from jobs.episodes.route_changes import ROUTE_CHANGED

HELD_NOT_COMPUTED = "HELD_NOT_COMPUTED"
COMPUTED_NOT_HELD = "COMPUTED_NOT_HELD"
STATE_CHANGED = "STATE_CHANGED"

#: A client polls the route every 30 s and rebalances every 20 s.
_ROUTE_LAG_SECONDS = 50
_REBALANCE_SECONDS = 20

_PROCESS = ["cluster", "consumer_group", "client_id", "start_timestamp"]


def drift_episodes(
    segments: DataFrame,
    states: DataFrame,
    client_states: DataFrame,
    changes: DataFrame,
    persistence_seconds: int,
) -> DataFrame:
    """One row per process, queue, drift and unbroken run of its running infos that show it.

    ``probability`` is the share of the views under which the queue was computed for the process:
    where the brokers' lists differ, one that is computed at times may well not be held.
    ``attributed_to`` says what had just changed when it was last seen, null if nothing had.
    """
    drifting = _compare(_observations(client_states), _computed(segments, states))
    recent = changes.select(
        "cluster",
        "consumer_group",
        "topic",
        F.col("first_seen").alias("changed_at"),
    )
    pair = ["cluster", "consumer_group", "topic"]
    lag = F.col("snapshot_time").cast("double") - F.col("changed_at").cast("double")
    by_route = (
        drifting.select(*pair, "snapshot_time")
        .distinct()
        .join(recent, pair, "inner")
        .where(lag.between(0, _ROUTE_LAG_SECONDS))
        .select(*pair, "snapshot_time", F.lit(True).alias("_route_changed"))
        .distinct()
    )
    since_state = F.col("snapshot_time").cast("double") - F.col("state_since").cast("double")
    cause = F.when(F.col("_route_changed"), F.lit(ROUTE_CHANGED)).when(
        since_state < _REBALANCE_SECONDS, F.lit(STATE_CHANGED)
    )
    told = drifting.join(by_route, [*pair, "snapshot_time"], "left").withColumn(
        "attributed_to", cause
    )
    keys = [*_PROCESS, "topic", "broker_name", "queue_id", "drift"]
    numbered = number_episodes(told, keys)
    return (
        numbered.groupBy(*keys, "episode")
        .agg(
            F.min("snapshot_time").alias("first_seen"),
            F.max("snapshot_time").alias("last_seen"),
            F.count(F.lit(1)).alias("observations"),
            F.max("probability").alias("probability"),
            # What lasts longer than the change explains is not explained by it.
            F.max_by("attributed_to", "position").alias("attributed_to"),
        )
        .withColumn(
            "persistence",
            persistence(F.col("first_seen"), F.col("last_seen"), persistence_seconds),
        )
    )


def _observations(client_states: DataFrame) -> DataFrame:
    """One row per process and round that it answered in: ``queues`` held, ``position`` in time.

    Several brokers may have forwarded the question; processes that share an id are told apart by
    the time at which they started.
    """
    answered = client_states.where(
        (F.col("source") == "RUNNING_INFO")
        & F.col("error_code").isNull()
        & F.col("queues").isNotNull()
    )
    once = answered.groupBy(*_PROCESS, "snapshot_time").agg(
        F.max_by("queues", "observed_at").alias("queues")
    )
    in_time = Window.partitionBy(*_PROCESS).orderBy("snapshot_time")
    return once.withColumn("position", F.row_number().over(in_time))


def _computed(segments: DataFrame, states: DataFrame) -> DataFrame:
    """One row per segment of a recomputed state: ``computed``, by client id its queues."""
    one_queue = states.where("known").select(
        "cluster",
        "consumer_group",
        "topic",
        "state_id",
        F.explode("allocations").alias("allocation"),
    )
    by_client = (
        one_queue.select(
            "state_id",
            "allocation.client_id",
            "allocation.view_weight",
            F.explode("allocation.queues").alias("queue"),
        )
        .groupBy("state_id", "client_id", "queue.broker_name", "queue.queue_id")
        .agg(F.least(F.sum("view_weight"), F.lit(1.0)).alias("probability"))
        .groupBy("state_id")
        .agg(
            F.collect_list(F.struct("client_id", "broker_name", "queue_id", "probability")).alias(
                "computed"
            )
        )
    )
    pair = ["cluster", "consumer_group", "topic"]
    in_time = Window.partitionBy(*pair).orderBy("first_seen")
    # When the first state of the window began nobody saw.
    since = F.when(F.row_number().over(in_time) > 1, F.col("first_seen"))
    return (
        segments.select(*pair, "state_id", "first_seen", "last_seen", since.alias("state_since"))
        .join(one_queue.select("state_id").distinct(), "state_id", "left_semi")
        .join(by_client, "state_id", "left")
    )


def _compare(observations: DataFrame, computed: DataFrame) -> DataFrame:
    """One row per observation and queue that is held and not computed, or the other way round."""
    in_force = observations.join(computed, ["cluster", "consumer_group"], "inner").where(
        F.col("snapshot_time").between(F.col("first_seen"), F.col("last_seen"))
    )
    held = F.filter("queues", lambda each: (each["topic"] == F.col("topic")) & ~each["dropped"])
    own = F.filter(
        F.coalesce("computed", F.array().cast(in_force.schema["computed"].dataType)),
        lambda each: each["client_id"] == F.col("client_id"),
    )
    sides = in_force.select(
        *_PROCESS,
        "snapshot_time",
        "position",
        "topic",
        "state_since",
        held.alias("held"),
        own.alias("own"),
    )
    not_computed = F.filter("held", lambda each: ~F.exists("own", lambda o: _same(o, each)))
    not_held = F.filter("own", lambda each: ~F.exists("held", lambda h: _same(h, each)))
    drifts = F.concat(
        F.transform(not_computed, lambda each: _drift(HELD_NOT_COMPUTED, each, F.lit(0.0))),
        F.transform(not_held, lambda each: _drift(COMPUTED_NOT_HELD, each, each["probability"])),
    )
    return sides.select(
        *[c for c in sides.columns if c not in ("held", "own")], F.explode(drifts).alias("d")
    ).select(*[c for c in sides.columns if c not in ("held", "own")], "d.*")


def _same(one: Column, other: Column) -> Column:
    return (one["broker_name"] == other["broker_name"]) & (one["queue_id"] == other["queue_id"])


def _drift(kind: str, queue: Column, probability: Column) -> Column:
    return F.struct(
        F.lit(kind).alias("drift"),
        queue["broker_name"].alias("broker_name"),
        queue["queue_id"].alias("queue_id"),
        probability.alias("probability"),
    )
