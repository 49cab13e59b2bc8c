"""The requests that the collector may send: a closed list, all of which only read.

A ``Question`` is made by the functions below. There is no other way to a request, and the client
refuses a code that is not in ``RequestCode``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class RequestCode(IntEnum):
    """``org.apache.rocketmq.common.protocol.RequestCode``, what of it reads and is needed."""

    GET_ROUTEINFO_BY_TOPIC = 105
    GET_BROKER_CLUSTER_INFO = 106
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_CONSUME_STATS = 208
    GET_CONSUMER_RUNNING_INFO = 307
    QUERY_TOPICS_BY_CONSUMER = 343
    GET_ALL_MESSAGE_REQUEST_MODE = 402


class Question(NamedTuple):
    """A request without its number: the code, and the fields that the code needs."""

    code: RequestCode
    fields: tuple[tuple[str, str], ...] = ()


def route(topic: str) -> Question:
    """The route of a topic; to a nameserver."""
    return Question(RequestCode.GET_ROUTEINFO_BY_TOPIC, (("topic", topic),))


def brokers() -> Question:
    """All clusters and brokers; to a nameserver."""
    return Question(RequestCode.GET_BROKER_CLUSTER_INFO)


def groups() -> Question:
    """All consumer groups that a broker has a configuration of."""
    return Question(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)


def members(group: str) -> Question:
    """The connections that a broker lists of a group."""
    return Question(RequestCode.GET_CONSUMER_CONNECTION_LIST, (("consumerGroup", group),))


def offsets(group: str) -> Question:
    """How far a group has consumed the queues of a broker, all topics."""
    return Question(RequestCode.GET_CONSUME_STATS, (("consumerGroup", group),))


def running_info(group: str, client_id: str) -> Question:
    """What a client reports of itself; the broker asks it and waits up to 10 s for it."""
    return Question(
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        (("consumerGroup", group), ("clientId", client_id), ("jstackEnable", "false")),
    )


def topics_of(group: str) -> Question:
    """The topics of which a broker (5.0 and later) has offsets of the group."""
    return Question(RequestCode.QUERY_TOPICS_BY_CONSUMER, (("group", group),))


def request_modes() -> Question:
    """Which groups consume which topics by POP; of brokers 5.0 and later."""
    return Question(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
