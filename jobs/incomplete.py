"""What is not in the input, in sentences: dumps that end early, rounds that nobody asked, brokers
that never answered.

What is not there cannot be found, so an all-clear is worth no more than these sentences let it be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import quantiles
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rebalance_core.texts import Text, from_parts

from .instants import SECOND, Instant, to_datetime
from .schemas import BROKER_POLLS, NO_ANSWER
from .text import iso
from .window import Window

if TYPE_CHECKING:  # it imports pandas, some 55 MiB
    import pyarrow.dataset as ds

#: The key of the summary.
_KEY = "incomplete"
#: So many sentences are kept of each kind; then one says how many more there are.
_MOST = 20
#: Of fewer rounds nobody knows how often they come.
_LEAST_ROUNDS = 5
#: A round is missed where the next one comes later than most by half of their distance.
_LATE = 1.5


def dumps_that_lack_lines(endings: Mapping[str, Text], lines: Mapping[str, int]) -> list[Text]:
    """A sentence for each file of which lines are missing; ``endings``: by file what is wrong."""
    return first(
        Text(
            "dump {file} ends early after {lines:,} lines: {what}",
            file=file,
            lines=lines[file],
            what=what,
        )
        for file, what in endings.items()
    )


def rounds_that_are_missed(rounds: Mapping[str, Collection[Instant]]) -> Iterator[Text]:
    """A sentence for each cluster that lacks rounds."""
    for cluster, of_cluster in sorted(rounds.items()):
        if len(of_cluster) < _LEAST_ROUNDS:
            continue
        times = sorted(of_cluster)
        gaps = [(later - earlier, earlier, later) for earlier, later in pairwise(times)]
        # Of two collectors with two schedules most gaps are the longer ones.
        usual = quantiles([gap / SECOND for gap, _, _ in gaps], n=4)[2]
        missed = [each for each in gaps if each[0] > _LATE * usual * SECOND]
        if missed:
            _, earlier, later = max(missed)
            absent = sum(round(gap / (usual * SECOND)) - 1 for gap, _, _ in missed)
            yield Text(
                "cluster {cluster}: rounds come each {seconds:.0f} s, and some are missing "
                "({number:,}); the longest time without one is from {earlier} to {later}",
                cluster=cluster,
                seconds=usual,
                number=absent,
                earlier=iso(to_datetime(earlier)),
                later=iso(to_datetime(later)),
            )


def brokers_that_are_silent(polls: ds.Dataset, window: Window) -> Iterator[Text]:
    """A sentence for each broker that never answered."""
    names = ["cluster", "broker_name", "broker_id", "outcome"]
    of_window = window.filter_of(BROKER_POLLS, polls.schema)
    seen: set[tuple[Any, ...]] = set()
    # A day of a large fleet has too many polls to be held.
    for batch in polls.to_batches(columns=names, filter=of_window, fragment_readahead=1):
        distinct = pa.Table.from_batches([batch]).group_by(names).aggregate([]).select(names)
        seen.update(zip(*distinct.to_pydict().values(), strict=True))
    answered = {each[:3] for each in seen if each[3] != NO_ANSWER}
    for cluster, name, broker_id in sorted({each[:3] for each in seen} - answered, key=str):
        broker = f"{name}/{broker_id}"
        yield Text(
            "broker {broker} of cluster {cluster} never answered", broker=broker, cluster=cluster
        )


def first(texts: Iterable[Text]) -> list[Text]:
    """The first sentences of a kind, and of very many how many more there are."""
    every = list(texts)
    more = [Text("and {number:,} more of these", number=len(every) - _MOST)]
    return every[:_MOST] + (more if len(every) > _MOST else [])


def packed(texts: Sequence[Text]) -> dict[str, Any]:
    """The texts as a summary has them."""
    return {_KEY: [text.parts() for text in texts]}


def sentences_of(summary: Mapping[str, Any] | None) -> list[Text]:
    """The texts of a summary; none where it has none."""
    return [from_parts(parts) for parts in (summary or {}).get(_KEY, ())]
