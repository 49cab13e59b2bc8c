"""Moments that somebody asks about, from dump files or snapshot tables.

One group is folded and judged in this process, by the functions that a night is folded and judged
by.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core import near_names
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.known_issues import KnownIssues
from ..config.settings import Settings
from ..config.window import Window
from ..declared.instants import to_datetime, to_instant
from ..engines.engine import Engine
from ..engines.local import LocalEngine
from ..errors import InputError
from ..fold.dossiers import distinct
from ..fold.kernel import Cutting
from ..fold.numbers import rows_of_group
from ..judge.moment import Moment, find_moments
from ..judge.observe.evaluation import Failure
from ..schemas import BROKER_POLLS, QUARANTINE
from ..storage import Location, Snapshots
from .audit import FoldResult, fold_pieces
from .group_audit import GroupAudit, Shard
from .ingest import read_dumps
from .inputs import Inputs, packed_clusters, strategy_rules, terms_of

#: All snapshots, and no known issue.
ALL, NONE_KNOWN = Window(), KnownIssues()


@dataclass(frozen=True)
class MomentQuestion:
    """A question about a moment. ``at``: the last snapshot up to it; None: the last one.

    ``topic`` None: every topic of the group. ``cluster`` may be None where the group is in one
    cluster alone. Of snapshot tables those in the ``window`` are read, as the run did whose moment
    it is.
    """

    group: str
    topic: str | None
    at: datetime | None = None
    cluster: str | None = None
    window: Window = ALL
    known_issues: KnownIssues = NONE_KNOWN


def moments_of_dumps(
    paths: Sequence[str], question: MomentQuestion, settings: Settings
) -> list[Moment]:
    """The moments as ``ingest`` and ``audit`` would make them of these dump files, one per topic.

    Raises InputError where there is no such file, group, topic or time; it names what comes near.
    """
    with LocalEngine() as engine:
        read = read_dumps(engine, engine.list_files(paths), settings)
        tables = read.whole_tables(settings)
        refused = tables.pop(QUARANTINE.name).num_rows
        cutting = Cutting(1, settings.heartbeat_expiry_seconds, list_ids=True, route_ids=True)
        rows = {name: rows_of_group(table, question.group) for name, table in tables.items()}
        aside = f" ({refused} lines were not understood)" if refused else ""
        pieces = engine.given(
            piece
            for table in cutting.tables()
            for piece in cutting.pieces(table, [rows[table.name]])
        )
        folded = fold_pieces(engine, pieces, cutting)
        ingested = packed_clusters(read.counts.clusters)
        names = partial(_groups, tables.values())
        polls = tables[BROKER_POLLS.name]
        never_asked = _never_asked(folded, partial(distinct, polls, "cluster", "broker_name"))
        return _moments(folded, question, settings, names, ingested, never_asked, aside)


def _never_asked(
    of_group: FoldResult, brokers: Callable[[], Iterable[tuple[str, str]]]
) -> frozenset[tuple[str, str]]:
    """``FoldResult.never_asked`` where one group alone was folded; ``brokers``: gives cluster and
    name of those that were asked about any.
    """
    if not of_group.never_asked:
        return frozenset()
    asked = {cluster: set(names) for cluster, names in grouped(brokers()).items()}
    return frozenset(replace(of_group.facts, brokers=asked).never_asked())


def moments_of_tables(
    snapshots: Location, question: MomentQuestion, settings: Settings
) -> list[Moment]:
    """The same of snapshot tables; only heartbeats and routes must be there.

    Raises ContractError where a table has not the columns that it must have.
    """
    inputs = Inputs(Snapshots.open(snapshots), settings)
    with LocalEngine() as engine:
        return moments_of_inputs(engine, inputs, question, inputs.groups, inputs.brokers)


def moments_of_inputs(
    engine: Engine,
    inputs: Inputs,
    question: MomentQuestion,
    groups: Callable[[], Collection[str]],
    brokers: Callable[[], Iterable[tuple[str, str]]] | None = None,
) -> list[Moment]:
    """The same of tables wherever they are; ``groups``: gives the names of all of them;
    ``brokers``: those that were asked about any; None where the tables of a run lead, which knew.
    """
    pieces, cutting = inputs.cut(engine, question.window, question.group)
    folded = fold_pieces(engine, pieces, cutting)
    found = frozenset() if brokers is None else _never_asked(folded, brokers)
    return _moments(folded, question, inputs.settings, groups, inputs.snapshots.ingested, found)


def _moments(
    folded: FoldResult,
    question: MomentQuestion,
    settings: Settings,
    groups: Callable[[], Collection[str]],
    ingested: Mapping[str, Any] | None,
    never_asked: frozenset[tuple[str, str]],
    aside: str = "",
) -> list[Moment]:
    audit = GroupAudit(terms_of(settings), strategy_rules(settings))
    pieces = list(folded.engine.collect(folded.pieces))
    shard = audit.find_groups(pieces) if pieces else Shard(0, [], {})
    dossiers = {
        dossier.cluster: (dossier, situations)
        for dossier, situations in shard.groups
        if dossier.consumer_group == question.group and dossier.polls
    }
    if not dossiers:
        if question.group in (names := groups()):
            raise InputError(f"no answer of a broker about {question.group} here{aside}")
        raise _unknown("group", question.group, names, aside)
    dossier, situations = dossiers[_one_cluster(question, dossiers)]
    if not dossier.list_topics:
        group = dossier.cluster, question.group
        for (cluster, *_, name, reason), _ in folded.facts.polls.refused_lists():
            if (cluster, name) == group:
                raise InputError(f"no list of {question.group} here is evidence: {reason}")
    if isinstance(situations, Failure):
        raise InputError(f"the audit fails on {question.group}: {situations.sentence}")
    at = None if question.at is None else to_instant(question.at)
    last = max(time for run in dossier.polls for time in run.times)
    known_issues = question.known_issues.in_force(to_datetime(last).date())
    terms = replace(terms_of(settings, known_issues, ingested), never_asked=never_asked)
    try:
        return find_moments(
            dossier, situations, shard.members, question.topic, at, terms, audit.rules
        )
    except InputError as error:
        raise _in_zone(error, settings) from error


def _in_zone(error: InputError, settings: Settings) -> InputError:
    """The error with its times as the reader has them, and the name of the zone."""
    text, zone = error.args[0], settings.reader.zone
    if not isinstance(text, Text):
        return error
    named = "" if zone is UTC else f" ({zone})"
    return InputError(f"{settings.console_language.of(text)}{named}", error.console)


def _groups(tables: Iterable[pa.Table]) -> set[str]:
    named = (table["consumer_group"] for table in tables if "consumer_group" in table.column_names)
    return {str(name) for column in named for name in pc.unique(column).to_pylist()}


def _one_cluster(question: MomentQuestion, clusters: Iterable[str]) -> str:
    there = sorted(clusters)
    if question.cluster is not None and question.cluster not in there:
        raise _unknown("cluster", question.cluster, there, f" with {question.group}")
    if question.cluster is None and len(there) > 1:
        names = ", ".join(map(repr, there))
        raise InputError(
            f"{question.group} is in several clusters, {names}: say which", " with --cluster"
        )
    return question.cluster or there[0]


def _unknown(what: str, came: str, there: Iterable[str], aside: str) -> InputError:
    return InputError(f"no {what} {came!r} here{aside}: {near_names(came, set(there))}")
