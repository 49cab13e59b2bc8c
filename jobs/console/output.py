"""Standard output: lines for a person, data for a program, and ``-`` in place of a file."""

import io
import os
import sys
from pathlib import Path
from typing import Protocol

from ..config.choices import STANDARD_OUTPUT
from ..errors import AuditError, InputError
from ..texts.failures import sentence_of
from ..texts.shown import encodable, visible_lines
from .terminal import console_on, pager, show_in_pages


def say(text: str) -> None:
    """Writes lines for a person."""
    write(visible_lines(text))


def give(text: str) -> None:
    """Writes data: exact and in UTF-8, whatever the locale. A terminal gets escapes."""
    if sys.stdout is not None and sys.stdout.isatty():
        say(text)
        return
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")
    write(text)


def write(text: str) -> None:
    """Writes lines as they are; nothing where nobody reads any more."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(encodable(text, sys.stdout) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has read enough (``show ... | head``). The work goes on, and its exit code
        # counts; Python would complain of the rest of the text when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise AuditError(f"standard output cannot be written to: {sentence_of(error)}") from error


def write_in_pages(text: str, *, pages: bool, is_wide: bool = False) -> None:
    """Writes a text as it is, in a pager where there is one and it is more than a screen."""
    command = pager(sys.stdout) if pages else []
    # The shell's prompt is a line too.
    if command and text.count("\n") + 2 > console_on(sys.stdout).height:
        encoded = f"{encodable(text, sys.stdout)}\n".encode(sys.stdout.encoding)
        if show_in_pages(encoded, command, is_wide=is_wide):
            return
    write(text)


class Output(Protocol):
    """The destination of a text: a file, or standard output."""

    def replace_text(self, text: str) -> None:
        """Writes the whole text."""


class _StandardOutput:
    """Standard output as the one file that is named ``-``."""

    def replace_text(self, text: str) -> None:
        give(text.removesuffix("\n"))

    def __str__(self) -> str:
        return "standard output"


def output_at(path: str) -> Output:
    """The file of this name; ``-`` is standard output."""
    from ..storage import Location  # noqa: PLC0415 - PyArrow, which a line of text needs not

    return _StandardOutput() if path == STANDARD_OUTPUT else Location(path)


def write_metrics(metrics: Output, text: str) -> None:
    """Writes metrics for Prometheus; AuditError where that fails."""
    try:
        metrics.replace_text(text)
    except OSError as error:
        raise AuditError(f"metrics cannot be written to {metrics}: {sentence_of(error)}") from error


def text_file_at(path: str) -> Output:
    """A file that another program looks for in a folder, as Prometheus' node exporter does.

    InputError where there is no such folder: nobody would read what is written to a new one.
    """
    from ..storage import Location  # noqa: PLC0415 - as above

    output = output_at(path)
    if isinstance(output, Location) and output.is_local and not Path(output.base).parent.is_dir():
        raise InputError(
            f"expected a folder for {path}, there is none: {Path(output.base).parent}; make it, or "
            "name the folder that is read"
        )
    return output
