"""DataFrames -> a report, as from a shell: the tables that an audit of files publishes."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs import audit
from jobs.errors import ContractError, InputError
from jobs.schemas import EVENTS, REPORT_TABLES
from tests.support.runs import audit_locally, task
from tests.support.snapshots import frame, write_tables
from tests.support.stacked import STALLED

pytestmark = pytest.mark.spark

TABLES = {table.name: table for table in REPORT_TABLES}


def frames(spark: SparkSession) -> dict[str, DataFrame]:
    return {of.name: frame(spark, of, rows) for of, rows in STALLED}


def test_frames_give_what_an_audit_of_the_same_tables_publishes(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_tables(tmp_path / "snapshots", STALLED)
    published = audit_locally(task(tmp_path / "snapshots", tmp_path / "reports"))
    report = audit(frames(spark))
    assert list(report) == published.published["tables"]
    for name, came in report.items():
        assert came.schema.equals(TABLES[name].schema)
        if name != EVENTS.name:  # their ids have the run's in them
            wanted = published.rows(name)
            assert sorted(map(repr, came.to_pylist())) == sorted(map(repr, wanted)), name
    assert report["stalled_queues"].num_rows == 2


def test_two_tables_are_enough_and_what_cannot_be_told_is_empty(spark: SparkSession) -> None:
    tables = frames(spark)
    report = audit({name: tables[name] for name in ("heartbeats", "topic_routes")})
    assert set(report["orphaned_queues"]["severity"].to_pylist()) == {"CRITICAL"}
    assert report["stalled_queues"].num_rows == 0


def test_a_table_that_lacks_columns_is_refused_before_anything_runs(spark: SparkSession) -> None:
    tables = frames(spark)
    # To read a row of it would fail the job.
    heartbeats = tables["heartbeats"].withColumn(
        "language", F.raise_error(F.lit("was read")).cast("string")
    )
    with pytest.raises(ContractError, match="perm: expected int, is missing"):
        audit({"heartbeats": heartbeats, "topic_routes": tables["topic_routes"].drop("perm")})


def test_what_is_staged_is_removed_whatever_happens(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, named = tmp_path / "temporary", tmp_path / "named"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    tables = frames(spark)
    report = audit(tables, staging=str(named))
    (folder,) = named.iterdir()
    assert (folder / "snapshots" / "heartbeats").is_dir()
    del report
    gc.collect()
    assert list(named.iterdir()) == []
    error = F.raise_error(F.lit("was read")).cast("string")
    unreadable = tables | {"topic_routes": tables["topic_routes"].withColumn("topic", error)}
    for staging, place in ((None, temporary), (str(named), named)):
        with pytest.raises(PySparkException, match="was read"):
            audit(unreadable, staging=staging)
        assert list(place.iterdir()) == []


def test_on_a_cluster_a_folder_for_staging_is_to_be_named(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = frames(spark)
    get = type(spark.conf).get
    monkeypatch.setattr(
        type(spark.conf),
        "get",
        lambda self, key, *default: "yarn" if key == "spark.master" else get(self, key, *default),
    )
    with pytest.raises(InputError, match="expected staging=FOLDER"):
        audit(tables)
