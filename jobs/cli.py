"""The command line: ``rebalance-audit`` and, with the same arguments, the spark-submit entries.

The only place that reads argv (by ``console/arguments.py``), and that decides the exit code:
0 ran, findings or not; 1 findings at or above --fail-on, a change (what-if) that is not safe, or a
finding that is still there (check); 2 usage or settings; 3 input missing or too much of it
quarantined; 4 anything else; 5 cannot be said yet (check); 130 stopped by Ctrl-C; 143 stopped by
SIGTERM.

A failure is one line on standard error: what happened, what is unchanged, what to do. The stack
comes with --verbose, else it is in a file that the line names.
"""

import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import indent
from typing import NoReturn

from .commands import module_of
from .console.arguments import parse_arguments
from .console.progress import complain
from .errors import AuditError, TerminatedError, stop_before
from .texts.failures import is_of_the_machine, keep_stack, sentence_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code. --help and --version raise SystemExit."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may follow on its line
        from .commands.completion import complete

        complete()
    try:
        with _terminated_by_an_exception():
            return _reported(arguments)
    except KeyboardInterrupt as error:
        complain(_with_notes("interrupted", error))
        return 130
    except TerminatedError as error:
        complain(_with_notes("terminated by SIGTERM", error))
        return 143


@contextmanager
def _terminated_by_an_exception() -> Iterator[None]:
    # Whoever set another handler, or ignores the signal, has a reason.
    is_default = signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    # Signals reach the main thread alone.
    if not is_default or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(*_: object) -> NoReturn:
    raise TerminatedError


def _reported(arguments: Sequence[str] | None) -> int:
    """Runs one command; of whatever fails one line is written. Returns the exit code."""
    verbose = False
    _LOGGER.addHandler(_COMPLAINTS)
    try:
        args = parse_arguments(arguments)
        verbose = args.verbose
        code: int = module_of(args.command).run(args)
        return code
    except Exception as error:
        if stop := stop_before(error):
            stop.__notes__ = getattr(error, "__notes__", [])
            raise stop from None
        if verbose:
            complain(f"failed:\n{indent(traceback.format_exc(), '  ', lambda _: True).rstrip()}")
        if isinstance(error, AuditError):
            text, code = f"{error}{error.console}", error.exit_code
        else:
            text, code = sentence_of(error), 4
            if not verbose and not is_of_the_machine(error):
                text += f"; {keep_stack(traceback.format_exc())}"
        complain(_with_notes(text, error))
        return code


class _Complaints(logging.Handler):
    """Handler that makes a line like every other of what the jobs warn of."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


_LOGGER = logging.getLogger(__package__)
_COMPLAINTS = _Complaints()


def _with_notes(text: str, error: BaseException) -> str:
    return "; ".join(filter(None, [text, *getattr(error, "__notes__", ())]))


def entry(command: str) -> NoReturn:
    """Runs a command with the arguments of the process, for the entries of spark-submit."""
    sys.exit(main([command, *sys.argv[1:]]))


if __name__ == "__main__":
    sys.exit(main())
