"""The audit of DataFrames, as a notebook calls it: ``rebalance_audit.spark.audit``."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from jobs.spark import audit
from tests.bench.contenders.audit import KINDS, write_findings
from tests.support.fleet import fleet_settings

_TABLES = ("heartbeats", "topic_routes", "broker_polls")


def run(spark: SparkSession, snapshots: Path, output: Path) -> None:
    """The tables as Spark reads them; the findings as tables of Arrow."""
    tables = {name: spark.read.parquet(str(snapshots / name)) for name in _TABLES}
    report = audit(**tables, settings=fleet_settings())
    write_findings({name: report[name] for name in KINDS}, output)
