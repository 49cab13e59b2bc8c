"""segments -> timeline: the segments that say something, numbered in time."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.episodes.timeline import build_timeline
from tests.support.snapshots import CLUSTER, at, frame

pytestmark = pytest.mark.spark


def test_segments_in_which_nothing_was_known_are_left_out_and_not_counted(spark):
    segments = frame(
        spark,
        "cluster string, consumer_group string, topic string, state_id string, "
        "group_fingerprint int, route_fingerprint int, first_seen timestamp, last_seen timestamp",
        [
            (CLUSTER, "G", "T", "good", 1, 1, at(0), at(60)),
            (CLUSTER, "G", "T", "unknown", 2, 1, at(120), at(180)),
            (CLUSTER, "G", "T", "good", 1, 1, at(240), at(300)),
            (CLUSTER, "G", "T", "unknown", 2, 1, at(360), at(420)),
            (CLUSTER, "G", "T2", "good", 1, 1, at(60), at(60)),
        ],
    )
    states = frame(
        spark,
        "cluster string, consumer_group string, topic string, state_id string, known boolean",
        [
            (CLUSTER, "G", "T", "good", True),
            (CLUSTER, "G", "T", "unknown", False),
            (CLUSTER, "G", "T2", "good", True),
        ],
    )

    timeline = build_timeline(segments, states)

    assert_df_equality(
        timeline.select("topic", "first_seen", "position", "timeline_end"),
        frame(
            spark,
            "topic string, first_seen timestamp, position int, timeline_end timestamp",
            [
                ("T", at(0), 1, at(300)),
                ("T", at(240), 2, at(300)),
                ("T2", at(60), 1, at(60)),
            ],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )
