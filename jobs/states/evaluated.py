"""segments -> evaluated states: each distinct state once through the UDF over the core."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from jobs.states.evaluation import (
    EVALUATION,
    MEMBER_FIELDS,
    OFFLINE_FIELDS,
    ROUTE_FIELDS,
    STATE_COLUMNS,
    evaluate_rows,
)


def evaluate_states(
    segments: DataFrame,
    group_states: DataFrame,
    route_states: DataFrame,
    strategy_rules: list[dict[str, Any]],
    default_strategy: str,
) -> DataFrame:
    """One row per cluster, consumer_group, topic, state_id: the columns of ``EVALUATION``.

    ``lasting`` is what a state was evaluated with that its id does not tell.
    """
    states = distinct_states(segments, group_states, route_states)
    # By number, which is not merged: a state is few bytes and much work, so that planning by bytes
    # would give all of them to one core.
    partitions = int(str(segments.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    states = states.repartition(partitions, "state_id")
    # The overloads know only functionType, which warns; the kind follows from the type hints.
    evaluate = pandas_udf(  # type: ignore[call-overload]
        evaluate_rows(strategy_rules, default_strategy), EVALUATION
    )
    return states.select(
        "cluster",
        "consumer_group",
        "topic",
        "state_id",
        "lasting",
        evaluate(F.struct(*state_columns())).alias("evaluation"),
    ).select("cluster", "consumer_group", "topic", "state_id", "lasting", "evaluation.*")


def distinct_states(
    segments: DataFrame, group_states: DataFrame, route_states: DataFrame
) -> DataFrame:
    """One row per cluster, consumer_group, topic, state_id: what ``state_columns`` are made of."""
    distinct = segments.select(
        "cluster", "consumer_group", "topic", "state_id", "group_fingerprint", "route_fingerprint"
    ).dropDuplicates(["state_id"])
    return distinct.join(
        group_states.withColumnRenamed("fingerprint", "group_fingerprint"),
        ["cluster", "consumer_group", "group_fingerprint"],
        "left",
    ).join(
        route_states.withColumnRenamed("fingerprint", "route_fingerprint"),
        ["cluster", "topic", "route_fingerprint"],
        "left",
    )


def state_columns() -> list[Column]:
    """``STATE_COLUMNS``: of members, offline brokers and route, an array for each field."""
    subscription = F.transform("members", _own_subscription)
    told = {
        "member_version": F.transform(
            "members", lambda member: F.coalesce(member["version"], F.lit(-1))
        ),
        "member_subscribed": F.transform(subscription, lambda each: each.isNotNull()),
        "member_expression_type": subscription["expression_type"],
        "member_expression": subscription["expression"],
        "route_perm": _or_zero("perm"),
        "route_read_queue_nums": _or_zero("read_queue_nums"),
        "route_write_queue_nums": _or_zero("write_queue_nums"),
    }
    of_struct = {
        f"{prefix}_{field}": F.col(column)[field]
        for prefix, column, fields in (
            ("member", "members", MEMBER_FIELDS),
            ("offline", "offline", OFFLINE_FIELDS),
            ("route", "routes", ROUTE_FIELDS),
        )
        for field in fields
        if f"{prefix}_{field}" not in told
    }
    columns = told | of_struct
    return [columns.get(name, F.col(name)).alias(name) for name in STATE_COLUMNS]


def _own_subscription(member: Column) -> Column:
    """The member's subscription to the state's topic; null where it has none."""
    own = F.filter(member["subscriptions"], lambda each: each["topic"] == F.col("topic"))
    return F.get(own, F.lit(0))


def _or_zero(field: str) -> Column:
    # A null among numbers would make all of them floating-point in the worker.
    return F.transform("routes", lambda route: F.coalesce(route[field], F.lit(0)))
