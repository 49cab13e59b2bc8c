"""Rows of a snapshot table, held to their contract: what breaks it is refused, by name.

The one gate to these tables: no other module opens them (``tests/contract/test_imports.py``).

Whole columns are looked at: how many nulls, the least and the most number, the distinct texts. A
mask of rows is made only where a column breaks its contract. A refused row goes to the quarantine,
with the reason and its plain columns, and the others are audited as if it had not come.

A row is part of a broker's list, or of a nameserver's route. Without it the list would show one
member less, and so faults that are none: the whole statement of such a row is lost, and is no
evidence. Where the columns that name the statement are broken, the row alone is lost.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rebalance_core.grouping import grouped

from ..config.bounds import DEFAULT_BOUNDS
from ..contract import Values, check_tables, values_of
from ..declared.instants import Instant
from ..schemas import (
    CLIENT_LOG,
    CLIENT_STATES,
    INT,
    NESTED_VALUES,
    QUARANTINE,
    SNAPSHOT_TABLES,
    STRING,
    TOPIC_ROUTES,
    Table,
)
from ..storage import Snapshots
from ..texts.shown import json_text
from .numbers import NO_NUMBER, Array, Batch, Rows, TableSource, int64, micros, pc, read, text

#: The column of a batch with whether the statement of each row is lost.
IS_LOST = "is_lost"

#: The years 1 to 9999, in microseconds: what a time of Python can be.
_YEARS = -62_135_596_800_000_000, 253_402_300_799_999_999
_LONGEST = 100

Mask = NDArray[np.bool_]


class Breach(NamedTuple):
    """The rows in which a column breaks its contract; what was expected, and what came first."""

    column: str
    rows: Mask
    reason: str


@dataclass
class RefusedRows:
    """The number of refused rows of a table by cluster, a reason for each column, and the groups or
    topics that they are of, with their clusters.
    """

    rows: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    subjects: set[tuple[Any, ...]] = field(default_factory=set)

    def add(self, other: "RefusedRows") -> None:
        """Adds those of others; of several reasons the same one, in whichever order they come."""
        self.rows += other.rows
        self.subjects |= other.subjects
        for column, reason in other.reasons.items():
            self.reasons[column] = min(reason, self.reasons.get(column, reason))


class RowsAhead(NamedTuple):
    """The number of rows of the future, and the times of the first and the last of them."""

    rows: int
    first_seen: Instant
    last_seen: Instant

    def and_also(self, other: "RowsAhead | None") -> "RowsAhead":
        """The rows of both."""
        if other is None:
            return self
        first_seen, last_seen = (
            min(self.first_seen, other.first_seen),
            max(self.last_seen, other.last_seen),
        )
        return RowsAhead(self.rows + other.rows, first_seen, last_seen)


class TableReading:
    """Rows of one table as they are read. ``lost``: what was refused so far of so many ``rows``, by
    cluster; empty: a row that names none.

    ``files``: the names of the sources. The first ``most`` refused rows of each are kept. Rows from
    ``future`` on are counted by cluster, in ``ahead``, and not given.
    """

    def __init__(
        self,
        table: Table,
        sources: Iterable[TableSource],
        files: Iterable[str] | None = None,
        most: int = DEFAULT_BOUNDS.quarantined_lines,
        future: Instant | None = None,
    ) -> None:
        self.rows: Counter[str] = Counter()
        self.ahead: dict[str, RowsAhead] = {}
        self.lost = RefusedRows()
        #: The columns that were asked for.
        self.columns: list[str] = []
        self._table = table
        self._sources = zip(sources, files or repeat(table.name), strict=False)
        self._most = most
        self._future = future
        self._kept: list[dict[str, Any]] = []
        #: The file that is read now, and the number of its rows that were refused.
        self._file, self._refused = "", 0

    def batches(
        self,
        columns: Iterable[str],
        statement: Collection[str] = (),
        rows_at_a_time: int | None = None,
    ) -> Iterator[Batch]:
        """The columns by name, some rows at a time, without the rows that are refused.

        ``statement``: the columns that name what a row is a part of. Then ``IS_LOST`` comes too,
        and a refused row whose statement is known stays, so that all of it is known to be lost.
        """
        columns = self.columns = list(columns)
        for source, file in self._sources:
            self._file, self._refused = file, 0
            for batch in read(source, columns, rows_at_a_time):
                found = list(breaches(self._table, batch))
                self.rows += _by_cluster(batch)
                out = refused = _broken(batch, found)
                if found:
                    self._refuse(batch, found, refused)
                if statement:
                    out = _broken(batch, (breach for breach in found if breach.column in statement))
                    batch[IS_LOST] = pa.array(refused)
                out = self._without_ahead(batch, out)
                kept = batch
                if out.any():
                    kept = {name: rows.filter(pa.array(~out)) for name, rows in batch.items()}
                if _size(kept):
                    yield kept
            if (more := self._refused - self._most) > 0:
                self._keep(
                    f"table {self._table.name}: {more:,} more rows of this file break its contract "
                    "(bounds.quarantined_lines)"
                )

    def _without_ahead(self, batch: Batch, out: Mask) -> Mask:
        """The rows that are left out, with those of the future, which are counted."""
        if self._future is None or "snapshot_time" not in batch:
            return out
        times = int64(batch["snapshot_time"], NO_NUMBER)
        ahead = (times >= self._future) & ~out
        if not ahead.any():
            return out
        places = pa.array(np.flatnonzero(ahead))
        ahead_rows = zip(text(batch["cluster"]).take(places).to_pylist(), times[ahead], strict=True)
        for cluster, ahead_times in grouped(ahead_rows).items():
            came = RowsAhead(len(ahead_times), int(min(ahead_times)), int(max(ahead_times)))
            self.ahead[cluster] = came.and_also(self.ahead.get(cluster))
            self.rows[cluster or ""] -= len(ahead_times)
        return np.logical_or(out, ahead)

    def take_refused(self) -> Rows:
        """The rows of the quarantine that came since the last time."""
        kept, self._kept = self._kept, []
        return pa.Table.from_pylist(kept, schema=QUARANTINE.schema)

    def _refuse(self, batch: Batch, found: list[Breach], refused: Mask) -> None:
        places = np.flatnonzero(refused)
        room = max(0, self._most - self._refused)
        self._refused += len(places)
        # Of a few columns there may be none of these.
        subject = [name for name in ("cluster", "consumer_group", "topic") if name in batch][:2]
        rows = {name: column.take(pa.array(places)) for name, column in batch.items()}
        subjects = set(zip(*[text(rows[name]).to_pylist() for name in subject], strict=True))
        reasons = {breach.column: breach.reason for breach in found}
        self.lost.add(RefusedRows(_by_cluster(rows), reasons, subjects))
        plain = {
            column.name: _plain(rows[column.name].slice(0, room))
            for column in self._table.schema
            if column.name in batch and not pa.types.is_nested(column.type)
        }
        for place, row in zip(places[:room], pa.table(plain).to_pylist(), strict=True):
            why = "; ".join(breach.reason for breach in found if breach.rows[place])
            self._keep(f"table {self._table.name}: {why}", json_text(row))

    def _keep(self, reason: str, line: str = "") -> None:
        self._kept.append({"file": self._file, "line_number": 0, "reason": reason, "line": line})


def checked_rows(snapshots: Snapshots, table: Table, columns: Sequence[str]) -> Iterator[Rows]:
    """Some columns of a whole table, without the rows that are refused, some rows at a time; none
    where it is not there. The quarantine names those where the fold refuses them.

    ContractError where the table has not the columns that it must have.
    """
    if snapshots.has(table.name):
        rows = snapshots.unchecked(table.name)
        check_tables([(table, rows.schema)])
        for batch in TableReading(table, [rows]).batches(columns):
            yield pa.table({name: text(column) for name, column in batch.items()})


def _by_cluster(batch: Batch) -> Counter[str]:
    """The number of rows of each cluster; of a table, or columns, without one all of nobody's."""
    if "cluster" not in batch:
        return Counter({"": _size(batch)})
    counted = pc.value_counts(text(batch["cluster"]).fill_null(""))
    return Counter({count["values"]: count["counts"] for count in counted.to_pylist()})


