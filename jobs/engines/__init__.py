"""Engines that do the work: this process, or several of them. Spark's is in ``spark/``.
And what every engine is given: the files, cut into slices, and the pieces that tasks make.

``in_background``: work that nobody waits for longer than they want, be it a server or a resolver
that hangs.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

_Result = TypeVar("_Result")


def in_background(work: Callable[[], _Result]) -> "Future[_Result]":
    """Starts the work in a thread that the end of the process does not wait for; gives its result.

    Raises RuntimeError where the system has no more threads.
    """
    result: Future[_Result] = Future()
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    Thread(target=run, daemon=True).start()
    return result
