"""contents -> whether they are within the bounds: what a line asks for is counted, not made."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from ..bounds import Bounds, beyond
from . import statement


def problem_of_names(names: Iterable[tuple[str, str | None]], bounds: Bounds) -> str | None:
    """The first name that is too long, by what it names; None where all are short enough."""
    for what, name in names:
        if name is not None and len(name) > bounds.name_length:
            return (
                beyond("name_length", bounds.name_length, f"characters in {what}", len(name))
                + f": '{name[:60]}...'"
            )
    return None


def problem_of_content(content: statement.Content, size: int, bounds: Bounds) -> str | None:
    """Which bound a content of a body of ``size`` characters exceeds; None where it is within all.

    >>> broker = statement.RouteBroker("b", (0,), 6, 100_000, 4, None)
    >>> problem_of_content(statement.Route((broker,) * 100), 15_000, Bounds())
    'expected at most 100,000 queues of a topic (bounds.topic_queues), came 10,000,000'
    """
    for bound, what, came in _sizes(content):
        if came > (most := getattr(bounds, bound)):
            return beyond(bound, most, what, came)
    # A short body has no long name.
    return problem_of_names(_names(content), bounds) if size > bounds.name_length else None


def _sizes(content: statement.Content) -> Iterator[tuple[str, str, int]]:
    """What is bounded of a content: by which bound, what it is, and how many there are.

    >>> one, other = [statement.RouteBroker(name, (), 6, 4, 8, None) for name in "bc"]
    >>> list(_sizes(statement.Route((one, other))))[-1]
    ('topic_queues', 'queues of a topic', 16)
    """
    if isinstance(content, statement.Connections):
        yield "group_members", "connections in a broker's list of a group", len(content.connections)
    topics = getattr(content, "subscriptions", None) or ()
    yield "group_topics", "topics that a group subscribes to", len(topics)
    if isinstance(content, statement.Route):
        yield "route_brokers", "brokers in a topic's route", len(content.brokers)
        # Those that are written and not read count too.
        queues = (max(each.read_queue_nums, each.write_queue_nums) for each in content.brokers)
        yield "topic_queues", "queues of a topic", sum(queues)


#: By field what it names, in whatever content.
_NAMES = {
    "strategy": "a strategy's name",
    "topic": "a topic",
    "client_id": "a client id",
    "client_addr": "a client's address",
    "broker_name": "a broker's name",
    "zone_name": "a zone's name",
}
#: The fields that have contents, or subscriptions, or the queues of a log.
_PARTS = ("connections", "brokers", "offsets", "subscriptions", "queues")


@cache
def _fields_of(kind: type) -> tuple[list[str], list[str]]:
    """The fields of a type that are names, and those that have parts."""
    fields = getattr(kind, "_fields", ())
    return [name for name in _NAMES if name in fields], [name for name in _PARTS if name in fields]


def _names(content: Any) -> Iterator[tuple[str, str | None]]:
    names, parts = _fields_of(content.__class__)
    for field in names:
        yield _NAMES[field], getattr(content, field)
    for field in parts:
        for part in getattr(content, field) or ():
            if field == "subscriptions":
                yield "a topic", part[0]
            elif isinstance(content, statement.LogLine):
                yield from (("a name in a queue", name) for name in part[:2])
            else:
                yield from _names(part)
