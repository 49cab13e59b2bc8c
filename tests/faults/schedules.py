"""Threads that take turns at storage calls: one at a time, in an order that the test prescribes.

A schedule of two threads is who begins, and at which calls the other one goes on. All schedules
with few switches are tried one by one, and some with many by chance. Whoever sleeps or has ended
lets the other go on; that is no switch.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace

import pytest

from jobs.storage import lease
from tests.faults.calls import Call

_UNSEEN = frozenset({"sync", "write", "close", "create_dir"})


def _is_seen(call: Call) -> bool:
    """Whether another process can see what came before the call, or after it.

    What a file holds is seen when it has its name; of claims others may read a half.
    """
    return call.operation not in _UNSEEN or call.path.endswith(".claim")


class Turns:
    """Lets one of two threads go on at a time; at the calls with these numbers the other one."""

    def __init__(self, first: int, switches: Sequence[int], on_switch: Callable[[int], None]):
        self.calls = 0
        self._switches = frozenset(switches)
        self._on_switch = on_switch
        self._turn = first
        self._numbers: dict[int, int] = {}
        self._ended: set[int] = set()
        self._changed = threading.Condition()
        self._clocks = [0.0, 0.0]

    def run(self, works: Sequence[Callable[[], object]]) -> list[object]:
        """What each returned, or the exception that it raised."""
        results: list[object] = [None] * len(works)

        def work(number: int) -> None:
            self._numbers[threading.get_ident()] = number
            self._wait(number)
            try:
                results[number] = works[number]()
            except Exception as error:
                results[number] = error
            finally:
                with self._changed:
                    self._ended.add(number)
                    self._turn = 1 - number
                    self._changed.notify_all()

        threads = [threading.Thread(target=work, args=(n,)) for n in range(len(works))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread hangs"
        return results

    def before(self, call: Call) -> None:
        """The hook: a switch, where one is due."""
        number = self._numbers.get(threading.get_ident())
        if number is None or not _is_seen(call):
            return
        self.calls += 1
        if self.calls in self._switches:
            self._on_switch(number)
            self._give_away(number)

    def sleep(self, _seconds: float) -> None:
        """Lets the other go on, and time pass."""
        number = self._numbers[threading.get_ident()]
        self._clocks[number] += 1
        self._give_away(number)

    def monotonic(self) -> float:
        return self._clocks[self._numbers.get(threading.get_ident(), 0)]

    def _give_away(self, number: int) -> None:
        with self._changed:
            if 1 - number not in self._ended:
                self._turn = 1 - number
                self._changed.notify_all()
        self._wait(number)

    def _wait(self, number: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turn == number or 1 - number in self._ended, 60)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Sleeping in the lease is a turn of the other, and no time."""
        clock = SimpleNamespace(sleep=self.sleep, monotonic=self.monotonic)
        patch.setattr(lease, "time", clock)


Plan = tuple[int, tuple[int, ...]]


def plans(calls: int, switches: int, by_chance: int, most_by_chance: int = 12) -> Iterator[Plan]:
    """Every schedule with up to so many switches, then some with more, always the same ones."""
    for first in (0, 1):
        for number in range(switches + 1):
            for places in itertools.combinations(range(1, calls + 1), number):
                yield first, places
    chance = random.Random(15)  # noqa: S311 - no secret
    for _ in range(by_chance):
        number = chance.randint(switches + 1, most_by_chance)
        yield chance.randrange(2), tuple(sorted(chance.sample(range(1, calls + 1), number)))
