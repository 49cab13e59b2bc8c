"""Times of rounds and of answers -> the times in which what lasts would not have been seen.

Between two rounds nobody looks: what is seen twice was there in between, what is seen once is a
moment. So a silence is what is missing besides: from the first answer that is missing to the next
one that came, or to the last round. It is a gap where something that lasts could have begun and
ended in it: it takes ``persistence_seconds``, and more than one answer is missing. A single one
would have shown a moment.

Worked example, 180 s. Rounds each 60 s, of a broker that restarts: without the answers of 10:01 and
10:02 the silence ends at 10:03, after 120 s; without that of 10:03 too it is a gap. Rounds each
300 s: the answer of 10:05 alone is none, those of 10:05 and 10:10 are a gap.

What lasts for 180 s can come and go between any two rounds that are 300 s apart. Whoever set them
chose that: it is no gap of a night, and the report says it once (``slow_rounds``).

A collector asks of so many brokers, groups, topics and members at most, and reads answers for so
long at most. What it left out it writes into the dump: what is beyond has no other line. One round
that lacks something lacks nothing that lasts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rebalance_core.english import agreeing
from rebalance_core.texts import Text

from ..declared.instants import SECOND, Instant
from ..judge.times.extents import reach
from ..judge.times.intervals import ONE_IS_MISSING, SEVERAL, longest_at_edges, usual_gap
from .gaps import (
    LEFT_OUT,
    ROUNDS_BEGIN_LATE,
    ROUNDS_END_EARLY,
    ROUNDS_MISSING,
    ROUNDS_TOO_SHORT,
    Gap,
    time_text,
)

#: The rounds of each cluster.
RoundTimes = Mapping[str, Collection[Instant]]

#: An answer is due after nearly the usual time: rounds are not quite even.
_NEARLY = 0.9
#: The summary of a run is read often, and has to stay small.
_MOST_CLUSTERS = 20
#: The number that was left out in each round, by cluster and what it is.
LeftOutRounds: TypeAlias = Mapping[tuple[str, str], Mapping[Instant, int]]
#: The key of the summary of an ingest.
_LEFT_OUT = "left_out"


class Silence(NamedTuple):
    """A time without an answer: the first that is missing, and the next one that came, or the last
    round.
    """

    since: Instant
    until: Instant

    @property
    def words(self) -> dict[str, Any]:
        """The values for the slots of a sentence."""
        return {"since": time_text(self.since), "until": time_text(self.until)}


def usual_interval(times: Collection[Instant]) -> Instant | None:
    """The usual time between rounds; None: there are too few to know it."""
    return usual_gap(np.diff(sorted(times))) if len(times) > SEVERAL else None


def longest_silence(
    rounds: Collection[Instant], came: Collection[Instant], usual: Instant, least: Instant
) -> Silence | None:
    """The longest silence that is a gap, of ``least`` or more; ``came``: the rounds with an answer.

    ``usual``: the usual time between two answers, for who is not asked in each round, and for two
    collectors whose rounds are seconds apart; 0: not known.

    >>> longest_silence([0, 60, 120, 180, 240, 300], came=[60, 300], usual=60, least=180)
    Silence(since=120, until=300)
    >>> longest_silence([0, 60, 120, 180, 240, 300], came=[60, 240], usual=60, least=180)
    >>> longest_silence(range(0, 660, 60), came=[0, 600], usual=300, least=180)
    """
    every, answers = sorted(rounds), sorted(came)
    begins = [0, *(bisect_right(every, answer) for answer in answers)]
    ends = [*(bisect_left(every, answer) for answer in answers), len(every)]
    found = []
    for before, after, begin, end in zip(
        [None, *answers], [*answers, None], begins, ends, strict=True
    ):
        due: list[Instant] = []
        for each in every[begin:end]:
            latest = due[-1] if due else before
            if latest is None or each - latest >= _NEARLY * usual:
                due.append(each)
        if len(due) > 1:
            found.append(Silence(due[0], due[-1] if after is None else after))
    longest = max(found, key=lambda silence: silence.until - silence.since, default=None)
    return longest if longest and longest.until - longest.since >= least else None


def silence_without(
    rounds: Collection[Instant], without: Collection[Instant], least: Instant
) -> Silence | None:
    """The longest silence that is a gap where these rounds brought nothing that counts; all of the
    time where none did.
    """
    if len(without) == len(rounds):
        return Silence(min(rounds), max(rounds))
    came = set(rounds).difference(without)
    return longest_silence(rounds, came, usual_interval(rounds) or 0, least)


def too_short(rounds: RoundTimes, persistence_seconds: int) -> Iterator[Gap]:
    """A gap for each cluster of which nothing could be seen to last, whatever was there."""
    for cluster, times in sorted(rounds.items()):
        covered = reach(sorted(times))
        if times and covered < persistence_seconds * SECOND:
            text = Text(
                "cluster {cluster}: the snapshots cover {covered:,.0f} s of the {needed:,} s that "
                "a fault needs to last, so that none can be found: audit more rounds at once "
                "(collect --every 60)",
                cluster=cluster,
                covered=covered // SECOND,
                needed=persistence_seconds,
            )
            yield Gap(ROUNDS_TOO_SHORT, text)


def slow_rounds(rounds: RoundTimes, persistence_seconds: int) -> dict[str, float]:
    """The seconds between two rounds, by cluster, where these are more than what has to last: the
    slowest clusters.
    """
    usual = {cluster: (usual_interval(times) or 0) / SECOND for cluster, times in rounds.items()}
    slow = {name: each for name, each in usual.items() if each > max(persistence_seconds, 1)}
    return dict(sorted(slow.items(), key=lambda item: (-item[1], item[0]))[:_MOST_CLUSTERS])


def missed_rounds(rounds: RoundTimes, persistence_seconds: int) -> Iterator[Gap]:
    """A gap for each cluster that lacks rounds between its first and its last, more than one after
    the other, for so long that what lasts may have come and gone.
    """
    for cluster, of_cluster in sorted(rounds.items()):
        times = sorted(of_cluster)
        usual = usual_interval(times)
        if not usual:
            continue
        length, earlier, later = max((b - a, a, b) for a, b in pairwise(times))
        # Two are missing, and what is more than the usual time is a silence.
        if length < max((1 + ONE_IS_MISSING) * usual, usual + persistence_seconds * SECOND):
            continue
        gaps = (later - earlier for earlier, later in pairwise(times))
        absent = sum(round(gap / usual) - 1 for gap in gaps if gap > ONE_IS_MISSING * usual)
        text = Text(
            "cluster {cluster}: a round comes every {seconds:.0f} s, and some are missing "
            "({number:,}); the longest gap is from {earlier} to {later}",
            cluster=cluster,
            seconds=usual / SECOND,
            number=absent,
            earlier=time_text(earlier),
            later=time_text(later),
        )
        yield Gap(ROUNDS_MISSING, text)


def short_nights(rounds: RoundTimes, since: Instant | None, until: Instant | None) -> Iterator[Gap]:
    """A gap for each cluster whose rounds begin well after the window, or another cluster, and for
    each whose rounds end well before; ``since``, ``until``: of the window, None where it is open.

    Well: more than three of its usual intervals, and more than ten minutes. A cluster with so few
    rounds that nobody knows its interval has to be away for more than half of the time. Clusters
    whose rounds are of other times altogether show nothing of each other.
    """
    times = {cluster: sorted(each) for cluster, each in rounds.items() if each}
    usual = {cluster: usual_interval(each) for cluster, each in times.items()}
    for cluster, own in sorted(times.items()):
        others = [
            (each[0], each[-1])
            for name, each in times.items()
            if usual[name] and name != cluster and each[0] <= own[-1] and own[0] <= each[-1]
        ]
        interval = usual[cluster]
        edges = [(since or own[0], until or own[-1]), *others]
        begin = min(own[0], *(at for at, _ in edges))
        end = max(own[-1], *(at for _, at in edges))
        most = max(longest_at_edges(interval or 0), 0 if interval else (end - begin) / 2)
        if own[0] - begin > most:
            text = Text(
                "cluster {cluster}: no round from {begin} until the first one at {first}",
                cluster=cluster,
                first=time_text(own[0]),
                begin=time_text(begin),
            )
            yield Gap(ROUNDS_BEGIN_LATE, text)
        if end - own[-1] > most:
            text = Text(
                "cluster {cluster}: no round after the last one at {last} until {end}",
                cluster=cluster,
                last=time_text(own[-1]),
                end=time_text(end),
            )
            yield Gap(ROUNDS_END_EARLY, text)


def packed_left_out(left_out: LeftOutRounds) -> dict[str, Any]:
    """The things left out as the summary of an ingest has them; empty where there are none."""
    rows = [[*key, list(of_rounds.items())] for key, of_rounds in sorted(left_out.items())]
    return {_LEFT_OUT: rows} if rows else {}


def left_out(
    ingested: Mapping[str, Any] | None,
    rounds: RoundTimes,
    persistence_seconds: int,
) -> Iterator[Gap]:
    """A gap for each thing that was left out of all rounds, or for as long as what has to last.

    ``rounds``: of each cluster all in the window. Rounds of a cluster that has none of these are
    taken for all of it.
    """
    for cluster, what, of_rounds in (ingested or {}).get(_LEFT_OUT, ()):
        number_at: dict[Instant, int] = dict(of_rounds)
        asked = set(rounds.get(cluster, number_at))
        without = asked & number_at.keys()
        silence = silence_without(asked, without, persistence_seconds * SECOND) if without else None
        if silence is None:
            continue
        most = max(number_at[time] for time in without)
        # Of some things a collector does not know the number.
        many = Text("{number:,} {what}", number=most, what=what) if most > 1 else what
        text = agreeing(
            len(without),
            "cluster {cluster}: the collector left out {many} in {rounds:,} [round|rounds]; the "
            "longest time was from {since} to {until}: raise the bound in its settings, or let it "
            "ask for less (docs/collect)",
            cluster=cluster,
            many=many,
            rounds=len(without),
            **silence.words,
        )
        yield Gap(LEFT_OUT, text)
