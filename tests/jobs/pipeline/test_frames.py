"""DataFrames by their names -> a report: ``audit`` of the package. tests/spark has more."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs import audit
from jobs.errors import ContractError
from tests.support.snapshots import frame
from tests.support.stacked import STALLED

pytestmark = pytest.mark.spark


def frames(spark: SparkSession) -> dict[str, DataFrame]:
    return {of.name: frame(spark, of, rows) for of, rows in STALLED}


def test_two_tables_are_enough_and_what_cannot_be_told_is_empty(spark: SparkSession) -> None:
    tables = frames(spark)
    report = audit({name: tables[name] for name in ("heartbeats", "topic_routes")})
    assert set(report["orphaned_queues"]["severity"].to_pylist()) == {"CRITICAL"}
    assert report["stalled_queues"].num_rows == 0


def test_a_table_that_lacks_columns_is_refused_before_anything_runs(spark: SparkSession) -> None:
    tables = frames(spark)
    # To read a row of it would fail the job.
    error = F.raise_error(F.lit("was read")).cast("string")
    heartbeats = tables["heartbeats"].withColumn("language", error)
    with pytest.raises(ContractError, match="perm: expected int, is missing"):
        audit({"heartbeats": heartbeats, "topic_routes": tables["topic_routes"].drop("perm")})


def test_what_was_written_is_removed_where_rows_cannot_be_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tables = frames(spark)
    error = F.raise_error(F.lit("was read")).cast("string")
    with pytest.raises(PySparkException, match="was read"):
        audit(tables | {"topic_routes": tables["topic_routes"].withColumn("topic", error)})
    assert list(tmp_path.iterdir()) == []
