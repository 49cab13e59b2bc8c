"""Names in an answer that are still to be asked for, each within RocketMQ's own limits.

Pure functions of an answer: a long one is read in a thread. What cannot be read shows nothing; the
line has the body as it came.
"""

import re
from collections.abc import Callable, Iterable
from heapq import nsmallest
from itertools import groupby
from operator import itemgetter
from sys import getsizeof
from typing import Any, NamedTuple

from ..config.bounds import DEFAULT_BOUNDS
from ..dumps.parsing import parse_body, parse_json, without_half_pairs
from .client import Answer
from .memory import ConnectionsOfId, ListedBroker, connections_of
from .questions import RequestCode

#: ``Validators.CHARACTER_MAX_LENGTH`` and ``TOPIC_MAX_LENGTH`` of 5.x; brokers make the retry topic
#: of a group whatever its length.
MOST_OF_A_NAME, _MOST_OF_A_TOPIC, _RETRY = 255, 127, "%RETRY%"
#: The most addresses of one broker name: a master has a few slaves.
_MOST_ADDRESSES = 100
_MOST_OF_AN_ID = DEFAULT_BOUNDS.name_length
#: ``BrokerData.brokerAddrs`` is keyed by a long.
_BROKER_ID = re.compile(r"[0-9]{1,18}")
_INTEGER_KEY = re.compile(r"([{,])([0-9]{1,18}):")
#: The first byte in UTF-8 of a character that takes four bytes.
_IS_WIDE = re.compile(rb"[\xf0-\xf7]")
#: A longer body is read as JSON alone: the tokenizer of what is none takes a second a megabyte.
_MOST_OF_NO_JSON = 1 << 15
#: The bytes that a text takes while it is read, by its copies; an object, or an empty one; a list;
#: a value with its name.
_COPIES, _OBJECT, _EMPTY, _LIST, _VALUE = 3, 200, 80, 90, 130
#: The most that may become of a body: so many times its size, or that of one with so many bytes.
_MOST_TIMES, _SMALL_BODY = 8, 8 << 20


class TooMuchError(Exception):
    """A body that would take too much memory, or time, to read."""


class AnsweredNames(NamedTuple):
    """Names that an answer has: those to be asked of, and how many are too long to be names."""

    names: list[str]
    too_long: int = 0


class BrokerList(NamedTuple):
    """The brokers that a nameserver gives, and how many addresses were left out of them."""

    brokers: list[ListedBroker]
    left_out: int = 0


class GroupList(NamedTuple):
    """A broker's list of a group: the connections of each id, and the topics."""

    connections: dict[str, ConnectionsOfId]
    topics: AnsweredNames
    too_long: int = 0


def is_topic(name: str) -> bool:
    """True if a topic may have this name.

    >>> is_topic("T"), is_topic("T" * 128), is_topic("%RETRY%" + "G" * 255)
    (True, False, True)
    """
    if name.startswith(_RETRY):
        return len(name) <= len(_RETRY) + MOST_OF_A_NAME
    return 0 < len(name) <= _MOST_OF_A_TOPIC


def is_group(name: str) -> bool:
    """True if a consumer group may have this name."""
    return 0 < len(name) <= MOST_OF_A_NAME


def brokers_in(answer: Answer) -> BrokerList:
    """The brokers of a ``ClusterInfo``, in RocketMQ's clusters.

    The one with the least id of its name is the master.

    >>> body = b'{"brokerAddrTable":{"a":{"cluster":"C","brokerAddrs":{0:"10.0.0.1:1",2:"b:1"}}}}'
    >>> [each[1:] for each in brokers_in(Answer("ns:1", 0, None, body, 0)).brokers]
    [('a', 0, '10.0.0.1:1', True), ('a', 2, 'b:1', False)]
    """
    found, left_out = list[ListedBroker](), 0
    for broker_name, data in _inner(_value(answer), "brokerAddrTable", dict).items():
        cluster = data.get("cluster") if isinstance(data, dict) else None
        if not isinstance(cluster, str) or not all(map(is_group, (cluster, broker_name))):
            continue
        addresses = {
            int(broker_id): address
            for broker_id, address in _inner(data, "brokerAddrs", dict).items()
            if _BROKER_ID.fullmatch(broker_id) and isinstance(address, str) and is_group(address)
        }
        left_out += max(0, len(addresses) - _MOST_ADDRESSES)
        for place, (broker_id, address) in enumerate(nsmallest(_MOST_ADDRESSES, addresses.items())):
            found.append(ListedBroker(cluster, broker_name, broker_id, address, place == 0))
    return BrokerList(found, left_out)


def groups_in(answer: Answer) -> AnsweredNames:
    """The consumer groups that a broker has a configuration of."""
    return _named(_inner(_value(answer), "subscriptionGroupTable", dict), is_group)


