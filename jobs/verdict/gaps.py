"""Gaps of the input, by kind: dumps that end early, rounds that nobody asked, brokers that never
answered.

What is not there cannot be found, so an all-clear is worth no more than these gaps let it be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from rebalance_core.english import agreeing
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text, from_parts

from ..config.window import Window
from ..declared.instants import Instant, to_instant
from ..schemas import Table

if TYPE_CHECKING:  # it imports pandas, some 55 MiB
    import pyarrow.dataset as ds

#: The key of the summary.
_KEY = "incomplete"
#: The kinds of gaps. Of dump files (``pipeline/lost_lines.py``): one ends early, is empty, has
#: bytes that a crash left, has much that no collector wrote, has lines that are too long to be
#: read; of all files too much was not understood.
DUMP_CUT = "DUMP_CUT"
DUMP_EMPTY = "DUMP_EMPTY"
NUL_BYTES = "NUL_BYTES"
DUMP_DAMAGED = "DUMP_DAMAGED"
LINE_TOO_LONG = "LINE_TOO_LONG"
LINES_LOST = "LINES_LOST"
#: Rows of a snapshot table that break its contract.
ROWS_LOST = "ROWS_LOST"
#: Gaps in a cluster's times: lines of another age than most, and rows of the future.
TIMES_APART = "TIMES_APART"
TIMES_AHEAD = "TIMES_AHEAD"
#: Gaps in a cluster's rounds: nothing can be seen to last in them; several have one time; some were
#: not collected, in between, at the beginning, at the end.
ROUNDS_TOO_SHORT = "ROUNDS_TOO_SHORT"
SNAPSHOT_TIME_STANDS = "SNAPSHOT_TIME_STANDS"
ROUNDS_MISSING = "ROUNDS_MISSING"
ROUNDS_BEGIN_LATE = "ROUNDS_BEGIN_LATE"
ROUNDS_END_EARLY = "ROUNDS_END_EARLY"
#: Gaps of those that did not answer: about lists, about offsets, about routes.
BROKER_SILENT = "BROKER_SILENT"
OFFSETS_MISSING = "OFFSETS_MISSING"
NAMESERVER_SILENT = "NAMESERVER_SILENT"
#: Gaps against the run before, which had more (``gone.py``).
CLUSTER_GONE = "CLUSTER_GONE"
GROUP_GONE = "GROUP_GONE"
BROKER_GONE = "BROKER_GONE"
NAMESERVER_GONE = "NAMESERVER_GONE"
#: The gap of a summary that an earlier version wrote, which has no kinds.
NOT_NAMED = "NOT_NAMED"
#: Every kind, in the order in which people read of them.
GAPS = (
    *(DUMP_CUT, DUMP_EMPTY, NUL_BYTES, DUMP_DAMAGED, LINE_TOO_LONG, LINES_LOST),
    ROWS_LOST,
    *(TIMES_APART, TIMES_AHEAD),
    ROUNDS_TOO_SHORT,
    SNAPSHOT_TIME_STANDS,
    *(ROUNDS_MISSING, ROUNDS_BEGIN_LATE, ROUNDS_END_EARLY),
    *(BROKER_SILENT, OFFSETS_MISSING, NAMESERVER_SILENT),
    *(CLUSTER_GONE, GROUP_GONE, BROKER_GONE, NAMESERVER_GONE, NOT_NAMED),
)
_SPAN: Any = [("snapshot_time", each) for each in ("count", "min", "max")]
#: The most sentences that are kept of each kind; then one says how many more there are.
_MOST_OF_A_KIND = 20


class Gap(NamedTuple):
    """One thing that the input lacks: its kind (one of ``GAPS``), and a sentence with figures."""

    kind: str
    text: Text


def times_ahead(tables: Iterable[tuple[Table, ds.Dataset]], future: datetime) -> Iterator[Gap]:
    """A gap for each cluster with rows of the future; these are in no run until then."""
    rows: dict[str, int] = defaultdict(int)
    times: dict[str, list[datetime]] = defaultdict(list)
    names = ["cluster", "snapshot_time"]
    for table, read in tables:
        if not set(names) <= set(read.schema.names):
            continue  # the contract's check reports what is missing
        ahead = Window(since=future).filter_of(table, read.schema)
        for batch in read.to_batches(columns=names, filter=ahead, fragment_readahead=1):
            of_clusters = pa.Table.from_batches([batch]).group_by("cluster")
            for row in of_clusters.aggregate(_SPAN).to_pylist():
                cluster = str(row["cluster"])
                rows[cluster] += row["snapshot_time_count"]
                times[cluster] += [row["snapshot_time_min"], row["snapshot_time_max"]]
    for cluster, number in sorted(rows.items()):
        text = agreeing(
            number,
            "cluster {cluster}: {rows:,} [row|rows] from {first} to {last} [is|are] in the "
            "future by this machine's clock, and not audited: correct the clock that stamped "
            "them",
            cluster=cluster,
            rows=number,
            first=time_text(min(times[cluster])),
            last=time_text(max(times[cluster])),
        )
        yield Gap(TIMES_AHEAD, text)


def time_text(time: Instant | datetime) -> Text:
    """The moment as a sentence has it."""
    return Text("{at:dayZ}", at=time if isinstance(time, int) else to_instant(time))


def first(gaps: Iterable[Gap]) -> list[Gap]:
    """The first gaps of each kind, and of very many how many more there are."""
    shown = []
    for kind, of_kind in grouped((each.kind, each) for each in gaps).items():
        shown += of_kind[:_MOST_OF_A_KIND]
        if more := len(of_kind[_MOST_OF_A_KIND:]):
            shown.append(Gap(kind, Text("and {number:,} more of these", number=more)))
    return shown


def packed(gaps: Iterable[Gap]) -> dict[str, Any]:
    """The gaps as a summary has them: the parts of each text, ``[template, values, kind]``."""
    return {_KEY: [[*(*gap.text.parts(), {})[:2], gap.kind] for gap in gaps]}


def gaps_of(summary: Mapping[str, Any] | None) -> list[Gap]:
    """The gaps of a summary; none where it has none."""
    return [
        Gap(parts[2] if len(parts) > 2 else NOT_NAMED, from_parts(parts[:2]))
        for parts in (summary or {}).get(_KEY, ())
    ]
