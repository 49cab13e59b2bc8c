"""value -> content: what a body means, typed; each demand on a body, and each default, once.

And of each kind of line what its envelope must have.

Source: apache/rocketmq ``remoting.protocol`` 5.3.3, named at each function.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from rebalance_core.message_queue import MOCK_BROKER_PREFIX, is_dead_letters
from rebalance_core.state import BROADCASTING, CLUSTERING, POP, PULL
from rebalance_core.strategy_factory import JAVA_CLASSES

from ..contract import values_of
from ..schemas import LIST_REFUSED, QUEUE_OFFSETS
from . import statement
from .client_log import parse_rebalance_line
from .fastjson import FastjsonError
from .parsing import parse_body
from .queue_maps import QueueName, is_list_of_topics, read_queue_map, read_topics
from .values import (
    JAVA_INT_MAX,
    Fields,
    LineError,
    WrongTypeError,
    as_integer,
    as_map,
    as_maps,
    as_text,
    as_type,
    expected,
    integer_in,
    integers,
    is_java_int,
)

#: Messages in 1,000 seconds, and an offset: what the table of them takes.
_RATES, _OFFSETS = (
    values_of(QUEUE_OFFSETS.schema.field(name))
    for name in ("given_per_1000_seconds", "broker_offset")
)

#: The characters of what a collector says that it left out.
_LONGEST_WORDS = 200

STRATEGY_PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."

#: The scope of which the mock broker's name drops the underscores
#: (``TopicQueueMappingUtils.getMockBrokerName``).
_GLOBAL_SCOPE = "__global__"

_OBJECT_KEY_OR_REFERENCE = re.compile(r'\{\s*\{|"\$ref"')

_YEAR_1, _YEAR_10000 = -62_135_596_800_000, 253_402_300_800_000


class ParsedBody(NamedTuple):
    """A body read: contents, each with its consumer group, or None where the envelope names it.

    ``code`` and ``message`` are the error in place of a content: that of a dashboard's status, or
    LIST_REFUSED with what is wrong with a list.
    """

    contents: tuple[tuple[str | None, statement.Content], ...]
    code: int | None = None
    message: str | None = None


def _one(content: statement.Content) -> ParsedBody:
    return ParsedBody(((None, content),))


def read_body(kind: str, text: str) -> ParsedBody:
    """Reads a body of a kind.

    Raises LineError for a text that is not such a body.

    >>> beat = '{"clientID":"a@1","consumerDataSet":[{"groupName":"G","subscriptionDataSet":[]}]}'
    >>> read_body("heartbeat", beat).contents[0][1].client_id
    'a@1'
    >>> read_body("consume_stats", '{"status":-1,"data":null,"errMsg":"CODE: 206"}')
    ParsedBody(contents=(), code=-1, message='CODE: 206')
    """
    how = LINES[kind]
    if kind == statement.CLIENT_LOG:  # which is no JSON
        return how.read({}, text)
    try:
        return _unwrapped(kind, parse_body(text), text)
    except (FastjsonError, WrongTypeError) as error:
        has_place = not how.comes_again or _OBJECT_KEY_OR_REFERENCE.search(text)
        if isinstance(error, FastjsonError) and has_place:
            raise LineError(str(error)) from error
        raise LineError(expected(how.class_name, text if text.strip() else None)) from error


def _unwrapped(kind: str, value: Any, text: str) -> ParsedBody:
    """The body, bare or as the dashboard wraps it: ``{"status":0,"data":{..},"errMsg":null}``.

    Source: apache/rocketmq-dashboard ``JsonResult``.
    """
    if kind == statement.CONSUME_STATS and is_list_of_topics(value):
        value = {"data": value}
    if not isinstance(value, dict):
        raise WrongTypeError
    if LINES[kind].may_fail and (as_integer(value.get("status"), 32) or 0) != 0:
        # The status names no code of RocketMQ's.
        return ParsedBody((), -1, as_text(value.get("errMsg")))
    data = value.get("data")
    if kind == statement.CONSUME_STATS and is_list_of_topics(data):
        return _stats(read_topics(data, text))
    if data is not None:
        given = {name: field for name, field in value.items() if field is not None}
        value = {**as_map(data), **given}
    return LINES[kind].read(value, text)


#: The values of enums of RocketMQ, by their fields.
_MODELS = {
    "consumeFromWhere": tuple(
        f"CONSUME_FROM_{where}" for where in ("LAST_OFFSET", "FIRST_OFFSET", "TIMESTAMP")
    ),
    "consumeType": ("CONSUME_PASSIVELY", "CONSUME_ACTIVELY", "CONSUME_POP"),
    "messageModel": (CLUSTERING, BROADCASTING),
}


# ------------------------------------------------------------------ heartbeats


def _heartbeat(body: Fields, _: str) -> ParsedBody:
    """HeartbeatData, ConsumerData."""
    client_id = as_text(body.get("clientID"))
    without_sub = as_type(bool, body.get("withoutSub"))
    if not client_id:
        raise LineError("expected HeartbeatData with a clientID")
    contents = []
    for data in as_maps(body.get("consumerDataSet")):
        group = as_text(data.get("groupName"))
        if not group:
            raise LineError("expected every consumerDataSet to have a groupName")
        subscriptions = _subscriptions(as_maps(data.get("subscriptionDataSet")))
        is_full = bool(subscriptions) or not without_sub
        heartbeat = statement.HeartbeatOfGroup(client_id, is_full, *_model(data), subscriptions)
        contents.append((group, heartbeat))
    return ParsedBody(tuple(contents))


def _model(fields: Fields) -> tuple[str | None, str | None]:
    """ConsumeType, MessageModel: what is neither null nor of these enums no broker wrote."""
    for name in ("consumeType", "messageModel"):
        text, known = as_text(fields.get(name)), _MODELS[name]
        if text is not None and text not in known:
            raise LineError(expected(f"{name} to be one of {', '.join(known)}", text))
    return as_text(fields.get("consumeType")), as_text(fields.get("messageModel"))


def _known(name: str, text: str | None) -> str | None:
    """The value that a client gives of itself, in words of its SDK; None where none knows it."""
    return text if text in _MODELS[name] else None


def _subscriptions(data: Iterable[Fields]) -> statement.Subscriptions:
    """SubscriptionData: sorted, each once; what has no topic is none.

    ``subVersion`` is left out: it changes at every rebalance, whatever is consumed.
    """
    distinct = set()
    for fields in data:
        topic = as_text(fields.get("topic"))
        if topic is not None:
            kind = as_text(fields.get("expressionType"))
            kind = "TAG" if kind is None else kind
            expression = as_text(fields.get("subString"))
            distinct.add((topic, kind, "*" if expression is None else expression))
    return tuple(sorted(distinct))


# ------------------------------------------------------------------ lists


def _connections(body: Fields, _: str) -> ParsedBody:
    """ConsumerConnection, Connection; by client id, because the broker's set has no order.

    Of a connection the client id alone must be there: whoever has none takes a slot all the same,
    and nobody knows where it sorts to, which decides the share of each other member. Such a list is
    understood, and no evidence.
    """
    if body.get("connectionSet") is None:
        raise LineError("expected ConsumerConnection with a connectionSet")
    entries = as_type(list, body["connectionSet"]) or []
    connections, unknown = [], []
    for entry in entries:
        fields = entry if isinstance(entry, dict) else {}
        client_id, client_addr = as_text(fields.get("clientId")), as_text(fields.get("clientAddr"))
        if not client_id:
            unknown.append(client_addr or "an unknown address")
            continue
        language, version = as_text(fields.get("language")), _int_or_none(fields.get("version"))
        connections.append(statement.Connection(client_id, client_addr or "", language, version))
    if unknown:
        which = f"{min(unknown)[:60]} ({len(unknown):,} of {len(entries):,} connections)"
        reason = (
            f"no clientId of the connection from {which}: it takes a share of the queues, and "
            "nobody knows which"
        )
        return ParsedBody(_one(None).contents, LIST_REFUSED, reason)
    in_order = tuple(sorted(connections, key=lambda connection: connection[:2]))
    table = as_map(body.get("subscriptionTable")).values()
    begins = _known("consumeFromWhere", as_text(body.get("consumeFromWhere")))
    subscriptions = _subscriptions(map(as_map, table))
    return _one(statement.Connections(in_order, *_model(body), begins, subscriptions))


def _int_or_none(value: Any) -> int | None:
    """An ``int`` of Java; None for what is none, of a field without which nothing is lost."""
    return value if type(value) is int and is_java_int(value) else None


# ------------------------------------------------------------------ routes


def _route(body: Fields, _: str) -> ParsedBody:
    """TopicRouteData, BrokerData, QueueData, TopicQueueMappingInfo.

    A static topic has its logical queues, under the mock broker name that clients see for each
    scope; its real brokers have none, but clients still ask them for the group's members.
    """
    if body.get("brokerDatas") is None and body.get("queueDatas") is None:
        raise LineError("expected TopicRouteData with queueDatas and brokerDatas")
    addresses, queues = as_maps(body.get("brokerDatas")), as_maps(body.get("queueDatas"))
    brokers, numbers = _brokers(addresses), _queue_numbers(queues)
    mappings = [as_map(each) for each in as_map(body.get("topicQueueMappingByBroker")).values()]
    numbers_of_scopes = _numbers_of_scopes(mappings)
    entries = []
    for name in dict.fromkeys([*brokers, *numbers]):
        broker_ids, zone_name, addrs, acts = brokers.get(name, _NO_BROKER)
        perm, *queue_numbers = numbers.get(name, (0, 0, 0))
        reads, writes = (0, 0) if numbers_of_scopes else queue_numbers
        facts = name, broker_ids, perm, reads, writes, zone_name, addrs, acts
        entries.append(statement.RouteEntry(*facts))
    for scope, number in numbers_of_scopes.items():
        entries.append(statement.RouteEntry(_mock_broker(scope), (), 6, number, number, None))
    return _one(statement.Route(tuple(entries), tuple(sorted(_logical_queues(mappings)))))


#: The ids of a broker name, its zone, the addresses of the ids, and ``enableActingMaster``.
_Addressed: TypeAlias = tuple[tuple[int, ...], str | None, tuple[str, ...] | None, bool | None]
_NO_BROKER: _Addressed = ((), None, None, None)


def _brokers(given: Iterable[Fields]) -> dict[str, _Addressed]:
    """The ids of each broker name with their addresses; the first one counts."""
    brokers: dict[str, _Addressed] = {}
    for fields in given:
        name = as_text(fields.get("brokerName"))
        if not name:
            raise LineError("expected every brokerData to have a brokerName")
        given_addrs = as_map(fields.get("brokerAddrs")).items()
        of_ids = {id_: addr for key, addr in given_addrs if (id_ := integer_in(key)) is not None}
        ids = tuple(sorted(of_ids))
        addrs = tuple(as_text(of_ids[each]) or "" for each in ids)
        acts = fields.get("enableActingMaster")
        others = addrs, acts if isinstance(acts, bool) else None
        brokers.setdefault(name, (ids, as_text(fields.get("zoneName")), *others))
    return brokers


def _queue_numbers(given: Iterable[Fields]) -> dict[str, tuple[int, int, int]]:
    """The perm, readQueueNums and writeQueueNums of each broker name; the first one counts."""
    numbers: dict[str, tuple[int, int, int]] = {}
    for fields in given:
        name = as_text(fields.get("brokerName"))
        perm, reads, writes = integers(fields, 32, "perm", "readQueueNums", "writeQueueNums")
        if not name or perm is None or not (_is_number(reads) and _is_number(writes)):
            raise LineError(
                "expected every queueData to have a brokerName, a perm, and readQueueNums and "
                f"writeQueueNums of 0 to {JAVA_INT_MAX}"
            )
        numbers.setdefault(name, (perm, reads, writes))
    return numbers


def _is_number(queues: int | None) -> TypeGuard[int]:
    return queues is not None and 0 <= queues <= JAVA_INT_MAX


def _scope(mapping: Fields) -> str:
    scope = as_text(mapping.get("scope"))
    return _GLOBAL_SCOPE if scope is None else scope


def _mock_broker(scope: str) -> str:
    return MOCK_BROKER_PREFIX + ("global__" if scope == _GLOBAL_SCOPE else scope)


def _logical_queues(
    mappings: Iterable[Fields],
) -> Iterator[tuple[statement.LogicalQueue, int]]:
    """The logical queues that each broker has, with its epoch; but for what is no queue id."""
    for fields in mappings:
        name, epoch = as_text(fields.get("bname")), as_integer(fields.get("epoch"), 64) or 0
        for logical, physical in as_map(fields.get("currIdMap")).items():
            number, of_broker = integer_in(as_text(logical)), integer_in(as_text(physical))
            if name and _is_number(number) and _is_number(of_broker):
                mock = _mock_broker(_scope(fields))
                yield statement.LogicalQueue(mock, number, name, of_broker), epoch


def _numbers_of_scopes(mappings: Iterable[Fields]) -> dict[str, int]:
    """The number of logical queues of each scope: the highest that any broker gives."""
    most: dict[str, int] = {}
    for fields in mappings:
        scope = _scope(fields)
        number = as_integer(fields.get("totalQueues"), 32) or 0
        if not _is_number(number):
            raise LineError(
                f"expected every topicQueueMapping to have totalQueues of 0 to {JAVA_INT_MAX}"
            )
        most[scope] = max(most.get(scope, 0), number)
    return most


# ------------------------------------------------------------------ running infos


def _running_info(body: Fields, text: str) -> ParsedBody:
    """ConsumerRunningInfo, ProcessQueueInfo; the properties are those of the consumer's class."""
    given, table = body.get("properties"), body.get("mqTable")
    if given is None and table is None:
        raise LineError("expected ConsumerRunningInfo with properties and an mqTable")
    properties = {name: as_text(value) for name, value in as_map(given).items()}
    subscriptions = body.get("subscriptionSet")
    info = statement.RunningInfo(
        _instant_of_millis(integer_in(properties.get("PROP_CONSUMER_START_TIMESTAMP"))),
        _strategy(properties.get("allocateMessageQueueStrategy")),
        _known("messageModel", properties.get("messageModel")),
        _known("consumeType", properties.get("PROP_CONSUME_TYPE")),
        # A field of DefaultMQPullConsumer, and of no other class.
        None if given is None else "registerTopics" in properties,
        _property(properties, "PROP_CONSUMEORDERLY"),
        _client_rebalance(properties),
        None if subscriptions is None else _subscriptions(as_maps(subscriptions)),
        None if table is None else _held(table, text),
        properties.get("PROP_CLIENT_VERSION"),
    )
    return _one(info)


