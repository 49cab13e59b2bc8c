"""The snapshot tables without Spark, against those of the steps, on lines that samples lack."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from jobs.dumps.plain import read_dumps
from jobs.snapshots.client_states import make_client_states
from jobs.snapshots.heartbeats import GROUP_TABLE_SECONDS, make_heartbeats
from jobs.snapshots.plain import make_group_rows
from jobs.snapshots.polls import latest_polls, make_broker_polls
from jobs.snapshots.topic_routes import make_topic_routes
from tests.support.snapshots import (
    CLUSTER,
    GROUP,
    at,
    heartbeat_line,
    log_line,
    poll_line,
    route_line,
    running_info_line,
)

PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."
CLIENTS = ("v2", "assign", "changed", "late", "other", "told", "silent", "zoned", "again", "dup")


def changed(line: str, body: object = None, **values: object) -> str:
    """The line with other values; ``body`` replaces fields of its body."""
    was = json.loads(line)
    if isinstance(body, dict):
        values["body"] = json.dumps({**json.loads(was["body"]), **body})
    elif body is not None:
        values["body"] = body
    return json.dumps({**was, **values})


def strategy(client_id: str, name: str, seconds: float, **properties: str) -> str:
    told = {"allocateMessageQueueStrategy": f"{PACKAGE}{name}@1f2e", **properties}
    return running_info_line(client_id, "T", seconds=seconds, properties=told)


POLLS = [
    poll_line(*CLIENTS, "dup", topics=["T"], seconds=60),
    poll_line("told", topics=["T1"], seconds=62, broker_name="broker-b"),
    poll_line("told", "silent", topics=["T9"], seconds=900, broker_name="broker-b"),
    poll_line("told", topics=["T5"], seconds=60 + GROUP_TABLE_SECONDS, broker_name="broker-b"),
    poll_line("told", topics=["T6"], seconds=61 + GROUP_TABLE_SECONDS, broker_name="broker-b"),
    changed(poll_line("silent", seconds=60, broker_name="bare"),
            {"subscriptionTable": None, "messageModel": "BROADCASTING"}),
    poll_line(seconds=60, broker_name="empty"),
    poll_line(seconds=60, broker_name="offline", error_code=206, error_message="not there"),
    poll_line(seconds=60, broker_name="says so", error_code=1, error_message="CODE: 206  DESC: x"),
    poll_line(seconds=60, broker_name="timeout", error_code=-1, error_message="wait timeout"),
    poll_line(seconds=60, broker_name="mute", error_code=-1),
    changed(poll_line("a", seconds=60, broker_name="dashboard"),
            '{"status":-1,"errMsg":"CODE: 206  DESC: Not found"}'),
    changed(poll_line("a", seconds=60, broker_name="failed"),
            '{"status":-1,"errMsg":"CODE: 2060"}'),
    poll_line("again", seconds=60, broker_name="twice", collected_at=at(63)),
    poll_line(seconds=60, broker_name="twice", collected_at=at(61), error_code=1),
    poll_line("slave", seconds=60, broker_id=1),
    poll_line("stranger", seconds=60, consumer_group="H"),
    poll_line("far", seconds=60, cluster="C2"),
]  # fmt: skip
HEARTBEATS = [
    heartbeat_line("v2", "T1"),
    heartbeat_line("v2", seconds=30, without_sub=True),
    heartbeat_line("assign", "T1"),
    heartbeat_line("assign", seconds=30, without_sub=False),
    heartbeat_line("changed", "T3", seconds=61),
    heartbeat_line("changed", "T2", "T1", seconds=60, message_model="BROADCASTING"),
    heartbeat_line("changed", "T1"),
    heartbeat_line("late", "T4", seconds=90),
    heartbeat_line("late", "T5", seconds=120),
    heartbeat_line("other", "T6", client_addr="other:2"),
    heartbeat_line("dup", "T6", client_addr="dup:2"),
    heartbeat_line("other", "T7", group="H"),
    heartbeat_line("other", "T8", broker_name="broker-b"),
    changed(
        heartbeat_line("again"),
        {
            "consumerDataSet": [
                {"groupName": GROUP, "subscriptionDataSet": [
                    {"topic": "T", "subString": "a || b", "expressionType": None},
                    {"topic": "T", "subString": "x > 1", "expressionType": "SQL92"},
                    {"topic": "T", "subString": None},
                    {"topic": None},
                ]},
                {"groupName": "H"},
            ]
        },
    ),
    changed(heartbeat_line("dup"), {"consumerDataSet": None}),
]  # fmt: skip
TOLD = [
    running_info_line("told", "T3", seconds=70, properties={"messageModel": "BROADCASTING",
                      "clientRebalance": "FALSE", "registerTopics": "[]"}),
    running_info_line("told", seconds=10, error_code=1),
    changed(running_info_line("dup", seconds=1), {"properties": None}),
    changed(running_info_line("silent", seconds=1, properties={"clientRebalance": "maybe"}),
            {"subscriptionSet": None}),
    strategy("v2", "AllocateMessageQueueAveragely", 10),
    strategy("v2", "AllocateMessageQueueAveragelyByCircle", 50),
    strategy("v2", "AllocateMessageQueueByConfig", 70),
    strategy("late", "Own$Strategy", 70, clientRebalance="true"),
    log_line("zoned", "MACHINE_ROOM_NEARBY-AVG", seconds=5),
    strategy("zoned", "AllocateMachineRoomNearby", 40),
    log_line("assign", "CONFIG", seconds=20),
    log_line("assign", "AVG", seconds=20, group="H"),
    log_line("other", "AVG", seconds=20, cluster="C2"),
    changed(log_line("changed", "AVG", seconds=20), body=(
        "broker rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=G, topic=T, "
        "clientId=changed, assignmentSet=[]")),
]  # fmt: skip


def address(name: str, *ids: str, **values: object) -> dict[str, object]:
    return {"brokerName": name, "brokerAddrs": dict.fromkeys(ids, "10.0.0.1:1"), **values}


def queues(name: str, read: int = 4, write: int = 4, perm: int = 6) -> dict[str, object]:
    return {"brokerName": name, "perm": perm, "readQueueNums": read, "writeQueueNums": write}


BROKERS = {
    "brokerDatas": [
        address("both", "10", "2"),
        address("both", "3"),
        address("zoned", "0", zoneName="z1"),
        {"brokerName": "bare"},
    ],
    "queueDatas": [queues("both", 8, 4, 2), queues("both"), queues("no address")],
}
MAPPINGS = {
    "both": {"scope": None, "totalQueues": 4},
    "zoned": {"scope": "__global__", "totalQueues": 6},
    "east": {"scope": "east", "totalQueues": None},
}
ROUTES = [
    route_line(BROKERS),
    route_line({**BROKERS, "topicQueueMappingByBroker": MAPPINGS}, topic="static"),
    route_line(topic="gone", error_code=17),
    route_line(topic="dashboard", error_code=-1, error_message="CODE: 17  DESC: No topic"),
    route_line(topic="timeout", error_code=-1, error_message="CODE: 170  DESC: x"),
    route_line(topic="mute", error_code=-1),
    route_line({"brokerDatas": [], "queueDatas": []}, topic="empty"),
    route_line(topic="twice", error_code=17, collected_at=at(1)),
    route_line(BROKERS, topic="twice", collected_at=at(2)),
    route_line(topic="twice", error_code=17, namesrv_addr="ns-2"),
    route_line(BROKERS, topic="far", cluster="C2"),
]


def comparable(rows: list[dict[str, object]], columns: list[str]) -> list[str]:
    def plain(value: object) -> object:
        return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value

    return sorted(json.dumps({name: plain(row[name]) for name in columns}) for row in rows)


@pytest.mark.spark
def test_the_rows_of_a_group_are_those_of_the_steps(records, tmp_path):
    read = records(*POLLS, *HEARTBEATS, *TOLD, *ROUTES)
    polls = latest_polls(read)
    of_steps = {
        "heartbeats": make_heartbeats(read, polls, make_client_states(read)),
        "broker_polls": make_broker_polls(polls),
        "topic_routes": make_topic_routes(read),
    }

    dumps = read_dumps([str(tmp_path / "dump.jsonl")], GROUP)
    rows = make_group_rows(dumps.records, CLUSTER, GROUP)

    assert dumps.refused == 0
    for name, frame in of_steps.items():
        expected = [row.asDict(recursive=True) for row in frame.collect()]
        here = [
            row
            for row in expected
            if row["cluster"] == CLUSTER and row.get("consumer_group", GROUP) == GROUP
        ]
        found = getattr(rows, name)
        columns = list(found[0])
        assert comparable(found, columns) == comparable(here, columns), name
        assert len(here) >= 10, name
