"""Bodies that are about queues: running infos, offsets, log lines; in every spelling of queues that
RocketMQ's tools have.

fastjson prints the key of a map as an object, or as its text (``WriteNonStringKeyAsString``); the
dashboard's Jackson prints Java's ``toString()``; the dashboard's topics have lists of queues.

The log line in which a client prints which queues it now has of a topic is the only place where it
shows how many queues and members it computed with (``mqAllSize``, ``cidAllSize``). The client
prints it when its result changes, and only then: no line is not evidence. Three wordings exist:

* 4.x: ``rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=G, topic=T,
  clientId=10.0.0.1@1, mqAllSize=4, cidAllSize=2, rebalanceResultSize=2, rebalanceResultSet=[..]``
* 5.x: the same after ``client``;
* 5.x where the broker assigns: ``broker rebalanced result changed. .., clientId=..,
  assignmentSet=[..]``, without any count.

Source: alibaba/fastjson 1.x ``MapSerializer``; apache/rocketmq ``remoting.protocol`` 5.3.3, named
at each function, ``RebalanceImpl`` (4.2 to 5.x), ``MessageQueue.toString``,
``MessageQueueAssignment.toString``; apache/rocketmq-dashboard ``TopicConsumerInfo``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any, NoReturn, TypeAlias, TypeGuard

from rebalance_core.message_queue import is_dead_letters
from rebalance_core.state import BROADCASTING
from rebalance_core.strategy_factory import JAVA_CLASSES

from ..contract import values_of
from ..declared.instants import Instant, to_instant
from ..schemas import QUEUE_OFFSETS
from .parsing import FastjsonError, parse_body
from .statement import InfoQueue, LogLine, Offset, RunningInfo, Stats
from .values import (
    Fields,
    LineError,
    as_integer,
    as_map,
    as_maps,
    as_subscriptions,
    as_text,
    as_type,
    expected,
    instant_of_millis,
    integer_in,
    integers,
    is_java_int,
    known,
    needed,
)

#: Messages in 1,000 seconds, and an offset: what the table of them takes.
_RATES, _OFFSETS = (
    values_of(QUEUE_OFFSETS.schema.field(name))
    for name in ("given_per_1000_seconds", "broker_offset")
)

STRATEGY_PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."

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


def read_topics(topics: list[Any], text: str) -> Stats:
    """The offsets of the dashboard's topics, by their queues.

    Raises FastjsonError where a topic has no list, or a row of it is not a message queue.
    """
    return _stats(_queues_of_topics(topics, text))


def _queues_of_topics(topics: list[Any], text: str) -> Iterator[tuple[QueueName, dict[str, Any]]]:
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


# ------------------------------------------------------------------ running infos


def read_running_info(body: Fields, text: str) -> RunningInfo:
    """ConsumerRunningInfo, ProcessQueueInfo; the properties are those of the consumer's class."""
    given, table = body.get("properties"), body.get("mqTable")
    if given is None and table is None:
        raise LineError("expected ConsumerRunningInfo with properties and an mqTable")
    properties = {name: as_text(value) for name, value in as_map(given).items()}
    subscriptions = body.get("subscriptionSet")
    return RunningInfo(
        instant_of_millis(integer_in(properties.get("PROP_CONSUMER_START_TIMESTAMP"))),
        _strategy(properties.get("allocateMessageQueueStrategy")),
        known("messageModel", properties.get("messageModel")),
        known("consumeType", properties.get("PROP_CONSUME_TYPE")),
        # A field of DefaultMQPullConsumer, and of no other class.
        None if given is None else "registerTopics" in properties,
        _property(properties, "PROP_CONSUMEORDERLY"),
        _client_rebalance(properties),
        None if subscriptions is None else as_subscriptions(as_maps(subscriptions)),
        None if table is None else tuple(_queues_held(table, text)),
        properties.get("PROP_CLIENT_VERSION"),
    )


def _queues_held(table: Any, text: str) -> Iterator[InfoQueue]:
    for queue, value in read_queue_map("mqTable", table, text):
        fields = as_map(value)
        names = "lastPullTimestamp", "lastConsumeTimestamp", "lastLockTimestamp"
        pulled, consumed, locked = map(instant_of_millis, integers(fields, 64, *names))
        cached, first, last = _cached(fields)
        yield InfoQueue(
            *queue,
            dropped=as_type(bool, fields.get("droped")) or False,  # RocketMQ's spelling
            last_pull_at=pulled,
            last_consume_at=consumed,
            cached_messages=cached,
            locked=as_type(bool, fields.get("locked")),
            first_cached=first,
            locked_at=locked,
            last_cached=last,
            commit_offset=as_integer(fields.get("commitOffset"), 64),
        )