def _held(table: Any, text: str) -> tuple[statement.InfoQueue, ...]:
    held = []
    for queue, value in read_queue_map("mqTable", table, text):
        fields = as_map(value)
        dropped = as_type(bool, fields.get("droped")) or False  # RocketMQ's spelling
        pulled, consumed, locked_at, committed = integers(
            fields,
            64,
            "lastPullTimestamp",
            "lastConsumeTimestamp",
            "lastLockTimestamp",
            "commitOffset",
        )
        times = _instant_of_millis(pulled), _instant_of_millis(consumed)
        locked, since = as_type(bool, fields.get("locked")), _instant_of_millis(locked_at)
        cached, first, last = _cached(fields)
        held.append(
            statement.InfoQueue(
                *queue, dropped, *times, cached, locked, first, since, last, committed
            )
        )
    return tuple(held)


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
    some = [each for each in parts if each[0]]
    if not some:
        return parts[0][0], None, None
    count = sum(number for number, *_ in some if number)
    first = min((each for _, each, _ in some if each is not None), default=None)
    return count, first, max((each for *_, each in some if each is not None), default=None)


def _instant_of_millis(millis: int | None) -> int | None:
    """The instant; None beyond the years 1 to 9999, which no table can hold."""
    return millis * 1000 if millis is not None and _YEAR_1 <= millis < _YEAR_10000 else None


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


