"""Sightings of events, by shard -> the table ``events``, where all shards are known."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from ..fold.kernel import Facts
from ..judge.events import bounded, collector_away, merged
from ..judge.tables import Row, to_table
from ..languages.rows import with_texts
from ..masking import Masking
from ..pieces import FOR_ALL, Piece, pack_rows, unpack_rows
from ..schemas import EVENTS, LONG


def with_events(pieces: Iterable[Piece], facts: Facts, masking: Masking) -> Iterator[Piece]:
    """The pieces of the report tables, ``events`` at last.

    What each group saw of an event is in the shards' pieces of ``events``; when nobody asked a
    cluster follows from the rounds of all its groups.
    """
    rows = [
        masking.mask_all(row)
        for cluster, rounds in facts.rounds.items()
        for row in collector_away(
            cluster, rounds, [group for of, group in facts.polled if of == cluster]
        )
    ]
    for piece in pieces:
        if piece.kind == EVENTS.name:
            rows += _rows(piece)
        else:
            yield piece
    events = to_table(EVENTS, [bounded(row) for row in merged(rows)])
    yield from pack_rows(FOR_ALL, EVENTS.name, events)


def _rows(piece: Piece) -> Iterator[Row]:
    table = unpack_rows(piece.data)
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(place, column.name, table[column.name].cast(LONG))
    return map(with_texts, table.to_pylist())
