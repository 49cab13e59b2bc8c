"""Terminal: its size and colours, as rich sees them, and a pager for long texts."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:  # it is of use for a table or a bar, not for a line
    from rich.console import Console

_LOGGER = logging.getLogger(__name__)


def is_terminal(stream: TextIO | None) -> bool:
    """True if somebody reads what is written to a stream as it comes."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def has_moving_cursor(stream: TextIO | None) -> bool:
    """True if it is a terminal whose cursor moves back: with TERM=dumb it does not."""
    return is_terminal(stream) and os.environ.get("TERM", "dumb") not in ("", "dumb")


def console_on(stream: TextIO | None) -> Console:
    """Makes a console that writes tables to a stream, with colours where its terminal has them.

    ``NO_COLOR``, ``FORCE_COLOR``, ``COLUMNS`` and ``LINES`` count. Nothing in a text is markup.
    """
    from rich.console import Console  # noqa: PLC0415 - see above

    has_colours = not os.environ.get("NO_COLOR") and (
        has_moving_cursor(stream) or bool(os.environ.get("FORCE_COLOR"))
    )
    return Console(
        file=stream,
        color_system="standard" if has_colours else None,
        markup=False,
        emoji=False,
        highlight=False,
    )


def ask(question: str, default: str = "") -> str:
    """Asks on the terminal; returns the default for an empty line, and where the input ends."""
    try:
        return input(f"{question} [{default}] " if default else f"{question} ").strip() or default
    except EOFError:
        return default


def pager(stream: TextIO | None) -> list[str]:
    """The command that shows what is longer than the screen; empty where there is none.

    ``PAGER`` names it, else it is ``less`` where that is installed. ``PAGER=cat`` and an empty one
    mean that nothing is shown in pages.
    """
    try:
        command = shlex.split(os.environ.get("PAGER", "less")) if has_moving_cursor(stream) else []
    except ValueError:  # an open quote
        return []
    return command if command and command[0] != "cat" and shutil.which(command[0]) else []


def show_in_pages(text: bytes, command: list[str], *, is_wide: bool) -> bool:
    """Shows a text in a pager, until its user leaves it; False where it did not start.

    If it ``is_wide``, ``less`` cuts its lines, and the arrow keys show the rest.
    """
    # As git does: colours pass, and the text stays on the screen when the pager ends.
    variables = {"LESS": "FRSX" if is_wide else "FRX", **os.environ}
    with _ctrl_c_left_to_others():
        try:
            process = subprocess.Popen(  # noqa: S603 - the program that the user chose
                command, stdin=subprocess.PIPE, env=variables
            )
        except OSError:
            return False
        try:
            process.communicate(text)
        except BaseException:
            process.terminate()
            raise
        finally:
            process.wait()
    if process.returncode:
        _LOGGER.warning(
            "the pager %s ended with exit code %d: see PAGER; --no-pager shows all without it",
            shlex.join(command),
            process.returncode,
        )
    return True


@contextmanager
def _ctrl_c_left_to_others() -> Iterator[None]:
    # A program that is started meanwhile inherits an ignored signal, but not a handler: less ends
    # a search by Ctrl-C.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
