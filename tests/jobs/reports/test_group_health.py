"""segments, states, findings -> group_health: every group and topic, audited or not."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.reports.states import group_health, topics_without_group
from jobs.schemas import GROUP_HEALTH, TOPIC_ROUTES
from jobs.states.fingerprints import route_fingerprints
from jobs.states.representatives import collect_route_states
from jobs.states.runs import find_runs
from tests.support.snapshots import CLUSTER, TOPIC, at, frame, route_row

pytestmark = pytest.mark.spark

FINDINGS = (
    "cluster string, consumer_group string, topic string, kind string, severity string, "
    "probability double, first_seen timestamp, last_seen timestamp"
)


def segments_of(spark, rows):
    """``rows``: group, state, first snapshot, last snapshot, snapshots."""
    return frame(
        spark,
        "cluster string, consumer_group string, topic string, state_id string, "
        "first_seen timestamp, last_seen timestamp, snapshots bigint",
        [(CLUSTER, g, TOPIC, f"{g}/{s}", at(first), at(last), n) for g, s, first, last, n in rows],
    )


def states_of(spark, rows):
    """``rows``: group, state, coverage, known, completeness, members and queues."""
    return frame(
        spark,
        "cluster string, consumer_group string, topic string, state_id string, coverage string, "
        "reason string, known boolean, completeness double, members int, processes int, "
        "queues int, idle_clients int, imbalance int, strategy_source string",
        [
            (
                CLUSTER,
                g,
                TOPIC,
                f"{g}/{s}",
                coverage,
                f"why {s}",
                known,
                share,
                n,
                n,
                q,
                0,
                1,
                source,
            )
            for g, s, coverage, known, share, n, q, source in rows
        ],
    )


def test_a_group_keeps_its_row_whether_or_not_it_was_audited(spark):
    segments = segments_of(
        spark,
        [
            ("healthy", "good", 0, 240, 5),
            ("stuck", "good", 0, 240, 5),
            ("faulty", "good", 0, 60, 2),
            ("faulty", "bad", 120, 240, 3),
            ("broadcasting", "all", 0, 240, 5),
            ("silent", "none", 0, 240, 5),
            ("silent at last", "good", 0, 60, 2),
            ("silent at last", "none", 120, 240, 3),
        ],
    )
    states = states_of(
        spark,
        [
            ("healthy", "good", "AUDITED", True, 1.0, 2, 8, "observed"),
            ("stuck", "good", "AUDITED", True, 1.0, 2, 8, "observed"),
            ("faulty", "good", "AUDITED", True, 1.0, 2, 8, "assumed"),
            ("faulty", "bad", "AUDITED", True, 0.5, 3, 8, "assumed"),
            ("broadcasting", "all", "BROADCASTING", True, 1.0, 2, 8, None),
            ("silent", "none", "NO_BROKER_ANSWERED", False, 0.0, 0, 8, None),
            ("silent at last", "good", "AUDITED", True, 1.0, 2, 8, "assumed"),
            ("silent at last", "none", "NO_BROKER_ANSWERED", False, 0.0, 0, 8, None),
        ],
    )
    findings = frame(
        spark,
        FINDINGS,
        [
            (CLUSTER, "faulty", TOPIC, "ORPHANED", "CRITICAL", 1.0, at(120), at(240)),
            (CLUSTER, "faulty", TOPIC, "ORPHANED", "WARNING", 0.5, at(120), at(180)),
            (CLUSTER, "faulty", TOPIC, "DUPLICATE", "INFO", 1.0, at(120), at(180)),
        ],
    )

    stalled = frame(
        spark,
        "cluster string, consumer_group string, topic string, severity string, "
        "first_seen timestamp, last_seen timestamp",
        [
            (CLUSTER, "stuck", TOPIC, "WARNING", at(120), at(240)),
            (CLUSTER, "faulty", TOPIC, "INFO", at(120), at(240)),
        ],
    )

    health = group_health(segments, states, findings, stalled)

    def row(
        group, coverage, state, audited, share, members, source, orphan=0.0, twice=0.0, worst=None
    ):
        seen = (5, audited, at(0), at(240), share)
        size = (members, members, 8, 0, 1, source)
        return CLUSTER, group, TOPIC, coverage, f"why {state}", *seen, *size, orphan, twice, worst

    expected = [
        row("healthy", "AUDITED", "good", 5, 1.0, 2, "observed"),
        row("stuck", "AUDITED", "good", 5, 1.0, 2, "observed", worst="WARNING"),
        row("faulty", "AUDITED", "bad", 5, 0.5, 3, "assumed", 2.5, 1.0, "CRITICAL"),
        row("broadcasting", "BROADCASTING", "all", 0, 1.0, 2, None),
        row("silent", "NO_BROKER_ANSWERED", "none", 0, 0.0, 0, None),
        row("silent at last", "AUDITED", "good", 2, 1.0, 2, "assumed"),
    ]
    assert_df_equality(
        health, frame(spark, GROUP_HEALTH, expected), ignore_row_order=True, ignore_nullable=True
    )


@pytest.mark.parametrize("probabilities", [(0.1, 0.2, 0.3), (0.3, 0.2, 0.1)])
def test_minutes_add_up_to_the_same_in_any_order(spark, probabilities):
    findings = frame(
        spark,
        FINDINGS,
        [(CLUSTER, "G", TOPIC, "ORPHANED", "INFO", p, at(0), at(60)) for p in probabilities],
    ).coalesce(1)
    health = group_health(
        segments_of(spark, [("G", "bad", 0, 60, 2)]),
        states_of(spark, [("G", "bad", "AUDITED", True, 0.5, 3, 8, "assumed")]),
        findings,
        findings.select(*findings.columns).limit(0),
    )
    assert [row.orphan_queue_minutes for row in health.collect()] == [0.6]


def test_a_topic_that_has_a_route_and_no_group_keeps_its_row(spark):
    routes = frame(
        spark,
        TOPIC_ROUTES,
        [
            route_row(topic="read"),
            *[route_row(topic="lonely", snapshot_time=at(time)) for time in (0, 60)],
            route_row(topic="lonely", snapshot_time=at(60), broker_name="broker-b"),
            route_row(topic="lonely", snapshot_time=at(60), broker_name="broker-c", perm=2),
            route_row(topic="%RETRY%H", read_queue_nums=1),
        ],
    )
    runs = find_runs(route_fingerprints(routes), ["cluster", "topic"])
    group_topics = frame(
        spark,
        "cluster string, consumer_group string, topic string",
        [(CLUSTER, "G", "read"), (CLUSTER, "offline", "")],
    )

    rows = topics_without_group(runs, collect_route_states(runs, routes), group_topics)

    assert rows.columns == GROUP_HEALTH.schema.names
    assert {
        (row.consumer_group, row.topic, row.coverage, row.snapshots, row.queues)
        for row in rows.collect()
    } == {("", "lonely", "NO_GROUP", 2, 8), ("H", "%RETRY%H", "NO_GROUP", 1, 1)}
