"""value -> content: what a body means, typed; each demand on a body, and each default, once.

A field that is read must have its type, or be null: a queue count that is a text, or that no int
holds, is no guess of ours. What is a text may come as anything, and is its JSON then: dashboards
print names of digits as numbers. Other fields may hold what they like.

Source: apache/rocketmq ``remoting.protocol`` 5.3.3, named at each function.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from rebalance_core.state import BROADCASTING
from rebalance_core.strategies.factory import JAVA_CLASSES

from .client_log import ClientLogError, parse_rebalance_line
from .fastjson import FastjsonError
from .parsing import parse_body
from .queue_maps import is_list_of_topics, read_queue_map, read_topics
from .statement import (
    CLIENT_LOG,
    CLUSTER_INFO,
    CONSUME_STATS,
    CONSUMER_CONNECTION,
    CONSUMER_RUNNING_INFO,
    CONSUMER_TOPICS,
    HEARTBEAT,
    LEFT_OUT,
    MESSAGE_REQUEST_MODE,
    SUBSCRIPTION_GROUP,
    TOPIC_ROUTE,
    Connection,
    Connections,
    Content,
    GroupFlags,
    HeartbeatOfGroup,
    InfoQueue,
    Offset,
    RequestMode,
    Route,
    RouteBroker,
    RunningInfo,
    Stats,
    Subscriptions,
)

#: The most queues that a number of RocketMQ's can hold; ``within`` has how many are too many.
_MOST_QUEUES = 2**31 - 1

#: The code of an error that the dashboard's status alone names.
STATUS_ERROR = -1

STRATEGY_PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."

#: ``MixAll.LOGICAL_QUEUE_MOCK_BROKER_PREFIX``; the scope ``__global__`` drops its underscores
#: (``TopicQueueMappingUtils.getMockBrokerName``).
_MOCK_BROKER = "__syslo__"
GLOBAL_SCOPE = "__global__"

_OBJECT_KEY_OR_REFERENCE = re.compile(r'\{\s*\{|"\$ref"')

_INTEGER = re.compile(r"-?[0-9]{1,18}")
_YEAR_1, _YEAR_10000 = -62_135_596_800_000, 253_402_300_800_000

Fields: TypeAlias = Mapping[str, Any]


class Read(NamedTuple):
    """What a body means: contents, each with its consumer group, None where the envelope names it.

    ``code`` and ``message`` are the error that a dashboard's status has in place of a content.
    """

    contents: tuple[tuple[str | None, Content], ...]
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
    if kind == CLIENT_LOG:
        return _read_log_line(text)
    try:
        return _unwrapped(kind, _value(kind, text), text)
    except FastjsonError as error:
        raise BodyError(str(error)) from error
    except _WrongTypeError as error:
        came = text if text.strip() else None
        raise BodyError(expected(BODIES[kind].class_name, came)) from error


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


def _value(kind: str, text: str) -> Any:
    try:
        return parse_body(text)
    except FastjsonError:
        if BODIES[kind].is_keyed_by_queue or _OBJECT_KEY_OR_REFERENCE.search(text):
            raise
        raise _WrongTypeError from None


def _unwrapped(kind: str, value: Any, text: str) -> Read:
    """The body, bare or as the dashboard wraps it: ``{"status":0,"data":{..},"errMsg":null}``.

    Source: apache/rocketmq-dashboard ``JsonResult``.
    """
    if kind == CONSUME_STATS and is_list_of_topics(value):
        value = {"data": value}
    if not isinstance(value, dict):
        raise _WrongTypeError
    if BODIES[kind].may_fail and (_integer(value.get("status"), 32) or 0) != 0:
        return Read((), STATUS_ERROR, as_text(value.get("errMsg")))
    data = value.get("data")
    if kind == CONSUME_STATS and is_list_of_topics(data):
        return Read(((None, _stats(read_topics(data, text))),))
    if data is not None:
        given = {name: field for name, field in value.items() if field is not None}
        value = {**_map(data), **given}
    return BODIES[kind].read(value, text)


# ------------------------------------------------------------------ heartbeats


def _heartbeat(body: Fields, _: str) -> Read:
    """HeartbeatData, ConsumerData."""
    client_id = as_text(body.get("clientID"))
    without_sub = _boolean(body.get("withoutSub")) or False
    if not client_id:
        raise BodyError("expected HeartbeatData with a clientID")
    contents = []
    for data in map(_map, _list(body.get("consumerDataSet")) or ()):
        group = as_text(data.get("groupName"))
        if not group:
            raise BodyError("expected every consumerDataSet to have a groupName")
        subscriptions = _subscriptions(_list(data.get("subscriptionDataSet")) or ())
        heartbeat = HeartbeatOfGroup(
            client_id,
            bool(subscriptions) or not without_sub,
            as_text(data.get("consumeType")),
            as_text(data.get("messageModel")),
            subscriptions,
        )
        contents.append((group, heartbeat))
    return Read(tuple(contents))


def _subscriptions(data: Iterable[Any]) -> Subscriptions:
    """SubscriptionData: sorted, each once; what has no topic is none.

    ``subVersion`` is left out: it changes at every rebalance, whatever is consumed.
    """
    distinct = set()
    for fields in map(_map, data):
        topic = as_text(fields.get("topic"))
        if topic is not None:
            kind = as_text(fields.get("expressionType"))
            expression = as_text(fields.get("subString"))
            distinct.add(
                (topic, "TAG" if kind is None else kind, "*" if expression is None else expression)
            )
    return tuple(sorted(distinct))


# ------------------------------------------------------------------ lists


def _connections(body: Fields, _: str) -> Read:
    """ConsumerConnection, Connection; by client id, because the broker's set has no order."""
    given = _list(body.get("connectionSet"))
    if given is None:
        raise BodyError("expected ConsumerConnection with a connectionSet")
    connections = []
    for fields in map(_map, given):
        client_id, client_addr = as_text(fields.get("clientId")), as_text(fields.get("clientAddr"))
        if not client_id or not client_addr:
            raise BodyError("expected every connection to have a clientId and a clientAddr")
        language, version = as_text(fields.get("language")), _integer(fields.get("version"), 32)
        connections.append(Connection(client_id, client_addr, language, version))
    answer = Connections(
        tuple(sorted(connections, key=lambda connection: connection[:2])),
        as_text(body.get("consumeType")),
        as_text(body.get("messageModel")),
        _subscriptions(_map(body.get("subscriptionTable")).values()),
    )
    return Read(((None, answer),))


