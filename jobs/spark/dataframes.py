"""Report tables as DataFrames: of pieces, of a folder, and of a schema of a catalogue, where they
are written, read, and compared with. Nothing here starts or stops a session.

In a schema the table ``runs`` is the pointer: of each date it names the run that counts, and it is
written last. A date that is written again is taken out of it first. So a job that dies in between
leaves a date that ``runs`` does not name, and rows whose ``run_id`` counts for nothing.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from os import PathLike, fspath
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..config.masking import Masking
from ..contract import as_plain
from ..engines.batches import unpacking_step
from ..errors import DamagedError, InputError
from ..publish.earlier import NIGHTS
from ..reports.tables import Date, dates_of, declared_table, published_runs
from ..schemas import ALLOCATIONS, PROBLEMS, RUNS, SITUATIONS, Table
from ..shell.asked import GivenHistory, history_of
from ..storage import Location, PublishedRun, ReportHistory, Reports
from ..verdict.run_table import run_of_row
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
    table_pieces = pieces.where(pieces["kind"] == table.name).select("data")
    return table_pieces.mapInArrow(unpacking_step(table.name), spark_schema(table))


def allocations_of(recomputed: DataFrame, masking: Masking) -> DataFrame:
    """The table ``allocations``: the shares that the UDF gave for each situation, a row each."""

    def mask_secrets(client_id: pd.Series) -> pd.Series:
        masked = masking.mask_column(pa.array(client_id, pa.string()))
        return pd.Series(masked.to_pylist(), dtype=object)

    mask: Any = pandas_udf(mask_secrets, "string")  # type: ignore[call-overload]
    shares = recomputed.selectExpr(*_PLACE, "inline(recomputed.shares)")
    shares = shares.withColumn("client_id", mask("client_id"))
    return shares.select(*(_column(field, shares.columns) for field in spark_schema(ALLOCATIONS)))


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
    schema = spark_schema(declared_table(table))
    columns = ["dt AS date", *(f"`{name}`" for name in schema.names)]
    reports, paths = Reports(Location(path)), list[str]()
    for published in published_runs(reports, dates):
        if table in published.tables:
            reports.dataset(published, table)  # DamagedError where it is not what was published
            paths += [(reports.root / file.path).uri for file in published.files[table].files]
    schema = schema.add("dt", "date")
    if not paths:
        return spark.createDataFrame([], schema).selectExpr(*columns)
    rows = spark.read.schema(schema).options(**AS_NAMED, basePath=(reports.root / table).uri)
    return rows.parquet(*paths).selectExpr(*columns)


_LOGGER = logging.getLogger(__name__)

# ---------------------------------------------------------------- written to a schema


def save(
    schema: str, run: PublishedRun, names: Iterable[str], rows_of: Callable[[str], DataFrame]
) -> None:
    """Writes tables of a run, ``runs`` among them, each as the rows of the run's date."""
    day = date.fromisoformat(run.date)
    runs = rows_of(RUNS.name)
    if runs.sparkSession.catalog.tableExists(f"{schema}.{RUNS.name}"):
        replace_date(runs.limit(0), f"{schema}.{RUNS.name}", day)
    for name in names:
        if name != RUNS.name:
            rows = rows_of(name).withColumn("run_id", F.lit(run.run_id))
            replace_date(rows, f"{schema}.{name}", day)
    replace_date(runs, f"{schema}.{RUNS.name}", day)


#: Providers without a transaction: a partition is a folder.
_OF_FOLDERS = {"parquet", "orc", "avro", "json", "csv", "hive"}


