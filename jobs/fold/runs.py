"""Runs: one witness, one subject, one content, with all its times.

A slice of the input gives parts of runs. What belongs together is put together here, wherever the
input was cut: a run whose times lie in two slices (``merge_runs``), a statement whose rows do
(``reunite``). Times and records are sets, so that a file that comes twice changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ..contents import MEMBER_FACTS, ROUTE_FACTS, Fact, RecordTexts, content_id
from ..judge.dossier import ClientRun
from ..schemas import BOOLEAN, INT, LONG, STRING
from .numbers import (
    NO_NUMBER,
    Array,
    Collected,
    Column,
    Numbers,
    Rows,
    collect,
    int64,
    key_numbers,
    numbers_or_none,
    pc,
)

_OFFSETS = ("broker_offsets", "consumer_offsets")

#: A record of a content: the values of its facts, in order.
Record: TypeAlias = tuple[Any, ...]
Records: TypeAlias = Sequence[Record]

#: When a witness was asked: the round that the question belongs to, and when it answered (null:
#: not recorded).
POLLED = pa.list_(pa.struct([pa.field("snapshot_time", LONG), pa.field("collected_at", LONG)]))
_HELD = pa.list_(
    pa.struct(
        [
            pa.field("topic", STRING),
            pa.field("broker_name", STRING),
            pa.field("queue_id", INT),
            pa.field("dropped", BOOLEAN),
        ]
    )
)
_TYPES: dict[str, pa.DataType] = {
    **dict.fromkeys(("broker_id", "start_timestamp"), LONG),
    **dict.fromkeys(("error_code", "version", "queue_id", "queue_count", "client_count"), INT),
    **dict.fromkeys(("pull_consumer", "consume_orderly", "client_rebalance"), BOOLEAN),
    **dict.fromkeys(("times", "observed_at", *_OFFSETS), pa.list_(LONG)),
    "queues": _HELD,
    "activities": pa.list_(STRING),
}


def _schema(*names: str, **types: pa.DataType) -> pa.Schema:
    """Columns by name: texts, but for those that have a type of their own."""
    every = {name: _TYPES.get(name, STRING) for name in names} | types
    return pa.schema(list(every.items()))


_GROUP = ("cluster", "consumer_group")

#: One row per broker and address, group and answer: when (times) the broker gave it. ``outcome``:
#: ANSWERED, NOT_ONLINE (also: an empty list) or NO_ANSWER. ``list_id``: of what was ANSWERED, else
#: null; ANSWERED without an id: the list comes in another run.
POLL_RUNS = _schema(
    *_GROUP, "broker_name", "broker_id", "broker_addr", "outcome", "list_id", times=POLLED
)

#: One row per nameserver, topic and route: when (times) the nameserver gave it.
ROUTE_RUNS = _schema("cluster", "topic", "namesrv_addr", "route_id", times=POLLED)

#: One row per client process and what it reported of itself (RUNNING_INFO, CLIENT_LOG), and per
#: word of brokers of the group (REQUEST_MODE, CONSUME_DISABLED: of the latter with the broker's
#: name): ``activities`` of each of its ``queues``; of a log line when it was written (null: no zone
#: fits), of all else its snapshot, and beside these times when each was collected.
CLIENT_RUNS = _schema(
    *_GROUP,
    *ClientRun._fields[:-2],
    "broker_name",
    "queues",
    "activities",
    "times",
    "observed_at",
)

#: One row per queue: of each poll its snapshot and the two offsets.
OFFSET_RUNS = _schema(*_GROUP, "topic", "broker_name", "queue_id", "times", *_OFFSETS)

#: What is collected of a run, list beside list. All other columns are its key.
_COLLECTED = ("times", "observed_at", *_OFFSETS)


class Contents(NamedTuple):
    """Runs of one kind of witness, and by id the records of each distinct content.

    ``runs``: rows of ``POLL_RUNS`` or ``ROUTE_RUNS``. A record has the values of ``MEMBER_FACTS``
    or ``ROUTE_FACTS``, in order.
    """

    runs: Rows
    records: Mapping[str, Records]


class Runs(NamedTuple):
    """All that witnesses reported about some groups and their topics."""

    lists: Contents
    routes: Contents
    #: Rows of ``CLIENT_RUNS`` and of ``OFFSET_RUNS``.
    clients: Rows
    offsets: Rows


def polled(collected: Collected, times: Numbers, answered: Numbers) -> Array:
    """The times of runs as ``POLLED``: the snapshot, and when the answer came."""
    snapshots, at = collected.lists(times), collected.lists(answered)
    fields = list(POLLED.value_type)
    struct = pa.StructArray.from_arrays([snapshots.values, at.values], fields=fields)
    return pa.ListArray.from_arrays(snapshots.offsets, struct)


def merge_runs(runs: Rows) -> Rows:
    """Runs with equal keys as one; what was collected comes once each, and in time.

    >>> rows = [{"topic": "T", "times": [2, 1]}, {"topic": "T", "times": [2, 3]}]
    >>> merge_runs(pa.Table.from_pylist(rows)).to_pylist()
    [{'topic': 'T', 'times': [1, 2, 3]}]
    """
    if not runs.num_rows:
        return runs
    names = [name for name in runs.column_names if name in _COLLECTED]
    keys = [name for name in runs.column_names if name not in _COLLECTED]
    lists = [_chunk(runs[name]) for name in names]
    rows_of = owners(lists[0])
    numbers = [number[rows_of] for name in keys for number in key_numbers(_chunk(runs[name]))]
    flat = [_flat(list_) for list_ in lists]
    merged = collect(numbers, [column for columns in flat for column in columns])
    rows: Rows = runs.select(keys).take(pa.array(rows_of[merged.first]))
    columns: dict[str, Array] = {name: rows[name] for name in keys}
    for name, values, came in zip(names, flat, lists, strict=True):
        is_polled = len(values) > 1
        made = polled(merged, *values) if is_polled else merged.lists(values[0])
        columns[name] = made.cast(came.type)
    return pa.table({name: columns[name] for name in runs.column_names}, schema=runs.schema)


def _chunk(column: Array) -> Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def owners(lists: Array) -> Numbers:
    """Of each value in the lists the row of its list."""
    lengths = int64(pc.list_value_length(lists))
    return np.repeat(np.arange(len(lengths)), lengths)


def _flat(lists: Array) -> list[Numbers]:
    """The values of all lists; of times with the times of the answers both."""
    values = lists.flatten()
    columns = values.flatten() if pa.types.is_struct(values.type) else [values]
    return [numbers_or_none(column) for column in columns]


# ---------------------------------------------------------------- contents


class ContentIds:
    """The ids of contents, and each content as it is kept; the text of a record is made once."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._record_texts = RecordTexts(facts)
        #: By the identity of a record, which is kept: equal ones are one object as a rule.
        self._texts: dict[int, tuple[Record, str]] = {}

    def identify(self, records: Iterable[Record]) -> tuple[str, list[Record]]:
        """The id of a content, and its distinct records, in an order that is always the same."""
        by_text = {self._text(record): record for record in records}
        return content_id(by_text), [by_text[text] for text in sorted(by_text)]

    def _text(self, record: Record) -> str:
        found = self._texts.get(id(record))
        if found is None:
            found = self._texts[id(record)] = record, self._record_texts.of(record)
        return found[1]


