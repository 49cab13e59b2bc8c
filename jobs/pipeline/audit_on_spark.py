"""The audit on Spark.

snapshot tables -> dossiers -> situations -> evaluated situations -> report tables -> published
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa
import pyspark
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from jobs.contract import check_contract
from jobs.errors import InputError
from jobs.fold.continued import (
    SavedTables,
    already_evaluated,
    clip,
    merge,
    not_evaluated,
    with_parts_of_texts,
)
from jobs.fold.runs import ROUTE_RUNS
from jobs.fold.spark import (
    Contents,
    ddl,
    evaluate,
    fold,
    member_runs,
    member_runs_by_id,
    route_runs,
    route_runs_by_id,
    situation_rows,
)
from jobs.instants import Instant, to_instant
from jobs.judge.dossier import DOSSIER, EVALUATED, JUDGED_DOSSIER, PARTS
from jobs.judge.steps import SAVED_PARTS, SITUATIONS, judgement_batches, situation_batches
from jobs.judge.terms import Terms
from jobs.packed import PACKED_DDL
from jobs.pipeline.continuing import Continuation, Inputs, continue_from, window_of_last
from jobs.pipeline.engine import SPARK
from jobs.pipeline.terms import terms_of
from jobs.progress import Progress
from jobs.publish.earlier import open_findings
from jobs.publish.packed import gathered, packed_as
from jobs.publish.publish import Place, publish
from jobs.publish.run import Result, Seen, Task
from jobs.schemas import (
    ALLOCATION_DRIFT,
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
from jobs.session import AS_NAMED, suited_to_audit
from jobs.settings import Settings
from jobs.storage import Location, Published, Reports, Snapshots
from jobs.window import Window


def audit(spark: SparkSession, task: Task, progress: Progress) -> Published:
    """Audits the snapshots of a window and publishes the reports under the window's last date.

    With ``since_last`` it goes on from the last published run: that of the window's last date, else
    of the last date before. A window without a beginning begins with that run's. What that run has
    read is not read again where its state tables answer for it, and the reports are those of a run
    that reads everything.

    Findings that an entry of ``known_issues`` matches are marked; whether an entry has expired is
    judged by the date under which the reports are published.

    Raises InputError where there is nothing to audit, and ContractError where a table has not the
    columns that it must have. Nothing is published then, and what was published stays.
    """
    inputs = Inputs(Snapshots.open(task.snapshots), task.settings)
    progress.say(inputs.sentence())
    inputs.warn_of_future(task.window)
    folder = Reports(task.reports)
    window, continuation = task.window, None
    if task.since_last:
        last = folder.last(window.newest_date)
        window = window_of_last(last, window)
        task = replace(task, window=window)
        continuation = continue_from(folder, last, window, inputs)
        progress.say(continuation.sentence())
    with inputs.snapshots.in_use(), suited_to_audit(spark), kept() as keep:
        saved = _saved(spark, folder, continuation)
        found = find_situations(
            _read(spark, inputs, window, continuation, saved, keep),
            task.settings,
            None if saved is None else saved.evaluated,
            keep,
        )
        with progress.step("situations") as step:
            seen, step.rows = _seen(found.situations, task.snapshots)
        place = Place.of(task, seen)
        earlier = open_findings(folder, place.previous)
        terms = terms_of(task.settings, place.known_issues)
        with progress.step("judgement"):
            pieces = [
                judgements(found, terms, earlier, saves=True),
                packed_as(MEMBER_LISTS.name, found.member_lists),
            ]
            made = gathered(pieces, (*found.tables, *SAVED), keep)
        result = Result(
            made.only(found.tables),
            made.only(SAVED),
            SPARK,
            {"spark": spark.version, "pyspark": pyspark.__version__},
            None if continuation is None else continuation.to_summary(),
        )
        recorded = inputs.record(window, seen.last)
        return publish(task, place, seen, result, inputs.snapshots, recorded, progress)


@dataclass(frozen=True)
class Sources:
    """What the groups are judged by: lists and routes as runs, all else as rows."""

    lists: Contents
    routes: Contents
    client_states: DataFrame | None = None
    queue_offsets: DataFrame | None = None


@dataclass(frozen=True)
class Found:
    """The dossiers, their situations, and the core's verdicts on these."""

    dossiers: DataFrame
    situations: DataFrame
    evaluated: DataFrame
    member_lists: DataFrame
    tables: tuple[Table, ...]


