"""Tables of Arrow as DataFrames, and published reports. Nothing here starts or stops a session."""

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..config.masking import Masking
from ..contract import as_plain
from ..engines.batches import unpacking_step
from ..reports.tables import declared_table, published_runs
from ..schemas import ALLOCATIONS, SITUATIONS, Table
from ..storage import Location, Reports
from .schemas import spark_schema
from .session import AS_NAMED

_PLACE = SITUATIONS.schema.names[:4]

# ---------------------------------------------------------------- tables of Arrow


def to_frame(spark: SparkSession, rows: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Rows that the driver has, in the types of ``schema``, or in those that Spark has for theirs.

    They travel with the plan, and by Arrow: neither the session's settings nor its version decide
    what becomes of them.
    """
    plain = as_plain(rows)
    schema = schema or from_arrow_schema(plain.schema, prefer_timestamp_ntz=True)
    batches = plain.to_batches()

    def rows_of_the_driver(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return iter(batches)

    return spark.range(0, 1, 1, 1).mapInArrow(rows_of_the_driver, schema)


def rows_of_pieces(pieces: DataFrame, table: Table) -> DataFrame:
    """The rows of a table that are packed in pieces, unpacked where they lie."""
    of_table = pieces.where(pieces["kind"] == table.name).select("data")
    return of_table.mapInArrow(unpacking_step(table.name), spark_schema(table))


def allocations_of(recomputed: DataFrame, masking: Masking) -> DataFrame:
    """The table ``allocations``: the shares that the UDF gave for each situation, a row each."""

    def mask_secrets(client_id: pd.Series) -> pd.Series:
        masked = masking.mask_column(pa.array(client_id, pa.string()))
        return pd.Series(masked.to_pylist(), dtype=object)

    mask: Any = pandas_udf(mask_secrets, "string")  # type: ignore[call-overload]
    shares = recomputed.selectExpr(*_PLACE, "inline(recomputed.shares)")
    made = {"client_id": mask("client_id")}
    return shares.select(
        *[
            made.get(field.name, F.col(field.name)).alias(field.name, metadata=field.metadata)
            for field in spark_schema(ALLOCATIONS)
        ]
    )


def situations_of(recomputed: DataFrame, masking: Masking) -> DataFrame:
    """The table ``situations``: the columns of the UDF that a person reads."""
    schema = spark_schema(SITUATIONS)

    def mask_secrets(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = list(map(masking.mask_column, batch.columns))
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names)

    there = recomputed.where("state_id IS NOT NULL").select(*schema.names)
    return there.mapInArrow(mask_secrets, schema)


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
