"""Pieces of tables -> Parquet files, on any file system that PyArrow reaches.

The driver writes them, from the pieces as they come: no worker needs a way to the reports.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq

from ..config.masking import Masking
from ..engines.pieces import FOR_ALL, Piece, pack_rows, unpack_rows
from ..schemas import Table
from ..storage import Location

#: A file is ended at about this size: whoever reads it may hold it whole.
_BYTES_OF_A_FILE = 128 << 20
#: Rows are gathered up to about this size before they are written as a group.
_BYTES_OF_A_GROUP = 32 << 20


def write_tables(
    pieces: Iterable[Piece],
    tables: Sequence[Table],
    place_of: Callable[[str], Location],
    seen: Callable[[str, pa.Table], object] = lambda *_: None,
) -> dict[str, int]:
    """Writes the pieces of tables as they come; by table the number of its rows.

    ``place_of``: by table its folder. ``seen`` gets all rows as they pass. A table without any row
    has a file too: its reader finds the columns.
    """
    with ExitStack() as stack:
        writers = {
            table.name: stack.enter_context(TableWriter(table, place_of(table.name)))
            for table in tables
        }
        for piece in pieces:
            rows = unpack_rows(piece.data)
            writers[piece.kind].add(rows)
            seen(piece.kind, rows)
        for writer in writers.values():
            writer.end()
        return {name: writer.rows for name, writer in writers.items()}


def masked_pieces(table: Table, rows: pa.Table, masking: Masking) -> Iterator[Piece]:
    """The rows of a table, their texts masked, as pieces."""
    columns = [
        masking.mask_column(column.combine_chunks()) for column in rows.cast(table.schema).columns
    ]
    masked = pa.Table.from_arrays(columns, schema=table.schema)
    yield from pack_rows(FOR_ALL, table.name, masked)


class TableWriter(ExitStack):
    """The files of one table: ``part-0.parquet`` and, of many rows, further ones."""

    def __init__(self, table: Table, location: Location) -> None:
        super().__init__()
        self.rows = 0
        self._schema = table.schema
        self._location = location
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._files = 0
        #: The file under way.
        self._open: tuple[pa.NativeFile, pq.ParquetWriter] | None = None

    def add(self, rows: pa.Table) -> None:
        """Further rows."""
        if not rows.num_rows:
            return
        self.rows += rows.num_rows
        self._held.append(rows.cast(self._schema))
        self._held_bytes += rows.nbytes
        if self._held_bytes >= _BYTES_OF_A_GROUP:
            self._write()

    def end(self) -> None:
        """Writes what is left, and ends the last file."""
        if self._held or not self._files:
            self._write()
        self.close()

    def _write(self) -> None:
        if self._open is None:
            files = self._location.file_system
            self._location.make_folder()
            path = (self._location / f"part-{self._files}.parquet").base
            stream = self.enter_context(files.open_output_stream(path, compression=None))
            writer = pq.ParquetWriter(stream, self._schema, write_page_checksum=True)
            self._open = stream, self.enter_context(writer)
            self._files += 1
        stream, writer = self._open
        writer.write_table(pa.concat_tables([self._schema.empty_table(), *self._held]))
        self._held, self._held_bytes = [], 0
        if stream.tell() >= _BYTES_OF_A_FILE:
            self.close()
            self._open = None
