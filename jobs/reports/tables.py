"""The tables of a run, a few columns and topics of them at a time."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from ..schemas import REPORT_TABLES
from ..storage import PublishedRun, Reports


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
            return pa.schema([column_of(name, each) for each in columns]).empty_table()
        near = None
        if places is not None:
            # Typed: without places nothing shows the type.
            groups = pa.array({place.consumer_group for place in places}, pa.string())
            topics = pa.array({place.topic for place in places}, pa.string())
            near = pc.field("consumer_group").isin(groups) & pc.field("topic").isin(topics)
        others = [column_of(name, each) for each in columns if each not in dataset.schema.names]
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
