"""Moments that somebody asks about, from dump files or snapshot tables; the answers as texts.

One group is folded and judged in this process, by the functions that a night is folded and judged
by. ``explain`` and ``what_if`` begin with the judgement of the moment (``Judged``). What a
published run has of the topic leads. Where there is no such run, the same rules judged the group
for this answer, and their rows are read as those of a run are. The problem of a moment is made of
the rows that were there then, as that of the night is made of all.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rebalance_core import Change, Situation, near_names
from rebalance_core import what_if_of_group as predict_group
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ..config.known_issues import KnownIssues
from ..config.settings import Settings
from ..config.window import Window
from ..declared.instants import Instant, to_datetime, to_instant
from ..declared.kinds import GRADED_TABLES, QUEUE_FINDINGS, STALLED, worst
from ..engines.engine import Engine
from ..engines.local import LocalEngine
from ..errors import InputError
from ..fold.dossiers import distinct
from ..fold.kernel import Cutting
from ..fold.numbers import rows_of_group
from ..judge.history import problems_of
from ..judge.moment import Moment, find_moments
from ..judge.observe.arrow_tables import Row, to_table
from ..judge.observe.evaluation import Failure
from ..reports.problems import Problem, read_problems
from ..reports.situation_text import Judged, explain_lines
from ..reports.tables import PLACE, TABLES, Place, Tables, place_of
from ..reports.text_templates import WIDTH
from ..reports.what_if import what_if_lines, what_if_values
from ..schemas import BROKER_POLLS, GROUP_HEALTH, PROBLEMS, QUARANTINE
from ..storage import Location, Snapshots
from .audit import FoldResult, fold_pieces
from .gathered import table_rows
from .group_audit import GroupAudit, Shard
from .ingest import read_dumps
from .inputs import Inputs, packed_clusters, strategy_rules, terms_of

#: All snapshots, and no known issue.
ALL, NONE_KNOWN = Window(), KnownIssues()
#: The rows of a topic, by table: its times as Instants, its texts as such.
_TopicRows = Mapping[str, Sequence[Row]]
#: The tables that show what was judged.
_READ = (*GRADED_TABLES, GROUP_HEALTH.name)


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
    folded: FoldResult, brokers: Callable[[], Iterable[tuple[str, str]]]
) -> frozenset[tuple[str, str]]:
    """``FoldResult.never_asked`` where one group alone was folded; ``brokers``: gives cluster and
    name of those that were asked about any.
    """
    if not folded.never_asked:
        return frozenset()
    asked = {cluster: set(names) for cluster, names in grouped(brokers()).items()}
    return frozenset(replace(folded.facts, brokers=asked).never_asked())


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
        text, zone = error.args[0], settings.reader.zone
        if not isinstance(text, Text):
            raise
        # Its times are as the reader has them.
        named = "" if zone is UTC else f" ({zone})"
        shown = settings.console_language.of(text)
        raise InputError(f"{shown}{named}", error.console) from error


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


class ShellText(str):
    """A text that a shell shows as it is, when it is the value of a line."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain_moment(
    moment: Moment,
    settings: Settings,
    width: int = WIDTH,
    *,
    published: Tables | None = None,
    is_full: bool = False,
) -> ShellText:
    """The text of ``explain`` for a moment that was found.

    ``published``: the tables of the run that judged it, if there is one (``judged_of``).
    """
    situation = Situation(moment.state, strategy_rules(settings))
    judged = judged_of(moment, published)
    lines = explain_lines(situation, moment, judged, settings.reader, width, is_full=is_full)
    return ShellText(settings.masking.to_masking().mask("\n".join(lines)))


@dataclass(frozen=True)
class Prediction:
    """The effect that changes would have on each topic of a group that was asked about.

    ``text`` for a person, ``values`` for a program (the keys of ``--format json``), both without
    the secrets that client ids hold. ``safe``: no topic has a state on the way, or an end, that
    speaks against it.
    """

    text: ShellText
    values: dict[str, Any]
    safe: bool

    def __repr__(self) -> str:
        return str(self.text)


def predict_moments(
    moments: Sequence[Moment],
    changes: Sequence[Change],
    settings: Settings,
    width: int = WIDTH,
    *,
    is_full: bool = False,
) -> Prediction:
    """Predicts the effect of changes on the topics of a group; each moment is of one topic.

    Raises ChangeError where no topic allows a change.
    """
    rules = strategy_rules(settings)
    by_topic = {moment.state.topic: moment for moment in moments}
    answers = predict_group(
        {topic: Situation(moment.state, rules) for topic, moment in by_topic.items()},
        changes,
        {topic: moment.backlog for topic, moment in by_topic.items()},
        {topic for topic, moment in by_topic.items() if moment.is_read_unlisted},
        {topic: moment.held_by_all for topic, moment in by_topic.items()},
    )
    predictions = [(moment, answers[moment.state.topic]) for moment in moments]
    lines = what_if_lines(predictions, settings.reader, width, is_full=is_full)
    masking = settings.masking.to_masking()
    values = masking.mask_all(what_if_values(predictions))
    is_safe = all(what_if.safe for what_if in answers.values())
    return Prediction(ShellText(masking.mask("\n".join(lines))), values, is_safe)


