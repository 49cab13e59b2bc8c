"""snapshots -> report tables, as from a shell: all steps together, without storage."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.errors import ContractError
from jobs.pipeline.frames import audit_frames
from jobs.schemas import (
    BROKER_POLLS,
    GROUP_FAULTS,
    HEARTBEATS,
    ORPHANED_QUEUES,
    QUEUE_OFFSETS,
    STALLED_QUEUES,
    STATE_RUNS,
    TOPIC_ROUTES,
)
from tests.support.snapshots import (
    CLUSTER,
    GROUP,
    TOPIC,
    at,
    frame,
    heartbeat_row,
    offset_row,
    poll_row,
    route_row,
)

pytestmark = pytest.mark.spark

BROKERS = ("broker-a", "broker-b")


def heartbeats(spark):
    """Clients a and b; from minute 2 to 6 a second process has the id of a. Minute 4 is missing."""
    return frame(
        spark,
        HEARTBEATS,
        [
            heartbeat_row(
                snapshot_time=at(60 * minute),
                broker_name=broker,
                client_id=client_id,
                client_addr=f"{client_id}:{port}",
                strategy="AVG",
            )
            for minute in (0, 1, 2, 3, 5, 6, 7)
            for broker in BROKERS
            for client_id, port in [("a", 1), ("b", 1), *([("a", 2)] if 2 <= minute <= 6 else [])]
        ],
    )


def routes(spark):
    return frame(
        spark,
        TOPIC_ROUTES,
        [route_row(broker_name=broker, read_queue_nums=3) for broker in BROKERS],
    )


def polls(spark):
    """Of minute 4 no broker answered."""
    return frame(
        spark,
        BROKER_POLLS,
        [
            poll_row(
                snapshot_time=at(60 * minute),
                broker_name=broker,
                outcome="NO_ANSWER" if minute == 4 else "ANSWERED",
                connections=0 if minute == 4 else 2,
            )
            for minute in range(8)
            for broker in BROKERS
        ],
    )


def test_a_stacked_id_orphans_the_queues_of_its_later_slot_for_as_long_as_it_is_there(spark):
    reports = audit_frames(heartbeats(spark), routes(spark), polls(spark))
    # Six queues, [a, a, b]: a 0-1 of broker-a, nobody the next two, b the last two.
    assert_df_equality(
        reports["orphaned_queues"].drop("finding_id"),
        frame(
            spark,
            ORPHANED_QUEUES,
            [
                (
                    *(CLUSTER, GROUP, TOPIC, broker, queue_id, at(120), at(360), 4),
                    *("PERSISTENT", False, "CERTAIN", 1.0, 1.0, []),
                    *(["DUPLICATE_CLIENT_ID"], "CRITICAL", None),
                    *("observed", None, "not compared", at(120), at(360), None, None, None),
                    None,
                )
                for broker, queue_id in (("broker-a", 2), ("broker-b", 0))
            ],
        ).drop("finding_id"),
        ignore_row_order=True,
        ignore_nullable=True,
    )
    assert_df_equality(
        reports["duplicate_queues"].select("broker_name", "queue_id", "claimants", "severity"),
        frame(
            spark,
            "broker_name string, queue_id int, "
            "claimants array<struct<client_id:string,processes:int,probability:double>>, "
            "severity string",
            [("broker-a", queue_id, [("a", 2, 1.0)], "WARNING") for queue_id in (0, 1)],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )
    assert_df_equality(
        reports["state_runs"].drop("state_id"),
        frame(
            spark,
            STATE_RUNS,
            [
                (CLUSTER, GROUP, TOPIC, "", at(60 * first), at(60 * last), snapshots)
                for first, last, snapshots in [
                    (0, 1, 2),
                    (2, 3, 2),
                    (4, 4, 1),
                    (5, 6, 2),
                    (7, 7, 1),
                ]
            ],
        ).drop("state_id"),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_the_fault_behind_a_stacked_id_is_told_once_with_what_its_repair_moves(spark):
    reports = audit_frames(heartbeats(spark), routes(spark), polls(spark))
    moves = [
        ("broker-a", 0, ["a", "a"], ["a"]),
        ("broker-a", 1, ["a", "a"], ["a"]),
        ("broker-a", 2, [], ["a (process 2)"]),
        ("broker-b", 0, [], ["a (process 2)"]),
    ]
    assert_df_equality(
        # The words are the core's, and tested there.
        reports["group_faults"].drop("evidence", "remedy"),
        frame(
            spark,
            GROUP_FAULTS,
            [
                (
                    *(CLUSTER, GROUP, TOPIC, "DUPLICATE_CLIENT_ID", at(120), at(360), 4),
                    *("PERSISTENT", False, "", "", ["a"], ["a:1", "a:2"], [], 4, 4, 0, moves),
                    None,
                )
            ],
        ).drop("evidence", "remedy"),
        ignore_nullable=True,
    )


def test_a_process_that_stands_still_is_told_with_its_queues_and_an_orphan_is_none_of_them(spark):
    # While two processes share the id of a: broker-b's queue 0 has no owner then, the others b.
    offsets = [
        offset_row(
            snapshot_time=at(60 * minute),
            broker_name=broker,
            queue_id=queue_id,
            broker_offset=10 + minute,
            consumer_offset=0 if broker == "broker-b" else 10 + minute,
        )
        for minute in (2, 3, 5, 6)
        for broker in BROKERS
        for queue_id in range(3)
    ]
    reports = audit_frames(
        heartbeats(spark), routes(spark), polls(spark), frame(spark, QUEUE_OFFSETS, offsets)
    )
    assert_df_equality(
        reports["stalled_queues"],
        frame(
            spark,
            STALLED_QUEUES,
            [
                (
                    *(CLUSTER, GROUP, TOPIC, "broker-b", queue_id, at(120), at(360), 4),
                    *("PERSISTENT", True, "CRITICAL", 16, 4, ["b"], None),
                )
                for queue_id in (1, 2)
            ],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )
    faults = reports["group_faults"].select("fault", "client_ids", "queues_affected")
    assert_df_equality(
        faults,
        frame(
            spark,
            "fault string, client_ids array<string>, queues_affected int",
            [("DUPLICATE_CLIENT_ID", ["a"], 4), ("FROZEN_PROCESS", ["b"], 2)],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_without_offsets_the_table_of_stalls_is_there_and_empty(spark):
    reports = audit_frames(heartbeats(spark), routes(spark))
    assert reports["stalled_queues"].columns == STALLED_QUEUES.schema.names
    assert reports["stalled_queues"].isEmpty()


def test_a_table_that_lacks_columns_is_refused_before_anything_runs(spark):
    with pytest.raises(ContractError, match="perm: expected int, is missing"):
        audit_frames(heartbeats(spark), routes(spark).drop("perm"))
