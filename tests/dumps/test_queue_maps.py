"""Maps keyed by message queue come out alike, however fastjson and the dashboard spell the keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dumps.parsing import FastjsonError, parse_body
from jobs.dumps.queues import (
    QueueName,
    is_list_of_topics,
    parse_message_queue,
    read_queue_map,
    read_topics,
)
from jobs.dumps.statement import Offset

#: As Java prints a queue.
JAVAS = "MessageQueue [topic=%s, brokerName=%s, queueId=%s]"
QUEUE_0 = '{"brokerName":"b","queueId":0,"topic":"T"}'


def entries(text: str) -> list[tuple[QueueName, Any]]:
    return list(read_queue_map("mqTable", parse_body(text)["mqTable"], text))


@pytest.mark.parametrize(
    "text",
    [
        '{"mqTable":{' + QUEUE_0 + ":1}}",
        '{\n\t"mqTable":{\n\t\t{\n\t\t\t"brokerName":"b",\n\t\t\t"queueId":0,\n\t\t\t"topic":"T"'
        "\n\t\t}:1\n\t}\n}",
        '{"mqTable":{{"topic":"T","queueId":0,"brokerName":"b"}:1}}',
        '{"mqTable":{{"topic":"T","queueId":0,"brokerName":"\\u0062"}:1}}',
        json.dumps({"mqTable": {QUEUE_0: 1}}),
        json.dumps({"mqTable": {"MessageQueue [topic=T, brokerName=b, queueId=0]": 1}}),
        json.dumps({"mqTable": [{"key": json.loads(QUEUE_0), "value": 1}]}),
    ],
)
def test_every_spelling_is_read(text: str) -> None:
    assert entries(text) == [(("T", "b", 0), 1)]


@given(st.lists(st.tuples(st.text(), st.text(), st.integers(-1, 9)), unique=True), st.booleans())
def test_any_names_are_read_alike(queues: list[QueueName], pretty: bool) -> None:
    # Of two brokerName= the first separates: no topic holds one.
    queues = [queue for queue in queues if ", brokerName=" not in queue[0]]
    space = "\n\t" if pretty else ""
    as_objects = ",".join(
        space + json.dumps({"brokerName": broker, "queueId": number, "topic": topic}) + ":1"
        for topic, broker, number in queues
    )
    as_java = {JAVAS % queue: 1 for queue in queues}

    assert entries('{"mqTable":{' + as_objects + "}}") == [(queue, 1) for queue in queues]
    assert entries(json.dumps({"mqTable": as_java})) == [(queue, 1) for queue in queues]


@pytest.mark.parametrize(
    ("table", "came"),
    [
        ({"T@g": {0: 1}}, "'T@g'"),
        ({"MessageQueue [topic=T, brokerName=b": 1}, "brokerName=b'"),
        ([{"key": {"queueId": 0, "topic": "T"}, "value": 1}], "queueId"),
        ([{"key": {"brokerName": "b", "queueId": True, "topic": "T"}, "value": 1}], "True"),
        # No queue of RocketMQ: its ids are ints of Java.
        ([{"key": {"brokerName": "b", "queueId": 2**31, "topic": "T"}, "value": 1}], "2147483648"),
        ([{"key": None, "value": 1}], "None"),
        ({'{"brokerName":': 1}, "brokerName"),
        ([1], "1"),
        (7, "7"),
    ],
)
def test_what_is_no_map_of_queues_is_refused_at_its_name(table: Any, came: str) -> None:
    with pytest.raises(FastjsonError) as caught:
        list(read_queue_map("mqTable", table, '{"data":{"mqTable":..'))

    assert caught.value.args[0] == 9
    assert came in caught.value.args[2]


@pytest.mark.parametrize(
    "topics",
    [
        [{"topic": "T", "queueStatInfoList": [{"queueId": 0}]}],
        [{"queueStatInfoList": [{"brokerName": "b", "queueId": 0}]}],
        [{"topic": "T", "queueStatInfoList": 7}],
        [{"topic": "T", "queueStatInfoList": [7]}],
        [7, {"topic": "T", "queueStatInfoList": []}],
        [[], {"topic": "T", "queueStatInfoList": []}],
    ],
)
def test_topics_that_name_no_queue_are_refused(topics: list[Any]) -> None:
    with pytest.raises(FastjsonError):
        read_topics(topics, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MessageQueue [topic=T, brokerName=b, queueId=0]", ("T", "b", 0)),
        ("MessageQueue [topic=T, brokerName=b, queueId=-1]", ("T", "b", -1)),
        (JAVAS % ("a, [x]", "b], queueId=3, c", "12"), ("a, [x]", "b], queueId=3, c", 12)),
        (JAVAS % ("T", "b, brokerName=c", "0"), ("T", "b, brokerName=c", 0)),
        ("MessageQueue [topic=, brokerName=, queueId=0]", ("", "", 0)),
        ("MessageQueue [topic=T, brokerName=b, queueId=0", None),
        ("MessageQueue [topic=T, brokerName=b, queueId=]", None),
        ("MessageQueue [topic=T, brokerName=b, queueId=x]", None),
        ("MessageQueue [topic=T, brokerName=b, queueId=\u0663]", None),
        ("MessageQueue [topic=T, brokerName=b, queueId=2147483647]", ("T", "b", 2**31 - 1)),
        ("MessageQueue [topic=T, brokerName=b, queueId=2147483648]", None),
        ("MessageQueue [topic=T, brokerName=b, queueId=" + "9" * 5000 + "]", None),
        ("MessageQueue [topic=T, queueId=0]", None),
        ("topic=T, brokerName=b, queueId=0]", None),
        ("", None),
    ],
)
def test_a_queue_is_told_from_both_ends_of_its_text(text: str, expected: QueueName | None) -> None:
    assert parse_message_queue(text) == expected


def test_the_dashboards_topics_have_their_queues_in_lists() -> None:
    row = {"brokerName": "b", "queueId": 0, "brokerOffset": 9, "consumerOffset": 8}
    topics = [
        {"topic": "T", "queueStatInfoList": [row]},
        {"topic": "%RETRY%g", "queueStatInfoList": []},
        {"topic": "U", "queueStatInfoList": None},
        {"topic": "V"},
    ]

    assert is_list_of_topics(topics)
    assert read_topics(topics, "").offsets == (Offset("T", "b", 0, 9, 8, None),)
    assert not is_list_of_topics([])
    assert not is_list_of_topics([{"topic": "T"}])
