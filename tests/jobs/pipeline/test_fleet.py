"""A generated fleet with every kind of fault in it: all of them are found, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs import audit_frames
from tests.support.fleet import (
    FAULTS,
    Fleet,
    describe_fleet,
    fleet_heartbeats,
    fleet_polls,
    fleet_routes,
    fleet_settings,
    true_faults,
    true_findings,
)

pytestmark = pytest.mark.spark

FLEET = Fleet(groups=16, rounds=220, members=5, queues_per_broker=4, churn=0.02, faulty=0.7)


def rows(table: DataFrame) -> set[tuple[object, ...]]:
    return {tuple(row) for row in table.collect()}


def test_all_injected_faults_are_found_and_nothing_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    versions = describe_fleet(spark, FLEET).cache()
    assert {row.fault for row in versions.select("fault").distinct().collect()} >= set(FAULTS)

    def written(name: str, table: DataFrame) -> DataFrame:
        table.write.parquet(str(tmp_path / name))
        return spark.read.parquet(str(tmp_path / name))

    reports = audit_frames(
        written("heartbeats", fleet_heartbeats(FLEET, versions)),
        written("topic_routes", fleet_routes(FLEET, versions)),
        written("broker_polls", fleet_polls(FLEET, versions)),
        settings=fleet_settings(),
    )
    queue = ["consumer_group", "topic", "broker_name", "queue_id", "certainty"]
    for kind, table in (("ORPHANED", "orphaned_queues"), ("DUPLICATE", "duplicate_queues")):
        cause = F.array_join("causes", " and ").alias("cause")
        found = rows(reports[table].select(*queue, "first_seen", "last_seen", cause))
        true = true_findings(FLEET, versions).where(F.col("kind") == kind)
        expected = rows(true.select(*queue, "first_seen", "last_seen", "cause"))
        assert expected
        assert found == expected
    fault = ["consumer_group", "topic", "fault", "first_seen"]
    assert rows(reports["group_faults"].select(*fault)) == rows(
        true_faults(FLEET, versions).select(*fault)
    )
    assert {row.coverage for row in reports["group_health"].collect()} == {"AUDITED"}
