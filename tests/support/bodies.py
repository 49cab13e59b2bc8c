"""Bodies of answers, as brokers and nameservers give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Body = dict[str, Any]


def subscriptions(topics: Iterable[str], expression: str = "*") -> list[Body]:
    """A subscription by tags to each of the topics (``SubscriptionData``)."""
    same = {"expressionType": "TAG", "subString": expression, "subVersion": 1}
    return [{**same, "topic": topic} for topic in topics]


def members(
    connections: Iterable[tuple[str, str]],
    subscribed: Iterable[Body],
    language: str = "JAVA",
    version: int = 401,
) -> Body:
    """A broker's list of a group (``ConsumerConnection``): ids with addresses."""
    same = {"language": language, "version": version}
    return {
        "connectionSet": [{"clientId": each, "clientAddr": at, **same} for each, at in connections],
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "subscriptionTable": {each["topic"]: each for each in subscribed},
    }


def route(brokers: Mapping[str, Mapping[int, str]], queues: int = 4) -> Body:
    """A nameserver's answer (``TopicRouteData``): by name the addresses of a broker by id."""
    numbers = {"perm": 6, "readQueueNums": queues, "writeQueueNums": queues}
    return {
        "brokerDatas": [
            {
                "brokerName": name,
                "cluster": "C",
                "brokerAddrs": {str(number): at for number, at in addresses.items()},
            }
            for name, addresses in brokers.items()
        ],
        "queueDatas": [{"brokerName": name, **numbers} for name in brokers],
    }
