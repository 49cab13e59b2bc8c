"""records -> queue_offsets: how far a group has consumed each queue."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.schemas import QUEUE_OFFSETS
from jobs.snapshots.queue_offsets import make_queue_offsets
from tests.support.snapshots import at, frame, offset_row, stats_line

pytestmark = pytest.mark.spark


def test_of_offsets_that_were_collected_twice_the_later_count(spark, records):
    actual = make_queue_offsets(
        records(
            stats_line({0: (100, 90), 1: (7, 7)}, collected_at=at(2)),
            stats_line({0: (50, 40)}, collected_at=at(1)),
            stats_line({0: (200, -1)}, seconds=60),
        )
    )

    expected = [
        offset_row(queue_id=0, broker_offset=100, consumer_offset=90),
        offset_row(queue_id=1, broker_offset=7, consumer_offset=7),
        offset_row(snapshot_time=at(60), broker_offset=200, consumer_offset=-1),
    ]
    assert_df_equality(
        actual, frame(spark, QUEUE_OFFSETS, expected), ignore_row_order=True, ignore_nullable=True
    )