def _consume_stats(body: Fields, text: str) -> ParsedBody:
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


def _stats(entries: Iterable[tuple[QueueName, Any]], given: int | None = None) -> ParsedBody:
    """``given``: messages in 1,000 seconds; the dashboard's answer does not have it."""
    offsets = []
    for queue, value in entries:
        fields = as_map(value)
        of_broker, of_consumer, millis = integers(
            fields, 64, "brokerOffset", "consumerOffset", "lastTimestamp"
        )
        if of_broker is not None and of_consumer is not None:
            _check_offsets(of_broker, of_consumer)
            # 0: nothing was consumed of it yet.
            last = _instant_of_millis(millis) if millis is not None and millis > 0 else None
            offsets.append(statement.Offset(*queue, of_broker, of_consumer, last, given))
    return _one(statement.Stats(tuple(offsets)))


def _check_offsets(*offsets: int) -> None:
    for offset in offsets:
        if not _OFFSETS.allow(offset):
            raise LineError(expected(f"offsets of {_OFFSETS}", str(offset)))


def _dead_letters(body: Fields, text: str) -> ParsedBody:
    """TopicStatsTable, TopicOffset of a group's %DLQ%: where the next message goes."""
    entries = read_queue_map("offsetTable", _needed(body, "offsetTable"), text)
    ends = ((queue, integers(as_map(value), 64, "maxOffset")[0]) for queue, value in entries)
    found = [statement.Offset(*queue, end, -1, None) for queue, end in ends if end is not None]
    _check_offsets(*(offset.broker_offset for offset in found))
    return _one(statement.Stats(tuple(offset for offset in found if is_dead_letters(offset.topic))))


