"""The audit itself, end to end: snapshot tables in, all report tables published.

It finds more than the others are asked for (causes, certainty, allocations, reassignments, ...).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from jobs.config.known_issues import KnownIssues
from jobs.config.window import Window
from jobs.publish.run import Run, Task
from jobs.storage import Location, Reports
from tests.bench.engines import audit_on
from tests.support.fleet import fleet_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = [
    "consumer_group",
    "topic",
    "broker_name",
    "queue_id",
    "first_seen",
    "last_seen",
]


def task(snapshots: Path, reports: Path) -> Task:
    """An audit of a generated fleet, with its settings; the first of its reports folder.

    Reports of an earlier bench would be taken for those of the night before.
    """
    shutil.rmtree(reports, ignore_errors=True)
    return Task(
        Run("bench", datetime.now(UTC)),
        Location(snapshots),
        Location(reports),
        Window(),
        fleet_settings(),
        KnownIssues(),
    )


def run(spark: SparkSession | None, snapshots: Path, output: Path) -> None:
    """Publishes into ``reports`` of the output; without a session in this very process."""
    audit_on(spark, task(snapshots, output / "reports"))


def to_findings(output: Path) -> None:
    """What the audit published, in the shape that all contenders write; not part of the audit."""
    reports = Reports(Location(output / "reports"))
    published = reports.resolve(None)
    write_findings(
        {
            name: reports.table(name, published.date, published.run_id).parquet().to_table()
            for name in KINDS
        },
        output,
    )


#: The tables that have what all contenders find, and the kind of it.
KINDS = {"orphaned_queues": "ORPHANED", "duplicate_queues": "DUPLICATE"}


def write_findings(found: Mapping[str, pa.Table], output: Path) -> None:
    """The two tables of an audit as its findings."""
    tables = []
    for name, kind in KINDS.items():
        table = found[name]
        if not pc.all(pc.equal(table["certainty"], "CERTAIN")).as_py() and table.num_rows:
            raise ValueError(f"{name}: all brokers list the same, and yet not all is CERTAIN")
        kinds = pa.array([kind] * table.num_rows, pa.string())
        tables.append(table.select(_COLUMNS).append_column("kind", kinds))
    (output / "findings").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.concat_tables(tables), output / "findings" / "findings.parquet")
