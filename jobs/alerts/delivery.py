"""Several attempts to deliver, each of which ends at its time-out, whatever a server does."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ..engines import in_background
from ..errors import AuditError

#: Seconds before a second attempt; each later one waits twice as long as the one before.
_FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0

_Result = TypeVar("_Result")


class DeliveryError(AuditError):
    """Nobody took the message; what was published is published all the same."""


class Refusal(NamedTuple):
    """The reason why a message was not taken: our text only, as a server's may have the URL in it.

    ``wait``: the seconds to wait at least before another attempt; None where that would be refused
    as well.
    """

    reason: str
    wait: float | None = None


class Attempts(NamedTuple):
    """The limits of attempts: the time-out of each, their number, and the pause between them."""

    timeout_seconds: float
    number: int
    pause: Callable[[float], None]

    def make(self, once: Callable[[float], Refusal | None]) -> None:
        """Calls ``once`` with the time-out until it is not refused; DeliveryError at the end."""
        for attempt in range(1, self.number + 1):
            refusal = once(self.timeout_seconds)
            if refusal is None:
                return
            if refusal.wait is None or attempt == self.number:
                raise DeliveryError(refusal.reason)
            self.pause(min(max(refusal.wait, _FIRST_PAUSE * 2 ** (attempt - 1)), LONGEST_PAUSE))


def within(seconds: float, work: Callable[[], _Result], stop: Callable[[], None]) -> _Result:
    """Returns or raises what the work does; TimeoutError after so many seconds.

    A socket's time-out is for each read: a server that sends a byte now and then never meets it.
    Nor does it bound the look-up of a name. So the work is done in a thread. ``stop`` is called
    when the time is over, so that nothing is sent after all.
    """
    result = in_background(work)
    try:
        return result.result(seconds)
    except TimeoutError:
        stop()
        raise
