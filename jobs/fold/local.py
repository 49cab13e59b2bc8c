"""The fold in the driver, without Spark: snapshot tables -> dossiers by NumPy and PyArrow.

The same runs, contents and rows of ``DOSSIER`` as those of ``spark``. Rows become sums of hashes,
and only what is distinct becomes Python objects: a poll that brings what the poll before brought
costs a few numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jobs.contents import HEARD_SECONDS, MEMBER_FACTS, ROUTE_FACTS, Fact, content_id, record_text
from jobs.fold.numbers import (
    Array,
    Batch,
    Column,
    Gathered,
    Numbers,
    Rows,
    Source,
    Values,
    find_runs,
    hash_rows,
    int64,
    micros,
    pc,
    read,
    segments,
    sum_segments,
    text,
)
from jobs.fold.runs import POLL_RUNS, ROUTE_RUNS
from jobs.instants import SECOND
from jobs.judge.dossier import CLIENT, DOSSIER, OFFSETS, PARTS, POLL, POLLED, ROUTE
from jobs.schemas import ANSWERED, LONG, NOT_ONLINE, ROUTE_BROKERS, STRING
from rebalance_core.message_queue import RETRY_PREFIX

#: A record of a content: the values of its facts, in order.
Record: TypeAlias = tuple[Any, ...]
#: (cluster, topic).
Subject: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Contents:
    """Runs of one kind of witness, and by id the records of each distinct content.

    ``runs``: rows of ``POLL_RUNS`` or ``ROUTE_RUNS``. A record has the values of ``MEMBER_FACTS``
    or ``ROUTE_FACTS``, in order.
    """

    runs: Rows
    records: Mapping[str, Sequence[Record]]


def _read_keys(
    batch: Batch, columns: Mapping[str, Column], time: str = "snapshot_time"
) -> list[Numbers]:
    keys = [column.number(batch.column(name)) for name, column in columns.items()]
    return [*keys, int64(micros(batch.column(time)))]


def _identify(
    batches: Iterable[Batch],
    columns: Mapping[str, Column],
    facts: Sequence[Fact],
    is_record: Callable[[Batch], NDArray[np.bool_]] | None = None,
) -> tuple[list[Numbers], list[list[Record]]]:
    """Which content each witness gave of each subject and when, and each content's records.

    Returns, one row for each statement, the numbers of the key ``columns``, the time and the number
    of the content. Rows that follow each other and belong to one statement are summed as they are
    read; of each distinct sum the rows are kept. Where the rows of a statement lie apart, several
    of these make its content. ``is_record``: false for a row that means that there is no record.
    """
    of_facts = [Values(fact.type) for fact in facts]
    parts: dict[tuple[int, int], int] = {}
    kept: list[Rows] = []
    lengths: list[int] = []
    gathered = Gathered(len(columns) + 4)
    for batch in batches:
        if not batch.num_rows:
            continue
        keys = _read_keys(batch, columns)
        hashes = hash_rows(
            [each.read(batch.column(f.name)) for each, f in zip(of_facts, facts, strict=True)]
        )
        records = np.ones(batch.num_rows, bool) if is_record is None else is_record(batch)
        if is_record is not None:
            hashes = [np.where(records, each, np.uint64(0)) for each in hashes]
        starts = segments(keys)
        ends = np.append(starts[1:], batch.num_rows)
        sums = [sum_segments(each, starts) for each in hashes]
        numbers = np.empty(len(starts), np.int64)
        new: list[int] = []
        for place, key in enumerate(zip(*[each.tolist() for each in sums], strict=True)):
            number = parts.setdefault(key, len(parts))
            numbers[place] = number
            if number == len(lengths):
                lengths.append(0)
                new.append(place)
        if new:
            rows = np.concatenate([np.arange(starts[each], ends[each]) for each in new])
            owner = np.repeat(numbers[new], ends[new] - starts[new])[records[rows]]
            rows = rows[records[rows]]
            for number, count in zip(*np.unique(owner, return_counts=True), strict=True):
                lengths[number] = int(count)
            kept.append(
                pa.table(
                    [batch.column(f.name).take(pa.array(rows)).cast(f.type) for f in facts],
                    [fact.name for fact in facts],
                )
            )
        gathered.add(*[key[starts] for key in keys], *[s.view(np.int64) for s in sums], numbers)
    *keys, first, second, numbers = gathered.arrays()
    records_of = _records_of(kept, lengths, facts)
    # All parts of a statement next to each other.
    order = np.lexsort(list(reversed(keys)))
    keys = [key[order] for key in keys]
    starts = segments(keys) if len(order) else np.zeros(0, np.int64)
    ends = np.append(starts[1:], len(order))
    sums = [sum_segments(each[order].view(np.uint64), starts) for each in (first, second)]
    numbers = numbers[order]
    contents: dict[tuple[int, int], int] = {}
    found: list[list[Record]] = []
    answers = np.empty(len(starts), np.int64)
    for place, key in enumerate(zip(*[each.tolist() for each in sums], strict=True)):
        number = answers[place] = contents.setdefault(key, len(contents))
        if number == len(found):
            of_statement = numbers[starts[place] : ends[place]].tolist()
            found.append([record for part in of_statement for record in records_of[part]])
    return [*[key[starts] for key in keys], answers], found


def _records_of(
    kept: Sequence[Rows], lengths: Sequence[int], facts: Sequence[Fact]
) -> list[list[Record]]:
    """The records of each part; equal ones are one object."""
    one: dict[Record, Record] = {}
    records: list[Record] = []
    for table in kept:
        columns = [_tuples(column, fact.type) for column, fact in zip(table, facts, strict=True)]
        records.extend(one.setdefault(each, each) for each in zip(*columns, strict=True))
    ends = np.cumsum(lengths).tolist()
    return [records[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def _tuples(column: Array, type_: pa.DataType) -> list[Any]:
    """The values, hashable: lists and structs as tuples."""
    values = column.to_pylist()
    return [_tuple(v) for v in values] if pa.types.is_nested(type_) else values


def _tuple(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(_tuple(each) for each in value.values())
    return tuple(_tuple(each) for each in value) if isinstance(value, list) else value


class _Ids:
    """The ids of contents; the text of a record is made once."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._facts = facts
        self._texts: dict[Record, str] = {}

    def of(self, records: Iterable[Record]) -> str:
        return content_id(self._text(record) for record in records)

    def _text(self, record: Record) -> str:
        text = self._texts.get(record)
        if text is None:
            text = self._texts[record] = record_text(self._facts, record)
        return text


