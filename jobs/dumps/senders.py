"""envelope -> who sent a line, and about whom, as far as that can be read.

A refused line has a sender, too: one whose time has no zone still names its cluster, its kind, its
broker and its group. So what was refused is counted beside what was understood of the same sender.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from .statement import (
    CLUSTER_INFO,
    CONSUME_STATS,
    CONSUMER_CONNECTION,
    CONSUMER_TOPICS,
    MESSAGE_REQUEST_MODE,
    SUBSCRIPTION_GROUP,
    TOPIC_STATS,
)
from .typed import LINES
from .values import as_text, integer_in

BROKER, NAMESERVER, CLIENT, PROCESS = "broker", "nameserver", "client", "process"
GROUP, TOPIC = "consumer_group", "topic"
#: The fields that name the client, or the process that writes a log, and the server.
_CLIENTS = {"client_id": CLIENT, "client_addr": CLIENT, "process": PROCESS}
_SERVERS = {"namesrv_addr": NAMESERVER, "broker_name": BROKER, "broker_addr": BROKER}
_SUBJECTS = {GROUP: GROUP, TOPIC: TOPIC}
#: The characters of a name by which a sender is known. A longer one is a stranger's.
_LONGEST_NAME = 200
#: The senders of a slice that are counted each by itself, for strangers choose their names. 5,000
#: groups on 40 brokers have fewer.
MOST_SENDERS = 1_000_000
#: And of them those of refused lines, each with its reason.
MOST_REFUSED = 10_000

#: BROKER or the like, and its name; none: it cannot be read, or the kind has none.
Named: TypeAlias = tuple[()] | tuple[str, str]


class LineSender(NamedTuple):
    """The sender of a line; the texts are empty where they cannot be read.

    ``client``: who reports of itself, through the ``server``, or the process that writes a log.
    ``subject``: the group or topic that the envelope names; where the body does, there is none.
    """

    cluster: str
    kind: str = ""
    server: Named = ()
    client: Named = ()
    subject: Named = ()
    #: The error that it gave in place of a list, or of what is in ``ERRORS``.
    error: str = ""


#: The kinds whose errors no rule of time knows: for lists, routes and running infos there is one.
ERRORS = frozenset(
    {
        *(CLUSTER_INFO, CONSUMER_TOPICS, SUBSCRIPTION_GROUP),
        *(CONSUME_STATS, MESSAGE_REQUEST_MODE, TOPIC_STATS),
    }
)
#: Errors that are answers: no such topic, nobody of the group, a request that brokers of this
#: version do not have.
_EXPECTED = {17, 206, 3}
#: The code of a collector for a server that it did not reach.
_NOT_REACHED = -2

#: All that have no place among the others.
OTHERS = LineSender("")


@dataclass
class RefusedLines:
    """The refused lines of a sender: how many, and the reason of the first.

    ``polls``: how many of them are polls all the same (``RefusedLine.polls``).
    """

    lines: int
    polls: int
    reason: str


def sender_of(envelope: Mapping[str, Any]) -> LineSender:
    """The sender of a line of whatever kind.

    >>> sender_of({"cluster": "C", "kind": "consume_stats", "broker_name": "b", "broker_id": 0})[:3]
    ('C', 'consume_stats', ('broker', 'b/0'))
    """
    kind = envelope.get("kind")
    name = kind if isinstance(kind, str) and kind in LINES else ""
    servers, clients, subjects = _fields(name)
    server = _named(servers, envelope)
    if server and (broker_id := envelope.get("broker_id")) is not None and server[0] == BROKER:
        server = BROKER, f"{server[1]}/{_name(broker_id)}"
    return LineSender(
        _name(envelope.get("cluster")),
        name,
        server,
        _named(clients, envelope),
        _named(subjects, envelope),
        _error_in(name, envelope) if "error_code" in envelope else "",
    )


def _error_in(kind: str, envelope: Mapping[str, Any]) -> str:
    code = integer_in(as_text(envelope.get("error_code")))
    if not code or code in _EXPECTED:
        return ""
    # Whoever cannot be reached says nothing of this kind alone; of nameservers no other rule knows.
    is_error = kind in ERRORS and (code != _NOT_REACHED or kind == CLUSTER_INFO)
    is_error = is_error or kind == CONSUMER_CONNECTION
    return f"error {code}: {_name(envelope.get('error_message'))}" * is_error


_Fields: TypeAlias = tuple[tuple[str, str], ...]


@lru_cache
def _fields(kind: str) -> tuple[_Fields, ...]:
    """The fields that may name server, client and subject of a kind, the best one first."""

    def having(fields: Mapping[str, str], names: Iterable[str | None]) -> _Fields:
        return tuple(each for each in fields.items() if not kind or each[0] in names)

    source, subject = (LINES[kind].source, LINES[kind].subject) if kind else ((), None)
    return having(_SERVERS, source), having(_CLIENTS, source), having(_SUBJECTS, (subject,))


def _named(fields: _Fields, envelope: Mapping[str, Any]) -> Named:
    for field, role in fields:
        if value := envelope.get(field):
            return role, _name(value)
    return ()


def _name(value: Any) -> str:
    text = value if isinstance(value, str) else as_text(value) or ""
    return text[:_LONGEST_NAME]
