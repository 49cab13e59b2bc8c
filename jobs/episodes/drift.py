"""holdings -> drift: what clients held, or computed, against what was computed for them.

A client computes its share and then has to get it: a broker that it cannot reach, a lock that it
is not given, an offset that cannot be read, and it holds less than its share. Just after a change
it holds what it had before. A log tells more: what the client itself computed, and from lists of
which lengths. A result that no view gives comes from lists that no broker has, or not at all.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.episodes.episodes import number_episodes, persistence
from jobs.episodes.holdings import CLIENT_LOG, PROCESS, has_lengths_of_line
from jobs.kinds import COMPUTED_NOT_HELD, HELD_NOT_COMPUTED

SHARE_KEPT = "SHARE_KEPT"


def drift_episodes(holdings: DataFrame, persistence_seconds: int) -> DataFrame:
    """One row per process, queue, drift and unbroken run of its ``holdings`` that show it.

    ``probability`` is the share of the views under which the queue was computed for the process:
    where the brokers' lists differ, one that is computed at times may well not be held. A log line
    drifts where it equals the result of no view, and then by what all views have in common.
    ``attributed_to`` says what explains it when it was last seen, null if nothing does.
    """
    keys = [*PROCESS, "topic", "broker_name", "queue_id", "drift"]
    numbered = number_episodes(_compare(holdings), keys)
    return (
        numbered.groupBy(*keys, "episode")
        .agg(
            F.min("since").alias("first_seen"),
            F.max("until").alias("last_seen"),
            F.count(F.lit(1)).alias("observations"),
            F.max("probability").alias("probability"),
            # What lasts longer than the change explains is not explained by it.
            F.max_by("explained_by", "position").alias("attributed_to"),
            F.max_by("queue_count", "position").alias("queue_count"),
            F.max_by("client_count", "position").alias("client_count"),
        )
        .withColumn(
            "persistence",
            persistence(F.col("first_seen"), F.col("last_seen"), persistence_seconds),
        )
    )


def _compare(holdings: DataFrame) -> DataFrame:
    """One row per holding and queue that is held and not computed, or the other way round.

    A result that equals that of one view has nothing beyond it, and all that the views have in
    common: it gives no row.
    """
    is_log = F.col("source") == CLIENT_LOG
    fitting = F.filter("computed", has_lengths_of_line)
    possible = F.array_distinct(F.flatten(F.transform("views", lambda view: view["queues"])))
    in_every_view = F.filter(
        "possible",
        lambda queue: F.forall("views", lambda view: F.array_contains(view["queues"], queue)),
    )
    of_process = Window.partitionBy(*PROCESS, "topic").orderBy("position")
    before = of_process.rowsBetween(Window.unboundedPreceding, -1)
    # What it last had by the computation: still that, it is suspended, or its rebalance fails.
    follows = F.exists("computed", _is_held)
    share = F.last(F.when(follows, F.col("held")), True).over(before)
    compared = (
        holdings.withColumn("kept", ~is_log & ~follows & _same(share, F.col("held")))
        .withColumn(
            "explained_by",
            F.coalesce("explained_by", F.when(F.col("kept"), F.lit(SHARE_KEPT))),
        )
        .withColumn(
            "views",
            F.when(F.col("lengths_tell") & (F.size(fitting) > 0), fitting).otherwise(
                F.col("computed")
            ),
        )
        .withColumn("possible", possible)
        .withColumn("due", F.when(is_log, in_every_view).otherwise(F.col("possible")))
    )
    drifts = F.concat(
        F.transform(
            F.array_except("held", "possible"), lambda queue: _drift(HELD_NOT_COMPUTED, queue)
        ),
        F.transform(F.array_except("due", "held"), lambda queue: _drift(COMPUTED_NOT_HELD, queue)),
    )
    told = [
        *PROCESS,
        "topic",
        "position",
        "since",
        "until",
        "explained_by",
        "queue_count",
        "client_count",
    ]
    return compared.select(*told, F.explode(drifts).alias("d")).select(*told, "d.*")


def _is_held(view: Column) -> Column:
    return _same(view["queues"], F.col("held"))


def _same(one: Column, other: Column) -> Column:
    return (F.size(F.array_except(one, other)) == 0) & (F.size(F.array_except(other, one)) == 0)


def _drift(kind: str, queue: Column) -> Column:
    share = F.aggregate(
        "computed",
        F.lit(0.0),
        lambda sum_, view: (
            sum_
            + F.when(F.array_contains(view["queues"], queue), view["view_weight"]).otherwise(0.0)
        ),
    )
    return F.struct(
        F.lit(kind).alias("drift"),
        queue["broker_name"].alias("broker_name"),
        queue["queue_id"].alias("queue_id"),
        F.least(share, F.lit(1.0)).alias("probability"),
    )
