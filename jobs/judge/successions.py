"""lives -> successions: what comes and goes again and again, each time after the one before it.

A deploy replaces every process once, however many there are; a rollback does it twice. A process
that crashes and is started again, or a connection that breaks and is made again, is replaced by one
that is replaced as well. So the longest row of lives that follow one another distinguishes the two,
where the number of those that came does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jobs.instants import Instant


class Life(NamedTuple):
    """From when to when something was there; ``end`` None: it is there still."""

    name: str
    start: Instant
    end: Instant | None


def successions(
    lives: Iterable[Life], overlap: Instant, most_apart: Instant
) -> list[tuple[Life, ...]]:
    """The rows of lives that follow one another, the longest that there are.

    A life follows another that began before it and ended by its start; an end counts ``overlap``
    earlier, for what breaks without a word stays listed for so long. Each begins at most
    ``most_apart`` after the one before it: else a new row begins.

    >>> restarts = [Life("a", n, n + 2) for n in range(4)]
    >>> [len(row) for row in successions(restarts, overlap=1, most_apart=5)]
    [4]
    >>> old = [Life("old", 0, n) for n in range(1, 5)]
    >>> new = [Life("new", n, None) for n in range(1, 5)]
    >>> [len(row) for row in successions([*old, *new], overlap=1, most_apart=5)]
    [2]
    """
    rows: list[list[Life]] = []
    until: Instant | None = None
    ended = ((_ended(life, overlap), life) for life in lives)
    in_order = sorted(ended, key=lambda each: (each[0] is None, each[0] or 0, each[1]))
    for end, life in in_order:
        if rows and (until is None or life.start < until or life.start <= rows[-1][-1].start):
            continue
        if not rows or life.start - rows[-1][-1].start > most_apart:
            rows.append([])
        rows[-1].append(life)
        until = end
    return [tuple(row) for row in rows]


def _ended(life: Life, overlap: Instant) -> Instant | None:
    return None if life.end is None else max(life.start, life.end - overlap)
