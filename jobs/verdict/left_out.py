"""Things that a collector says that it left out of its rounds -> gaps.

A collector asks of so many brokers, groups, topics and members at most, and reads answers for so
long at most. What it left out it writes into the dump: what is beyond has no other line. One round
that lacks something lacks nothing that lasts.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from rebalance_core.english import agreeing
from rebalance_core.texts import Text

from ..declared.instants import SECOND, Instant
from .gaps import LEFT_OUT, Gap
from .reach import RoundTimes, silence_without

#: The number that was left out in each round, by cluster and what it is.
LeftOutRounds: TypeAlias = Mapping[tuple[str, str], Mapping[Instant, int]]
#: The key of the summary of an ingest.
_KEY = "left_out"


def packed_left_out(left_out: LeftOutRounds) -> dict[str, Any]:
    """The things left out as the summary of an ingest has them; empty where there are none."""
    rows = [[*key, list(of_rounds.items())] for key, of_rounds in sorted(left_out.items())]
    return {_KEY: rows} if rows else {}


def left_out(
    ingested: Mapping[str, Any] | None,
    rounds: RoundTimes,
    persistence_seconds: int,
) -> Iterator[Gap]:
    """A gap for each thing that was left out of all rounds, or for as long as what has to last.

    ``rounds``: of each cluster all in the window. Rounds of a cluster that has none of these are
    taken for all of it.
    """
    for cluster, what, of_rounds in (ingested or {}).get(_KEY, ()):
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
