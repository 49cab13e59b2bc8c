"""The fold in pieces: slices of the snapshot tables -> pieces -> shards of groups.

A slice becomes parts of runs, each for the shard of its group, with the contents that they name.
What a part lacks of a run or of a statement is in others: see ``runs``. Topics have routes, and
groups subscribe to topics: routes are put together by topic first, and dealt to the shards of the
groups that subscribe. What has to be known of all slices for that is small, and the driver gathers
it (``Facts``). Any cutting of the input gives the same dossiers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .. import schemas
from ..config.bounds import DEFAULT_BOUNDS
from ..declared.contents import (
    MEMBER_FACTS,
    ROUTE_FACTS,
    chooses_queues,
    is_expired,
    silence_bounds,
)
from ..declared.instants import SECOND, Instant
from ..engines.pieces import (
    FOR_ALL,
    Piece,
    all_rows,
    all_values,
    in_parts,
    pack_rows,
    pack_value,
    shard_of,
)
from ..schemas import ANSWERED, BOOLEAN, CLIENT_LOG, LIST_REFUSED, LONG, NOT_ONLINE, STRING, Table
from . import dossiers
from .checked_rows import IS_LOST, TableReading
from .dossiers import ClusterTopic
from .numbers import NO_NUMBER, Array, Batch, Rows, TableSource, int64, micros, pc, text
from .runs import (
    CLIENT_RUNS,
    LOST_BROKER,
    LOST_MEMBER,
    MOST_HELD,
    OF_BROKERS,
    OFFSET_RUNS,
    POLL_RUNS,
    REFUSED,
    ROUTE_RUNS,
    Contents,
    DistinctRecords,
    ListedRows,
    Record,
    Records,
    Runs,
    as_runs,
    in_use,
    merge_runs,
    reunite,
    runs_in_parts,
)
from .slice_facts import (
    CLIENTS,
    FACTS,
    LISTED,
    LISTS,
    OFFSETS,
    POLLS,
    ROUTE_IDS,
    ROUTED,
    ROUTES_BY_ID,
    Facts,
)

#: The routes that were dealt to a shard of groups.
ROUTES, ROUTES_DEALT = "routes", "routes dealt"

OF_TOPICS = (ROUTED, ROUTE_IDS, ROUTES_BY_ID)
OF_GROUPS = (LISTED, POLLS, LISTS, CLIENTS, OFFSETS)

#: The kinds of the runs and contents of each table.
_KINDS: Mapping[str, tuple[str | None, str | None]] = {
    schemas.HEARTBEATS.name: (LISTED, LISTS),
    schemas.BROKER_POLLS.name: (POLLS, None),
    schemas.MEMBER_LISTS.name: (None, LISTS),
    schemas.TOPIC_ROUTES.name: (ROUTED, ROUTES_BY_ID),
    schemas.ROUTE_POLLS.name: (ROUTE_IDS, None),
    schemas.ROUTE_CONTENTS.name: (None, ROUTES_BY_ID),
    schemas.CLIENT_STATES.name: (CLIENTS, None),
    schemas.QUEUE_OFFSETS.name: (OFFSETS, None),
}

#: The shards that have use for what is about a subject, by its cluster and its name.
ShardsOf: TypeAlias = Callable[[str, str], Iterable[int]]

#: The most records of contents in a piece.
_MOST_RECORDS = 500_000


_BROKER = ("cluster", "consumer_group", "broker_name", "broker_id")
_NAMESERVER = ("cluster", "topic", "namesrv_addr")
_POLLED = ("snapshot_time", "collected_at")
_FIRST_COLLECTED = "first_collected_at"
#: Two collectors may give their rounds the time of one minute.
LEAST_AGAIN = 60 * SECOND


@dataclass(frozen=True)
class Cutting:
    """The way in which snapshot tables become pieces. ``list_ids``, ``route_ids``: lists and routes
    come by the ids that ingest gave them, and not by their rows.
    """

    shards: int
    heartbeat_expiry_seconds: int
    list_ids: bool = False
    route_ids: bool = False
    quarantined_lines: int = DEFAULT_BOUNDS.quarantined_lines

    def tables(self) -> tuple[Table, ...]:
        """The tables that are read."""
        lists, routes = [schemas.HEARTBEATS, schemas.BROKER_POLLS], [schemas.TOPIC_ROUTES]
        if self.list_ids:
            lists = [schemas.BROKER_POLLS, schemas.MEMBER_LISTS]
        if self.route_ids:
            routes = [schemas.ROUTE_POLLS, schemas.ROUTE_CONTENTS]
        return (*lists, *routes, schemas.CLIENT_STATES, schemas.QUEUE_OFFSETS)

    def columns(self, table: Table) -> list[str]:
        """The columns of a table that are read, as the table has them: of no row they are asked
        for as well.
        """
        rows = TableReading(table, ())
        list(self._contents(table, rows))
        return [name for name in table.schema.names if name in rows.columns]

    def pieces(
        self,
        table: Table,
        sources: Iterable[TableSource],
        files: Iterable[str] | None = None,
        future: Instant | None = None,
    ) -> Iterator[Piece]:
        """The pieces of some rows of a table; ``files``: where each of the sources came from;
        ``future``: from then on rows are counted alone.
        """
        facts = Facts()
        rows = TableReading(table, sources, files, self.quarantined_lines, future)
        given: set[tuple[int, str]] = set()
        runs_kind, records_kind = _KINDS[table.name]
        for contents in self._contents(table, rows):
            if runs_kind is not None:
                for shard, runs in split(contents.runs, self._shards_of):
                    yield from pack_rows(shard, runs_kind, runs)
            if records_kind is not None:
                yield from _contents_for(contents, self._shards_of, records_kind, given)
            facts.add(contents, runs_kind, records_kind)
            yield from pack_rows(FOR_ALL, schemas.QUARANTINE.name, rows.take_refused())
        yield from pack_rows(FOR_ALL, schemas.QUARANTINE.name, rows.take_refused())
        facts.rows.update({(table.name, cluster): n for cluster, n in rows.rows.items()})
        facts.ahead = rows.ahead
        if rows.lost.rows:
            facts.lost[table.name] = rows.lost
        yield pack_value(FOR_ALL, FACTS, facts)

    def _contents(self, table: Table, rows: TableReading) -> Iterator[Contents]:
        """The contents of some rows of a table, part by part, or their runs if these name none."""
        read: Mapping[str, Callable[[TableReading], Iterator[Contents]]] = {
            schemas.HEARTBEATS.name: partial(
                member_runs, heartbeat_expiry_seconds=self.heartbeat_expiry_seconds
            ),
            schemas.BROKER_POLLS.name: partial(poll_runs, has_ids=self.list_ids),
            schemas.MEMBER_LISTS.name: partial(contents_by_id, schemas.MEMBER_LISTS),
            schemas.TOPIC_ROUTES.name: route_runs,
            schemas.ROUTE_POLLS.name: route_runs_by_id,
            schemas.ROUTE_CONTENTS.name: partial(contents_by_id, schemas.ROUTE_CONTENTS),
            schemas.CLIENT_STATES.name: client_runs,
            schemas.QUEUE_OFFSETS.name: offset_runs,
        }
        return read[table.name](rows)

    def _shards_of(self, _: str, name: str) -> list[int]:
        return [shard_of(name, self.shards)]


def split(rows: Rows, shards_of: ShardsOf) -> Iterator[tuple[int, Rows]]:
    """The rows by the shards of their subjects, which the first two columns name."""
    places: dict[int, list[int]] = defaultdict(list)
    shards = cache(shards_of)
    subjects = zip(*[column.to_pylist() for column in rows.columns[:2]], strict=True)
    for place, subject in enumerate(subjects):
        for shard in shards(*subject):
            places[shard].append(place)
    for shard, shard_places in places.items():
        yield shard, rows.take(pa.array(shard_places))


def _contents_for(
    contents: Contents, shards_of: ShardsOf, kind: str, given: set[tuple[int, str]]
) -> Iterator[Piece]:
    """The contents that runs name, for the shards of the runs.

    ``given``: by shard those that it has of this task; what it gets now comes to them.
    """
    for shard, runs in split(contents.runs, shards_of):
        used = in_use(contents._replace(runs=runs)).records
        new = {id_: records for id_, records in used.items() if (shard, id_) not in given}
        given.update((shard, id_) for id_ in new)
        for some in in_parts(new.items(), _MOST_RECORDS, lambda content: len(content[1])):
            yield pack_value(shard, kind, dict(some))


@dataclass(frozen=True)
class Dealing:
    """Deals the routes of a shard of topics to the shards of the groups that subscribe to them."""

    shards: int
    subscribers: Mapping[ClusterTopic, Sequence[str]]

    def deal_routes(self, pieces: Sequence[Piece]) -> Iterator[Piece]:
        """The routes, each topic's once for every shard that has a group for it."""
        by_rows = reunite(
            Contents(all_rows(pieces, ROUTED, ROUTE_RUNS), _records(pieces, ROUTES_BY_ID))
        )
        by_id = merge_runs(all_rows(pieces, ROUTE_IDS, ROUTE_RUNS))
        routes = by_rows._replace(runs=pa.concat_tables([by_rows.runs, by_id]))
        for shard, runs in split(routes.runs, self._shards_of):
            yield from pack_rows(shard, ROUTES, runs)
        yield from _contents_for(routes, self._shards_of, ROUTES_DEALT, set())

    def _shards_of(self, cluster: str, topic: str) -> set[int]:
        groups = self.subscribers.get((cluster, topic), [dossiers.group_of_nobody(topic)])
        return {shard_of(group, self.shards) for group in groups}