# ---------------------------------------------------------------- what brokers answered

_BROKER = ("cluster", "consumer_group", "broker_name", "broker_id")
_POLL_COLUMNS = (*_BROKER, "snapshot_time", "outcome", "connections")
_OF_MARKS = (
    "consume_type",
    "subscription_source",
    "pull_consumer",
    "last_heartbeat_at",
    "is_silent",
)
_COMPUTED = ("is_expired", "chooses_queues")


def member_runs(
    heartbeats: Source, broker_polls: Source | None, heartbeat_expiry_seconds: int
) -> Contents:
    """What each broker answered, from the rows of its lists and the polls that brought none."""
    columns = {name: Column() for name in _BROKER}
    names = [fact.name for fact in MEMBER_FACTS if fact.name not in _COMPUTED]
    columns_read = dict.fromkeys([*_BROKER, "snapshot_time", *names, *_OF_MARKS])
    rows = read(heartbeats, list(columns_read))
    marked = (_mark_members(batch, heartbeat_expiry_seconds) for batch in rows)
    (*keys, contents), found = _identify(marked, columns, MEMBER_FACTS)
    ids = _Ids(MEMBER_FACTS)
    list_ids = [ids.of(records) for records in found]
    answers = _Answers(columns, has_ids=False)
    answers.add_lists(keys, np.array(list_ids, dtype=object)[contents] if list_ids else [])
    if broker_polls is not None:
        for batch in read(broker_polls, _with_time(broker_polls, _POLL_COLUMNS)):
            answers.add_outcomes(batch)
    return Contents(answers.runs(), dict(zip(list_ids, found, strict=True)))


def member_runs_by_id(broker_polls: Source, member_lists: Source) -> Contents:
    """The same from the ids that the polls have: one narrow row an answer is read."""
    answers = _Answers({name: Column() for name in _BROKER}, has_ids=True)
    for batch in read(broker_polls, _with_time(broker_polls, [*_POLL_COLUMNS, "list_id"])):
        answers.add_outcomes(batch)
    runs = answers.runs()
    records = _read_contents(member_lists, "list_id", "members", MEMBER_FACTS, runs)
    return Contents(runs, records)


