"""Gaps of the input, by kind.

Dumps that end early, rounds that nobody asked, brokers that never answered: what is not there
cannot be found, so an all-clear is worth no more than these gaps let it be.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from rebalance_core.english import MOST_NAMES, agreeing, names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text, from_parts

from ..declared.instants import Instant, to_instant

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
#: Most lines of one part of the input were refused, or lists of members for so long that what lasts
#: was missed (``silence.py``).
LINES_REFUSED = "LINES_REFUSED"
LISTS_REFUSED = "LISTS_REFUSED"
#: A server gave errors alone where it was asked for one kind of answers.
ANSWERS_FAILED = "ANSWERS_FAILED"
#: A collector left things out of its rounds (``silence.py``).
LEFT_OUT = "LEFT_OUT"
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
#: Two names of clusters that differ by blanks alone: one cluster, cut in two.
CLUSTERS_ALIKE = "CLUSTERS_ALIKE"
#: Facts that the lists lack: addresses that distinguish connections, a broker that clients ask.
ADDRESSES_MISSING = "ADDRESSES_MISSING"
BROKER_NOT_ROUTED = "BROKER_NOT_ROUTED"
#: Gaps of those that did not answer: about lists, about offsets, about routes.
BROKER_SILENT = "BROKER_SILENT"
OFFSETS_MISSING = "OFFSETS_MISSING"
NAMESERVER_SILENT = "NAMESERVER_SILENT"
#: Gaps against the run before, which had more (``publish/earlier.py``).
CLUSTER_GONE = "CLUSTER_GONE"
GROUP_GONE = "GROUP_GONE"
BROKER_GONE = "BROKER_GONE"
NAMESERVER_GONE = "NAMESERVER_GONE"
#: The gap of a summary that an earlier version wrote, which has no kinds.
NOT_NAMED = "NOT_NAMED"
#: Every kind, in the order in which people read of them.
GAPS = (
    *(DUMP_CUT, DUMP_EMPTY, NUL_BYTES, DUMP_DAMAGED, LINE_TOO_LONG, LINES_LOST),
    LINES_REFUSED,
    LISTS_REFUSED,
    ANSWERS_FAILED,
    LEFT_OUT,
    ROWS_LOST,
    *(TIMES_APART, TIMES_AHEAD),
    CLUSTERS_ALIKE,
    ROUNDS_TOO_SHORT,
    SNAPSHOT_TIME_STANDS,
    *(ROUNDS_MISSING, ROUNDS_BEGIN_LATE, ROUNDS_END_EARLY),
    *(ADDRESSES_MISSING, BROKER_NOT_ROUTED),
    *(BROKER_SILENT, OFFSETS_MISSING, NAMESERVER_SILENT),
    *(CLUSTER_GONE, GROUP_GONE, BROKER_GONE, NAMESERVER_GONE, NOT_NAMED),
)
#: Gaps in the rounds alone, of which whoever was asked in each knows more.
OF_ROUNDS = frozenset({ROUNDS_TOO_SHORT, ROUNDS_MISSING, ROUNDS_BEGIN_LATE, ROUNDS_END_EARLY})
#: And in the table ``gaps``: topics that were not audited, findings that nobody looked for.
UNAUDITED_TOPICS, LEFT_OPEN = "NOT_AUDITED", "LEFT_OPEN"

#: The most sentences that are kept of each kind; then one says how many more there are.
_MOST_OF_A_KIND = 20


#: A blank that distinguishes no two names: any but one between two numbers.
_BLANK = re.compile(r"(?<!\d) | (?!\d)")


class Gap(NamedTuple):
    """One thing that the input lacks: its kind (one of ``GAPS``), and a sentence with figures."""

    kind: str
    text: Text


def times_ahead(ahead: Mapping[str, tuple[int, Instant, Instant]]) -> Iterator[Gap]:
    """A gap for each cluster with rows of the future, which are in no run until then; ``ahead``:
    their number, and the first and the last of their times.
    """
    for cluster, (number, first_seen, last_seen) in sorted(ahead.items()):
        text = agreeing(
            number,
            "cluster {cluster}: {rows:,} [row|rows] from {first} to {last} [is|are] in the "
            "future by this machine's clock, and not audited: correct the clock that stamped "
            "them",
            cluster=cluster,
            rows=number,
            first=time_text(first_seen),
            last=time_text(last_seen),
        )
        yield Gap(TIMES_AHEAD, text)


def clusters_alike(clusters: Iterable[str]) -> Iterator[Gap]:
    """A gap for each name of clusters that the input writes with blanks and without.

    Each is audited by itself, so that members and servers of the other are missing in both.

    >>> [str(gap.text)[:35] for gap in clusters_alike(["c", "c ", "r 1 11", "r 11 1"])]
    ['clusters "c", "c␣" differ by blanks']
    """
    in_order = sorted(set(clusters))
    alike = grouped((_BLANK.sub("", " ".join(name.split())), name) for name in in_order)
    for alike_names in alike.values():
        if len(alike_names) > 1:
            shown = [re.sub(r"\s", "␣", f'"{name}"') for name in alike_names]
            text = Text(
                "clusters {clusters} differ by blanks (␣) alone, so each was audited without the "
                "members and servers of the other: if they are one, give it one name where the "
                "dumps are made",
                clusters=names(shown, MOST_NAMES),
            )
            yield Gap(CLUSTERS_ALIKE, text)


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
    for kind, gaps_of_kind in grouped((gap.kind, gap) for gap in gaps).items():
        shown += gaps_of_kind[:_MOST_OF_A_KIND]
        if more := len(gaps_of_kind[_MOST_OF_A_KIND:]):
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
