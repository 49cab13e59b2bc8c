"""Maps keyed by message queue, in every spelling of RocketMQ's tools.

fastjson prints the key as an object, or as the text of one (``WriteNonStringKeyAsString``); the
dashboard's Jackson prints Java's ``toString()``; the dashboard's topics have lists of queues.

Source: alibaba/fastjson 1.x ``MapSerializer``; apache/rocketmq ``MessageQueue.toString``;
apache/rocketmq-dashboard ``TopicConsumerInfo``.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias, TypeGuard

from .fastjson import FastjsonError
from .parsing import parse_body
from .values import is_java_int

#: Topic, broker name, queue id.
QueueName: TypeAlias = tuple[str, str, int]

TOPIC_QUEUES = "queueStatInfoList"

#: The text of ``MessageQueue.toString()``. Once the first ``, brokerName=`` is found, no other is
#: tried: a text of nothing else would take its time.
_PRINTED = re.compile(
    r"MessageQueue \[topic=(?>(.*?), brokerName=)(.*), queueId=(-?[0-9]{1,10})\]", re.DOTALL
)


def read_queue_map(field: str, table: Any, text: str) -> Iterator[tuple[QueueName, Any]]:
    """The entries of a map keyed by message queue, in its order; ``text`` is what it was read of.

    Raises FastjsonError where it is not a map, or a key is not a message queue; at the field's
    name.

    >>> table = {"MessageQueue [topic=T, brokerName=b, queueId=0]": {"brokerOffset": 9}}
    >>> list(read_queue_map("offsetTable", table, ""))
    [(('T', 'b', 0), {'brokerOffset': 9})]
    """
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(table, dict):
        pairs = table.items()
    elif isinstance(table, list):
        for entry in table:
            if not isinstance(entry, dict) or entry.keys() != {"key", "value"}:
                _fail(field, f"entries of a key and a value in {field}", entry, text)
        pairs = ((entry["key"], entry["value"]) for entry in table)
    else:
        _fail(field, f"a map as {field}", table, text)
    for key, value in pairs:
        queue = _spelled(key) if isinstance(key, str) else _object(key)
        if queue is None:
            _fail(field, f"a message queue as key in {field}", key, text)
        yield queue, value


def is_list_of_topics(data: Any) -> TypeGuard[list[Any]]:
    """True if it is the dashboard's ``queryTopicByConsumer.query``: topics with their queues."""
    return isinstance(data, list) and any(
        isinstance(topic, dict) and TOPIC_QUEUES in topic for topic in data
    )


def read_topics(topics: list[Any], text: str) -> Iterator[tuple[QueueName, dict[str, Any]]]:
    """The queues of the dashboard's topics, each with the row that it came in.

    Raises FastjsonError where a topic has no list, or a row of it is not a message queue.

    >>> row = {"brokerName": "b", "queueId": 0, "brokerOffset": 9}
    >>> [queue for queue, _ in read_topics([{"topic": "T", "queueStatInfoList": [row]}], "")]
    [('T', 'b', 0)]
    """
    for topic in topics:
        rows = topic.get(TOPIC_QUEUES, []) if isinstance(topic, dict) else topic
        if not isinstance(topic, dict) or not isinstance(rows, list | None):
            _fail(TOPIC_QUEUES, f"a topic with its {TOPIC_QUEUES}", topic, text)
        for row in rows or ():
            if not isinstance(row, dict):
                _fail(TOPIC_QUEUES, f"objects in {TOPIC_QUEUES}", row, text)
            key = {**row, "topic": topic.get("topic")}
            queue = _object(key)
            if queue is None:
                _fail(TOPIC_QUEUES, f"a message queue as key in {TOPIC_QUEUES}", key, text)
            yield queue, row


def parse_message_queue(text: str) -> QueueName | None:
    """Parses the text of ``MessageQueue.toString()``; None for any other text.

    The names may hold commas and brackets. Where ``, brokerName=`` occurs more than once the first
    one separates, because RocketMQ lets no comma, blank or equals sign into a topic name
    (``TopicValidator``), whereas a broker's name is free.

    >>> parse_message_queue("MessageQueue [topic=%RETRY%g, brokerName=a, b], queueId=-1]")
    ('%RETRY%g', 'a, b]', -1)
    """
    found = _PRINTED.fullmatch(text)
    if found is None or not is_java_int(int(found[3])):
        return None
    return found[1], found[2], int(found[3])


@lru_cache(maxsize=50_000)  # the keys of a group's queues come with every poll
def _spelled(key: str) -> QueueName | None:
    if not key.startswith("{"):
        return parse_message_queue(key)
    try:
        return _object(parse_body(key))
    except FastjsonError:
        return None


def _object(key: Any) -> QueueName | None:
    match key:
        case {"topic": str(topic), "brokerName": str(broker_name), "queueId": int(queue_id)}:
            is_id = not isinstance(queue_id, bool) and is_java_int(queue_id)
            return (topic, broker_name, queue_id) if is_id else None
    return None


def _fail(field: str, expected: str, came: Any, text: str) -> NoReturn:
    position = max(text.find(f'"{field}"'), 0)
    raise FastjsonError(position, expected, repr(came)[:80])
