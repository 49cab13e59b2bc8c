"""heartbeats -> heartbeats that tell who is silent for too long, and who chooses its queues."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.schemas import HEARTBEATS
from jobs.states.members import mark_members
from tests.support.snapshots import at, frame, heartbeat_row, subscriptions

pytestmark = pytest.mark.spark


def test_a_member_is_expired_once_its_last_heartbeat_is_older_than_a_broker_keeps_it(spark):
    last_heartbeats = {
        "long ago": (at(0), True),
        "a moment too old": (at(379.5), True),
        "as old as may be": (at(380), False),
        "fresh": (at(490), False),
        "none was collected": (None, False),
    }
    heartbeats = [
        heartbeat_row(snapshot_time=at(500), client_id=client_id, last_heartbeat_at=time)
        for client_id, (time, _) in last_heartbeats.items()
    ]

    marked = mark_members(frame(spark, HEARTBEATS, heartbeats), 120)

    assert_df_equality(
        marked.select("client_id", "is_expired"),
        frame(
            spark,
            "client_id string, is_expired boolean",
            [(client_id, expired) for client_id, (_, expired) in last_heartbeats.items()],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_one_member_becomes_expired_with_the_time_of_the_snapshot_and_loses_no_column(spark):
    heartbeats = frame(
        spark,
        HEARTBEATS,
        [heartbeat_row(snapshot_time=at(time), last_heartbeat_at=at(0)) for time in (60, 180)],
    )

    marked = mark_members(heartbeats, 120)

    assert_df_equality(
        marked.drop("is_expired", "chooses_queues"),
        heartbeats,
        ignore_row_order=True,
        ignore_nullable=True,
    )
    assert_df_equality(
        marked.select("snapshot_time", "is_expired"),
        frame(
            spark,
            "snapshot_time timestamp, is_expired boolean",
            [(at(60), False), (at(180), True)],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_who_pulls_and_says_that_it_subscribes_to_nothing_chooses_its_queues(spark):
    actively, own = "CONSUME_ACTIVELY", "HEARTBEAT"
    members = {
        "assigns": (actively, [], own, True),
        "assigns by its running info": (actively, [], "RUNNING_INFO", True),
        "pulls what it subscribes to": (actively, subscriptions("T"), own, False),
        "pushes": ("CONSUME_PASSIVELY", [], own, False),
        "only the group's table tells": (actively, [], "GROUP_TABLE", False),
        "nothing is known": (None, [], None, False),
        "a pull consumer": (actively, subscriptions("T"), own, True),
    }
    heartbeats = [
        heartbeat_row(
            client_id=name,
            consume_type=consume_type,
            subscriptions=own_subscriptions,
            subscription_source=source,
            pull_consumer=name == "a pull consumer" or None,
        )
        for name, (consume_type, own_subscriptions, source, _) in members.items()
    ]

    marked = mark_members(frame(spark, HEARTBEATS, heartbeats), 120)

    found = {row.client_id: row.chooses_queues for row in marked.collect()}
    assert found == {name: expected for name, (*_, expected) in members.items()}
