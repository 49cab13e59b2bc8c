"""Runs: one witness, one subject, one content, with all its times.

A slice of the input gives parts of runs. What belongs together is put together here, wherever the
input was cut: a run whose times lie in two slices (``merge_runs``), a statement whose rows do
(``reunite``). Times and records are sets, so that a file that comes twice changes nothing.

Rows become sums of hashes, and only what is distinct becomes Python objects: a poll that brings
what the poll before brought costs a few numbers. A healthy fleet repeats itself, so that the cost
follows the changes. Where rows have no ids, two hashes of each are summed over the list, in any
order; a sum that is new becomes a content, and gets the id that ingest would give it.

All slices of a task are read as one, and what comes of them is given away part by part, so that
little is held.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, islice, starmap
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..declared.contents import MEMBER_FACTS, ROUTE_FACTS, Fact, content_id, record_text
from ..declared.dossier import ClientRun
from ..engines.pieces import in_parts
from ..schemas import (
    BROKER_POLLS,
    CLIENT_STATES,
    CONFIGURED,
    CONSUME_DISABLED,
    LONG,
    NO_OFFSETS,
    NOT_CONFIGURED,
    QUEUE_OFFSETS,
    ROUTE_POLLS,
    STRING,
    Table,
)
from .numbers import (
    NO_NUMBER,
    Array,
    Batch,
    GroupedRows,
    Hashes,
    Numbers,
    Rows,
    collect,
    distinct_rows,
    hash_rows,
    int64,
    key_numbers,
    pc,
    reader,
    segments,
    text,
)

_OFFSETS = ("broker_offsets", "consumer_offsets", "given")

#: A record of a content: the values of its facts, in order.
Record: TypeAlias = tuple[Any, ...]
Records: TypeAlias = Sequence[Record]

#: The times of a question: its round, and when the witness answered (null: not recorded).
POLLED = pa.list_(pa.struct([pa.field("snapshot_time", LONG), pa.field("collected_at", LONG)]))
_LONGS = pa.list_(LONG)
#: The queues of ``client_states`` without the last field of each, which is a time.
_HELD_QUEUES: Any = CLIENT_STATES.schema.field("queues").type
_HELD = pa.list_(pa.struct(list(_HELD_QUEUES.value_type)[:-1]))


def _schema(table: Table, *names: str, **types: pa.DataType) -> pa.Schema:
    """Columns by name: as in a snapshot table, but for those that have a type of their own."""
    types = {name: types.get(name) or table.schema.field(name).type for name in names} | types
    return pa.schema(list(types.items()))


GROUP_KEY = ("cluster", "consumer_group")

#: One row per broker and address, group and answer: when (times) the broker gave it. ``outcome``:
#: ANSWERED, NOT_ONLINE (also: an empty list), NO_ANSWER, or REFUSED: the list that came is no
#: evidence, for the reason of ``error_message``. ``asked_for``: the time from the first answer of
#: the round to the last one, where the broker was asked again in it for long. ``list_id``: of what
#: was ANSWERED, else null; ANSWERED without an id: the list comes in another run.
REFUSED = "REFUSED"
POLL_RUNS = _schema(
    BROKER_POLLS,
    *(*GROUP_KEY, "broker_name", "broker_id", "broker_addr", "error_message", "asked_for"),
    *("outcome", "list_id"),
    asked_for=LONG,
    times=POLLED,
)

#: One row per nameserver, topic and route: when (times) the nameserver gave it.
ROUTE_RUNS = _schema(ROUTE_POLLS, "cluster", "topic", "namesrv_addr", "route_id", times=POLLED)

#: One row per client process and what it reported of itself (RUNNING_INFO, CLIENT_LOG), and per
#: word of brokers of the group (REQUEST_MODE, and ``OF_BROKERS`` with the broker's name):
#: ``activities`` of each of its ``queues``; of a log line when it was written (null: no zone fits),
#: of all else its snapshot, and beside these times when each was collected.
CLIENT_RUNS = _schema(
    CLIENT_STATES,
    *(*GROUP_KEY, *ClientRun._fields[:-2], "broker_name", "consume_from_where"),
    *("queues", "activities"),
    start_timestamp=LONG,
    queues=_HELD,
    times=_LONGS,
    observed_at=_LONGS,
)

#: One row per queue: of each poll its snapshot, the two offsets and what the broker gave.
OFFSET_RUNS = _schema(
    QUEUE_OFFSETS,
    *(*GROUP_KEY, "topic", "broker_name", "queue_id"),
    **dict.fromkeys(("times", *_OFFSETS), _LONGS),
)

#: The sources that a broker speaks for by itself.
OF_BROKERS = (
    CONSUME_DISABLED,
    CONFIGURED,
    NOT_CONFIGURED,
    NO_OFFSETS,
)

#: Columns with one list per run; the others are the key.
COLLECTED = ("times", "observed_at", *_OFFSETS)


#: The record of a row that was refused: the content that has it is not evidence.
LOST_MEMBER: Record = (None,) * len(MEMBER_FACTS)
LOST_BROKER: Record = (None,) * len(ROUTE_FACTS)


def is_whole(records: Records) -> bool:
    """True if no row of a content was refused; the text of a lost record comes before all others.

    >>> is_whole([]), is_whole([LOST_BROKER, ("b", (0,), 6, 4, 4, None)])
    (True, False)
    """
    return not records or records[0][0] is not None


class Contents(NamedTuple):
    """Runs of one kind of witness, and by id the records of each distinct content.

    ``runs``: rows of ``POLL_RUNS`` or ``ROUTE_RUNS``. A record has the values of ``MEMBER_FACTS``
    or ``ROUTE_FACTS``, in order.
    """

    runs: Rows
    records: Mapping[str, Records]

    @property
    def id_name(self) -> str:
        """The column of the runs that has the ids of contents."""
        return "list_id" if "list_id" in self.runs.column_names else "route_id"


class Runs(NamedTuple):
    """All that witnesses reported about some groups and their topics."""

    lists: Contents
    routes: Contents
    #: Rows of ``CLIENT_RUNS`` and of ``OFFSET_RUNS``.
    clients: Rows
    offsets: Rows


def collected(
    runs: GroupedRows, values: Iterable[Numbers], fields: "Iterable[pa.Field[Any]]"
) -> dict[str, Array]:
    """The collected columns of runs: one list of numbers for each, two for ``POLLED``."""
    lists = map(runs.lists, values)
    columns: dict[str, Array] = {}
    for field in fields:
        column = next(lists)
        if field.type == POLLED:
            parts = [column.values, next(lists).values]
            structs = pa.StructArray.from_arrays(parts, fields=list(POLLED.value_type))
            column = pa.ListArray.from_arrays(column.offsets, structs)
        columns[field.name] = column.cast(field.type)
    return columns


def merge_runs(runs: Rows) -> Rows:
    """Runs with equal keys as one, with plain texts; what was collected comes once each, and in
    time.

    >>> rows = [{"topic": "T", "times": [2, 1]}, {"topic": "T", "times": [2, 3]}]
    >>> merge_runs(pa.Table.from_pylist(rows)).to_pylist()
    [{'topic': 'T', 'times': [1, 2, 3]}]
    """
    if not runs.num_rows:
        return runs
    fields = [field for field in runs.schema if field.name in COLLECTED]
    keys = [name for name in runs.column_names if name not in COLLECTED]
    lists = [runs[field.name].combine_chunks() for field in fields]
    rows_of = _owners(lists[0])
    values = [numbers for list_ in lists for numbers in _flat(list_)]
    merged = collect(_keys(runs, keys, rows_of), values)
    rows = runs.select(keys).take(pa.array(rows_of[merged.first]))
    columns = {name: text(rows[name]) for name in keys} | collected(merged, values, fields)
    return pa.table({name: columns[name] for name in runs.column_names})


def _owners(lists: Array) -> Numbers:
    """The row of the list of each value."""
    lengths = int64(pc.list_value_length(lists))
    return np.repeat(np.arange(len(lengths)), lengths)


def _flat(lists: Array) -> list[Numbers]:
    """The values of all lists; of times with the times of the answers both."""
    values = lists.flatten()
    columns = values.flatten() if pa.types.is_struct(values.type) else [values]
    return [int64(column, NO_NUMBER) for column in columns]


def _keys(runs: Rows, names: Iterable[str], rows: Numbers) -> list[Numbers]:
    """Numbers of the values that some columns have in the rows."""
    return [numbers[rows] for name in names for numbers in key_numbers(runs[name].combine_chunks())]


# ---------------------------------------------------------------- contents


class ContentIds:
    """The ids of contents, and each content as it is kept. The texts of records are made once."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._text = cache(partial(record_text, facts))

    def identify(self, records: Iterable[Record]) -> tuple[str, list[Record]]:
        """The id of a content, and its distinct records, in an order that is always the same."""
        kept = list(records)
        by_text = dict(zip(map(self._text, kept), kept, strict=True))
        return content_id(by_text), [by_text[text] for text in sorted(by_text)]