def reunite(parts: Contents, id_name: str) -> Contents:
    """Of each statement the whole content, where parts of its rows lie in several slices.

    ``parts``: of each slice its runs, of contents that are those of its rows alone.
    """
    runs = parts.runs.combine_chunks()
    if not runs.num_rows:
        return parts
    names = [name for name in runs.column_names if name not in ("times", id_name)]
    times = _chunk(runs["times"])
    rows_of = owners(times)
    ids = Column()
    contents = ids.number(_chunk(runs[id_name]))[rows_of]
    keys = [number[rows_of] for name in names for number in key_numbers(_chunk(runs[name]))]
    snapshots, _ = _flat(times)
    rows = collect([*keys, snapshots], [contents])
    lengths = np.diff(np.append(rows.starts, len(rows.order)))
    if (lengths < 2).all():
        return Contents(merge_runs(runs), parts.records)
    facts = MEMBER_FACTS if id_name == "list_id" else ROUTE_FACTS
    content_ids, names_of, records = ContentIds(facts), ids.all_values(), dict(parts.records)

    @cache
    def whole(numbers: tuple[int, ...]) -> str:
        """The id of the content that several make, which is then among the records."""
        of_parts = chain.from_iterable(records[names_of[number]] for number in numbers)
        id_, records[id_] = content_ids.identify(of_parts)
        return id_

    of_statements = contents[rows.first]
    ends = rows.starts + lengths
    for place in np.flatnonzero(lengths > 1).tolist():
        found = contents[rows.order[rows.starts[place] : ends[place]]]
        of_statements[place] = ids.number_of(whole(tuple(found.tolist())))
    first = rows.first
    merged = collect([*[key[first] for key in keys], of_statements], [snapshots[first]])
    made: Rows = runs.take(pa.array(rows_of[first][merged.first]))
    nothing = np.full(len(first), NO_NUMBER)
    columns = {
        id_name: ids.values(of_statements[merged.first]),
        "times": polled(merged, snapshots[first], nothing),
    }
    table = pa.table(
        {name: columns.get(name, made[name]) for name in runs.column_names}, schema=runs.schema
    )
    return Contents(table, records)


def in_use(contents: Contents, id_name: str) -> Contents:
    """The contents without those that no run has."""
    used = set(pc.unique(contents.runs[id_name]).to_pylist())
    records = {id_: kept for id_, kept in contents.records.items() if id_ in used}
    return contents._replace(records=records)


def concat(tables: Iterable[Rows], schema: pa.Schema) -> Rows:
    """The rows of all tables."""
    return pa.concat_tables([schema.empty_table(), *tables])
