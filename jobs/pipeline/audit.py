"""The audit job: snapshot tables in, published reports out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.conform import conform
from jobs.contract import check_contract
from jobs.errors import InputError
from jobs.pipeline.continuing import Continuation, Inputs, continue_from, window_of_last
from jobs.pipeline.frames import Snapshots, find_states, make_reports
from jobs.pipeline.window import Window
from jobs.progress import Progress
from jobs.reports.statuses import (
    NEW,
    PERSISTING,
    first_status,
    former_findings,
    open_findings,
    with_status,
)
from jobs.schemas import (
    BROKER_POLLS,
    CLIENT_STATES,
    DUPLICATE_QUEUES,
    FORMER_FINDINGS,
    HEARTBEATS,
    ORPHANED_QUEUES,
    QUARANTINE,
    QUEUE_OFFSETS,
    SNAPSHOT_TABLES,
    TOPIC_ROUTES,
    Table,
)
from jobs.session import suited_to_size
from jobs.settings import SEVERITIES, Settings
from jobs.states.continued import StateTables
from jobs.storage import Location, Published, Reports

#: Of summary.json and the report tables; a higher number only adds.
SCHEMA_VERSION = 1

#: Up to here a session without compiled code is the faster one. Rows are counted, in the files'
#: footers, only where there are few bytes.
_SMALL_BYTES = 16 << 20
_SMALL_ROWS = 100_000

_FINDINGS = {"ORPHANED": ORPHANED_QUEUES, "DUPLICATE": DUPLICATE_QUEUES}


@dataclass(frozen=True)
class Run:
    """One run of the audit: what it is to be told apart by, and when it began."""

    run_id: str
    started_at: datetime


def audit(
    spark: SparkSession,
    snapshots: Location,
    reports: Location,
    window: Window,
    settings: Settings,
    run: Run,
    progress: Progress,
    *,
    since_last: bool = False,
) -> Published:
    """Audits the snapshots of a window and publishes the reports under the window's last date.

    With ``since_last`` it goes on from the last published run: that of the window's last date, else
    of the last date before. A window without a beginning begins with that run's. What that run has
    read is not read again where its state tables answer for it, and the reports are those of a run
    that reads everything.

    Raises InputError where there is nothing to audit, ContractError where a table has not the
    columns that it must have. Nothing is published then, and what was published stays.
    """
    inputs = Inputs(snapshots, settings)
    folder = Reports(reports)
    continuation = None
    if since_last:
        last = folder.last(window.last_date)
        window = window_of_last(last, window)
        continuation = continue_from(spark, folder, last, window, inputs)
        progress.say(continuation.sentence())
    unread = continuation or Continuation()
    heartbeats = _required(spark, snapshots, HEARTBEATS)
    topic_routes = _required(spark, snapshots, TOPIC_ROUTES)
    broker_polls = _optional(spark, snapshots, BROKER_POLLS)
    queue_offsets = _optional(spark, snapshots, QUEUE_OFFSETS)
    client_states = _optional(spark, snapshots, CLIENT_STATES)
    if client_states is not None:
        # Columns that may be null may also be missing: what was written before there were such.
        client_states = check_contract(CLIENT_STATES, client_states)
    quarantine = _optional(spark, snapshots, QUARANTINE)
    # A route that was polled shortly before the window still holds when it begins.
    earlier = window.earlier(settings.route_max_age_seconds)
    rows = Snapshots(
        unread.rest(window.cut(heartbeats)),
        unread.rest(earlier.cut(topic_routes)),
        None if broker_polls is None else unread.rest(window.cut(broker_polls)),
        None if queue_offsets is None else window.cut(queue_offsets),
        None if client_states is None else window.cut_client_states(client_states),
    ).checked()
    is_small = _is_small(snapshots, SNAPSHOT_TABLES)
    with suited_to_size(spark, is_small=is_small):
        states = find_states(unread.known, rows, settings)
    # However many rounds there were, from here on there are the changes (and what tells more).
    if not is_small and _is_small(snapshots, (QUEUE_OFFSETS, CLIENT_STATES)):
        is_small = states.segments.count() <= _SMALL_ROWS
    with suited_to_size(spark, is_small=is_small):
        tables = make_reports(states, rows, settings)
        if quarantine is not None:
            tables[QUARANTINE.name] = quarantine
        return _publish(
            spark, tables, states.tables(), folder, inputs, window, continuation, run, progress
        )


def _optional(spark: SparkSession, snapshots: Location, table: Table) -> DataFrame | None:
    location = snapshots / table.name
    return spark.read.parquet(location.uri) if location.exists() else None


def _required(spark: SparkSession, snapshots: Location, table: Table) -> DataFrame:
    rows = _optional(spark, snapshots, table)
    if rows is None:
        raise InputError(f"no table {table.name} at {snapshots / table.name}")
    return rows


def _publish(
    spark: SparkSession,
    tables: Mapping[str, DataFrame],
    states: StateTables,
    folder: Reports,
    inputs: Inputs,
    window: Window,
    continuation: Continuation | None,
    run: Run,
    progress: Progress,
) -> Published:
    snapshots = inputs.snapshots
    with progress.step("states") as step:
        seen = (
            tables["state_runs"]
            .agg(
                F.count(F.lit(1)).alias("rows"),
                F.unix_micros(F.min("first_seen")).alias("first"),
                F.unix_micros(F.max("last_seen")).alias("last"),
            )
            .first()
        )
        assert seen is not None  # noqa: S101 - an aggregate has one row
        step.rows = seen["rows"]
    if not seen["rows"]:
        raise InputError(
            f"no group in the window at {snapshots}: the members of a group are those that "
            "the brokers list (heartbeats; in dumps: consumer_connection), and there are none"
        )
    first, last = (datetime.fromtimestamp(seen[k] / 1e6, UTC) for k in ("first", "last"))
    published_date = window.last_date or last.date().isoformat()
    previous = folder.before(published_date)
    tables = _against(spark, tables, folder, previous)

    places = {name: folder.table(name, published_date, run.run_id) for name in tables}
    state_places = {
        name: folder.state_table(name, published_date, run.run_id) for name in StateTables.names()
    }

    def write(name: str, rows: DataFrame, location: Location) -> int:
        with progress.step(name) as step:
            rows.write.mode("overwrite").parquet(location.uri)
            step.rows = location.parquet().count_rows()
        return step.rows

    # Most of a small table's time is planning: several are planned at a time.
    with ThreadPoolExecutor(max_workers=spark.sparkContext.defaultParallelism) as pool:
        of_reports = {n: pool.submit(write, n, tables[n], places[n]) for n in tables}
        of_states = {n: pool.submit(write, n, rows, state_places[n]) for n, rows in states.items()}
        counts = {name: written.result() for name, written in of_reports.items()}
        state_counts = {name: written.result() for name, written in of_states.items()}
    published = Published(
        date=published_date,
        run_id=run.run_id,
        tables=tuple(tables),
        summary={
            "schema_version": SCHEMA_VERSION,
            "run_id": run.run_id,
            "started_at": _iso(run.started_at),
            "date": published_date,
            "window": {
                "since": _iso(window.since),
                "until": _iso(window.until),
                "first_snapshot": _iso(first),
                "last_snapshot": _iso(last),
            },
            "rows": counts,
            "findings": _count_findings(folder, published_date, run.run_id),
            "previous": previous and {"date": previous.date, "run_id": previous.run_id},
            "inputs": {
                "snapshots": str(snapshots),
                "sizes": _sizes(snapshots),
                "ingested": inputs.ingested,
            },
            "versions": {"spark": spark.version, "pyspark": pyspark.__version__},
            "settings": inputs.settings.fingerprint(),
            "continued": continuation and continuation.to_summary(),
            "states": inputs.record(window, last, state_counts).to_summary(),
        },
    )
    folder.publish(published)
    return published


def _iso(time: datetime | None) -> str | None:
    if time is None:
        return None
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_small(snapshots: Location, tables: Sequence[Table]) -> bool:
    """Whether the tables have few rows; days that repeat themselves have few bytes too."""
    files = {table.name: (snapshots / table.name).files() for table in tables}
    if sum(size for each in files.values() for _, size in each) > _SMALL_BYTES:
        return False
    rows = ((snapshots / name).parquet().count_rows() for name, each in files.items() if each)
    return sum(rows) <= _SMALL_ROWS


def _sizes(snapshots: Location) -> dict[str, int]:
    return {
        table.name: sum(size for _, size in (snapshots / table.name).files())
        for table in SNAPSHOT_TABLES
    }


def _against(
    spark: SparkSession,
    tables: Mapping[str, DataFrame],
    folder: Reports,
    previous: Published | None,
) -> dict[str, DataFrame]:
    """The tables with what the run of the last earlier date says of their findings."""
    earlier = _earlier_findings(spark, folder, previous)
    if earlier is None:
        first = {
            table.name: conform(first_status(tables[table.name]), table)
            for table in _FINDINGS.values()
        }
        none_former = spark.createDataFrame([], FORMER_FINDINGS.schema)
        return {**tables, **first, FORMER_FINDINGS.name: none_former}
    before = open_findings(*_of_kinds(earlier))
    found = reduce(DataFrame.unionByName, _of_kinds(tables))
    with_statuses = {
        table.name: conform(with_status(tables[table.name].drop("status"), before), table)
        for table in _FINDINGS.values()
    }
    former = former_findings(found, before, tables["group_health"])
    return {**tables, **with_statuses, FORMER_FINDINGS.name: former}


def _earlier_findings(
    spark: SparkSession, folder: Reports, previous: Published | None
) -> dict[str, DataFrame] | None:
    """The findings of the previous run; None where nothing is known of one."""
    if previous is None:
        return None
    places = [
        (table, folder.table(table.name, previous.date, previous.run_id))
        for table in _FINDINGS.values()
    ]
    # Whoever clears old tables away leaves the pointer.
    if not all(place.exists() for _, place in places):
        return None
    return {table.name: spark.read.schema(table.schema).parquet(at.uri) for table, at in places}


def _of_kinds(tables: Mapping[str, DataFrame]) -> list[DataFrame]:
    return [tables[table.name].withColumn("kind", F.lit(kind)) for kind, table in _FINDINGS.items()]


def _count_findings(folder: Reports, published_date: str, run_id: str) -> dict[str, Any]:
    """By table: how many in all, how many persistent, and how many of each severity and status."""
    counts: dict[str, Any] = {}
    for name in (*[table.name for table in _FINDINGS.values()], "stalled_queues"):
        dataset = folder.table(name, published_date, run_id).parquet()
        statuses = [NEW, PERSISTING] if "status" in dataset.schema.names else []
        values = Counter(
            value
            for batch in dataset.to_batches(
                columns=["severity", "persistence", *(["status"] if statuses else [])]
            )
            for column in batch.columns
            for value in column.to_pylist()
        )
        counts[name] = {
            "total": dataset.count_rows(),
            "persistent": values["PERSISTENT"],
            **{value: values[value] for value in (*SEVERITIES, *statuses)},
        }
    return counts
