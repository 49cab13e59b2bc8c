"""records -> client_states: what clients said of themselves, in running infos and in their logs."""

from __future__ import annotations

import json

import pytest
from chispa import assert_df_equality

from jobs.schemas import CLIENT_STATES
from jobs.snapshots.client_states import make_client_states
from tests.support.snapshots import (
    CLUSTER,
    at,
    frame,
    log_line,
    running_info_line,
    subscriptions,
)

pytestmark = pytest.mark.spark

AT_NINE = "2026-01-05 09:00:00.000"
#: Collected timestamps are those of the session's zone, which is UTC.
NAIVE = at(0).replace(tzinfo=None)


def test_a_running_info_and_a_log_line_are_one_row_each_and_other_log_lines_none(spark, records):
    held = (
        '{"properties":{"allocateMessageQueueStrategy":'
        '"org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash@1f",'
        '"messageModel":"CLUSTERING","PROP_CONSUMEORDERLY":"true",'
        '"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY",'
        '"PROP_CONSUMER_START_TIMESTAMP":"1767571200000"},'
        '"subscriptionSet":[{"topic":"T","subString":"*"}],'
        '"mqTable":{{"brokerName":"broker-a","queueId":3,"topic":"T"}:'
        '{"droped":true,"lastPullTimestamp":1767571260000}}}'
    )
    info = json.loads(running_info_line("a", seconds=30, broker_name="broker-a", broker_id=0))
    chatter = json.loads(log_line("a", "AVG")) | {"body": "heartbeat sent"}

    actual = make_client_states(
        records(json.dumps(info | {"body": held}), log_line("b", "AVG", 60), json.dumps(chatter))
    )

    def row(**values):
        unset = dict.fromkeys(CLIENT_STATES.schema.names)
        return tuple((unset | {"cluster": CLUSTER, "consumer_group": "G"} | values).values())

    expected = [
        row(
            snapshot_time=at(30),
            observed_at=at(30),
            source="RUNNING_INFO",
            client_id="a",
            broker_name="broker-a",
            broker_id=0,
            start_timestamp=at(0),
            strategy="CONSISTENT_HASH",
            message_model="CLUSTERING",
            consume_type="CONSUME_PASSIVELY",
            pull_consumer=False,
            consume_orderly=True,
            subscriptions=subscriptions("T"),
            queues=[("T", "broker-a", 3, True, at(60))],
        ),
        row(
            observed_at=at(60),
            logged_at=at(0),
            source="CLIENT_LOG",
            client_id="b",
            strategy="AVG",
            topic="T",
            queue_count=4,
            client_count=1,
            queues=[],
        ),
    ]
    assert_df_equality(
        actual, frame(spark, CLIENT_STATES, expected), ignore_row_order=True, ignore_nullable=True
    )


def test_a_pull_consumer_is_told_by_the_field_that_only_its_class_has(records):
    lines = [
        running_info_line("pull", properties={"registerTopics": "[]"}),
        running_info_line("push"),
        running_info_line("away", error_code=1),
    ]
    rows = make_client_states(records(*lines)).collect()
    told = {row["client_id"]: row["pull_consumer"] for row in rows}
    assert told == {"pull": True, "push": False, "away": None}


def written(records, lines, time_zone=None):
    """When each line was written, in seconds; the lines are (log, printed, collected second)."""
    dump = records(
        *[
            log_line("a", "AVG", seconds, printed=printed, process=process)
            for process, printed, seconds in lines
        ]
    )
    rows = make_client_states(dump, time_zone).collect()
    return {
        (row["process"], (row["observed_at"] - NAIVE).total_seconds()): row["logged_at"]
        and (row["logged_at"] - NAIVE).total_seconds()
        for row in rows
    }


def test_the_zone_of_each_log_is_the_least_that_leaves_no_line_later_than_it_was_collected(records):
    lines = [
        ("4.x in UTC", "2026-01-05 01:00:00,250", 3600.25),
        ("5.x", "2026-01-05 09:00:00.500", 3601),
        # Gathered together a while later: the last line tells the zone of them all.
        ("in a bundle", "2026-01-05 08:00:00.000", 4200),
        ("in a bundle", "2026-01-05 09:00:00.000", 4201),
        ("New York", "2026-01-04 20:00:00,000", 3600.5),
        ("Kathmandu", "2026-01-05 06:45:00,000", 3700),
        ("Kiritimati", "2026-01-05 15:00:00,000", 3600),
        ("Baker Island", "2026-01-04 13:00:00,000", 3600),
        # Its clock is half a minute ahead of the collector's.
        ("ahead", "2026-01-05 09:00:30.000", 3600),
    ]
    assert written(records, lines) == {
        ("4.x in UTC", 3600.25): 3600.25,
        ("5.x", 3601): 3600.5,
        ("in a bundle", 4200): 0,
        ("in a bundle", 4201): 3600,
        ("New York", 3600.5): 3600,
        ("Kathmandu", 3700): 3600,
        ("Kiritimati", 3600): 3600,
        ("Baker Island", 3600): 3600,
        ("ahead", 3600): 3630,
    }


def test_a_line_without_a_time_counts_as_of_when_it_was_collected(records):
    lines = [("p", "INFO", 60), ("q", "2026-13-41 25:00:00,000", 61), ("p", AT_NINE, 3600)]
    expected = {("p", 60): 60, ("q", 61): 61, ("p", 3600): 3600}
    assert written(records, lines) == expected
    assert written(records, lines, "GMT+8") == expected


def test_what_no_zone_explains_was_collected_much_later_and_when_it_was_is_not_known(records):
    assert written(records, [("p", "2026-01-04 00:00:00,000", 60)]) == {("p", 60): None}
    assert written(records, [("p", "2026-01-04 00:00:00,000", 60)], "UTC") == {("p", 60): -86400}


@pytest.mark.parametrize(
    ("time_zone", "seconds"),
    [("GMT+8", 3600), ("Asia/Shanghai", 3600), ("America/New_York", 50400), ("UTC", 32400)],
)
def test_a_configured_zone_is_that_of_every_log_however_late_it_was_collected(
    records, time_zone, seconds
):
    lines = [("p", AT_NINE, 90000), ("q", AT_NINE, 3600)]
    assert set(written(records, lines, time_zone).values()) == {seconds}
