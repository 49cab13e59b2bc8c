"""timeline and client states -> holdings: what each process had, and what was computed for it.

A running info tells what its process holds at one moment. A log line tells what its client computed
for one topic; it is printed when the result changes, and only then, so that it is in force until
the next one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.kinds import ROUTE_CHANGED
from jobs.schemas import QUEUES

RUNNING_INFO = "RUNNING_INFO"
CLIENT_LOG = "CLIENT_LOG"

STATE_CHANGED = "STATE_CHANGED"
OTHER_LIST = "OTHER_LIST"

#: A client polls the route every 30 s and rebalances every 20 s.
_ROUTE_LAG_SECONDS = 50
_REBALANCE_SECONDS = 20

_PAIR = ["cluster", "consumer_group", "topic"]
_CLIENT = ["cluster", "consumer_group", "client_id"]
#: Processes that share an id differ in the start of their consumer, or in the label of their log.
PROCESS = ["source", *_CLIENT, "start_timestamp", "process"]


def find_holdings(timeline: DataFrame, client_states: DataFrame, changes: DataFrame) -> DataFrame:
    """One row per process, topic and stretch of one recomputed state in which it said what it had.

    ``held`` are the queues that it had ``since`` and ``until``: one moment of a running info; of a
    log line from when it counts (20 s after it, or after the state's first snapshot; 50 s after the
    route changed) until the next line or the state's last snapshot, and, as a stretch of its own,
    of the time in which the client may not know of the new route yet. ``computed`` has what its
    client id takes under each view of the state; clients that the state does not have are left out.
    ``processes`` are those of the group in the state.

    ``position`` counts the process's rows of the topic in time. ``is_settled``: no change before it
    explains a difference any more; ``explained_by`` names what does. ``lengths_tell``: the line was
    printed in this very state, so that the lengths of its lists tell which of the views it had.
    """
    said = _running_infos(client_states).unionByName(
        _log_lines(client_states), allowMissingColumns=True
    )
    is_log, said_at = F.col("source") == CLIENT_LOG, F.col("said_at")
    route_changed = said_at <= F.col("changed_at") + _seconds(_ROUTE_LAG_SECONDS)
    # When the first state of the window began nobody saw.
    state_changed = F.col("seen_before").isNotNull() & (
        said_at < F.col("first_seen") + _seconds(_REBALANCE_SECONDS)
    )
    explained_by = (
        F.when(is_log & F.col("lags"), F.lit(ROUTE_CHANGED))
        .when(is_log, F.when(F.col("is_other_list"), F.lit(OTHER_LIST)))
        .when(route_changed, F.lit(ROUTE_CHANGED))
        .when(state_changed, F.lit(STATE_CHANGED))
    )
    # A log outlives its process, and its last line stays in force: where more logs than processes
    # have the id, nothing tells which of them still run.
    of_id = Window.partitionBy("source", *_PAIR, "client_id", "first_seen")
    in_time = Window.partitionBy(*PROCESS, "topic").orderBy("since")
    return (
        _lay_over(said, _shares(timeline, changes))
        .withColumn("logs", F.size(F.collect_set("process").over(of_id)))
        .where(F.col("logs") <= F.col("copies"))
        .select(
            *PROCESS,
            "topic",
            "since",
            "until",
            F.row_number().over(in_time).alias("position"),
            _of_topic("queues").alias("held"),
            "computed",
            "processes",
            (~F.col("lags") & (F.col("since") >= F.col("settled_at"))).alias("is_settled"),
            explained_by.alias("explained_by"),
            "queue_count",
            "client_count",
            (is_log & said_at.between(F.col("settled_at"), F.col("last_seen"))).alias(
                "lengths_tell"
            ),
        )
    )


def _lay_over(said: DataFrame, shares: DataFrame) -> DataFrame:
    """What was said in each segment in which it counts, ``since`` and ``until`` when.

    ``is_other_list``: the lengths that a line names are those of no view of the state in which it
    was printed, nor of the states next to it in time.
    """
    is_log = F.col("source") == CLIENT_LOG
    said_at, first_seen, last_seen = F.col("said_at"), F.col("first_seen"), F.col("last_seen")
    lag = _seconds(_ROUTE_LAG_SECONDS)
    in_force = (said_at <= last_seen) & (F.coalesce("replaced_at", last_seen) >= first_seen)
    # A state holds at most from the snapshot before it to the one after it, and clients lag it.
    is_near = is_log & said_at.between(
        F.coalesce("seen_before", first_seen) - lag, F.coalesce("seen_after", last_seen) + lag
    )
    # What the lists were before the first snapshot nobody saw.
    may_fit = F.exists("lengths", has_lengths_of_line) | (
        F.col("seen_before").isNull() & (said_at < first_seen + lag)
    )
    of_line = Window.partitionBy(*PROCESS, "said_of", "said_at")
    counts_from = F.greatest(said_at + _seconds(_REBALANCE_SECONDS), F.col("settled_at"))
    ends = F.least("replaced_at", last_seen)
    # Who joins or leaves is followed in a moment; a route is not known before it is polled.
    lagging = _stretch(
        F.when(F.col("changed_at").isNotNull(), F.greatest(said_at, first_seen)),
        F.least(F.col("changed_at") + lag, ends),
        lags=True,
    )
    stretches = F.when(is_log, F.array(lagging, _stretch(counts_from, ends))).otherwise(
        F.array(_stretch(said_at, said_at))
    )
    return (
        said.join(shares, _CLIENT, "inner")
        .where(F.col("said_of").isNull() | (F.col("said_of") == F.col("topic")))
        .where(in_force | is_near)
        .withColumns(
            {
                "stretch": stretches,
                "is_other_list": ~F.max(F.when(is_near, may_fit)).over(of_line),
            }
        )
        .withColumn("stretch", F.explode("stretch"))
        .select("*", "stretch.*")
        .where(~is_log | ((F.col("since") < F.col("until")) & (F.size("computed") > 0)))
    )


def _stretch(since: Column, until: Column, *, lags: bool = False) -> Column:
    return F.struct(since.alias("since"), until.alias("until"), F.lit(lags).alias("lags"))


def has_lengths_of_line(lists: Column) -> Column:
    """Whether two lists of these lengths are those that the log line names."""
    return (lists["view_queues"] == F.col("queue_count")) & (
        lists["view_clients"] == F.col("client_count")
    )


def _seconds(count: int) -> Column:
    return F.make_dt_interval(secs=F.lit(count))


def _of_topic(queues: str) -> Column:
    held = F.filter(queues, lambda each: (each["topic"] == F.col("topic")) & ~each["dropped"])
    return F.transform(
        held,
        lambda each: F.struct(
            each["broker_name"].alias("broker_name"), each["queue_id"].alias("queue_id")
        ),
    ).cast(QUEUES)


def _running_infos(client_states: DataFrame) -> DataFrame:
    """One row per process and round that it answered in: ``said_at``, of all its topics.

    Several brokers may have forwarded the question. Pull consumers leave the table of their queues
    empty whatever they pull, and DefaultMQPullConsumer pulls whatever its application likes.
    """
    is_silent = (F.col("consume_type") == "CONSUME_ACTIVELY") & (F.size("queues") == 0)
    answered = client_states.where(
        (F.col("source") == RUNNING_INFO)
        & F.col("error_code").isNull()
        & F.col("queues").isNotNull()
        & F.coalesce("client_rebalance", F.lit(True))
        & ~F.coalesce("pull_consumer", F.lit(False))
        & ~F.coalesce(is_silent, F.lit(False))
    )
    return (
        answered.groupBy("source", *_CLIENT, "start_timestamp", "snapshot_time")
        .agg(F.max_by("queues", "observed_at").alias("queues"))
        .withColumnRenamed("snapshot_time", "said_at")
        .withColumn("replaced_at", F.col("said_at"))
    )


def _log_lines(client_states: DataFrame) -> DataFrame:
    """One row per line: ``said_at``, ``said_of`` its topic, ``replaced_at`` (null: by no other)."""
    log = Window.partitionBy(*_CLIENT, "process", "topic").orderBy("logged_at", "observed_at")
    return (
        client_states.where((F.col("source") == CLIENT_LOG) & F.col("logged_at").isNotNull())
        .withColumn("replaced_at", F.lead("logged_at").over(log))
        .where(F.coalesce("client_rebalance", F.lit(True)) & F.col("queues").isNotNull())
        .select(
            "source",
            *_CLIENT,
            "process",
            F.col("topic").alias("said_of"),
            F.col("logged_at").alias("said_at"),
            "replaced_at",
            "queues",
            "queue_count",
            "client_count",
        )
    )


def _shares(timeline: DataFrame, changes: DataFrame) -> DataFrame:
    """One row per segment of a recomputed state and client id: what the id takes, and since when.

    ``computed`` has an entry for each view (none where the id does not subscribe), ``copies`` are
    its processes, ``lengths`` those of the views' lists, ``changed_at`` when the route last did,
    ``settled_at`` from when on neither explains that a client has something else.
    """
    in_time = Window.partitionBy(*_PAIR).orderBy("first_seen")
    changed = changes.groupBy(*_PAIR).agg(F.collect_list("first_seen").alias("changes"))
    lengths = F.transform("allocations", lambda a: F.struct(a["view_queues"], a["view_clients"]))
    changed_at = F.array_max(F.filter("changes", lambda time: time <= F.col("first_seen")))
    settled_at = F.greatest(
        F.col("first_seen") + _seconds(_REBALANCE_SECONDS),
        F.col("changed_at") + _seconds(_ROUTE_LAG_SECONDS),
    )
    view = F.struct("a.queues", "a.view_weight", "a.view_queues", "a.view_clients")
    segment = [*_PAIR, "first_seen", "last_seen", "processes"]
    segment += ["lengths", "seen_before", "seen_after", "changed_at", "settled_at"]
    return (
        timeline.join(changed, _PAIR, "left")
        .withColumns(
            {
                "lengths": F.array_distinct(lengths),
                "seen_before": F.lag("last_seen").over(in_time),
                "seen_after": F.lead("first_seen").over(in_time),
                "changed_at": changed_at,
            }
        )
        .withColumn("settled_at", settled_at)
        .select(*segment, F.explode("allocations").alias("a"))
        .groupBy(*segment, "a.client_id")
        .agg(
            F.collect_list(F.when(F.col("a.subscribed"), view)).alias("computed"),
            # Each view counts the processes once, and the weights add up to 1.
            F.round(F.sum(F.col("a.processes") * F.col("a.view_weight"))).alias("copies"),
        )
    )
