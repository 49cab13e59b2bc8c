"""The requests that the collector may send: a closed list, all of which only read.

A ``Request`` is made by the functions below. There is no other way to a request, and the client
refuses a code that is not in ``RequestCode``.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from rebalance_core.message_queue import DLQ_PREFIX

#: The fields of a question by their names in a dump.
_IN_DUMPS = {
    "topic": "topic",
    "consumerGroup": "consumer_group",
    "group": "consumer_group",
    "clientId": "client_id",
}


#: The order in which an address is asked: lists and routes, then offsets, then running infos.
EARLY, LATER, LAST = 0, 1, 2


class RequestCode(IntEnum):
    """``org.apache.rocketmq.common.protocol.RequestCode``, what of it reads and is needed.

    ``kind``: of the line of a dump that has the answer. ``urgency``: when it is asked.
    """

    kind: str
    urgency: int

    def __new__(cls, code: int, kind: str = "", urgency: int = EARLY) -> "RequestCode":
        """The request of this number."""
        made = int.__new__(cls, code)
        made._value_, made.kind, made.urgency = code, kind, urgency
        return made

    GET_ROUTEINFO_BY_TOPIC = 105, "topic_route"
    GET_BROKER_CLUSTER_INFO = 106, "cluster_info"
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201, "subscription_group"
    GET_TOPIC_STATS_INFO = 202, "topic_stats", LATER
    GET_CONSUMER_CONNECTION_LIST = 203, "consumer_connection"
    GET_CONSUME_STATS = 208, "consume_stats", LATER
    GET_CONSUMER_RUNNING_INFO = 307, "consumer_running_info", LAST
    QUERY_TOPICS_BY_CONSUMER = 343, "consumer_topics", LATER
    GET_ALL_MESSAGE_REQUEST_MODE = 402, "message_request_mode", LATER


class Request(NamedTuple):
    """A request without its number: the code, and the fields that the code needs."""

    code: RequestCode
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def who(self) -> dict[str, str]:
        """The subject of the question, as a dump names it.

        >>> running_info("G", "c").who
        {'consumer_group': 'G', 'client_id': 'c'}
        """
        who = {_IN_DUMPS[name]: value for name, value in self.fields if name in _IN_DUMPS}
        if self.code == RequestCode.GET_TOPIC_STATS_INFO:
            return {"consumer_group": who["topic"].removeprefix(DLQ_PREFIX)}
        return who


def _question(code: RequestCode, *fields: str) -> Callable[..., Request]:
    """Makes the request of a code from the values of its fields."""
    return lambda *values: Request(code, tuple(zip(fields, values, strict=True)))


#: The route of a topic; to a nameserver.
route = _question(RequestCode.GET_ROUTEINFO_BY_TOPIC, "topic")
#: The clusters and brokers; to a nameserver.
brokers = _question(RequestCode.GET_BROKER_CLUSTER_INFO)
#: The consumer groups that a broker has a configuration of.
groups = _question(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
#: The connections that a broker lists of a group.
members = _question(RequestCode.GET_CONSUMER_CONNECTION_LIST, "consumerGroup")
#: The offsets of a group in the queues of a broker, all topics.
offsets = _question(RequestCode.GET_CONSUME_STATS, "consumerGroup")
#: The topics of which a broker (5.0 and later) has offsets of the group.
topics_of = _question(RequestCode.QUERY_TOPICS_BY_CONSUMER, "group")
#: The groups that consume a topic by POP; brokers 5.0 and later know it.
request_modes = _question(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)


def dead_letters(group: str) -> Request:
    """Asks how many messages a group has given up."""
    return Request(RequestCode.GET_TOPIC_STATS_INFO, (("topic", f"{DLQ_PREFIX}{group}"),))


def running_info(group: str, client_id: str) -> Request:
    """Asks for a client's report of itself; the broker passes it on and waits up to 10 s for it."""
    return Request(
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        (("consumerGroup", group), ("clientId", client_id), ("jstackEnable", "false")),
    )
