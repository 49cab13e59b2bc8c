"""What is not in the input: dumps that end early, rounds that nobody asked, brokers that never
answered.

What is not there cannot be found, so an all-clear is worth no more than these gaps let it be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from statistics import quantiles
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from rebalance_core.texts import Text, from_parts

from ..instants import SECOND, Instant, to_datetime
from ..schemas import BROKER_POLLS, NO_ANSWER
from ..text import iso
from ..window import Window

if TYPE_CHECKING:  # it imports pandas, some 55 MiB
    import pyarrow.dataset as ds

#: The key of the summary.
_KEY = "incomplete"
#: The kinds of gaps. What a dump file lacks; rows of a snapshot table that break its contract;
#: rounds that were not collected; who did not answer.
DUMP_CUT = "DUMP_CUT"
ROWS_LOST = "ROWS_LOST"
ROUNDS_MISSING = "ROUNDS_MISSING"
BROKER_SILENT = "BROKER_SILENT"
#: Of a summary that an earlier version wrote, which has no kinds.
NOT_NAMED = "NOT_NAMED"
#: Every kind, in the order in which people read of them.
GAPS = (DUMP_CUT, ROWS_LOST, ROUNDS_MISSING, BROKER_SILENT, NOT_NAMED)
#: So many sentences are kept of each kind; then one says how many more there are.
_MOST = 20
#: Of fewer rounds nobody knows how often they come.
_LEAST_ROUNDS = 5
#: A round is missed where the next one comes later than most by half of their distance.
_LATE = 1.5


class Gap(NamedTuple):
    """One thing that the input lacks: its kind (one of ``GAPS``), and a sentence with figures."""

    kind: str
    text: Text


def cut_dumps(endings: Mapping[str, Text], lines: Mapping[str, int]) -> list[Gap]:
    """A gap for each file of which lines are missing; ``endings``: by file what is wrong."""
    return first(
        Gap(
            DUMP_CUT,
            Text(
                "dump {file} ends early after {lines:,} lines: {what}",
                file=file,
                lines=lines[file],
                what=what,
            ),
        )
        for file, what in endings.items()
    )


def missed_rounds(rounds: Mapping[str, Collection[Instant]]) -> Iterator[Gap]:
    """A gap for each cluster that lacks rounds."""
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
            text = Text(
                "cluster {cluster}: rounds come each {seconds:.0f} s, and some are missing "
                "({number:,}); the longest time without one is from {earlier} to {later}",
                cluster=cluster,
                seconds=usual,
                number=absent,
                earlier=iso(to_datetime(earlier)),
                later=iso(to_datetime(later)),
            )
            yield Gap(ROUNDS_MISSING, text)


def silent_brokers(polls: ds.Dataset, window: Window) -> Iterator[Gap]:
    """A gap for each broker that never answered."""
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
        text = Text(
            "broker {broker} of cluster {cluster} never answered", broker=broker, cluster=cluster
        )
        yield Gap(BROKER_SILENT, text)


def first(gaps: Iterable[Gap]) -> list[Gap]:
    """The first gaps of one kind, and of very many how many more there are."""
    every = list(gaps)
    more = every[_MOST:]
    rest = (
        [Gap(more[0].kind, Text("and {number:,} more of these", number=len(more)))] if more else []
    )
    return every[:_MOST] + rest


def packed(gaps: Iterable[Gap]) -> dict[str, Any]:
    """The gaps as a summary has them: the parts of each text, ``[template, values, kind]``."""
    return {_KEY: [[*(*gap.text.parts(), {})[:2], gap.kind] for gap in gaps]}


def gaps_of(summary: Mapping[str, Any] | None) -> list[Gap]:
    """The gaps of a summary; none where it has none."""
    return [
        Gap(parts[2] if len(parts) > 2 else NOT_NAMED, from_parts(parts[:2]))
        for parts in (summary or {}).get(_KEY, ())
    ]
