"""Tables of Arrow as DataFrames, and published reports. Nothing here starts or stops a session."""

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..contract import as_plain
from ..engines.batches import unpacked_rows
from ..reports.tables import declared_table, published_runs
from ..storage import Location, Reports
from .schemas import spark_schema
from .session import AS_NAMED

# ---------------------------------------------------------------- tables of Arrow


def to_frame(spark: SparkSession, rows: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Rows that the driver has, in the types of ``schema``, or in those that Spark has for theirs.

    They travel with the plan, and by Arrow: neither the session's settings nor its version decide
    what becomes of them.
    """
    plain = as_plain(rows)
    schema = schema or from_arrow_schema(plain.schema, prefer_timestamp_ntz=True)
    batches = plain.to_batches()
    return spark.range(0, 1, 1, 1).mapInArrow(_given(batches), schema)


def _given(batches: list[pa.RecordBatch]) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    return lambda _: iter(batches)


def rows_of_pieces(pieces: DataFrame, table: str, schema: StructType | None = None) -> DataFrame:
    """The rows of a table that are packed in pieces, unpacked where they lie; without a schema
    those of a report table.
    """
    of_table = pieces.where(pieces["kind"] == table).select("data")
    return of_table.mapInArrow(unpacked_rows, schema or spark_schema(declared_table(table)))


# ---------------------------------------------------------------- published reports


def read_reports(
    spark: SparkSession,
    path: str,
    table: str,
    dates: str | date | Iterable[str | date] | None = None,
) -> DataFrame:
    """A report table of some dates (None: of all that are published), with the column ``date``.

    Only what the pointer of a date names is read, and it is checked first: a run that is being
    written, or that died, adds nothing. Columns that an older run has not are null. Where a date is
    audited again before the rows are read, Spark misses its files: read again.

    Raises InputError where there is no such table or a date has no report, DamagedError where files
    of one are gone or are others.

    >>> read_reports(spark, "out/reports", "orphaned_queues").groupBy("date").count().show()
    ... # doctest: +SKIP
    """
    declared = declared_table(table)
    reports = Reports(Location(path))
    paths: list[str] = []
    for published in published_runs(reports, dates):
        if table in published.tables:
            reports.dataset(published, table)  # DamagedError where it is not what was published
            paths += [(reports.root / file.path).uri for file in published.files[table].files]
    schema = spark_schema(declared).add("dt", "date")
    columns = ["dt AS date", *(f"`{name}`" for name in declared.schema.names)]
    if not paths:
        return spark.createDataFrame([], schema).selectExpr(*columns)
    rows = spark.read.schema(schema).options(**AS_NAMED, basePath=(reports.root / table).uri)
    return rows.parquet(*paths).selectExpr(*columns)
