"""Times as whole microseconds since 1970 UTC: exact, cheap to compare, without a zone to forget."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

#: A moment.
Instant: TypeAlias = int
SECOND: Instant = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


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
