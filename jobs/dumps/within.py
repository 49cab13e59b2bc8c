"""contents -> whether they are within the bounds: what a line asks for is counted, not made."""

from collections.abc import Iterable, Iterator
from typing import Any

from ..config.bounds import Bounds, beyond
from . import statement
from .values import BoundError


def check_names(names: Iterable[tuple[str, str | None]], bounds: Bounds) -> None:
    """Raises BoundError for the first name that is too long, by what it names."""
    for what, name in names:
        if name is not None and len(name) > bounds.name_length:
            problem = beyond("name_length", bounds.name_length, f"characters in {what}", len(name))
            raise BoundError(f"{problem}: '{name[:60]}...'")


def check_content(content: statement.Content, size: int, bounds: Bounds) -> None:
    """Raises BoundError where a content of a body of ``size`` characters exceeds a bound.

    >>> broker = statement.RouteEntry("b", (0,), 6, 100_000, 4, None)
    >>> check_content(statement.Route((broker,) * 100), 15_000, Bounds())
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    jobs.dumps.values.BoundError: expected at most 100,000 queues of a topic (bounds.top...
    """
    for bound, what, came in _sizes(content):
        if came > (most := getattr(bounds, bound)):
            raise BoundError(beyond(bound, most, what, came))
    if size > bounds.name_length:  # a short body has no long name
        check_names(_names(content), bounds)


def _sizes(content: statement.Content) -> Iterator[tuple[str, str, int]]:
    """The bounded sizes of a content: the bound, what is counted, and the number.

    >>> one, other = [statement.RouteEntry(name, (), 6, 4, 8, None) for name in "bc"]
    >>> list(_sizes(statement.Route((one, other))))[-1]
    ('topic_queues', 'queues of a topic', 16)
    """
    if isinstance(content, statement.Connections):
        yield "group_members", "connections in a broker's list of a group", len(content.connections)
    topics = getattr(content, "subscriptions", None) or ()
    yield "group_topics", "topics that a group subscribes to", len(topics)
    if isinstance(content, statement.Route):
        yield "route_brokers", "brokers in a topic's route", len(content.brokers)
        # Queues that are written and not read count too.
        queues = (
            max(broker.read_queue_nums, broker.write_queue_nums) for broker in content.brokers
        )
        yield "topic_queues", "queues of a topic", sum(queues)


#: The thing that each field names, in whatever content.
_NAMES = {
    "strategy": "a strategy's name",
    "topic": "a topic",
    "client_id": "a client id",
    "client_addr": "a client's address",
    "broker_name": "a broker's name",
    "zone_name": "a zone's name",
    "client_version": "a client's version",
}
#: The fields that have contents themselves.
_PARTS = ("connections", "brokers", "offsets", "queues")


def _names(content: Any) -> Iterator[tuple[str, str | None]]:
    for field, value in zip(content._fields, content, strict=True):
        if field in _NAMES:
            yield _NAMES[field], value
        elif field == "subscriptions":
            yield from (("a topic", topic) for topic, _, _ in value or ())
        elif field == "broker_addrs":
            yield from (("a broker's address", each) for each in value or ())
        elif field == "queues" and isinstance(content, statement.LogLine):
            yield from (("a name in a queue", name) for queue in value for name in queue[:2])
        elif field in _PARTS:
            for part in value or ():
                yield from _names(part)
