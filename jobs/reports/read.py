"""Published reports for whoever goes on with them: of each date the run that counts."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.errors import InputError
from jobs.schemas import REPORT_TABLES, Table
from jobs.storage import Location, Published, Reports
from rebalance_core.errors import near_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Date = str | datetime.date

#: The column that comes before those of a report table.
DATE = pa.field("date", pa.date32(), metadata={"comment": "the date of the report"})


def read_reports(
    spark: SparkSession, path: str, table: str, dates: Date | Iterable[Date] | None = None
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
    from jobs.session import AS_NAMED  # noqa: PLC0415 - Spark takes its time to import

    declared = _declared(table)
    reports = Reports(Location(path))
    paths = [
        each
        for published in _published(reports, dates)
        if table in published.tables
        for each in _paths(reports, published, table)
    ]
    schema = declared.spark_schema.add("dt", "date")
    columns = ["dt AS date", *(f"`{name}`" for name in declared.schema.names)]
    if not paths:
        return spark.createDataFrame([], schema).selectExpr(*columns)
    rows = spark.read.schema(schema).options(**AS_NAMED, basePath=(reports.root / table).uri)
    return rows.parquet(*paths).selectExpr(*columns)


def report_rows(path: str, table: str, dates: Date | Iterable[Date] | None = None) -> pa.Table:
    """The same as ``read_reports`` without Spark, as a table of PyArrow in memory.

    pandas, Polars and DuckDB take it as it is. Raises what ``read_reports`` raises.

    >>> report_rows("out/reports", "orphaned_queues").to_pandas().groupby("date").size()
    ... # doctest: +SKIP
    """
    declared = _declared(table)
    reports = Reports(Location(path))
    found = [
        reports.read(published.date, lambda run: rows_of(reports, run, declared))
        for published in _published(reports, dates)
    ]
    return pa.concat_tables([dated_schema(declared).empty_table(), *found])


def rows_of(reports: Reports, published: Published, table: Table) -> pa.Table:
    """The rows of a report table in one run, with the column ``date``.

    Columns that an older run does not have are null; a table that the run does not have is empty.
    DamagedError where its files are gone or are others.
    """
    schema = dated_schema(table)
    if table.name not in published.tables:
        return schema.empty_table()
    rows = reports.dataset(published, table.name).to_table()
    date = pa.scalar(datetime.date.fromisoformat(published.date), DATE.type)
    rows = rows.append_column(DATE, pa.repeat(date, rows.num_rows))
    for column in schema:
        if column.name not in rows.column_names:
            rows = rows.append_column(column, pa.nulls(rows.num_rows, column.type))
    return rows.select(schema.names).cast(schema)


def dated_schema(table: Table) -> pa.Schema:
    """The columns of a report table over all dates: ``date`` first, and any may be null.

    A column that was added later is null in the rows from before.
    """
    return pa.schema([DATE, *(column.with_nullable(True) for column in table.schema)])


def _declared(name: str) -> Table:
    tables = {table.name: table for table in REPORT_TABLES}
    if name not in tables:
        raise InputError(f"no report table {name!r}: {near_names(name, tables)}")
    return tables[name]


def _published(reports: Reports, dates: Date | Iterable[Date] | None) -> list[Published]:
    if isinstance(dates, str | datetime.date):
        dates = [dates]
    if dates is not None:
        return [reports.resolve(each) for each in sorted({str(each) for each in dates})]
    return reports.published()


def _paths(reports: Reports, published: Published, table: str) -> list[str]:
    reports.dataset(published, table)  # DamagedError where it is not what was published
    if published.files is None or table not in published.files:
        return [reports.table(table, published.date, published.run_id).uri]
    return [(reports.root / file.path).uri for file in published.files[table].files]
