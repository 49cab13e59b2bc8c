"""Audits of snapshot tables in a folder, by either engine, and what they published."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.known_issues import KnownIssues
from jobs.pipeline import audit_on_driver
from jobs.progress import Progress
from jobs.publish.run import Run, Task
from jobs.settings import Settings
from jobs.storage import Location
from jobs.window import Window
from tests.support.reports import PublishedReports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = Progress(quiet=True)

_runs = count(1)


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


def audit_locally(to_do: Task) -> PublishedReports:
    """What the run publishes, made in this process."""
    published = audit_on_driver.audit(to_do, QUIET)
    return PublishedReports(Path(to_do.reports.base), date=published.date)


def audit_by_spark(spark: SparkSession, to_do: Task) -> PublishedReports:
    """What the run publishes, made by Spark."""
    from jobs.pipeline import audit_on_spark  # noqa: PLC0415 - Spark takes its time to import

    published = audit_on_spark.audit(spark, to_do, QUIET)
    return PublishedReports(Path(to_do.reports.base), date=published.date)
