"""What a broker answered when it was asked for the members of a group."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.schemas import ANSWERED, NOT_ONLINE


def unlisted_brokers(broker_polls: DataFrame) -> DataFrame:
    """The polls that brought no member, with ``outcome`` NOT_ONLINE or NO_ANSWER.

    An answer with an empty list says what NOT_ONLINE says.
    """
    outcome = F.when(F.col("outcome") == ANSWERED, F.lit(NOT_ONLINE)).otherwise(F.col("outcome"))
    return broker_polls.where(
        (F.col("outcome") != ANSWERED) | (F.col("connections") == 0)
    ).withColumn("outcome", outcome)