def _with_time(source: Source, names: Sequence[str]) -> list[str]:
    """The columns, and the time of the answers where the table has it."""
    has_time = "collected_at" in source.schema.names
    return [*names, "collected_at"] if has_time else list(names)


def _mark_members(batch: Batch, heartbeat_expiry_seconds: int) -> Batch:
    """Adds ``is_expired`` and ``chooses_queues``: see ``snapshots`` for both rules."""
    silent = pc.subtract(
        micros(batch.column("snapshot_time")), micros(batch.column("last_heartbeat_at"))
    )
    is_heard = pc.less_equal(silent, HEARD_SECONDS * SECOND)
    stopped = batch.column("is_silent").fill_null(False)
    is_expired = pc.if_else(
        pc.or_kleene(stopped, pc.greater(silent, heartbeat_expiry_seconds * SECOND)),
        True,
        pc.if_else(is_heard, False, pa.scalar(None, pa.bool_())),
    )
    assigns = pc.and_(
        pc.and_(
            pc.equal(text(batch.column("consume_type")), "CONSUME_ACTIVELY"),
            pc.equal(pc.list_value_length(batch.column("subscriptions")), 0),
        ),
        pc.not_equal(text(batch.column("subscription_source")), "GROUP_TABLE"),
    )
    chooses = pc.or_(batch.column("pull_consumer").fill_null(False), assigns.fill_null(False))
    return batch.append_column("is_expired", is_expired).append_column("chooses_queues", chooses)


#: In place of a time that was not recorded.
_NO_TIME = np.iinfo(np.int64).min


def _collected_at(batch: Batch) -> Numbers:
    """When each answer came, or _NO_TIME."""
    if "collected_at" not in batch.schema.names:
        return np.full(batch.num_rows, _NO_TIME)
    times = micros(batch.column("collected_at")).fill_null(_NO_TIME)
    return np.asarray(times.to_numpy(zero_copy_only=False), dtype=np.int64)


def _polled_runs(
    keys: Sequence[Numbers], times: Numbers, collected: Numbers
) -> tuple[Numbers, Array]:
    """Statements to runs, as ``find_runs``; the times as ``dossier.POLLED``, each once."""
    order = np.lexsort([collected, times, *reversed(keys)])
    order = order[segments([each[order] for each in [*keys, times, collected]])]
    keys, times, collected = [key[order] for key in keys], times[order], collected[order]
    first, (snapshots, at) = find_runs(keys, times, pa.array(collected))
    values = pa.array(np.asarray(at.values), LONG, mask=np.asarray(at.values) == _NO_TIME)
    polled = pa.StructArray.from_arrays([snapshots.values, values], fields=list(POLLED.value_type))
    return order[first], pa.ListArray.from_arrays(snapshots.offsets, polled)


class _Answers:
    """The answers of brokers as numbers, one row for each poll.

    ``has_ids``: the polls themselves have the ids of their lists.
    """

    def __init__(self, columns: Mapping[str, Column], *, has_ids: bool) -> None:
        self._has_ids = has_ids
        self._columns = columns
        self._outcomes = Column()
        self._list_ids = Column()
        self._rows = Gathered(len(_BROKER) + 4)

    def add_lists(self, keys: Sequence[Numbers], list_ids: Iterable[str]) -> None:
        """Polls that brought a list."""
        numbers = np.array([self._list_ids.number_of(each) for each in list_ids], dtype=np.int64)
        outcome = np.full(len(numbers), self._outcomes.number_of(ANSWERED))
        self._rows.add(*keys, outcome, numbers, np.full(len(numbers), _NO_TIME))

    def add_outcomes(self, batch: Batch) -> None:
        """Polls that brought none, and of those that brought one the id where there is one.

        An answer with an empty list counts as NOT_ONLINE. Of an answer with a list and without
        an id the time alone is taken: the list comes by ``add_lists``.
        """
        outcomes = self._outcomes.number(batch.column("outcome"))
        empty = int64(batch.column("connections")) == 0
        answered = outcomes == self._outcomes.number_of(ANSWERED)
        outcomes[answered & empty] = self._outcomes.number_of(NOT_ONLINE)
        is_listed = answered & ~empty
        list_ids = np.zeros(batch.num_rows, np.int64)
        if "list_id" in batch.schema.names:
            list_ids = np.where(is_listed, self._list_ids.number(batch.column("list_id")), 0)
        keys = _read_keys(batch, self._columns)
        # Where polls have ids, a list without an id has no content.
        rows = ~is_listed | (list_ids > 0) | (not self._has_ids)
        every = [*keys, outcomes, list_ids, _collected_at(batch)]
        self._rows.add(*[each[rows] for each in every])

    def runs(self) -> Rows:
        """The rows of ``POLL_RUNS``."""
        *keys, times, outcomes, list_ids, collected = self._rows.arrays()
        first, all_times = _polled_runs([*keys, outcomes, list_ids], times, collected)
        columns = [
            *[
                column.values(key[first], POLL_RUNS.field(name).type)
                for (name, column), key in zip(self._columns.items(), keys, strict=True)
            ],
            self._outcomes.values(outcomes[first]),
            self._list_ids.values(list_ids[first]),
            all_times,
        ]
        return pa.table(columns, schema=POLL_RUNS)