def _size(batch: Batch) -> int:
    return len(next(iter(batch.values())))


def _broken(batch: Batch, found: Iterable[Breach]) -> Mask:
    rows = np.zeros(_size(batch), np.bool_)
    for breach in found:
        rows |= breach.rows
    return rows


# ---------------------------------------------------------------- columns


def breaches(table: Table, batch: Batch) -> Iterator[Breach]:
    """The columns of some rows that break their contract, and what is within them."""
    for column, values in _VALUES[table.name]:
        if column.name in batch:
            yield from _breaches(column.name, batch[column.name], values, column.type)
    name, expected, ahead_rows = _NEVER_NULL.get(table.name, ("", "", None))
    if ahead_rows is not None and name in batch and batch[name].null_count:
        missing = pc.and_(batch[name].is_null(), ahead_rows(batch)).fill_null(False)
        if pc.any(missing).as_py():
            mask = missing.to_numpy(zero_copy_only=False)
            yield Breach(name, mask, f"{name}: expected {expected}, came null")


def _breaches(path: str, came: Array, values: Values, type_: Any) -> Iterator[Breach]:
    """``type_``: that of the declaration; whole numbers may come wider."""
    values = values.in_bits(32) if type_ == INT else values
    wrong = _wrong_values(came, values)
    if wrong is not None:
        mask: Mask = wrong.to_numpy(zero_copy_only=False)
        shown = repr(_plain(came.slice(int(mask.argmax()), 1))[0].as_py())[:_LONGEST]
        expected = f"expected {values}, came {'null' if shown == 'None' else shown}"
        yield Breach(path, mask, f"{path}: {expected}")
    if pa.types.is_list(came.type):
        for breach in _within(path, came.flatten(), type_.value_type):
            owners = np.repeat(np.arange(len(came)), int64(pc.list_value_length(came)))
            rows = np.bincount(owners[breach.rows], minlength=len(came)) > 0
            yield breach._replace(rows=rows)


