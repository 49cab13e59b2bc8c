"""One line per step of a long job, as it goes: what, how many rows, how many seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.masking import Masking


class Step:
    """A step under way; set ``rows`` where they are known without counting again."""

    def __init__(self) -> None:
        self.rows: int | None = None


class Progress:
    """Writes the lines to standard error, or nowhere when ``quiet``."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._started = time.monotonic()

    def elapsed(self) -> float:
        """The seconds since the job began."""
        return time.monotonic() - self._started

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Announces a step when it ends; a step that raises is announced as failed."""
        started = time.monotonic()
        step = Step()
        try:
            yield step
        except BaseException:
            self.say(f"{name}: failed after {time.monotonic() - started:.1f} s")
            raise
        rows = "" if step.rows is None else f"{step.rows:,} rows, "
        self.say(f"{name}: {rows}{time.monotonic() - started:.1f} s")

    def say(self, text: str) -> None:
        """Writes one line."""
        if not self._quiet:
            sys.stderr.write(f"rebalance-audit: {Masking().mask(text)}\n")
            sys.stderr.flush()
