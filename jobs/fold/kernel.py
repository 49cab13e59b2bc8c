"""The fold in pieces: slices of the snapshot tables -> pieces -> shards of groups.

A slice becomes parts of runs, each for the shard of its group. Topics have routes, and groups
subscribe to topics: routes are put together by topic first, and dealt to the shards of the groups
that subscribe. What has to be known of all slices for that is small, and the driver gathers it
(``Facts``). Any cutting of the input gives the same dossiers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from ..contents import MEMBER_FACTS, ROUTE_FACTS
from ..instants import Instant
from ..pieces import FOR_ALL, Piece, all_rows, all_values, pack_rows, pack_value, shard_of
from ..schemas import (
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    MEMBER_LISTS,
    QUEUE_OFFSETS,
    ROUTE_CONTENTS,
    ROUTE_POLLS,
    TOPIC_ROUTES,
    Table,
)
from .dossiers import (
    CLIENT_ADDR,
    Group,
    Subject,
    distinct,
    group_of_nobody,
    groups_of,
    offset_topics,
    subscribers,
    topics_of,
)
from .numbers import Rows, Source, pc
from .parts import (
    client_runs,
    contents_by_id,
    member_runs,
    offset_runs,
    poll_runs,
    route_runs,
    route_runs_by_id,
)
from .runs import (
    CLIENT_RUNS,
    OFFSET_RUNS,
    POLL_RUNS,
    ROUTE_RUNS,
    Contents,
    Records,
    Runs,
    in_use,
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

#: The shards that have use for what is about a subject, by its cluster and its name.
ShardsOf: TypeAlias = Callable[[str, str], Iterable[int]]

#: So many records of contents are in a piece at most.
_MOST_RECORDS = 500_000


@dataclass
class Facts:
    """What the driver has to know of all slices: which groups and topics there are, and when.

    ``rounds``: by cluster the snapshots of its groups. ``list_ids``: by group those of its polls,
    where lists come by their ids; ``topics_of_lists``: by id the topics of a list's members.
    """

    rounds: dict[str, set[Instant]] = field(default_factory=lambda: defaultdict(set))
    polled: set[Group] = field(default_factory=set)
    listed: dict[Group, set[str]] = field(default_factory=lambda: defaultdict(set))
    offsets: dict[Group, set[str]] = field(default_factory=lambda: defaultdict(set))
    list_ids: dict[Group, set[str]] = field(default_factory=lambda: defaultdict(set))
    topics_of_lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: Groups with a member without an address: copies of its id cannot be counted.
    unaddressed: set[Group] = field(default_factory=set)

    @classmethod
    def of(cls, parts: "Iterable[Facts]") -> "Facts":
        """Those of all slices."""
        whole = cls()
        for part in parts:
            whole.polled |= part.polled
            whole.unaddressed |= part.unaddressed
            whole.topics_of_lists |= part.topics_of_lists
            for name in ("rounds", "listed", "offsets", "list_ids"):
                for subject, values in getattr(part, name).items():
                    getattr(whole, name)[subject] |= values
        return whole

    def subscribers(self) -> dict[Subject, list[str]]:
        """By topic the groups that subscribe to it."""
        listed = {group: set(topics) for group, topics in self.listed.items()}
        for group, ids in self.list_ids.items():
            topics = listed.setdefault(group, set())
            topics.update(*[self.topics_of_lists.get(id_, ()) for id_ in ids])
        return subscribers(self.polled, listed, self.offsets)


@dataclass(frozen=True)
class Cutting:
    """How the snapshot tables become pieces. ``list_ids``, ``route_ids``: lists and routes come by
    the ids that ingest gave them, and not by their rows.
    """

    shards: int
    heartbeat_expiry_seconds: int
    list_ids: bool = False
    route_ids: bool = False

    def tables(self) -> tuple[Table, ...]:
        """The tables that are read."""
        lists = (BROKER_POLLS, MEMBER_LISTS) if self.list_ids else (HEARTBEATS, BROKER_POLLS)
        routes = (ROUTE_POLLS, ROUTE_CONTENTS) if self.route_ids else (TOPIC_ROUTES,)
        return (*lists, *routes, CLIENT_STATES, QUEUE_OFFSETS)

    def pieces(self, table: Table, rows: Source) -> Iterator[Piece]:
        """The pieces of some rows of a table."""
        if table is HEARTBEATS:
            yield from self._lists(member_runs(rows, self.heartbeat_expiry_seconds))
        elif table is BROKER_POLLS:
            runs = poll_runs(rows, has_ids=self.list_ids)
            yield from self._by_subject(POLLS, runs)
            facts = _facts_of_polls(runs)
            for cluster, name, id_ in distinct(runs, "cluster", "consumer_group", "list_id"):
                if id_ is not None:
                    facts.list_ids[cluster, name].add(id_)
            yield pack_value(FOR_ALL, FACTS, facts)
        elif table is MEMBER_LISTS:
            yield from self._lists_by_id(rows)
        elif table is TOPIC_ROUTES:
            routes = route_runs(rows)
            by_shard = split(routes.runs, "topic", self._shards_of)
            yield from _with_records(by_shard, (ROUTED, ROUTES_BY_ID), routes, "route_id")
        elif table is ROUTE_POLLS:
            yield from self._by_subject(ROUTE_IDS, route_runs_by_id(rows), "topic")
        elif table is ROUTE_CONTENTS:
            found = contents_by_id(rows, ("cluster", "topic"), "route_id", "brokers", ROUTE_FACTS)
            yield from self._contents(ROUTES_BY_ID, found)
        elif table is CLIENT_STATES:
            yield from self._by_subject(CLIENTS, client_runs(rows))
        elif table is QUEUE_OFFSETS:
            runs = offset_runs(rows)
            yield from self._by_subject(OFFSETS, runs)
            facts = Facts()
            for group, topics in offset_topics(runs).items():
                facts.offsets[group].update(topics)
            yield pack_value(FOR_ALL, FACTS, facts)

    def _lists(self, lists: Contents) -> Iterator[Piece]:
        by_shard = split(lists.runs, "consumer_group", self._shards_of)
        yield from _with_records(by_shard, (LISTED, LISTS), lists, "list_id")
        facts = _facts_of_polls(lists.runs)
        topics = {id_: topics_of(records) for id_, records in lists.records.items()}
        without = {
            id_
            for id_, records in lists.records.items()
            if not all(record[CLIENT_ADDR] for record in records)
        }
        for cluster, name, id_ in distinct(lists.runs, "cluster", "consumer_group", "list_id"):
            facts.listed[cluster, name].update(topics[id_])
            if id_ in without:
                facts.unaddressed.add((cluster, name))
        yield pack_value(FOR_ALL, FACTS, facts)

    def _lists_by_id(self, rows: Source) -> Iterator[Piece]:
        group = ("cluster", "consumer_group")
        found = list(contents_by_id(rows, group, "list_id", "members", MEMBER_FACTS))
        yield from self._contents(LISTS, found)
        topics = {id_: tuple(topics_of(records)) for _, id_, records in found}
        yield pack_value(FOR_ALL, FACTS, Facts(topics_of_lists=topics))

    def _by_subject(
        self, kind: str, runs: Rows, subject: str = "consumer_group"
    ) -> Iterator[Piece]:
        for shard, part in split(runs, subject, self._shards_of):
            yield from pack_rows(shard, kind, part)

    def _contents(
        self, kind: str, found: Iterable[tuple[tuple[str, ...], str, Records]]
    ) -> Iterator[Piece]:
        of_shards: dict[int, list[tuple[str, Records]]] = defaultdict(list)
        for (cluster, name), id_, records in found:
            of_shards[shard_of(cluster, name, self.shards)].append((id_, records))
        for shard, contents in of_shards.items():
            yield from _packed_contents(shard, kind, contents)

    def _shards_of(self, cluster: str, name: str) -> list[int]:
        return [shard_of(cluster, name, self.shards)]


def split(rows: Rows, subject: str, shards_of: ShardsOf) -> Iterator[tuple[int, Rows]]:
    """The rows by the shards of their subjects."""
    places: dict[int, list[int]] = defaultdict(list)
    found: dict[tuple[str, str], Iterable[int]] = {}
    subjects = zip(rows["cluster"].to_pylist(), rows[subject].to_pylist(), strict=True)
    for place, pair in enumerate(subjects):
        shards = found.get(pair)
        if shards is None:
            shards = found[pair] = shards_of(*pair)
        for shard in shards:
            places[shard].append(place)
    for shard, of_shard in places.items():
        yield shard, rows.take(pa.array(of_shard))


def _facts_of_polls(runs: Rows) -> Facts:
    facts = Facts(polled=set(groups_of(runs)))
    for cluster in runs["cluster"].unique().to_pylist():
        of_cluster = runs.filter(pc.equal(runs["cluster"], cluster))
        times = pc.struct_field(pc.list_flatten(of_cluster["times"]), "snapshot_time")
        facts.rounds[cluster].update(pc.unique(times).to_pylist())
    return facts


def _with_records(
    by_shard: Iterable[tuple[int, Rows]], kinds: tuple[str, str], contents: Contents, id_name: str
) -> Iterator[Piece]:
    """Runs by shard, and the contents that they name."""
    of_runs, of_records = kinds
    for shard, part in by_shard:
        yield from pack_rows(shard, of_runs, part)
        records = in_use(contents._replace(runs=part), id_name).records
        yield from _packed_contents(shard, of_records, records.items())


def _packed_contents(
    shard: int, kind: str, contents: Iterable[tuple[str, Records]]
) -> Iterator[Piece]:
    chosen: dict[str, Records] = {}
    number = 0
    for id_, records in contents:
        chosen[id_] = records
        number += len(records)
        if number >= _MOST_RECORDS:
            yield pack_value(shard, kind, chosen)
            chosen, number = {}, 0
    if chosen:
        yield pack_value(shard, kind, chosen)


@dataclass(frozen=True)
class Dealing:
    """Deals the routes of a shard of topics to the shards of the groups that subscribe to them."""

    shards: int
    subscribers: Mapping[Subject, Sequence[str]]

    def deal(self, pieces: Sequence[Piece]) -> Iterator[Piece]:
        """The routes, each topic's once for every shard that has a group for it."""
        records = _records(pieces, ROUTES_BY_ID)
        by_rows = reunite(Contents(all_rows(pieces, ROUTED, ROUTE_RUNS), records), "route_id")
        by_id = merge_runs(all_rows(pieces, ROUTE_IDS, ROUTE_RUNS))
        runs = pa.concat_tables([by_rows.runs, by_id])
        by_shard = split(runs, "topic", self._shards_of)
        yield from _with_records(by_shard, (ROUTES, ROUTES_DEALT), by_rows, "route_id")

    def _shards_of(self, cluster: str, topic: str) -> set[int]:
        groups = self.subscribers.get((cluster, topic), [group_of_nobody(topic)])
        return {shard_of(cluster, group, self.shards) for group in groups}


def runs_of(pieces: Sequence[Piece]) -> Runs:
    """All that was reported about the groups of a shard."""
    records = _records(pieces, LISTS)
    listed = reunite(Contents(all_rows(pieces, LISTED, POLL_RUNS), records), "list_id")
    polls = pa.concat_tables([listed.runs, all_rows(pieces, POLLS, POLL_RUNS)])
    return Runs(
        in_use(Contents(merge_runs(polls), listed.records), "list_id"),
        Contents(all_rows(pieces, ROUTES, ROUTE_RUNS), _records(pieces, ROUTES_DEALT)),
        merge_runs(all_rows(pieces, CLIENTS, CLIENT_RUNS)),
        merge_runs(all_rows(pieces, OFFSETS, OFFSET_RUNS)),
    )


def _records(pieces: Sequence[Piece], kind: str) -> dict[str, Records]:
    records: dict[str, Records] = {}
    for contents in all_values(pieces, kind):
        records |= contents
    return records
