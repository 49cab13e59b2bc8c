"""Content ids: what is in a broker's list or a nameserver's route, as one short text.

Equal content has an equal id, whoever computes it, in whatever order its rows come: ``ingest`` as
it reads an answer, the fold from the rows of a lake. The id is the MD5 of a text; against chance,
not against somebody who looks for two lists that collide.

The text of a value is its length, a colon and the value (lengths, for names are chosen by strangers
and may hold any separator); ``-`` for null. The texts of a record's fields follow each other; the
texts of a content's records are sorted, and each counts once: a connection is once in a broker's
list, and a broker once in a route.

Two facts about a member follow from its row: whether it is expired, and whether it chooses its
queues itself. Ingest asks for one member at a time, the fold for columns of them.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from rebalance_core.state import GROUP_TABLE

from .instants import HEARTBEAT_INTERVAL, SECOND, Instant

NOT_ONLINE, RUNNING_INFO = "NOT_ONLINE", "RUNNING_INFO"
#: Outcomes of a poll. ANSWERED: a list came. NOT_ONLINE: the broker knows no member of the group
#: (code 206), so the list is empty for certain. NO_ANSWER: there is no list.
OUTCOMES = "ANSWERED", NOT_ONLINE, "NO_ANSWER"
ANSWERS_ABOUT_CLIENTS = RUNNING_INFO, "CLIENT_LOG", "REQUEST_MODE"


class Fact(NamedTuple):
    """One fact about a record of a content: its name, and its type in the tables."""

    name: str
    type: pa.DataType


SUBSCRIPTION_FIELDS = ("topic", "expression_type", "expression")
SUBSCRIPTIONS = pa.list_(pa.struct([(name, pa.string()) for name in SUBSCRIPTION_FIELDS]))
DOUBTFUL_TOPICS = pa.list_(pa.struct([("topic", pa.string()), ("percent", pa.int32())]))

#: All that is true of a member whatever the topic, and that makes a list another one. A further
#: fact is declared here, where ``heartbeats`` gets it from, and in the core's ``Member``, which
#: ``judge.observe.evaluation`` makes of it.
MEMBER_FACTS = (
    Fact("client_id", pa.string()),
    Fact("client_addr", pa.string()),
    Fact("language", pa.string()),
    Fact("version", pa.int32()),
    Fact("message_model", pa.string()),
    Fact("strategy", pa.string()),
    Fact("client_rebalance", pa.bool_()),
    Fact("is_expired", pa.bool_()),
    Fact("chooses_queues", pa.bool_()),
    Fact("subscription_source", pa.string()),
    Fact("doubtful_topics", DOUBTFUL_TOPICS),
    Fact("subscriptions", SUBSCRIPTIONS),
)

#: All of a broker in a route, in order; its ids in ascending order. The first of them decide who
#: takes what, and are the core's ``RouteBroker``; the others say which server it is.
ROUTE_FACTS = (
    Fact("broker_name", pa.string()),
    Fact("broker_ids", pa.list_(pa.int64())),
    Fact("perm", pa.int32()),
    Fact("read_queue_nums", pa.int32()),
    Fact("write_queue_nums", pa.int32()),
    Fact("zone_name", pa.string()),
    Fact("broker_addrs", pa.list_(pa.string())),
    Fact("enable_acting_master", pa.bool_()),
)


def content_id(records: Iterable[str]) -> str:
    """The id of a content from the texts of its records, in any order, repeated or not.

    >>> content_id(["1:a", "1:b"]) == content_id(["1:b", "1:a", "1:b"]) != content_id(["1:a"])
    True
    """
    text = "".join(sorted(set(records)))
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def record_text(facts: Sequence[Fact], values: Iterable[Any]) -> str:
    """The text of a record: one value for each fact; structs within arrays are tuples in order.

    >>> record_text(ROUTE_FACTS, ("b", [0, 1], 6, 4, 4, None, ["h:1", "h:2"], False))
    '1:b2:1:01:11:61:41:4-2:3:h:13:h:25:false'
    """
    return "".join([value_text(value) for _, value in zip(facts, values, strict=True)])


def value_text(value: Any) -> str:
    """The text of one value."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return f"{len(value)}:{value}"
    if isinstance(value, bool):
        return "4:true" if value else "5:false"
    if isinstance(value, list | tuple):
        return f"{len(value)}:" + "".join([value_text(each) for each in value])
    text = str(int(value))
    return f"{len(text)}:{text}"


#: The ``consume_type`` of who pulls: a lite pull consumer, or a pull consumer.
PULLS = "CONSUME_ACTIVELY"
#: A connection is heard while its last heartbeat is no older than three of them: two may be lost.
#: Less than a broker keeps a silent connection (120 s), so that where the collector stops to listen
#: all are unheard before the first is expired.
HEARD_SECONDS = 3 * HEARTBEAT_INTERVAL // SECOND

#: The flag by the number of bounds that a silence exceeds.
EXPIRED_BEYOND = (False, None, True)


def silence_bounds(heartbeat_expiry_seconds: int) -> tuple[Instant, Instant]:
    """The longest silence of a member that is heard, and the one from which on it is expired."""
    expiry = heartbeat_expiry_seconds * SECOND
    return min(HEARD_SECONDS * SECOND, expiry), expiry


def is_expired(
    silence: Instant | None, bounds: tuple[Instant, Instant], *, is_silent: bool
) -> bool | None:
    """True: it stopped, or is silent for longer than a broker keeps a connection. False: it was
    heard lately. None: neither, or no heartbeat over the connection was collected.

    ``bounds``: see ``silence_bounds``. A flag and not an age, so that a list does not become
    another one with every poll.

    >>> bounds = silence_bounds(130)
    >>> [is_expired(silence * SECOND, bounds, is_silent=False) for silence in (90, 91, 131)]
    [False, None, True]
    """
    if is_silent:
        return True
    if silence is None:
        return None
    return EXPIRED_BEYOND[bisect_left(bounds, silence)]


def chooses_queues(
    pull_consumer: bool | None,
    consume_type: str | None,
    subscription_source: str | None,
    subscriptions: int | None,
) -> bool:
    """True if a member takes its queues by itself, so that no strategy gives it any.

    A ``DefaultMQPullConsumer``, whose application pulls what it likes, or one that pulls and itself
    reports that it subscribes to nothing (``subscriptions``: how many): it takes its queues by
    ``assign()`` (``DefaultLitePullConsumerImpl`` 5.3.3). What the group's table has does not count:
    the last heartbeat of any member wrote it.
    """
    assigns = (
        consume_type == PULLS
        and subscriptions == 0
        and subscription_source is not None
        and subscription_source != GROUP_TABLE
    )
    return bool(pull_consumer) or assigns
