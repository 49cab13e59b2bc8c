"""The statements of a shard -> its rows of the snapshot tables: what travels to where they are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rebalance_core.grouping import grouped

from ..dumps.reading import statements_of
from ..engines.pieces import Piece, in_parts, pack_rows
from .groups import SnapshotTerms, group_tables
from .topics import topic_tables

#: The approximate bytes of tables that are held in a shard before they leave it.
_BYTES_AT_ONCE = 32 << 20


@dataclass(frozen=True)
class SubjectTables:
    """Makes the tables of the groups and topics of a shard."""

    terms: SnapshotTerms

    def make_tables(self, pieces: Sequence[Piece]) -> Iterator[Piece]:
        """The pieces of the tables."""
        made = self._tables(pieces)
        for tables in in_parts(made, _BYTES_AT_ONCE, lambda each: each[1].nbytes):
            for name, of_table in grouped(tables).items():
                yield from pack_rows(pieces[0].shard, name, pa.concat_tables(of_table))
            tables.clear()

    def _tables(self, pieces: Sequence[Piece]) -> Iterator[tuple[str, pa.Table]]:
        for (is_topic, _, _), statements in sorted(statements_of(pieces).items()):
            yield from (
                topic_tables(statements) if is_topic else group_tables(statements, self.terms)
            )