def find_situations(
    sources: Sources, settings: Settings, saved: DataFrame | None, keep: Keep
) -> Found:
    """The situations of all groups; those that are not in ``saved`` are evaluated."""
    folded = fold(sources.lists, sources.routes, sources.client_states, sources.queue_offsets)
    dossiers = keep(_by_group(folded))
    situations = keep(dossiers.mapInArrow(situation_batches(terms_of(settings)), _SITUATIONS))
    partitions = int(str(dossiers.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    new = situations if saved is None else not_evaluated(situations, saved)
    rules = [each.to_rule() for each in settings.strategies]
    evaluated = evaluate(
        situation_rows(new, sources.lists.contents, partitions), rules, settings.default_strategy
    )
    if saved is not None:
        evaluated = evaluated.unionByName(already_evaluated(situations, saved))
    evaluated = keep(evaluated.select("cluster", "consumer_group", *[f.name for f in EVALUATED]))
    has_clients = sources.client_states is not None
    tables = tuple(
        table
        for table in REPORT_TABLES
        if table is not QUARANTINE and (table is not ALLOCATION_DRIFT or has_clients)
    )
    return Found(dossiers, situations, evaluated, sources.lists.contents, tables)


def judgements(
    found: Found, terms: Terms, earlier: pa.Table | None, *, saves: bool = False
) -> DataFrame:
    """The rows of all report tables, packed; ``earlier``: the open findings of the run before.

    With ``saves`` also those that the next run goes on from, but for the lists.
    """
    nothing = {name: f"CAST(NULL AS {ddl(DOSSIER.field(name).type)}) AS {name}" for name in PARTS}
    struct = ", ".join(f"'{field.name}', {field.name}" for field in EVALUATED)
    of_evaluated = f"CAST(named_struct({struct}) AS {ddl(EVALUATED)}) AS evaluated"
    no_evaluated = f"CAST(NULL AS {ddl(EVALUATED)}) AS evaluated"
    group = ["cluster", "consumer_group"]
    rows = found.dossiers.selectExpr("*", no_evaluated).unionAll(
        found.evaluated.selectExpr(*group, *nothing.values(), of_evaluated)
    )
    if earlier is not None and earlier.num_rows:
        of_earlier = found.dossiers.sparkSession.createDataFrame(earlier)
        parts = [text for name, text in nothing.items() if name != "earlier"]
        rows = rows.unionByName(of_earlier.selectExpr(*group, "earlier", *parts, no_evaluated))
    return _by_group(rows).mapInArrow(judgement_batches(terms, saves=saves), PACKED_DDL)


#: The tables that the next run goes on from; nobody else reads them.
SAVED = (
    Table(MEMBER_LISTS.name, "", pa.schema([f.with_nullable(True) for f in MEMBER_LISTS.schema])),
    *[
        Table(name, "", pa.schema([*list(DOSSIER)[:2], *JUDGED_DOSSIER.field(part).type]))
        for name, part in SAVED_PARTS.items()
    ],
)
_SITUATIONS = ", ".join(f"{field.name} {ddl(field.type)}" for field in SITUATIONS)


def _by_group(rows: DataFrame) -> DataFrame:
    """All rows of a group next to each other."""
    group = ["cluster", "consumer_group"]
    return rows.repartition(*group).sortWithinPartitions(*group)


Keep = Callable[[DataFrame], DataFrame]


@contextmanager
def kept() -> Iterator[Keep]:
    """What keeps rows for the steps to come; when the block ends they are let go."""
    all_kept: list[DataFrame] = []

    def keep(rows: DataFrame) -> DataFrame:
        all_kept.append(rows.persist(StorageLevel.MEMORY_AND_DISK))
        return all_kept[-1]

    try:
        yield keep
    finally:
        for rows in all_kept:
            rows.unpersist()


def _seen(situations: DataFrame, snapshots: Location) -> tuple[Seen, int]:
    """The first and the last snapshot, and the number of situations."""
    row = situations.selectExpr("min(first_seen)", "max(last_seen)", "count(*)").first()
    assert row is not None  # noqa: S101 - an aggregate has one row
    first, last, count = row
    return Seen.of(snapshots, first, last), count


def _saved(
    spark: SparkSession, folder: Reports, continuation: Continuation | None
) -> SavedTables | None:
    """The tables of the run that this one goes on from."""
    if continuation is None or continuation.last is None:
        return None
    last = continuation.last
    tables = {
        table.name: spark.read.options(**AS_NAMED, **_VERIFIED)
        .schema(table.spark_schema)
        .parquet(folder.state_table(table.name, last.date, last.run_id).uri)
        for table in SAVED
    }
    # Each group of a topic has its routes: they are made one where they are merged.
    routes = tables["routes"]
    return SavedTables(
        tables["poll_runs"],
        tables[MEMBER_LISTS.name],
        routes.select(ROUTE_RUNS.names),
        routes.select(ROUTE_CONTENTS.schema.names),
        with_parts_of_texts(tables["evaluated"]),
    )


#: A flipped bit in a page of a Parquet file is an error, and no other value.
_VERIFIED = {"parquet.page.verify-checksum.enabled": "true"}


class _Reader:
    """The snapshot tables of a run, each with just the columns of its table, cut to the window."""

    def __init__(self, spark: SparkSession, snapshots: Snapshots) -> None:
        self._spark = spark
        self._snapshots = snapshots

    def optional(self, table: Table, condition: str) -> DataFrame | None:
        """The rows; None where the table is not there."""
        if not self._snapshots.has(table.name):
            return None
        uri = self._snapshots.table(table.name).uri
        # With a schema given, Spark starts no job to find it.
        there = from_arrow_schema(self._snapshots.parquet(table.name).schema)
        read = self._spark.read.options(**AS_NAMED, **_VERIFIED).schema(there)
        rows = check_contract(table, read.parquet(uri))
        return rows if condition == "true" else rows.where(condition)

    def required(self, table: Table, condition: str) -> DataFrame:
        """The rows; InputError where the table is not there."""
        rows = self.optional(table, condition)
        if rows is None:
            raise InputError(f"no table {table.name} at {self._snapshots.table(table.name)}")
        return rows


def _read(
    spark: SparkSession,
    inputs: Inputs,
    window: Window,
    continuation: Continuation | None,
    saved: SavedTables | None,
    keep: Keep,
) -> Sources:
    """What the window has, from the rounds that are to be read and what is saved of the others."""
    settings = inputs.settings
    read = _Reader(spark, inputs.snapshots)
    # A route that was polled shortly before the window still holds when it begins.
    of_routes = window.earlier(settings.route_max_age_seconds)
    rest = continuation.rest if continuation else lambda window: window
    in_window = rest(window).sql("snapshot_time")
    in_route_window = rest(of_routes).sql("snapshot_time")
    heartbeats = read.required(HEARTBEATS, in_window)
    topic_routes = read.required(TOPIC_ROUTES, in_route_window)
    polls = read.optional(BROKER_POLLS, in_window)
    if polls is not None and inputs.has_list_ids():
        lists = member_runs_by_id(polls, read.required(MEMBER_LISTS, "true"), keep)
    else:
        lists = member_runs(heartbeats, polls, settings.heartbeat_expiry_seconds, keep)
    if inputs.has_route_ids():
        route_polls = read.required(ROUTE_POLLS, in_route_window)
        routes = route_runs_by_id(route_polls, read.required(ROUTE_CONTENTS, "true"))
    else:
        routes = route_runs(topic_routes, keep)
    if saved is not None and continuation is not None and continuation.until is not None:
        until = (
            continuation.until if window.until is None else min(window.until, continuation.until)
        )
        lists = merge(clip(saved.lists, *_instants(window.since, until)), lists)
        routes = merge(clip(saved.routes, *_instants(of_routes.since, until)), routes)
    return Sources(
        lists,
        routes,
        read.optional(CLIENT_STATES, window.client_states_sql()),
        read.optional(QUEUE_OFFSETS, window.sql("snapshot_time")),
    )


def _instants(*times: datetime | None) -> list[Instant | None]:
    return [None if time is None else to_instant(time) for time in times]
