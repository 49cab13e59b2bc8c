"""Rows of DataFrames that were prepared for an audit, as its fold gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.schemas import Table
from jobs.spark.dataframe_rows import unpacked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def arrived(of: Table, rows: DataFrame) -> pa.Table:
    """The rows of a prepared table after they travelled, with its columns that the fold reads."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - most need no Spark

    values = [row.asDict(recursive=True) for row in rows.collect()]
    travelling = pa.Table.from_pylist(values, to_arrow_schema(rows.schema))
    came = pa.Table.from_batches(unpacked(of, iter(travelling.to_batches())))
    return came.cast(
        pa.schema([of.schema.field(name).with_nullable(True) for name in came.column_names])
    )
