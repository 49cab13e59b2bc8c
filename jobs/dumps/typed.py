"""value -> content: what a body means, typed; each demand on a body, and each default, once.

A field that is read must have its type, or be null: a queue count that is a text, or that no int
holds, is no guess of ours. What is a text may come as anything, and is its JSON then: dashboards
print names of digits as numbers. Other fields may hold what they like.

Source: apache/rocketmq ``remoting.protocol`` 5.3.3, named at each function.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeGuard, TypeVar

from rebalance_core.state import BROADCASTING
from rebalance_core.strategies.factory import JAVA_CLASSES

from . import statement
from .client_log import ClientLogError, parse_rebalance_line
from .fastjson import FastjsonError
from .parsing import parse_body
from .queue_maps import is_list_of_topics, read_queue_map, read_topics

#: The most queues that a number of RocketMQ's can hold; ``within`` has how many are too many.
_MOST_QUEUES = 2**31 - 1

STRATEGY_PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."

#: ``MixAll.LOGICAL_QUEUE_MOCK_BROKER_PREFIX``; the scope ``__global__`` drops its underscores
#: (``TopicQueueMappingUtils.getMockBrokerName``).
_MOCK_BROKER = "__syslo__"
_GLOBAL_SCOPE = "__global__"

_OBJECT_KEY_OR_REFERENCE = re.compile(r'\{\s*\{|"\$ref"')

_INTEGER = re.compile(r"-?[0-9]{1,18}")
_YEAR_1, _YEAR_10000 = -62_135_596_800_000, 253_402_300_800_000

Fields: TypeAlias = Mapping[str, Any]
Value = TypeVar("Value")


class Read(NamedTuple):
    """What a body means: contents, each with its consumer group, None where the envelope names it.

    ``code`` and ``message`` are the error that a dashboard's status has in place of a content.
    """

    contents: tuple[tuple[str | None, statement.Content], ...]
    code: int | None = None
    message: str | None = None


class BodyError(ValueError):
    """The body is not what its kind demands; the message has what was expected and what came."""


class BoundError(BodyError):
    """The body asks for more than the bounds allow; the message names the setting."""


class _WrongTypeError(ValueError):
    """A field that is read has another type than RocketMQ's class."""


def read_body(kind: str, text: str) -> Read:
    """What a body of a kind means.

    Raises BodyError: for a text that is no such body.

    >>> beat = '{"clientID":"a@1","consumerDataSet":[{"groupName":"G","subscriptionDataSet":[]}]}'
    >>> read_body("heartbeat", beat).contents[0][1].client_id
    'a@1'
    >>> read_body("consume_stats", '{"status":-1,"data":null,"errMsg":"CODE: 206"}')
    Read(contents=(), code=-1, message='CODE: 206')
    """
    if kind == statement.CLIENT_LOG:
        return _read_log_line(text)
    body = BODIES[kind]
    try:
        return _unwrapped(kind, parse_body(text), text)
    except (FastjsonError, _WrongTypeError) as error:
        has_place = body.is_keyed_by_queue or _OBJECT_KEY_OR_REFERENCE.search(text)
        if isinstance(error, FastjsonError) and has_place:
            raise BodyError(str(error)) from error
        raise BodyError(expected(body.class_name, text if text.strip() else None)) from error


def expected(what: str, came: str | None) -> str:
    """``expected ..., came '...'``, with no more than the beginning of what came.

    >>> expected("one JSON object", "x" * 70)[-12:], expected("an integer", None)
    ("xxxxxxxx...'", 'expected an integer, came nothing')
    """
    if came is None:
        return f"expected {what}, came nothing"
    return f"expected {what}, came '{came[:60]}{'...' if len(came) > 60 else ''}'"


def as_text(value: Any) -> str | None:
    """A text, or the JSON of what is none; None for null.

    >>> as_text("a"), as_text(True), as_text({"a": [1]}), as_text(None)
    ('a', 'true', '{"a":[1]}', None)
    """
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _unwrapped(kind: str, value: Any, text: str) -> Read:
    """The body, bare or as the dashboard wraps it: ``{"status":0,"data":{..},"errMsg":null}``.

    Source: apache/rocketmq-dashboard ``JsonResult``.
    """
    if kind == statement.CONSUME_STATS and is_list_of_topics(value):
        value = {"data": value}
    if not isinstance(value, dict):
        raise _WrongTypeError
    if BODIES[kind].may_fail and (_integer(value.get("status"), 32) or 0) != 0:
        # The status names no code of RocketMQ's.
        return Read((), -1, as_text(value.get("errMsg")))
    data = value.get("data")
    if kind == statement.CONSUME_STATS and is_list_of_topics(data):
        return Read(((None, _stats(read_topics(data, text))),))
    if data is not None:
        given = {name: field for name, field in value.items() if field is not None}
        value = {**_map(data), **given}
    return BODIES[kind].read(value, text)