def judged_of(moment: Moment, published: Tables | None) -> Judged:
    """The judgement of a moment: of the published run, else of the rules for this answer."""
    mask, state = moment.masking.mask_all, moment.state
    place = Place(*mask((moment.cluster, state.consumer_group, state.topic)))
    rows: dict[str, Sequence[Row]] = {}
    if published is not None:
        for name in _READ:
            found = table_rows(published.read(name, TABLES[name].schema.names, {place}))
            rows[name] = [row for row in found if place_of(row) == place]
    if not rows.get(GROUP_HEALTH.name):
        rows = {
            name: [mask(row) for row in moment.judged.get(name, ()) if row["topic"] == state.topic]
            for name in _READ
        }
    in_time = _those(rows, lambda row: _is_in_time(row, moment.snapshot_time))
    others = _those(rows, lambda row: not _is_in_time(row, moment.snapshot_time))
    gaps = _interrupted(in_time, moment)
    now = _those(in_time, lambda row: id(row) not in gaps)
    interrupted = _those(in_time, lambda row: id(row) in gaps)
    whole, worst_one = _problem(place, now), _problem(place, _worst_of(now))
    paused, worst_paused = _problem(place, interrupted), _problem(place, _worst_of(interrupted))
    causes = (cause for one in (worst_one, whole, worst_paused) if one for cause in one.why)
    return Judged(
        worst=worst_one,
        interrupted=worst_paused,
        cause=next(causes, None),
        faults=[fault for problem in (whole, paused) if problem for fault in problem.faults],
        others=_problem(place, _worst_of(others)),
        queues={name: in_time[name] for name in QUEUE_FINDINGS},
    )


def _those(rows: _TopicRows, is_meant: Callable[[Row], bool]) -> _TopicRows:
    """The graded rows of which something is so, beside those of health."""
    kept = {name: [row for row in rows[name] if is_meant(row)] for name in GRADED_TABLES}
    return kept | {GROUP_HEALTH.name: rows[GROUP_HEALTH.name]}


def _is_in_time(row: Row, time: Instant) -> bool:
    """True if the time is in that of the row; what goes on at the end may have been seen last
    before it.
    """
    return bool(row["first_seen"] <= time and (row["ongoing"] or time <= row["last_seen"]))


def _interrupted(rows: _TopicRows, moment: Moment) -> set[int]:
    """The ids of the rows in a gap of whose episode the moment is.

    An episode of a queue that was computed has its gaps where the core finds nothing; a fault has
    them where all that it causes has.
    """
    if moment.computed is None:
        return set()
    found = {*map(moment.masking.mask_all, moment.computed)}
    queues = [
        (row, row["computed"] and (kind, (row["broker_name"], row["queue_id"])) not in found)
        for table, kind in QUEUE_FINDINGS.items()
        for row in rows[table]
        if kind != STALLED
    ]
    gaps = [row for row, is_absent in queues if is_absent and row["share_of_time"] < 1]
    ids = {*map(id, gaps)}
    causes = {cause for row in gaps for cause in row["causes"]}
    causes -= {cause for row, _ in queues if id(row) not in ids for cause in row["causes"]}
    faults = rows["group_faults"]
    return ids | {id(row) for row in faults if row["fault"] in causes and row["share_of_time"] < 1}


def _worst_of(rows: _TopicRows) -> _TopicRows:
    """The rows of the worst severity; known issues aside, where there is anything else."""
    every = [row for name in GRADED_TABLES for row in rows[name]]
    counted = [row for row in every if row["known_issue"] is None] or every
    severity = worst(row["severity"] for row in counted) if counted else ""
    kept = {id(row) for row in counted if row["severity"] == severity}
    return _those(rows, lambda row: id(row) in kept)


def _problem(place: Place, rows: _TopicRows) -> Problem | None:
    """The problem that these rows make, as the writer makes that of a night; None: there is none.

    When a problem of before was last seen is said of the night alone.
    """
    copies = {name: [dict(row) for row in table_rows] for name, table_rows in rows.items()}
    names = dict(zip(PLACE, place, strict=True))
    made = to_table(PROBLEMS, problems_of(names, copies, {}))
    tables = Tables(lambda name: ds.dataset(made) if name == PROBLEMS.name else None)
    return next(iter(read_problems(tables)), None)
