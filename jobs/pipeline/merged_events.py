"""Sightings of events, by shard -> the table ``events``, where all shards are known."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ..config.masking import Masking
from ..declared.instants import to_datetime
from ..declared.kinds import EVENT_KINDS, OF_ONE_GROUP
from ..engines.pieces import FOR_ALL, Piece, pack_rows, unpack_rows
from ..fold.kernel import Facts
from ..judge.arrow_tables import Row, to_table
from ..judge.events import bounded, collector_away, merged
from ..judge.in_words import dated
from ..languages.translated_rows import with_texts
from ..schemas import EVENTS, LONG


def with_events(pieces: Iterable[Piece], facts: Facts, masking: Masking) -> Iterator[Piece]:
    """The pieces of the report tables, ``events`` at last, in time.

    What each group saw of an event is in the shards' pieces of ``events``; when nobody asked a
    cluster follows from the rounds of all its groups. An event of one group is whole in its shard:
    it stays the row that it is, for these are nearly all that there are.
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
    events = pa.concat_tables([*whole, to_table(EVENTS, [bounded(row) for row in merged(rows)])])
    ends = (
        each for rounds in facts.rounds.values() if rounds for each in (min(rounds), max(rounds))
    )
    # One date is that of the report.
    if len({to_datetime(each).date() for each in ends}) > 1:
        texts = ("headline", "evidence")
        rows = [row | {name: dated(row[name]) for name in texts} for row in _rows(events)]
        events = to_table(EVENTS, rows)
    yield from pack_rows(FOR_ALL, EVENTS.name, _in_time(events))


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
