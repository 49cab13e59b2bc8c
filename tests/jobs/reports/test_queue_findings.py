"""episodes -> the tables of faulty queues: severity, identity, backlog."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.reports.findings import (
    describe_findings,
    finding_id,
    queue_findings,
    severity,
    stall_severity,
    unreadable_queues,
)
from jobs.schemas import ORPHANED_QUEUES, QUEUE_OFFSETS, UNREADABLE_QUEUES
from jobs.settings import SeverityThresholds
from tests.support.snapshots import CLUSTER, GROUP, TOPIC, at, frame, offset_row

pytestmark = pytest.mark.spark

EPISODES = (
    "cluster string, consumer_group string, topic string, kind string, broker_name string, "
    "queue_id int, certainty string, first_seen timestamp, last_seen timestamp, snapshots bigint, "
    "probability double, completeness double, "
    "claimants array<struct<client_id:string,processes:int,probability:double>>, "
    "causes array<string>, strategy_source string, episode_first_seen timestamp, "
    "episode_last_seen timestamp, persistence string, ongoing boolean, confirmed boolean"
)


def episode(**overrides):
    values = {
        "cluster": CLUSTER,
        "consumer_group": GROUP,
        "topic": TOPIC,
        "kind": "ORPHANED",
        "broker_name": "broker-a",
        "queue_id": 0,
        "certainty": "CERTAIN",
        "first_seen": at(0),
        "last_seen": at(600),
        "snapshots": 11,
        "probability": 1.0,
        "completeness": 1.0,
        "claimants": [],
        "causes": ["STALE_CHANNEL", "STRATEGY_MISMATCH"],
        "strategy_source": "assumed",
        "episode_first_seen": at(0),
        "episode_last_seen": at(600),
        "persistence": "PERSISTENT",
        "ongoing": True,
        "confirmed": True,
    }
    return tuple((values | overrides).values())


def test_severity_follows_persistence_probability_and_the_harm_that_is_done(spark):
    cases = [
        ("PERSISTENT", "ORPHANED", 1.0, None, None, "CRITICAL"),
        ("PERSISTENT", "ORPHANED", 0.5, 0.0, False, "CRITICAL"),
        ("PERSISTENT", "ORPHANED", 0.49, 0.0, True, "WARNING"),
        ("PERSISTENT", "ORPHANED", 0.49, None, None, "WARNING"),
        ("PERSISTENT", "ORPHANED", 0.49, -0.5, None, "WARNING"),
        # A few messages are always on their way.
        ("PERSISTENT", "ORPHANED", 0.1, 0.04, None, "WARNING"),
        # Messages pile up: nobody reads it, however improbable that looked.
        ("PERSISTENT", "ORPHANED", 0.1, 0.5, None, "CRITICAL"),
        ("PERSISTENT", "ORPHANED", 0.09, 0.5, None, "INFO"),
        ("PERSISTENT", "DUPLICATE", 1.0, None, None, "WARNING"),
        ("PERSISTENT", "DUPLICATE", 1.0, 0.5, False, "WARNING"),
        ("PERSISTENT", "DUPLICATE", 0.1, None, None, "WARNING"),
        ("PERSISTENT", "DUPLICATE", 0.09, None, True, "INFO"),
        # Two that read a queue break the order that the group is to keep.
        ("PERSISTENT", "DUPLICATE", 0.5, None, True, "CRITICAL"),
        ("PERSISTENT", "DUPLICATE", 0.49, None, True, "WARNING"),
        ("TRANSIENT", "ORPHANED", 1.0, 0.5, None, "INFO"),
        ("TRANSIENT", "DUPLICATE", 1.0, None, True, "INFO"),
    ]
    names = (
        "persistence string, kind string, probability double, unread_share double, orderly boolean"
    )
    episodes = frame(spark, names, [case[:-1] for case in cases])

    graded = episodes.withColumn(
        "severity", severity(SeverityThresholds(warning_probability=0.1, critical_probability=0.5))
    )

    assert_df_equality(
        graded,
        frame(spark, names + ", severity string", cases),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_a_lasting_stall_is_a_warning_and_critical_where_messages_pile_up(spark):
    cases = [
        ("PERSISTENT", 0, "WARNING"),
        ("PERSISTENT", 1, "CRITICAL"),
        ("TRANSIENT", 1, "INFO"),
    ]
    names = "persistence string, backlog_growth bigint"
    graded = frame(spark, names, [case[:-1] for case in cases]).withColumn(
        "severity", stall_severity()
    )
    assert_df_equality(
        graded, frame(spark, names + ", severity string", cases), ignore_nullable=True
    )


def test_the_id_of_a_finding_is_that_of_its_queue_and_kind_in_every_run(spark):
    rows = [
        episode(),
        episode(first_seen=at(5), probability=0.5, certainty="POSSIBLE", ongoing=False),
        episode(kind="DUPLICATE"),
        episode(queue_id=1),
        episode(broker_name="broker-b"),
        episode(topic="%RETRY%G"),
        episode(consumer_group="H"),
        episode(cluster="other"),
    ]

    ids = [
        row["id"] for row in frame(spark, EPISODES, rows).select(finding_id().alias("id")).collect()
    ]

    # Users keep these ids in tickets and silences: they must not change from version to version.
    assert ids[:2] == ["b773ccbf7b5106df"] * 2
    assert len(set(ids[1:])) == 7


def test_the_backlog_is_that_of_the_last_offsets_seen_before_the_finding_ends(spark):
    offsets = [
        offset_row(broker_offset=500, consumer_offset=100),
        offset_row(snapshot_time=at(60), broker_offset=510, consumer_offset=500),
        offset_row(snapshot_time=at(601), broker_offset=999, consumer_offset=0),
        offset_row(queue_id=1, broker_offset=7, consumer_offset=9),
        offset_row(queue_id=2, topic="other", broker_offset=5, consumer_offset=0),
        offset_row(queue_id=3, snapshot_time=at(601), broker_offset=999, consumer_offset=0),
    ]
    episodes = [episode(queue_id=queue_id) for queue_id in range(4)]

    described = describe_findings(
        frame(spark, EPISODES, episodes),
        frame(spark, QUEUE_OFFSETS, offsets),
        None,
        SeverityThresholds(),
    )

    assert_df_equality(
        described.select("queue_id", "backlog"),
        frame(spark, "queue_id int, backlog bigint", [(0, 10), (1, 0), (2, None), (3, None)]),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_the_growth_of_a_backlog_is_from_the_poll_before_the_finding_to_its_last(spark):
    def polls(queue_id, lags):
        return [
            offset_row(
                queue_id=queue_id, snapshot_time=at(second), broker_offset=lag, consumer_offset=0
            )
            for second, lag in lags.items()
        ]

    offsets = [
        *polls(0, {0: 7, 90: 3, 110: 50, 200: 40, 301: 999}),  # from the last poll before it
        *polls(1, {100: 5}),  # its own first and last; messages are being read
        offset_row(queue_id=1, snapshot_time=at(300), broker_offset=5, consumer_offset=3),
        *polls(2, {110: 5, 200: 40, 301: 999}),  # nothing before it
        *polls(3, {90: 3, 301: 999}),  # none within: what lay there is known, not what came
        *polls(4, {200: 40}),  # nothing to compare with
    ]
    episodes = [
        episode(queue_id=queue_id, first_seen=at(100), last_seen=at(300)) for queue_id in range(6)
    ]

    described = describe_findings(
        frame(spark, EPISODES, episodes),
        frame(spark, QUEUE_OFFSETS, offsets),
        None,
        SeverityThresholds(),
    )

    growths = [
        (0, 40, 37, 1.0),
        (1, 2, -3, None),
        (2, 40, 35, 1.0),
        (3, 3, None, None),
        (4, 40, None, None),
        (5, None, None, None),
    ]
    names = "queue_id int, backlog bigint, backlog_growth bigint, unread_share double"
    assert_df_equality(
        described.select("queue_id", "backlog", "backlog_growth", "unread_share"),
        frame(spark, names, growths),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_a_group_is_orderly_where_any_client_of_it_says_so(spark):
    names = "cluster string, consumer_group string, consume_orderly boolean"
    clients = [
        (CLUSTER, GROUP, False),
        (CLUSTER, GROUP, True),
        (CLUSTER, GROUP, None),
        (CLUSTER, "at once", False),
        (CLUSTER, "silent", None),
        ("other", "not asked", True),
    ]
    groups = [GROUP, "at once", "silent", "not asked"]
    episodes = [episode(consumer_group=group, kind="DUPLICATE") for group in groups]

    described = describe_findings(
        frame(spark, EPISODES, episodes), None, frame(spark, names, clients), SeverityThresholds()
    )

    expected = [
        (GROUP, True, "CRITICAL"),
        ("at once", False, "WARNING"),
        ("silent", None, "WARNING"),
        ("not asked", None, "WARNING"),
    ]
    assert_df_equality(
        described.select("consumer_group", "orderly", "severity"),
        frame(spark, "consumer_group string, orderly boolean, severity string", expected),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_a_table_has_the_findings_of_its_kind_in_the_declared_columns(spark):
    episodes = frame(spark, EPISODES, [episode(), episode(kind="DUPLICATE", queue_id=1)])

    described = describe_findings(episodes, None, None, SeverityThresholds())
    orphaned = queue_findings(described, "ORPHANED", ORPHANED_QUEUES)

    expected = {
        "cluster": CLUSTER,
        "consumer_group": GROUP,
        "topic": TOPIC,
        "broker_name": "broker-a",
        "queue_id": 0,
        "first_seen": at(0),
        "last_seen": at(600),
        "snapshots": 11,
        "persistence": "PERSISTENT",
        "ongoing": True,
        "certainty": "CERTAIN",
        "probability": 1.0,
        "completeness": 1.0,
        "claimants": [],
        "causes": ["STALE_CHANNEL", "STRATEGY_MISMATCH"],
        "severity": "CRITICAL",
        "status": None,
        "strategy_source": "assumed",
        "backlog": None,
        "finding_id": "b773ccbf7b5106df",
        "episode_first_seen": at(0),
        "episode_last_seen": at(600),
        "backlog_growth": None,
        "orderly": None,
        "confirmed": True,
        "known_issue": None,
    }
    assert_df_equality(
        orphaned,
        frame(
            spark, ORPHANED_QUEUES, [tuple(expected[name] for name in ORPHANED_QUEUES.schema.names)]
        ),
        ignore_nullable=True,
    )


def test_an_unreadable_queue_is_told_once_from_its_first_to_its_last_snapshot(spark):
    segments = frame(
        spark,
        "cluster string, consumer_group string, topic string, state_id string, "
        "first_seen timestamp, last_seen timestamp, snapshots bigint",
        [
            (CLUSTER, GROUP, TOPIC, "both", at(0), at(60), 2),
            (CLUSTER, GROUP, TOPIC, "none", at(120), at(180), 2),
            (CLUSTER, GROUP, TOPIC, "one", at(240), at(240), 1),
        ],
    )
    # That a state could not be recomputed hides no queue that its route shows.
    states = frame(
        spark,
        "cluster string, consumer_group string, topic string, state_id string, known boolean, "
        "unreadable array<struct<broker_name:string,queue_id:int>>",
        [
            (CLUSTER, GROUP, TOPIC, "both", False, [("broker-a", 4), ("broker-a", 5)]),
            (CLUSTER, GROUP, TOPIC, "none", True, []),
            (CLUSTER, GROUP, TOPIC, "one", True, [("broker-a", 5)]),
        ],
    )

    assert_df_equality(
        unreadable_queues(segments, states),
        frame(
            spark,
            UNREADABLE_QUEUES,
            [
                (CLUSTER, GROUP, TOPIC, "broker-a", 4, at(0), at(60), 2),
                (CLUSTER, GROUP, TOPIC, "broker-a", 5, at(0), at(240), 3),
            ],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )
