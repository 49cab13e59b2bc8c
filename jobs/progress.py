"""One line per step of a long job, as it goes: what, how many rows, how many seconds."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from jobs.masking import Masking
from jobs.text import encodable, visible_lines

#: A line feed that a name brought: the further lines of a message are indented.
_FORGED = re.compile(r"\n(?!  )")


def complain(text: str) -> None:
    """Writes one line to standard error, without secrets.

    Where nobody reads it any more, or the disk behind it is full, the work goes on.
    """
    if sys.stderr is not None:
        with suppress(OSError):
            # An error may name the client ids that are there; the settings may be what is wrong.
            line = visible_lines(_FORGED.sub(r"\\n", f"rebalance-audit: {Masking().mask(text)}"))
            sys.stderr.write(encodable(line, sys.stderr) + "\n")
            sys.stderr.flush()


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
            complain(text)
