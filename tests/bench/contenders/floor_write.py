"""The floor of writing: Spark writes again what the audit published, table by table.

The audit runs before it, its output lies beside.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from jobs.storage import Location, Reports


def run(spark: SparkSession, snapshots: Path, output: Path) -> None:
    """As many tables as the audit publishes, with its schemas."""
    reports = Reports(Location(output.parent / "audit" / "reports"))
    published = reports.resolve(None)
    for name in published.tables:
        table = reports.table(name, published.date, published.run_id)
        spark.read.parquet(table.uri).write.mode("overwrite").parquet(str(output / name))