# ------------------------------------------------------------------ routes


def _route(body: Fields, _: str) -> Read:
    """TopicRouteData, BrokerData, QueueData, TopicQueueMappingInfo.

    A static topic has its logical queues, under the mock broker name that clients see for each
    scope; its real brokers have none, but clients still ask them for the group's members.
    """
    addresses, queues = _list(body.get("brokerDatas")), _list(body.get("queueDatas"))
    if addresses is None and queues is None:
        raise BodyError("expected TopicRouteData with queueDatas and brokerDatas")
    brokers = _brokers(addresses or ())
    numbers = _queue_numbers(queues or ())
    logical = _logical_queues(_map(body.get("topicQueueMappingByBroker")).values())
    physical = []
    for name in dict.fromkeys([*brokers, *numbers]):
        broker_ids, zone_name = brokers.get(name, ((), None))
        perm, read_queues, write_queues = numbers.get(name, (0, 0, 0))
        if logical:
            read_queues = write_queues = 0
        physical.append(RouteBroker(name, broker_ids, perm, read_queues, write_queues, zone_name))
    mocks = [
        RouteBroker(mock_broker_name(scope), (), 6, number, number, None)
        for scope, number in logical.items()
    ]
    return Read(((None, Route((*physical, *mocks))),))


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
        perm, reads, writes = [
            _integer(fields.get(key), 32) for key in ("perm", "readQueueNums", "writeQueueNums")
        ]
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
        scope = GLOBAL_SCOPE if scope is None else scope
        number = _integer(fields.get("totalQueues"), 32) or 0
        if not _is_number(number):
            raise BodyError(
                f"expected every topicQueueMapping to have totalQueues of 0 to {_MOST_QUEUES}"
            )
        most[scope] = max(most.get(scope, 0), number)
    return most


def mock_broker_name(scope: str) -> str:
    """The broker name under which clients see the logical queues of a static topic.

    >>> mock_broker_name("__global__"), mock_broker_name("s")
    ('__syslo__global__', '__syslo__s')
    """
    return _MOCK_BROKER + ("global__" if scope == GLOBAL_SCOPE else scope)


# ------------------------------------------------------------------ running infos