def replace_date(rows: DataFrame, table: str, day: date) -> None:
    """Writes rows as those of a date of a table, in place of those that it has; others stay.

    A table that is not there is made, with the date as partitions, in the catalogue's own format.
    """
    spark = rows.sparkSession
    dated = rows.withColumn("date", F.lit(day))
    if not spark.catalog.tableExists(table):
        writer = dated.writeTo(table).partitionedBy(F.col("date"))
        names = table.split(".")
        catalogue = names[0] if len(names) > 2 else spark.catalog.currentCatalog()
        if catalogue == "spark_catalog":
            # Spark 3.5 would make a table of Hive; other catalogues have their own format.
            writer = writer.using(str(spark.conf.get("spark.sql.sources.default")))
        writer.create()
        return
    there = spark.table(table).columns
    if new := [field for field in rows.schema if field.name not in there]:
        named = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in new)
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({named})")
    details = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Provider'").first()
    if details is not None and details["data_type"].lower() not in _OF_FOLDERS:
        dated.writeTo(table).overwrite(F.col("date") == F.lit(day))
        return
    # Also of no row: to overwrite partitions dynamically would leave those of the date.
    names = [name for name in spark.table(table).columns if name != "date"]
    columns = ", ".join(f"`{name}`" for name in names)
    into = f"INSERT OVERWRITE TABLE {table} PARTITION (date = '{day}')"
    spark.sql(f"{into} SELECT {columns} FROM {{rows}}", rows=rows)  # noqa: S608 - the caller's own


# ---------------------------------------------------------------- read from it


def read_tables(
    spark: SparkSession, schema: str, table: str, dates: Date | Iterable[Date] | None = None
) -> DataFrame:
    """A report table of some dates (None: of all) in a schema that ``save_as_tables`` wrote.

    With the column ``date`` first. Only rows of the runs that the table ``runs`` names are read: a
    date that is being written, or whose job died, adds nothing. Columns that an older run has not
    are null.

    Raises InputError where there is no such table, no run was saved there, or one of the dates has
    none.

    >>> read_tables(spark, "main.rocketmq_audit", "orphaned_queues").groupBy("date").count().show()
    ... # doctest: +SKIP
    """
    is_runs = table == RUNS.name
    declared = RUNS if is_runs else declared_table(table)
    runs = _saved(spark, schema, RUNS.name)
    if runs is None:
        raise InputError(
            f"no table {schema}.{RUNS.name}: expected a schema that result.save_as_tables wrote"
        )
    if dates is not None:
        wanted = dates_of(dates)
        runs = runs.where(_is_of(wanted))
        there = {str(row[0]) for row in runs.select("date").collect()}
        if missing := [day for day in wanted if day not in there]:
            raise InputError(f"no run of {', '.join(missing)} in {schema}.{RUNS.name}")
    saved = runs if is_runs else _saved(spark, schema, table)
    struct = spark_schema(declared)
    if saved is None:
        saved = spark.createDataFrame([], "date date")
    elif not is_runs:
        saved = saved.join(F.broadcast(runs.select(*_KEYS)), _KEYS, "left_semi")
    columns = {field.name: _column(field, saved.columns) for field in struct}
    return saved.select(columns.pop("date", F.col("date")), *columns.values())


_KEYS = ["date", "run_id"]


def _column(field: T.StructField, there: Sequence[str]) -> Column:
    made = F.col(field.name) if field.name in there else F.lit(None)
    return made.cast(field.dataType).alias(field.name, metadata=field.metadata)


def _saved(spark: SparkSession, schema: str, table: str) -> DataFrame | None:
    """A saved table as it is now; None: there is none."""
    name = f"{schema}.{table}"
    if not spark.catalog.tableExists(name):
        return None
    # Another session may have written it since this one has listed its files.
    spark.catalog.refreshTable(name)
    return spark.table(name)


# ---------------------------------------------------------------- compared with


def history_in(spark: SparkSession, history: GivenHistory | None) -> ReportHistory | None:
    """The reports of earlier dates in a folder, which may be yet to come, or in a schema.

    A path, or a text with a slash, is a folder, any other text a schema. InputError where there is
    no such schema.
    """
    if history is None or isinstance(history, PathLike) or "/" in history:
        return history_of(history)
    if not spark.catalog.databaseExists(history):
        raise InputError(
            f"history: no schema {history!r} in this session: expected the one that "
            "result.save_as_tables writes to, or a folder of reports, with a slash in its name, as "
            f"'./{fspath(history)}'"
        )
    return SavedReports(spark, history)


