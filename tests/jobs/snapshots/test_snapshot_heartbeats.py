"""records -> heartbeats: the members in each broker's list, with what each said of itself."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.dumps.plain import read_dumps
from jobs.schemas import HEARTBEATS
from jobs.snapshots.client_states import make_client_states
from jobs.snapshots.heartbeats import make_heartbeats
from jobs.snapshots.plain import make_group_rows
from jobs.snapshots.polls import latest_polls
from tests.support.snapshots import (
    CLUSTER,
    GROUP,
    at,
    frame,
    heartbeat_line,
    heartbeat_row,
    log_line,
    poll_line,
    running_info_line,
    subscriptions,
)

pytestmark = pytest.mark.spark

PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."


def heartbeats(records):
    return make_heartbeats(records, latest_polls(records), make_client_states(records))


def expect(spark, actual, columns, rows):
    names = [column.split()[0] for column in columns.split(", ")]
    assert_df_equality(
        actual.select(*names),
        frame(spark, columns, rows),
        ignore_row_order=True,
        ignore_nullable=True,
    )


def test_what_a_member_said_itself_counts_before_its_running_info_before_the_groups_table(
    spark, records
):
    actual = heartbeats(
        records(
            heartbeat_line("own", "T2", seconds=-20, message_model="BROADCASTING"),
            poll_line("own", "told", "silent", topics=["T1"]),
            running_info_line("own", "T3", seconds=0, properties={"messageModel": "CLUSTERING"}),
            running_info_line("told", "T3", seconds=0, properties={"messageModel": "BROADCASTING"}),
        )
    )

    expected = [
        heartbeat_row(
            client_id="own",
            message_model="BROADCASTING",
            subscriptions=subscriptions("T2"),
            subscription_source="HEARTBEAT",
            last_heartbeat_at=at(-20),
            pull_consumer=False,
        ),
        heartbeat_row(
            client_id="told",
            message_model="BROADCASTING",
            subscriptions=subscriptions("T3"),
            subscription_source="RUNNING_INFO",
            pull_consumer=False,
        ),
        heartbeat_row(
            client_id="silent",
            subscriptions=subscriptions("T1"),
            subscription_source="GROUP_TABLE",
        ),
    ]
    assert_df_equality(
        actual, frame(spark, HEARTBEATS, expected), ignore_row_order=True, ignore_nullable=True
    )


def test_of_several_heartbeats_the_last_full_one_before_the_poll_counts(spark, records):
    actual = heartbeats(
        records(
            # Heartbeat V2: the subscriptions are left out of what did not change.
            heartbeat_line("v2", "T1", seconds=0),
            heartbeat_line("v2", seconds=30, without_sub=True),
            # assign() subscribes to nothing, and says so.
            heartbeat_line("assign", "T1", seconds=0),
            heartbeat_line("assign", seconds=30, without_sub=False),
            heartbeat_line("changed", "T1", seconds=0),
            heartbeat_line("changed", "T2", "T1", seconds=60),
            heartbeat_line("changed", "T3", seconds=61),
            # The collector began to listen after the poll.
            heartbeat_line("late", "T4", seconds=90),
            heartbeat_line("late", "T5", seconds=120),
            # Of another connection of the id, of another group, to another broker.
            heartbeat_line("other", "T6", seconds=0, client_addr="other:2"),
            heartbeat_line("other", "T7", seconds=0, group="H"),
            heartbeat_line("elsewhere", "T8", seconds=0, broker_name="broker-b"),
            heartbeat_line("elsewhere", seconds=30, without_sub=True),
            poll_line(
                *("v2", "assign", "changed", "late", "other", "elsewhere", "silent"),
                topics=["T"],
                seconds=60,
            ),
        )
    )

    expect(
        spark,
        actual,
        "client_id string, "
        "subscriptions array<struct<topic:string,expression_type:string,expression:string>>, "
        "subscription_source string, last_heartbeat_at timestamp",
        [
            ("v2", subscriptions("T1"), "HEARTBEAT", at(30)),
            ("assign", [], "HEARTBEAT", at(30)),
            ("changed", subscriptions("T1", "T2"), "HEARTBEAT", at(60)),
            ("late", subscriptions("T4"), "HEARTBEAT", None),
            ("other", subscriptions("T6"), "HEARTBEAT", None),
            ("elsewhere", subscriptions("T8"), "HEARTBEAT", at(30)),
            ("silent", subscriptions("T"), "GROUP_TABLE", None),
        ],
    )


def test_a_member_that_said_nothing_subscribes_to_all_that_the_groups_table_showed(spark, records):
    actual = heartbeats(
        records(
            poll_line("a", topics=["T1"], seconds=0),
            poll_line("a", topics=["T2"], seconds=90),
            poll_line("a", topics=["T3"], seconds=120, broker_name="broker-b"),
            poll_line("a", topics=["T4"], seconds=500),
        )
    )

    expect(
        spark,
        actual,
        "snapshot_time timestamp, "
        "subscriptions array<struct<topic:string,expression_type:string,expression:string>>",
        [
            (at(0), subscriptions("T1", "T2", "T3")),
            (at(90), subscriptions("T1", "T2", "T3")),
            (at(120), subscriptions("T1", "T2", "T3")),
            (at(500), subscriptions("T4")),
        ],
    )


def test_a_poll_that_was_collected_twice_counts_once_and_copies_of_an_id_stay(spark, records):
    actual = heartbeats(
        records(
            poll_line("a", "b", seconds=0, collected_at=at(1)),
            poll_line("a", "a", "c", seconds=0, collected_at=at(2)),
            poll_line("a", seconds=0, broker_name="broker-b"),
            poll_line(seconds=0, broker_name="broker-c", error_code=206),
        )
    )

    expect(
        spark,
        actual,
        "broker_name string, client_id string, client_addr string",
        [
            ("broker-a", "a", "a:1"),
            ("broker-a", "a", "a:2"),
            ("broker-a", "c", "c:1"),
            ("broker-b", "a", "a:1"),
        ],
    )


def test_the_strategy_is_what_was_last_seen_of_the_client_and_a_log_names_what_nearby_wraps(
    spark, records
):
    def info(client_id, class_name, **more):
        strategy = {"allocateMessageQueueStrategy": f"{class_name}@1b2c3d"}
        return running_info_line(client_id, "T", seconds=0, properties=strategy | more)

    actual = heartbeats(
        records(
            poll_line("info", "nearby", "bare", "own", "logged", "pop", "orderly", "failed"),
            info("info", PACKAGE + "AllocateMessageQueueAveragelyByCircle"),
            info("nearby", PACKAGE + "AllocateMachineRoomNearby"),
            log_line("nearby", "MACHINE_ROOM_NEARBY-AVG", seconds=-600),
            info("bare", PACKAGE + "AllocateMachineRoomNearby"),
            info("own", "com.example.Mine"),
            log_line("logged", "CONSISTENT_HASH", seconds=10),
            log_line("logged", "AVG", seconds=-10, group="H"),
            info("pop", PACKAGE + "AllocateMessageQueueAveragely", clientRebalance="false"),
            # Who consumes in order is never assigned any queue.
            info(
                "orderly",
                PACKAGE + "AllocateMessageQueueAveragely",
                clientRebalance="false",
                PROP_CONSUMEORDERLY="true",
            ),
            running_info_line("failed", seconds=0, error_code=1, error_message="not online"),
        )
    )

    expect(
        spark,
        actual,
        "client_id string, strategy string, strategy_source string, client_rebalance boolean",
        [
            ("info", "AVG_BY_CIRCLE", "RUNNING_INFO", None),
            ("nearby", "MACHINE_ROOM_NEARBY-AVG", "RUNNING_INFO", None),
            ("bare", "MACHINE_ROOM_NEARBY", "RUNNING_INFO", None),
            ("own", "com.example.Mine", "RUNNING_INFO", None),
            ("logged", "CONSISTENT_HASH", "CLIENT_LOG", None),
            ("pop", "AVG", "RUNNING_INFO", False),
            ("orderly", "AVG", "RUNNING_INFO", True),
            ("failed", None, None, None),
        ],
    )


def test_without_spark_the_rows_are_the_same(records, tmp_path):
    lines = (
        heartbeat_line("a", "T1", seconds=0, broker_name="broker-b", message_model="BROADCASTING"),
        heartbeat_line("a", "T2", seconds=20, broker_name="broker-b"),
        heartbeat_line("a", "T1", seconds=40, broker_name="broker-b", message_model="BROADCASTING"),
        running_info_line("b", "T3", properties={"PROP_CONSUME_TYPE": "CONSUME_ACTIVELY"}),
        running_info_line(
            "c", properties={"clientRebalance": "false", "messageModel": "BROADCASTING"}
        ),
        running_info_line("d", properties={"clientRebalance": "false"}),
        poll_line("a", "b", "c", "d", seconds=60),
    )
    columns = [
        *("client_id", "consume_type", "message_model", "subscription_source"),
        *("client_rebalance", "last_heartbeat_at"),
    ]
    made = heartbeats(records(*lines)).orderBy("client_id").select(*columns, "subscriptions")
    rows = make_group_rows(read_dumps([str(tmp_path)], GROUP).records, CLUSTER, GROUP).heartbeats

    assert [[row[name] for name in columns] for row in rows] == [
        list(row[:-1]) for row in made.collect()
    ]
    assert [[each["topic"] for each in row["subscriptions"]] for row in rows] == [
        [each["topic"] for each in row["subscriptions"]] for row in made.collect()
    ]
