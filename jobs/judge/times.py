"""Times of anything: the usual gap between snapshots, and runs that show something -> episodes.

The usual time between two rounds of questions is decided here alone. Rounds do not come at even
times. Polls are missing, which makes a gap twice as long; and two collectors ask on two schedules,
which makes short gaps and long ones by turns. So the usual gap is the upper quartile: of what comes
by turns it is the long one, and of ten gaps one or two that are twice as long do not count.

What was so for most of an hour lasted, whatever the single snapshots say: a pod that is up for 15 s
at every other poll gives a queue an owner in half of the snapshots, and nobody reads it. So an
episode may have gaps, and has the share of the time in which it was there.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, zip_longest
from statistics import median_low
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rebalance_core.grouping import grouped

from ..declared.instants import SECOND, Instant
from ..declared.kinds import PERSISTENT, TRANSIENT

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


Key = TypeVar("Key")
Observed = TypeVar("Observed")

#: The longest absence within an episode: a person who looked in a longer one found nothing wrong. A
#: time in which nobody looked is another thing (``longest_unseen``).
_LONGEST_ABSENCE = 30 * 60 * SECOND
#: The least part of the time that an episode with gaps claims that is to be between two snapshots
#: in a row that both show it.
_LEAST_SEEN = 0.8


class Portion(NamedTuple):
    """A part of the window in which the snapshots show the same.

    ``counts``: what its snapshots do not show was not there. Else they show too little for that,
    and do not count. ``watch``: the number of the watch that it is in (see
    ``watches``); it is in one alone. A run is a part with its place, of ``runs_of``.
    """

    first_seen: Instant
    last_seen: Instant
    snapshots: int
    counts: bool = True
    watch: int = 0
    #: The number of snapshots of the window that count before it, and up to its end.
    before: int = 0
    after: int = 0
    #: The time that its snapshots cover: each the time up to the next one, but no longer than
    #: the usual gap between two, so that a snapshot that is missing makes nothing last longer.
    covers: Instant = 0


class Timed(Protocol):
    """Anything that is there for a time."""

    @property
    def first_seen(self) -> Instant:
        """Its beginning."""

    @property
    def last_seen(self) -> Instant:
        """Its end, included."""


class Extent(NamedTuple):
    """The time of an episode."""

    first_seen: Instant
    last_seen: Instant
    snapshots: int
    persistence: str
    ongoing: bool
    #: The share of the snapshots from the first to the last that show it; 1.0: no gap.
    share_of_time: float = 1.0

    @property
    def lasts(self) -> bool:
        """True if it is more than a deploy or a restart."""
        return self.persistence == PERSISTENT

    def overlaps(self, other: Timed) -> bool:
        """True if both were there at some time."""
        return self.first_seen <= other.last_seen and other.first_seen <= self.last_seen

    def those_of(self, moments: Sequence[Instant]) -> Sequence[Instant]:
        """The moments, ascending, that are in it.

        >>> Extent(2, 5, 1, PERSISTENT, ongoing=True).those_of([1, 2, 5, 6])
        [2, 5]
        """
        first = bisect_left(moments, self.first_seen)
        return moments[first : bisect_right(moments, self.last_seen)]


class Episode(NamedTuple, Generic[Key, Observed]):
    """Runs that show one thing and belong together, each with what it shows, and their time."""

    key: Key
    extent: Extent
    #: Sightings in time.
    sightings: Sequence[tuple[Portion, Observed]]

    @property
    def shown(self) -> list[Observed]:
        """The observations of the runs, in time."""
        return [shown for _, shown in self.sightings]


def episodes_of(
    runs: Sequence[Portion],
    shown: Iterable[Iterable[tuple[Key, Observed]]],
    persistence_seconds: int,
) -> Iterator[Episode[Key, Observed]]:
    """The episodes of each key in a window; ``shown``: by run what it shows, by key.

    See ``join_episodes`` and ``extent_of``.
    """
    by_key = grouped(
        (key, (run, seen)) for run, found in zip(runs, shown, strict=True) for key, seen in found
    )
    counted = runs[-1].after if runs else 0
    for key, pairs in by_key.items():
        sightings = iter(pairs)
        for joined in join_episodes([run for run, _ in pairs], counted):
            extent = extent_of(joined, counted, persistence_seconds)
            yield Episode(key, extent, list(islice(sightings, len(joined))))


def widest(extents: Sequence[Extent]) -> Extent:
    """The extent from the first to the last of several: what is so of one of them is so of all."""
    return Extent(
        min(extent.first_seen for extent in extents),
        max(extent.last_seen for extent in extents),
        max(extent.snapshots for extent in extents),
        PERSISTENT if any(extent.lasts for extent in extents) else TRANSIENT,
        any(extent.ongoing for extent in extents),
        max(extent.share_of_time for extent in extents),
    )


def runs_of(parts: Sequence[Portion]) -> list[Portion]:
    """The parts of a window, in time, as runs.

    >>> [run.covers for run in runs_of([Portion(0, 120, 3), Portion(300, 300, 1)])]
    [180, 60]
    """
    if not parts:
        return []
    times = [(part.first_seen, part.last_seen, part.snapshots - 1) for part in parts]
    first_seen, last_seen, gaps = np.array(times, np.int64).reshape(-1, 3).T
    within = np.repeat((last_seen - first_seen) // np.maximum(gaps, 1), gaps)
    gap = usual_gap_but_for_one(np.append(within, first_seen[1:] - last_seen[:-1]))
    runs: list[Portion] = []
    counted = 0
    for part, following in zip_longest(parts, parts[1:]):
        ends = following.first_seen if following else part.last_seen + gap
        after = counted + part.snapshots * part.counts
        covers = min(ends - part.first_seen, part.snapshots * gap)
        runs.append(part._replace(before=counted, after=after, covers=covers))
        counted = after
    return runs


def join_episodes(runs: Sequence[Portion], counted: int | None = None) -> list[list[Portion]]:
    """The runs that show one thing, in time, put together to episodes.

    Two runs belong to one episode where, read from either end of it, what shows it outweighs what
    does not: up to the far end of every gap at least half of the snapshots show it. So no episode
    begins or ends with a gap that weighs more than what is before or behind it: a moment on the eve
    of a fault is not a part of it. A gap of more than 30 min ends an episode in any case. Snapshots
    that do not count, or that are missing, are not a gap; but an episode ends with its watch, for
    what nobody looked at does not last. Nobody knows how long an episode in the last of the
    ``counted`` snapshots will be: behind a gap that is no longer than one before, it has come
    again.

    Worked example: rounds at 10:00 and 18:00 both show a queue without an owner. These are two
    episodes of a moment: nothing shows that nobody read it for 8 h.

    >>> def episodes(snapshots):
    ...     runs = runs_of([Portion(n, n, 1) for n in range(len(snapshots))])
    ...     shown = [run for run, mark in zip(runs, snapshots) if mark == "x"]
    ...     joined = join_episodes(shown, counted=len(snapshots))
    ...     return [(each[0].before, each[-1].after) for each in joined]
    >>> episodes("x.x.xx..xx")
    [(0, 10)]
    >>> episodes("x...xxxxx.xxx..x.")
    [(0, 1), (4, 13), (15, 16)]
    >>> episodes("xxx..xxx..x"), episodes("xxx.xxx..x")
    ([(0, 11)], [(0, 7), (9, 10)])
    >>> len(join_episodes(runs_of([Portion(0, 0, 1), Portion(8, 8, 1, watch=1)])))
    2
    """
    episodes: list[list[Portion]] = []
    start = 0
    for number, (one, following) in enumerate(pairwise(runs), start=1):
        is_gap = following.before > one.after
        is_long = is_gap and following.first_seen - one.last_seen > _LONGEST_ABSENCE
        if is_long or following.watch != one.watch:
            episodes += _outweighing(runs[start:number])
            start = number
    latest = _outweighing(runs[start:])
    if len(latest) > 1 and runs[-1].after == counted and _came_again(*latest[-2:]):
        latest[-2:] = [latest[-2] + latest[-1]]
    return episodes + latest


def _came_again(before: Sequence[Portion], last: Sequence[Portion]) -> bool:
    """True if what ``last`` shows is what came again ``before``."""
    gap = last[0].before - before[-1].after
    shown, in_all = _weight([*before, *last])
    return gap <= max(_gaps(before), default=0) and 2 * shown >= in_all


def _weight(runs: Sequence[Portion]) -> tuple[int, int]:
    """The snapshots that count in the runs, and those from the first run to the last."""
    return sum(run.after - run.before for run in runs), runs[-1].after - runs[0].before


def _gaps(runs: Sequence[Portion]) -> list[int]:
    """The number of snapshots that count in each gap between the runs."""
    gaps = (following.before - one.after for one, following in pairwise(runs))
    return [gap for gap in gaps if gap]


def _outweighing(runs: Sequence[Portion]) -> list[list[Portion]]:
    """Joins runs as ``join_episodes`` does, whatever the length of a gap.

    These are the maximal scoring subsequences of Ruzzo and Tompa (1999), where each snapshot that
    shows it adds 1 to the score, and each that does not takes 1 away.
    """
    #: The scores before and behind each episode so far, and the place of its first run.
    episodes: list[tuple[int, int, int]] = []
    score = counted = 0
    for place, run in enumerate(runs):
        lowest = score - (run.before - counted)
        score, counted = lowest + run.after - run.before, run.after
        start = place
        for number in reversed(range(len(episodes))):
            before, behind, first = episodes[number]
            if before <= lowest and behind > score:
                break
            if before <= lowest:
                lowest, start = before, first
                del episodes[number:]
        episodes.append((lowest, score, start))
    starts = [start for _, _, start in episodes]
    return [list(runs[start:end]) for start, end in pairwise([*starts, len(runs)])]


def extent_of(runs: Sequence[Portion], counted: int, persistence_seconds: int) -> Extent:
    """The time of an episode of these runs, in a window of which ``counted`` snapshots count.

    It lasts where it was seen over at least so many seconds, and the snapshots that show it cover
    as many. It is ongoing where the window's last snapshot shows it, or where it has been gone
    for no longer than it usually is: it came back each time before.

    >>> runs = runs_of([Portion(0, 0, 1), Portion(1, 1, 1), Portion(2, 2, 1), Portion(3, 3, 1)])
    >>> extent = extent_of([runs[0], runs[2]], counted=4, persistence_seconds=180)
    >>> extent.share_of_time, extent.ongoing
    (0.6666666666666666, True)
    """
    first, last = runs[0], runs[-1]
    lasts = persistence(first.first_seen, last.last_seen, persistence_seconds) == PERSISTENT
    covers = sum(run.covers for run in runs)
    shown, in_all = _weight(runs)
    return Extent(
        first_seen=first.first_seen,
        last_seen=last.last_seen,
        snapshots=sum(run.snapshots for run in runs),
        persistence=PERSISTENT if lasts and covers >= persistence_seconds * SECOND else TRANSIENT,
        ongoing=counted - last.after <= median_low(_gaps(runs) or [0]),
        share_of_time=shown / in_all if in_all else 1.0,
    )


def is_share_sure(runs: Sequence[Portion], persistence_seconds: int) -> bool:
    """True if the snapshots show that an episode of these runs was there for its share of the time.

    What lasts fits between two snapshots that are further apart than ``persistence_seconds``, and
    so does its end. Then the share is sure where nothing interrupts it, or where most of its time
    is between two snapshots in a row that show it: of rounds each five minutes two of three show
    that a group was away twice, and not for how long.

    >>> def is_sure(snapshots, every):
    ...     times = [n * every * SECOND for n in range(len(snapshots))]
    ...     runs = runs_of([Portion(time, time, 1) for time in times])
    ...     shown = [run for run, mark in zip(runs, snapshots) if mark == "x"]
    ...     return is_share_sure(shown, persistence_seconds=180)
    >>> [is_sure(each, 300) for each in ("xx", "x.x", "xxx.xxx.xxx", "xxxxx....xxxxx", "xxxxxxx.x")]
    [True, False, False, True, True]
    >>> is_sure("x.x.x", 60)
    True
    """
    gaps = _gaps(runs)
    shown, in_all = _weight(runs)
    apart = (runs[-1].last_seen - runs[0].first_seen) / max(in_all - 1, 1)
    if not gaps or apart <= persistence_seconds * SECOND:
        return True
    return shown - 1 - len(gaps) >= _LEAST_SEEN * (in_all - 1) * shown / in_all


def reach(snapshots: Sequence[Instant]) -> Instant:
    """The longest time over which anything can be seen in these snapshots, ascending: with less
    than ``persistence_seconds`` nothing can last (``extent_of``).

    Worked example, in minutes: three rounds and, after a pause in which nobody looked, two more.

    >>> minute = 60 * SECOND
    >>> [reach([n * minute for n in times]) // minute for times in ((0, 1, 2, 480, 481), (7,), ())]
    [2, 0, 0]
    """
    begins = watches(snapshots)
    parts = [Portion(at, at, 1, watch=bisect_right(begins, at)) for at in snapshots]
    runs_by_watch = grouped((run.watch, run) for run in runs_of(parts)).values()
    reached = (
        min(runs[-1].last_seen - runs[0].first_seen, sum(run.covers for run in runs))
        for runs in runs_by_watch
    )
    return max(reached, default=0)


def persistence(first_seen: Instant, last_seen: Instant, persistence_seconds: int) -> str:
    """PERSISTENT where it was seen over at least so many seconds, else TRANSIENT.

    >>> persistence(0, 180 * SECOND, 180), persistence(0, 180 * SECOND - 1, 180)
    ('PERSISTENT', 'TRANSIENT')
    """
    return PERSISTENT if last_seen - first_seen >= persistence_seconds * SECOND else TRANSIENT
