"""value -> content: what a body means, typed; each demand on a body, and each default, once.

And of each kind of line what its envelope must have.

Source: apache/rocketmq ``remoting.protocol`` 5.3.3, named at each function.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeGuard

from rebalance_core.message_queue import MOCK_BROKER_PREFIX
from rebalance_core.state import POP, PULL

from ..schemas import LIST_REFUSED
from . import statement
from .parsing import FastjsonError, parse_body
from .queues import (
    is_list_of_topics,
    parse_rebalance_line,
    read_consume_stats,
    read_dead_letters,
    read_running_info,
    read_topics,
)
from .values import (
    ENUMS,
    JAVA_INT_MAX,
    Fields,
    LineError,
    WrongTypeError,
    as_integer,
    as_map,
    as_maps,
    as_subscriptions,
    as_text,
    as_type,
    expected,
    integer_in,
    integers,
    is_java_int,
    known,
    needed,
)

#: The characters of what a collector says that it left out.
_LONGEST_WORDS = 200

#: The scope of which the mock broker's name drops the underscores
#: (``TopicQueueMappingUtils.getMockBrokerName``).
_GLOBAL_SCOPE = "__global__"

_OBJECT_KEY_OR_REFERENCE = re.compile(r'\{\s*\{|"\$ref"')


class ParsedBody(NamedTuple):
    """A body read: contents, each with its consumer group, or None where the envelope names it.

    ``code`` and ``message`` are the error in place of a content: that of a dashboard's status, or
    LIST_REFUSED with what is wrong with a list.
    """

    contents: tuple[tuple[str | None, statement.Content], ...]
    code: int | None = None
    message: str | None = None


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
        found = parse_rebalance_line(text)
        return ParsedBody(() if found is None else (found,))
    try:
        read = _unwrapped(kind, parse_body(text), text)
    except (FastjsonError, WrongTypeError) as error:
        has_place = not how.comes_again or _OBJECT_KEY_OR_REFERENCE.search(text)
        if isinstance(error, FastjsonError) and has_place:
            raise LineError(str(error)) from error
        raise LineError(expected(how.class_name, text if text.strip() else None)) from error
    return read if isinstance(read, ParsedBody) else ParsedBody(((None, read),))


def _unwrapped(kind: str, value: Any, text: str) -> ParsedBody | statement.Content:
    """The body, bare or as the dashboard wraps it: ``{"status":0,"data":{..},"errMsg":null}``.

    Source: apache/rocketmq-dashboard ``JsonResult``.
    """
    if kind == statement.CONSUME_STATS and is_list_of_topics(value):
        return read_topics(value, text)
    if not isinstance(value, dict):
        raise WrongTypeError
    if LINES[kind].may_fail and (as_integer(value.get("status"), 32) or 0) != 0:
        # The status names no code of RocketMQ's.
        return ParsedBody((), -1, as_text(value.get("errMsg")))
    data = value.get("data")
    if kind == statement.CONSUME_STATS and is_list_of_topics(data):
        return read_topics(data, text)
    if data is not None:
        given = {name: field for name, field in value.items() if field is not None}
        value = {**as_map(data), **given}
    return LINES[kind].read(value, text)


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
        subscriptions = as_subscriptions(as_maps(data.get("subscriptionDataSet")))
        is_full = bool(subscriptions) or not without_sub
        heartbeat = statement.HeartbeatOfGroup(client_id, is_full, *_model(data), subscriptions)
        contents.append((group, heartbeat))
    return ParsedBody(tuple(contents))


def _model(fields: Fields) -> tuple[str | None, str | None]:
    """ConsumeType, MessageModel: what is neither null nor of these enums no broker wrote."""
    for name in ("consumeType", "messageModel"):
        text = as_text(fields.get(name))
        if text is not None and text not in ENUMS[name]:
            raise LineError(expected(f"{name} to be one of {', '.join(ENUMS[name])}", text))
    return as_text(fields.get("consumeType")), as_text(fields.get("messageModel"))


# ------------------------------------------------------------------ lists


def _connections(body: Fields, _: str) -> ParsedBody | statement.Content:
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
        return ParsedBody(((None, None),), LIST_REFUSED, reason)
    in_order = tuple(sorted(connections, key=lambda connection: connection[:2]))
    table = as_map(body.get("subscriptionTable")).values()
    begins = known("consumeFromWhere", as_text(body.get("consumeFromWhere")))
    subscriptions = as_subscriptions(map(as_map, table))
    return statement.Connections(in_order, *_model(body), begins, subscriptions)


def _int_or_none(value: Any) -> int | None:
    """An ``int`` of Java; None for what is none, of a field without which nothing is lost."""
    return value if type(value) is int and is_java_int(value) else None


# ------------------------------------------------------------------ routes


def _route(body: Fields, _: str) -> statement.Content:
    """TopicRouteData, BrokerData, QueueData, TopicQueueMappingInfo.

    A static topic has its logical queues, under the mock broker name that clients see for each
    scope; its real brokers have none, but clients still ask them for the group's members. Of
    several entries of one broker name the first counts.
    """
    if body.get("brokerDatas") is None and body.get("queueDatas") is None:
        raise LineError("expected TopicRouteData with queueDatas and brokerDatas")
    brokers: dict[str, tuple[Any, ...]] = {}
    numbers: dict[str, tuple[int, int, int]] = {}
    for fields in as_maps(body.get("brokerDatas")):
        if not (name := as_text(fields.get("brokerName"))):
            raise LineError("expected every brokerData to have a brokerName")
        brokers.setdefault(name, _addressed(fields))
    for fields in as_maps(body.get("queueDatas")):
        name = as_text(fields.get("brokerName"))
        perm, reads, writes = integers(fields, 32, "perm", "readQueueNums", "writeQueueNums")
        if not name or perm is None or not (_is_number(reads) and _is_number(writes)):
            raise LineError(
                "expected every queueData to have a brokerName, a perm, and readQueueNums and "
                f"writeQueueNums of 0 to {JAVA_INT_MAX}"
            )
        numbers.setdefault(name, (perm, reads, writes))
    mappings = list(map(as_map, as_map(body.get("topicQueueMappingByBroker")).values()))
    numbers_of_scopes = _numbers_of_scopes(mappings)
    entries = []
    for name in dict.fromkeys([*brokers, *numbers]):
        broker_ids, *addressed = brokers.get(name, ((), None, None, None))
        perm, *queue_numbers = numbers.get(name, (0, 0, 0))
        reads, writes = (0, 0) if numbers_of_scopes else queue_numbers
        entries.append(statement.RouteEntry(name, broker_ids, perm, reads, writes, *addressed))
    for scope, number in numbers_of_scopes.items():
        entries.append(statement.RouteEntry(_mock_broker(scope), (), 6, number, number, None))
    return statement.Route(tuple(entries), tuple(sorted(_logical_queues(mappings))))


def _addressed(fields: Fields) -> tuple[Any, ...]:
    """The ids of a broker name, its zone, the addresses of the ids, and ``enableActingMaster``."""
    given = as_map(fields.get("brokerAddrs")).items()
    addrs = {id_: addr for key, addr in given if (id_ := integer_in(key)) is not None}
    ids, acts = tuple(sorted(addrs)), fields.get("enableActingMaster")
    in_order = tuple(as_text(addrs[id_]) or "" for id_ in ids)
    return ids, as_text(fields.get("zoneName")), in_order, acts if isinstance(acts, bool) else None


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
            number, physical_number = integer_in(as_text(logical)), integer_in(as_text(physical))
            if name and _is_number(number) and _is_number(physical_number):
                mock = _mock_broker(_scope(fields))
                yield statement.LogicalQueue(mock, number, name, physical_number), epoch


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


# ------------------------------------------------------------------ a broker's tables, and others


def _request_modes(body: Fields, _: str) -> ParsedBody:
    """MessageRequestModeSerializeWrapper: by topic and group a SetMessageRequestModeRequestBody.

    Source: ``MessageRequestModeManager`` of a broker (5.1.4), request code 402. A group that is not
    in it has the mode that the broker is configured with, which the body does not have.
    """
    modes = []
    for topic, mode_by_group in as_map(needed(body, "messageRequestModeMap")).items():
        for group, value in as_map(mode_by_group).items():
            mode = as_text(as_map(value).get("mode"))
            if group and topic and mode in (PULL, POP):
                modes.append((group, statement.RequestMode(topic, mode)))
    return ParsedBody(tuple(modes))


def _group_flags(body: Fields, _: str) -> ParsedBody:
    """SubscriptionGroupWrapper: the groups that a broker has, and does not let consume; most may.

    ``consumeBroadcastEnable`` is not read: ``mqadmin updateSubGroup`` makes it false unless it is
    named, and it refuses those alone that broadcast, whose offsets no broker has.
    """
    table = as_map(needed(body, "subscriptionGroupTable"))
    flags: list[tuple[str | None, statement.Content]] = []
    for group, config in table.items():
        may = as_type(bool, as_map(config).get("consumeEnable"))
        if group and may is False:
            flags.append((group, statement.GroupFlags(may)))
    groups = statement.ConfiguredGroups(tuple(sorted(filter(None, table))))
    return ParsedBody((*flags, (None, groups)))


def _topic_list(body: Fields, _: str) -> ParsedBody:
    """TopicList, which makes no statement."""
    as_type(list, needed(body, "topicList"))
    return ParsedBody(())


def _cluster_info(body: Fields, _: str) -> ParsedBody:
    """ClusterInfo: the broker names that are in several clusters.

    A name goes into the set of each cluster that a broker of the name registers with, and the
    address of the last of them counts (``RouteInfoManager.registerBroker`` 4.9.4 to 5.3.3).
    """
    as_map(needed(body, "brokerAddrTable"))
    clusters: dict[str, set[str]] = {}
    for cluster, names in as_map(body.get("clusterAddrTable")).items():
        for name in as_type(list, names) or ():
            if isinstance(name, str):
                clusters.setdefault(name, set()).add(cluster)
    shared = ((name, having) for name, having in sorted(clusters.items()) if len(having) > 1)
    return ParsedBody(
        tuple((None, statement.SharedName(name, tuple(sorted(having)))) for name, having in shared)
    )


def _left_out(body: Fields, _: str) -> statement.Content:
    """The line of a collector on what it left out of a round; one thing, where no number says."""
    what = as_text(needed(body, "what")) or ""
    return statement.LeftOut(what[:_LONGEST_WORDS], _int_or_none(body.get("number")) or 1)


# ------------------------------------------------------------------ kinds

#: Columns of the server that a collector asked: a broker, a nameserver.
_BROKER, _NAMESERVER = ("broker_name", "broker_id", "broker_addr"), ("namesrv_addr",)
#: Fields of a poll of a broker.
_POLL, _GROUP = ("snapshot_time", "broker_name", "broker_id"), "consumer_group"
_CLIENT = ("broker_name", "broker_id", "client_addr")


@dataclass(frozen=True)
class LineKind:
    """A kind of line, with how its body and its envelope are read.

    ``read`` reads a body, or its one content; it is of the class ``class_name`` of RocketMQ's. Of a
    log line there is none, for it is no JSON. ``required``: the
    fields that an envelope must have besides ``cluster`` and ``collected_at``, in the order in
    which they are checked; ``subject`` is one of them, or None where the body names the group;
    ``source`` are those that show who was asked and who reported. ``may_fail``: the line may have
    ``error_code`` and ``error_message`` in place of a body, or a body in the dashboard's envelope
    with a status. ``comes_again``: whether equal bodies come often. Those that are keyed by queue
    hold counters and times that always move; hardly any of them is JSON, and where one cannot be
    read, the tokenizer reports the place.
    """

    class_name: str
    read: Callable[[Fields, str], ParsedBody | statement.Content]
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
        "HeartbeatData", _heartbeat, _CLIENT, source=(*_BROKER, "client_addr"), may_fail=False
    ),
    statement.CONSUMER_CONNECTION: LineKind(
        "ConsumerConnection", _connections, (*_POLL, _GROUP), _GROUP
    ),
    statement.TOPIC_ROUTE: LineKind(
        "TopicRouteData", _route, ("snapshot_time", *_NAMESERVER, "topic"), "topic", _NAMESERVER
    ),
    statement.CONSUMER_RUNNING_INFO: LineKind(
        "ConsumerRunningInfo",
        read_running_info,
        ("snapshot_time", _GROUP, "client_id"),
        _GROUP,
        (*_BROKER, "client_id", "process"),
        comes_again=False,
    ),
    statement.CONSUME_STATS: LineKind(
        "ConsumeStats", read_consume_stats, ("snapshot_time", _GROUP), _GROUP, comes_again=False
    ),
    statement.TOPIC_STATS: LineKind(
        "TopicStatsTable", read_dead_letters, (*_POLL, _GROUP), _GROUP, comes_again=False
    ),
    statement.MESSAGE_REQUEST_MODE: LineKind(
        "MessageRequestModeSerializeWrapper", _request_modes, _POLL
    ),
    statement.CLIENT_LOG: LineKind(
        "a line of a log", lambda *_: None, source=("process",), may_fail=False, comes_again=False
    ),
    statement.CLUSTER_INFO: LineKind(
        "ClusterInfo", _cluster_info, ("snapshot_time", *_NAMESERVER), source=_NAMESERVER
    ),
    statement.SUBSCRIPTION_GROUP: LineKind("SubscriptionGroupWrapper", _group_flags, _POLL),
    statement.CONSUMER_TOPICS: LineKind("TopicList", _topic_list, (*_POLL, _GROUP), _GROUP),
    statement.LEFT_OUT: LineKind(
        "what was left out", _left_out, ("snapshot_time",), source=(), may_fail=False
    ),
}
