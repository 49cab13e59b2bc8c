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


def test_a_running_info_and_a_log_line_are_one_row_each_and_other_log_lines_none(spark, records):
    held = (
        '{"properties":{"allocateMessageQueueStrategy":'
        '"org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash@1f",'
        '"messageModel":"CLUSTERING","PROP_CONSUMEORDERLY":"true",'
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
            consume_orderly=True,
            subscriptions=subscriptions("T"),
            queues=[("T", "broker-a", 3, True, at(60))],
        ),
        row(
            observed_at=at(60),
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
