"""Where moments come from that somebody asks about: dump files, snapshot tables, DataFrames.

One group is folded and judged in this process, by the functions that a night is folded and judged
by: see ``audit_on_driver``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from jobs.contract import check_contract
from jobs.dumps.files import list_local_files
from jobs.errors import InputError
from jobs.fold.local import fold, member_runs, member_runs_by_id, route_runs, route_runs_by_id
from jobs.fold.numbers import only
from jobs.instants import to_instant
from jobs.judge.dossier import read_dossiers
from jobs.judge.moment import Moment, find_moments
from jobs.pipeline.audit_on_driver import Sources, read_sources
from jobs.pipeline.continuing import Inputs
from jobs.pipeline.ingest_on_driver import tables_of_dumps
from jobs.pipeline.terms import strategy_rules, terms_of
from jobs.schemas import (
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    MEMBER_LISTS,
    QUARANTINE,
    QUEUE_OFFSETS,
    ROUTE_CONTENTS,
    ROUTE_POLLS,
    TOPIC_ROUTES,
    Table,
)
from jobs.settings import Settings
from jobs.storage import Location, Snapshots
from jobs.window import Window
from rebalance_core import near_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Question:
    """What somebody asks about. ``at``: the last snapshot up to it; None: the last one.

    ``topic`` None: every topic of the group. ``cluster`` may be None where the group is in one
    cluster alone.
    """

    group: str
    topic: str | None
    at: datetime | None = None
    cluster: str | None = None


def moments_of_dumps(paths: Sequence[str], question: Question, settings: Settings) -> list[Moment]:
    """The moments as ``ingest`` and ``audit`` would make them of these dump files, one per topic.

    Raises InputError where there is no such file, group, topic or time; it names what comes near.
    """
    files = list_local_files(paths)
    if files is None:
        raise InputError(f"expected local dumps, came {', '.join(paths)}")
    if not files:
        raise InputError(f"no dump file below {', '.join(paths)}")
    tables = tables_of_dumps(files, settings)
    refused = tables[QUARANTINE.name].num_rows
    sources = Sources(
        member_runs_by_id(
            only(tables[BROKER_POLLS.name], consumer_group=question.group),
            only(tables[MEMBER_LISTS.name], consumer_group=question.group),
        ),
        route_runs_by_id(tables[ROUTE_POLLS.name], tables[ROUTE_CONTENTS.name]),
        only(tables[CLIENT_STATES.name], consumer_group=question.group),
        only(tables[QUEUE_OFFSETS.name], consumer_group=question.group),
    )
    aside = f" ({refused} lines were not understood)" if refused else ""
    return _moments(sources, question, settings, _groups(tables.values()), aside)


def moment_of_dumps(paths: Sequence[str], question: Question, settings: Settings) -> Moment:
    """The one moment of a question that names a topic: see ``moments_of_dumps``."""
    (moment,) = moments_of_dumps(paths, question, settings)
    return moment


def moments_of_tables(snapshots: Location, question: Question, settings: Settings) -> list[Moment]:
    """The same of snapshot tables; only heartbeats and routes must be there.

    Raises ContractError where a table has not the columns that it must have.
    """
    tables = Snapshots.open(snapshots)
    inputs = Inputs(tables, settings)
    sources = read_sources(inputs, Window(), question.group)
    groups = {
        str(name)
        for table in (HEARTBEATS, BROKER_POLLS)
        if tables.has(table.name)
        for name in pc.unique(
            tables.parquet(table.name).to_table(["consumer_group"])["consumer_group"]
        ).to_pylist()
    }
    return _moments(sources, question, settings, groups)


def moment_of_tables(snapshots: Location, question: Question, settings: Settings) -> Moment:
    """The one moment of a question that names a topic: see ``moments_of_tables``."""
    (moment,) = moments_of_tables(snapshots, question, settings)
    return moment


def moment_of_frames(
    heartbeats: DataFrame,
    topic_routes: DataFrame,
    broker_polls: DataFrame | None,
    client_states: DataFrame | None,
    queue_offsets: DataFrame | None,
    question: Question,
    settings: Settings,
    route_polls: DataFrame | None = None,
    route_contents: DataFrame | None = None,
) -> Moment:
    """The same of DataFrames, of one topic; the rows of the one group come to this process.

    ``route_polls`` and ``route_contents`` count in place of ``topic_routes``: see ``audit_frames``.
    Raises ContractError where a table has not the columns that it must have.
    """

    def of_group(table: Table, rows: DataFrame | None) -> pa.Table | None:
        if rows is None:
            return None
        wanted = check_contract(table, rows)
        if "consumer_group" in table.schema.names:
            wanted = wanted.where(wanted["consumer_group"] == question.group)
        return wanted.toArrow()

    listed = of_group(HEARTBEATS, heartbeats)
    polls = of_group(BROKER_POLLS, broker_polls)
    assert listed is not None  # noqa: S101 - there are heartbeats
    routes = of_group(TOPIC_ROUTES, topic_routes)
    assert routes is not None  # noqa: S101 - there are routes
    asked, contents = of_group(ROUTE_POLLS, route_polls), of_group(ROUTE_CONTENTS, route_contents)
    if asked is not None and contents is not None:
        of_routes = route_runs_by_id(asked, contents)
    else:
        of_routes = route_runs(routes)
    sources = Sources(
        member_runs(listed, polls, settings.heartbeat_expiry_seconds),
        of_routes,
        of_group(CLIENT_STATES, client_states),
        of_group(QUEUE_OFFSETS, queue_offsets),
    )
    groups: set[str] = set()
    if not listed.num_rows and not (polls is not None and polls.num_rows):
        names = check_contract(HEARTBEATS, heartbeats).select("consumer_group").distinct()
        groups = {row[0] for row in names.collect()}
    (moment,) = _moments(sources, question, settings, groups)
    return moment


def _moments(
    sources: Sources,
    question: Question,
    settings: Settings,
    groups: Iterable[str],
    aside: str = "",
) -> list[Moment]:
    rows = fold(sources.lists, sources.routes, sources.client_states, sources.queue_offsets)
    dossiers = {
        dossier.cluster: dossier
        for dossier in read_dossiers(rows.to_batches())
        if dossier.consumer_group == question.group and dossier.polls
    }
    if not dossiers:
        if question.group in groups:
            raise InputError(f"no answer of a broker about {question.group} here{aside}")
        raise _unknown("group", question.group, groups, aside)
    return find_moments(
        dossiers[_one_cluster(question, dossiers)],
        sources.lists.records,
        question.topic,
        None if question.at is None else to_instant(question.at),
        terms_of(settings),
        strategy_rules(settings),
    )


def _groups(tables: Iterable[pa.Table]) -> set[str]:
    named = (table["consumer_group"] for table in tables if "consumer_group" in table.column_names)
    return {str(name) for column in named for name in pc.unique(column).to_pylist()}


def _one_cluster(question: Question, clusters: Iterable[str]) -> str:
    there = sorted(clusters)
    if question.cluster is not None and question.cluster not in there:
        raise _unknown("cluster", question.cluster, there, f" with {question.group}")
    if question.cluster is None and len(there) > 1:
        names = ", ".join(map(repr, there))
        raise InputError(f"{question.group} is in several clusters, {names}: say which")
    return question.cluster or there[0]


def _unknown(what: str, came: str, there: Iterable[str], aside: str = "") -> InputError:
    return InputError(f"no {what} {came!r} here{aside}: {near_names(came, set(there))}")
