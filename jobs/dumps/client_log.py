"""Reads the log line in which a RocketMQ client prints which queues it now has of a topic.

It is the only place where a client shows how many queues and members it computed with
(``mqAllSize``, ``cidAllSize``). The client prints it when its result changes, and only then: no
line is not evidence. Three wordings exist:

* 4.x: ``rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=G, topic=T,
  clientId=10.0.0.1@1, mqAllSize=4, cidAllSize=2, rebalanceResultSize=2, rebalanceResultSet=[..]``
* 5.x: the same after ``client``;
* 5.x where the broker assigns: ``broker rebalanced result changed. .., clientId=..,
  assignmentSet=[..]``, without any count.

Source: apache/rocketmq ``RebalanceImpl`` (4.2 to 5.x), ``MessageQueue.toString``,
``MessageQueueAssignment.toString``.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from ..declared.instants import Instant, to_instant
from .queue_maps import QueueName, parse_message_queue
from .statement import LogLine
from .values import LineError

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
