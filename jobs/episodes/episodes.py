"""timeline -> episodes: how long a fault lasted without a break, over all the states it was in."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.kinds import STACKED
from rebalance_core.repairs import STALE_CHANNEL

PERSISTENT = "PERSISTENT"
TRANSIENT = "TRANSIENT"


def number_episodes(faults: DataFrame, keys: list[str], position: str = "position") -> DataFrame:
    """Adds ``episode``: the same number while ``position`` counts on without a gap.

    ``faults`` has one row per ``keys`` and position in which the fault was there.
    """
    in_time = Window.partitionBy(*keys).orderBy(position)
    broken = F.coalesce(F.col(position) - F.lag(position).over(in_time) > 1, F.lit(False))
    return faults.withColumn("_broken", broken.cast("int")).select(
        *faults.columns, F.sum("_broken").over(in_time).alias("episode")
    )


def persistence(first_seen: Column, last_seen: Column, persistence_seconds: int) -> Column:
    """PERSISTENT where it was seen over at least so many seconds, else TRANSIENT."""
    seconds = last_seen.cast("double") - first_seen.cast("double")
    return F.when(seconds >= persistence_seconds, F.lit(PERSISTENT)).otherwise(F.lit(TRANSIENT))


def queue_episodes(timeline: DataFrame, persistence_seconds: int) -> DataFrame:
    """One row per cluster, consumer_group, topic, kind, queue and unbroken run of one certainty.

    ``persistence`` and the ``episode_`` times are those of the whole episode, whatever the
    certainty in it: a fault that flickers between CERTAIN and POSSIBLE is one fault. Each row's own
    times hold its certainty exactly.
    """
    queue = ["cluster", "consumer_group", "topic", "kind", "broker_name", "queue_id"]
    faults = timeline.where(F.size("findings") > 0).select(
        "cluster",
        "consumer_group",
        "topic",
        "position",
        "known_position",
        "first_seen",
        "last_seen",
        "snapshots",
        "timeline_end",
        "completeness",
        "strategy_source",
        F.explode("findings").alias("finding"),
    )
    faults = faults.select(*[c for c in faults.columns if c != "finding"], "finding.*")
    numbered = number_episodes(faults, queue, "known_position")
    in_time = Window.partitionBy(*queue, "episode").orderBy("position")
    turned = F.coalesce(F.col("certainty") != F.lag("certainty").over(in_time), F.lit(False))
    turns = numbered.withColumn("_turned", turned.cast("int")).withColumn(
        "_stretch", F.sum("_turned").over(in_time)
    )
    rows = turns.groupBy(*queue, "episode", "_stretch", "certainty").agg(
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.sum("snapshots").alias("snapshots"),
        F.max("probability").alias("probability"),
        F.min("completeness").alias("completeness"),
        F.max_by("claimants", "position").alias("claimants"),
        F.max_by("strategy_source", "position").alias("strategy_source"),
        F.collect_list(F.struct("causes", "first_seen", "last_seen")).alias("blamed"),
        F.max("timeline_end").alias("timeline_end"),
    )
    whole = Window.partitionBy(*queue, "episode")
    spanned = rows.withColumns(
        {
            "episode_first_seen": F.min("first_seen").over(whole),
            "episode_last_seen": F.max("last_seen").over(whole),
            "causes": _causes(persistence_seconds),
        }
    ).drop("blamed")
    return spanned.withColumns(
        {
            "persistence": persistence(
                F.col("episode_first_seen"), F.col("episode_last_seen"), persistence_seconds
            ),
            "ongoing": F.col("last_seen") == F.col("timeline_end"),
        }
    )


def _causes(persistence_seconds: int) -> Column:
    """The causes that lasted themselves; all of them where none did.

    What was to blame for a moment, as while the clients started, is none of what lasts.
    """
    every = F.array_sort(F.array_distinct(F.flatten(F.transform("blamed", lambda e: e["causes"]))))

    def lasted(cause: Column) -> Column:
        shown = F.filter("blamed", lambda each: F.array_contains(each["causes"], cause))
        first_seen = F.array_min(F.transform(shown, lambda each: each["first_seen"]))
        last_seen = F.array_max(F.transform(shown, lambda each: each["last_seen"]))
        return persistence(first_seen, last_seen, persistence_seconds) == PERSISTENT

    lasting = F.filter(every, lasted)
    return F.when(F.size(lasting) > 0, lasting).otherwise(every)


def fault_episodes(timeline: DataFrame, persistence_seconds: int) -> DataFrame:
    """One row per cluster, consumer_group, topic, fault and unbroken run of snapshots.

    What is told of the fault is that of the last state that shows it.
    """
    pair = ["cluster", "consumer_group", "topic"]
    faults = timeline.where(F.size("faults") > 0).select(
        *pair,
        "position",
        "known_position",
        "first_seen",
        "last_seen",
        "snapshots",
        "timeline_end",
        F.explode("faults").alias("told"),
    )
    numbered = number_episodes(
        faults.select(*[c for c in faults.columns if c != "told"], "told.fault", "told"),
        [*pair, "fault"],
        "known_position",
    )
    episodes = numbered.groupBy(*pair, "fault", "episode").agg(
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.sum("snapshots").alias("snapshots"),
        F.max("timeline_end").alias("timeline_end"),
        F.max("told.queues_affected").alias("most_affected"),
        F.max_by("told", "position").alias("told"),
    )
    return episodes.select(
        *[c for c in episodes.columns if c != "told"],
        *[f"told.{name}" for name in _TOLD],
        F.col("most_affected").alias("queues_affected"),
        persistence(F.col("first_seen"), F.col("last_seen"), persistence_seconds).alias(
            "persistence"
        ),
        (F.col("last_seen") == F.col("timeline_end")).alias("ongoing"),
    )


_TOLD = (
    "evidence",
    "remedy",
    "client_ids",
    "client_addrs",
    "broker_names",
    "findings_cleared",
    "findings_left",
    "moves",
)


def stacked_id_episodes(timeline: DataFrame, persistence_seconds: int) -> DataFrame:
    """One row per cluster, consumer_group, client_id and unbroken run of snapshots.

    The id's copies are the group's, whatever the topic: the timelines of its topics are put
    together by the group's own runs, and the queues of all topics are added up.
    """
    group = ["cluster", "consumer_group"]
    run = [*group, "group_run"]
    stacked = timeline.where(F.size("stacked") > 0).select(
        *run,
        F.array("topic").alias("topics"),
        "first_seen",
        "last_seen",
        "snapshots",
        "timeline_end",
        F.explode("stacked").alias("stacked_id"),
    )
    stacked = stacked.select(*[c for c in stacked.columns if c != "stacked_id"], "stacked_id.*")
    # A run is cut where a topic's route changes: its parts follow each other, its topics do not.
    per_topic = _merge(stacked, [*run, "client_id", "topics"], snapshots=F.sum, queues=F.max)
    per_run = _merge(per_topic, [*run, "client_id"], snapshots=F.max, queues=F.sum)
    # Runs in which no topic told anything end no episode: number those that did.
    told = timeline.select(*run).distinct()
    in_time = Window.partitionBy(*group).orderBy("group_run")
    positions = told.withColumn("position", F.row_number().over(in_time))
    numbered = number_episodes(per_run.join(positions, run, "inner"), [*group, "client_id"])
    episodes = _merge(numbered, [*group, "client_id", "episode"], snapshots=F.sum, queues=F.max)
    verdict = F.when(F.col("processes") > 1, F.lit(STACKED)).otherwise(F.lit(STALE_CHANNEL))
    return episodes.withColumns(
        {
            "persistence": persistence(
                F.col("first_seen"), F.col("last_seen"), persistence_seconds
            ),
            "ongoing": F.col("last_seen") == F.col("timeline_end"),
            "verdict": verdict,
        }
    )


def _merge(
    rows: DataFrame,
    keys: list[str],
    snapshots: Callable[[str], Column],
    queues: Callable[[str], Column],
) -> DataFrame:
    """Rows of one stacked id as one row: the widest times, the most of each number, all values."""
    lists = ("topics", "client_addrs", "versions", "languages")
    # What the state says that knew of most processes, and of those the last.
    order = F.struct("processes", "last_seen")
    return rows.groupBy(*keys).agg(
        F.min("first_seen").alias("first_seen"),
        F.max("last_seen").alias("last_seen"),
        F.max("timeline_end").alias("timeline_end"),
        snapshots("snapshots").alias("snapshots"),
        F.max("id_format").alias("id_format"),
        *[F.max_by(told, order).alias(told) for told in ("evidence", "remedy")],
        F.max("processes").alias("processes"),
        F.max("slots_wasted").alias("slots_wasted"),
        queues("queues_duplicated").cast("int").alias("queues_duplicated"),
        queues("queues_orphaned").cast("int").alias("queues_orphaned"),
        *[
            F.array_sort(F.array_distinct(F.flatten(F.collect_list(name)))).alias(name)
            for name in lists
            if name not in keys
        ],
    )
