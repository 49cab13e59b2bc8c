"""Times of all lines -> which times are plausible: a clock that is off by years is found out.

One line with a time of another age would become a snapshot, a date of the reports, and the end of
the window. So a dump's lines are compared with each other, by the day of ``collected_at``. Lines of
client logs are compared among themselves, for logs are gathered at another time.

The clock of this machine plays no part: the same dumps give the same tables on every day.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from ..config.bounds import Bounds
from ..declared.instants import SECOND, Instant, to_datetime
from .statement import CLIENT_LOG

DAY: Instant = 86_400 * SECOND


class Days(NamedTuple):
    """The days of most lines (since 1970), and how many days around them are plausible."""

    first: int
    last: int
    around: int


class ImplausibleLines(NamedTuple):
    """Statements that are not plausible: how many, and of which days."""

    lines: int
    days: str


@dataclass(frozen=True)
class PlausibleTimes:
    """The plausible days by whether they are those of log lines; none: nothing to compare.

    >>> of_dump = PlausibleTimes.of({(False, 20_778, "C"): 40, (False, 47_482, "D"): 2}, Bounds())
    >>> of_dump.problem("topic_route", 47_482 * DAY)
    ... # doctest: +NORMALIZE_WHITESPACE
    'expected collected_at within 366 days (bounds.dump_days) of most lines of the dumps, which are
     of 2026-11-21, came 2100-01-01T00:00:00Z'
    """

    days: Mapping[bool, Days]

    @classmethod
    def of(cls, counts: Mapping[tuple[bool, int, str], int], bounds: Bounds) -> "PlausibleTimes":
        """Finds the plausible days from the number of statements by day, for log lines by
        themselves.
        """
        lines: dict[bool, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for (is_log, day, _), number in counts.items():
            lines[is_log][day] += number
        return cls({is_log: _days(by_day, bounds.dump_days) for is_log, by_day in lines.items()})

    def problem(self, kind: str, collected_at: Instant) -> str | None:
        """The reason why a line of a kind cannot be of that time; None where it can."""
        days = self.days.get(kind == CLIENT_LOG)
        if days is None or _holds(days, day_of(collected_at)):
            return None
        most = _dates(days.first, days.last)
        return (
            f"expected collected_at within {days.around:,} days (bounds.dump_days) of most lines "
            f"of the dumps, which are of {most}, came {iso_of(collected_at)}"
        )

    def apart(self, counts: Mapping[tuple[bool, int, str], int]) -> "dict[str, ImplausibleLines]":
        """The statements of each cluster whose times are not plausible.

        >>> counts = {(False, 20_778, "C"): 40, (False, 47_482, "D"): 2, (False, 47_483, "D"): 1}
        >>> PlausibleTimes.of(counts, Bounds()).apart(counts)
        {'D': ImplausibleLines(lines=3, days='2100-01-01 to 2100-01-02')}
        """
        out: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for (is_log, day, cluster), number in counts.items():
            if not _holds(self.days.get(is_log), day):
                out[cluster][day] += number
        return {
            cluster: ImplausibleLines(sum(days.values()), _dates(min(days), max(days)))
            for cluster, days in sorted(out.items())
        }


def day_of(time: Instant) -> int:
    """The day of a time, as days since 1970.

    >>> day_of(0), day_of(-1)
    (0, -1)
    """
    return time // DAY


def iso_of(time: Instant) -> str:
    """A time as ISO 8601 in UTC."""
    return to_datetime(time).isoformat().replace("+00:00", "Z")


def _dates(first: int, last: int) -> str:
    dates = (to_datetime(day * DAY).date().isoformat() for day in (first, last))
    return " to ".join(dict.fromkeys(dates))


def _holds(days: Days | None, day: int) -> bool:
    return days is None or days.first - days.around <= day <= days.last + days.around


def _days(counts: Mapping[int, int], most_days: int) -> Days:
    """The days around the middle third of the lines, which fewer than a third cannot move.

    ``most_days``, or twice the length of the middle third, before and after it: dumps that go over
    years stay whole. Neither of two lines is the odd one.

    >>> _days({20_000: 2, 0: 1}, 366)
    Days(first=20000, last=20000, around=366)
    >>> _holds(_days({20_000: 1, 0: 1}, 366), 0)
    True
    """
    days = sorted(counts)
    passed = list(accumulate(counts[day] for day in days))
    last = passed[-1] - 1
    low, high = sorted(days[bisect_right(passed, at)] for at in (-(-last // 3), 2 * last // 3))
    return Days(low, high, around=max(most_days, 2 * (high - low)))