# ------------------------------------------------------------------ heartbeats


def _heartbeat(body: Fields, _: str) -> Read:
    """HeartbeatData, ConsumerData."""
    client_id = as_text(body.get("clientID"))
    without_sub = _of_type(bool, body.get("withoutSub"))
    if not client_id:
        raise BodyError("expected HeartbeatData with a clientID")
    contents = []
    for data in map(_map, _of_type(list, body.get("consumerDataSet")) or ()):
        group = as_text(data.get("groupName"))
        if not group:
            raise BodyError("expected every consumerDataSet to have a groupName")
        subscriptions = _subscriptions(_of_type(list, data.get("subscriptionDataSet")) or ())
        is_full = bool(subscriptions) or not without_sub
        consume_type, message_model = _texts(data, "consumeType", "messageModel")
        heartbeat = statement.HeartbeatOfGroup(
            client_id, is_full, consume_type, message_model, subscriptions
        )
        contents.append((group, heartbeat))
    return Read(tuple(contents))


def _subscriptions(data: Iterable[Any]) -> statement.Subscriptions:
    """SubscriptionData: sorted, each once; what has no topic is none.

    ``subVersion`` is left out: it changes at every rebalance, whatever is consumed.
    """
    distinct = set()
    for fields in map(_map, data):
        topic = as_text(fields.get("topic"))
        if topic is not None:
            kind = as_text(fields.get("expressionType"))
            kind = "TAG" if kind is None else kind
            expression = as_text(fields.get("subString"))
            distinct.add((topic, kind, "*" if expression is None else expression))
    return tuple(sorted(distinct))


# ------------------------------------------------------------------ lists


def _connections(body: Fields, _: str) -> Read:
    """ConsumerConnection, Connection; by client id, because the broker's set has no order."""
    given = _of_type(list, body.get("connectionSet"))
    if given is None:
        raise BodyError("expected ConsumerConnection with a connectionSet")
    connections = []
    for fields in map(_map, given):
        client_id, client_addr = as_text(fields.get("clientId")), as_text(fields.get("clientAddr"))
        if not client_id or not client_addr:
            raise BodyError("expected every connection to have a clientId and a clientAddr")
        language, version = as_text(fields.get("language")), _integer(fields.get("version"), 32)
        connections.append(statement.Connection(client_id, client_addr, language, version))
    in_order = tuple(sorted(connections, key=lambda connection: connection[:2]))
    consume_type, message_model = _texts(body, "consumeType", "messageModel")
    subscriptions = _subscriptions(_map(body.get("subscriptionTable")).values())
    answer = statement.Connections(in_order, consume_type, message_model, subscriptions)
    return Read(((None, answer),))


# ------------------------------------------------------------------ routes


def _route(body: Fields, _: str) -> Read:
    """TopicRouteData, BrokerData, QueueData, TopicQueueMappingInfo.

    A static topic has its logical queues, under the mock broker name that clients see for each
    scope; its real brokers have none, but clients still ask them for the group's members.
    """
    addresses, queues = (_of_type(list, body.get(name)) for name in ("brokerDatas", "queueDatas"))
    if addresses is None and queues is None:
        raise BodyError("expected TopicRouteData with queueDatas and brokerDatas")
    brokers = _brokers(addresses or ())
    numbers = _queue_numbers(queues or ())
    logical = _logical_queues(_map(body.get("topicQueueMappingByBroker")).values())
    physical = []
    for name in dict.fromkeys([*brokers, *numbers]):
        broker_ids, zone_name = brokers.get(name, ((), None))
        perm, *queue_numbers = numbers.get(name, (0, 0, 0))
        reads, writes = (0, 0) if logical else queue_numbers
        physical.append(statement.RouteBroker(name, broker_ids, perm, reads, writes, zone_name))
    mocks = []
    for scope, number in logical.items():
        mock = _MOCK_BROKER + ("global__" if scope == _GLOBAL_SCOPE else scope)
        mocks.append(statement.RouteBroker(mock, (), 6, number, number, None))
    return Read(((None, statement.Route((*physical, *mocks))),))


def _brokers(given: Iterable[Any]) -> dict[str, tuple[tuple[int, ...], str | None]]:
    """By name the ids and the zone; of equal names the first counts."""
    brokers: dict[str, tuple[tuple[int, ...], str | None]] = {}
    for fields in map(_map, given):
        name = as_text(fields.get("brokerName"))
        if not name:
            raise BodyError("expected every brokerData to have a brokerName")
        keys = _map(fields.get("brokerAddrs"))
        ids = sorted(int(key) for key in keys if _INTEGER.fullmatch(key))
        brokers.setdefault(name, (tuple(ids), as_text(fields.get("zoneName"))))
    return brokers


