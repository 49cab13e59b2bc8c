"""records -> broker_polls, and the polls that the other tables are made of.

A dump may hold the same poll twice: a collector that retried, two overlapping files. Counting it
twice would turn every member into two. Of each broker, group and round the poll collected last
counts.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.dumps.bodies import CONSUMER_CONNECTION
from jobs.schemas import ANSWERED, BROKER_POLLS, NO_ANSWER, NOT_ONLINE

#: ``ResponseCode.CONSUMER_NOT_ONLINE``: the broker knows no member of the group.
CONSUMER_NOT_ONLINE = 206
#: The dashboard passes the broker's code on only within its message: "CODE: 206  DESC: ...".
NOT_ONLINE_MESSAGE = rf"CODE: *{CONSUMER_NOT_ONLINE}\b|not online"


def latest(records: DataFrame, keys: list[str]) -> DataFrame:
    """Of the records with the same ``keys`` the one that was collected last."""
    order = Window.partitionBy(*keys).orderBy(
        F.col("collected_at").desc(), F.col("file").desc(), F.col("row").desc()
    )
    return records.withColumn("_rank", F.row_number().over(order)).where("_rank = 1").drop("_rank")


def with_error(records: DataFrame, body: str) -> DataFrame:
    """Adds ``code`` and ``message``: the envelope's error, or what the dashboard's status says.

    ``code`` is null where there was none; an ``error_code`` of 0 is SUCCESS.
    """
    failed = F.coalesce(F.col(body)["status"], F.lit(0)) != 0
    envelope_code = F.when(F.col("error_code") != 0, F.col("error_code"))
    return records.withColumns(
        {
            "code": F.coalesce(envelope_code, F.when(failed, F.lit(-1))),
            "message": F.coalesce("error_message", F.when(failed, F.col(body)["errMsg"])),
        }
    )


def latest_polls(records: DataFrame) -> DataFrame:
    """One row per cluster, snapshot_time, broker_name, broker_id, consumer_group.

    Adds ``code``, ``message`` and ``outcome`` to the record.
    """
    polls = with_error(records.where(F.col("kind") == CONSUMER_CONNECTION), CONSUMER_CONNECTION)
    last = latest(polls, ["cluster", "snapshot_time", "broker_name", "broker_id", "consumer_group"])
    return last.withColumn("outcome", _outcome(F.col("code"), F.col("message")))


def _outcome(code: Column, message: Column) -> Column:
    not_online = (code == CONSUMER_NOT_ONLINE) | message.rlike(NOT_ONLINE_MESSAGE)
    return (
        F.when(code.isNull(), F.lit(ANSWERED))
        .when(F.coalesce(not_online, F.lit(False)), F.lit(NOT_ONLINE))
        .otherwise(F.lit(NO_ANSWER))
    )


def make_broker_polls(polls: DataFrame) -> DataFrame:
    """The table ``broker_polls`` from ``latest_polls``."""
    connections = F.coalesce(F.size(F.col(CONSUMER_CONNECTION)["connectionSet"]), F.lit(0))
    return conform(
        polls.select(
            "*",
            F.when(F.col("outcome") == ANSWERED, connections).otherwise(0).alias("connections"),
        )
        .drop("error_code", "error_message")
        .withColumnsRenamed({"code": "error_code", "message": "error_message"}),
        BROKER_POLLS,
    )
