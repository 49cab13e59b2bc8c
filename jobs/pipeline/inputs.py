"""The inputs of an audit: its snapshot tables, and the terms of the judgement.

Which tables are read, as which slices, and how each is cut:

ingest writes an id with each poll (``list_id``, ``route_id``), and each distinct content once
(``member_lists``, ``route_contents``): an audit with ids reads one narrow row for each answer.
``heartbeats`` and ``topic_routes`` stay the public contract: a lake that has them needs no ingest.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, pairwise
from typing import Any, TypeAlias

import pyarrow as pa

from rebalance_core import StrategyRule, StrategyRules

from .. import schemas
from ..config.known_issues import KnownIssue
from ..config.settings import Settings
from ..config.terms import ClustersOfName, KnownIssueTerms, Terms
from ..config.window import Window
from ..contract import check_tables, has_columns
from ..declared.instants import Instant
from ..engines.engine import MOST_BYTES, Engine, Slice
from ..errors import InputError
from ..fold.checked_rows import checked_rows
from ..fold.dossiers import distinct
from ..fold.kernel import Cutting
from ..fold.slices import TableStep
from ..storage import Location, PublishedRun, Snapshots
from ..storage.location import check_bucket, parquet_of

#: Tables without which there is nothing to audit.
_REQUIRED = (schemas.HEARTBEATS, schemas.TOPIC_ROUTES)
#: The key of the summary of an ingest.
_CLUSTERS = "clusters_of_names"
#: The clusters, by cluster and broker name, in which a nameserver has the name, round by round.
ClusterRounds: TypeAlias = Mapping[tuple[str, str], Mapping[Instant, Iterable[str]]]


@dataclass(frozen=True)
class Inputs:
    """The snapshot tables at a place, and what they can be read by.

    ``in_driver``: no worker of the engine sees them.
    """

    snapshots: Snapshots
    settings: Settings
    in_driver: bool = False

    def sentence(self) -> str:
        """The line for a person: which tables are read, and whether they could be checked."""
        place = self.snapshots
        if place.run_id is None:
            return f"reads the tables at {place.root}; they have no manifest, and are not checked"
        return f"reads the tables at {place.root} that run {place.run_id} ingested"

    def cut(
        self, engine: Engine, window: Window, group: str | None = None, *, has_files: bool = True
    ) -> tuple[Any, Cutting]:
        """The pieces of the rows in a window, of one group if it is named; how they are cut.

        ``has_files``: see ``TableStep``.
        """
        cutting = self.cutting()
        slices = self.slices(cutting.tables())
        if group is None:
            cutting = replace(cutting, shards=engine.shards(sum(slice_.size for slice_ in slices)))
        age = self.settings.route_max_age_seconds
        step = TableStep(cutting, window, age, group, has_files)
        if self.in_driver:
            return engine.given(step((slice_, None) for slice_ in slices)), cutting
        return engine.map(slices, step), cutting

    def slices(self, tables: Sequence[schemas.Table]) -> list[Slice]:
        """The files of the tables, large ones in ranges of their row groups.

        ContractError where a table has not the columns that it must have.
        """
        require_tables(self.snapshots)
        # The rows may be read by their ids: all the same they have to be what the contract says.
        check_tables(
            (table, self.snapshots.schema(table.name))
            for table in dict.fromkeys([*_REQUIRED, *tables, schemas.QUARANTINE])
            if self.snapshots.has(table.name)
        )
        found: list[Slice] = []
        for table in tables:
            for file in self.snapshots.files(table.name):
                root = self.snapshots.root
                whole = Slice(0, table.name, root.below(file.path).uri, file.size)
                is_small = file.size <= MOST_BYTES
                found += [whole] if is_small else _row_groups(root, file.path, whole)
        return [slice_._replace(number=number) for number, slice_ in enumerate(found)]

    def quarantine(self) -> Iterator[pa.Table]:
        """The rows of the quarantine of the ingest, some at a time."""
        return checked_rows(self.snapshots, schemas.QUARANTINE, schemas.QUARANTINE.schema.names)

    def groups(self) -> set[str]:
        """The names of all groups about which brokers were asked."""
        return {name for (name,) in self._polled("consumer_group")}

    def brokers(self) -> set[tuple[str, str]]:
        """Cluster and name of all brokers that were asked about any group."""
        return {(cluster, name) for cluster, name in self._polled("cluster", "broker_name")}

    def _polled(self, *columns: str) -> set[tuple[str, ...]]:
        """The distinct values of these columns in the rows of what brokers were asked."""
        tables = (schemas.HEARTBEATS, schemas.BROKER_POLLS)
        batches = chain(*(checked_rows(self.snapshots, table, columns) for table in tables))
        return {distinct_row for rows in batches for distinct_row in distinct(rows, *columns)}

    def cutting(self) -> Cutting:
        """The way in which the tables become pieces, of one shard."""
        expiry = self.settings.heartbeat_expiry_seconds
        most = self.settings.bounds.quarantined_lines
        # Ids of routes do not depend on a setting. The polls that have them say when each
        # nameserver was asked, which the rows do not.
        has_route_ids = self._has_all(schemas.ROUTE_POLLS, schemas.ROUTE_CONTENTS)
        return Cutting(1, expiry, self.has_list_ids(), has_route_ids, most)

    def has_list_ids(self) -> bool:
        """True if the ids of lists that ``ingest`` wrote are those that this audit would compute.

        Members that were silent for too long make another list, so that ids count for one setting
        alone. Rows count in tables that came from elsewhere, and for other facts of a member.
        """
        expiry = (self.snapshots.ingested or {}).get("heartbeat_expiry_seconds")
        is_same = expiry == self.settings.heartbeat_expiry_seconds
        return is_same and self._has_all(schemas.BROKER_POLLS, schemas.MEMBER_LISTS)

    def _has_all(self, *tables: schemas.Table) -> bool:
        """True if the tables are there, with all their columns."""
        there = self.snapshots
        return all(
            there.has(table.name) and has_columns(table, there.schema(table.name))
            for table in tables
        )

    def count(self, window: Window) -> dict[str, int]:
        """The rows of each table in the window."""
        # A route that was polled shortly before the window still holds when it begins.
        route_window = window.earlier(self.settings.route_max_age_seconds)
        windows = {
            schemas.HEARTBEATS: window,
            schemas.BROKER_POLLS: window,
            schemas.TOPIC_ROUTES: route_window,
        }
        rows = dict.fromkeys((table.name for table in windows), 0)
        for table, table_window in windows.items():
            # Without a time the contract's check reports what is missing.
            if (
                self.snapshots.has(table.name)
                and "snapshot_time" in (columns := self.snapshots.schema(table.name)).names
            ):
                where = table_window.filter_of(table, columns)
                rows[table.name] = self.snapshots.count(table.name, where)
        return rows


def _row_groups(root: Location, path: str, whole: Slice) -> list[Slice]:
    """Ranges of a large file's row groups, each about as large as a file may be."""
    (fragment,) = parquet_of([(path, whole.size)], root.file_system).get_fragments()
    number = fragment.metadata.num_row_groups
    ranges = min(number, -(-whole.size // MOST_BYTES))
    edges = [number * place // ranges for place in range(ranges + 1)]
    return [whole._replace(start=start, stop=stop) for start, stop in pairwise(edges)]


def require_tables(snapshots: Snapshots) -> None:
    """InputError where a table is missing without which there is nothing to audit."""
    for table in _REQUIRED:
        if not snapshots.has(table.name):
            check_bucket(snapshots.root)
            raise InputError(
                f"no table {table.name} at {snapshots.table(table.name)}: expected the folder of "
                "snapshot tables that ingest or run wrote",
                ", as out/snapshots for --output out",
            )


def window_of_last(last: PublishedRun | None, window: Window) -> Window:
    """A window that has no beginning begins with that of the last published run."""
    if last is None or window.since is not None:
        return window
    since = last.summary["window"]["since"]
    return replace(window, since=since and datetime.fromisoformat(since))


def packed_clusters(clusters: ClusterRounds) -> dict[str, Any]:
    """The clusters of broker names that are in several, as the summary of an ingest has them."""
    rows = [
        [*several, sorted({*chain(*rounds.values())}), min(rounds), max(rounds)]
        for several, rounds in sorted(clusters.items())
    ]
    return {_CLUSTERS: rows} if rows else {}


def terms_of(
    settings: Settings,
    known_issues: Iterable[KnownIssue] = (),
    ingested: Mapping[str, Any] | None = None,
) -> Terms:
    """The terms of the judgement; the known issues are those that are in force. ``ingested``: the
    summary of the ingest of what is judged.
    """
    clusters_of_names = {
        (cluster, name): ClustersOfName(*several)
        for cluster, name, *several in (ingested or {}).get(_CLUSTERS, ())
    }
    return Terms(
        persistence_seconds=settings.persistence_seconds,
        heartbeat_expiry_seconds=settings.heartbeat_expiry_seconds,
        route_max_age_seconds=settings.route_max_age_seconds,
        warning_probability=settings.severity.warning_probability,
        critical_probability=settings.severity.critical_probability,
        masking=settings.masking.to_masking(),
        topic_queues=settings.bounds.topic_queues,
        known_issues=tuple(
            KnownIssueTerms(
                reason=entry.reason,
                patterns=tuple((key, re.compile(text)) for key, text in entry.patterns().items()),
                queues=None if entry.queues is None else frozenset(entry.queues),
                kinds=None if entry.kinds is None else frozenset(entry.kinds),
            )
            for entry in known_issues
        ),
        clusters_of_names=clusters_of_names,
    )


def strategy_rules(settings: Settings) -> StrategyRules:
    """The settings' strategies as the core has them."""
    rules = [StrategyRule(**strategy.model_dump()) for strategy in settings.strategies]
    return StrategyRules(rules, settings.default_strategy, settings.bounds.topic_queues)
