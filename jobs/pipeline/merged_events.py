"""Sightings of events, by shard -> the table ``events``, where all shards are known."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.grouping import grouped

from ..config.masking import Masking
from ..declared.instants import Instant
from ..declared.kinds import EVENT_KINDS, OF_ONE_GROUP
from ..engines.pieces import FOR_ALL, Piece, pack_rows, unpack_rows
from ..fold.kernel import Facts
from ..judge.arrow_tables import Row, to_table
from ..judge.events import bounded, collector_away, left_at_once, members_left, merged
from ..languages.translated_rows import with_texts
from ..schemas import EVENTS, LONG


def with_events(pieces: Iterable[Piece], facts: Facts, masking: Masking) -> Iterator[Piece]:
    """The pieces of the report tables, ``events`` at last, in time.

    What each group saw of an event is in the shards' pieces of ``events``; when nobody asked a
    cluster follows from the rounds of all its groups. An event of one group is whole in its shard:
    it stays the row that it is, for these are nearly all that there are, unless so many groups lost
    all their members with it that it is one of theirs.
    """
    rows = [
        masking.mask_all(row)
        for cluster, rounds in facts.rounds.items()
        for row in collector_away(
            cluster, rounds, [group for where, group in facts.polled if where == cluster]
        )
    ]
    whole: list[pa.Table] = []
    for piece in pieces:
        if piece.kind == EVENTS.name:
            seen = unpack_rows(piece.data)
            is_whole = pc.is_in(seen["kind"], pa.array(OF_ONE_GROUP))
            whole.append(seen.filter(is_whole))
            rows += _rows(seen.filter(pc.invert(is_whole)))
        else:
            yield piece
    own = pa.concat_tables([EVENTS.schema.empty_table(), *whole])
    rounds = {masking.mask_all(of): sorted(times) for of, times in facts.rounds.items()}
    left, own = _members_left(own, rounds)
    rows = [bounded(row) for row in (*left, *merged(rows))]
    events = pa.concat_tables([own, to_table(EVENTS, rows)])
    yield from pack_rows(FOR_ALL, EVENTS.name, _in_time(events))


def _members_left(
    own: pa.Table, rounds: Mapping[str, Sequence[Instant]]
) -> tuple[list[Row], pa.Table]:
    """The events with which several groups lost all their members, and the groups' own events
    without those that are theirs.
    """
    numbered = own.append_column("number", pa.array(range(own.num_rows)))
    emptied = numbered.filter(pc.is_valid(own["without_members_since"]))
    by_cluster = grouped((row["cluster"], row) for row in _rows(emptied))
    events, theirs = [], []
    for cluster, rows in by_cluster.items():
        for at_once in left_at_once(rows, rounds[cluster]):
            events.append(members_left(at_once, rounds[cluster]))
            theirs += [row["number"] for row in at_once]
    is_theirs = pc.is_in(numbered["number"], pa.array(theirs, pa.int64()))
    return events, own.filter(pc.invert(is_theirs))


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
