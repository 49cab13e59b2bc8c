"""Facts of all slices that the driver has to know: which groups and topics there are, when each
broker was asked, at which address, and about whom it did not answer.

All of it is small. Brokers and rounds are few. Of groups the polls without an answer are kept, as
runs: a broker that is away all night leaves one of each group in each round.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from .. import schemas
from ..declared.instants import Instant
from ..engines.pieces import FOR_ALL, Piece, all_values, pack_value
from ..schemas import ANSWERED, BOOLEAN, BROKER_POLLS, LONG, NO_ANSWER, ROUTE_POLLS, STRING
from . import dossiers
from .checked_rows import RefusedRows, RowsAhead
from .dossiers import ClusterGroup, ClusterTopic, distinct
from .numbers import Rows, int64, pc
from .runs import GROUP_KEY, REFUSED, Contents, is_whole, merge_runs

#: Kinds of pieces. Of groups: runs of lists by their rows, runs of polls, lists by their ids ...
LISTED, POLLS, LISTS, CLIENTS, OFFSETS = "listed", "polls", "lists", "clients", "offsets"
#: ... of topics: runs of routes by their rows, by their ids, and the contents ...
ROUTED, ROUTE_IDS, ROUTES_BY_ID = "routed", "route ids", "routes by id"
#: ... and what the driver gathers.
FACTS = "facts"

BROKER = ("cluster", "broker_name", "broker_id")
_ROUND, _OF_GROUP = (*BROKER, "snapshot_time"), (*BROKER, "consumer_group")
#: One row per broker and round: whether it answered about any group, an address that was asked, and
#: for how long it was asked again about one.
_OF_ROUND = {"answered": BOOLEAN, "broker_addr": STRING, "asked_for": LONG}
ROUNDS = pa.schema(
    {name: BROKER_POLLS.schema.field(name).type for name in BROKER}
    | {"snapshot_time": LONG}
    | _OF_ROUND
)

#: The values of some columns, and a round.
_KeyAndTime: TypeAlias = tuple[tuple[Any, ...], Instant]


@dataclass
class BrokerPolls:
    """The rounds of all brokers, as rows of ``ROUNDS``; the runs of polls without an answer, and of
    those whose list was refused.
    """

    rounds: Rows = field(default_factory=ROUNDS.empty_table)
    unanswered: list[Rows] = field(default_factory=list)
    refused: list[Rows] = field(default_factory=list)

    @classmethod
    def of_all(cls, parts: "Iterable[BrokerPolls]") -> "BrokerPolls":
        """Merges those of all slices."""
        every = list(parts)
        unanswered = [runs for broker_polls in every for runs in broker_polls.unanswered]
        refused = [runs for broker_polls in every for runs in broker_polls.refused]
        rounds = _distinct(broker_polls.rounds for broker_polls in every)
        # Each run once: the slices of many tasks have parts of the same ones.
        return cls(rounds, *(_merged(runs) for runs in (unanswered, refused)))

    def add(self, runs: Rows) -> None:
        """Adds runs of polls, as rows of ``runs.POLL_RUNS``."""
        for outcome, kept, names in (
            (NO_ANSWER, self.unanswered, _OF_GROUP),
            (REFUSED, self.refused, (*_OF_GROUP, "error_message")),
        ):
            some = runs.filter(pc.equal(runs["outcome"], outcome))
            if some.num_rows:
                kept.append(some.select([*names, "times"]))
        polls = _each_poll(runs, [*BROKER, "broker_addr", "asked_for", "outcome"])
        polls = polls.append_column("answered", pc.not_equal(polls["outcome"], NO_ANSWER))
        self.rounds = _distinct([self.rounds, polls.select(ROUNDS.names)])

    def rows(self, names: Sequence[str], rounds: Rows | None = None) -> Iterator[_KeyAndTime]:
        """The values of these columns and the time of each round, or of some of them."""
        chosen = self.rounds if rounds is None else rounds
        keys = zip(*(chosen[name].to_pylist() for name in names), strict=True)
        return zip(keys, chosen["snapshot_time"].to_pylist(), strict=True)

    def unanswered_in(self, rounds: Rows) -> Iterator[_KeyAndTime]:
        """The broker, the group and the time of each poll without an answer in some rounds."""
        for runs in self.unanswered:
            polls = _each_poll(runs, _OF_GROUP)
            there = polls.join(rounds.select(_ROUND), [*_ROUND], join_type="left semi")
            yield from self.rows(_OF_GROUP, there)

    def refused_lists(self) -> Iterator[_KeyAndTime]:
        """The broker, the group, the reason and the time of each poll whose list was refused."""
        names = [*_OF_GROUP, "error_message"]
        for runs in self.refused:
            yield from self.rows(names, _each_poll(runs, names))


def _merged(parts: Sequence[Rows]) -> list[Rows]:
    return [merge_runs(pa.concat_tables(parts))] if parts else []


def _each_poll(runs: Rows, names: Sequence[str]) -> Rows:
    """The columns of the runs and ``snapshot_time``, a row for each poll."""
    times = runs["times"].combine_chunks()
    run_of_poll = np.repeat(np.arange(len(times)), int64(pc.list_value_length(times)))
    rows = runs.select(names).take(pa.array(run_of_poll))
    return rows.append_column("snapshot_time", pc.struct_field(times.flatten(), "snapshot_time"))


def _distinct(rounds: Iterable[Rows]) -> Rows:
    every = pa.concat_tables([ROUNDS.empty_table(), *(some.cast(ROUNDS) for some in rounds)])
    found = every.group_by([*_ROUND]).aggregate([(name, "max") for name in _OF_ROUND])
    return found.rename_columns(ROUNDS.names)


# ------------------------------------------------------------------ all facts


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
    #: The topics of the queues that the members of each group took by ``assign()``.
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
            for name in (
                *("asked", "unaddressed", "listing", "unnamed"),
                *("broker_ids", "topics_of_lists", "rows"),
            ):
                getattr(whole, name).update(getattr(part, name))
            for group, (addresses, client_ids) in part.spans.items():
                whole._span(group, addresses, client_ids)
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
        keys = (*self.routes_at, *self.offsets_at, *self.asked)
        return {*self.rounds, *(cluster for cluster, _ in keys)}

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
                ids_of = self.broker_ids.get(id_, ())
                routed[cluster].update(name for name, ids in ids_of if ids is None or ids)
        asked = {
            (cluster, name)
            for cluster in routed
            for other, names in self.brokers.items()
            if other == cluster or self.nameservers[cluster] & self.nameservers[other]
            for name in names
        }
        return {(cluster, name) for cluster, names in routed.items() for name in names} - asked

    def add(self, contents: Contents, runs_kind: str | None, records_kind: str | None) -> None:
        """Adds a part of a slice, by the kinds of its pieces."""
        runs = contents.runs
        if runs_kind in (LISTED, POLLS):
            self._add_polls(contents, runs_kind)
        if runs_kind == CLIENTS:
            is_answer = pc.equal(runs["source"], schemas.RUNNING_INFO)
            self.asked.update(distinct(runs.filter(is_answer), *GROUP_KEY))
            for group, topics in dossiers.assigned_topics(runs).items():
                self.assigned[group] |= topics
        if runs_kind in (ROUTED, ROUTE_IDS):
            for cluster, address, times in _times(runs, "namesrv_addr"):
                self.nameservers[cluster].add(address)
                self.routes_at[cluster, address].update(times)
            for *topic, id_ in distinct(runs, "cluster", "topic", "route_id"):
                self.route_ids[*topic].add(id_)
        if runs_kind == OFFSETS:
            for group, topics in dossiers.offset_topics(runs).items():
                self.offsets[group] |= topics
            for cluster, broker_name, times in _times(runs, "broker_name"):
                self.offsets_at[cluster, broker_name].update(times)
        if records_kind is not None:
            self._add_records(contents, records_kind)

    def _span(
        self, group: ClusterGroup, addresses: Iterable[str], client_ids: Iterable[str]
    ) -> None:
        known_addresses, known_ids = self.spans.get(group, (set[str](), set[str]()))
        both = known_addresses.union(addresses), known_ids.union(client_ids)
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
            for id_ in route_ids:
                for name, ids in self.broker_ids.get(id_, ()):
                    routed[cluster, name].update([None] if ids is None else ids)
        return {
            (cluster, name, id_)
            for cluster, name, id_ in self.listing
            if (known := routed.get((cluster, name))) and not known & {None, id_}
        }

    def _add_records(self, contents: Contents, records_kind: str) -> None:
        for *subject, id_ in distinct(
            contents.runs, *contents.runs.column_names[:2], contents.id_name
        ):
            self.given[*subject].add(id_)
        for id_, records in contents.records.items():
            if records_kind == ROUTES_BY_ID and is_whole(records):
                self.broker_ids[id_] = dossiers.broker_ids(records)
            if records_kind == LISTS and id_ not in self.topics_of_lists:
                self.topics_of_lists[id_] = dossiers.topics_of(records)

    def _add_polls(self, contents: Contents, runs_kind: str) -> None:
        runs = contents.runs
        if runs_kind == POLLS:
            self.polls.add(runs)
        else:
            for cluster, name, id_ in distinct(runs, *GROUP_KEY, "list_id"):
                records = contents.records[id_]
                client_ids, addresses = dossiers.connections(records)
                if is_whole(records) and not all(addresses):
                    self.unaddressed.add((cluster, name))
                elif records and is_whole(records):
                    self._span((cluster, name), addresses, client_ids)
        for cluster, broker_name, times in _times(runs, "broker_name"):
            self.rounds[cluster].update(times)
            self.brokers[cluster].add(broker_name)
        self.listing.update(distinct(runs.filter(runs["list_id"].is_valid()), *BROKER))
        for *group, outcome, id_ in distinct(runs, *GROUP_KEY, "outcome", "list_id"):
            self.list_ids[*group].update({id_} - {None})
            if outcome == ANSWERED and id_ is None:
                self.unnamed.add((group[0], group[1]))

    def without_content(
        self, *, list_ids: bool
    ) -> Iterator[tuple[str, str, ClusterTopic, str | None]]:
        """Table, column, group or topic and value of each id whose content did not come; None: no
        id, of an answer that brought a list. ``list_ids``: lists come by their ids.
        """
        for group in sorted(self.unnamed if list_ids else ()):
            yield BROKER_POLLS.name, "list_id", group, None
        for table, column, ids in (
            (BROKER_POLLS.name, "list_id", self.list_ids),
            (ROUTE_POLLS.name, "route_id", self.route_ids),
        ):
            for subject, subject_ids in sorted(ids.items()):
                for id_ in sorted(subject_ids - self.given.get(subject, set())):
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
