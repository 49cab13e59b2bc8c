"""Sightings of events, by shard -> the table ``events``, where all shards are known."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.grouping import grouped

from ..config.masking import Masking
from ..declared.instants import Instant, to_datetime
from ..declared.kinds import EVENT_KINDS, OF_ONE_GROUP
from ..engines.pieces import FOR_ALL, Piece, pack_rows, unpack_rows
from ..fold.slice_facts import Facts
from ..judge.arrow_tables import Row, to_table
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
            rows += _rows(seen.filter(pc.invert(is_whole)))
        elif piece.kind == PROBLEMS.name:
            problems.append(piece)
        else:
            yield piece
    rounds = {masking.mask_all(of): sorted(times) for of, times in facts.rounds.items()}
    left, own = _left_at_once(pa.concat_tables([EVENTS.schema.empty_table(), *whole]), rounds)
    yield from _naming(problems, left, own) if left else problems
    rows = [bounded(row) for row in (*(event for event, _ in left), *merged(rows))]
    events = pa.concat_tables([own, to_table(EVENTS, rows)])
    ends = (each for times in rounds.values() if times for each in (times[0], times[-1]))
    # One date is that of the report.
    if len({to_datetime(each).date() for each in ends}) > 1:
        texts = ("headline", "evidence")
        rows = [row | {name: dated(row[name]) for name in texts} for row in _rows(events)]
        events = to_table(EVENTS, rows)
    yield from pack_rows(FOR_ALL, EVENTS.name, _in_time(events))


#: An event with which several groups lost all their members, and the groups' own that it is.
_Left: TypeAlias = tuple[Row, Sequence[Row]]


def _left_at_once(
    own: pa.Table, rounds: Mapping[str, Sequence[Instant]]
) -> tuple[list[_Left], pa.Table]:
    """The events with which several groups lost all their members, and the groups' own events
    without those that are theirs.
    """
    numbered = own.append_column("number", pa.array(range(own.num_rows), pa.int64()))
    emptied = numbered.filter(pc.is_valid(own["without_members_since"]))
    by_cluster = grouped((row["cluster"], row) for row in _rows(emptied))
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
        for row in _rows(unpack_rows(piece.data)):
            ids = row["event_ids"]
            named = {by_id.get(id_, id_) for id_ in ids}
            words = (by_words.get((id_, row["began_with"])) for id_ in ids)
            row["event_ids"] = sorted(named | again.intersection(ids))
            row["began_with"] = next(filter(None, words), row["began_with"])
            rows.append({name: each for name, each in row.items() if name != TEXTS})
        yield from pack_rows(piece.shard, piece.kind, to_table(PROBLEMS, rows))


def _in_time(events: pa.Table) -> pa.Table:
    """The rows in the order of ``merged``."""
    rank = pc.index_in(events["kind"], pa.array([*EVENT_KINDS]))
    keys = ("begins", "cluster", "rank", "subject")
    in_time = events.append_column("rank", rank).sort_by([(key, "ascending") for key in keys])
    return in_time.drop_columns(["rank"])


def _rows(table: pa.Table) -> Iterator[Row]:
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(place, column.name, table[column.name].cast(LONG))
    return map(with_texts, table.to_pylist())