def _within(path: str, elements: Array, type_: Any) -> Iterator[Breach]:
    """Breaches of the contract by the elements of a list."""
    declared = _NESTED[path.rpartition(".")[2]]
    yield from _breaches(f"{path}[]", elements, declared.get("", _REQUIRED), type_)
    if pa.types.is_struct(elements.type):
        for field_, field_values in zip(elements.type, elements.flatten(), strict=True):
            name, field_type = f"{path}.{field_.name}", type_.field(field_.name).type
            yield from _breaches(name, field_values, declared.get(field_.name, _ANY), field_type)


def _wrong_values(came: Array, values: Values) -> Array | None:
    """A mask of the wrong values; None: none is wrong."""
    wrong = []
    if values.required and came.null_count:
        wrong.append(came.is_null())
    if values.filled or values.one_of:
        texts = came.dictionary if pa.types.is_dictionary(came.type) else came
        if values.filled:
            bad = pc.equal(texts, "")
        else:
            bad = pc.invert(pc.is_in(texts, pa.array([*values.one_of, None], STRING)))
        if pc.any(bad).as_py():
            wrong.append((bad if texts is came else bad.take(came.indices)).fill_null(False))
    is_time = pa.types.is_timestamp(came.type)
    least, most = _YEARS if is_time else (values.least, values.most)
    if least is not None:
        numbers = micros(came) if is_time else came
        lowest, highest = pc.min_max(numbers).values()
        below = lowest.is_valid and lowest.as_py() < least
        above = most is not None and highest.is_valid and highest.as_py() > most
        if below or above:
            bad = pc.less(numbers, least)
            bad = bad if most is None else pc.or_(bad, pc.greater(numbers, most))
            wrong.append(bad.fill_null(False))
    return reduce(pc.or_, wrong) if wrong else None


def _plain(column: Array) -> Array:
    """The column without times, of which some are none of Python's."""
    return column.cast(STRING) if pa.types.is_timestamp(column.type) else text(column)


def _has_queues(routes: Batch) -> Array:
    reads, writes = routes["read_queue_nums"], routes["write_queue_nums"]
    return pc.or_(pc.greater(reads, 0), pc.greater(writes, 0))


def _is_of_a_round(states: Batch) -> Array:
    return pc.not_equal(text(states["source"]), CLIENT_LOG)


#: Columns that may be null in some rows: by table the column, what is expected in the others, and
#: which those are.
_NEVER_NULL: Mapping[str, tuple[str, str, Callable[[Batch], Array]]] = {
    TOPIC_ROUTES.name: (
        "broker_name",
        "the name of the broker that has the queues",
        _has_queues,
    ),
    CLIENT_STATES.name: (
        "snapshot_time",
        "the round, as of all but a log line",
        _is_of_a_round,
    ),
}
_VALUES = {
    table.name: [(column, values_of(column)) for column in table.schema]
    for table in SNAPSHOT_TABLES
}
_NESTED = {
    name: {part: Values.declared(words) for part, words in fields.items()}
    for name, fields in NESTED_VALUES.items()
}
_REQUIRED, _ANY = Values(required=True), Values(required=False)
