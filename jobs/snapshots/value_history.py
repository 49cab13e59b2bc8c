"""Histories of values that were learned at some moments, asked for at others."""

from bisect import bisect_right
from typing import Generic, TypeVar

from ..declared.instants import Instant

Value = TypeVar("Value")

#: Later than every moment.
NEVER: Instant = 1 << 62


class ValueHistory(Generic[Value]):
    """The values of one thing in time. Values are added in the order of time.

    Only changes are kept, so that a client that repeats itself all day costs nothing.

    >>> strategy = ValueHistory[str]()
    >>> strategy.add(10, "AVG"), strategy.add(20, "AVG"), strategy.add(30, "CONFIG")
    (None, None, None)
    >>> strategy.nearest(9), strategy.nearest(29), strategy.nearest(30)
    ('AVG', 'AVG', 'CONFIG')
    >>> strategy.next_change(10)
    30
    """

    __slots__ = ("_times", "_values")

    def __init__(self) -> None:
        self._times: list[Instant] = []
        self._values: list[Value] = []

    def add(self, time: Instant, value: Value) -> None:
        """Adds the value that holds from then on."""
        if not self._values or self._values[-1] != value:
            self._times.append(time)
            self._values.append(value)

    def nearest(self, time: Instant) -> Value | None:
        """The last value up to the time, else the first one after it; None where there is none.

        What a process is it has been since it started, and a collector may have begun to listen
        later. The later one added counts of two values of one instant.
        """
        found = self.nearest_since(time)
        return None if found is None else found[1]

    def nearest_since(self, time: Instant) -> tuple[Instant, Value] | None:
        """The same value, and from when on it was so."""
        if not self._values:
            return None
        number = max(bisect_right(self._times, time) - 1, 0)
        return self._times[number], self._values[number]

    def next_change(self, time: Instant) -> Instant:
        """The time until which ``nearest`` stays what it is."""
        number = bisect_right(self._times, time)
        return self._times[number] if number < len(self._times) else NEVER
