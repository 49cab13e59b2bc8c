"""Lines of a dump, each a plain base case of its kind."""

from __future__ import annotations

import json
from typing import Any

GROUP = "G"
TOPIC = "T"
#: 09:00 of the day of the lines, in microseconds.
NINE = 1_767_603_600_000_000

_ENVELOPES: dict[str, dict[str, Any]] = {
    "heartbeat": {"broker_name": "broker-a", "broker_id": 0, "client_addr": "10.0.0.1:40000"},
    "consumer_connection": {"broker_name": "broker-a", "broker_id": 0, "consumer_group": GROUP},
    "topic_route": {"namesrv_addr": "ns-1:9876", "topic": TOPIC},
    "consumer_running_info": {"consumer_group": GROUP, "client_id": "10.0.0.1@1"},
    "consume_stats": {"consumer_group": GROUP},
    "topic_stats": {"broker_name": "broker-a", "broker_id": 0, "consumer_group": GROUP},
    "message_request_mode": {"broker_name": "broker-a", "broker_id": 0},
    "subscription_group": {"broker_name": "broker-a", "broker_id": 0},
    "client_log": {"process": "host-1"},
}
_UNPOLLED = ("heartbeat", "client_log")

BODIES: dict[str, str] = {
    "heartbeat": '{"clientID":"10.0.0.1@1","consumerDataSet":[{"consumeType":"CONSUME_PASSIVELY",'
    '"groupName":"G","messageModel":"CLUSTERING","subscriptionDataSet":[{"expressionType":"TAG",'
    '"subString":"*","topic":"T"}]}]}',
    "consumer_connection": '{"connectionSet":[{"clientAddr":"10.0.0.1:40000",'
    '"clientId":"10.0.0.1@1","language":"JAVA","version":401}],"consumeType":"CONSUME_PASSIVELY",'
    '"messageModel":"CLUSTERING","subscriptionTable":{"T":{"subString":"a||b","topic":"T"}}}',
    "topic_route": '{"brokerDatas":[{"brokerAddrs":{0:"10.0.1.1:10911"},"brokerName":"broker-a"}],'
    '"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"writeQueueNums":8}]}',
    "consumer_running_info": '{"mqTable":{{"brokerName":"broker-a","queueId":3,"topic":"T"}:'
    '{"droped":true,"lastPullTimestamp":1767603600000}},"properties":{"allocateMessageQueueStrategy'
    '":"org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@1f",'
    '"messageModel":"CLUSTERING","PROP_CONSUMEORDERLY":"true",'
    '"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY","PROP_CONSUMER_START_TIMESTAMP":"1767603600000"},'
    '"subscriptionSet":[{"subString":"*","topic":"T"}]}',
    "consume_stats": '{"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"T"}:'
    '{"brokerOffset":9,"consumerOffset":7,"lastTimestamp":1767603600000}}}',
    "topic_stats": '{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"%DLQ%G"}:'
    '{"lastUpdateTimestamp":1767603600000,"maxOffset":9,"minOffset":2}}}',
    "message_request_mode": '{"messageRequestModeMap":{"T":{"G":{"consumerGroup":"G",'
    '"mode":"POP","popShareQueueNum":4,"topic":"T"}}}}',
    "subscription_group": '{"subscriptionGroupTable":{"G":{"consumeBroadcastEnable":true,'
    '"consumeEnable":false,"groupName":"G","retryQueueNums":1}}}',
    "client_log": "2026-01-05 09:00:00,000 INFO RocketmqClient - rebalanced result changed. "
    "allocateMessageQueueStrategyName=AVG, group=G, topic=T, clientId=10.0.0.1@1, mqAllSize=4, "
    "cidAllSize=2, rebalanceResultSize=1, rebalanceResultSet=[MessageQueue [topic=T, "
    "brokerName=broker-a, queueId=3]]",
}


def line(kind: str, **overrides: Any) -> str:
    """A line of a kind; what is None among the overrides is left out."""
    envelope: dict[str, Any] = {
        "kind": kind,
        "cluster": "C",
        "collected_at": "2026-01-05T09:00:00.250Z",
        **_ENVELOPES[kind],
        "body": BODIES[kind],
    }
    if kind not in _UNPOLLED:
        envelope["snapshot_time"] = "2026-01-05T09:00:00Z"
    envelope |= overrides
    return json.dumps({key: value for key, value in envelope.items() if value is not None})