def _running_info(body: Fields, text: str) -> Read:
    """ConsumerRunningInfo, ProcessQueueInfo; the properties are those of the consumer's class."""
    given, table = body.get("properties"), body.get("mqTable")
    if given is None and table is None:
        raise BodyError("expected ConsumerRunningInfo with properties and an mqTable")
    properties = {name: as_text(value) for name, value in _map(given).items()}
    subscriptions = _list(body.get("subscriptionSet"))
    info = RunningInfo(
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


def _held(table: Any, text: str) -> tuple[InfoQueue, ...]:
    held = []
    for queue, value in read_queue_map("mqTable", table, text):
        fields = _map(value)
        dropped = _boolean(fields.get("droped")) or False  # RocketMQ's spelling
        pulled, consumed, cached = _long_numbers(fields, _OF_PROCESS_QUEUE)
        times = _instant_of_millis(pulled), _instant_of_millis(consumed)
        held.append(InfoQueue(*queue, dropped, *times, cached, _boolean(fields.get("locked"))))
    return tuple(held)


_OF_PROCESS_QUEUE = ("lastPullTimestamp", "lastConsumeTimestamp", "cachedMsgCount")


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


def _stats(entries: Iterable[tuple[tuple[str, str, int], Any]]) -> Stats:
    offsets = []
    for queue, value in entries:
        fields = _map(value)
        of_broker, of_consumer, millis = _long_numbers(fields, _OF_OFFSETS)
        if of_broker is not None and of_consumer is not None:
            # 0: nothing was consumed of it yet.
            last = _instant_of_millis(millis) if millis is not None and millis > 0 else None
            offsets.append(Offset(*queue, of_broker, of_consumer, last))
    return Stats(tuple(offsets))


_OF_OFFSETS = ("brokerOffset", "consumerOffset", "lastTimestamp")


# ------------------------------------------------------------------ message request modes


def _request_modes(body: Fields, _: str) -> Read:
    """MessageRequestModeSerializeWrapper: by topic and group a SetMessageRequestModeRequestBody.

    Source: ``MessageRequestModeManager`` of a broker (5.1.4), request code 402. A group that is not
    in it has the mode that the broker is configured with, which the body does not have.
    """
    table = body.get("messageRequestModeMap")
    if table is None:
        raise _WrongTypeError
    modes = []
    for topic, of_groups in _map(table).items():
        for group, value in _map(of_groups).items():
            mode = as_text(_map(value).get("mode"))
            if group and topic and mode in _MODES:
                modes.append((group, RequestMode(topic, mode)))
    return Read(tuple(modes))


def _group_flags(body: Fields, _: str) -> Read:
    """SubscriptionGroupWrapper: the groups that a broker does not let consume; most may.

    ``consumeBroadcastEnable`` is not read: ``mqadmin updateSubGroup`` makes it false unless it is
    named, and it refuses those alone that broadcast, whose offsets no broker has.
    """
    table = body.get("subscriptionGroupTable")
    if table is None:
        raise _WrongTypeError
    flags = {
        group: _boolean(_map(config).get("consumeEnable")) for group, config in _map(table).items()
    }
    return Read(
        tuple((group, GroupFlags(may)) for group, may in flags.items() if group and may is False)
    )


def _unused(field: str, is_type: Callable[[Any], Any]) -> Callable[[Fields, str], Read]:
    """Reads a body that makes no statement: one without its field is none of its class."""

    def read(body: Fields, _: str) -> Read:
        if body.get(field) is None:
            raise _WrongTypeError
        is_type(body[field])
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


def _list(value: Any) -> list[Any] | None:
    if not isinstance(value, list | None):
        raise _WrongTypeError
    return value


def _integer(value: Any, bits: int) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise _WrongTypeError
    return value


def _long_numbers(fields: Fields, names: Sequence[str]) -> list[int | None]:
    return [_integer(fields.get(name), 64) for name in names]


def _boolean(value: Any) -> bool | None:
    if not isinstance(value, bool | None):
        raise _WrongTypeError
    return value


class Body(NamedTuple):
    """How the body of a kind is read: as which class of RocketMQ's, and by which function.

    ``may_fail``: it may come as ``error_code`` and ``error_message`` in place of a body, or in the
    dashboard's envelope with a status. ``is_keyed_by_queue``: hardly any of these bodies is JSON,
    and where one cannot be read, the tokenizer reports the place. ``repeats``: it comes again and
    again; the others hold counters and times that always move.
    """

    class_name: str
    read: Callable[[Fields, str], Read]
    may_fail: bool = True
    is_keyed_by_queue: bool = False
    repeats: bool = True


#: By kind, but for the lines of client logs, which are no JSON.
BODIES: Mapping[str, Body] = {
    HEARTBEAT: Body("HeartbeatData", _heartbeat, may_fail=False),
    CONSUMER_CONNECTION: Body("ConsumerConnection", _connections),
    TOPIC_ROUTE: Body("TopicRouteData", _route),
    CONSUMER_RUNNING_INFO: Body(
        "ConsumerRunningInfo", _running_info, is_keyed_by_queue=True, repeats=False
    ),
    CONSUME_STATS: Body("ConsumeStats", _consume_stats, is_keyed_by_queue=True, repeats=False),
    MESSAGE_REQUEST_MODE: Body("MessageRequestModeSerializeWrapper", _request_modes),
    CLUSTER_INFO: Body("ClusterInfo", _unused("brokerAddrTable", _map)),
    SUBSCRIPTION_GROUP: Body("SubscriptionGroupWrapper", _group_flags),
    CONSUMER_TOPICS: Body("TopicList", _unused("topicList", _list)),
    LEFT_OUT: Body("what was left out", _unused("what", as_text), may_fail=False, repeats=False),
}
#: The kinds that may come with an error in place of a body, and those that repeat themselves.
MAY_FAIL = frozenset(kind for kind, body in BODIES.items() if body.may_fail)
REPEATED = frozenset(kind for kind, body in BODIES.items() if body.repeats)
