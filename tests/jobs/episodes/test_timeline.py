"""segments -> timeline: the segments that say something, numbered in time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from chispa import assert_df_equality

from jobs.episodes.timeline import build_timeline
from tests.support.snapshots import CLUSTER, at, frame

pytestmark = pytest.mark.spark

SEGMENTS = (
    "cluster string, consumer_group string, topic string, state_id string, "
    "group_fingerprint int, route_fingerprint int, first_seen timestamp, last_seen timestamp"
)
STATES = (
    "cluster string, consumer_group string, topic string, state_id string, known boolean, "
    "completeness double, nameservers int, findings array<struct<certainty:string>>"
)


def test_segments_in_which_nothing_was_known_are_left_out_and_not_counted(spark):
    segments = frame(
        spark,
        SEGMENTS,
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
        STATES,
        [
            (CLUSTER, "G", "T", "good", True, 1.0, 1, []),
            (CLUSTER, "G", "T", "unknown", False, 0.0, 1, []),
            (CLUSTER, "G", "T2", "good", True, 1.0, 1, []),
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


@pytest.mark.parametrize(
    ("states", "known_positions"),
    [
        # A broker did not answer, and those that did agree: perhaps it is the one that differs.
        (["differ", "agree of 2", "differ"], [1, 1, 2]),
        (["differ", "agree of 1", "agree of 2", "differ"], [1, 1, 1, 2]),
        (["differ", "certain of 2", "differ"], [1, 1, 2]),
        # All were asked again in between, or at the end: it has ended.
        (["differ", "agree of 2", "agree", "differ"], [1, 2, 3, 4]),
        (["differ", "agree", "differ"], [1, 2, 3]),
        (["differ", "agree of 2", "agree"], [1, 2, 3]),
        # It may never answer again: what the others say is all there is.
        (["differ", "agree of 2"], [1, 2]),
        (["agree of 2", "differ"], [1, 2]),
        # They differ among as many as agreed in between.
        (["differ of 2", "agree of 2", "differ"], [1, 2, 3]),
        (["certain", "agree of 2", "certain"], [1, 2, 3]),
        (["differ", "agree of 2", "differ", "differ", "agree of 1", "differ"], [1, 1, 2, 3, 3, 4]),
        # Likewise where a nameserver did not answer.
        (["differ", "agree, one route", "differ"], [1, 1, 2]),
        (["differ, one route", "agree, one route", "differ"], [1, 2, 3]),
    ],
)
def test_where_fewer_lists_are_known_that_they_agree_ends_nothing(spark, states, known_positions):
    pair = (CLUSTER, "G", "T")
    segments = frame(
        spark,
        SEGMENTS,
        [(*pair, name, 1, 1, at(60 * n), at(60 * n + 30)) for n, name in enumerate(states)],
    )

    def state(name):
        found, _, brokers = name.removesuffix(", one route").partition(" of ")
        certainty = {"differ": ["POSSIBLE"], "certain": ["CERTAIN"], "agree": []}[found]
        nameservers = 1 if "one route" in name else 2
        return (*pair, name, True, int(brokers or 3) / 3, nameservers, [(c,) for c in certainty])

    timeline = build_timeline(segments, frame(spark, STATES, [state(n) for n in set(states)]))

    rows = timeline.orderBy("position").collect()
    assert [row.position for row in rows] == list(range(1, len(states) + 1))
    assert [row.known_position for row in rows] == known_positions
    assert [row.is_blind for row in rows[1:]] == [a == b for a, b in pairwise(known_positions)]
