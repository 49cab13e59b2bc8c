"""snapshots -> what is usual between two of them, and the times in which nobody looked.

The usual time between two rounds of questions is decided here alone. Rounds do not come at even
times. Polls are missing, which makes a gap twice as long; and two collectors ask on two schedules,
which makes short gaps and long ones by turns. So the usual gap is the upper quartile: of what comes
by turns it is the long one, and of ten gaps one or two that are twice as long do not count.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...declared.instants import SECOND, Instant

#: Between two that are further apart than so many usual gaps one is missing.
ONE_IS_MISSING = 1.5
#: The longest time unseen for which something is taken to have lasted.
_LONGEST_UNSEEN: Instant = 30 * 60 * SECOND
#: The number of gaps that show what is usual.
SEVERAL = 4
#: The rounds, and the time, that may be missing at the edges of a night: files come late, and a
#: collector that is started anew needs a moment.
_ROUNDS_AT_EDGES = 3
_TIME_AT_EDGES: Instant = 600 * SECOND


def usual_gap(gaps: NDArray[np.int64]) -> Instant:
    """The upper quartile of the gaps, in any order; 0 of none.

    >>> usual_gap(np.array([60] * 8 + [120])), usual_gap(np.array([2, 58])), usual_gap(np.array([]))
    (60, 58, 0)
    """
    in_order = np.sort(gaps)
    return int(in_order[(3 * in_order.size - 1) // 4]) if in_order.size else 0


def usual_gap_but_for_one(gaps: NDArray[np.int64]) -> Instant:
    """The usual gap without the longest one, where there are several: of a few gaps a single one in
    which snapshots are missing would else be the usual one.

    >>> gaps = np.array([60, 180, 60])
    >>> usual_gap(gaps), usual_gap_but_for_one(gaps)
    (180, 60)
    """
    in_order = np.sort(gaps)
    return usual_gap(in_order[:-1]) or usual_gap(in_order[-1:])


def longest_unseen(gaps: int, usual: Instant) -> Instant:
    """Nobody knows what was so between two snapshots that are further apart.

    That is 30 min; where they always come more seldom, as so many gaps show, one and a half of the
    usual gap.

    >>> [longest_unseen(gaps, 3600 * SECOND) // SECOND for gaps in (3, 4)]
    [1800, 5400]
    """
    return max(_LONGEST_UNSEEN, int(ONE_IS_MISSING * usual) if gaps >= SEVERAL else 0)


def longest_at_edges(usual: Instant) -> Instant:
    """The longest time between an edge of a night and the first or the last snapshot of something
    that was asked about up to there.

    >>> [longest_at_edges(seconds * SECOND) // SECOND for seconds in (60, 3600)]
    [600, 10800]
    """
    return max(_ROUNDS_AT_EDGES * usual, _TIME_AT_EDGES)


def watches(snapshots: Sequence[Instant]) -> list[Instant]:
    """The beginnings of the times in which snapshots, ascending, follow each other without a pause:
    none are further apart than ``longest_unseen``.

    Worked example: rounds at 10:00, 10:01 and 10:02, and then at 18:00 and 18:01, are two watches.
    Rounds each hour are one; two such rounds do not show that they are usual.

    >>> minute = 60 * SECOND
    >>> [each // minute for each in watches([n * minute for n in (0, 1, 2, 480, 481)])]
    [0, 480]
    >>> [len(watches([n * 60 * minute for n in range(rounds)])) for rounds in (2, 8)]
    [2, 1]
    """
    gaps = np.diff(snapshots)
    later = np.flatnonzero(gaps > longest_unseen(gaps.size, usual_gap_but_for_one(gaps))) + 1
    return [*snapshots[:1], *[snapshots[place] for place in later.tolist()]]
