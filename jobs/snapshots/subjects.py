"""The statements of a shard -> its rows of the snapshot tables: what travels to where they are."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..dumps.reading import statements_of
from ..pieces import Piece, pack_rows
from .groups import SnapshotTerms, group_tables
from .topics import topic_tables

#: About so many bytes of tables are held in a shard before they leave it.
_BYTES_AT_ONCE = 32 << 20


@dataclass(frozen=True)
class SubjectTables:
    """Makes the tables of the groups and topics of a shard."""

    terms: SnapshotTerms

    def make(self, pieces: Sequence[Piece]) -> Iterator[Piece]:
        """The pieces of the tables."""
        held: dict[str, list[pa.Table]] = defaultdict(list)
        size = 0
        for (is_topic, _, _), statements in sorted(statements_of(pieces).items()):
            made = topic_tables(statements) if is_topic else group_tables(statements, self.terms)
            for name, rows in made:
                held[name].append(rows)
                size += rows.nbytes
            if size >= _BYTES_AT_ONCE:
                yield from _packed(pieces[0].shard, held)
                size = 0
        yield from _packed(pieces[0].shard, held)


def _packed(shard: int, held: dict[str, list[pa.Table]]) -> Iterable[Piece]:
    for name, tables in held.items():
        yield from pack_rows(shard, name, pa.concat_tables(tables))
    held.clear()
