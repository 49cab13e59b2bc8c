"""How far a group has consumed each queue."""

from __future__ import annotations

from tests.snapshots.builders import at, stats, tables


def test_of_offsets_that_were_collected_twice_the_later_count():
    rows = tables(
        stats({0: (100, 90), 1: (7, 7)}, collected=2),
        # Of this queue the earlier answer is the only one.
        stats({0: (50, 40), 2: (5, 5)}, collected=1),
        # -1: nothing was committed yet.
        stats({0: (200, -1)}, seconds=60),
    )
    found = {
        (row["snapshot_time"], row["queue_id"]): (row["broker_offset"], row["consumer_offset"])
        for row in rows["queue_offsets"]
    }
    assert found == {
        (at(0), 0): (100, 90),
        (at(0), 1): (7, 7),
        (at(0), 2): (5, 5),
        (at(60), 0): (200, -1),
    }
    assert len(rows["queue_offsets"]) == len(found)
