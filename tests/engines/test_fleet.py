"""Generated fleets with faults of every kind: all that is true is found, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

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
from tests.support.reports import PublishedReports
from tests.support.runs import audit_by_spark, audit_locally, task

#: So long between two faults that they are not one episode with a gap.
FLEET = Fleet(
    groups=16,
    rounds=400,
    members=5,
    queues_per_broker=4,
    churn=0.02,
    faulty=0.7,
    healthy=(31, 40),
)
QUEUE = ("consumer_group", "topic", "broker_name", "queue_id", "certainty")
QUEUE += ("first_seen", "last_seen")
FAULT = ("consumer_group", "topic", "fault", "first_seen")


@dataclass(frozen=True)
class Truth:
    """What is true of a fleet: its queues by kind, its faults, and which faults it has at all."""

    queues: Mapping[str, set[str]]
    faults: set[str]
    kinds: set[str]


def write_fleet(spark: SparkSession, fleet: Fleet, snapshots: Path) -> Truth:
    """Writes the fleet's snapshot tables; gives what is true of it."""
    versions = describe_fleet(spark, fleet).cache()
    for name, of_table in (
        ("heartbeats", fleet_heartbeats(fleet, versions)),
        ("topic_routes", fleet_routes(fleet, versions)),
        ("broker_polls", fleet_polls(fleet, versions)),
    ):
        of_table.write.parquet(str(snapshots / name))
    queues: dict[str, set[str]] = {"ORPHANED": set(), "DUPLICATE": set()}
    for row in rows_of(true_findings(fleet, versions)):
        queues[row["kind"]] |= chosen([row | {"causes": [row["cause"]]}], (*QUEUE, "causes"))
    faults = rows_of(true_faults(fleet, versions))
    kinds = {row["fault"] for row in rows_of(versions.select("fault").distinct())}
    return Truth(queues, chosen(faults, FAULT), kinds)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    # In UTC, as published rows have them: a Row's times are in the zone of this process.
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def chosen(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> set[str]:
    names = tuple(columns)
    return {str([str(row[name]) for name in names]) for row in rows}


def assert_found(reports: PublishedReports, truth: Truth) -> None:
    for kind, table in (("ORPHANED", "orphaned_queues"), ("DUPLICATE", "duplicate_queues")):
        assert truth.queues[kind]
        assert chosen(reports.rows(table), (*QUEUE, "causes")) == truth.queues[kind]
    assert chosen(reports.rows("group_faults"), FAULT) == truth.faults
    assert {row["coverage"] for row in reports.rows("group_health")} == {"AUDITED"}


@pytest.mark.house
def test_all_faults_of_a_fleet_are_found_on_both_engines_and_nothing_else(
    spark: SparkSession, tmp_path: Path
) -> None:
    truth = write_fleet(spark, FLEET, tmp_path / "snapshots")
    assert truth.kinds >= set(FAULTS)
    here, there = (
        task(tmp_path / "snapshots", tmp_path / name, settings=fleet_settings())
        for name in ("here", "spark")
    )
    assert_found(audit_locally(here), truth)
    assert_found(audit_by_spark(spark, there), truth)
