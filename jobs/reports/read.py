"""Published reports for whoever goes on with them: of each date the run that counts."""

import datetime
from collections.abc import Iterable

import pyarrow as pa

from rebalance_core.errors import near_names

from ..errors import InputError
from ..schemas import Table
from ..storage import Location, PublishedRun, Reports
from .tables import TABLES, PublishedTables

Date = str | datetime.date

#: The column that comes before those of a report table.
DATE = pa.field("date", pa.date32(), metadata={"comment": "the date of the report"})


def report_rows(path: str, table: str, dates: Date | Iterable[Date] | None = None) -> pa.Table:
    """A report table of some dates (None: of all), with the column ``date``, in memory.

    pandas, Polars and DuckDB take it as it is. InputError where there is no such table or a date
    has no report, DamagedError where files of one are gone or are others.

    >>> report_rows("out/reports", "orphaned_queues").to_pandas().groupby("date").size()
    ... # doctest: +SKIP
    """
    declared = declared_table(table)
    reports = Reports(Location(path))
    found = [
        reports.read(published.date, lambda run: rows_of(reports, run, declared))
        for published in published_runs(reports, dates)
    ]
    return pa.concat_tables([dated_schema(declared).empty_table(), *found])


def rows_of(reports: Reports, published: PublishedRun, table: Table) -> pa.Table:
    """The rows of a report table in one run, with the column ``date``.

    Columns that an older run does not have are null; a table that the run does not have is empty.
    DamagedError where its files are gone or are others.
    """
    rows = PublishedTables(reports, published).read(table.name, table.schema.names)
    date = pa.scalar(datetime.date.fromisoformat(published.date), DATE.type)
    return rows.add_column(0, DATE, pa.repeat(date, rows.num_rows)).cast(dated_schema(table))


def dated_schema(table: Table) -> pa.Schema:
    """The columns of a report table over all dates: ``date`` first, and any may be null.

    A column that was added later is null in the rows from before.
    """
    return pa.schema([DATE, *(column.with_nullable(True) for column in table.schema)])


def declared_table(name: str) -> Table:
    """The report table of a name; InputError with those that come near where there is none."""
    if name not in TABLES:
        raise InputError(f"no report table {name!r}: {near_names(name, TABLES)}")
    return TABLES[name]


def published_runs(reports: Reports, dates: Date | Iterable[Date] | None) -> list[PublishedRun]:
    """The runs that count for some dates; None: for all that are published."""
    if isinstance(dates, str | datetime.date):
        dates = [dates]
    if dates is not None:
        return [reports.resolve(each) for each in sorted({str(each) for each in dates})]
    return reports.published()
