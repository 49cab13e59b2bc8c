"""A command on a terminal of a size, as somebody would see it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_LONGEST_SECONDS = 120


@dataclass(frozen=True)
class Seen:
    """What came on the terminal, and how the command ended."""

    text: str
    code: int

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def on_terminal(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    columns: int = 80,
    lines: int = 24,
    term: str = "xterm",
    typed: Callable[[str], str] = lambda _seen: "",
) -> Seen:
    """Runs a command whose standard streams are all one terminal.

    ``typed`` is asked what is typed, with all that was seen, whenever more is seen.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    unwanted = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PAGER", "LESS")
    variables = {name: each for name, each in os.environ.items() if name not in unwanted}
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**variables, "TERM": term, **environment},
        start_new_session=True,
        preexec_fn=_take_the_terminal,  # noqa: PLW1509
    )
    os.close(theirs)
    seen = b""
    until = time.monotonic() + _LONGEST_SECONDS
    try:
        while (left := until - time.monotonic()) > 0:
            if not select.select([ours], [], [], left)[0]:
                break
            try:
                part = os.read(ours, 65536)
            except OSError:  # nobody has the other end any more
                break
            if not part:
                break
            seen += part
            os.write(ours, typed(seen.decode("utf-8", "replace")).encode())
    finally:
        process.kill()
        os.close(ours)
    return Seen(seen.decode("utf-8", "replace").replace("\r\n", "\n"), process.wait())


def _take_the_terminal() -> None:
    # Ctrl-C is a signal only to whoever has the terminal. It was ignored where the tests run in
    # the background of a shell.
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