def _cached(fields: Fields) -> tuple[int | None, int | None, int | None]:
    """The number of messages that are pulled and not consumed, and the first and last offset.

    Who consumes in order has those at its listener beside the others (``ProcessQueue.takeMessages``
    and ``fillProcessQueueInfo``, 4.9.4 and 5.3.3).
    """
    names = ("MsgCount", "MsgMinOffset", "MsgMaxOffset")
    parts = [
        integers(fields, 64, *(f"{part}{name}" for name in names))
        for part in ("cached", "transaction")
    ]
    some = [part for part in parts if part[0]]
    if not some:
        return parts[0][0], None, None
    count = sum(number for number, *_ in some if number)
    first = min((offset for _, offset, _ in some if offset is not None), default=None)
    return count, first, max((offset for *_, offset in some if offset is not None), default=None)


def _strategy(text: str | None) -> str | None:
    """The name of ``Class@hash``, else the class itself: user code that cannot be recomputed."""
    if text is None:
        return None
    before, at, after = text.rpartition("@")
    class_name = before if at else after
    return JAVA_CLASSES.get(class_name.removeprefix(STRATEGY_PACKAGE), class_name)


def _client_rebalance(properties: Mapping[str, str | None]) -> bool | None:
    """False where the broker assigns the queues; None before 5.0, which cannot.

    ``RebalancePushImpl.clientRebalance`` 5.3.3: who consumes in order or broadcasts is never
    assigned any, whatever its setting.
    """
    setting = _property(properties, "clientRebalance")
    if setting is None:
        return None
    orderly = _property(properties, "PROP_CONSUMEORDERLY") or False
    return setting or orderly or properties.get("messageModel") == BROADCASTING


def _property(properties: Mapping[str, str | None], name: str) -> bool | None:
    return {"true": True, "false": False}.get((properties.get(name) or "").lower())


# ------------------------------------------------------------------ offsets


def read_consume_stats(body: Fields, text: str) -> Stats:
    """ConsumeStats, OffsetWrapper."""
    table = body.get("offsetTable")
    if table is None:
        raise LineError("expected ConsumeStats with an offsetTable")
    return _stats(read_queue_map("offsetTable", table, text), _thousandths(body.get("consumeTps")))


def _thousandths(rate: Any) -> int | None:
    """A rate as a whole number; None where it is none, or none that a broker has.

    >>> _thousandths(3.1009819), _thousandths(0), _thousandths("3"), _thousandths(float("inf"))
    (3101, 0, None, None)
    """
    thousandths = 1000 * rate if type(rate) in (int, float) else -1
    return round(thousandths) if _RATES.allow(thousandths) else None


def _stats(entries: Iterable[tuple[QueueName, Any]], given: int | None = None) -> Stats:
    """``given``: messages in 1,000 seconds; the dashboard's answer does not have it."""
    offsets = []
    for queue, value in entries:
        names = "brokerOffset", "consumerOffset", "lastTimestamp"
        broker_offset, consumer_offset, millis = integers(as_map(value), 64, *names)
        if broker_offset is not None and consumer_offset is not None:
            _check_offsets(broker_offset, consumer_offset)
            # 0: nothing was consumed of it yet.
            last = instant_of_millis(millis) if millis is not None and millis > 0 else None
            offsets.append(Offset(*queue, broker_offset, consumer_offset, last, given))
    return Stats(tuple(offsets))


def _check_offsets(*offsets: int) -> None:
    for offset in offsets:
        if not _OFFSETS.allow(offset):
            raise LineError(expected(f"offsets of {_OFFSETS}", str(offset)))


def read_dead_letters(body: Fields, text: str) -> Stats:
    """TopicStatsTable, TopicOffset of a group's %DLQ%: where the next message goes."""
    entries = read_queue_map("offsetTable", needed(body, "offsetTable"), text)
    ends = ((queue, as_integer(as_map(value).get("maxOffset"), 64)) for queue, value in entries)
    found = [Offset(*queue, end, -1, None) for queue, end in ends if end is not None]
    _check_offsets(*(offset.broker_offset for offset in found))
    return Stats(tuple(offset for offset in found if is_dead_letters(offset.topic)))


# ------------------------------------------------------------------ log lines