def reunite(parts: Contents) -> Contents:
    """Restores the whole content of each statement, where parts of its rows lie in several slices:
    each slice has runs of contents that are those of its rows alone.
    """
    runs, id_name = parts.runs, parts.id_name
    if not runs.num_rows:
        return parts
    times = runs["times"].combine_chunks()
    rows_of, snapshots = _owners(times), _flat(times)[0]
    names = [name for name in runs.column_names if name not in ("times", id_name)]
    ids = pc.dictionary_encode(runs[id_name].combine_chunks())
    names_of, of_rows = ids.dictionary.to_pylist(), int64(ids.indices)[rows_of]
    statements = collect([*_keys(runs, names, rows_of), snapshots], [of_rows])
    facts = MEMBER_FACTS if id_name == "list_id" else ROUTE_FACTS
    content_ids, records = ContentIds(facts), dict(parts.records)

    @cache
    def whole(numbers: tuple[int, ...]) -> int:
        """The number of the content that several make, which is then among the records."""
        of_parts = chain.from_iterable(records[names_of[number]] for number in numbers)
        id_, records[id_] = content_ids.identify(of_parts)
        names_of.append(id_)
        return len(names_of) - 1

    first, contents = statements.first, of_rows[statements.first]
    lengths = np.diff(statements.starts, append=len(statements.order))
    for place in np.flatnonzero(lengths > 1).tolist():
        of_parts = statements.order[statements.starts[place] :][: lengths[place]]
        contents[place] = whole(tuple(of_rows[of_parts].tolist()))
    columns = {name: runs[name].take(pa.array(rows_of[first])) for name in names}
    columns[id_name] = pa.array(names_of).take(pa.array(contents))
    columns |= {"snapshot_time": pa.array(snapshots[first]), "collected_at": pa.nulls(len(first))}
    united = as_runs(columns, runs.schema, "snapshot_time", "collected_at")
    return Contents(merge_runs(united), records)


