"""Every contender runs on a tiny fleet and finds what is true: else its seconds say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.storage import Location, Reports
from tests.bench.contenders import BY_NAME, CONTENDERS, Contender
from tests.bench.findings import differences, read_findings
from tests.bench.fleets import Tables

pytestmark = pytest.mark.spark

FINDERS = [each.name for each in CONTENDERS if each.finds]


def run(contender: Contender, spark: SparkSession, tables: Tables, output: Path) -> None:
    """As ``measured`` runs it: who does without Spark gets no session."""
    snapshots = tables.with_ids if contender.has_ids else tables.snapshots
    contender.module().run(spark if contender.uses_spark else None, snapshots, output)


@pytest.mark.parametrize("name", FINDERS)
def test_a_contender_finds_what_is_true(
    spark: SparkSession, tiny: Tables, tmp_path: Path, name: str
) -> None:
    contender = BY_NAME[name]
    run(contender, spark, tiny, tmp_path)
    if hasattr(contender.module(), "to_findings"):
        contender.module().to_findings(tmp_path)
    true = read_findings(tiny.true_findings)
    assert {row[3] for row in true} == {"ORPHANED", "DUPLICATE"}
    assert not differences(read_findings(tmp_path / "findings"), true)


def test_the_floor_of_reading_finds_all_its_columns(spark: SparkSession, tiny: Tables) -> None:
    # It writes nothing: a column that is no longer there would fail it.
    run(BY_NAME["floor_read"], spark, tiny, Path())


def test_the_floor_of_writing_writes_every_row_that_the_audit_published(
    spark: SparkSession, tiny: Tables, tmp_path: Path
) -> None:
    # Without Spark, for it is quicker: the tables are the same.
    run(BY_NAME["driver"], spark, tiny, tmp_path / "audit")
    run(BY_NAME["floor_write"], spark, tiny, tmp_path / "floor_write")
    reports = Reports(Location(tmp_path / "audit" / "reports"))
    published = reports.resolve(None)
    tables = [reports.table(name, published.date, published.run_id) for name in published.tables]
    rows = [table.parquet().count_rows() for table in tables]
    written = [spark.read.parquet(str(tmp_path / "floor_write" / n)) for n in published.tables]
    assert [table.count() for table in written] == rows
    assert sum(rows) > 0


def test_no_contender_is_without_a_test() -> None:
    floors = {"floor_read", "floor_write"}
    assert {each.name for each in CONTENDERS} == {*FINDERS, *floors}
