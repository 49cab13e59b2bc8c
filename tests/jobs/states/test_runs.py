"""fingerprints -> runs: the stretches of snapshots in which nothing changed."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.states.runs import find_runs
from tests.support.snapshots import at, frame

pytestmark = pytest.mark.spark

FINGERPRINT = "fingerprint struct<high:bigint,low:bigint>"
A, B = (1, 1), (1, 2)


def test_a_run_ends_where_the_fingerprint_changes_and_not_where_a_snapshot_is_missing(spark):
    seen = {
        "unchanged": [(0, A), (60, A), (120, A)],
        "with a gap": [(0, A), (60, A), (3600, A)],
        "there and back": [(0, A), (60, B), (120, A), (180, A)],
        "seen once": [(60, B)],
    }
    fingerprints = frame(
        spark,
        f"consumer_group string, snapshot_time timestamp, {FINGERPRINT}",
        [
            (name, at(time), value)
            for name, times in seen.items()
            for time, value in reversed(times)
        ],
    )

    runs = find_runs(fingerprints, ["consumer_group"])

    def run(name, value, number, *times):
        moments = [at(time) for time in times]
        return name, value, number, moments[0], moments[-1], moments

    expected = frame(
        spark,
        f"consumer_group string, {FINGERPRINT}, run bigint, first_seen timestamp, "
        "last_seen timestamp, snapshot_times array<timestamp>",
        [
            run("unchanged", A, 0, 0, 60, 120),
            run("with a gap", A, 0, 0, 60, 3600),
            run("there and back", A, 0, 0),
            run("there and back", B, 1, 60),
            run("there and back", A, 2, 120, 180),
            run("seen once", B, 0, 60),
        ],
    )
    assert_df_equality(runs, expected, ignore_row_order=True, ignore_nullable=True)
