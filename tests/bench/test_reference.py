"""The slow second audit and the audit agree, and both with what is true, on a tiny fleet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.pipeline.audit_on_spark import audit
from jobs.progress import Progress
from jobs.storage import Location, Reports
from tests.bench.contenders.audit import task
from tests.bench.fleets import Tables, write_fleet
from tests.bench.reference import COLUMNS, audited_findings, differences, reference_findings
from tests.bench.truth import scores
from tests.support.fleet import Fleet, fleet_settings

pytestmark = pytest.mark.spark

FLEET = Fleet(groups=4, rounds=100, members=4, queues_per_broker=3, churn=0.1, faulty=0.8, seed=3)


def test_reference_audit_and_truth_agree(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    write_fleet(spark, FLEET, tables)
    reports = Location(tmp_path / "reports")
    audit(spark, task(tables.snapshots, tmp_path / "reports"), Progress(quiet=True))
    audited = audited_findings(reports)
    reference = reference_findings(tables.snapshots, fleet_settings())
    assert {row["certainty"] for row in reference.values()} == {"CERTAIN", "POSSIBLE"}
    assert not differences(audited, reference)
    told = scores(spark, tables, Reports(reports))
    assert all(score.is_perfect for score in told), told

    # And a difference would be told: of a whole row, and of one column.
    key = next(iter(reference))
    wrong = {**reference, key: {**reference[key], COLUMNS[-1]: None}}
    assert len(differences(audited, wrong)) == 1
    del wrong[key]
    assert len(differences(audited, wrong)) == 1