_MARKER = "rebalanced result changed."
_TIME = re.compile(r"\s*([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})[.,]([0-9]{3})")
_COUNT = re.compile(r"[0-9]{1,9}")

#: The fields of the message, in their order.
_COMMON = ("allocateMessageQueueStrategyName", "group", "topic", "clientId")
_BY_CLIENT = (*_COMMON, "mqAllSize", "cidAllSize", "rebalanceResultSize", "rebalanceResultSet")
_BY_BROKER = (*_COMMON, "assignmentSet")

_QUEUE_START = "MessageQueue [topic="
_ASSIGNMENT_START = "MessageQueueAssignment [MessageQueue="


def parse_rebalance_line(line: str) -> tuple[str, LogLine] | None:
    """The consumer group and the changed result that the line reports; None if it is another line.

    Anything may come before the message. Names and ids may hold blanks, commas and brackets, as
    long as they do not hold the name of the field that follows.

    Raises LineError for a line that is cut, whose counts are not numbers, or whose
    ``rebalanceResultSize`` is not the size of its set.

    >>> group, result = parse_rebalance_line(
    ...     "2026-11-21 02:03:04,625 INFO RocketmqClient - rebalanced result changed."
    ...     " allocateMessageQueueStrategyName=AVG, group=G, topic=T, clientId=10.0.0.1@1,"
    ...     " mqAllSize=4, cidAllSize=4, rebalanceResultSize=1,"
    ...     " rebalanceResultSet=[MessageQueue [topic=T, brokerName=b, queueId=0]]"
    ... )
    >>> group, result.client_id, result.client_count, result.queues, result.printed
    ('G', '10.0.0.1@1', 4, (('T', 'b', 0),), 1795226584625000)
    """
    prefix, marker, message = line.partition(_MARKER)
    if not marker:
        return None
    by_broker = prefix.endswith("broker ")
    values = _values(message.strip(), _BY_BROKER if by_broker else _BY_CLIENT)
    strategy, group, topic, client_id, *counts, held = values
    queues = _queues(held, _ASSIGNMENT_START if by_broker else _QUEUE_START)
    numbers: list[int | None] = [*map(int, counts)] or [None, None, len(queues)]
    queue_count, client_count, size = numbers
    if len(queues) != size:
        raise LineError(f"rebalanceResultSize={size}, but rebalanceResultSet holds {len(queues)}")
    printed = _printed(prefix)
    return group, LogLine(
        strategy, topic, client_id, queue_count, client_count, by_broker, printed, queues
    )


def _printed(prefix: str) -> Instant | None:
    """The printed time as if it were UTC; 4.x has a comma before the milliseconds."""
    time = _TIME.match(prefix)
    try:
        return to_instant(datetime.fromisoformat(f"{time[1]}.{time[2]}+00:00")) if time else None
    except ValueError:
        return None


def _values(message: str, names: Sequence[str]) -> list[str]:
    """The values of a message's fields, each of which ends where the next one begins."""
    start = f"{names[0]}="
    if not message.startswith(start):
        raise LineError(f"no {start!r} after the message's start: {message[:40]!r}")
    rest = message.removeprefix(start)
    values = []
    for name, following in pairwise(names):
        separator = f", {following}="
        value, found, rest = rest.partition(separator)
        if not found:
            raise LineError(f"no {separator!r} after {value[:40]!r}")
        if name.endswith("Size") and _COUNT.fullmatch(value) is None:
            raise LineError(f"{name} is no number: {value[:40]!r}")
        values.append(value)
    return [*values, rest]


def _queues(printed: str, start: str) -> tuple[QueueName, ...]:
    """The queues of a set as Java prints it, whose elements begin with ``start``."""
    if not printed.startswith("[") or not printed.endswith("]"):
        raise LineError(f"the set does not end: {printed[-40:]!r}")
    queues = []
    for element in filter(None, re.split(rf"(?<=\]), (?={re.escape(start)})", printed[1:-1])):
        text = element
        if start == _ASSIGNMENT_START:
            text, separator, mode = element.removeprefix(start).rpartition(", Mode=")
            if not (element.startswith(start) and separator and mode.endswith("]")):
                raise LineError(f"no assignment of a message queue: {element[:80]!r}")
            if text == "null":  # an assignment of nothing, which the client ignores
                continue
        queue = parse_message_queue(text)
        if queue is None:
            raise LineError(f"no message queue: {text[:80]!r}")
        queues.append(queue)
    return tuple(queues)
