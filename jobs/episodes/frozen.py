"""stalls -> frozen processes: clients none of whose queues moves while those of others do."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.episodes.episodes import number_episodes, persistence
from jobs.kinds import FROZEN_PROCESS
from jobs.schemas import MOVES

#: More names than this in one sentence nobody reads; the columns have them all.
_MOST_NAMES = 5

_PAIR = ["cluster", "consumer_group", "topic"]
_CLIENT = [*_PAIR, "client_id"]


def frozen_processes(intervals: DataFrame, persistence_seconds: int) -> DataFrame:
    """One row per client and unbroken run of polls in which all its queues with messages stalled.

    From ``queue_intervals``. Where one of its queues moves the process lives: that is a message
    that cannot be consumed, or a lock. A client that shares a queue is left out: either may be the
    one that stands still.
    """
    shares = (
        # When nobody at all moved, that this client did not says nothing about it.
        intervals.where("any_keeps_up")
        .withColumn("client_id", F.explode("owners"))
        .groupBy(*_CLIENT, "snapshot_time")
        .agg(
            F.bool_and(F.col("stalled") & F.col("sole")).alias("frozen"),
            F.min("since").alias("since"),
            F.collect_list(F.struct("broker_name", "queue_id")).alias("queues"),
            F.sum("backlog").alias("waiting"),
            F.max("last_poll").alias("last_poll"),
        )
    )
    in_time = Window.partitionBy(*_CLIENT).orderBy("snapshot_time")
    frozen = shares.withColumn("position", F.row_number().over(in_time)).where("frozen")
    episodes = (
        number_episodes(frozen, _CLIENT)
        .groupBy(*_CLIENT, "episode")
        .agg(
            F.min("since").alias("first_seen"),
            F.max("snapshot_time").alias("last_seen"),
            (F.count(F.lit(1)) + 1).alias("snapshots"),
            F.array_sort(F.array_distinct(F.flatten(F.collect_list("queues")))).alias("queues"),
            F.max_by("waiting", "position").alias("waiting"),
            F.max("last_poll").alias("last_poll"),
        )
        .withColumn("broker_names", _broker_names("queues"))
    )
    nothing = F.array().cast("array<string>")
    return episodes.select(
        *_PAIR,
        F.lit(FROZEN_PROCESS).alias("fault"),
        "first_seen",
        "last_seen",
        "snapshots",
        persistence(F.col("first_seen"), F.col("last_seen"), persistence_seconds).alias(
            "persistence"
        ),
        (F.col("last_seen") == F.col("last_poll")).alias("ongoing"),
        _evidence().alias("evidence"),
        F.lit(
            "see whether the process is stopped, in a long garbage collection or blocked in its "
            "listener, and restart it; its queues go to others about 130 s after its last "
            "heartbeat, at once if it shuts down in order"
        ).alias("remedy"),
        F.array("client_id").alias("client_ids"),
        nothing.alias("client_addrs"),
        "broker_names",
        F.size("queues").alias("queues_affected"),
        F.lit(0).alias("findings_cleared"),
        F.lit(0).alias("findings_left"),
        F.array().cast(MOVES).alias("moves"),
    )


def _evidence() -> Column:
    several, waiting = F.size("queues") > 1, F.col("waiting")
    return F.concat(
        F.col("client_id"),
        F.lit(" holds "),
        _told("queues", "broker_names"),
        F.when(several, F.lit("; none of them moved from ")).otherwise(
            F.lit("; it did not move from ")
        ),
        _time_of_day("first_seen"),
        F.lit(" to "),
        _time_of_day("last_seen"),
        F.lit(" UTC while other clients' queues did; "),
        F.when(waiting == 1, F.lit("1 message waits")).otherwise(
            F.concat(waiting, F.lit(" messages wait"))
        ),
    )


def _time_of_day(time: str) -> Column:
    """In UTC, wherever the session stands."""
    return F.date_format(F.to_utc_timestamp(time, F.current_timezone()), "HH:mm:ss")


def _broker_names(queues: str) -> Column:
    return F.array_distinct(F.transform(queues, lambda each: each["broker_name"]))


def _told(queues: str, broker_names: str) -> Column:
    """Sorted queues as a person writes them down, as the core does: queues 0-1, 3 of a and ..."""

    def of_broker(name: Column) -> Column:
        numbers = F.transform(
            F.filter(queues, lambda each: each["broker_name"] == name), lambda e: e["queue_id"]
        )
        return F.concat(
            F.when(F.size(numbers) > 1, F.lit("queues ")).otherwise(F.lit("queue ")),
            F.array_join(_ranges(numbers), ", "),
            F.lit(" of "),
            name,
        )

    shown = F.transform(F.slice(broker_names, 1, _MOST_NAMES), of_broker)
    more = F.size(broker_names) - _MOST_NAMES
    parts = F.when(
        more > 0, F.concat(shown, F.array(F.concat(more.cast("string"), F.lit(" more brokers"))))
    ).otherwise(shown)
    last = F.element_at(parts, -1)
    return F.when(F.size(parts) == 1, last).otherwise(
        F.concat(
            F.array_join(F.slice(parts, F.lit(1), F.size(parts) - 1), ", "), F.lit(" and "), last
        )
    )


def _ranges(numbers: Column) -> Column:
    firsts = F.filter(numbers, lambda each: ~F.array_contains(numbers, each - 1))
    lasts = F.filter(numbers, lambda each: ~F.array_contains(numbers, each + 1))
    return F.zip_with(
        firsts,
        lasts,
        lambda first, last: F.when(first == last, first.cast("string")).otherwise(
            F.concat(first, F.lit("-"), last)
        ),
    )
