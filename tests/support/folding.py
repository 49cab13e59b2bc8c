"""Snapshot tables cut into slices and folded: what an engine does, step by step in one process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from jobs.declared.dossier import Dossier
from jobs.engines.pieces import FOR_ALL, Piece, all_values
from jobs.fold.dossiers import make_dossiers
from jobs.fold.kernel import OF_GROUPS, OF_TOPICS, ROUTES, ROUTES_DEALT, Cutting, Dealing, runs_of
from jobs.fold.numbers import TableSource
from jobs.fold.slice_facts import FACTS, Facts
from jobs.schemas import QUARANTINE, SNAPSHOT_TABLES

_TABLES = {table.name: table for table in SNAPSHOT_TABLES}
#: Some rows of a table, by its name.
Slices = Iterable[tuple[str, TableSource]]


@dataclass(frozen=True)
class FoldedShards:
    """By shard the pieces of its groups and their dossiers; and what is known of all slices."""

    pieces: Mapping[int, list[Piece]]
    dossiers: Mapping[int, list[Dossier]]
    facts: Facts

    def all(self) -> list[Dossier]:
        """The dossiers of all shards."""
        return [dossier for of_shard in self.dossiers.values() for dossier in of_shard]

    def topics(self) -> dict[int, set[tuple[str, str]]]:
        """By shard (cluster, topic) of the routes that were dealt to it."""
        found: dict[int, set[tuple[str, str]]] = {}
        for shard, pieces in self.pieces.items():
            runs = runs_of(pieces).routes.runs
            columns = (runs[name].to_pylist() for name in ("cluster", "topic"))
            found[shard] = set(zip(*columns, strict=True))
        return found


def fold_slices(slices: Slices, cutting: Cutting, tasks: int | None = None) -> FoldedShards:
    """The dossiers of the slices, as an engine brings them together that deals them to so many
    tasks; by default one for each slice.
    """
    every = list(slices)
    pieces = [
        piece
        for first in range(len(every) if tasks is None else tasks)
        for name, of_table in groupby(every[first :: tasks or len(every)], itemgetter(0))
        for piece in cutting.pieces(_TABLES[name], [rows for _, rows in of_table])
    ]
    facts = Facts.of(all_values(pieces, FACTS))
    assert all(
        (piece.shard == FOR_ALL) == (piece.kind in (FACTS, QUARANTINE.name)) for piece in pieces
    )
    dealing = Dealing(cutting.shards, facts.subscribers())
    topics = by_shard(pieces, OF_TOPICS)
    routes = [piece for of_shard in topics.values() for piece in dealing.deal_routes(of_shard)]
    groups = by_shard([*pieces, *routes], (*OF_GROUPS, ROUTES, ROUTES_DEALT))
    return FoldedShards(
        groups, {shard: make_dossiers(runs_of(each)) for shard, each in groups.items()}, facts
    )


def by_shard(pieces: Iterable[Piece], kinds: Iterable[str]) -> dict[int, list[Piece]]:
    """The pieces of the kinds, by shard."""
    found: dict[int, list[Piece]] = defaultdict(list)
    for piece in pieces:
        if piece.kind in kinds:
            found[piece.shard].append(piece)
    return found


def whole(tables: Mapping[str, TableSource], cutting: Cutting) -> Iterator[tuple[str, TableSource]]:
    """Each table that is read as one slice."""
    return ((table.name, tables[table.name]) for table in cutting.tables() if table.name in tables)
