"""The one place of the benches that calls the audit and the ingest, on Spark or in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.audit import audit
from jobs.config.settings import Settings
from jobs.engines.local import LocalEngine
from jobs.pipeline.ingest import ingest
from tests.support.runs import QUIET, writing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.engines.engine import Engine
    from jobs.pipeline.ingest import IngestCounts
    from jobs.publish.run import Task

SPARK, LOCAL = "spark", "local"


@contextmanager
def _engine(spark: SparkSession | None) -> Iterator[Engine]:
    if spark is None:
        with LocalEngine() as local:
            yield local
        return
    from jobs.spark.session import suited  # noqa: PLC0415
    from jobs.spark.spark_engine import SparkEngine  # noqa: PLC0415 - pyspark, where it is used

    with suited(spark) as own, SparkEngine(own) as engine:
        yield engine


def audit_on(spark: SparkSession | None, task: Task) -> None:
    """Audits and publishes, by this session; None: in one process, without Spark."""
    with _engine(spark) as engine:
        audit(engine, task, QUIET)


def ingest_on(spark: SparkSession | None, dump: Path, snapshots: Path) -> IngestCounts:
    """Ingests one dump into the folder, by this session; None: in one process, without Spark."""
    with writing(snapshots) as writer, _engine(spark) as engine:
        return ingest(engine, [str(dump)], writer, Settings(), QUIET)