# ------------------------------------------------------------------ message request modes


def _request_modes(body: Fields, _: str) -> ParsedBody:
    """MessageRequestModeSerializeWrapper: by topic and group a SetMessageRequestModeRequestBody.

    Source: ``MessageRequestModeManager`` of a broker (5.1.4), request code 402. A group that is not
    in it has the mode that the broker is configured with, which the body does not have.
    """
    modes = []
    for topic, of_groups in as_map(_needed(body, "messageRequestModeMap")).items():
        for group, value in as_map(of_groups).items():
            mode = as_text(as_map(value).get("mode"))
            if group and topic and mode in (PULL, POP):
                modes.append((group, statement.RequestMode(topic, mode)))
    return ParsedBody(tuple(modes))


def _group_flags(body: Fields, _: str) -> ParsedBody:
    """SubscriptionGroupWrapper: the groups that a broker has, and does not let consume; most may.

    ``consumeBroadcastEnable`` is not read: ``mqadmin updateSubGroup`` makes it false unless it is
    named, and it refuses those alone that broadcast, whose offsets no broker has.
    """
    table = as_map(_needed(body, "subscriptionGroupTable"))
    flags: list[tuple[str | None, statement.Content]] = []
    for group, config in table.items():
        may = as_type(bool, as_map(config).get("consumeEnable"))
        if group and may is False:
            flags.append((group, statement.GroupFlags(may)))
    return ParsedBody(
        (*flags, (None, statement.ConfiguredGroups(tuple(sorted(filter(None, table))))))
    )


