"""The last statement of every step that makes a table: its declared columns, of their types."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.schemas import Table


def conform(rows: DataFrame, table: Table) -> DataFrame:
    """The columns of the table's schema, in its order and of its types."""
    return rows.select(
        *[F.col(field.name).cast(field.dataType).alias(field.name) for field in table.schema]
    )
