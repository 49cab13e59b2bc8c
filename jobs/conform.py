"""The last statement of every step that makes a table: its declared columns, of their types."""

from __future__ import annotations

from pyspark.sql import DataFrame

from jobs.schemas import Table


def conform(rows: DataFrame, table: Table) -> DataFrame:
    """The columns of the table's schema, in its order and of its types."""
    # As text: an expression built call by call costs a small job more than running it.
    return rows.selectExpr(
        *[
            f"CAST(`{field.name}` AS {field.dataType.simpleString()}) AS `{field.name}`"
            for field in table.schema
        ]
    )
