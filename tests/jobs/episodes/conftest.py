"""Holdings as the steps after ``find_holdings`` get them, from a few rows of each input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.episodes.holdings import find_holdings
from jobs.schemas import CLIENT_STATES
from tests.support.snapshots import CLUSTER, GROUP, TOPIC, allocation_row, at, frame

_TIMELINE = (
    "cluster string, consumer_group string, topic string, state_id string, first_seen timestamp, "
    "last_seen timestamp, processes int, "
    "allocations array<struct<client_id:string,processes:int,subscribed:boolean,"
    "view_weight:double,view_queues:int,view_clients:int,"
    "queues:array<struct<broker_name:string,queue_id:int>>>>"
)
_CHANGES = "cluster string, consumer_group string, topic string, first_seen timestamp"

#: Clients a and b share the four queues of broker-a.
AGREED = (allocation_row("a", [0, 1]), allocation_row("b", [2, 3]))


@pytest.fixture
def holdings(spark: SparkSession) -> Callable[..., DataFrame]:
    """``find_holdings`` of client states; one state for ten minutes unless told otherwise.

    ``segments`` are (state id, first second, last second), ``allocations`` by state id or of all.
    """

    def find(
        client_states: Sequence[tuple[Any, ...]],
        segments: Sequence[tuple[str, float, float]] = (("one", 0, 600),),
        allocations: Any = AGREED,
        changes: Sequence[float] = (),
        processes: int = 2,
    ) -> DataFrame:
        pair = (CLUSTER, GROUP, TOPIC)
        by_state = allocations if isinstance(allocations, dict) else {}
        timeline = [
            (
                *pair,
                state_id,
                at(first),
                at(last),
                processes,
                list(by_state.get(state_id, allocations)),
            )
            for state_id, first, last in segments
        ]
        return find_holdings(
            frame(spark, _TIMELINE, timeline),
            frame(spark, CLIENT_STATES, client_states),
            frame(spark, _CHANGES, [(*pair, at(each)) for each in changes]),
        )

    return find
