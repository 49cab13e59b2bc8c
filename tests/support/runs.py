"""Audits of snapshot tables in a folder, by any engine, and what they published."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.audit import audit
from jobs.config.known_issues import KnownIssues
from jobs.config.settings import Settings
from jobs.config.window import Window
from jobs.console.progress import Progress
from jobs.engines.engine import Engine
from jobs.engines.local import LocalEngine
from jobs.pipeline.ingest import ingest
from jobs.publish.run import Run, Task
from jobs.storage import Location, Snapshots, SnapshotWriter, new_run_id
from tests.support.reports import PublishedReports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = Progress(quiet=True)

_runs = count(1)


def writing(snapshots: Path) -> AbstractContextManager[SnapshotWriter]:
    """A folder that an ingest writes to."""
    return SnapshotWriter.open(Location(snapshots), new_run_id(datetime.now(UTC)), 0, QUIET.say)


def as_a_lake(snapshots: Path) -> None:
    """From now on the tables have no manifest: nobody knows who wrote them."""
    opened = Snapshots.open(Location(snapshots))
    for table in snapshots.iterdir():
        of_run = table / f"run={opened.run_id}"
        if of_run.is_dir():
            for file in of_run.iterdir():
                file.rename(table / file.name)
            of_run.rmdir()
    shutil.rmtree(snapshots / "_published")


def as_ingested(snapshots: Path, **summary: Any) -> None:
    """From now on an ingest wrote the tables, with this summary."""
    with writing(snapshots) as writer:
        written = {}
        for table in sorted(each for each in snapshots.iterdir() if each.name[0] not in "_."):
            of_run = Path(writer.table(table.name).base)
            files = sorted(table.rglob("*.parquet"))
            of_run.mkdir()
            for file in files:
                file.rename(of_run / file.name)
            written[table.name] = writer.table(table.name).parquet().count_rows()
        writer.publish(written, summary)


def table_of(snapshots: Path, name: str) -> Path:
    """The folder of a table that the last ingest wrote."""
    return Path(Snapshots.open(Location(snapshots)).table(name).base)


def task(
    snapshots: Path,
    reports: Path,
    window: Window | None = None,
    settings: Settings | None = None,
    known_issues: KnownIssues | None = None,
    *,
    since_last: bool = False,
) -> Task:
    """A run with an id of its own."""
    return Task(
        Run(f"run-{next(_runs)}", datetime(2026, 12, 1, tzinfo=UTC)),
        Location(snapshots),
        Location(reports),
        window or Window(),
        settings or Settings(),
        known_issues or KnownIssues(),
        since_last,
    )


def audit_by(engine: Engine, to_do: Task) -> PublishedReports:
    """What the run publishes, made by an engine."""
    published = audit(engine, to_do, QUIET)
    return PublishedReports(Path(to_do.reports.base), date=published.date)


def audit_locally(to_do: Task, workers: int = 1) -> PublishedReports:
    """What the run publishes, made in this process, or in several."""
    with LocalEngine(workers) as engine:
        return audit_by(engine, to_do)


def audit_by_spark(spark: SparkSession, to_do: Task) -> PublishedReports:
    """What the run publishes, made by Spark."""
    from jobs.spark.spark_engine import SparkEngine  # noqa: PLC0415 - Spark takes its time to import

    with SparkEngine(spark) as engine:
        return audit_by(engine, to_do)


def ingest_locally(dumps: Sequence[str], snapshots: Path, settings: Settings | None = None) -> None:
    """Reads dumps, in this process, into a folder of snapshot tables."""
    with writing(snapshots) as writer, LocalEngine() as engine:
        ingest(engine, dumps, writer, settings or Settings(), QUIET)
