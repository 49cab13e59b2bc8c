"""state tables of an earlier run and the rounds since -> what one run over all would give."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.states.continued import (
    GROUP,
    TOPIC,
    clip_runs,
    join_runs,
    known_evaluations,
    known_group_states,
    known_route_states,
    without_known,
)
from jobs.states.runs import find_runs
from tests.support.snapshots import CLUSTER, at, frame

pytestmark = pytest.mark.spark

FINGERPRINT = "fingerprint struct<high:bigint,low:bigint>"
A, B, C = (1, 1), (1, 2), (1, 3)

#: By group: what it looked like in each minute.
SEEN = {
    "unchanged": [A, A, A, A],
    "changed at the cut": [A, A, B, B],
    "changed and back": [A, B, A, A],
    "missed around the cut": [A, None, None, A],
    "gone": [A, B, None, None],
    "new": [None, None, A, B],
}


def runs(spark, first, end):
    fingerprints = frame(
        spark,
        f"cluster string, consumer_group string, snapshot_time timestamp, {FINGERPRINT}",
        [
            (CLUSTER, group, at(60 * minute), fingerprint)
            for group, seen in SEEN.items()
            for minute, fingerprint in enumerate(seen)
            if fingerprint is not None and first <= minute < end
        ],
    )
    return find_runs(fingerprints, GROUP)


@pytest.mark.parametrize("cut", range(5))
def test_runs_joined_over_a_cut_are_those_of_one_stretch(spark, cut):
    joined = join_runs(runs(spark, 0, cut), runs(spark, cut, 4), GROUP)
    assert_df_equality(joined, runs(spark, 0, 4), ignore_row_order=True, ignore_nullable=True)


def test_clipped_runs_are_those_of_the_shorter_stretch(spark):
    clipped = clip_runs(runs(spark, 0, 4), lambda time: (time >= at(60)) & (time <= at(120)))
    # Numbers are given when runs are joined.
    assert_df_equality(
        join_runs(clipped, runs(spark, 4, 4), GROUP),
        runs(spark, 1, 3),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def group_runs(spark, rows):
    return frame(
        spark,
        f"cluster string, consumer_group string, {FINGERPRINT}, first_seen timestamp, "
        "last_seen timestamp",
        [(CLUSTER, "G", each, at(first), at(last)) for each, first, last in rows],
    )


def group_states(spark, rows):
    return frame(
        spark,
        f"cluster string, consumer_group string, {FINGERPRINT}, lasting boolean, members string",
        [(CLUSTER, "G", *row) for row in rows],
    )


def test_known_lists_are_kept_while_a_run_has_them_and_last_as_the_runs_say(spark):
    in_runs = group_runs(spark, [(A, 0, 131), (B, 200, 260), (C, 300, 300)])
    known = group_states(spark, [(A, False, "a"), (B, False, "b"), ((9, 9), True, "gone")])

    assert_df_equality(
        known_group_states(in_runs, known, 130),
        group_states(spark, [(A, True, "a"), (B, False, "b")]),
        ignore_row_order=True,
        ignore_nullable=True,
    )
    unknown = without_known(in_runs, known, GROUP).select("fingerprint").collect()
    assert [tuple(row.fingerprint) for row in unknown] == [C]


def test_known_routes_are_kept_once_while_a_run_has_them(spark):
    in_runs = frame(
        spark,
        f"cluster string, topic string, {FINGERPRINT}, run bigint",
        [(CLUSTER, "T", A, 0), (CLUSTER, "T", B, 1), (CLUSTER, "T", A, 2)],
    )
    known = frame(
        spark,
        f"cluster string, topic string, {FINGERPRINT}, routes string",
        [(CLUSTER, "T", A, "of A"), (CLUSTER, "T", C, "gone"), (CLUSTER, "T2", B, "another's")],
    )
    kept = known_route_states(in_runs, known).select("routes").collect()
    assert [row.routes for row in kept] == ["of A"]
    unknown = without_known(in_runs, known, TOPIC).select("fingerprint").collect()
    assert [tuple(row.fingerprint) for row in unknown] == [B]


def test_an_evaluation_is_reused_while_its_lists_last_as_they_did(spark):
    segments = frame(
        spark,
        "cluster string, consumer_group string, topic string, state_id string, "
        "group_fingerprint struct<high:bigint,low:bigint>",
        [
            (CLUSTER, "G", "T", "same", A),
            (CLUSTER, "G", "T", "same", A),
            (CLUSTER, "G", "T", "lasts now", B),
            (CLUSTER, "G", "T2", "new", A),
        ],
    )
    lists = group_states(spark, [(A, False, "a"), (B, True, "b")])
    known = frame(
        spark,
        "state_id string, reason string, lasting boolean",
        [("same", "kept", False), ("lasts now", "old", False), ("gone", "old", False)],
    )

    reused = known_evaluations(segments, lists, known)

    assert [tuple(row) for row in reused.collect()] == [("same", False, "kept")]
