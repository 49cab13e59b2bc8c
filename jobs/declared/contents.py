"""Content ids: what is in a broker's list or a nameserver's route, as one short text.

Equal content has an equal id, whoever computes it, in whatever order its rows come: ``ingest`` as
it reads an answer, the fold from the rows of a lake. The id is the MD5 of a text; against chance,
not against somebody who looks for two lists that collide.

The text of a value is its length, a colon and the value (lengths, for names are chosen by strangers
and may hold any separator); ``-`` for null. The texts of a record's fields follow each other; the
texts of a content's records are sorted, and each counts once: a connection is once in a broker's
list, and a broker once in a route.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

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
SUBSCRIPTIONS = pa.list_(pa.struct([pa.field(name, pa.string()) for name in SUBSCRIPTION_FIELDS]))
DOUBTFUL_TOPICS = pa.list_(
    pa.struct([pa.field("topic", pa.string()), pa.field("percent", pa.int32())])
)

#: All that is true of a member whatever the topic, and that makes a list another one. A further
#: fact is declared here, where ``heartbeats`` gets it from, and in the core's ``Member``, which
#: ``judge.evaluation`` makes of it.
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
