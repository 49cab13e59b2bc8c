"""Message queues, and the order in which Java sorts them and client ids.

Java compares strings by UTF-16 code units, Python by code points. The two differ only where a
character beyond U+FFFF meets one of U+E000 to U+FFFF, so Python's comparison serves for all
strings without such characters. Getting this wrong moves a client to another slot.

Go and C++ compare the bytes of UTF-8, which is the order of the code points: Python's.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import total_ordering
from operator import attrgetter

#: The beginning of a retry topic, before the name of its group:
#: ``MixAll.RETRY_GROUP_TOPIC_PREFIX``.
RETRY_PREFIX = "%RETRY%"
#: The beginning of the topic of a group's dead letters: ``MixAll.DLQ_GROUP_TOPIC_PREFIX``.
DLQ_PREFIX = "%DLQ%"
#: The beginning of the name under which clients see the logical queues of static topics, which lie
#: on real brokers: ``MixAll.LOGICAL_QUEUE_MOCK_BROKER_PREFIX``.
MOCK_BROKER_PREFIX = "__syslo__"


def is_retry_topic(topic: str) -> bool:
    """True if the topic holds messages that some group failed to consume and consumes again.

    Brokers know such a topic by its name alone: they create it, choose the queue of each message
    and give it by pull (``QueryAssignmentProcessor`` 5.3.3).

    >>> is_retry_topic("%RETRY%G_ORDER"), is_retry_topic("ORDER")
    (True, False)
    """
    return topic.startswith(RETRY_PREFIX)


def is_own_retry_topic(topic: str, group: str, subscribed: Collection[str] = ()) -> bool:
    """True if the group itself failed to consume what is in the topic: that of another group it may
    consume like any topic.

    ``subscribed``: the topics of its members, for POP, which has a retry topic for each of them
    that no member subscribes to (``KeyBuilder.buildPopRetryTopic``, V1 and V2, 5.3.3).

    >>> is_own_retry_topic("%RETRY%G", "G"), is_own_retry_topic("%RETRY%G2", "G")
    (True, False)
    >>> is_own_retry_topic("%RETRY%G_ORDER", "G", ["ORDER"])
    True
    """
    own = f"{RETRY_PREFIX}{group}"
    if topic == own:
        return True
    by_pop = (f"{own}{separator}{other}" for other in subscribed for separator in "_+")
    return topic.startswith(own) and topic not in subscribed and topic in by_pop


def is_mock_broker(broker_name: str) -> bool:
    """True if no server has the name: the queues are the logical ones of a static topic."""
    return broker_name.startswith(MOCK_BROKER_PREFIX)


def is_dead_letters(topic: str) -> bool:
    """True if the topic holds messages that failed for the last time."""
    return topic.startswith(DLQ_PREFIX)


def java_string_key(text: str) -> bytes:
    """A sort key that orders strings as ``String.compareTo`` does: by UTF-16 code units.

    >>> sorted(["\\uff21", "\\U0001f600"]) == ["\\uff21", "\\U0001f600"]
    True
    >>> sorted(["\\uff21", "\\U0001f600"], key=java_string_key) == ["\\U0001f600", "\\uff21"]
    True
    """
    return text.encode("utf-16-be", "surrogatepass")


@total_ordering
@dataclass(frozen=True, slots=True)
class MessageQueue:
    """One queue of a topic on a broker, ordered as ``MessageQueue.compareTo`` (5.3.3) orders.

    ``broker_name`` names the replica set, not an address. Queue ids compare as numbers.

    >>> str(MessageQueue("T", "broker-a", 0))
    'MessageQueue [topic=T, brokerName=broker-a, queueId=0]'
    >>> MessageQueue("T", "broker-10", 0) < MessageQueue("T", "broker-2", 0)
    True
    >>> MessageQueue("T", "broker-2", 2) < MessageQueue("T", "broker-2", 10)
    True
    """

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        # This text is what CONSISTENT_HASH hashes and what error messages show.
        place = f"brokerName={self.broker_name}, queueId={self.queue_id}"
        return f"MessageQueue [topic={self.topic}, {place}]"

    def __lt__(self, other: "MessageQueue") -> bool:
        return _java_key(self) < _java_key(other)


def sort_message_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """The queues in Java's order: topic, broker name, queue id. Repeated queues are kept.

    >>> [q.broker_name for q in sort_message_queues(
    ...     [MessageQueue("T", "broker-2", 0), MessageQueue("T", "broker-10", 0)])]
    ['broker-10', 'broker-2']
    """
    ordered = list(queues)
    if len(ordered) < 2:
        return ordered
    topics = {queue.topic for queue in ordered}
    broker_names = {queue.broker_name for queue in ordered}
    # Stable sorts per field compare plain numbers or strings: faster than one sort by tuples.
    ordered.sort(key=attrgetter("queue_id"))
    texts = topics | broker_names
    if _needs_java_key(texts):
        keys = {text: java_string_key(text) for text in texts}
        ordered.sort(key=lambda queue: (keys[queue.topic], keys[queue.broker_name]))
        return ordered
    if len(broker_names) > 1:
        ordered.sort(key=attrgetter("broker_name"))
    if len(topics) > 1:
        ordered.sort(key=attrgetter("topic"))
    return ordered


def sort_client_ids(client_ids: Iterable[str]) -> list[str]:
    """The client ids in Java's order (RocketMQ's ``cidAll``, sorted). Repeated ids are kept.

    >>> sort_client_ids(["10.0.0.1@1", "10.0.0.11@1", "10.0.0.1@1"])
    ['10.0.0.11@1', '10.0.0.1@1', '10.0.0.1@1']
    """
    ordered = list(client_ids)
    ordered.sort(key=java_string_key if _needs_java_key(ordered) else None)
    return ordered


def bytewise_order_differs(texts: Collection[str]) -> bool:
    """True if Go and C++, which compare bytes of UTF-8, sort these texts otherwise than Java does.

    >>> bytewise_order_differs(["a", "\\uff21"]), bytewise_order_differs(["\\uff21", "\\U0001f600"])
    (False, True)
    """
    return _needs_java_key(texts) and sorted(texts) != sorted(texts, key=java_string_key)


def _java_key(queue: MessageQueue) -> tuple[bytes, bytes, int]:
    return java_string_key(queue.topic), java_string_key(queue.broker_name), queue.queue_id


def _needs_java_key(texts: Collection[str]) -> bool:
    # isascii() reads a flag of the string, so the usual case costs no look at the characters.
    is_ascii = all(map(str.isascii, texts))
    return not is_ascii and any(max(text, default="") > "\uffff" for text in texts)