def _needed(body: Fields, name: str) -> Any:
    """A field without which a body is none of its class."""
    if body.get(name) is None:
        raise WrongTypeError
    return body[name]


def _topic_list(body: Fields, _: str) -> ParsedBody:
    """TopicList, which makes no statement."""
    as_type(list, _needed(body, "topicList"))
    return ParsedBody(())


def _cluster_info(body: Fields, _: str) -> ParsedBody:
    """ClusterInfo: the broker names that are in several clusters.

    A name goes into the set of each cluster that a broker of the name registers with, and the
    address of the last of them counts (``RouteInfoManager.registerBroker`` 4.9.4 to 5.3.3).
    """
    as_map(_needed(body, "brokerAddrTable"))
    clusters: dict[str, set[str]] = {}
    for cluster, names in as_map(body.get("clusterAddrTable")).items():
        for name in as_type(list, names) or ():
            if isinstance(name, str):
                clusters.setdefault(name, set()).add(cluster)
    shared = ((name, tuple(sorted(each))) for name, each in sorted(clusters.items()))
    found = (statement.SharedName(*each) for each in shared if len(each[1]) > 1)
    return ParsedBody(tuple((None, shared_name) for shared_name in found))


def _left_out(body: Fields, _: str) -> ParsedBody:
    """The line of a collector on what it left out of a round; one thing, where no number says."""
    what = as_text(_needed(body, "what")) or ""
    return _one(statement.LeftOut(what[:_LONGEST_WORDS], _int_or_none(body.get("number")) or 1))