# ---------------------------------------------------------------- what nameservers gave

_NAMESERVER = ("cluster", "topic", "namesrv_addr")


def route_runs(topic_routes: Source) -> Contents:
    """What each nameserver gave as the route of each topic, from the rows of the routes."""
    columns = {name: Column() for name in _NAMESERVER}
    names = [*_NAMESERVER, "snapshot_time", *[fact.name for fact in ROUTE_FACTS]]
    rows = (_with_sorted_ids(batch) for batch in read(topic_routes, names))
    (*keys, times, contents), found = _identify(rows, columns, ROUTE_FACTS, _has_broker)
    ids = _Ids(ROUTE_FACTS)
    route_ids = [ids.of(records) for records in found]
    first, all_times = _polled_runs([*keys, contents], times, np.full(len(times), _NO_TIME))
    runs = [column.values(k[first]) for column, k in zip(columns.values(), keys, strict=True)]
    of_runs: Array = pa.array(route_ids, STRING)
    of_runs = of_runs.take(pa.array(contents[first]))
    table = pa.table([*runs, of_runs, all_times], schema=ROUTE_RUNS)
    return Contents(table, dict(zip(route_ids, found, strict=True)))


def route_runs_by_id(route_polls: Source, route_contents: Source) -> Contents:
    """The same from the ids that the polls have."""
    columns = {name: Column() for name in (*_NAMESERVER, "route_id")}
    gathered = Gathered(len(columns) + 2)
    for batch in read(route_polls, _with_time(route_polls, [*columns, "snapshot_time"])):
        gathered.add(*_read_keys(batch, columns), _collected_at(batch))
    *keys, times, collected = gathered.arrays()
    first, all_times = _polled_runs(keys, times, collected)
    values = [column.values(k[first]) for column, k in zip(columns.values(), keys, strict=True)]
    runs = pa.table([*values, all_times], schema=ROUTE_RUNS)
    return Contents(runs, _read_contents(route_contents, "route_id", "brokers", ROUTE_FACTS, runs))


def _has_broker(batch: Batch) -> NDArray[np.bool_]:
    return np.asarray(batch.column("broker_name").is_valid().to_numpy(zero_copy_only=False))


def _with_sorted_ids(batch: Batch) -> Batch:
    """``broker_ids`` in ascending order: their order has no meaning."""
    lists = batch.column("broker_ids")
    lengths = int64(pc.list_value_length(lists))
    values = int64(lists.flatten())
    owners = np.repeat(np.arange(len(lengths)), lengths)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    in_order = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.array(values[np.lexsort([values, owners])]),
        mask=lists.is_null(),
    )
    place = batch.schema.get_field_index("broker_ids")
    return batch.set_column(place, "broker_ids", in_order)


def _read_contents(
    source: Source, id_name: str, name: str, facts: Sequence[Fact], runs: Rows
) -> dict[str, list[Record]]:
    """By id the records of the contents that the runs have."""
    wanted = pc.unique(runs.column(id_name))
    ids: list[str] = []
    lengths: list[int] = []
    kept: list[Rows] = []
    for batch in read(source, [id_name, name]):
        chosen = batch.filter(pc.is_in(text(batch.column(id_name)), wanted))
        contents = chosen.column(name)
        ids += text(chosen.column(id_name)).to_pylist()
        lengths += int64(pc.list_value_length(contents)).tolist()
        records = contents.flatten()
        kept.append(
            pa.table(
                [records.field(fact.name).cast(fact.type) for fact in facts],
                [fact.name for fact in facts],
            )
        )
    return dict(zip(ids, _records_of(kept, lengths, facts), strict=True))


