"""Pieces of all shards -> report tables: what only shows where all shards are known.

``events``: what the groups saw of one event is one row. Groups on which the audit failed are named
with their stacks; where all fail, so does the run. Heartbeats with times of their own, taken for
rounds, are refused before anything is published: a shard says what its groups show, and a cluster
is refused whose groups, of those that show it, are events for the most part. In another cluster
such a group is not audited, and named.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.english import count
from rebalance_core.grouping import grouped

from ..config.masking import Masking
from ..declared.instants import SECOND, Instant, to_datetime
from ..declared.kinds import EVENT_KINDS, OF_ONE_GROUP
from ..engines.pieces import FOR_ALL, Piece, pack_rows, unpack_rows, unpack_value
from ..errors import InputError
from ..fold.slice_facts import Facts
from ..judge.observe.arrow_tables import Row, to_table
from ..judge.observe.evaluation import Failure
from ..judge.observe.event_times import GroupTimes
from ..judge.observe.in_words import dated
from ..judge.result.events import (
    bounded,
    collector_away,
    in_short,
    left_at_once,
    members_left,
    merged,
)
from ..languages.translated_rows import TEXTS, with_texts
from ..schemas import EVENTS, LONG, PROBLEMS
from ..texts.failures import keep_stack
from ..texts.shown import visible

_LOGGER = logging.getLogger(__name__)
#: The pieces of a shard with its failures, and with what its groups show of their times.
FAILED, TIMES = "failed groups", "times of groups"
#: The number of groups that show the same, by cluster and what it is.
TimesShown: TypeAlias = Counter[tuple[str, GroupTimes]]
#: The reason why a group of events is not audited.
REASON = (
    "each of its heartbeats has a time of its own in place of the time of a round; "
    "audit(..., round_seconds=60) puts them into rounds"
)
#: The most groups on which the audit failed that have a line each.
_MOST_REPORTED = 5
#: Collectors ask once a minute as a rule.
_USUAL_ROUND = 60
#: An event with which several groups lost all their members, and the groups' own that it is.
_Left: TypeAlias = tuple[Row, Sequence[Row]]


class StackError(Exception):
    """The stack of an error of a worker, as a cause has it."""


class AllGroupsFailedError(Exception):
    """The audit failed on every group: a defect of it, and of no input."""


def with_events(pieces: Iterable[Piece], facts: Facts, masking: Masking) -> Iterator[Piece]:
    """The pieces of the report tables, ``events`` at last, in time.

    What each group saw of an event is in the shards' pieces of ``events``; when nobody asked a
    cluster follows from the rounds of all its groups. An event of one group is whole in its shard:
    it stays the row that it is, for these are nearly all that there are, unless so many groups lost
    all their members with it that it is one of theirs. Then the problems that began with it name
    that one.
    """
    rows = [
        masking.mask_all(row)
        for cluster, rounds in facts.rounds.items()
        for row in collector_away(
            cluster, rounds, [group for where, group in facts.polled if where == cluster]
        )
    ]
    whole: list[pa.Table] = []
    problems: list[Piece] = []
    for piece in pieces:
        if piece.kind == EVENTS.name:
            seen = unpack_rows(piece.data)
            is_whole = pc.is_in(seen["kind"], pa.array(OF_ONE_GROUP))
            whole.append(seen.filter(is_whole))
            rows += table_rows(seen.filter(pc.invert(is_whole)))
        elif piece.kind == PROBLEMS.name:
            problems.append(piece)
        else:
            yield piece
    rounds = {masking.mask_all(of): sorted(times) for of, times in facts.rounds.items()}
    left, own = _left_at_once(pa.concat_tables([EVENTS.schema.empty_table(), *whole]), rounds)
    yield from _naming(problems, left, own) if left else problems
    rows = [bounded(row) for row in [*(event for event, _ in left), *merged(rows)]]
    events = pa.concat_tables([own, to_table(EVENTS, rows)])
    ends = (time for times in rounds.values() if times for time in (times[0], times[-1]))
    # One date is that of the report.
    if len({to_datetime(time).date() for time in ends}) > 1:
        texts = ("headline", "evidence")
        rows = [row | {name: dated(row[name]) for name in texts} for row in table_rows(events)]
        events = to_table(EVENTS, rows)
    yield from pack_rows(FOR_ALL, EVENTS.name, _in_time(events))


def _left_at_once(
    own: pa.Table, rounds: Mapping[str, Sequence[Instant]]
) -> tuple[list[_Left], pa.Table]:
    """The events with which several groups lost all their members, and the groups' own events
    without those that are theirs.
    """
    numbered = own.append_column("number", pa.array(range(own.num_rows), pa.int64()))
    emptied = numbered.filter(pc.is_valid(own["without_members_since"]))
    by_cluster = grouped((row["cluster"], row) for row in table_rows(emptied))
    left: list[_Left] = [
        (members_left(at_once, rounds[cluster]), at_once)
        for cluster, rows in by_cluster.items()
        for at_once in left_at_once(rows, rounds[cluster])
    ]
    theirs = pa.array([row["number"] for _, rows in left for row in rows], pa.int64())
    return left, own.filter(pc.invert(pc.is_in(numbered["number"], theirs)))


def _naming(problems: Iterable[Piece], left: Sequence[_Left], own: pa.Table) -> Iterator[Piece]:
    """The problems, those that began with an event of a group with the one that it is. ``own``: the
    groups' events that are there still, which may have happened to one of these groups, too.
    """
    every = [(row, event) for event, rows in left for row in rows]
    by_id = {row["event_id"]: event["event_id"] for row, event in every}
    by_words = {(row["event_id"], str(in_short(row))): in_short(event) for row, event in every}
    again = by_id.keys() & set(own["event_id"].to_pylist())
    for piece in problems:
        rows = []
        for row in table_rows(unpack_rows(piece.data)):
            ids = row["event_ids"]
            named = {by_id.get(id_, id_) for id_ in ids}
            words = (by_words.get((id_, row["began_with"])) for id_ in ids)
            row["event_ids"] = sorted(named | again.intersection(ids))
            row["began_with"] = next(filter(None, words), row["began_with"])
            rows.append({name: value for name, value in row.items() if name != TEXTS})
        yield from pack_rows(piece.shard, piece.kind, to_table(PROBLEMS, rows))


def _in_time(events: pa.Table) -> pa.Table:
    """The rows in the order of ``merged``."""
    rank = pc.index_in(events["kind"], pa.array([*EVENT_KINDS]))
    keys = ("begins", "cluster", "rank", "subject")
    in_time = events.append_column("rank", rank).sort_by([(key, "ascending") for key in keys])
    return in_time.drop_columns(["rank"])


def table_rows(table: pa.Table) -> Iterator[Row]:
    """The rows of a report table, its times as Instants, its texts as such."""
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(place, column.name, table[column.name].cast(LONG))
    rows = table.to_pylist()
    return map(with_texts, rows) if TEXTS in table.schema.names else iter(rows)


def _others(pieces: Iterable[Piece], kind: str, values: list[Any]) -> Iterator[Piece]:
    """The pieces of other kinds; the values of these are added to ``values``."""
    for piece in pieces:
        if piece.kind == kind:
            values.append(unpack_value(piece.data))
        else:
            yield piece


def without_failures(
    pieces: Iterable[Piece], groups: Collection[tuple[str, str]]
) -> Iterator[Piece]:
    """The pieces of the report tables; at last the failures are named.

    Raises AllGroupsFailedError where no group is left, of all that brokers were asked about: then
    nothing is published.
    """
    by_shard: list[list[Failure]] = []
    yield from _others(pieces, FAILED, by_shard)
    failures = sorted(chain.from_iterable(by_shard), reverse=True)
    if failures and {failure[:2] for failure in failures}.issuperset(groups):
        worst = failures[0]
        raise AllGroupsFailedError(
            f"the audit failed on every group, as on {visible(worst.consumer_group)}: "
            f"{worst.sentence}"
        ) from StackError(worst.stack)
    for failure in failures[:_MOST_REPORTED]:
        # Without a stack it is the input's: no defect to report.
        _LOGGER.warning(
            "group %s of cluster %s was not audited: %s%s",
            *map(visible, (failure.consumer_group, failure.cluster, failure.sentence)),
            failure.stack and f"; {keep_stack(failure.stack)}",
            exc_info=StackError(failure.stack) if failure.stack else None,
        )
    if more := len(failures[_MOST_REPORTED:]):
        _LOGGER.warning("%s more failed likewise", count(more, "group"))


def without_events(pieces: Iterable[Piece], expiry_seconds: int) -> Iterator[Piece]:
    """The other pieces; at last InputError where a cluster's heartbeats are events."""
    by_shard: list[TimesShown] = []
    yield from _others(pieces, TIMES, by_shard)
    shown = chain.from_iterable(times.elements() for times in by_shard)
    for cluster, cluster_times in sorted(grouped(shown).items()):
        periods = [group_times.period for group_times in cluster_times if group_times.are_events]
        if 2 * len(periods) > len(cluster_times):
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
