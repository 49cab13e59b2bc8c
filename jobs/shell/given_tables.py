"""Snapshot tables that a caller gives by their names."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from rebalance_core.errors import near_names

from ..errors import InputError
from ..schemas import HEARTBEATS, SNAPSHOT_TABLES, TOPIC_ROUTES


def check_named(tables: Iterable[str]) -> None:
    """InputError for a name that no snapshot table has, and where one is missing."""
    names = [table.name for table in SNAPSHOT_TABLES]
    for name in tables:
        if name not in names:
            raise InputError(f"no snapshot table {name!r}: {near_names(name, names)}")
    for table in (HEARTBEATS, TOPIC_ROUTES):
        if table.name not in tables:
            raise InputError(
                f"no table {table.name}: expected heartbeats, the lists of the brokers, and "
                "topic_routes, which have the queues"
            )


def as_arrow(name: str, rows: Any) -> pa.Table:
    """The rows of a snapshot table, of pandas, Polars or Arrow; else InputError."""
    if hasattr(rows, "convert_dtypes"):
        # pandas: numbers beside a null are not floats.
        try:
            return pa.Table.from_pandas(rows.convert_dtypes(), preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(
                f"{name}: expected values of one type in each column, came {'; '.join(error.args)}"
            ) from error
    if isinstance(rows, pa.Table) or hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    raise InputError(
        f"{name}: expected a DataFrame, the name of a table or view in a session of Spark, or a "
        f"table of pandas, Polars or Arrow, came {type(rows).__name__}"
    )
