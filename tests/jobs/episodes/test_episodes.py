"""timeline -> episodes: how long a fault lasted without a break, over all its states."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality
from pyspark.sql import types as T

from jobs.episodes.episodes import fault_episodes, queue_episodes, stacked_id_episodes
from jobs.states.evaluation import EVALUATION
from tests.support.snapshots import CLUSTER, GROUP, TOPIC, at, frame

pytestmark = pytest.mark.spark

TIMELINE = T.StructType(
    [
        T.StructField("cluster", T.StringType()),
        T.StructField("consumer_group", T.StringType()),
        T.StructField("topic", T.StringType()),
        T.StructField("position", T.IntegerType()),
        T.StructField("known_position", T.IntegerType()),
        T.StructField("group_run", T.LongType()),
        T.StructField("first_seen", T.TimestampType()),
        T.StructField("last_seen", T.TimestampType()),
        T.StructField("snapshots", T.LongType()),
        T.StructField("timeline_end", T.TimestampType()),
        *[
            EVALUATION[n]
            for n in ("completeness", "strategy_source", "findings", "faults", "stacked")
        ],
    ]
)
END = 600


def finding(
    probability=1.0, kind="ORPHANED", queue_id=0, claimants=(), causes=("STRATEGY_MISMATCH",)
):
    certainty = "CERTAIN" if probability == 1.0 else "POSSIBLE"
    return kind, "broker-a", queue_id, certainty, probability, list(claimants), list(causes)


def fault(name="STRATEGY_MISMATCH", **overrides):
    values = {
        "fault": name,
        "evidence": "a uses CIRCLE, b AVG",
        "remedy": "use one",
        "client_ids": ["a"],
        "client_addrs": ["h:1"],
        "broker_names": ["broker-a"],
        "queues_affected": 2,
        "findings_cleared": 2,
        "findings_left": 0,
        "moves": [("broker-a", 0, ["a"], ["b"])],
    }
    return tuple((values | overrides).values())


def stacked_id(client_id="a", **overrides):
    values = {
        "client_id": client_id,
        "id_format": "JAVA_PID",
        "evidence": "listed 2 times",
        "remedy": "give each its own",
        "copies": 2,
        "processes": 2,
        "client_addrs": ["h:1", "h:2"],
        "versions": [401],
        "languages": ["JAVA"],
        "slots_wasted": 1,
        "queues_duplicated": 2,
        "queues_orphaned": 3,
    }
    return tuple((values | overrides).values())


def segment(position, first, last, **overrides):
    values = {
        "cluster": CLUSTER,
        "consumer_group": GROUP,
        "topic": TOPIC,
        "position": position,
        "known_position": position,
        "group_run": position,
        "first_seen": at(first),
        "last_seen": at(last),
        "snapshots": (last - first) // 60 + 1,
        "timeline_end": at(END),
        "completeness": 1.0,
        "strategy_source": "assumed",
        "findings": [],
        "faults": [],
        "stacked": [],
    }
    return tuple((values | overrides).values())


def episodes(spark, *segments):
    return queue_episodes(frame(spark, TIMELINE, segments), persistence_seconds=180)


def expect(spark, actual, columns, rows):
    names = [column.split()[0] for column in columns.split(", ")]
    assert_df_equality(
        actual.select(*names),
        frame(spark, columns, rows),
        ignore_row_order=True,
        ignore_nullable=True,
    )


TIMES = (
    "first_seen timestamp, last_seen timestamp, snapshots bigint, persistence string, "
    "ongoing boolean"
)


def test_a_fault_that_goes_through_several_states_is_one_episode(spark):
    first = [finding(0.25, claimants=[("a", 1, 0.5)])]
    second = [finding(0.75, claimants=[("b", 2, 0.25)]), finding(queue_id=1)]
    actual = episodes(
        spark,
        segment(3, 0, 60, findings=first, completeness=0.5),
        segment(4, 120, 180, findings=second, strategy_source="observed"),
    )

    expect(
        spark,
        actual.where("queue_id = 0"),
        "kind string, certainty string, probability double, completeness double, "
        "claimants array<struct<client_id:string,processes:int,probability:double>>, "
        f"strategy_source string, {TIMES}",
        [
            (
                "ORPHANED",
                "POSSIBLE",
                0.75,
                0.5,
                [("b", 2, 0.25)],
                "observed",
                at(0),
                at(180),
                4,
                "PERSISTENT",
                False,
            )
        ],
    )


def test_a_fault_that_was_mended_in_between_is_two_episodes(spark):
    actual = episodes(
        spark,
        segment(1, 0, 120, findings=[finding()]),
        segment(2, 180, 240),
        segment(3, 300, END, findings=[finding()]),
    )

    expect(
        spark,
        actual,
        TIMES,
        [
            (at(0), at(120), 3, "TRANSIENT", False),
            (at(300), at(END), 6, "PERSISTENT", True),
        ],
    )


def test_an_episode_of_exactly_the_persistence_seconds_is_persistent(spark):
    actual = episodes(
        spark,
        segment(1, 0, 180, findings=[finding(queue_id=0)]),
        segment(1, 0, 179, findings=[finding(queue_id=1)], topic="T2"),
    )

    expect(
        spark,
        actual,
        "topic string, persistence string",
        [("T", "PERSISTENT"), ("T2", "TRANSIENT")],
    )


def test_a_change_of_certainty_splits_the_rows_and_not_the_episode(spark):
    actual = episodes(
        spark,
        segment(1, 0, 60, findings=[finding()]),
        segment(2, 120, 120, findings=[finding(0.5)]),
        segment(3, 180, 240, findings=[finding(0.25)]),
        segment(4, 300, END, findings=[finding()]),
    )

    whole = (at(0), at(END))
    expect(
        spark,
        actual,
        f"certainty string, probability double, {TIMES}, "
        "episode_first_seen timestamp, episode_last_seen timestamp",
        [
            ("CERTAIN", 1.0, at(0), at(60), 2, "PERSISTENT", False, *whole),
            ("POSSIBLE", 0.5, at(120), at(240), 3, "PERSISTENT", False, *whole),
            ("CERTAIN", 1.0, at(300), at(END), 6, "PERSISTENT", True, *whole),
        ],
    )


def test_the_kinds_queues_and_topics_have_episodes_of_their_own(spark):
    both = [finding(0.5), finding(0.5, kind="DUPLICATE")]
    actual = episodes(
        spark,
        segment(1, 0, 60, findings=both),
        segment(2, 120, 300, findings=[both[1], finding(queue_id=1)]),
        segment(1, 0, 60, topic="T2", findings=[finding()]),
    )

    expect(
        spark,
        actual,
        "topic string, kind string, queue_id int, first_seen timestamp, last_seen timestamp",
        [
            ("T", "ORPHANED", 0, at(0), at(60)),
            ("T", "DUPLICATE", 0, at(0), at(300)),
            ("T", "ORPHANED", 1, at(120), at(300)),
            ("T2", "ORPHANED", 0, at(0), at(60)),
        ],
    )


def test_the_causes_of_an_episode_are_those_that_lasted_else_those_of_all_its_states(spark):
    actual = episodes(
        spark,
        segment(1, 0, 60, findings=[finding(causes=["STALE_CHANNEL"])]),
        segment(2, 120, 150, findings=[finding(causes=["GHOST_MEMBER", "STALE_CHANNEL"])]),
        # Mended, and back: another episode has causes of its own.
        segment(3, 240, 240),
        segment(4, 300, 300, findings=[finding(causes=["BROKER_VIEW_DIVERGENCE"])]),
        segment(5, 360, 360, findings=[finding(causes=["ROUTE_DIVERGENCE", "CONFIG_GAP"])]),
        segment(6, 420, 480, findings=[finding(causes=["CONFIG_GAP"])]),
        segment(7, 540, END, findings=[finding(causes=["ROUTE_DIVERGENCE", "CONFIG_GAP"])]),
    )

    expect(
        spark,
        actual,
        "first_seen timestamp, causes array<string>",
        [
            (at(0), ["GHOST_MEMBER", "STALE_CHANNEL"]),
            (at(300), ["CONFIG_GAP", "ROUTE_DIVERGENCE"]),
        ],
    )


def faults(spark, *segments):
    return fault_episodes(frame(spark, TIMELINE, segments), persistence_seconds=180)


def test_a_fault_of_several_states_is_one_episode_told_as_the_last_with_the_most_queues(spark):
    last = {
        "evidence": "b uses CIRCLE, a AVG",
        "remedy": "use AVG",
        "client_ids": ["b"],
        "client_addrs": ["h:2"],
        "broker_names": ["broker-b"],
        "queues_affected": 1,
        "findings_cleared": 1,
        "findings_left": 3,
        "moves": [("broker-b", 1, [], ["a"])],
    }
    actual = faults(
        spark,
        segment(2, 0, 60, faults=[fault(queues_affected=2)]),
        segment(3, 120, 180, faults=[fault(queues_affected=5), fault("STALE_CHANNEL")]),
        segment(4, 240, 300, faults=[fault(**last)]),
    )

    expect(
        spark,
        actual.where("fault = 'STRATEGY_MISMATCH'"),
        "cluster string, consumer_group string, topic string, evidence string, remedy string, "
        "client_ids array<string>, client_addrs array<string>, broker_names array<string>, "
        "queues_affected int, findings_cleared int, findings_left int, "
        "moves array<struct<broker_name:string,queue_id:int,before:array<string>,"
        f"after:array<string>>>, {TIMES}",
        [
            (
                *(CLUSTER, GROUP, TOPIC),
                *(last | {"queues_affected": 5}).values(),
                *(at(0), at(300), 6, "PERSISTENT", False),
            )
        ],
    )


def test_the_faults_and_topics_have_episodes_of_their_own_and_one_that_was_mended_two(spark):
    actual = faults(
        spark,
        segment(1, 0, 120, faults=[fault(), fault("STALE_CHANNEL")]),
        segment(2, 180, 240, faults=[fault("STALE_CHANNEL")]),
        segment(3, 300, END, faults=[fault()]),
        segment(1, 0, 60, topic="T2", faults=[fault()]),
    )

    expect(
        spark,
        actual,
        f"topic string, fault string, {TIMES}",
        [
            ("T", "STRATEGY_MISMATCH", at(0), at(120), 3, "TRANSIENT", False),
            ("T", "STRATEGY_MISMATCH", at(300), at(END), 6, "PERSISTENT", True),
            ("T", "STALE_CHANNEL", at(0), at(240), 5, "PERSISTENT", False),
            ("T2", "STRATEGY_MISMATCH", at(0), at(60), 2, "TRANSIENT", False),
        ],
    )


def stacked(spark, *segments):
    return stacked_id_episodes(frame(spark, TIMELINE, segments), persistence_seconds=180)


def test_a_stacked_id_has_the_queues_of_all_its_topics_and_the_snapshots_of_its_group(spark):
    retry = stacked_id(queues_duplicated=1, queues_orphaned=0, client_addrs=["h:3", "h:1"])
    actual = stacked(
        spark,
        segment(1, 0, 60, stacked=[stacked_id(versions=[390])]),
        # The route of T changed within the group's second run.
        segment(2, 120, 180, group_run=2, stacked=[stacked_id(queues_orphaned=5)]),
        segment(3, 240, END, group_run=2, stacked=[stacked_id(languages=["CPP"])]),
        segment(1, 0, 60, topic="%RETRY%G", stacked=[retry]),
        segment(2, 120, END, topic="%RETRY%G", group_run=2, stacked=[retry]),
    )

    expect(
        spark,
        actual,
        "client_id string, topics array<string>, processes int, client_addrs array<string>, "
        "versions array<int>, languages array<string>, queues_duplicated int, "
        f"queues_orphaned int, slots_wasted int, verdict string, {TIMES}",
        [
            (
                "a",
                ["%RETRY%G", "T"],
                2,
                ["h:1", "h:2", "h:3"],
                [390, 401],
                ["CPP", "JAVA"],
                3,
                5,
                1,
                "STACKED",
                at(0),
                at(END),
                11,
                "PERSISTENT",
                True,
            )
        ],
    )


def test_a_stacked_id_that_was_gone_for_a_run_of_its_group_has_two_episodes(spark):
    actual = stacked(
        spark,
        segment(1, 0, 60, stacked=[stacked_id("a"), stacked_id("b")]),
        segment(2, 120, 120, stacked=[stacked_id("b")]),
        segment(3, 180, 240, stacked=[stacked_id("a"), stacked_id("b")]),
    )

    expect(
        spark,
        actual,
        f"client_id string, {TIMES}",
        [
            ("a", at(0), at(60), 2, "TRANSIENT", False),
            ("a", at(180), at(240), 2, "TRANSIENT", False),
            ("b", at(0), at(240), 5, "PERSISTENT", False),
        ],
    )


def test_a_run_of_which_nothing_is_known_breaks_no_episode_of_a_stacked_id(spark):
    actual = stacked(
        spark,
        segment(1, 0, 60, group_run=1, stacked=[stacked_id()]),
        segment(2, 300, END, group_run=3, stacked=[stacked_id()]),
    )

    expect(spark, actual, TIMES, [(at(0), at(END), 8, "PERSISTENT", True)])


def test_an_id_of_one_process_is_a_stale_channel_and_has_the_remedy_of_most_processes(spark):
    stale = {"processes": 1, "remedy": "none"}
    actual = stacked(
        spark,
        segment(1, 0, 60, stacked=[stacked_id("a", **stale), stacked_id("b", **stale)]),
        segment(2, 120, 180, stacked=[stacked_id("a", **stale), stacked_id("b")]),
    )

    expect(
        spark,
        actual,
        "client_id string, processes int, verdict string, remedy string",
        [("a", 1, "STALE_CHANNEL", "none"), ("b", 2, "STACKED", "give each its own")],
    )
