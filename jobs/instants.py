"""Times as whole microseconds since 1970 UTC: exact, cheap to compare, without a zone to forget."""

from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias

#: A moment.
Instant: TypeAlias = int
SECOND: Instant = 1_000_000

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
    """Whether the time, which has a zone, has a date in UTC, and so has the day before and after.

    >>> in_calendar(datetime.fromisoformat("9999-12-31T23:59:59-14:00"))
    False
    """
    return _FIRST <= time < _LAST


def is_date(text: str) -> bool:
    """Whether it is a date in the one form in which it is written everywhere, and becomes a path.

    A week of a year, and a date without hyphens, are ISO 8601 too: one form is enough.

    >>> is_date("2026-11-20"), is_date("2026-13-20"), is_date("20261120")
    (True, False, False)
    """
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
