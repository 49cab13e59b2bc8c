"""Tables in the driver's memory -> Parquet files, on any file system that PyArrow reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from jobs.masking import Masking
from jobs.schemas import Table
from jobs.storage import Location

_FILE = "part-0.parquet"
_TEXTS = (pa.string(), pa.binary())


def write_table(rows: pa.Table, location: Location) -> int:
    """Writes a table as the one file of its folder; the number of its rows.

    A table without any row has a file too: who reads it finds its columns.
    """
    location.file_system.create_dir(location.base, recursive=True)
    pq.write_table(
        rows, (location / _FILE).base, filesystem=location.file_system, write_page_checksum=True
    )
    return rows.num_rows


def copy_table(table: Table, source: ds.Dataset, location: Location, masking: Masking) -> int:
    """Copies a table batch by batch, its texts masked; the number of its rows."""
    location.file_system.create_dir(location.base, recursive=True)
    rows = 0
    path = (location / _FILE).base
    file_system = location.file_system
    with pq.ParquetWriter(
        path, table.schema, filesystem=file_system, write_page_checksum=True
    ) as writer:
        for batch in source.to_batches(columns=table.schema.names):
            if batch.num_rows:
                writer.write_batch(_masked(batch.cast(table.schema), masking))
                rows += batch.num_rows
    return rows


def _masked(batch: pa.RecordBatch, masking: Masking) -> pa.RecordBatch:
    columns = [
        masking.mask_column(column) if field.type in _TEXTS else column
        for column, field in zip(batch.columns, batch.schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


@dataclass(frozen=True)
class TablesInMemory:
    """Tables of a run that the driver has: each as its pieces."""

    declared: tuple[Table, ...]
    pieces: Mapping[str, list[pa.Table]]

    def names(self) -> tuple[str, ...]:
        """The names of the tables, those without any row among them."""
        return tuple(table.name for table in self.declared)

    def table(self, name: str) -> pa.Table:
        """One table, whole."""
        (declared,) = (table for table in self.declared if table.name == name)
        pieces = [piece.cast(declared.schema) for piece in self.pieces.get(name, [])]
        return pa.concat_tables([declared.schema.empty_table(), *pieces])

    def write(self, name: str, location: Location) -> int:
        """Writes one table as Parquet; the number of its rows."""
        return write_table(self.table(name), location)


def gather(unpacked: Iterable[tuple[str, pa.Table]]) -> dict[str, list[pa.Table]]:
    """By table its pieces."""
    pieces: dict[str, list[pa.Table]] = {}
    for name, piece in unpacked:
        pieces.setdefault(name, []).append(piece)
    return pieces