# ---------------------------------------------------------------- runs to dossiers


def fold(
    lists: Contents,
    routes: Contents,
    client_states: Source | None = None,
    queue_offsets: Source | None = None,
) -> Rows:
    """The rows of ``DOSSIER``, by cluster and group."""
    group = list(_BROKER[:2])
    by_list = lists.runs.filter(lists.runs["list_id"].is_valid()).group_by([*group, "list_id"])
    of_groups = by_list.aggregate([])
    topics = {id_: _topics_of(records) for id_, records in lists.records.items()}
    list_ids = of_groups["list_id"].to_pylist()
    of_lists = [topics[id_] for id_ in list_ids]
    connections = [
        [[record[place] for record in lists.records[id_]] for id_ in list_ids]
        for place in (_CLIENT_ID, _CLIENT_ADDR)
    ]
    subscribers: dict[Subject, dict[str, None]] = {}
    for cluster, name, of_list in zip(
        *[of_groups[each].to_pylist() for each in group], of_lists, strict=True
    ):
        for topic in of_list:
            subscribers.setdefault((cluster, topic), {})[name] = None
    offsets = DOSSIER.empty_table() if queue_offsets is None else _offsets_part(queue_offsets)
    for cluster, name, topic in _topics_of_unlisted(offsets, lists.runs, of_groups):
        subscribers.setdefault((cluster, topic), {})[name] = None
    parts = [
        _part("poll", lists.runs, [lists.runs[field.name] for field in POLL]),
        _part(
            "member_list",
            of_groups,
            [
                of_groups["list_id"],
                *[pa.array(each, pa.list_(STRING)) for each in (of_lists, *connections)],
            ],
        ),
        _route_part(routes, subscribers),
    ]
    if client_states is not None:
        parts.append(_client_part(client_states))
    parts.append(offsets)
    rows = pa.concat_tables(parts)
    return rows.take(pc.sort_indices(rows, [(name, "ascending") for name in group]))


def _topics_of_unlisted(offsets: Rows, runs: Rows, listed: Rows) -> Iterator[tuple[str, str, str]]:
    """(cluster, group, topic) of the offsets of groups of which no broker ever had a member.

    Nothing else shows what such a group consumed.
    """
    polled, with_list = (
        set(zip(rows["cluster"].to_pylist(), rows["consumer_group"].to_pylist(), strict=True))
        for rows in (runs, listed)
    )
    topics = pc.struct_field(offsets["offsets"], "topic")
    columns = (offsets["cluster"], offsets["consumer_group"], topics)
    for cluster, group, topic in zip(*[each.to_pylist() for each in columns], strict=True):
        if (cluster, group) in polled - with_list:
            yield cluster, group, topic


_CLIENT_ID, _CLIENT_ADDR = (
    [fact.name for fact in MEMBER_FACTS].index(name) for name in ("client_id", "client_addr")
)


def _topics_of(records: Iterable[Record]) -> list[str]:
    subscriptions = {each for *_, of_member in records for each in of_member or ()}
    return sorted({each[0] for each in subscriptions if each is not None and each[0] is not None})


def _part(name: str, groups: Rows, fields: Sequence[Array]) -> Rows:
    """Rows of ``DOSSIER`` with one part, of the groups in ``groups``, row by row."""
    type_ = PARTS[name]
    arrays = [
        (each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each).cast(field.type)
        for each, field in zip(fields, type_, strict=True)
    ]
    columns = {
        "cluster": groups["cluster"],
        "consumer_group": groups["consumer_group"],
        name: pa.StructArray.from_arrays(arrays, fields=list(type_)),
    }
    nothing = {field.name: pa.nulls(groups.num_rows, field.type) for field in DOSSIER}
    return pa.table(nothing | columns, schema=DOSSIER)


