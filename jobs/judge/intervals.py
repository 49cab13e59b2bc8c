"""The usual time between two rounds of questions: the one place that decides what it is.

Rounds do not come at even times. Polls are missing, which makes a gap twice as long; and two
collectors ask on two schedules, which makes short gaps and long ones by turns. So the usual gap is
the upper quartile: of what comes by turns it is the long one, and of ten gaps one or two that are
twice as long do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from jobs.instants import SECOND, Instant

#: What was not seen for longer is not taken to have lasted.
_LONGEST_PAUSE: Instant = 30 * 60 * SECOND
#: Where snapshots come more seldom: so many usual gaps. Behind more of them one is missing.
_USUAL_GAPS = 1.5
#: So many gaps show what is usual.
_SEVERAL = 4


def usual_gap(gaps: Iterable[tuple[Instant, int]]) -> Instant:
    """The upper quartile of the gaps, each with how often it is there; 0 of none.

    >>> usual_gap([(60, 8), (120, 1)]), usual_gap([(2, 10), (58, 10)]), usual_gap([])
    (60, 58, 0)
    """
    in_order = sorted(gaps)
    total = sum(times for _, times in in_order)
    seen = 0
    for gap, times in in_order:
        seen += times
        if 4 * seen >= 3 * total:
            return gap
    return in_order[-1][0] if in_order else 0


def usual_gap_but_for_one(gaps: Iterable[tuple[Instant, int]]) -> Instant:
    """The usual gap without the longest one, where there are several: of a few gaps a single one in
    which snapshots are missing would else be the usual one.

    >>> usual_gap([(60, 2), (180, 1)]), usual_gap_but_for_one([(60, 2), (180, 1)])
    (180, 60)
    """
    *others, (longest, times) = sorted(gaps) or [(0, 0)]
    return usual_gap([*others, (longest, times - 1)] if times > 1 else others) or longest


def watches(snapshots: Sequence[Instant]) -> list[Instant]:
    """The beginnings of the times in which snapshots, ascending, follow each other without a pause.

    A pause is longer than 30 min, and than one and a half of the usual gap, where there are gaps
    enough to show what is usual: nobody knows what was so meanwhile.

    Worked example: rounds at 10:00, 10:01 and 10:02, and then at 18:00 and 18:01, are two watches.
    Rounds each hour are one; two such rounds do not show that they are usual.

    >>> minute = 60 * SECOND
    >>> [each // minute for each in watches([n * minute for n in (0, 1, 2, 480, 481)])]
    [0, 480]
    >>> [len(watches([n * 60 * minute for n in range(rounds)])) for rounds in (2, 8)]
    [2, 1]
    """
    gaps = [(later - one, 1) for one, later in pairwise(snapshots)]
    longest = _LONGEST_PAUSE
    if len(gaps) >= _SEVERAL:
        longest = max(longest, int(_USUAL_GAPS * usual_gap_but_for_one(gaps)))
    later = (after for before, after in pairwise(snapshots) if after - before > longest)
    return [*snapshots[:1], *later]