def runs_of(pieces: Sequence[Piece]) -> Runs:
    """All that was reported about the groups of a shard."""
    listed = reunite(Contents(all_rows(pieces, LISTED, POLL_RUNS), _records(pieces, LISTS)))
    polls = pa.concat_tables([listed.runs, all_rows(pieces, POLLS, POLL_RUNS)])
    return Runs(
        in_use(Contents(merge_runs(polls), listed.records)),
        Contents(all_rows(pieces, ROUTES, ROUTE_RUNS), _records(pieces, ROUTES_DEALT)),
        merge_runs(all_rows(pieces, CLIENTS, CLIENT_RUNS)),
        merge_runs(all_rows(pieces, OFFSETS, OFFSET_RUNS)),
    )


def _records(pieces: Sequence[Piece], kind: str) -> dict[str, Records]:
    """The records of the contents in the pieces, by id. A record that several have is one object:
    of a large group, which each round shows in another list, the copies would fill the memory.
    """
    known: dict[Record, Record] = {}
    return {
        id_: [known.setdefault(record, record) for record in records]
        for contents in all_values(pieces, kind)
        for id_, records in contents.items()
    }


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
    lists = ListedRows(POLL_RUNS, MEMBER_FACTS, DistinctRecords(_MEMBER, _member))
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
        batch |= {name: pa.nulls(rows, STRING) for name in ("broker_addr", "error_message")}
        batch["asked_for"] = pa.nulls(rows, LONG)
        batch["outcome"] = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), answered)
        return batch, np.ones(rows, np.bool_)

    return lists.parts(map(as_answered, heartbeats.batches(names, key)))


