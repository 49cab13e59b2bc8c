"""episodes and holdings -> confirmation: whether what the processes held shows the finding."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.episodes.holdings import CLIENT_LOG, RUNNING_INFO

_PAIR = ["cluster", "consumer_group", "topic"]


def confirm_findings(episodes: DataFrame, holdings: DataFrame | None) -> DataFrame:
    """The rows of ``queue_episodes`` with ``confirmed``; null where too few processes told.

    A round of running infos is complete where as many processes answered as the state has.
    DUPLICATE: true where two processes held the queue in one round; false where complete rounds
    never showed two. Where no round tells, two logs confirm it whose results have the queue at one
    time: they say what was computed, which is less than what was held. ORPHANED: true where a
    complete round showed no holder; false where rounds showed one, and none did that. Soon after a
    change processes hold what they had before, which refutes nothing; and what is POSSIBLE is there
    at times, so that no round without it refutes it.
    """
    if holdings is None:
        return episodes.withColumn("confirmed", F.lit(None).cast("boolean"))
    is_duplicate = F.col("kind") == "DUPLICATE"
    without_holder = F.size(F.array_except(_times("complete"), _times("held"))) > 0
    shown = F.when(is_duplicate, _has_overlap("held")).otherwise(without_holder)
    missed = F.when(is_duplicate, _is_settled("complete")).otherwise(_is_settled("held"))
    return (
        episodes.join(_said_of_topics(holdings), _PAIR, "left")
        .join(_said_of_queues(holdings), [*_PAIR, "broker_name", "queue_id"], "left")
        .withColumns(
            {
                "complete": F.filter(_in_run("of_topic"), lambda each: each["is_complete"]),
                "held": F.filter(_in_run("of_queue"), lambda each: each["source"] == RUNNING_INFO),
                "claimed": F.filter(_in_run("of_queue"), _is_result_of_claimant),
            }
        )
        .withColumn(
            "confirmed",
            F.when(shown, F.lit(True))
            .when(missed, F.when(F.col("certainty") == "CERTAIN", F.lit(False)))
            .when(is_duplicate & _has_overlap("claimed"), F.lit(True)),
        )
        .drop("of_topic", "of_queue", "complete", "held", "claimed")
    )


def _said_of_topics(holdings: DataFrame) -> DataFrame:
    """One row per topic of a group: its rounds of running infos as ``of_topic``."""
    rounds = (
        holdings.where(F.col("source") == RUNNING_INFO)
        .groupBy(*_PAIR, "since", "until")
        .agg(
            (F.count(F.lit(1)) >= F.max("processes")).alias("is_complete"),
            F.max("is_settled").alias("is_settled"),
        )
    )
    round_ = F.struct("since", "until", "is_complete", "is_settled")
    return rounds.groupBy(*_PAIR).agg(F.collect_list(round_).alias("of_topic"))


def _said_of_queues(holdings: DataFrame) -> DataFrame:
    """One row per queue that some process had: when and who, in time, as ``of_queue``."""
    said = F.struct("since", "until", "source", "client_id", "is_settled")
    return (
        holdings.select(*_PAIR, said.alias("said"), F.explode("held").alias("queue"))
        .groupBy(*_PAIR, "queue.broker_name", "queue.queue_id")
        .agg(F.array_sort(F.collect_list("said")).alias("of_queue"))
    )


def _in_run(said: str) -> Column:
    """What was so at some time in the finding's run; nothing where nothing was said."""
    return F.filter(
        F.coalesce(F.col(said), F.array()),
        lambda each: (each["since"] <= F.col("last_seen")) & (each["until"] >= F.col("first_seen")),
    )


def _is_result_of_claimant(said: Column) -> Column:
    is_claimant = F.exists("claimants", lambda claimant: claimant["client_id"] == said["client_id"])
    return (said["source"] == CLIENT_LOG) & said["is_settled"] & is_claimant


def _times(said: str) -> Column:
    return F.transform(said, lambda each: each["since"])


def _is_settled(said: str) -> Column:
    return F.exists(said, lambda each: each["is_settled"])


def _has_overlap(said: str) -> Column:
    """Whether two were so at one time of the run: those of two processes, for one has no two.

    In the order of their starts, two that overlap have neighbours between them that do.
    """
    later = F.slice(said, 2, F.size(said))
    return F.exists(
        F.arrays_zip(F.col(said).alias("one"), later.alias("next")),
        # The last has none after it.
        lambda each: (
            each["next"].isNotNull()
            & (each["one"]["until"] >= F.greatest(each["next"]["since"], F.col("first_seen")))
        ),
    )
