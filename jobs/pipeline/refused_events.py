"""Heartbeats with times of their own, taken for rounds, are refused before anything is published.

A shard says what its groups show; the driver refuses a cluster whose groups, of those that show
it, are events for the most part. In another cluster such a group is not audited, and named.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

from rebalance_core.grouping import grouped

from ..declared.instants import SECOND
from ..engines.pieces import FOR_ALL, Piece, pack_value, unpack_value
from ..errors import InputError
from ..judge.observe.event_times import GroupTimes
from ..texts.shown import visible

#: The piece with what the groups of a shard show, by cluster.
_TIMES = "times of groups"
#: Collectors ask once a minute as a rule.
_USUAL_ROUND = 60

#: The reason why a group of events is not audited.
REASON = (
    "each of its heartbeats has a time of its own in place of the time of a round; "
    "audit(..., round_seconds=60) puts them into rounds"
)


#: The number of groups that show the same, by cluster and what it is.
TimesShown: TypeAlias = Counter[tuple[str, GroupTimes]]


def pack_times(shown: TimesShown) -> Iterator[Piece]:
    """The piece of a shard; none where nothing shows it."""
    if shown:
        yield pack_value(FOR_ALL, _TIMES, shown)


def without_events(pieces: Iterable[Piece], expiry_seconds: int) -> Iterator[Piece]:
    """The other pieces; at last InputError where a cluster's heartbeats are events."""
    shown: TimesShown = Counter()
    for piece in pieces:
        if piece.kind == _TIMES:
            shown += unpack_value(piece.data)
        else:
            yield piece
    for cluster, of_groups in sorted(grouped(shown.elements()).items()):
        periods = [group_times.period for group_times in of_groups if group_times.are_events]
        if 2 * len(periods) > len(of_groups):
            raise _refusal(cluster, round(float(np.median(periods)) / SECOND), expiry_seconds)


def _refusal(cluster: str, period: int, expiry_seconds: int) -> InputError:
    length = _USUAL_ROUND * min(max(round(period / _USUAL_ROUND), 1), 60)
    more = ""
    if period > expiry_seconds:
        # Else they would all expire before they come again.
        more = f", settings={{'heartbeat_expiry_seconds': {2 * max(period, length) + 10}}}"
    typed = f"round_seconds={length}{more}"
    return InputError(
        f"heartbeats of cluster {visible(cluster)}: expected snapshot_time to be the round of "
        "polling, one time for all whom the brokers list in it; came a time of its own for each: "
        f"connections come again every {period} s, and hardly ever two at one time. Taken for "
        "rounds, all of them would join and leave all the time: nothing was published. Put them "
        f"into rounds: rebalance_audit.spark.audit(heartbeats, topic_routes, {typed}), or "
        f"rebalance_audit.audit({{'heartbeats': ..., 'topic_routes': ...}}, {typed})",
        "; the command line has no such option, and takes what was put into rounds before",
    )
