"""The fold in pieces: slices of the snapshot tables -> pieces -> shards of groups.

A slice becomes parts of runs, each for the shard of its group. Topics have routes, and groups
subscribe to topics: routes are put together by topic first, and dealt to the shards of the groups
that subscribe. What has to be known of all slices for that is small, and the driver gathers it
(``Facts``). Any cutting of the input gives the same dossiers.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from typing import TypeAlias

import pyarrow as pa

from .. import schemas
from ..config.bounds import DEFAULT_BOUNDS
from ..declared.instants import Instant
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
from ..schemas import Table
from . import dossiers, runs_of_slices
from .checked_rows import RefusedRows, RowsAhead, TableReading
from .dossiers import ClusterGroup, ClusterTopic, distinct
from .numbers import Rows, TableSource, pc
from .polled import BROKER, BrokerPolls
from .runs import (
    CLIENT_RUNS,
    GROUP_KEY,
    OFFSET_RUNS,
    POLL_RUNS,
    ROUTE_RUNS,
    Contents,
    Record,
    Records,
    Runs,
    in_use,
    is_whole,
    merge_runs,
    reunite,
)

#: Kinds of pieces. Of groups: runs of lists by their rows, runs of polls, lists by their ids ...
LISTED, POLLS, LISTS, CLIENTS, OFFSETS = "listed", "polls", "lists", "clients", "offsets"
#: ... of topics, to be dealt: runs of routes by their rows, by their ids, and the contents ...
ROUTED, ROUTE_IDS, ROUTES_BY_ID = "routed", "route ids", "routes by id"
#: ... the routes that were dealt to a shard of groups, and what the driver gathers.
ROUTES, ROUTES_DEALT = "routes", "routes dealt"
FACTS = "facts"

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


@dataclass
class Facts:
    """Facts of all slices that the driver has to know: which groups and topics there are, and when.

    ``rounds``: by cluster the snapshots of its groups; ``brokers``, ``nameservers``: the names, and
    the addresses, of those that were asked. ``list_ids``: by group that brokers were
    asked about the ids of its lists; ``topics_of_lists``: by id the topics of a list's members.
    ``offsets``: by group the topics of its offsets. ``routes_at``, ``offsets_at``: by cluster and
    nameserver, or broker name, when it gave any.
    """

    rounds: dict[str, set[Instant]] = field(default_factory=lambda: defaultdict(set))
    list_ids: dict[ClusterGroup, set[str]] = field(default_factory=lambda: defaultdict(set))
    topics_of_lists: dict[str, list[str]] = field(default_factory=dict)
    offsets: dict[ClusterGroup, set[str]] = field(default_factory=lambda: defaultdict(set))
    #: The topics of the queues that members of each group took by ``assign()``.
    assigned: dict[ClusterGroup, set[str]] = field(default_factory=lambda: defaultdict(set))
    #: The rounds of each broker, by ``broker_polls``.
    polls: BrokerPolls = field(default_factory=BrokerPolls, compare=False)
    #: Groups of which a member was asked for its running info.
    asked: set[ClusterGroup] = field(default_factory=set)
    #: Rows of the future by cluster, which are in no run until then.
    ahead: dict[str, RowsAhead] = field(default_factory=dict, compare=False)
    #: Groups with a member without an address; of the others the least and the greatest address and
    #: client id.
    unaddressed: set[ClusterGroup] = field(default_factory=set)
    spans: dict[ClusterGroup, tuple[set[str], set[str]]] = field(default_factory=dict)
    #: Brokers that gave lists of members, with their ids; and the ids of the brokers in each route,
    #: by its id.
    listing: set[tuple[str, str, int]] = field(default_factory=set)
    broker_ids: dict[str, tuple[tuple[str, tuple[int, ...] | None], ...]] = field(
        default_factory=dict
    )
    brokers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    nameservers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    routes_at: dict[ClusterTopic, set[Instant]] = field(default_factory=lambda: defaultdict(set))
    offsets_at: dict[ClusterTopic, set[Instant]] = field(default_factory=lambda: defaultdict(set))
    #: The names of the brokers with an address in each route, by its id.
    routed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: Groups with an answer of a broker that names no list.
    unnamed: set[ClusterGroup] = field(default_factory=set)
    #: The ids of each topic's routes; the ids of lists and of routes whose contents came.
    route_ids: dict[ClusterTopic, set[str]] = field(default_factory=lambda: defaultdict(set))
    given: dict[ClusterTopic, set[str]] = field(default_factory=lambda: defaultdict(set))
    #: The rows read of each table and cluster, and those refused of each table.
    rows: Counter[tuple[str, str]] = field(default_factory=Counter, compare=False)
    lost: dict[str, RefusedRows] = field(default_factory=lambda: defaultdict(RefusedRows))

    @classmethod
    def of(cls, slices: "Iterable[Facts]") -> "Facts":
        """Merges the facts of all slices."""
        parts = list(slices)
        whole = cls(polls=BrokerPolls.of_all(part.polls for part in parts))
        for part in parts:
            whole.asked |= part.asked
            whole.unaddressed |= part.unaddressed
            whole.listing |= part.listing
            whole.broker_ids |= part.broker_ids
            for group, (addresses, client_ids) in part.spans.items():
                whole._span(group, addresses, client_ids)
            whole.unnamed |= part.unnamed
            whole.topics_of_lists |= part.topics_of_lists
            whole.routed |= part.routed
            whole.rows += part.rows
            for cluster, rows in part.ahead.items():
                whole.ahead[cluster] = rows.and_also(whole.ahead.get(cluster))
            for table, lost in part.lost.items():
                whole.lost[table].add(lost)
            for name in (
                *("rounds", "brokers", "nameservers", "offsets", "list_ids", "route_ids", "given"),
                *("routes_at", "offsets_at", "assigned"),
            ):
                for subject, values in getattr(part, name).items():
                    getattr(whole, name)[subject] |= values
        return whole

    @property
    def clusters(self) -> set[str]:
        """The clusters that were asked, or that clients reported of."""
        keyed = (self.routes_at, self.offsets_at, dict.fromkeys(self.asked))
        return {*self.rounds, *(cluster for each in keyed for cluster, _ in each)}

    @property
    def polled(self) -> set[ClusterGroup]:
        """The groups about which brokers were asked."""
        return set(self.list_ids)

    def never_asked(self) -> set[tuple[str, str]]:
        """The brokers of each cluster, in the routes of its groups' topics, that nobody asked about
        any group: in no cluster of the same nameservers, of which a topic may have brokers as well.
        """
        routed: dict[str, set[str]] = defaultdict(set)
        for cluster, topic in self.subscribers():
            for id_ in self.route_ids.get((cluster, topic), ()):
                routed[cluster].update(self.routed.get(id_, ()))
        asked = {
            (cluster, name)
            for cluster in routed
            for each, names in self.brokers.items()
            if each == cluster or self.nameservers[cluster] & self.nameservers[each]
            for name in names
        }
        return {(cluster, name) for cluster, names in routed.items() for name in names} - asked

    def add(self, contents: Contents, of_runs: str | None, of_records: str | None) -> None:
        """Adds a part of a slice, by the kinds of its pieces."""
        if of_runs in (LISTED, POLLS):
            self._add_polls(contents.runs)
        if of_runs == POLLS:
            self.polls.add(contents.runs)
        if of_runs == CLIENTS:
            is_answer = pc.equal(contents.runs["source"], schemas.RUNNING_INFO)
            self.asked.update(distinct(contents.runs.filter(is_answer), *GROUP_KEY))
            for group, topics in dossiers.assigned_topics(contents.runs).items():
                self.assigned[group] |= topics
        if of_runs in (ROUTED, ROUTE_IDS):
            self._add_routes(contents.runs)
        if of_runs == OFFSETS:
            self._add_offsets(contents.runs)
        if of_records is not None:
            self._add_records(contents, of_records)
        if of_runs == LISTED:
            listed = distinct(contents.runs, "cluster", "consumer_group", "list_id")
            for cluster, name, id_ in listed:
                self._add_addresses((cluster, name), contents.records[id_])

    def _add_routes(self, runs: Rows) -> None:
        for cluster, address, times in _times(runs, "namesrv_addr"):
            self.nameservers[cluster].add(address)
            self.routes_at[cluster, address].update(times)
        for *topic, id_ in distinct(runs, "cluster", "topic", "route_id"):
            self.route_ids[*topic].add(id_)

    def _add_offsets(self, runs: Rows) -> None:
        for group, topics in dossiers.offset_topics(runs).items():
            self.offsets[group] |= topics
        for cluster, broker_name, times in _times(runs, "broker_name"):
            self.offsets_at[cluster, broker_name].update(times)

    def _add_addresses(self, group: ClusterGroup, records: Records) -> None:
        client_ids, addresses = dossiers.connections(records)
        if is_whole(records) and not all(addresses):
            self.unaddressed.add(group)
        elif records and is_whole(records):
            self._span(group, addresses, client_ids)

    def _span(
        self, group: ClusterGroup, addresses: Iterable[str], client_ids: Iterable[str]
    ) -> None:
        of_addresses, of_ids = self.spans.get(group, (set[str](), set[str]()))
        both = of_addresses.union(addresses), of_ids.union(client_ids)
        self.spans[group] = {min(both[0]), max(both[0])}, {min(both[1]), max(both[1])}

    @property
    def indistinct(self) -> set[ClusterGroup]:
        """The groups of which two processes with one client id look like one: members have no
        address, or all have the same one, which no two connections have.
        """
        same = {
            group
            for group, (addresses, client_ids) in self.spans.items()
            if len(addresses) == 1 < len(client_ids)
        }
        return self.unaddressed | same

    def never_routed(self) -> set[tuple[str, str, int]]:
        """The brokers that gave lists of members and are in no route, though others of the same
        name are: no client asks them for the members.
        """
        routed: dict[tuple[str, str], set[int | None]] = defaultdict(set)
        for (cluster, _), route_ids in self.route_ids.items():
            for name, ids in chain(*(self.broker_ids.get(id_, ()) for id_ in route_ids)):
                routed[cluster, name].update([None] if ids is None else ids)
        return {
            (cluster, name, id_)
            for cluster, name, id_ in self.listing
            if (known := routed.get((cluster, name))) and not known & {None, id_}
        }

    def _add_records(self, contents: Contents, of_records: str) -> None:
        for *subject, id_ in distinct(
            contents.runs, *contents.runs.column_names[:2], contents.id_name
        ):
            self.given[*subject].add(id_)
        if of_records == ROUTES_BY_ID:
            whole = {id_: each for id_, each in contents.records.items() if is_whole(each)}
            self.routed |= {id_: dossiers.addressed(records) for id_, records in whole.items()}
            self.broker_ids |= {id_: dossiers.broker_ids(records) for id_, records in whole.items()}
        if of_records == LISTS:
            for id_ in contents.records.keys() - self.topics_of_lists.keys():
                self.topics_of_lists[id_] = dossiers.topics_of(contents.records[id_])

    def _add_polls(self, runs: Rows) -> None:
        for cluster, broker_name, times in _times(runs, "broker_name"):
            self.rounds[cluster].update(times)
            self.brokers[cluster].add(broker_name)
        self.listing.update(distinct(runs.filter(runs["list_id"].is_valid()), *BROKER))
        for *group, outcome, id_ in distinct(
            runs, "cluster", "consumer_group", "outcome", "list_id"
        ):
            self.list_ids[*group].update({id_} - {None})
            if outcome == schemas.ANSWERED and id_ is None:
                self.unnamed.add((group[0], group[1]))

    def without_content(
        self, *, list_ids: bool
    ) -> Iterator[tuple[str, str, ClusterTopic, str | None]]:
        """Table, column, group or topic and value of each id whose content did not come; None: no
        id, of an answer that brought a list. ``list_ids``: lists come by their ids.
        """
        for group in sorted(self.unnamed if list_ids else ()):
            yield schemas.BROKER_POLLS.name, "list_id", group, None
        for table, column, ids in (
            (schemas.BROKER_POLLS.name, "list_id", self.list_ids),
            (schemas.ROUTE_POLLS.name, "route_id", self.route_ids),
        ):
            for subject, of_subject in sorted(ids.items()):
                for id_ in sorted(of_subject - self.given.get(subject, set())):
                    yield table, column, subject, id_

    def subscribers(self) -> dict[ClusterTopic, list[str]]:
        """The groups that subscribe to each topic."""
        return dossiers.subscribers(
            self.list_ids, self.topics_of_lists, self.offsets, self.assigned
        )


def merge_facts(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The facts of several slices as one piece: what many of them know comes once."""
    yield pack_value(FOR_ALL, FACTS, Facts.of(all_values(pieces, FACTS)))