def _queue_numbers(given: Iterable[Any]) -> dict[str, tuple[int, int, int]]:
    """By broker name perm, readQueueNums and writeQueueNums; of equal names the first counts."""
    numbers: dict[str, tuple[int, int, int]] = {}
    for fields in map(_map, given):
        name = as_text(fields.get("brokerName"))
        perm, reads, writes = _integers(fields, 32, "perm", "readQueueNums", "writeQueueNums")
        if not name or perm is None or not (_is_number(reads) and _is_number(writes)):
            raise BodyError(
                "expected every queueData to have a brokerName, a perm, and readQueueNums and "
                f"writeQueueNums of 0 to {_MOST_QUEUES}"
            )
        numbers.setdefault(name, (perm, reads, writes))
    return numbers


def _is_number(queues: int | None) -> TypeGuard[int]:
    return queues is not None and 0 <= queues <= _MOST_QUEUES


def _logical_queues(mappings: Iterable[Any]) -> dict[str, int]:
    """By scope the number of logical queues: the highest that any broker gives."""
    most: dict[str, int] = {}
    for fields in map(_map, mappings):
        scope = as_text(fields.get("scope"))
        scope = _GLOBAL_SCOPE if scope is None else scope
        number = _integer(fields.get("totalQueues"), 32) or 0
        if not _is_number(number):
            raise BodyError(
                f"expected every topicQueueMapping to have totalQueues of 0 to {_MOST_QUEUES}"
            )
        most[scope] = max(most.get(scope, 0), number)
    return most


# ------------------------------------------------------------------ running infos


def _running_info(body: Fields, text: str) -> Read:
    """ConsumerRunningInfo, ProcessQueueInfo; the properties are those of the consumer's class."""
    given, table = body.get("properties"), body.get("mqTable")
    if given is None and table is None:
        raise BodyError("expected ConsumerRunningInfo with properties and an mqTable")
    properties = {name: as_text(value) for name, value in _map(given).items()}
    subscriptions = _of_type(list, body.get("subscriptionSet"))
    info = statement.RunningInfo(
        _start(properties.get("PROP_CONSUMER_START_TIMESTAMP")),
        _strategy(properties.get("allocateMessageQueueStrategy")),
        properties.get("messageModel"),
        properties.get("PROP_CONSUME_TYPE"),
        # A field of DefaultMQPullConsumer, and of no other class.
        None if given is None else "registerTopics" in properties,
        _property(properties, "PROP_CONSUMEORDERLY"),
        _client_rebalance(properties),
        None if subscriptions is None else _subscriptions(subscriptions),
        None if table is None else _held(table, text),
    )
    return Read(((None, info),))


def _held(table: Any, text: str) -> tuple[statement.InfoQueue, ...]:
    held = []
    for queue, value in read_queue_map("mqTable", table, text):
        fields = _map(value)
        dropped = _of_type(bool, fields.get("droped")) or False  # RocketMQ's spelling
        pulled, consumed, cached = _integers(
            fields, 64, "lastPullTimestamp", "lastConsumeTimestamp", "cachedMsgCount"
        )
        times = _instant_of_millis(pulled), _instant_of_millis(consumed)
        locked = _of_type(bool, fields.get("locked"))
        held.append(statement.InfoQueue(*queue, dropped, *times, cached, locked))
    return tuple(held)


def _start(text: str | None) -> int | None:
    return _instant_of_millis(int(text)) if text and _INTEGER.fullmatch(text) else None


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


def _consume_stats(body: Fields, text: str) -> Read:
    """ConsumeStats, OffsetWrapper."""
    table = body.get("offsetTable")
    if table is None:
        raise BodyError("expected ConsumeStats with an offsetTable")
    return Read(((None, _stats(read_queue_map("offsetTable", table, text))),))


def _stats(entries: Iterable[tuple[tuple[str, str, int], Any]]) -> statement.Stats:
    offsets = []
    for queue, value in entries:
        fields = _map(value)
        of_broker, of_consumer, millis = _integers(
            fields, 64, "brokerOffset", "consumerOffset", "lastTimestamp"
        )
        if of_broker is not None and of_consumer is not None:
            # 0: nothing was consumed of it yet.
            last = _instant_of_millis(millis) if millis is not None and millis > 0 else None
            offsets.append(statement.Offset(*queue, of_broker, of_consumer, last))
    return statement.Stats(tuple(offsets))


# ------------------------------------------------------------------ message request modes


