"""contents -> whether they are within the bounds: what a line asks for is counted, not made."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..bounds import Bounds, beyond
from .statement import (
    Connection,
    Connections,
    Content,
    HeartbeatOfGroup,
    InfoQueue,
    LogLine,
    Offset,
    RequestMode,
    Route,
    RouteBroker,
    RunningInfo,
    Stats,
)


def problem_of_names(names: Iterable[tuple[str, str | None]], bounds: Bounds) -> str | None:
    """The first name that is too long, by what it names; None where all are short enough."""
    for what, name in names:
        if name is not None and len(name) > bounds.name_length:
            return (
                beyond("name_length", bounds.name_length, f"characters in {what}", len(name))
                + f": '{name[:60]}...'"
            )
    return None


def problem_of_content(content: Content, size: int, bounds: Bounds) -> str | None:
    """Which bound a content of a body of ``size`` characters exceeds; None where it is within all.

    >>> route = Route(tuple(RouteBroker(f"b{n}", (0,), 6, 100_000, 4, None) for n in range(100)))
    >>> problem_of_content(route, 15_000, Bounds())
    'expected at most 100,000 queues of a topic (bounds.topic_queues), came 10,000,000'
    """
    if isinstance(content, Connections) and len(content.connections) > bounds.group_members:
        most, came = bounds.group_members, len(content.connections)
        return beyond("group_members", most, "connections in a broker's list of a group", came)
    topics = getattr(content, "subscriptions", None) or ()
    if len(topics) > bounds.group_topics:
        most = bounds.group_topics
        return beyond("group_topics", most, "topics that a group subscribes to", len(topics))
    if isinstance(content, Route):
        brokers = content.brokers
        if len(brokers) > bounds.route_brokers:
            most = bounds.route_brokers
            return beyond("route_brokers", most, "brokers in a topic's route", len(brokers))
        if (queues := queues_of(brokers)) > bounds.topic_queues:
            return beyond("topic_queues", bounds.topic_queues, "queues of a topic", queues)
    # A short body has no long name.
    return problem_of_names(_names(content), bounds) if size > bounds.name_length else None


def queues_of(brokers: Sequence[RouteBroker]) -> int:
    """The queues that a route has: those that are written and not read count too.

    >>> queues_of([RouteBroker("b", (0,), 6, 4, 8, None), RouteBroker("c", (0,), 4, 4, 4, None)])
    12
    """
    return sum(max(broker.read_queue_nums, broker.write_queue_nums) for broker in brokers)


#: By type the fields that are names, with what they name.
_NAMES: Mapping[type, Mapping[str, str]] = {
    HeartbeatOfGroup: {"client_id": "a client id"},
    Connection: {"client_id": "a client id", "client_addr": "a client's address"},
    RouteBroker: {"broker_name": "a broker's name", "zone_name": "a zone's name"},
    RunningInfo: {"strategy": "a strategy's name"},
    InfoQueue: {"topic": "a topic", "broker_name": "a broker's name"},
    Offset: {"topic": "a topic", "broker_name": "a broker's name"},
    RequestMode: {"topic": "a topic"},
    LogLine: {"strategy": "a strategy's name", "topic": "a topic", "client_id": "a client id"},
}
#: By type the fields that have contents of these types, or subscriptions, or the queues of a log.
_PARTS: Mapping[type, tuple[str, ...]] = {
    HeartbeatOfGroup: ("subscriptions",),
    Connections: ("connections", "subscriptions"),
    Route: ("brokers",),
    RunningInfo: ("subscriptions", "queues"),
    Stats: ("offsets",),
    LogLine: ("queues",),
}


def _names(content: Any) -> Iterator[tuple[str, str | None]]:
    kind = type(content)
    for field, what in _NAMES.get(kind, {}).items():
        yield what, getattr(content, field)
    for field in _PARTS.get(kind, ()):
        for part in getattr(content, field) or ():
            if field == "subscriptions":
                yield "a topic", part[0]
            elif kind is LogLine:
                yield from (("a name in a queue", name) for name in part[:2])
            else:
                yield from _names(part)
