"""The caller's session is the caller's: an audit changes nothing of it, and needs nothing of it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from inspect import getclosurevars
from typing import Any

import pyspark
import pytest
from pyspark import RDD
from pyspark.sql import SparkSession

from jobs import audit
from jobs.schemas import SNAPSHOT_TABLES
from jobs.storage import Snapshots
from tests.support.truth import CAPTURES, SAMPLE_SETTINGS

pytestmark = pytest.mark.spark

#: Of the caller, each other than the audit's own, or than Spark's.
SETTINGS = {
    "spark.sql.session.timeZone": "Asia/Shanghai",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.shuffle.partitions": "3",
}
DUMPS = str(CAPTURES / "S2" / "dump.jsonl.gz")


@pytest.fixture
def caller(spark: SparkSession) -> SparkSession:
    """A session with settings of its own."""
    callers = spark.newSession()
    for key, value in SETTINGS.items():
        callers.conf.set(key, value)
    return callers


def seen(caller: SparkSession) -> dict[str, Any]:
    """What the audit might change: settings, and what else holds for all threads."""
    context = caller.sparkContext
    settings = {row[0]: row[1] for row in caller.sql("SET").collect()}
    return {**settings, "python": context.pythonExec}


def taken_for_active() -> list[Any]:
    """What PySpark takes where no session is named: Java's sessions, for 3.5 wraps them anew.

    Whoever asks 3.5 for the active session gives that one to ``rdd.toDF()``, too.
    """
    of_rdds = getclosurevars(RDD.toDF).nonlocals["sparkSession"]
    taken = [SparkSession.getActiveSession(), of_rdds]
    if pyspark.__version__ < "4":
        del taken[1]
    return [each and each._jsparkSession for each in taken]


def rows_of(report: Any) -> dict[str, Any]:
    """All that was found, but for what names the run, and its row."""
    rows = {name: report[name].to_pylist() for name in report if name != "runs"}
    return rows | {"verdict": [{**row, "run_id": ""} for row in rows["verdict"]]}


def test_audits_at_once_change_no_setting_and_find_what_one_does(caller: SparkSession) -> None:
    before, expected = seen(caller), rows_of(audit(DUMPS, SAMPLE_SETTINGS))
    assert {**before, **SETTINGS} == before
    active, ended, during = taken_for_active(), threading.Event(), []

    def watch() -> None:
        while not ended.wait(0.2):
            during.append(seen(caller))

    def audited(_: int) -> Any:
        return rows_of(audit(DUMPS, SAMPLE_SETTINGS, spark=caller))

    with ThreadPoolExecutor(4) as threads:
        watching = threads.submit(watch)
        try:
            found = list(threads.map(audited, range(2)))
        finally:
            ended.set()
        watching.result()
    assert found == [expected] * 2
    assert len(during) > 3
    assert [each for each in during if each != before] == []
    # In the thread of the caller, too.
    assert audited(0) == expected
    assert (seen(caller), taken_for_active()) == (before, active)


@pytest.mark.house
def test_rows_of_a_session_with_other_settings_are_read_as_they_are(caller: SparkSession) -> None:
    of_dumps = audit(DUMPS, SAMPLE_SETTINGS)
    tables = Snapshots.open(of_dumps._task.snapshots)
    names = [table.name for table in SNAPSHOT_TABLES if tables.has(table.name)]
    names.remove("quarantine")
    frames = {name: caller.read.parquet(tables.table(name).uri) for name in names}
    before = seen(caller)
    found = rows_of(audit(frames, SAMPLE_SETTINGS))
    assert seen(caller) == before
    expected = rows_of(of_dumps)
    assert {name: found[name] for name in expected} == expected