def poll_runs(broker_polls: TableReading, *, has_ids: bool) -> Iterator[Contents]:
    """The polls that brought no list, and of those that brought one the id where there is one.

    An answer with an empty list counts as NOT_ONLINE, one whose list was refused as REFUSED. Of an
    answer with a list and without an id the time alone is taken: the list comes by ``member_runs``,
    or is lost. ``has_ids``: the polls themselves have the ids of their lists.
    """
    made = {"asked_for"} if has_ids else {"asked_for", "list_id"}
    names = [name for name in POLL_RUNS.names[:-1] if name not in made]
    names += ["connections", "error_code", _FIRST_COLLECTED]
    batches = broker_polls.batches([*names, *_POLLED])
    return runs_in_parts(as_runs(_as_counted(batch), POLL_RUNS, *_POLLED) for batch in batches)


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
    lists = ListedRows(
        ROUTE_RUNS, ROUTE_FACTS, DistinctRecords(_ROUTE | {IS_LOST: BOOLEAN}, _broker)
    )
    key = (*_NAMESERVER, "snapshot_time")
    return lists.parts(
        (batch, int64(pc.or_(batch["broker_name"].is_valid(), batch[IS_LOST])).astype(np.bool_))
        for batch in topic_routes.batches([*key, *_ROUTE], key)
    )


