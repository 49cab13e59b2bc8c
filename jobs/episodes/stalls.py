"""queue offsets and states -> stalls: queues that have an owner and stand still all the same.

A frozen process stays in every broker's list for about two minutes, and one that is stuck but still
heartbeats stays for ever: its queues have an owner by computation, and only their offsets tell.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.episodes.episodes import persistence

_PAIR = ["cluster", "consumer_group", "topic"]
_QUEUE = [*_PAIR, "broker_name", "queue_id"]


def queue_intervals(
    queue_offsets: DataFrame, findings: DataFrame, segments: DataFrame, states: DataFrame
) -> DataFrame:
    """One row per queue and time between two polls in which it had messages to consume.

    Only of groups and topics in which some queue stood still while another kept up. Columns: the
    queue, ``position`` (of its poll, in time), ``since`` (the poll before), ``snapshot_time``,
    ``backlog_since`` and ``backlog`` (at both), ``any_keeps_up`` (some queue of group and topic
    does), ``owners`` (client ids, as of ``since``; none: not known), ``sole`` (one process owns
    it), ``stalled`` (the row belongs to a stall), ``run`` (tells a queue's stalls apart) and
    ``last_poll`` (of group and topic).

    A queue stands still where messages wait at both polls and its offset is the same. It is stalled
    where it has an owner and another queue kept up: without one to compare with, the whole group
    may stand still, or have nothing to do. So a stall lasts from the first to the last time that
    another kept up.
    """
    owned = _with_owners(_compared(queue_offsets), findings, segments, states)
    in_time = Window.partitionBy(*_QUEUE).orderBy("position")
    stands = F.col("stands") & F.col("owned")
    runs = owned.withColumns({"stands": stands, "run": F.sum((~stands).cast("int")).over(in_time)})
    contrasted = F.when(F.col("stands") & F.col("any_keeps_up"), F.col("position"))
    of_run = Window.partitionBy(*_QUEUE, "run")
    stalled = F.col("stands") & F.col("position").between(
        F.min(contrasted).over(of_run), F.max(contrasted).over(of_run)
    )
    return runs.withColumn("stalled", F.coalesce(stalled, F.lit(False))).drop("stands", "owned")


def stall_episodes(intervals: DataFrame, persistence_seconds: int) -> DataFrame:
    """One row per queue and stall: an unbroken run of polls over which it stood still."""
    stalls = (
        intervals.where("stalled")
        .groupBy(*_QUEUE, "run")
        .agg(
            F.min("since").alias("first_seen"),
            F.max("snapshot_time").alias("last_seen"),
            (F.count(F.lit(1)) + 1).alias("polls"),
            F.max_by("backlog", "position").alias("backlog"),
            F.min_by("backlog_since", "position").alias("backlog_before"),
            F.max_by("owners", "position").alias("owners"),
            F.max("last_poll").alias("last_poll"),
        )
    )
    return stalls.withColumns(
        {
            "backlog_growth": F.col("backlog") - F.col("backlog_before"),
            "persistence": persistence(
                F.col("first_seen"), F.col("last_seen"), persistence_seconds
            ),
            "ongoing": F.col("last_seen") == F.col("last_poll"),
        }
    )


def _compared(queue_offsets: DataFrame) -> DataFrame:
    """The intervals of groups and topics in which they tell anything, with ``stands``.

    A queue keeps up where its offset moves; and, once moved, for as long as nothing waits in it and
    nothing new happens to the topic's queues: after a burst of messages nobody moves, and those
    that are done with their share kept up. What happens is that a queue moves, or that messages
    come to one that had none and stay: then all may stand still from there on.
    """
    own = Window.partitionBy(*_QUEUE).orderBy("snapshot_time")
    together = Window.partitionBy(*_PAIR, "snapshot_time")
    in_time = Window.partitionBy(*_PAIR).orderBy("snapshot_time")
    whole = Window.partitionBy(*_PAIR)
    backlog = F.greatest(F.col("broker_offset") - F.col("consumer_offset"), F.lit(0))
    # All windows below are of parts of a pair: one shuffle serves them all.
    polls = (
        queue_offsets.select(*_QUEUE, "snapshot_time", "consumer_offset", backlog.alias("backlog"))
        .repartition(*[F.col(name) for name in _PAIR])
        .withColumns(
            {
                "position": F.row_number().over(own),
                "since": F.lag("snapshot_time").over(own),
                "backlog_since": F.lag("backlog").over(own),
                "step": F.col("consumer_offset") - F.lag("consumer_offset").over(own),
            }
        )
    )
    # Of a queue that was missing from a poll it is not known when it moved.
    moved = (F.col("step") > 0) & (F.col("since") == F.max("since").over(together))
    waits = (F.col("backlog") > 0) & (F.col("step") == 0)
    told = polls.withColumns(
        {
            "stands": waits & (F.col("backlog_since") > 0),
            "moved_at": F.when(moved, F.col("snapshot_time")),
            "event_at": F.when(
                moved | (waits & (F.col("backlog_since") == 0)), F.col("snapshot_time")
            ),
        }
    ).withColumns(
        {"moved_at": F.max("moved_at").over(own), "event_at": F.max("event_at").over(in_time)}
    )
    keeps_up = (F.col("moved_at") == F.col("event_at")) & (
        (F.col("moved_at") == F.col("snapshot_time")) | (F.col("backlog") == 0)
    )
    flagged = told.withColumn("keeps_up", F.coalesce(keeps_up, F.lit(False))).withColumns(
        {
            "any_keeps_up": F.max("keeps_up").over(together),
            "last_poll": F.max("snapshot_time").over(whole),
        }
    )
    matters = F.max(F.col("stands") & F.col("any_keeps_up")).over(whole)
    had_messages = (F.col("backlog_since") > 0) | (F.col("step") != 0) | F.col("keeps_up")
    return (
        flagged.withColumn("matters", matters)
        .where(F.col("matters") & F.col("since").isNotNull() & had_messages)
        .drop("consumer_offset", "step", "moved_at", "event_at", "keeps_up", "matters")
    )


def _with_owners(
    intervals: DataFrame, findings: DataFrame, segments: DataFrame, states: DataFrame
) -> DataFrame:
    """Adds ``owners``, ``sole`` and ``owned``: false where an orphan explains the standstill."""
    orphans = (
        findings.where(F.col("kind") == "ORPHANED")
        .groupBy(*_QUEUE)
        .agg(F.collect_set(F.struct("episode_first_seen", "episode_last_seen")).alias("orphaned"))
    )
    in_force = _in_force(intervals.select(*_PAIR, "since").distinct(), segments, states)
    takers = (
        states.join(in_force.select("state_id").distinct(), "state_id", "left_semi")
        .select("state_id", F.explode("allocations").alias("taker"))
        .select("state_id", "taker.*")
        .select(
            "state_id", "client_id", "processes", "view_weight", F.explode("queues").alias("queue")
        )
        .groupBy("state_id", "queue.broker_name", "queue.queue_id")
        .agg(
            F.array_sort(F.collect_set("client_id")).alias("owners"),
            F.sum(F.col("processes") * F.col("view_weight")).alias("processes"),
        )
    )
    known = (
        intervals.join(orphans, _QUEUE, "left")
        .join(in_force, [*_PAIR, "since"], "left")
        .join(takers, ["state_id", "broker_name", "queue_id"], "left")
    )
    explained = F.exists("orphaned", _explains) | (F.col("audited") & F.col("owners").isNull())
    return known.withColumns(
        {
            "owned": ~F.coalesce(explained, F.lit(False)),
            "sole": F.coalesce(
                (F.size("owners") == 1) & (F.abs(F.col("processes") - 1) < 1e-9), F.lit(False)
            ),
            "owners": F.coalesce("owners", F.array().cast("array<string>")),
        }
    ).drop("orphaned", "state_id", "audited", "processes")


def _in_force(moments: DataFrame, segments: DataFrame, states: DataFrame) -> DataFrame:
    """The state of each moment's group and topic, and whether it was ``audited``.

    A state holds until the snapshot that shows another: offsets have their own polls.
    """
    in_time = Window.partitionBy(*_PAIR).orderBy("first_seen")
    until = F.coalesce(
        F.lead("first_seen").over(in_time), F.lit("9999-01-01T00:00:00Z").cast("timestamp")
    )
    lasting = segments.select(*_PAIR, "state_id", "first_seen", until.alias("until"))
    audited = states.select("state_id", (F.col("coverage") == "AUDITED").alias("audited"))
    return (
        moments.join(lasting, _PAIR, "inner")
        .where((F.col("first_seen") <= F.col("since")) & (F.col("since") < F.col("until")))
        .join(audited, "state_id", "inner")
        .select(*_PAIR, "since", "state_id", "audited")
    )


def _explains(orphan: Column) -> Column:
    """Whether nobody owned the queue at one of the polls, or in half of the time between them."""
    first, last = orphan["episode_first_seen"], orphan["episode_last_seen"]
    since, until = F.col("since"), F.col("snapshot_time")
    seconds = F.least(last, until).cast("double") - F.greatest(first, since).cast("double")
    whole = until.cast("double") - since.cast("double")
    return since.between(first, last) | until.between(first, last) | (2 * seconds >= whole)
