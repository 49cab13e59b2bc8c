"""One line per step of a long job, as it goes: which of how many, what, how many rows and seconds.

On a terminal the step under way is the last line, which moves while it runs.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, RLock, Thread
from typing import TypeVar

from jobs.secret_patterns import Secrets
from jobs.terminal import Terminal
from jobs.text import cut, encodable, visible, visible_lines

#: A line feed that a name brought: the further lines of a message are indented.
_FORGED = re.compile(r"\n(?!  )")

#: How much of a step is done: so many, of so many, of what.
Share = tuple[int, int, str]

_Item = TypeVar("_Item")

#: A step that is over sooner needs no line that moves.
_SHORT_SECONDS = 1.0
_MOVES_SECONDS = 0.25
_BAR = 20
_TO_THE_BEGINNING = "\r\x1b[K"


class _LastLine:
    """The last line of the terminal behind standard error, while it is painted again and again."""

    def __init__(self) -> None:
        self.lock = RLock()
        self._is_painted = False

    def paint(self, text: str) -> None:
        """Puts a text there that is no wider than the terminal."""
        with self.lock, suppress(OSError, ValueError):
            width = Terminal.of(sys.stderr, os.environ).width or 0
            line = encodable(cut(visible(text), width - 1), sys.stderr)
            sys.stderr.write(_TO_THE_BEGINNING + line)
            sys.stderr.flush()
            self._is_painted = True

    def clear(self) -> None:
        """Makes room for a line that stays."""
        with self.lock:
            if self._is_painted:
                self._is_painted = False
                with suppress(OSError, ValueError):
                    sys.stderr.write(_TO_THE_BEGINNING)
                    sys.stderr.flush()


_LAST_LINE = _LastLine()


def complain(text: str) -> None:
    """Writes one line to standard error, without secrets.

    Where nobody reads it any more, or the disk behind it is full, the work goes on.
    """
    if sys.stderr is not None:
        with _LAST_LINE.lock, suppress(OSError):
            _LAST_LINE.clear()
            # An error may name the client ids that are there; the settings may be what is wrong.
            line = visible_lines(_FORGED.sub(r"\\n", f"rebalance-audit: {Secrets().mask(text)}"))
            sys.stderr.write(encodable(line, sys.stderr) + "\n")
            sys.stderr.flush()


class Step:
    """A step under way; set ``rows`` where their number is there without counting again.

    ``part`` is what it is at, and ``share`` how much of it is done, for the line that moves.
    """

    def __init__(self) -> None:
        self.rows: int | None = None
        self.part = ""
        self.share: Share | None = None

    def each(self, items: Collection[_Item], unit: str) -> Iterator[_Item]:
        """The items one after the other; those that were taken are what is done of the step."""
        for number, item in enumerate(items):
            self.share = number, len(items), unit
            yield item
        self.share = None


class Progress:
    """Writes the lines to standard error, or nothing at all when ``quiet``."""

    def __init__(self, *, quiet: bool = False, moves: bool = True) -> None:
        self._quiet = quiet
        self._started = time.monotonic()
        self._steps: Sequence[str] = ()
        self._at = 0
        self._share_of: Callable[[], Share | None] = lambda: None
        self._step = Step()
        terminal = Terminal.of(sys.stderr, os.environ)
        self._moves = moves and not quiet and terminal.moves

    def plan(self, steps: Sequence[str]) -> None:
        """The names of the steps ahead, in their order; without it no step has a number."""
        self._steps, self._at = steps, 0

    def watch(self, share_of: Callable[[], Share | None]) -> None:
        """Whom to ask how much is done of a step that does not report it itself."""
        self._share_of = share_of

    def elapsed(self) -> float:
        """The seconds since the job began."""
        return time.monotonic() - self._started

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Announces a step when it ends; a step that raises is announced as failed."""
        started = time.monotonic()
        step = self._step = Step()
        title = self._numbered(name)
        try:
            with self._moving(title, step, started):
                yield step
        except BaseException:
            part = f", at {step.part}" if step.part else ""
            self.say(f"{title}{part}: failed after {time.monotonic() - started:.1f} s")
            raise
        rows = "" if step.rows is None else f"{step.rows:,} rows, "
        self.say(f"{title}, {rows}{time.monotonic() - started:.1f} s")

    def each(self, items: Collection[_Item], unit: str) -> Iterator[_Item]:
        """The items one after the other, as what is done of the step under way."""
        return self._step.each(items, unit)

    def say(self, text: str) -> None:
        """Writes one line."""
        if not self._quiet:
            complain(text)

    def _numbered(self, name: str) -> str:
        if name not in self._steps[self._at :]:
            return name
        self._at = self._steps.index(name, self._at) + 1
        return f"{self._at} of {len(self._steps)}: {name}"

    @contextmanager
    def _moving(self, title: str, step: Step, started: float) -> Iterator[None]:
        """The line that moves, painted by a thread until the block ends."""
        if not self._moves:
            yield
            return
        ended = Event()

        def paint() -> None:
            wait = _SHORT_SECONDS
            while not ended.wait(wait):
                wait = _MOVES_SECONDS
                share = step.share or self._share_of()
                seconds = time.monotonic() - started
                with _LAST_LINE.lock:
                    if not ended.is_set():
                        _LAST_LINE.paint(moving_line(title, step.part, share, seconds))

        painter = Thread(target=paint, name="progress", daemon=True)
        painter.start()
        try:
            yield
        finally:
            ended.set()
            _LAST_LINE.clear()


def moving_line(title: str, part: str, share: Share | None, seconds: float) -> str:
    """What is seen of a step under way; a bar where there is a ``share`` that is done.

    >>> moving_line("3 of 8: fold", "", None, 75)
    '3 of 8: fold, 1 min 15 s'
    >>> moving_line("1 of 8: records", "", (5, 20, "files"), 9)
    '1 of 8: records [#####...............] 5 of 20 files, 9 s'
    """
    minutes, rest = divmod(int(seconds), 60)
    time_so_far = f"{minutes} min {rest} s" if minutes else f"{rest} s"
    what = f"{title}: {part}" if part else title
    if share is None or share[1] <= 0:
        return f"{what}, {time_so_far}"
    done, whole, unit = share
    filled = min(_BAR, _BAR * done // whole)
    bar = "#" * filled + "." * (_BAR - filled)
    return f"{what} [{bar}] {done:,} of {whole:,} {unit}, {time_so_far}"
