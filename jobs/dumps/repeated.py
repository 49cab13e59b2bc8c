"""Lines that differ from an earlier one in their times alone: they mean the same, at other times.

So it is with most lines of a day. What is equal to a line that was read needs no JSON: with other
digits between the same two quotes it has the same structure.
"""

from typing import Any, NamedTuple

from .parsing import parse_json

_COLLECTED_AT, _SNAPSHOT_TIME = b'"collected_at"', b'"snapshot_time"'


class Timeless(NamedTuple):
    """A line without the values of its times, and the values; None: it has no snapshot_time."""

    rest: bytes
    collected_at: str
    snapshot_time: str | None

    def has_its_times(self, envelope: dict[str, Any]) -> bool:
        """True if the times of the envelope are those that the line holds: without them it differs
        in them alone. They could be of an object in it, or of a key that comes twice.
        """
        names = ["collected_at", *([] if self.snapshot_time is None else ["snapshot_time"])]
        try:
            rest = parse_json(self.rest.decode().removeprefix("\ufeff"))
        except ValueError:  # it was not a whole text that was left out
            return False
        return bool(rest == envelope | dict.fromkeys(names, ""))


def without_times(line: bytes) -> Timeless | None:
    """The line without its times; None where it has none as a line should have them.

    >>> without_times(b'{"collected_at":"2026-01-05T00:00:00Z","kind":"heartbeat"}')
    ... # doctest: +NORMALIZE_WHITESPACE
    Timeless(rest=b'{"collected_at":"","kind":"heartbeat"}', collected_at='2026-01-05T00:00:00Z',
             snapshot_time=None)
    """
    cut = _cut(line, _COLLECTED_AT)
    if cut is None:
        return None
    line, collected_at = cut
    rest, snapshot_time = _cut(line, _SNAPSHOT_TIME) or (line, None)
    return Timeless(rest, collected_at, snapshot_time)


def _cut(line: bytes, key: bytes) -> tuple[bytes, str] | None:
    """The line without the text after a key, between its quotes, and the text."""
    place = line.find(key)
    if place < 0:
        return None
    start = line.find(b'"', place + len(key)) + 1
    end = line.find(b'"', start) if start else -1
    if end < 0:
        return None
    return line[:start] + line[end:], line[start:end].decode("ascii", "replace")
