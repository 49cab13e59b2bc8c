"""Slices of the snapshot tables -> parts of runs, and the contents that they name.

Rows become sums of hashes, and only what is distinct becomes Python objects: a poll that brings
what the poll before brought costs a few numbers. A healthy fleet repeats itself, so that the cost
follows the changes. Where rows have no ids, two hashes of each are summed over the list, in any
order; a sum that is new becomes a content, and gets the id that ingest would give it. What a slice
lacks of a run or of a statement is in other slices: see ``runs``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..contents import MEMBER_FACTS, ROUTE_FACTS, Fact
from ..member_flags import EXPIRED_BEYOND, chooses_queues, is_expired, silence_bounds
from ..schemas import ANSWERED, CLIENT_LOG, CONSUME_DISABLED, NOT_ONLINE, STRING
from .numbers import (
    NO_NUMBER,
    Array,
    Batch,
    Column,
    Gathered,
    Hashes,
    Numbers,
    Rows,
    Source,
    Values,
    collect,
    hash_rows,
    int64,
    key_numbers,
    micros,
    numbers_or_none,
    pc,
    read,
    segments,
    sum_segments,
    text,
)
from .runs import (
    CLIENT_RUNS,
    OFFSET_RUNS,
    POLL_RUNS,
    ROUTE_RUNS,
    ContentIds,
    Contents,
    Record,
    Records,
    concat,
    merge_runs,
    owners,
    polled,
)

_BROKER = ("cluster", "consumer_group", "broker_name", "broker_id")
_NAMESERVER = ("cluster", "topic", "namesrv_addr")
_QUEUE = ("cluster", "consumer_group", "topic", "broker_name", "queue_id")


class _Columns:
    """Columns of a table as numbers, over all batches."""

    def __init__(self, names: Sequence[str]) -> None:
        self._columns = {name: Column() for name in names}

    def read(self, batch: Batch) -> list[Numbers]:
        return [column.number(batch.column(name)) for name, column in self._columns.items()]

    def values(self, numbers: Sequence[Numbers], schema: pa.Schema) -> dict[str, Array]:
        return {
            name: column.values(number, schema.field(name).type)
            for (name, column), number in zip(self._columns.items(), numbers, strict=True)
        }


def _times(batch: Batch, name: str = "snapshot_time") -> Numbers:
    return numbers_or_none(micros(batch.column(name)))


# ---------------------------------------------------------------- statements of several rows


class _Statements:
    """Rows of statements: of each the numbers of its key and its time, and which content it has.

    Rows that follow each other and belong to one statement are summed as they are read. Of each
    distinct sum the numbers of its records are kept, and of each distinct record one row.
    """

    def __init__(self, key: Sequence[str], facts: Sequence[Fact]) -> None:
        self.columns = _Columns(key)
        self._facts = facts
        self._values = [Values(fact.type) for fact in facts]
        self._numbers: dict[tuple[int, int], int] = {}
        self._records: dict[tuple[int, int], int] = {}
        self._kept: list[Rows] = []
        self._contents: list[Numbers] = []
        self._gathered = Gathered(len(key) + 2)

    def add(self, batch: Batch, is_record: NDArray[np.bool_] | None = None) -> None:
        """Some rows; ``is_record``: false of one that shows that there is no record."""
        if not batch.num_rows:
            return
        keys = [*self.columns.read(batch), _times(batch)]
        hashes = hash_rows(
            [
                values.read(batch.column(fact.name))
                for values, fact in zip(self._values, self._facts, strict=True)
            ]
        )
        if is_record is not None:
            hashes = [np.where(is_record, hash_, np.uint64(0)) for hash_ in hashes]
        starts = segments(keys)
        ends = np.append(starts[1:], batch.num_rows)
        numbers, new = self._number([sum_segments(hash_, starts) for hash_ in hashes])
        if len(new):
            self._keep(batch, hashes, zip(starts[new], ends[new], strict=True), is_record)
        self._gathered.add(*[key[starts] for key in keys], numbers)

    def _number(self, sums: Sequence[Hashes]) -> tuple[Numbers, Numbers]:
        """The number of each sum, and the places of those that are new, by their numbers."""
        columns = [hashes.view(np.int64) for hashes in sums]
        distinct = collect(columns, [np.arange(len(columns[0]))])
        before = len(self._numbers)
        in_order = np.argsort(distinct.first)
        firsts = distinct.first[in_order]
        numbers = _numbered(self._numbers, columns, firsts)
        of_distinct = np.empty_like(numbers)
        of_distinct[in_order] = numbers
        return of_distinct[distinct.numbers()], firsts[numbers >= before]

    def _keep(
        self,
        batch: Batch,
        hashes: Sequence[Hashes],
        edges: Iterable[tuple[int, int]],
        is_record: NDArray[np.bool_] | None,
    ) -> None:
        """Keeps the records of contents that are new, between the edges."""
        spans = [np.arange(*edge) for edge in edges]
        if is_record is not None:
            spans = [span[is_record[span]] for span in spans]
        rows = np.concatenate(spans)
        columns = [hash_.view(np.int64)[rows] for hash_ in hashes]
        distinct = collect(columns, [np.arange(len(rows))])
        first, known = distinct.first, self._records
        before = len(known)
        numbers = _numbered(known, columns, first)
        of_rows = numbers[distinct.numbers()]
        self._contents += np.split(of_rows, np.cumsum([len(span) for span in spans])[:-1])
        taken = batch.select([fact.name for fact in self._facts]).take(
            pa.array(rows[first[numbers >= before]])
        )
        kept = [taken.column(fact.name).cast(fact.type) for fact in self._facts]
        self._kept.append(pa.table(kept, [fact.name for fact in self._facts]))

    def contents(self, schema: pa.Schema, id_name: str, **others: str | None) -> Contents:
        """The runs and the contents of all rows; ``others``: columns with one value."""
        *keys, times, numbers = self._gathered.arrays()
        ids = ContentIds(self._facts)
        (records,) = records_of(self._kept, [len(self._records)], self._facts)
        found = [ids.identify([records[n] for n in content.tolist()]) for content in self._contents]
        id_numbers = Column()
        of_numbers = np.array([id_numbers.number_of(id_) for id_, _ in found] or [0], np.int64)
        contents = of_numbers[numbers]
        runs = collect([*keys, contents], [times])
        first = runs.first
        columns = self.columns.values([key[first] for key in keys], schema)
        columns[id_name] = id_numbers.values(contents[first])
        columns["times"] = polled(runs, times, np.full(len(times), NO_NUMBER))
        columns |= {name: pa.array([value] * len(first)) for name, value in others.items()}
        table = pa.table({name: columns[name] for name in schema.names}, schema=schema)
        return Contents(table, dict(found))


def _numbered(
    known: dict[tuple[int, int], int], columns: Sequence[Numbers], places: Numbers
) -> Numbers:
    """The numbers of the pairs at some places; a new pair gets the next one."""
    pairs = zip(*[column[places].tolist() for column in columns], strict=True)
    return np.array([known.setdefault(pair, len(known)) for pair in pairs], np.int64)


def records_of(
    kept: Sequence[Rows], lengths: Sequence[int], facts: Sequence[Fact]
) -> list[list[Record]]:
    """The records of each content; equal ones are one object, and made once."""
    table = concat(kept, pa.schema([(fact.name, fact.type) for fact in facts])).combine_chunks()
    columns = [table[fact.name].combine_chunks() for fact in facts]
    hashes = hash_rows([Values(column.type).read(column) for column in columns])
    rows = collect([hash_.view(np.int64) for hash_ in hashes], [np.arange(table.num_rows)])
    first = pa.array(rows.first)
    values = [
        _tuples(column.take(first), fact.type) for column, fact in zip(columns, facts, strict=True)
    ]
    distinct = list(zip(*values, strict=True))
    records = [distinct[number] for number in rows.numbers().tolist()]
    ends = np.cumsum(lengths).tolist()
    return [records[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def _tuples(column: Array, type_: pa.DataType) -> list[Any]:
    """The values, hashable: lists and structs as tuples, each distinct one made once."""
    if not pa.types.is_nested(type_):
        plain: list[Any] = column.to_pylist()
        return plain
    values = collect(key_numbers(column), [np.arange(len(column))])
    distinct = [_tuple(value) for value in column.take(pa.array(values.first)).to_pylist()]
    return [distinct[number] for number in values.numbers().tolist()]


def _tuple(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_tuple(part) for part in value.values())
    return tuple(_tuple(part) for part in value) if isinstance(value, list) else value


# ---------------------------------------------------------------- what brokers answered

_COMPUTED = ("is_expired", "chooses_queues")
_OF_MARKS = (
    "consume_type",
    "subscription_source",
    "pull_consumer",
    "last_heartbeat_at",
    "is_silent",
)


def member_runs(heartbeats: Source, heartbeat_expiry_seconds: int) -> Contents:
    """The lists of brokers, from their rows."""
    statements = _Statements(_BROKER, MEMBER_FACTS)
    marks = _Marks(heartbeat_expiry_seconds)
    names = [fact.name for fact in MEMBER_FACTS if fact.name not in _COMPUTED]
    columns = dict.fromkeys([*_BROKER, "snapshot_time", *names, *_OF_MARKS])
    for batch in read(heartbeats, list(columns)):
        statements.add(marks.add_to(batch))
    return statements.contents(POLL_RUNS, "list_id", outcome=ANSWERED, broker_addr=None)


class _Marks:
    """``is_expired`` and ``chooses_queues`` of rows, each decided once for what is distinct."""

    def __init__(self, heartbeat_expiry_seconds: int) -> None:
        self._bounds = silence_bounds(heartbeat_expiry_seconds)
        least, most = self._bounds
        #: By how many bounds a silence exceeds, and whether the member stopped; then: no silence.
        self._expired = [
            is_expired(silence, self._bounds, is_silent=stopped)
            for silence in (least, most, most + 1, None)
            for stopped in (False, True)
        ]
        self._columns = [Column() for _ in range(4)]

    def add_to(self, batch: Batch) -> Batch:
        """The rows with both columns."""
        silence = pc.subtract(
            micros(batch.column("snapshot_time")), micros(batch.column("last_heartbeat_at"))
        )
        beyond = np.searchsorted(self._bounds, int64(silence), side="left")
        beyond[~_valid(silence)] = len(EXPIRED_BEYOND)
        stopped = _true(batch.column("is_silent"))
        flags: Array = pa.array(self._expired, pa.bool_())
        expired = flags.take(pa.array(2 * beyond + stopped))
        return batch.append_column("is_expired", expired).append_column(
            "chooses_queues", self._chooses(batch)
        )

    def _chooses(self, batch: Batch) -> Array:
        lengths = pc.list_value_length(batch.column("subscriptions"))
        names = ("pull_consumer", "consume_type", "subscription_source")
        columns = [*[batch.column(name) for name in names], lengths]
        numbers = [
            column.number(values) for column, values in zip(self._columns, columns, strict=True)
        ]
        rows = collect(numbers, [np.arange(batch.num_rows)])
        values = [column.all_values() for column in self._columns]
        decided = [
            chooses_queues(*[each[place] for each, place in zip(values, places, strict=True)])
            for places in zip(*[number[rows.first].tolist() for number in numbers], strict=True)
        ]
        return pa.array(np.array(decided, np.bool_)[rows.numbers()])


def _valid(column: Array) -> NDArray[np.bool_]:
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


def _true(column: Array) -> NDArray[np.bool_]:
    return np.asarray(column.fill_null(False).to_numpy(zero_copy_only=False))


def poll_runs(broker_polls: Source, *, has_ids: bool) -> Rows:
    """The polls that brought no list, and of those that brought one the id where there is one.

    An answer with an empty list counts as NOT_ONLINE. Of an answer with a list and without an id
    the time alone is taken: the list comes by ``member_runs``, or is lost. ``has_ids``: the polls
    themselves have the ids of their lists.
    """
    names = [*_BROKER, "broker_addr", "outcome", "connections"] + ["list_id"] * has_ids
    return _runs_of_polls(broker_polls, names, POLL_RUNS, _as_counted)


def _as_counted(batch: Batch) -> Batch:
    """The polls with the outcome that counts, and with the id of a list where one was given."""
    outcome = text(batch.column("outcome"))
    answered = pc.equal(outcome, ANSWERED).fill_null(False)
    is_empty = pc.equal(batch.column("connections").fill_null(0), 0)
    ids = pa.nulls(batch.num_rows, STRING)
    if "list_id" in batch.schema.names:
        ids = pc.if_else(pc.and_not(answered, is_empty), text(batch.column("list_id")), None)
        batch = batch.drop_columns("list_id")
    counted = pc.if_else(pc.and_(answered, is_empty), NOT_ONLINE, outcome)
    return (
        batch.drop_columns("outcome")
        .append_column("outcome", counted)
        .append_column("list_id", ids)
    )


def _runs_of_polls(
    source: Source,
    names: Sequence[str],
    schema: pa.Schema,
    prepared: Callable[[Batch], Batch] = lambda batch: batch,
) -> Rows:
    """Polls as runs, one for each distinct key; ``prepared``: the polls with their key."""
    key = schema.names[:-1]
    columns, gathered = _Columns(key), Gathered(len(key) + 2)
    for batch in read(source, [*names, "snapshot_time", "collected_at"]):
        asked_at, answered_at = _times(batch), _times(batch, "collected_at")
        gathered.add(*columns.read(prepared(batch)), asked_at, answered_at)
    *keys, times, answered_at = gathered.arrays()
    runs = collect(keys, [times, answered_at])
    made = columns.values([number[runs.first] for number in keys], schema)
    return pa.table({**made, "times": polled(runs, times, answered_at)}, schema=schema)


# ---------------------------------------------------------------- what nameservers gave


def route_runs(topic_routes: Source) -> Contents:
    """The routes of nameservers, from their rows.

    A row without a broker: the nameserver does not know the topic, which is a route of none.
    """
    statements = _Statements(_NAMESERVER, ROUTE_FACTS)
    names = [*_NAMESERVER, "snapshot_time", *[fact.name for fact in ROUTE_FACTS]]
    for batch in read(topic_routes, names):
        statements.add(_with_sorted_ids(batch), _valid(batch.column("broker_name")))
    return statements.contents(ROUTE_RUNS, "route_id")


def route_runs_by_id(route_polls: Source) -> Rows:
    """The routes of nameservers, from the ids that the polls have."""
    return _runs_of_polls(route_polls, [*_NAMESERVER, "route_id"], ROUTE_RUNS)


def _with_sorted_ids(batch: Batch) -> Batch:
    """``broker_ids`` in ascending order: their order has no meaning."""
    lists = batch.column("broker_ids")
    values = int64(lists.flatten())
    in_order = values[np.lexsort([values, owners(lists)])]
    place = batch.schema.get_field_index("broker_ids")
    return batch.set_column(place, "broker_ids", _with_values(lists, pa.array(in_order)))


def _with_values(lists: Array, values: Array) -> Array:
    """The lists with other values, as many in each."""
    ends = np.cumsum(int64(pc.list_value_length(lists)))
    offsets = pa.array(np.append(0, ends), pa.int32())
    return pa.ListArray.from_arrays(offsets, values, mask=lists.is_null())


# ---------------------------------------------------------------- contents by their ids


#: So many lists are read at a time: each may have thousands of members.
_CONTENTS_AT_A_TIME = 64


def contents_by_id(
    source: Source, subject: Sequence[str], id_name: str, name: str, facts: Sequence[Fact]
) -> Iterator[tuple[tuple[str, ...], str, Records]]:
    """(subject, id, records) of each content of ``member_lists`` or ``route_contents``."""
    for batch in read(source, [*subject, id_name, name], _CONTENTS_AT_A_TIME):
        contents = batch.column(name)
        records = contents.flatten()
        kept = pa.table(
            [records.field(fact.name).cast(fact.type) for fact in facts],
            [fact.name for fact in facts],
        )
        lengths = int64(pc.list_value_length(contents)).tolist()
        subjects = zip(*[text(batch.column(key)).to_pylist() for key in subject], strict=True)
        ids = text(batch.column(id_name)).to_pylist()
        yield from zip(subjects, ids, records_of([kept], lengths, facts), strict=True)


# ---------------------------------------------------------------- what clients report, offsets


def client_runs(client_states: Source) -> Rows:
    """What client processes report of themselves."""
    facts = [field for field in CLIENT_RUNS if field.name not in ("times", "observed_at")]
    parts: list[Rows] = []
    names = [field.name for field in facts]
    for batch in read(client_states, [*names, "snapshot_time", "logged_at", "observed_at"]):
        values: dict[str, Array] = {name: batch.column(name) for name in names}
        values["start_timestamp"] = micros(values["start_timestamp"])
        values["queues"] = _without_last_pull(values["queues"])
        source = text(batch.column("source"))
        # A client's answer is the same whichever broker forwarded the question.
        values["broker_name"] = pc.if_else(
            pc.equal(source, CONSUME_DISABLED), text(values["broker_name"]), None
        )
        is_line = pc.equal(source, CLIENT_LOG)
        values["times"] = _each_alone(
            pc.if_else(
                is_line, micros(batch.column("logged_at")), micros(batch.column("snapshot_time"))
            )
        )
        values["observed_at"] = _each_alone(micros(batch.column("observed_at")))
        columns = [values[field.name].cast(field.type) for field in CLIENT_RUNS]
        parts.append(merge_runs(pa.table(columns, schema=CLIENT_RUNS)))
    return merge_runs(concat(parts, CLIENT_RUNS))


def _each_alone(values: Array) -> Array:
    """Each value as a list of one."""
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1), pa.int32()), values)


def _without_last_pull(queues: Array) -> Array:
    """The queues without the time that changes with each of a client's answers."""
    names = [field.name for field in CLIENT_RUNS.field("queues").type.value_type]
    flat = queues.flatten()
    kept = pa.StructArray.from_arrays([flat.field(name) for name in names], names)
    return _with_values(queues, kept)


def offset_runs(queue_offsets: Source) -> Rows:
    """The offsets of queues, poll by poll."""
    columns = _Columns(_QUEUE)
    gathered = Gathered(len(_QUEUE) + 3)
    offsets = ("broker_offset", "consumer_offset")
    for batch in read(queue_offsets, [*_QUEUE, "snapshot_time", *offsets]):
        found = [int64(batch.column(name)) for name in offsets]
        gathered.add(*columns.read(batch), _times(batch), *found)
    *keys, times, broker, consumer = gathered.arrays()
    runs = collect(keys, [times, broker, consumer])
    made = columns.values([key[runs.first] for key in keys], OFFSET_RUNS)
    collected = [runs.lists(values) for values in (times, broker, consumer)]
    made |= zip(("times", "broker_offsets", "consumer_offsets"), collected, strict=True)
    return pa.table(made, schema=OFFSET_RUNS)
