"""What is left of English in a text of another language."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Names of RocketMQ and of what it runs on, options, commands and codes, as Chinese operators write
#: them; "Rebalance audit" is the keyword that robots ask for.
CODES = {
    # A setting of a subscription group, what a dump has of it, and a part of RocketMQ.
    *("consumeEnable", "true", "subscription_group", "proxy"),
    *("Broker", "NameServer", "Proxy", "slave", "master", "Pod", "Java", "Rebalance", "audit"),
    *("secret", "Pull"),
    *("rebalance-audit", "what-if", "help", "at", "assign", "consumerProgress", "consume_stats"),
    *("wipeWritePerm", "full", "explain"),
    *("instanceName", "setInstanceName", "Drocketmq.client.name", "clientIP", "lock", "failed"),
    *("mqadmin", "updateTopic", "updateSubGroup", "deleteSubGroup", "false"),
    "autoCreateSubscriptionGroup",
    *("strategies", "name", "params", "client-go", "Go"),
    # The marks of a queue in the picture of explain.
    *("od", "do"),
    *("rocketmq-spring-boot-starter", "spring-cloud-starter-stream-rocketmq"),
}
_WORD = re.compile(r"(?<![A-Za-z0-9_.-])[A-Za-z][A-Za-z_.-]*[a-z](?![A-Za-z0-9_-])(?!\.\.\.)")


def english_in(text: str, names: Iterable[str]) -> set[str]:
    """The words in small letters that are neither names nor codes; capitals are codes.

    >>> sorted(english_in("broker-a \u7684 queues, CRITICAL, x.example", ["broker-a"]))
    ['queues', 'x.example']
    """
    for name in sorted(every_part(names), key=len, reverse=True):
        text = text.replace(name, " ")
    return set(_WORD.findall(text)) - CODES


def every_part(names: Iterable[str]) -> set[str]:
    """The names, and what is between the signs of a client id: a remedy may show a part of it."""
    every = set(names)
    parts = {part for name in every for part in re.split(r"[@#|]", name)}
    return {each for each in every | parts if re.search("[a-z]{2}", each)}
