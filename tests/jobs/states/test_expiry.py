"""heartbeats -> heartbeats that tell whether a member is silent for too long."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.schemas import HEARTBEATS
from jobs.states.expiry import mark_expired
from tests.support.snapshots import at, frame, heartbeat_row

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

    marked = mark_expired(frame(spark, HEARTBEATS, heartbeats), 120)

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

    marked = mark_expired(heartbeats, 120)

    assert_df_equality(
        marked.drop("is_expired"), heartbeats, ignore_row_order=True, ignore_nullable=True
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