def _route_part(routes: Contents, subscribers: Mapping[Subject, Iterable[str]]) -> Rows:
    """Each route for every group that subscribes to its topic.

    A topic of no group goes to the group of its name (a retry topic's), or to the empty name.
    """
    runs = routes.runs
    places: list[int] = []
    groups: list[str] = []
    for place, subject in enumerate(
        zip(runs["cluster"].to_pylist(), runs["topic"].to_pylist(), strict=True)
    ):
        topic = subject[1]
        nobody = [topic[len(RETRY_PREFIX) :] if topic.startswith(RETRY_PREFIX) else ""]
        of_topic = list(subscribers.get(subject, nobody))
        groups += of_topic
        places += [place] * len(of_topic)
    ids = {id_: number for number, id_ in enumerate(routes.records)}
    names = [fact.name for fact in ROUTE_FACTS]
    brokers = pa.array(
        [[dict(zip(names, each, strict=True)) for each in r] for r in routes.records.values()],
        ROUTE_BROKERS,
    )
    of_runs = pa.array([ids[each] for each in runs["route_id"].to_pylist()], LONG)
    rows = runs.append_column("brokers", brokers.take(of_runs)).take(pa.array(places, LONG))
    rows = rows.append_column("consumer_group", pa.array(groups, STRING))
    return _part("route", rows, [rows[field.name] for field in ROUTE])


def _client_part(client_states: Source) -> Rows:
    facts = [field for field in CLIENT if field.name not in ("times", "observed_at")]
    of_facts = [Values(field.type) for field in facts]
    columns = {name: Column() for name in ("cluster", "consumer_group")}
    rows: list[Rows] = []
    gathered: Gathered | None = None
    names = [*columns, *[field.name for field in facts]]
    for batch in read(client_states, [*names, "snapshot_time", "logged_at", "observed_at"]):
        is_line = pc.equal(text(batch.column("source")), "CLIENT_LOG")
        values: dict[str, Array] = {name: batch.column(name) for name in names}
        values["start_timestamp"] = micros(values["start_timestamp"])
        values["queues"] = _without_last_pull(values["queues"])
        keys = [column.number(values[name]) for name, column in columns.items()]
        for each, field in zip(of_facts, facts, strict=True):
            of_fact = each.read(values[field.name])
            keys += (
                [of_fact]
                if isinstance(of_fact, np.ndarray)
                else [hashes.view(np.int64) for hashes in of_fact]
            )
        gathered = gathered or Gathered(len(keys))
        gathered.add(*keys)
        values = {name: _cast(values[name], name) for name in names}
        values["times"] = pc.if_else(
            is_line, micros(batch.column("logged_at")), micros(batch.column("snapshot_time"))
        )
        values["observed_at"] = micros(batch.column("observed_at"))
        rows.append(pa.table(values))
    if gathered is None:
        return DOSSIER.empty_table()
    table: Rows = pa.concat_tables(rows).combine_chunks()
    observed = table["observed_at"].combine_chunks()
    first, (_, times, observed_at) = find_runs(
        gathered.arrays(), int64(observed), table["times"].combine_chunks(), observed
    )
    runs: Rows = table.take(pa.array(first))
    return _part("client", runs, [*[runs[f.name] for f in facts], times, observed_at])


def _cast(column: Array, name: str) -> Array:
    place = CLIENT.get_field_index(name)
    return column.cast(STRING if place < 0 else CLIENT.field(place).type)


def _without_last_pull(queues: Array) -> Array:
    """The queues without the time that changes with each of a client's answers."""
    type_ = CLIENT.field("queues").type.value_type
    offsets = np.concatenate(
        [np.zeros(1, np.int64), np.cumsum(int64(pc.list_value_length(queues)))]
    )
    each = queues.flatten()
    kept = [each.field(field.name) for field in type_]
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.StructArray.from_arrays(kept, [field.name for field in type_]),
        mask=queues.is_null(),
    )


def _offsets_part(queue_offsets: Source) -> Rows:
    columns = {
        name: Column() for name in ("cluster", "consumer_group", "topic", "broker_name", "queue_id")
    }
    gathered = Gathered(len(columns) + 3)
    offsets = ("broker_offset", "consumer_offset")
    for batch in read(queue_offsets, [*columns, "snapshot_time", *offsets]):
        keys = _read_keys(batch, columns)
        gathered.add(*keys, *[int64(batch.column(name)) for name in offsets])
    *keys, times, broker, consumer = gathered.arrays()
    first, collected = find_runs(keys, times, pa.array(broker), pa.array(consumer))
    types = [STRING, STRING, *[field.type for field in OFFSETS][:3]]
    values = {
        name: column.values(key[first], type_)
        for (name, column), key, type_ in zip(columns.items(), keys, types, strict=True)
    }
    groups = pa.table({name: values[name] for name in ("cluster", "consumer_group")})
    return _part("offsets", groups, [*list(values.values())[2:], *collected])
