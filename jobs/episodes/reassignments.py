"""timeline -> reassignments: when the queues changed hands, and between whom.

A client that joins, leaves or is dropped, a queue count that changes: for up to 20 s (50 s after a
change of the route) the clients still hold what they had before. What is found in that time is the
change, and no fault of it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.schemas import REASSIGNMENTS

#: In no name of a broker.
_SEPARATOR = "\u0000"
_PAIR = ["cluster", "consumer_group", "topic"]


def reassignments(timeline: DataFrame) -> DataFrame:
    """The table ``reassignments``: one row per state that gives the queues to others.

    A state that differs in addresses alone (a client reconnected) is no reassignment, nor is one in
    which less is known than before and after.
    """
    in_time = Window.partitionBy(*_PAIR).orderBy("position")
    from_now_on = in_time.rowsBetween(Window.currentRow, Window.unboundedFollowing)
    told = timeline.where(~F.col("is_blind")).select(
        *_PAIR,
        "position",
        "state_id",
        "first_seen",
        "last_seen",
        "queues",
        _clients().alias("clients"),
        _takers().alias("takers"),
        _lists_agree().alias("lists_agree"),
    )
    before = {
        f"{name}_before": F.lag(name).over(in_time)
        for name in ("state_id", "last_seen", "queues", "clients", "takers")
    }
    compared = told.withColumns(
        before
        | {"settled_at": F.min(F.when(F.col("lists_agree"), F.col("first_seen"))).over(from_now_on)}
    ).where(F.col("state_id_before").isNotNull() & (F.col("state_id_before") != F.col("state_id")))
    changed = F.concat(
        F.array_except("takers", "takers_before"), F.array_except("takers_before", "takers")
    )
    moved = F.array_distinct(
        F.transform(changed, lambda each: F.substring_index(each, _SEPARATOR, 2))
    )
    rows = compared.select(
        *_PAIR,
        F.col("first_seen").alias("changed_at"),
        F.col("last_seen_before").alias("seen_before"),
        "settled_at",
        "state_id_before",
        "state_id",
        F.array_except("clients", "clients_before").alias("clients_joined"),
        F.array_except("clients_before", "clients").alias("clients_left"),
        "queues_before",
        "queues",
        F.size(moved).alias("queues_moved"),
        "lists_agree",
    )
    is_change = (
        (F.col("queues_moved") > 0)
        | (F.size("clients_joined") > 0)
        | (F.size("clients_left") > 0)
        | (F.col("queues_before") != F.col("queues"))
    )
    return conform(rows.where(is_change), REASSIGNMENTS)


def _clients() -> Column:
    ids = F.transform("allocations", lambda each: each["client_id"])
    return F.array_sort(F.array_distinct(ids))


def _takers() -> Column:
    """Who takes each queue, as one flat array: by view, so that doubt counts as a change too.

    As text, the queue first: Spark compares arrays of structs each with each, those of texts by
    hash.
    """
    return F.flatten(
        F.transform(
            "allocations",
            lambda each: F.transform(
                each["queues"],
                lambda queue: F.concat_ws(
                    _SEPARATOR,
                    queue["queue_id"],
                    queue["broker_name"],
                    each["client_id"],
                    each["processes"],
                    each["view_weight"],
                ),
            ),
        )
    )


def _lists_agree() -> Column:
    views = F.array_distinct(F.transform("allocations", lambda each: each["view_brokers"]))
    return F.size(views) <= 1
