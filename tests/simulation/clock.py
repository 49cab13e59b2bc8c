"""Events in the order of their times; equal times in the order in which they were planned."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from random import Random

#: Milliseconds since the fleet's zero, which is when the first round of polls may begin.
Millis = int
SECOND: Millis = 1000
MINUTE: Millis = 60 * SECOND


def dice_of(seed: object) -> Random:
    """Dice that fall alike for a seed."""
    return Random(str(seed))  # noqa: S311 - chance, not secrets


class Clock:
    """Runs what is planned, each at its time.

    >>> clock, seen = Clock(-5), []
    >>> clock.at(10, lambda: seen.append(clock.now))
    >>> clock.every(4, lambda: seen.append(clock.now), first=2)
    >>> clock.run(11)
    >>> seen
    [2, 6, 10, 10]
    """

    def __init__(self, now: Millis = 0) -> None:
        self.now = now
        self._planned: list[tuple[Millis, int, Callable[[], object]]] = []
        self._numbers = count()

    def at(self, time: Millis, action: Callable[[], object]) -> None:
        heapq.heappush(self._planned, (max(int(time), self.now), next(self._numbers), action))

    def after(self, delay: float, action: Callable[[], object]) -> None:
        self.at(self.now + int(delay), action)

    def every(self, interval: Millis, action: Callable[[], object], first: Millis) -> None:
        """Again and again, from a time on, until the action gives False."""

        def once() -> None:
            if action() is not False:
                self.after(interval, once)

        self.at(first, once)

    def follow(self, steps: Iterator[float]) -> None:
        """Goes through a generator that gives how long to wait before it goes on."""
        delay = next(steps, None)
        if delay is not None:
            self.after(delay, lambda: self.follow(steps))

    def run(self, until: Millis) -> None:
        while self._planned and self._planned[0][0] <= until:
            self.now, _, action = heapq.heappop(self._planned)
            action()
        self.now = until