def _times(runs: Rows, name: str) -> Iterator[tuple[str, str, list[Instant]]]:
    """The snapshots of the runs of each cluster and value of another column."""
    for cluster, value in distinct(runs, "cluster", name):
        is_one = pc.and_(pc.equal(runs["cluster"], cluster), pc.equal(runs[name], value))
        times = pc.list_flatten(runs.filter(is_one)["times"])
        if pa.types.is_struct(times.type):
            times = pc.struct_field(times, "snapshot_time")
        yield cluster, value, pc.unique(times).to_pylist()


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
        lists = (
            (schemas.BROKER_POLLS, schemas.MEMBER_LISTS)
            if self.list_ids
            else (schemas.HEARTBEATS, schemas.BROKER_POLLS)
        )
        routes = (
            (schemas.ROUTE_POLLS, schemas.ROUTE_CONTENTS)
            if self.route_ids
            else (schemas.TOPIC_ROUTES,)
        )
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
        of_runs, of_records = _KINDS[table.name]
        for contents in self._contents(table, rows):
            if of_runs is not None:
                for shard, runs in split(contents.runs, self._shards_of):
                    yield from pack_rows(shard, of_runs, runs)
            if of_records is not None:
                yield from _dealt(contents, self._shards_of, of_records, given)
            facts.add(contents, of_runs, of_records)
            yield from pack_rows(FOR_ALL, schemas.QUARANTINE.name, rows.take_refused())
        yield from pack_rows(FOR_ALL, schemas.QUARANTINE.name, rows.take_refused())
        facts.rows.update({(table.name, cluster): n for cluster, n in rows.rows.items()})
        facts.ahead = rows.ahead
        if rows.lost.rows:
            facts.lost[table.name] = rows.lost
        yield pack_value(FOR_ALL, FACTS, facts)

    def _contents(self, table: Table, rows: TableReading) -> Iterator[Contents]:
        """The contents of some rows of a table, part by part, or their runs if these name none."""
        if table is schemas.HEARTBEATS:
            return runs_of_slices.member_runs(rows, self.heartbeat_expiry_seconds)
        if table is schemas.TOPIC_ROUTES:
            return runs_of_slices.route_runs(rows)
        if table in (schemas.MEMBER_LISTS, schemas.ROUTE_CONTENTS):
            return runs_of_slices.contents_by_id(table, rows)
        runs_of: Mapping[str, Callable[[TableReading], Iterator[Rows]]] = {
            schemas.BROKER_POLLS.name: partial(runs_of_slices.poll_runs, has_ids=self.list_ids),
            schemas.ROUTE_POLLS.name: runs_of_slices.route_runs_by_id,
            schemas.CLIENT_STATES.name: runs_of_slices.client_runs,
            schemas.QUEUE_OFFSETS.name: runs_of_slices.offset_runs,
        }
        return (Contents(runs, {}) for runs in runs_of[table.name](rows))

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
    for shard, of_shard in places.items():
        yield shard, rows.take(pa.array(of_shard))


def _dealt(
    contents: Contents, shards_of: ShardsOf, kind: str, given: set[tuple[int, str]]
) -> Iterator[Piece]:
    """The contents that runs name, for the shards of the runs.

    ``given``: by shard those that it has of this task; what it gets now comes to them.
    """
    for shard, runs in split(contents.runs, shards_of):
        used = in_use(contents._replace(runs=runs)).records
        new = {id_: records for id_, records in used.items() if (shard, id_) not in given}
        given.update((shard, id_) for id_ in new)
        for some in in_parts(new.items(), _MOST_RECORDS, lambda each: len(each[1])):
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
        yield from _dealt(routes, self._shards_of, ROUTES_DEALT, set())

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
