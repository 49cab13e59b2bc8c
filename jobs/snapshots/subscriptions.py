"""RocketMQ's SubscriptionData as the tables have it."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def subscriptions_of(data: Column) -> Column:
    """array<struct<topic, expression_type, expression>>, sorted, from an array of SubscriptionData.

    ``subVersion`` is left out: it changes at every rebalance and says nothing of what is consumed.
    """
    return F.array_sort(
        F.array_distinct(
            F.transform(
                F.filter(data, lambda each: each["topic"].isNotNull()),
                lambda each: F.struct(
                    each["topic"].alias("topic"),
                    F.coalesce(each["expressionType"], F.lit("TAG")).alias("expression_type"),
                    F.coalesce(each["subString"], F.lit("*")).alias("expression"),
                ),
            )
        )
    )
