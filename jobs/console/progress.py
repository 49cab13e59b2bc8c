"""One line per step of a long job, as it goes: which of how many, what, how many rows and seconds.

On a terminal the step under way is the last line, which moves while it runs.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, TypeVar

from ..texts.secret_patterns import Secrets
from ..texts.shown import encodable, visible, visible_lines
from .terminal import console_on, has_moving_cursor

if TYPE_CHECKING:
    from rich.table import Table

#: A line feed that a name brought: the further lines of a message are indented.
_FORGED = re.compile(r"\n(?!  )")

#: Says a line to whoever runs a command.
Say = Callable[[str], None]
#: The share of a step that is done: so many, of so many, of what.
StepShare = tuple[int, int, str]

_Item = TypeVar("_Item")

_BAR = 20


def complain(text: str) -> None:
    """Writes one line to standard error, without secrets.

    Where nobody reads it any more, or the disk behind it is full, the work goes on.
    """
    if sys.stderr is not None:
        with suppress(OSError):
            # An error may name the client ids that are there; the settings may be what is wrong.
            line = visible_lines(_FORGED.sub(r"\\n", f"rebalance-audit: {Secrets().mask(text)}"))
            sys.stderr.write(encodable(line, sys.stderr) + "\n")
            sys.stderr.flush()


class ProgressStep:
    """A step under way; set ``rows`` where their number is there without counting again.

    ``share`` is how much of it is done, for the line that moves; ``meter`` is asked for it before,
    where there is one that is finer.
    """

    def __init__(self) -> None:
        self.rows: int | None = None
        self.share: StepShare | None = None
        self.meter: Callable[[], StepShare | None] = lambda: None


class Progress:
    """Writes the lines to standard error, or nothing at all when ``quiet``."""

    def __init__(self, *, quiet: bool = False, is_moving: bool = True) -> None:
        self._quiet = quiet
        self._started = time.monotonic()
        self._steps: Sequence[str] = ()
        self._at = 0
        self._share_of: Callable[[], StepShare | None] = lambda: None
        self._step = ProgressStep()
        self._is_moving = is_moving

    def plan(self, steps: Sequence[str]) -> None:
        """The names of the steps ahead, in their order; without it no step has a number."""
        self._steps, self._at = steps, 0

    def watch(self, share_of: Callable[[], StepShare | None]) -> None:
        """Sets whom to ask how much is done of a step that does not report it itself."""
        self._share_of = share_of

    def elapsed(self) -> float:
        """The seconds since the job began."""
        return time.monotonic() - self._started

    @contextmanager
    def step(self, name: str) -> Iterator[ProgressStep]:
        """Announces a step when it ends; a step that raises is announced as failed."""
        started = time.monotonic()
        step = self._step = ProgressStep()
        title = self._numbered(name)
        try:
            with self._moving(title, step, started):
                yield step
        except BaseException:
            self.say(f"{title}: failed after {time.monotonic() - started:.1f} s")
            raise
        rows = "" if step.rows is None else f"{step.rows:,} row{'s' * (step.rows != 1)}, "
        self.say(f"{title}, {rows}{time.monotonic() - started:.1f} s")

    def each(self, items: Collection[_Item], unit: str) -> Iterator[_Item]:
        """The items one after the other; those that were taken are what is done of the step."""
        step = self._step
        for number, item in enumerate(items):
            step.share = number, len(items), unit
            yield item
        step.share = None

    def say(self, text: str) -> None:
        """Writes one line."""
        if not self._quiet:
            complain(text)

    def _numbered(self, name: str) -> str:
        if name not in self._steps[self._at :]:
            return name
        self._at = self._steps.index(name, self._at) + 1
        return f"{self._at} of {len(self._steps)}: {name}"

    def _moving(
        self, title: str, step: ProgressStep, started: float
    ) -> AbstractContextManager[object]:
        """The line that moves, until the block ends; lines that stay are written above it."""
        if self._quiet or not self._is_moving or not has_moving_cursor(sys.stderr):
            return nullcontext()
        from rich.live import Live  # noqa: PLC0415 - for terminals alone

        return Live(
            get_renderable=lambda: moving_line(
                title, step.meter() or step.share or self._share_of(), time.monotonic() - started
            ),
            console=console_on(sys.stderr),
            transient=True,
            redirect_stdout=False,
        )


def moving_line(what: str, share: StepShare | None, seconds: float) -> Table:
    """The line of a step under way: a bar where there is a ``share`` that is done."""
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    minutes, rest = divmod(int(seconds), 60)
    line = Table.grid(padding=(0, 1))
    cells: list[Text | ProgressBar] = [Text(visible(what), overflow="ellipsis", no_wrap=True)]
    if share is not None and share[1] > 0:
        done, whole, unit = share
        cells += [ProgressBar(whole, done, width=_BAR), Text(f"{done:,} of {whole:,} {unit}")]
    cells.append(Text(f"{minutes} min {rest} s" if minutes else f"{rest} s"))
    line.add_row(*cells)
    return line
