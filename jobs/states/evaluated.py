"""segments -> evaluated states: each distinct state once through the UDF over the core."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from jobs.states.evaluation import EVALUATION, STATE_COLUMNS, evaluate_rows


def evaluate_states(
    segments: DataFrame,
    group_states: DataFrame,
    route_states: DataFrame,
    strategy_rules: list[dict[str, Any]],
    default_strategy: str,
) -> DataFrame:
    """One row per cluster, consumer_group, topic, state_id: the columns of ``EVALUATION``."""
    distinct = segments.select(
        "cluster", "consumer_group", "topic", "state_id", "group_fingerprint", "route_fingerprint"
    ).dropDuplicates(["state_id"])
    states = distinct.join(
        group_states.withColumnRenamed("fingerprint", "group_fingerprint"),
        ["cluster", "consumer_group", "group_fingerprint"],
        "left",
    ).join(
        route_states.withColumnRenamed("fingerprint", "route_fingerprint"),
        ["cluster", "topic", "route_fingerprint"],
        "left",
    )
    # The overloads know only functionType, which warns; the kind follows from the type hints.
    evaluate = pandas_udf(  # type: ignore[call-overload]
        evaluate_rows(strategy_rules, default_strategy), EVALUATION
    )
    return states.select(
        "cluster",
        "consumer_group",
        "topic",
        "state_id",
        evaluate(F.struct(*STATE_COLUMNS)).alias("evaluation"),
    ).select("cluster", "consumer_group", "topic", "state_id", "evaluation.*")
