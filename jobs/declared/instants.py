"""Times as whole microseconds since 1970 UTC: exact, cheap to compare, without a zone to forget.

With the intervals at which a Java client acts, as it has them by default. They bound what a poll
can show: a client that is asked sooner has not acted yet.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias, TypeVar

#: A moment.
Instant: TypeAlias = int
SECOND: Instant = 1_000_000

#: Heartbeats to each broker (``ClientConfig.heartbeatBrokerInterval``).
HEARTBEAT_INTERVAL: Instant = 30 * SECOND
#: Questions to a nameserver for the route (``ClientConfig.pollNameServerInterval``).
ROUTE_INTERVAL: Instant = 30 * SECOND
#: Divisions of the queues (``RebalanceService.waitInterval``); they are divided anew also when a
#: broker notifies the client that the members changed.
REBALANCE_INTERVAL: Instant = 20 * SECOND
#: Commits of the offsets (``ClientConfig.persistConsumerOffsetInterval``).
COMMIT_INTERVAL: Instant = 5 * SECOND
#: The time within which all clients follow a change of the route or of the members: they hear of
#: it, and divide anew. What is found so soon after a change is explained by it.
FOLLOW_TIME: Instant = 60 * SECOND

_Item = TypeVar("_Item")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: A time with a zone may lie beyond the years 1 to 9999 in UTC. A day less at either end, for whole
#: days are computed with.
_FIRST = datetime(1, 1, 2, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, tzinfo=UTC)


def to_datetime(instant: Instant) -> datetime:
    """The moment as a time in UTC.

    >>> to_datetime(1_000_000)
    datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc)
    """
    return _EPOCH + instant * _MICROSECOND


def to_instant(time: datetime) -> Instant:
    """The time, which has a zone, as a moment.

    >>> to_instant(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    return (time - _EPOCH) // _MICROSECOND


def in_calendar(time: datetime) -> bool:
    """True if the time, which has a zone, has a date in UTC, and so has the day before and after.

    >>> in_calendar(datetime.fromisoformat("9999-12-31T23:59:59-14:00"))
    False
    """
    return _FIRST <= time < _LAST


def is_date(text: str) -> bool:
    """True if it is a date in the one form in which it is written everywhere, and becomes a path.

    A week of a year, and a date without hyphens, are ISO 8601 too: one form is enough.

    >>> is_date("2026-11-20"), is_date("2026-13-20"), is_date("20261120")
    (True, False, False)
    """
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def together(
    items: Iterable[_Item],
    time_of: Callable[[_Item], tuple[Instant, Instant]],
    apart: Instant = 0,
) -> list[list[_Item]]:
    """The items by their beginnings, put together where one begins at most ``apart`` after the
    latest end of those before it; ``time_of``: when an item begins and ends.

    >>> together([(1, 5), (9, 9), (2, 3), (5, 6)], lambda each: each)
    [[(1, 5), (2, 3), (5, 6)], [(9, 9)]]
    >>> together([1, 2, 9], lambda each: (each, each), apart=5)
    [[1, 2], [9]]
    """
    found: list[list[_Item]] = []
    last_end: Instant = 0
    for item in sorted(items, key=lambda item: time_of(item)[0]):
        begins, ends = time_of(item)
        if not found or begins - last_end > apart:
            found.append([])
            last_end = ends
        found[-1].append(item)
        last_end = max(last_end, ends)
    return found
