"""Columns -> the snapshot tables' exact types."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ..schemas import Table

#: The approximate number of rows of a piece of a table: a giant group's day is not held as one.
PIECE_ROWS = 1 << 15


def table_of(table: Table, columns: Mapping[str, Any], **same: str) -> pa.Table:
    """The table's columns, each of its declared type and in its order.

    A column is a sequence of values (times in microseconds) or an Arrow array; ``same``: the
    columns in which all rows have one text.
    """
    rows = len(next(iter(columns.values())))
    every = {**columns, **{name: [value] * rows for name, value in same.items()}}
    return pa.Table.from_pydict(every, schema=table.schema)
