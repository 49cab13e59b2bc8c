"""Slices of the snapshot tables -> pieces: what travels to where they are read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain, groupby, starmap, tee
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..config.window import Window
from ..declared.instants import Instant, to_instant
from ..engines.engine import Opened, Slice
from ..engines.pieces import Piece
from ..storage import Location
from ..storage.manifest import kept_file
from .kernel import Cutting
from .numbers import TableSource, open_files, rows_of_group

_TABLES = {table.name: table for table in schemas.SNAPSHOT_TABLES}
#: Tables of which rows hold for a time after they were polled.
_ROUTES = (schemas.TOPIC_ROUTES, schemas.ROUTE_POLLS)
#: Tables of which rows of the future are counted: what brokers and nameservers said.
_SAID = (schemas.HEARTBEATS, schemas.BROKER_POLLS, *_ROUTES)

#: A time that is refused, in microseconds: what a text becomes that is none.
NO_TIME = -(1 << 63)


def window_of(table: schemas.Table, window: Window, route_max_age_seconds: int) -> Window:
    """The window of the rows of a table: a route that was polled shortly before it still holds when
    it begins.
    """
    return window.earlier(route_max_age_seconds) if table in _ROUTES else window


@dataclass(frozen=True)
class TableStep:
    """Reads slices, cut to a window, and to one group where one is asked for.

    ``has_files``: rows that are refused are named with their file, else with their table alone.
    """

    cutting: Cutting
    window: Window
    route_max_age_seconds: int
    group: str | None = None
    has_files: bool = True

    def __call__(self, opened: Iterable[Opened]) -> Iterator[Piece]:
        """The pieces; slices of a table that follow each other are read as one."""
        for name, table_slices in groupby(opened, lambda opening: opening[0].what):
            slices, again = tee(table_slices)
            files = (slice_.path if self.has_files else name for slice_, _ in again)
            table, rows = _TABLES[name], starmap(self._rows, slices)
            yield from self.cutting.pieces(table, rows, files, self._future_of(table))

    def of_batches(self, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
        """The pieces of rows of a table that come once, batch by batch, with the columns that the
        cutting reads.
        """
        table = _TABLES[name]
        if (first := next(batches, None)) is None:
            return
        counted = self._counted(table, first.schema)
        every = chain([first], batches)
        if counted is not None:
            is_time = (field for field in first.schema if field.type == schemas.TIMESTAMP)
            none = pa.scalar(NO_TIME, pa.int64()).cast(schemas.TIMESTAMP)
            counted = reduce(or_, (pc.field(field.name) == none for field in is_time), counted)
            kept = (pa.Table.from_batches([batch]).filter(counted) for batch in every)
            every = chain.from_iterable(rows.to_batches() for rows in kept)
        rows = pa.RecordBatchReader.from_batches(first.schema, every)
        yield from self.cutting.pieces(table, [rows], [name], self._future_of(table))

    def _future_of(self, table: schemas.Table) -> Instant | None:
        future = self.window.future
        return to_instant(future) if future is not None and table in _SAID else None

    def _rows(self, slice_: Slice, content: pa.Buffer | None) -> TableSource:
        """The rows of a slice that count."""
        table = _TABLES[slice_.what]
        if content is None and slice_.is_whole:
            content = kept_file(slice_.path)
        if content is not None:
            rows = open_files(table, [content])
        else:
            location = Location(slice_.path)
            groups = None if slice_.is_whole else range(slice_.start, slice_.stop)
            rows = open_files(table, [location.base], location.file_system, groups, slice_.size)
        counted = self._counted(table, rows.schema)
        rows = rows if counted is None else rows.filter(counted)
        return rows if self.group is None else rows_of_group(rows, self.group)

    def _counted(self, table: schemas.Table, came: pa.Schema) -> Any:
        """The filter for the rows that count; None: all count."""
        window = window_of(table, self.window, self.route_max_age_seconds)
        # A content has no time of its own: it counts where a poll names it.
        if window == Window() or "snapshot_time" not in table.schema.names:
            return None
        # Rows without a time that they must have are refused, not left out.
        needed = (c.name for c in table.schema if c.type == schemas.TIMESTAMP and not c.nullable)
        also = [pc.field(name).is_null() for name in needed]
        if self._future_of(table) is not None:
            also.append(Window(since=self.window.future).filter_of(table, came))
        return reduce(or_, also, window.filter_of(table, came))
