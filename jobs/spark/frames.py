"""DataFrames of Spark as snapshot tables, and published reports as DataFrames.

Nothing here starts or stops a session. Nested lists that go from rows straight to Python would take
minutes: Spark writes what the audit reads as Parquet.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from ..contract import check_columns, type_name
from ..errors import InputError
from ..reports.read import declared_table, published_runs
from ..schemas import SNAPSHOT_TABLES, Table
from ..storage import Location, Reports
from .schemas import spark_schema
from .session import AS_NAMED

#: A file that Spark writes for the audit has so many rows at most: it is read whole.
_ROWS_OF_A_FILE = 2_000_000
_WHERE_TO_WRITE = (
    "expected staging=FOLDER, for the rows are written where Spark's workers reach them, and this "
    "session's are on other machines"
)


def check_reach(spark: SparkSession) -> None:
    """InputError where the session's workers do not see the temporary folders of this machine."""
    if not str(spark.conf.get("spark.master", "local")).startswith("local"):
        raise InputError(_WHERE_TO_WRITE)


def stage(tables: Mapping[str, DataFrame], place: Location) -> None:
    """Writes DataFrames as snapshot tables, each by its name.

    Raises ContractError, before anything runs, where one has not the columns that it must have.
    """
    checked = {
        table.name: check_contract(table, tables[table.name])
        for table in SNAPSHOT_TABLES
        if table.name in tables
    }
    for name, rows in checked.items():
        rows.write.option("maxRecordsPerFile", _ROWS_OF_A_FILE).parquet((place / name).uri)
        if not (place / name).exists():
            raise InputError(_WHERE_TO_WRITE)


# ---------------------------------------------------------------- contracts


def _arrow_schema(rows: DataFrame) -> pa.Schema:
    # Some versions of Spark take no time zone: theirs is UTC.
    takes_zone = "timezone" in signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if takes_zone else {}
    return to_arrow_schema(rows.schema, **zone)


def check_contract(table: Table, rows: DataFrame) -> DataFrame:
    """The table's columns of a DataFrame, in order; those that are missing are null.

    Raises ContractError as ``contract.check_columns``.
    """
    check_columns(table, _arrow_schema(rows))
    columns = []
    for field in table.schema:
        type_ = type_name(field.type)
        if field.name not in rows.columns:
            columns.append(f"CAST(NULL AS {type_}) AS {field.name}")
        elif rows.schema[field.name].dataType.simpleString() == type_:
            # To cast an array is to copy it, and nullability alone is no reason to.
            columns.append(f"`{field.name}`")
        else:
            of_struct = _by_name(f"`{field.name}`", field.type)
            columns.append(f"CAST({of_struct} AS {type_}) AS {field.name}")
    return rows.selectExpr(*columns)


def _by_name(column: str, expected: pa.DataType) -> str:
    """The column with its structs' fields in order: a cast alone would match them by position."""
    if not pa.types.is_list(expected) or not pa.types.is_struct(expected.value_type):
        return column
    fields = ", ".join(f"'{field.name}', each.{field.name}" for field in expected.value_type)
    return f"transform({column}, each -> named_struct({fields}))"


# ---------------------------------------------------------------- published reports


def read_reports(
    spark: SparkSession,
    path: str,
    table: str,
    dates: str | date | Iterable[str | date] | None = None,
) -> DataFrame:
    """A report table of some dates (None: of all that are published), with the column ``date``.

    Of each date only what its pointer names is read, and it is checked first: a run that is being
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
