"""The tables of a run, a few columns and topics at a time, and one table over many dates."""

import datetime
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.errors import near_names

from ..errors import InputError
from ..schemas import REPORT_TABLES, Table
from ..storage import Location, PublishedRun, Reports
from ..storage.reports import check_date


class Place(NamedTuple):
    """The place of a fault: one topic of one group."""

    cluster: str
    consumer_group: str
    topic: str


#: The columns of a place, in its order.
PLACE = Place._fields
TABLES = {table.name: table for table in REPORT_TABLES}


def place_of(row: Mapping[str, Any]) -> Place:
    """The place that a row is of."""
    return Place(*(row[name] for name in PLACE))


def anchor_of(place: Place, *, several: bool) -> str:
    """The anchor of a place on a page, as in a link; ``several`` clusters have their names in it.

    >>> anchor_of(Place("C", "G", "%RETRY%G"), several=False)
    'G/%25RETRY%25G'
    """
    return "/".join(quote(name, safe="") for name in place[not several :])


def column_of(table: str, name: str) -> "pa.Field[Any]":
    """The column of a report table as declared, but it may be null; else one of texts."""
    schema = TABLES[table].schema
    there = name in schema.names
    return schema.field(name).with_nullable(True) if there else pa.field(name, pa.string())


class Tables:
    """The report tables of one run; ``open_table`` gives one by its name, None where there is none.

    It may raise InputError where a table that the run has is gone.
    """

    def __init__(self, open_table: Callable[[str], Any]) -> None:
        self._open = open_table

    def read(
        self, name: str, columns: Sequence[str], places: Collection[Place] | None = None
    ) -> pa.Table:
        """Reads these columns of a table, of all its rows or of those near some places only.

        A table that the run has not has no rows, and a column that the table has not is null.
        """
        dataset = self._open(name)
        if dataset is None:
            return pa.schema([column_of(name, column) for column in columns]).empty_table()
        near = None
        if places is not None:
            # Typed: without places nothing shows the type.
            groups = pa.array({place.consumer_group for place in places}, pa.string())
            topics = pa.array({place.topic for place in places}, pa.string())
            near = pc.field("consumer_group").isin(groups) & pc.field("topic").isin(topics)
        others = [
            column_of(name, column) for column in columns if column not in dataset.schema.names
        ]
        whole = dataset.replace_schema(pa.schema([*dataset.schema, *others]))
        table: pa.Table = whole.to_table(columns=list(columns), filter=near)
        return table


class PublishedTables(Tables):
    """The tables of one published run; InputError where one of them is gone."""

    def __init__(self, reports: Reports, published: PublishedRun) -> None:
        self.published = published
        super().__init__(
            lambda name: reports.dataset(published, name) if name in published.tables else None
        )


def by_place(
    tables: Tables,
    name: str,
    columns: Sequence[str],
    places: Collection[Place] | None = None,
) -> dict[Place, list[dict[str, Any]]]:
    """The rows of a table by their place, in its order; of these places alone."""
    rows: dict[Place, list[dict[str, Any]]] = defaultdict(list)
    wanted = None if places is None else set(places)
    for row in tables.read(name, [*PLACE, *columns], wanted).to_pylist():
        place = place_of(row)
        if wanted is None or place in wanted:
            rows[place].append(row)
    return rows


# ---------------------------------------------------------------- over many dates

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
    if dates is not None:
        return [reports.resolve(each) for each in dates_of(dates)]
    return reports.published()


def dates_of(dates: Date | Iterable[Date]) -> list[str]:
    """The dates that are named, as texts, ascending."""
    named = [dates] if isinstance(dates, str | datetime.date) else dates
    return sorted({check_date(str(each)) for each in named})