def _request_modes(body: Fields, _: str) -> Read:
    """MessageRequestModeSerializeWrapper: by topic and group a SetMessageRequestModeRequestBody.

    Source: ``MessageRequestModeManager`` of a broker (5.1.4), request code 402. A group that is not
    in it has the mode that the broker is configured with, which the body does not have.
    """
    modes = []
    for topic, of_groups in _map(_needed(body, "messageRequestModeMap")).items():
        for group, value in _map(of_groups).items():
            mode = as_text(_map(value).get("mode"))
            if group and topic and mode in _MODES:
                modes.append((group, statement.RequestMode(topic, mode)))
    return Read(tuple(modes))


def _group_flags(body: Fields, _: str) -> Read:
    """SubscriptionGroupWrapper: the groups that a broker does not let consume; most may.

    ``consumeBroadcastEnable`` is not read: ``mqadmin updateSubGroup`` makes it false unless it is
    named, and it refuses those alone that broadcast, whose offsets no broker has.
    """
    flags = []
    for group, config in _map(_needed(body, "subscriptionGroupTable")).items():
        may = _of_type(bool, _map(config).get("consumeEnable"))
        if group and may is False:
            flags.append((group, statement.GroupFlags(may)))
    return Read(tuple(flags))


def _needed(body: Fields, name: str) -> Any:
    """A field without which a body is none of its class."""
    if body.get(name) is None:
        raise _WrongTypeError
    return body[name]


def _unused(field: str, kind: type) -> Callable[[Fields, str], Read]:
    """Reads a body that makes no statement, and is to have a field of a type."""

    def read(body: Fields, _: str) -> Read:
        _of_type(kind, _needed(body, field))
        return Read(())

    return read


#: ``MessageRequestMode`` of RocketMQ.
_MODES = ("PULL", "POP")


# ------------------------------------------------------------------ log lines


def _read_log_line(line: str) -> Read:
    try:
        found = parse_rebalance_line(line)
    except ClientLogError as error:
        raise BodyError(str(error)) from error
    return Read(() if found is None else (found,))


# ------------------------------------------------------------------ types


def _instant_of_millis(millis: int | None) -> int | None:
    """The instant; None beyond the years 1 to 9999, which no table can hold."""
    return millis * 1000 if millis is not None and _YEAR_1 <= millis < _YEAR_10000 else None


def _map(value: Any) -> dict[str, Any]:
    """An object; null is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _WrongTypeError
    return value


def _of_type(kind: type[Value], value: Any) -> Value | None:
    if value is not None and not isinstance(value, kind):
        raise _WrongTypeError
    return value


def _integer(value: Any, bits: int) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise _WrongTypeError
    return value


def _integers(fields: Fields, bits: int, *names: str) -> list[int | None]:
    return [_integer(fields.get(name), bits) for name in names]


def _texts(fields: Fields, *names: str) -> list[str | None]:
    return [*map(as_text, map(fields.get, names))]


class Body(NamedTuple):
    """How the body of a kind is read: as which class of RocketMQ's, and by which function.

    ``may_fail``: it may come as ``error_code`` and ``error_message`` in place of a body, or in the
    dashboard's envelope with a status. ``is_keyed_by_queue``: hardly any of these bodies is JSON,
    and where one cannot be read, the tokenizer reports the place; and none comes again, for they
    hold counters and times that always move.
    """

    class_name: str
    read: Callable[[Fields, str], Read]
    may_fail: bool = True
    is_keyed_by_queue: bool = False


#: By kind, but for the lines of client logs, which are no JSON.
BODIES: Mapping[str, Body] = {
    statement.HEARTBEAT: Body("HeartbeatData", _heartbeat, may_fail=False),
    statement.CONSUMER_CONNECTION: Body("ConsumerConnection", _connections),
    statement.TOPIC_ROUTE: Body("TopicRouteData", _route),
    statement.CONSUMER_RUNNING_INFO: Body(
        "ConsumerRunningInfo", _running_info, is_keyed_by_queue=True
    ),
    statement.CONSUME_STATS: Body("ConsumeStats", _consume_stats, is_keyed_by_queue=True),
    statement.MESSAGE_REQUEST_MODE: Body("MessageRequestModeSerializeWrapper", _request_modes),
    statement.CLUSTER_INFO: Body("ClusterInfo", _unused("brokerAddrTable", dict)),
    statement.SUBSCRIPTION_GROUP: Body("SubscriptionGroupWrapper", _group_flags),
    statement.CONSUMER_TOPICS: Body("TopicList", _unused("topicList", list)),
    statement.LEFT_OUT: Body("what was left out", _unused("what", object), may_fail=False),
}
#: The kinds that may come with an error in place of a body, and those that repeat themselves.
MAY_FAIL = frozenset(kind for kind, body in BODIES.items() if body.may_fail)
REPEATED = frozenset(kind for kind, body in BODIES.items() if not body.is_keyed_by_queue)