class SavedReports(ReportHistory):
    """The runs in a schema that ``save_as_tables`` wrote: those that its table ``runs`` names.

    Nothing but the rows that are asked for comes to the driver.
    """

    def __init__(self, spark: SparkSession, schema: str) -> None:
        self._spark, self._schema = spark, schema
        self._saved_runs = _saved(spark, schema, RUNS.name)
        found = [] if self._saved_runs is None else self._saved_runs.select("date").collect()
        self._dates = sorted(str(row[0]) for row in found)
        #: The runs that were read.
        self._found: dict[str, PublishedRun] = {}
        #: The rows that were read, by what was asked for, and by run.
        self._read: dict[Any, dict[str, list[dict[str, Any]]]] = {}
        if self._saved_runs is None and _saved(spark, schema, PROBLEMS.name) is not None:
            _LOGGER.warning(
                "%s has report tables and no table runs: no date counts there, for a job died, or "
                "an earlier version wrote them; save its dates again",
                schema,
            )

    def dates(self) -> list[str]:
        """See ``ReportHistory``."""
        return self._dates

    def find(self, date: str) -> PublishedRun | None:
        """See ``ReportHistory``."""
        if date in self._dates and date not in self._found and self._saved_runs is not None:
            # Those before it are asked for next.
            rows = self._saved_runs.where(_is_of(self._until(date)))
            rows = rows.select("date", "run_id", "tables", "summary")
            found = map(run_of_row, (row.asDict(recursive=True) for row in rows.collect()))
            self._found |= {run.date: run for run in found}
        return self._found.get(date)

    def rows(
        self,
        run: PublishedRun,
        name: str,
        where: Mapping[str, Any],
        columns: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """See ``ReportHistory``."""
        if name not in run.tables:
            return []
        asked = name, tuple(where.items()), columns and tuple(columns)
        if run.run_id not in self._read.get(asked, {}):
            # The few rows that are like these are asked for of the dates before next.
            dates = self._until(run.date) if where else [run.date]
            self._read[asked] = self._rows(name, where, columns, dates)
        return self._read[asked].get(run.run_id, [])

    def _until(self, date: str) -> list[str]:
        """The last dates up to one: a run asks for no more."""
        return [day for day in self._dates if day <= date][-NIGHTS - 1 :]

    def _rows(
        self,
        name: str,
        where: Mapping[str, Any],
        columns: Sequence[str] | None,
        dates: Sequence[str],
    ) -> dict[str, list[dict[str, Any]]]:
        """The rows of the runs of some dates, by run."""
        saved = _saved(self._spark, self._schema, name)
        if saved is None:
            raise DamagedError(f"no table {self._schema}.{name}, though runs has runs with it")
        runs = [run.run_id for run in map(self.find, dates) if run is not None]
        rows = saved.where(_is_of(dates) & F.col("run_id").isin(runs))
        for column, value in where.items():
            rows = rows.where(F.col(column) == value)
        shown = []
        for field in spark_schema(declared_table(name)):
            if columns is None or field.name in columns:
                made = _column(field, saved.columns)
                is_time = isinstance(field.dataType, T.TimestampType)
                shown.append(F.unix_micros(made).alias(field.name) if is_time else made)
        found: dict[str, list[dict[str, Any]]] = {run_id: [] for run_id in runs}
        for run_id, values in rows.select("run_id", F.struct(*shown)).collect():
            found[run_id].append(values.asDict(recursive=True))
        return found


def _is_of(dates: Iterable[str]) -> Column:
    return F.col("date").isin(list(map(date.fromisoformat, dates)))
