"""Gaps of the input: dumps that end early, rounds that nobody asked, brokers that never answered.

What is not there cannot be found, so an all-clear is worth no more than these gaps let it be.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import quantiles
from typing import Any, NamedTuple

from rebalance_core.english import MOST_NAMES, agreeing, names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text, from_parts

from ..declared.instants import SECOND, Instant, to_instant

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
#: Gaps in a cluster's rounds: some were not collected, in between, at the beginning, at the end.
ROUNDS_MISSING = "ROUNDS_MISSING"
ROUNDS_BEGIN_LATE = "ROUNDS_BEGIN_LATE"
ROUNDS_END_EARLY = "ROUNDS_END_EARLY"
#: Facts that the lists lack: addresses that distinguish connections, a broker that clients ask.
ADDRESSES_MISSING = "ADDRESSES_MISSING"
BROKER_NOT_ROUTED = "BROKER_NOT_ROUTED"
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
    *(ROUNDS_MISSING, ROUNDS_BEGIN_LATE, ROUNDS_END_EARLY),
    *(ADDRESSES_MISSING, BROKER_NOT_ROUTED),
    *(BROKER_SILENT, OFFSETS_MISSING, NAMESERVER_SILENT),
    *(CLUSTER_GONE, GROUP_GONE, BROKER_GONE, NAMESERVER_GONE, NOT_NAMED),
)
#: The most sentences that are kept of each kind; then one says how many more there are.
_MOST_OF_A_KIND = 20
#: The fewest rounds that show how often they come.
_LEAST_ROUNDS = 5
#: A round is missed where the next one comes later than most by half of their distance.
ONE_IS_LATE = 1.5
#: The rounds, and the time, that may be missing at the edges of a night: files come late, and a
#: collector that is started anew needs a moment.
_ROUNDS_AT_EDGES = 3
_TIME_AT_EDGES = 600 * SECOND


class Gap(NamedTuple):
    """One thing that the input lacks: its kind (one of ``GAPS``), and a sentence with figures."""

    kind: str
    text: Text


def usual_seconds(times: Sequence[Instant]) -> float | None:
    """The usual time between rounds, in seconds; None: there are too few to know it."""
    if len(times) < _LEAST_ROUNDS:
        return None
    # Most gaps of two collectors with two schedules are the longer ones.
    return quantiles([(later - earlier) / SECOND for earlier, later in pairwise(times)], n=4)[2]


def missed_rounds(
    rounds: Mapping[str, Collection[Instant]], persistence_seconds: int
) -> Iterator[Gap]:
    """A gap for each cluster that lacks rounds between its first and its last, for so long that
    what lasts may have come and gone.

    Where a round comes a little late nothing is missing that the audit could find.
    """
    for cluster, of_cluster in sorted(rounds.items()):
        times = sorted(of_cluster)
        usual = usual_seconds(times)
        if usual is None:
            continue
        gaps = [(later - earlier, earlier, later) for earlier, later in pairwise(times)]
        missed = [each for each in gaps if each[0] > ONE_IS_LATE * usual * SECOND]
        if missed and max(missed)[0] >= persistence_seconds * SECOND:
            _, earlier, later = max(missed)
            absent = sum(round(gap / (usual * SECOND)) - 1 for gap, _, _ in missed)
            text = Text(
                "cluster {cluster}: a round comes every {seconds:.0f} s, and some are missing "
                "({number:,}); the longest gap is from {earlier} to {later}",
                cluster=cluster,
                seconds=usual,
                number=absent,
                earlier=time_text(earlier),
                later=time_text(later),
            )
            yield Gap(ROUNDS_MISSING, text)


def short_nights(
    rounds: Mapping[str, Collection[Instant]], since: Instant | None, until: Instant | None
) -> Iterator[Gap]:
    """A gap for each cluster whose rounds begin well after the window, or another cluster, and for
    each whose rounds end well before; ``since``, ``until``: of the window, None where it is open.

    Well: more than three of its usual intervals, and more than ten minutes. For a cluster with so
    few rounds that nobody knows its interval only the other clusters show what is missing: it was
    away for more than half of the time that they go over. Clusters whose rounds are of other times
    altogether show nothing of each other.
    """
    times = {cluster: sorted(each) for cluster, each in rounds.items() if each}
    usual = {cluster: usual_seconds(each) for cluster, each in times.items()}
    for cluster, own in sorted(times.items()):
        others = [
            (each[0], each[-1])
            for name, each in times.items()
            if usual[name] and name != cluster and each[0] <= own[-1] and own[0] <= each[-1]
        ]
        interval = usual[cluster]
        edges = [(since or own[0], until or own[-1])] if interval else []
        begin = min(at for at, _ in [*edges, *others, (own[0], own[-1])])
        end = max(at for _, at in [*edges, *others, (own[0], own[-1])])
        most = _ROUNDS_AT_EDGES * interval * SECOND if interval else (end - begin) / 2
        most = max(most, _TIME_AT_EDGES)
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


def times_ahead(ahead: Mapping[str, tuple[int, Instant, Instant]]) -> Iterator[Gap]:
    """A gap for each cluster with rows of the future, which are in no run until then; ``ahead``:
    their number, and the first and the last of their times.
    """
    for cluster, (number, begins, ends) in sorted(ahead.items()):
        text = agreeing(
            number,
            "cluster {cluster}: {rows:,} [row|rows] from {first} to {last} [is|are] in the "
            "future by this machine's clock, and not audited: correct the clock that stamped "
            "them",
            cluster=cluster,
            rows=number,
            first=time_text(begins),
            last=time_text(ends),
        )
        yield Gap(TIMES_AHEAD, text)


def facts_missing(
    indistinct: Iterable[tuple[str, str]], never_routed: Iterable[tuple[str, str, int]]
) -> Iterator[Gap]:
    """A gap for each cluster with groups whose members' addresses distinguish no connections, and
    for each broker that gave lists and is in no route.
    """
    for cluster, groups in sorted(grouped(indistinct).items()):
        text = Text(
            "cluster {cluster}: members of {groups} have no address of their own, so that two "
            "processes with one client id look like one: write the address and port of each "
            "connection (client_addr)",
            cluster=cluster,
            groups=names(sorted(groups), MOST_NAMES),
        )
        yield Gap(ADDRESSES_MISSING, text)
    for cluster, name, broker_id in sorted(never_routed):
        text = Text(
            "broker {broker} of cluster {cluster} lists members, and no route has a broker of this "
            "id, so that no client asks it: whom it lists does not count; correct broker_id where "
            "it is wrong",
            broker=f"{name}/{broker_id}",
            cluster=cluster,
        )
        yield Gap(BROKER_NOT_ROUTED, text)


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