def in_use(contents: Contents) -> Contents:
    """The contents without those that no run has."""
    used = pc.unique(contents.runs[contents.id_name]).to_pylist()
    every = contents.records
    return contents._replace(records={id_: every[id_] for id_ in used if id_ in every})


# ---------------------------------------------------------------- rows to runs

#: A part is given away that has so many statements, records of new contents among them.
MOST_HELD = 1 << 18


def as_runs(batch: Batch, schema: pa.Schema, *values: str) -> Rows:
    """Statements of one row each as runs, each of one; ``values``: the columns that are collected
    of them.
    """
    numbers = [int64(batch[name], NO_NUMBER) for name in values]
    rows = np.arange(len(numbers[0]))
    lists = (field for field in schema if field.name in COLLECTED)
    columns = batch | collected(GroupedRows(rows, rows), numbers, lists)
    return pa.table({field.name: _as_kept(columns[field.name], field.type) for field in schema})


def _as_kept(column: Array, type_: pa.DataType) -> Array:
    """Texts as numbers into a dictionary: they are compared by these."""
    if type_ != STRING:
        return column.cast(type_)
    return column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)


def runs_in_parts(runs: Iterable[Rows]) -> Iterator[Contents]:
    """Runs of batches put together, part by part."""
    for part in in_parts(runs, MOST_HELD, len):
        yield Contents(merge_runs(pa.concat_tables(part)), {})


