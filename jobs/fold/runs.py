"""Runs: one witness, one subject, one content, with all its times.

A slice of the input gives parts of runs. What belongs together is put together here, wherever the
input was cut: a run whose times lie in two slices (``merge_runs``), a statement whose rows do
(``reunite``). Times and records are sets, so that a file that comes twice changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ..declared.contents import MEMBER_FACTS, ROUTE_FACTS, Fact, content_id, record_text
from ..declared.dossier import ClientRun
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
    Table,
)
from .numbers import (
    NO_NUMBER,
    Array,
    Column,
    GroupedRows,
    Numbers,
    Rows,
    collect,
    int64,
    key_numbers,
    pc,
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
OF_BROKERS = (CONSUME_DISABLED, CONFIGURED, NOT_CONFIGURED, NO_OFFSETS)

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
    """Runs with equal keys as one; what was collected comes once each, and in time.

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
    columns = {name: rows[name] for name in keys} | collected(merged, values, fields)
    return pa.table({name: columns[name] for name in runs.column_names}, schema=runs.schema)


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
    """Restores the whole content of each statement, where parts of its rows lie in several slices.

    ``runs_of_slices``: of each slice its runs, of contents that are those of its rows alone.
    """
    runs, id_name = parts.runs, parts.id_name
    if not runs.num_rows:
        return parts
    times = runs["times"].combine_chunks()
    rows_of = _owners(times)
    keys = _keys(
        runs,
        (column_name for column_name in runs.column_names if column_name not in ("times", id_name)),
        rows_of,
    )
    ids = Column()
    contents = ids.number(runs[id_name].combine_chunks())[rows_of]
    snapshots, _ = _flat(times)
    rows = collect([*keys, snapshots], [contents])
    first = rows.first
    facts = MEMBER_FACTS if id_name == "list_id" else ROUTE_FACTS
    content_ids, names_of, records = ContentIds(facts), ids.all_values(), dict(parts.records)

    @cache
    def whole(numbers: tuple[int, ...]) -> int:
        """The number of the content that several make, which is then among the records."""
        of_parts = chain.from_iterable(records[names_of[number]] for number in numbers)
        id_, records[id_] = content_ids.identify(of_parts)
        return ids.number_of(id_)

    of_statements = contents[first]
    lengths = np.diff(rows.starts, append=len(rows.order))
    for place in np.flatnonzero(lengths > 1).tolist():
        of_parts = rows.order[rows.starts[place] :][: lengths[place]]
        of_statements[place] = whole(tuple(contents[of_parts].tolist()))
    values = [snapshots[first], np.full(len(first), NO_NUMBER)]
    merged = collect([*[key[first] for key in keys], of_statements], values)
    made = runs.take(pa.array(rows_of[first][merged.first]))
    columns = {name: made[name] for name in runs.column_names}
    columns[id_name] = ids.values(of_statements[merged.first])
    columns |= collected(merged, values, [runs.schema.field("times")])
    return Contents(pa.table(columns, schema=runs.schema), records)


def in_use(contents: Contents) -> Contents:
    """The contents without those that no run has."""
    used = pc.unique(contents.runs[contents.id_name]).to_pylist()
    every = contents.records
    return contents._replace(records={id_: every[id_] for id_ in used if id_ in every})
