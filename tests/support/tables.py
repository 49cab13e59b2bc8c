"""A table that is in memory, written as the product writes its tables."""

from __future__ import annotations

import pyarrow as pa

from jobs.publish.table_writer import TableWriter
from jobs.schemas import Table
from jobs.storage import Location


def write_table(table: Table, rows: pa.Table, location: Location) -> int:
    """Writes a table that is in memory; the number of its rows."""
    with TableWriter(table, location) as writer:
        writer.add(rows)
        writer.end()
        return writer.rows