class DistinctRecords:
    """The records of rows. Each distinct one is made once, and is one object while it is known."""

    def __init__(self, types: Mapping[str, pa.DataType], make: Callable[..., Record]) -> None:
        """``make``: gives the record from the values of these columns."""
        self._types = types
        self._make = make
        self._readers = {name: reader(type_) for name, type_ in types.items()}
        self.known: dict[Record, Record] = {}

    def hashes(self, batch: Batch) -> list[Hashes]:
        """Two hashes of each row."""
        return hash_rows(read(batch[name]) for name, read in self._readers.items())

    def of(self, batch: Batch, hashes: Sequence[Hashes], rows: Numbers) -> list[Record]:
        """The record of each of these rows."""
        first, of_rows = distinct_rows([hashed.view(np.int64)[rows] for hashed in hashes])
        places = pa.array(rows[first])
        values = [
            # Of a lost record the value may be one that the type does not hold.
            _tuples(batch[name].take(places).cast(type_, safe=False))
            for name, type_ in self._types.items()
        ]
        distinct = [self.known.setdefault(made, made) for made in map(self._make, *values)]
        return [distinct[number] for number in of_rows.tolist()]


def _tuples(column: Array) -> list[Any]:
    """The values, hashable: lists and structs as tuples, each distinct one made once."""
    if not pa.types.is_nested(column.type):
        return list(column.to_pylist())
    first, of_rows = distinct_rows(key_numbers(column))
    distinct = [_tuple(value) for value in column.take(pa.array(first)).to_pylist()]
    return [distinct[number] for number in of_rows.tolist()]


def _tuple(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_tuple(part) for part in value.values())
    return tuple(_tuple(part) for part in value) if isinstance(value, list) else value


class ListedRows:
    """Statements of several rows: of each the numbers of its key and its time, and its content.

    Rows that follow each other and belong to one statement are summed as they are read. Of each
    distinct sum the rows become the records of a content.
    """

    def __init__(self, schema: pa.Schema, facts: Sequence[Fact], records: DistinctRecords) -> None:
        self._schema = schema
        self._facts = facts
        self._records = records
        self._forget()

    def _forget(self) -> None:
        self._records.known.clear()
        self._content_ids = ContentIds(self._facts)
        #: The id of a content, by the sums of its rows.
        self._ids: dict[tuple[int, ...], str] = {}
        self._contents: dict[str, list[Record]] = {}

    def parts(self, batches: Iterable[tuple[Batch, NDArray[np.bool_]]]) -> Iterator[Contents]:
        """The runs of all rows, part by part, with the contents that came so far.

        A batch is some rows, and of each whether it is a record, or shows that there is none.
        """
        held_contents = 0
        for part in in_parts(starmap(self._as_runs, batches), MOST_HELD, itemgetter(0)):
            yield Contents(merge_runs(pa.concat_tables(runs for _, runs in part)), self._contents)
            held_contents += sum(size - len(runs) for size, runs in part)
            if held_contents >= MOST_HELD:
                self._forget()
                held_contents = 0

    def _as_runs(self, batch: Batch, is_record: NDArray[np.bool_]) -> tuple[int, Rows]:
        """The statements of some rows, as runs of one each; and their number, with that of the
        records of what is new among their contents.
        """
        every = self._records.hashes(batch)
        hashes = [np.where(is_record, hashed, np.uint64(0)) for hashed in every]
        names = [name for name in (*self._schema.names, "snapshot_time") if name in batch]
        of_rows = chain.from_iterable(key_numbers(batch[name]) for name in names)
        starts = segments(of_rows, len(is_record))
        heads = {name: batch[name].take(pa.array(starts)) for name in names}
        sums = [np.add.reduceat(hashed, starts).view(np.int64) for hashed in hashes]
        first, of_statements = distinct_rows(sums)
        pairs = list(zip(*[summed[first].tolist() for summed in sums], strict=True))
        edges = [*starts.tolist(), len(is_record)]
        new = {
            pair: np.flatnonzero(is_record[edges[place] : edges[place + 1]]) + edges[place]
            for pair, place in zip(pairs, first.tolist(), strict=True)
            if pair not in self._ids
        }
        if new:
            records = iter(self._records.of(batch, hashes, np.concatenate([*new.values()])))
            for pair, rows in new.items():
                self._ids[pair], kept = self._content_ids.identify(islice(records, len(rows)))
                self._contents[self._ids[pair]] = kept
        ids: Array = pa.array([self._ids[pair] for pair in pairs])
        ids = ids.take(pa.array(of_statements))
        nothing = {"collected_at": pa.nulls(len(starts), LONG), self._schema.names[-2]: ids}
        size = len(starts) + sum(map(len, new.values()))
        return size, as_runs(heads | nothing, self._schema, "snapshot_time", "collected_at")
