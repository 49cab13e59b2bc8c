"""What a terminal can do: its size, its colours, and a pager for what is longer than it."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

_LOGGER = logging.getLogger(__name__)

#: What colours a text: (the text, the name of a style) -> the text as the terminal needs it.
Paint = Callable[[str, str], str]

#: By name what ECMA-48 calls "select graphic rendition".
_STYLES = {
    "head": "1",
    "CRITICAL": "1;31",
    "WARNING": "33",
    "INFO": "36",
}


def plain(text: str, _style: str) -> str:
    """The text without any colour."""
    return text


def coloured(text: str, style: str) -> str:
    r"""The text in a style; as it is where there is no such style.

    >>> coloured("CRITICAL", "CRITICAL"), coloured("x", "other")
    ('\x1b[1;31mCRITICAL\x1b[0m', 'x')
    """
    code = _STYLES.get(style)
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


@dataclass(frozen=True)
class Terminal:
    """What somebody reads on. ``width`` and ``height`` are None where it is no terminal."""

    width: int | None
    height: int | None
    paint: Paint
    moves: bool

    @classmethod
    def of(cls, stream: TextIO | None, environment: Mapping[str, str]) -> Terminal:
        """What is behind a stream.

        ``NO_COLOR`` and ``FORCE_COLOR`` say yes where they are not empty, as no-color.org and
        force-color.org have it; where both do, there are no colours. TERM=dumb has none, and its
        cursor does not ``move`` back.
        """
        is_terminal = _is_terminal(stream)
        moves = is_terminal and environment.get("TERM", "dumb") not in ("", "dumb")
        colours = moves or environment.get("FORCE_COLOR", "0") not in ("", "0")
        paint = coloured if colours and not environment.get("NO_COLOR") else plain
        if stream is None or not is_terminal:
            return cls(None, None, paint, moves=False)
        width, height = _size(stream, environment)
        return cls(width, height, paint, moves)

    def pager(self, environment: Mapping[str, str]) -> list[str]:
        """The command that shows what is longer than the screen; empty where there is none.

        ``PAGER`` names it, else it is ``less`` where that is installed. ``PAGER=cat`` and an empty
        one mean that nothing is shown in pages.
        """
        if not self.moves:
            return []
        try:
            command = shlex.split(environment.get("PAGER", "less"))
        except ValueError:  # an open quote
            return []
        return command if command and command[0] != "cat" and shutil.which(command[0]) else []


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False


def _size(stream: TextIO, environment: Mapping[str, str]) -> tuple[int, int]:
    """Columns and lines; ``COLUMNS`` and ``LINES`` count more than what the terminal says."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):  # it has no number, or is closed
        size = os.terminal_size((0, 0))
    named = [environment.get(name, "") for name in ("COLUMNS", "LINES")]
    columns, lines = [int(each) if each.isdecimal() else 0 for each in named]
    return columns or size.columns or 80, lines or size.lines or 24


def show_in_pages(
    text: bytes, command: Sequence[str], environment: Mapping[str, str], *, is_wide: bool = False
) -> bool:
    """Shows a text in a pager, until its user leaves it; False where it did not start.

    Where it ``is_wide``, ``less`` cuts its lines, and the arrow keys show the rest.
    """
    # As git does: colours pass, and the text stays on the screen when the pager ends.
    variables = {"LESS": "FRSX" if is_wide else "FRX", **environment}
    try:
        process = subprocess.Popen(  # noqa: S603 - the program that the user chose
            command, stdin=subprocess.PIPE, env=variables
        )
    except OSError:
        return False
    # Ctrl-C is the pager's: it ends a search there.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.communicate(text)
    except BaseException:
        process.terminate()
        raise
    finally:
        process.wait()
        signal.signal(signal.SIGINT, before)
    if process.returncode:
        _LOGGER.warning(
            "the pager %s ended with exit code %d: see PAGER; --no-pager shows all without it",
            shlex.join(command),
            process.returncode,
        )
    return True
