"""Slices of the snapshot tables -> their runs, and the contents that they name.

Rows become sums of hashes, and only what is distinct becomes Python objects: a poll that brings
what the poll before brought costs a few numbers. A healthy fleet repeats itself, so that the cost
follows the changes. Where rows have no ids, two hashes of each are summed over the list, in any
order; a sum that is new becomes a content, and gets the id that ingest would give it.

All slices of a task are read as one, and what comes of them is given away part by part, so that
little is held. What a part lacks of a run or of a statement is in others: see ``runs``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, starmap
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..declared.contents import (
    MEMBER_FACTS,
    ROUTE_FACTS,
    Fact,
    chooses_queues,
    is_expired,
    silence_bounds,
)
from ..declared.instants import SECOND
from ..engines.pieces import in_parts
from ..schemas import (
    ANSWERED,
    BOOLEAN,
    CLIENT_LOG,
    LIST_REFUSED,
    LONG,
    NOT_ONLINE,
    STRING,
    Table,
)
from . import numbers
from .checked_rows import IS_LOST, TableReading
from .numbers import NO_NUMBER, Array, Batch, Hashes, Numbers, Rows, int64, micros, pc, text
from .runs import (
    CLIENT_RUNS,
    COLLECTED,
    LOST_BROKER,
    LOST_MEMBER,
    OF_BROKERS,
    OFFSET_RUNS,
    POLL_RUNS,
    REFUSED,
    ROUTE_RUNS,
    ContentIds,
    Contents,
    Record,
    collected,
    merge_runs,
)

_BROKER = ("cluster", "consumer_group", "broker_name", "broker_id")
_NAMESERVER = ("cluster", "topic", "namesrv_addr")
_POLLED = ("snapshot_time", "collected_at")
_FIRST_COLLECTED = "first_collected_at"
#: Two collectors may give their rounds the time of one minute.
LEAST_AGAIN = 60 * SECOND

#: A part is given away that has so many statements, records of new contents among them.
_MOST_HELD = 1 << 18


class _Statements:
    """Statements as numbers: the key of each, then what is collected of it."""

    def __init__(self, schema: pa.Schema) -> None:
        """``schema``: of the runs that they make."""
        self._schema = schema
        self.columns = {n: numbers.Column() for n in schema.names if n not in COLLECTED}

    def key(self, batch: Batch) -> list[Numbers]:
        """The numbers of the columns of the key that a batch has."""
        return [
            column.number(batch[name]) for name, column in self.columns.items() if name in batch
        ]

    def runs(self, batches: Iterable[Sequence[Numbers]]) -> Rows:
        """The runs of some statements."""
        arrays = [np.concatenate(each) for each in zip(*batches, strict=True)]
        keys, values = arrays[: len(self.columns)], arrays[len(self.columns) :]
        runs = numbers.collect(keys, values)
        columns = {
            name: column.values(key[runs.first], self._schema.field(name).type)
            for (name, column), key in zip(self.columns.items(), keys, strict=True)
        }
        lists = [field for field in self._schema if field.name in COLLECTED]
        return pa.table(columns | collected(runs, values, lists), schema=self._schema)


def _runs(batches: Iterable[Batch], schema: pa.Schema, *values: str) -> Iterator[Rows]:
    """Statements of one row each as runs; ``values``: the columns that are collected of them."""
    statements = _Statements(schema)

    def as_numbers(batch: Batch) -> Sequence[Numbers]:
        found = [
            _times(batch, name) if name in _POLLED else int64(batch[name], NO_NUMBER)
            for name in values
        ]
        return *statements.key(batch), *found

    for part in in_parts(map(as_numbers, batches), _MOST_HELD, lambda each: len(each[0])):
        yield statements.runs(part)


def _times(batch: Batch, name: str) -> Numbers:
    return int64(micros(batch[name]), NO_NUMBER)


# ---------------------------------------------------------------- statements of several rows


class _Records:
    """The records of rows. Each distinct one is made once, and is one object, until ``forget``."""

    def __init__(self, types: Mapping[str, pa.DataType], make: Callable[..., Record]) -> None:
        """``make``: gives the record from the values of these columns."""
        self._types = types
        self._make = make
        self._readers = {name: numbers.reader(type_) for name, type_ in types.items()}
        self._known: dict[Record, Record] = {}

    def hashes(self, batch: Batch) -> list[Hashes]:
        """Two hashes of each row."""
        return numbers.hash_rows(read(batch[name]) for name, read in self._readers.items())

    def of(self, batch: Batch, hashes: Sequence[Hashes], rows: Numbers) -> list[Record]:
        """The record of each of these rows."""
        columns = [each.view(np.int64)[rows] for each in hashes]
        first, of_rows = numbers.distinct_rows(columns)
        places = pa.array(rows[first])
        values = [
            # Of a lost record the value may be one that the type does not hold.
            _tuples(batch[name].take(places).cast(type_, safe=False))
            for name, type_ in self._types.items()
        ]
        distinct = [self._known.setdefault(made, made) for made in map(self._make, *values)]
        return [distinct[number] for number in of_rows.tolist()]

    def forget(self) -> None:
        """Lets go of all records."""
        self._known.clear()


def _tuples(column: Array) -> list[Any]:
    """The values, hashable: lists and structs as tuples, each distinct one made once."""
    if not pa.types.is_nested(column.type):
        return list(column.to_pylist())
    first, of_rows = numbers.distinct_rows(numbers.key_numbers(column))
    distinct = [_tuple(value) for value in column.take(pa.array(first)).to_pylist()]
    return [distinct[number] for number in of_rows.tolist()]


def _tuple(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_tuple(part) for part in value.values())
    return tuple(_tuple(part) for part in value) if isinstance(value, list) else value


class _Lists:
    """Statements of several rows: of each the numbers of its key and its time, and its content.

    Rows that follow each other and belong to one statement are summed as they are read. Of each
    distinct sum the rows become the records of a content.
    """

    def __init__(self, schema: pa.Schema, facts: Sequence[Fact], records: _Records) -> None:
        self._statements = _Statements(schema)
        self._ids = self._statements.columns[schema.names[-2]]
        self._facts = facts
        self._records = records
        self._forget()

    def _forget(self) -> None:
        self._records.forget()
        self._content_ids = ContentIds(self._facts)
        #: The number of a content's id, by the sums of its rows.
        self._numbers: dict[tuple[int, ...], int] = {}
        self._contents: dict[str, list[Record]] = {}

    def parts(self, batches: Iterable[tuple[Batch, NDArray[np.bool_]]]) -> Iterator[Contents]:
        """The runs of all rows, part by part, with the contents that came so far.

        A batch is some rows, and of each whether it is a record, or shows that there is none.
        """
        of_contents = 0
        for part in in_parts(starmap(self._as_numbers, batches), _MOST_HELD, itemgetter(0)):
            runs = self._statements.runs(statements for _, statements in part)
            yield Contents(runs, self._contents)
            of_contents += sum(size - len(statements[0]) for size, statements in part)
            if of_contents >= _MOST_HELD:
                self._forget()
                of_contents = 0

    def _as_numbers(
        self, batch: Batch, is_record: NDArray[np.bool_]
    ) -> tuple[int, Sequence[Numbers]]:
        """The statements of some rows; and their number, with that of the records of what is new
        among their contents.
        """
        hashes = [np.where(is_record, each, np.uint64(0)) for each in self._records.hashes(batch)]
        names = [name for name in (*self._statements.columns, "snapshot_time") if name in batch]
        of_rows = chain.from_iterable(numbers.key_numbers(batch[name]) for name in names)
        starts = numbers.segments(of_rows, len(is_record))
        heads = {name: batch[name].take(pa.array(starts)) for name in names}
        sums = [np.add.reduceat(each, starts).view(np.int64) for each in hashes]
        first, of_statements = numbers.distinct_rows(sums)
        pairs = list(zip(*[each[first].tolist() for each in sums], strict=True))
        edges = [*starts.tolist(), len(is_record)]
        new = {
            pair: np.flatnonzero(is_record[edges[place] : edges[place + 1]]) + edges[place]
            for pair, place in zip(pairs, first.tolist(), strict=True)
            if pair not in self._numbers
        }
        if new:
            records = iter(self._records.of(batch, hashes, np.concatenate([*new.values()])))
            for pair, rows in new.items():
                id_, kept = self._content_ids.identify(islice(records, len(rows)))
                self._contents[id_] = kept
                self._numbers[pair] = self._ids.number_of(id_)
        ids = np.array([self._numbers[pair] for pair in pairs])[of_statements]
        key, times = self._statements.key(heads), _times(heads, "snapshot_time")
        size = len(starts) + sum(map(len, new.values()))
        return size, (*key, ids, times, np.full(len(starts), NO_NUMBER))


# ---------------------------------------------------------------- what brokers answered

#: Columns of the record of a member.
_MEMBER = {fact.name: fact.type for fact in MEMBER_FACTS if fact.name != "chooses_queues"} | {
    "pull_consumer": BOOLEAN,
    "consume_type": STRING,
    IS_LOST: BOOLEAN,
}


_SOURCE, _SUBSCRIPTIONS = map(list(_MEMBER).index, ("subscription_source", "subscriptions"))
_CHOOSES = [fact.name for fact in MEMBER_FACTS].index("chooses_queues")


def _member(*values: Any) -> Record:
    *facts, pull_consumer, consume_type, is_lost = values
    if is_lost:
        return LOST_MEMBER
    source, subscriptions = values[_SOURCE], values[_SUBSCRIPTIONS]
    number = None if subscriptions is None else len(subscriptions)
    facts.insert(_CHOOSES, chooses_queues(pull_consumer, consume_type, source, number))
    return tuple(facts)


def member_runs(heartbeats: TableReading, heartbeat_expiry_seconds: int) -> Iterator[Contents]:
    """The lists of brokers, from their rows; a refused row is a record that shows no member."""
    lists = _Lists(POLL_RUNS, MEMBER_FACTS, _Records(_MEMBER, _member))
    bounds = silence_bounds(heartbeat_expiry_seconds)
    least, most = bounds
    # Decided once for what is distinct: no silence is known, or by how many bounds it exceeds.
    expired: Array = pa.array(
        [
            is_expired(silence, bounds, is_silent=stopped)
            for silence in (None, least, most, most + 1)
            for stopped in (False, True)
        ]
    )
    answered = pa.array([ANSWERED])
    key = (*_BROKER, "snapshot_time")
    names = {*key, *_MEMBER, "last_heartbeat_at", "is_silent"} - {"is_expired", IS_LOST}

    def as_answered(batch: Batch) -> tuple[Batch, NDArray[np.bool_]]:
        rows = len(batch["snapshot_time"])
        silence = pc.subtract(micros(batch["snapshot_time"]), micros(batch["last_heartbeat_at"]))
        beyond = np.searchsorted([NO_NUMBER, *bounds], int64(silence, NO_NUMBER))
        batch["is_expired"] = expired.take(pa.array(2 * beyond + int64(batch["is_silent"])))
        batch |= {each: pa.nulls(rows, STRING) for each in ("broker_addr", "error_message")}
        batch["asked_for"] = pa.nulls(rows, LONG)
        batch["outcome"] = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), answered)
        return batch, np.ones(rows, np.bool_)

    return lists.parts(map(as_answered, heartbeats.batches(names, key)))


def poll_runs(broker_polls: TableReading, *, has_ids: bool) -> Iterator[Rows]:
    """The polls that brought no list, and of those that brought one the id where there is one.

    An answer with an empty list counts as NOT_ONLINE, one whose list was refused as REFUSED. Of an
    answer with a list and without an id the time alone is taken: the list comes by ``member_runs``,
    or is lost. ``has_ids``: the polls themselves have the ids of their lists.
    """
    made = {"asked_for"} if has_ids else {"asked_for", "list_id"}
    names = [name for name in POLL_RUNS.names[:-1] if name not in made]
    names += ["connections", "error_code", _FIRST_COLLECTED]
    batches = broker_polls.batches([*names, *_POLLED])
    return _runs(map(_as_counted, batches), POLL_RUNS, *_POLLED)


def _as_counted(batch: Batch) -> Batch:
    """The polls with the outcome that counts, and with the id of a list where one was given."""
    outcome = text(batch["outcome"])
    answered = pc.equal(outcome, ANSWERED).fill_null(False)
    is_empty = pc.equal(batch["connections"].fill_null(0), 0)
    ids = text(batch["list_id"]) if "list_id" in batch else pa.scalar(None, STRING)
    counted = pc.if_else(pc.and_(answered, is_empty), NOT_ONLINE, outcome)
    reason, asked_for = pa.nulls(len(outcome), STRING), pa.nulls(len(outcome), LONG)
    if {"error_code", "error_message"} <= batch.keys():
        refused = pc.equal(batch["error_code"], LIST_REFUSED).fill_null(False)
        counted = pc.if_else(refused, REFUSED, counted)
        reason = pc.if_else(refused, text(batch["error_message"]), None)
    if {_FIRST_COLLECTED, "collected_at"} <= batch.keys():
        taken = pc.subtract(micros(batch["collected_at"]), micros(batch[_FIRST_COLLECTED]))
        asked_for = pc.if_else(pc.greater_equal(taken, LEAST_AGAIN), taken, None)
    return batch | {
        "outcome": counted,
        "error_message": reason,
        "asked_for": asked_for,
        "list_id": pc.if_else(pc.and_not(answered, is_empty), ids, None),
    }


# ---------------------------------------------------------------- what nameservers gave


def _broker(*values: Any) -> Record:
    *facts, is_lost = values
    if is_lost:
        return LOST_BROKER
    row = dict(zip(_ROUTE, facts, strict=True))
    # The order of the ids has no meaning, but for the addresses.
    ids, addrs = [id_ or 0 for id_ in row["broker_ids"] or ()], row["broker_addrs"]
    if addrs is not None and len(addrs) == len(ids):
        row["broker_addrs"] = tuple(addr for _, addr in sorted(zip(ids, addrs, strict=True)))
    row["broker_ids"] = row["broker_ids"] and tuple(sorted(ids))
    return tuple(row.values())


_ROUTE = {fact.name: fact.type for fact in ROUTE_FACTS}


def route_runs(topic_routes: TableReading) -> Iterator[Contents]:
    """The routes of nameservers, from their rows; a refused row is a record that shows no broker.

    A row without a broker: the nameserver does not know the topic, which is a route of none.
    """
    lists = _Lists(ROUTE_RUNS, ROUTE_FACTS, _Records(_ROUTE | {IS_LOST: BOOLEAN}, _broker))
    key = (*_NAMESERVER, "snapshot_time")
    return lists.parts(
        (batch, int64(pc.or_(batch["broker_name"].is_valid(), batch[IS_LOST])).astype(np.bool_))
        for batch in topic_routes.batches([*key, *_ROUTE], key)
    )


def route_runs_by_id(route_polls: TableReading) -> Iterator[Rows]:
    """The routes of nameservers, from the ids that the polls have."""
    return _runs(route_polls.batches([*ROUTE_RUNS.names[:-1], *_POLLED]), ROUTE_RUNS, *_POLLED)


# ---------------------------------------------------------------- contents by their ids


#: The number of lists that are read at a time: each may have thousands of members.
_CONTENTS_AT_A_TIME = 64


def contents_by_id(table: Table, rows: TableReading) -> Iterator[Contents]:
    """The contents of ``member_lists`` or ``route_contents``; of runs the subject and the id of
    each.
    """
    *key, name = table.schema.names
    contents: Any = table.schema.field(name).type
    types = {fact.name: fact.type for fact in contents.value_type}
    records = _Records(types, lambda *values: values)

    def as_contents(batch: Batch) -> Contents:
        structs = batch[name].flatten()
        fields = {each: structs.field(each) for each in types}
        made = iter(records.of(fields, records.hashes(fields), np.arange(len(structs))))
        runs: Rows = pa.table({each: text(batch[each]) for each in key})
        lengths = int64(pc.list_value_length(batch[name])).tolist()
        ids = runs[key[-1]].to_pylist()
        named = {id_: list(islice(made, n)) for id_, n in zip(ids, lengths, strict=True)}
        return Contents(runs, named)

    batches = map(as_contents, rows.batches([*key, name], rows_at_a_time=_CONTENTS_AT_A_TIME))
    for part in in_parts(batches, _MOST_HELD, lambda each: sum(map(len, each.records.values()))):
        yield Contents(
            pa.concat_tables([each.runs for each in part]),
            dict(chain.from_iterable(each.records.items() for each in part)),
        )
        records.forget()


# ---------------------------------------------------------------- what clients report, offsets


def client_runs(client_states: TableReading) -> Iterator[Rows]:
    """The reports of client processes about themselves."""
    names = [name for name in CLIENT_RUNS.names if name != "times"]

    def as_runs(batch: Batch) -> Rows:
        source = text(batch["source"])
        # A client's answer is the same whichever broker forwarded the question.
        is_of_broker = pc.is_in(source, pa.array(OF_BROKERS, source.type))
        batch["broker_name"] = pc.if_else(is_of_broker, text(batch["broker_name"]), None)
        batch["start_timestamp"] = micros(batch["start_timestamp"])
        logged_at, snapshot_time = micros(batch["logged_at"]), micros(batch["snapshot_time"])
        is_line = pc.equal(source, CLIENT_LOG)
        batch["times"] = _each_alone(pc.if_else(is_line, logged_at, snapshot_time))
        batch["observed_at"] = _each_alone(micros(batch["observed_at"]))
        # The cast leaves out the time of each queue, which changes with each of the answers.
        columns = [batch[field.name].cast(field.type) for field in CLIENT_RUNS]
        return merge_runs(pa.table(columns, schema=CLIENT_RUNS))

    batches = map(as_runs, client_states.batches([*names, "snapshot_time", "logged_at"]))
    for part in in_parts(batches, _MOST_HELD, len):
        yield merge_runs(pa.concat_tables(part))


def _each_alone(values: Array) -> Array:
    """Each value as a list of one."""
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1), pa.int32()), values)


def offset_runs(queue_offsets: TableReading) -> Iterator[Rows]:
    """The offsets of queues, poll by poll."""
    queue = ("cluster", "consumer_group", "topic", "broker_name", "queue_id")
    values = ("snapshot_time", "broker_offset", "consumer_offset", "given_per_1000_seconds")
    return _runs(queue_offsets.batches([*queue, *values]), OFFSET_RUNS, *values)
