"""Columns -> the snapshot tables' exact types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..schemas import Table

#: About how many rows a piece of a table has: a giant group's day is not held as one.
PIECE_ROWS = 1 << 15


def table_of(table: Table, rows: int, columns: dict[str, Any]) -> pa.Table:
    """The table's columns, each of its declared type and in its order.

    A column is a sequence of values (times in microseconds), an Arrow array, or one text or None
    that all rows have.
    """
    return pa.Table.from_arrays(
        [_column(columns[field.name], rows, field) for field in table.schema], schema=table.schema
    )


def table_of_rows(table: Table, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """The table from rows by column name; a column that a row leaves out is null."""
    names = table.schema.names
    return table_of(table, len(rows), {name: [row.get(name) for row in rows] for name in names})


def _column(values: Any, rows: int, field: pa.Field[Any]) -> pa.Array[Any]:
    if isinstance(values, pa.Array):
        return values
    if values is None or isinstance(values, str):
        values = [values] * rows
    column: pa.Array[Any] = pa.array(values, type=field.type)
    return column