def topics_in_list(answer: Answer) -> AnsweredNames:
    """The topics of a ``TopicList``."""
    return _named(_inner(_value(answer), "topicList", list), is_topic)


def listed_in(answer: Answer) -> GroupList:
    """The members that a ``ConsumerConnection`` lists; empty where nobody is online."""
    value = _value(answer)
    listed = sorted(
        (connection["clientId"], str(connection.get("clientAddr")))
        for connection in _inner(value, "connectionSet", list)
        if isinstance(connection, dict) and isinstance(connection.get("clientId"), str)
    )
    connections = {
        client_id: connections_of([address for _, address in members])
        for client_id, members in groupby(listed, key=itemgetter(0))
    }
    short = {name: of for name, of in connections.items() if len(name) <= _MOST_OF_AN_ID}
    topics = _named(_inner(value, "subscriptionTable", dict), is_topic)
    return GroupList(short, topics, len(connections) - len(short))


#: The pattern after a name whose value is a text.
_IS_TEXT = rb' ?: ?("(?:[^"\\]|\\.)*")'
#: The name in a message queue or a subscription; nothing else in a ``ConsumeStats`` or in a
#: ``ConsumerRunningInfo`` is named so. Their keys are objects, and they are long: to find the
#: topics costs a tenth of parsing them.
_TOPIC = b'"topic"'
#: The name in a broker of a ``TopicRouteData``.
_CLUSTER = b'"cluster"'


def topics_in(answer: Answer) -> AnsweredNames:
    """The topics of a ``ConsumeStats``, or of a ``ConsumerRunningInfo``.

    >>> body = b'{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"T"}:{"brokerOffset":1}}}'
    >>> topics_in(Answer("a:1", 0, None, body, 0))
    AnsweredNames(names=['T'], too_long=0)
    """
    return _named(filter(None, _texts(_TOPIC, answer)), is_topic)


def clusters_in(answer: Answer) -> set[str]:
    """The clusters whose brokers a route has."""
    return set(filter(None, _texts(_CLUSTER, answer)))


def _texts(name: bytes, answer: Answer) -> list[str]:
    """The different texts of this name in a body, sorted."""
    body = answer.body if answer.is_ok else b""
    _check_room(body, body.count(name) * _VALUE)
    return list(map(_text, sorted(set(re.findall(name + _IS_TEXT, body)))))


def _check_room(body: bytes, room: int) -> None:
    if room > _MOST_TIMES * max(len(body), _SMALL_BODY):
        raise TooMuchError("answers that take too much memory to read")


def _text(quoted: bytes) -> str:
    """The text of a JSON string; an empty one where it is none."""
    try:
        return str(without_half_pairs(parse_json(quoted.decode())))
    except ValueError:
        return ""


def _named(names: Iterable[Any], is_name: Any) -> AnsweredNames:
    texts = [name for name in names if isinstance(name, str)]
    fitting = [*filter(is_name, texts)]
    return AnsweredNames(fitting, len(texts) - len(fitting))


def _value(answer: Answer) -> dict[str, Any]:
    """The object of a body; an empty one where there is none that can be read."""
    if not answer.is_ok:
        return {}
    body = answer.body
    # Python keeps each character of a text as wide as its widest one.
    width = 1 if body.isascii() else 4 if _IS_WIDE.search(body) else 2
    try:
        _check_room(body, _COPIES * width * len(body))
        text = body.decode()
        if len(text) <= _MOST_OF_NO_JSON:
            value = parse_body(text)
        else:
            empty = text.count("{}")
            room_of_values = (text.count("{") - empty) * _OBJECT + empty * _EMPTY
            room_of_values += text.count("[") * _LIST + text.count(",") * _VALUE
            _check_room(body, _COPIES * getsizeof(text) + room_of_values)
            try:
                value = parse_json(text)
            except ValueError:
                # The ids of brokers are not texts.
                value = parse_json(_INTEGER_KEY.sub(r'\1"\2":', text))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _inner(value: dict[str, Any], name: str, kind: type[Any]) -> Any:
    """The object or list under a name; an empty one where there is none."""
    found = value.get(name)
    return found if isinstance(found, kind) else kind()


#: Readers of the answers, by what was asked.
READERS: dict[RequestCode, Callable[[Answer], Any]] = {
    RequestCode.GET_BROKER_CLUSTER_INFO: brokers_in,
    RequestCode.GET_ROUTEINFO_BY_TOPIC: clusters_in,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: groups_in,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: listed_in,
    RequestCode.GET_CONSUME_STATS: topics_in,
    RequestCode.GET_CONSUMER_RUNNING_INFO: topics_in,
    RequestCode.QUERY_TOPICS_BY_CONSUMER: topics_in_list,
}