def route_runs_by_id(route_polls: TableReading) -> Iterator[Contents]:
    """The routes of nameservers, from the ids that the polls have."""
    batches = route_polls.batches([*ROUTE_RUNS.names[:-1], *_POLLED])
    return runs_in_parts(as_runs(batch, ROUTE_RUNS, *_POLLED) for batch in batches)


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
    records = DistinctRecords(types, lambda *values: values)

    def as_contents(batch: Batch) -> Contents:
        structs = batch[name].flatten()
        fields = {fact: structs.field(fact) for fact in types}
        made = iter(records.of(fields, records.hashes(fields), np.arange(len(structs))))
        runs: Rows = pa.table({column: text(batch[column]) for column in key})
        lengths = int64(pc.list_value_length(batch[name])).tolist()
        ids = runs[key[-1]].to_pylist()
        named = {id_: list(islice(made, n)) for id_, n in zip(ids, lengths, strict=True)}
        return Contents(runs, named)

    batches = map(as_contents, rows.batches([*key, name], rows_at_a_time=_CONTENTS_AT_A_TIME))

    def size(contents: Contents) -> int:
        return sum(map(len, contents.records.values()))

    for part in in_parts(batches, MOST_HELD, size):
        yield Contents(
            pa.concat_tables([contents.runs for contents in part]),
            dict(chain.from_iterable(contents.records.items() for contents in part)),
        )
        records.known.clear()


# ---------------------------------------------------------------- what clients report, offsets


def client_runs(client_states: TableReading) -> Iterator[Contents]:
    """The reports of client processes about themselves."""
    names = [name for name in CLIENT_RUNS.names if name != "times"]

    def reports(batch: Batch) -> Rows:
        source = text(batch["source"])
        # A client's answer is the same whichever broker forwarded the question.
        is_of_broker = pc.is_in(source, pa.array(OF_BROKERS, source.type))
        batch["broker_name"] = pc.if_else(is_of_broker, text(batch["broker_name"]), None)
        batch["start_timestamp"] = micros(batch["start_timestamp"])
        logged_at, snapshot_time = micros(batch["logged_at"]), micros(batch["snapshot_time"])
        is_line = pc.equal(source, CLIENT_LOG)
        batch["times"] = pc.if_else(is_line, logged_at, snapshot_time)
        # Without the time of each queue, which changes with each of the answers.
        return merge_runs(as_runs(batch, CLIENT_RUNS, "times", "observed_at"))

    batches = client_states.batches([*names, "snapshot_time", "logged_at"])
    return runs_in_parts(map(reports, batches))


def offset_runs(queue_offsets: TableReading) -> Iterator[Contents]:
    """The offsets of queues, poll by poll."""
    queue = ("cluster", "consumer_group", "topic", "broker_name", "queue_id")
    values = ("snapshot_time", "broker_offset", "consumer_offset", "given_per_1000_seconds")
    batches = queue_offsets.batches([*queue, *values])
    return runs_in_parts(as_runs(batch, OFFSET_RUNS, *values) for batch in batches)
