"""The audit in this very process, for a small input: the same rules, without Spark and Java.

snapshot tables -> dossiers -> situations -> evaluated situations -> report tables -> published
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.dataset as ds

from jobs.contract import check_columns
from jobs.dumps.files import list_local_files
from jobs.errors import InputError
from jobs.fold.local import (
    Contents,
    fold,
    member_runs,
    member_runs_by_id,
    route_runs,
    route_runs_by_id,
)
from jobs.fold.numbers import Source, only, open_files
from jobs.judge.dossier import Dossier, read_dossiers
from jobs.judge.evaluated import Evaluated
from jobs.judge.evaluation import evaluate_state
from jobs.judge.history import Row, judge
from jobs.judge.situations import Situations
from jobs.judge.steps import situations_of, state_of
from jobs.judge.tables import to_table
from jobs.judge.terms import Terms
from jobs.pipeline.continuing import Inputs, window_of_last
from jobs.pipeline.engine import LOCAL
from jobs.pipeline.ingest_on_driver import ingest_locally
from jobs.pipeline.ingested import Ingested, check_quarantine
from jobs.pipeline.terms import strategy_rules, terms_of
from jobs.progress import Progress
from jobs.publish.earlier import open_findings
from jobs.publish.publish import Place, publish
from jobs.publish.run import Result, Seen, Task
from jobs.publish.tables import TablesInMemory
from jobs.schemas import (
    ALLOCATION_DRIFT,
    ALLOCATIONS,
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    MEMBER_LISTS,
    QUARANTINE,
    QUEUE_OFFSETS,
    REPORT_TABLES,
    ROUTE_CONTENTS,
    ROUTE_POLLS,
    TOPIC_ROUTES,
    Table,
)
from jobs.settings import Settings
from jobs.storage import Location, Published, Reports, Snapshots, SnapshotWriter
from jobs.window import Window


def ingest(
    dumps: Sequence[str], writer: SnapshotWriter, settings: Settings, progress: Progress
) -> Ingested:
    """Reads local dumps and writes the snapshot tables, which then count instead of what was there.

    Raises InputError where the dumps are missing, and QuarantineError, after everything was
    written, where more lines were not understood than the settings allow.
    """
    files = list_local_files(dumps)
    if files is None:
        raise InputError(f"expected dumps on this machine with --engine local, came {dumps}")
    if not files:
        raise InputError(f"no dump file below {', '.join(dumps)}")
    ingested, _, snapshots = ingest_locally(files, writer, settings, progress)
    check_quarantine(ingested, snapshots, settings)
    return ingested


def audit(task: Task, progress: Progress) -> Published:
    """Audits the snapshots of a window and publishes the reports, as ``audit_on_spark.audit`` does.

    Every round of the window is read, also with ``since_last``: a small input costs little.
    """
    inputs = Inputs(Snapshots.open(task.snapshots), task.settings)
    progress.say(inputs.sentence())
    inputs.warn_of_future(task.window)
    window = task.window
    if task.since_last:
        window = window_of_last(Reports(task.reports).last(window.newest_date), window)
        task = replace(task, window=window)
        progress.say("every round of the window is read: the input is small")
    with inputs.snapshots.in_use():
        found = find_situations(read_sources(inputs, window), task.settings, progress)
    seen = found.seen(task.snapshots)
    place = Place.of(task, seen)
    earlier = open_findings(Reports(task.reports), place.previous)
    terms = terms_of(task.settings, place.known_issues)
    with progress.step("judgement"):
        reports = judge_all(found, terms, earlier)
    result = Result(reports, None, LOCAL, {"pyarrow": pa.__version__})
    return publish(task, place, seen, result, inputs.snapshots, None, progress)


@dataclass(frozen=True)
class Sources:
    """What the groups are judged by: lists and routes as runs, all else as rows."""

    lists: Contents
    routes: Contents
    client_states: Source | None = None
    queue_offsets: Source | None = None


@dataclass
class OfGroup:
    """A group's dossier, its situations, and by id the core's verdict on each."""

    dossier: Dossier
    situations: Situations
    rows: dict[str, Row]


@dataclass
class Found:
    """All groups."""

    groups: list[OfGroup]
    has_clients: bool

    def seen(self, snapshots: Location) -> Seen:
        """The first and the last snapshot."""
        periods = [
            period
            for group in self.groups
            for of_topic in group.situations.by_topic.values()
            for period in of_topic
        ]
        first = min((each.first_seen for each in periods), default=None)
        return Seen.of(snapshots, first, max((each.last_seen for each in periods), default=None))


def read_sources(inputs: Inputs, window: Window, group: str | None = None) -> Sources:
    """What the snapshot tables have of a window, or of one group in it."""
    settings = inputs.settings
    of_routes = window.earlier(settings.route_max_age_seconds)
    read = _Reader(inputs.snapshots, group)
    heartbeats = read.required(HEARTBEATS, window)
    topic_routes = read.required(TOPIC_ROUTES, of_routes)
    polls = read.optional(BROKER_POLLS, window)
    if polls is not None and inputs.has_list_ids():
        lists = member_runs_by_id(polls, read.required(MEMBER_LISTS, Window()))
    else:
        lists = member_runs(heartbeats, polls, settings.heartbeat_expiry_seconds)
    if inputs.has_route_ids():
        route_polls = read.required(ROUTE_POLLS, of_routes)
        routes = route_runs_by_id(route_polls, read.required(ROUTE_CONTENTS, Window()))
    else:
        routes = route_runs(topic_routes)
    return Sources(
        lists, routes, read.optional(CLIENT_STATES, window), read.optional(QUEUE_OFFSETS, window)
    )


class _Reader:
    """The snapshot tables, cut to a window and to one group."""

    def __init__(self, snapshots: Snapshots, group: str | None) -> None:
        self._snapshots = snapshots
        self._group = group

    def required(self, table: Table, window: Window) -> ds.Dataset:
        """The rows; InputError where the table is not there."""
        rows = self.optional(table, window)
        if rows is None:
            raise InputError(f"no table {table.name} at {self._snapshots.table(table.name)}")
        return rows

    def optional(self, table: Table, window: Window) -> ds.Dataset | None:
        """The rows; None where the table is not there."""
        files = [file.path for file in self._snapshots.files(table.name)]
        if not files:
            return None
        check_columns(table, self._snapshots.parquet(table.name).schema)
        rows = open_files(table, files, self._snapshots.root.file_system)
        if window != Window():
            rows = rows.filter(window.filter_of(table, rows.schema))
        if self._group is not None and "consumer_group" in table.schema.names:
            rows = only(rows, consumer_group=self._group)
        return rows


def find_situations(sources: Sources, settings: Settings, progress: Progress) -> Found:
    """The situations of all groups, each distinct one evaluated once."""
    terms, rules = terms_of(settings), strategy_rules(settings)
    with progress.step("fold"):
        dossiers = fold(sources.lists, sources.routes, sources.client_states, sources.queue_offsets)
    groups = []
    with progress.step("situations") as step:
        for dossier in read_dossiers(dossiers.to_batches()):
            situations = situations_of(dossier, terms)
            rows = {
                situation_id: evaluate_state(
                    state_of(dossier.consumer_group, situation, sources.lists.records), rules
                )
                for situation_id, situation in situations.distinct().items()
            }
            groups.append(OfGroup(dossier, situations, rows))
        step.rows = sum(len(group.rows) for group in groups)
    return Found(groups, sources.client_states is not None)


def judge_all(found: Found, terms: Terms, earlier: pa.Table | None) -> TablesInMemory:
    """The rows of all report tables; ``earlier``: the open findings of the run before."""
    groups = _with_earlier(found.groups, earlier)
    rows: dict[str, list[Row]] = defaultdict(list)
    for group in groups:
        dossier = group.dossier
        evaluated = {
            situation_id: Evaluated.of_row(row, _allocations_of(row))
            for situation_id, row in group.rows.items()
        }
        for name, of_table in judge(dossier, group.situations, evaluated, terms).items():
            rows[name] += terms.masking.mask_all(of_table)
        for situation in group.situations.distinct().values():
            place = {
                "cluster": dossier.cluster,
                "consumer_group": dossier.consumer_group,
                "topic": situation.topic,
                "state_id": situation.situation_id,
            }
            of_situation = group.rows[situation.situation_id]["allocations"]
            rows[ALLOCATIONS.name] += [
                place | each | {"client_id": terms.masking.mask(each["client_id"])}
                for each in of_situation
            ]
    tables = tuple(
        table
        for table in REPORT_TABLES
        if table is not QUARANTINE and (table is not ALLOCATION_DRIFT or found.has_clients)
    )
    return TablesInMemory(tables, {t.name: [to_table(t, rows[t.name])] for t in tables})


def _allocations_of(row: Row) -> Callable[[], list[Row]]:
    return lambda: row["allocations"]


def _with_earlier(groups: Sequence[OfGroup], earlier: pa.Table | None) -> list[OfGroup]:
    """The groups with their open findings of the run before, those that are gone among them."""
    if earlier is None:
        return list(groups)
    by_name = {(each.dossier.cluster, each.dossier.consumer_group): each for each in groups}
    in_order = earlier.sort_by([("cluster", "ascending"), ("consumer_group", "ascending")])
    for dossier in read_dossiers(in_order.to_batches()):
        name = (dossier.cluster, dossier.consumer_group)
        gone = OfGroup(Dossier(*name), Situations({}), {})
        by_name.setdefault(name, gone).dossier.earlier = dossier.earlier
    return list(by_name.values())
