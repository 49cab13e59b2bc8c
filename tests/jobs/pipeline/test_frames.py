"""DataFrames -> report tables, as from a shell: the tables that an audit of files publishes."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import jobs
from jobs.engines.spark import SparkEngine
from jobs.errors import ContractError, InputError
from jobs.pipeline.frames import _staged, audit_frames
from jobs.schemas import REPORT_TABLES, Table
from jobs.storage import Location
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
    assert jobs.audit_frames is audit_frames
    write_tables(tmp_path / "snapshots", STALLED)
    published = audit_locally(task(tmp_path / "snapshots", tmp_path / "reports"))
    reports = audit_frames(**frames(spark))
    assert reports.keys() == set(published.published["tables"])
    for name, came in reports.items():
        assert came.columns == TABLES[name].schema.names
        wanted = published.rows(name)
        found = came.toArrow().cast(TABLES[name].schema).to_pylist()
        assert sorted(map(repr, found)) == sorted(map(repr, wanted)), name
    assert reports["stalled_queues"].count() == 2


def test_two_tables_are_enough_and_what_cannot_be_told_is_empty(spark: SparkSession) -> None:
    tables = frames(spark)
    reports = audit_frames(tables["heartbeats"], tables["topic_routes"])
    assert {row.severity for row in reports["orphaned_queues"].collect()} == {"CRITICAL"}
    assert reports["stalled_queues"].columns == TABLES["stalled_queues"].schema.names
    assert reports["stalled_queues"].isEmpty()


def test_a_table_that_lacks_columns_is_refused_before_anything_runs(spark: SparkSession) -> None:
    tables = frames(spark)
    # To read a row of it would fail the job.
    heartbeats = tables["heartbeats"].withColumn(
        "language", F.raise_error(F.lit("was read")).cast("string")
    )
    with pytest.raises(ContractError, match="perm: expected int, is missing"):
        audit_frames(heartbeats, tables["topic_routes"].drop("perm"))


def test_what_is_staged_is_removed_whatever_happens(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, named = tmp_path / "temporary", tmp_path / "named"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    tables = frames(spark)
    staged: list[str] = []

    def recorded(given: Mapping[Table, DataFrame], folder: Location, engine: SparkEngine) -> Any:
        staged.append(folder.uri)
        return _staged(given, folder, engine)

    monkeypatch.setattr("jobs.pipeline.frames._staged", recorded)
    assert audit_frames(**tables, staging=str(named)).keys() <= TABLES.keys()
    assert [str(named) in path for path in staged] == [True]
    assert list(named.iterdir()) == []
    error = F.raise_error(F.lit("was read")).cast("string")
    unreadable = tables | {"topic_routes": tables["topic_routes"].withColumn("topic", error)}
    for staging, folder in ((None, temporary), (str(named), named)):
        staged.clear()
        with pytest.raises(PySparkException, match="was read"):
            audit_frames(**unreadable, staging=staging)
        assert [str(folder) in path for path in staged] == [True]
        assert list(folder.iterdir()) == []


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
        audit_frames(**tables)
