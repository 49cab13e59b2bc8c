"""The one place of the benches that calls the audit and the ingest, on Spark or in one process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jobs.pipeline import audit_on_driver
from jobs.settings import Settings
from tests.support.runs import QUIET, writing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.pipeline.ingested import Ingested
    from jobs.publish.run import Task

SPARK, LOCAL = "spark", "local"


def audit_on(spark: SparkSession | None, task: Task) -> None:
    """Audits and publishes, by this session; None: in one process, without Spark."""
    if spark is None:
        audit_on_driver.audit(task, QUIET)
    else:
        from jobs.pipeline.audit_on_spark import audit  # noqa: PLC0415 - pyspark, where it is used

        audit(spark, task, QUIET)


def ingest_on(spark: SparkSession | None, dump: Path, snapshots: Path) -> Ingested:
    """Ingests one dump into the folder, by this session; None: in one process, without Spark."""
    with writing(snapshots) as writer:
        if spark is None:
            return audit_on_driver.ingest([str(dump)], writer, Settings(), QUIET)
        from jobs.pipeline.ingest_on_spark import ingest  # noqa: PLC0415 - as above

        return ingest(spark, [str(dump)], writer, Settings(), QUIET)
