"""contents -> whether they are within the bounds: what a line asks for is counted, not made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from jobs.bounds import Bounds, beyond
from jobs.dumps.statement import (
    Connections,
    Content,
    HeartbeatOfGroup,
    LogLine,
    RequestMode,
    Route,
    RouteBroker,
    RunningInfo,
    Stats,
    Subscriptions,
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


def _names(content: Content) -> Iterator[tuple[str, str | None]]:
    if isinstance(content, HeartbeatOfGroup):
        yield "a client id", content.client_id
        yield from _topics(content.subscriptions)
    elif isinstance(content, Connections):
        for connection in content.connections:
            yield "a client id", connection.client_id
            yield "a client's address", connection.client_addr
        yield from _topics(content.subscriptions)
    elif isinstance(content, Route):
        for broker in content.brokers:
            yield "a broker's name", broker.broker_name
            yield "a zone's name", broker.zone_name
    elif isinstance(content, RunningInfo):
        yield "a strategy's name", content.strategy
        yield from _topics(content.subscriptions or ())
        for queue in content.queues or ():
            yield "a topic", queue.topic
            yield "a broker's name", queue.broker_name
    elif isinstance(content, Stats):
        for offset in content.offsets:
            yield "a topic", offset.topic
            yield "a broker's name", offset.broker_name
    elif isinstance(content, RequestMode):
        yield "a topic", content.topic
    elif isinstance(content, LogLine):
        yield "a strategy's name", content.strategy
        yield "a topic", content.topic
        yield "a client id", content.client_id
        for name in chain.from_iterable(queue[:2] for queue in content.queues):
            yield "a name in a queue", name


def _topics(subscriptions: Subscriptions) -> Iterator[tuple[str, str | None]]:
    return (("a topic", topic) for topic, _, _ in subscriptions)