def _log_line(_: Fields, line: str) -> ParsedBody:
    found = parse_rebalance_line(line)
    return ParsedBody(() if found is None else (found,))


# ------------------------------------------------------------------ kinds

#: Columns of the server that a collector asked: a broker, a nameserver.
_BROKER, _NAMESERVER = ("broker_name", "broker_id", "broker_addr"), ("namesrv_addr",)
#: Fields of a poll of a broker.
_POLL, _GROUP = ("snapshot_time", "broker_name", "broker_id"), "consumer_group"


@dataclass(frozen=True)
class LineKind:
    """A kind of line, with how its body and its envelope are read.

    ``read`` reads a body, which is of the class ``class_name`` of RocketMQ's. ``required``: the
    fields that an envelope must have besides ``cluster`` and ``collected_at``, in the order in
    which they are checked; ``subject`` is one of them, or None where the body names the group;
    ``source`` are those that show who was asked and who reported. ``may_fail``: the line may have
    ``error_code`` and ``error_message`` in place of a body, or a body in the dashboard's envelope
    with a status. ``comes_again``: whether equal bodies come often. Those that are keyed by queue
    hold counters and times that always move; hardly any of them is JSON, and where one cannot be
    read, the tokenizer reports the place.
    """

    class_name: str
    read: Callable[[Fields, str], ParsedBody]
    required: tuple[str, ...] = ()
    subject: str | None = None
    source: tuple[str, ...] = _BROKER
    may_fail: bool = True
    comes_again: bool = True

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """All fields of an envelope that are read, but for its body and an error's message."""
        times = ("collected_at", "snapshot_time")
        names = ("cluster", *times, *self.required, *self.source, "error_code")
        return tuple(dict.fromkeys(names))


#: Lines by kind.
LINES: Mapping[str, LineKind] = {
    statement.HEARTBEAT: LineKind(
        "HeartbeatData",
        _heartbeat,
        ("broker_name", "broker_id", "client_addr"),
        source=(*_BROKER, "client_addr"),
        may_fail=False,
    ),
    statement.CONSUMER_CONNECTION: LineKind(
        "ConsumerConnection", _connections, (*_POLL, _GROUP), _GROUP
    ),
    statement.TOPIC_ROUTE: LineKind(
        "TopicRouteData", _route, ("snapshot_time", *_NAMESERVER, "topic"), "topic", _NAMESERVER
    ),
    statement.CONSUMER_RUNNING_INFO: LineKind(
        "ConsumerRunningInfo",
        _running_info,
        ("snapshot_time", _GROUP, "client_id"),
        _GROUP,
        (*_BROKER, "client_id", "process"),
        comes_again=False,
    ),
    statement.CONSUME_STATS: LineKind(
        "ConsumeStats", _consume_stats, ("snapshot_time", _GROUP), _GROUP, comes_again=False
    ),
    statement.TOPIC_STATS: LineKind(
        "TopicStatsTable", _dead_letters, (*_POLL, _GROUP), _GROUP, comes_again=False
    ),
    statement.MESSAGE_REQUEST_MODE: LineKind(
        "MessageRequestModeSerializeWrapper", _request_modes, _POLL
    ),
    statement.CLIENT_LOG: LineKind(
        "a line of a log", _log_line, source=("process",), may_fail=False, comes_again=False
    ),
    statement.CLUSTER_INFO: LineKind(
        "ClusterInfo",
        _cluster_info,
        ("snapshot_time", *_NAMESERVER),
        source=_NAMESERVER,
    ),
    statement.SUBSCRIPTION_GROUP: LineKind("SubscriptionGroupWrapper", _group_flags, _POLL),
    statement.CONSUMER_TOPICS: LineKind("TopicList", _topic_list, (*_POLL, _GROUP), _GROUP),
    statement.LEFT_OUT: LineKind(
        "what was left out",
        _left_out,
        ("snapshot_time",),
        source=(),
        may_fail=False,
    ),
}
