"""A shell that is a session of Spark Connect: its process has no Java, the server has its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Run
from tests.support.reports import PublishedReports
from tests.support.truth import CAPTURES, SAMPLE_SETTINGS

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

SHELL = """
import json
import sys
from datetime import datetime

from pyspark.sql import SparkSession

from jobs import audit_frames, explain, read_reports, snapshot_frames, what_if
from jobs.errors import SparkError
from jobs.storage import Location, Snapshots
from rebalance_core import separate_ids

output, dumps = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert type(spark).__module__ == "pyspark.sql.connect.session"
spark.conf.set("spark.sql.shuffle.partitions", "1")

snapshots = Snapshots.open(Location(f"{output}/snapshots"))
names = ("heartbeats", "topic_routes", "broker_polls", "queue_offsets", "client_states")
tables = {name: spark.read.parquet(snapshots.table(name).uri) for name in names}
question = (tables["heartbeats"], tables["topic_routes"], "G_S2", "T_S2")
at = datetime(2026, 11, 21, 2, 5, 10)
try:
    refused = audit_frames(**tables)
except SparkError as error:
    refused = str(error)


def queues(rows):
    columns = ("topic", "broker_name", "queue_id", "severity", "persistence")
    return sorted(map(list, rows.select(*columns).collect()))


print(json.dumps({
    "explained": explain(*question, at=at),
    "moves": what_if(*question, [separate_ids()], at=at).moves.count(),
    "read": queues(read_reports(spark, f"{output}/reports", "orphaned_queues")),
    "refused": refused,
    "answers": snapshot_frames(spark.read.json(dumps))["heartbeats"].count(),
}))
spark.stop()
"""


def test_a_session_of_spark_connect_reads_and_explains_and_is_told_that_it_cannot_audit(
    tmp_path: Path, run_command: Run
) -> None:
    dumps, settings = str(CAPTURES / "S2" / "dump.jsonl.gz"), str(SAMPLE_SETTINGS)
    audit = ["run", "--dumps", dumps, "--output", str(tmp_path), "--engine", "local"]
    run_command(["rebalance-audit", *audit, "--settings", settings])
    done = run_command([sys.executable, "-c", SHELL, str(tmp_path), dumps])
    said = json.loads(done.stdout.splitlines()[-1])
    published = PublishedReports(tmp_path / "reports")
    orphaned = sorted(
        [row[name] for name in ("topic", "broker_name", "queue_id", "severity", "persistence")]
        for row in published.rows("orphaned_queues")
    )
    assert len(orphaned) > 0
    assert said["read"] == orphaned
    assert said["refused"].startswith("audit_frames does not run in a session of Spark Connect: ")
    assert "DUPLICATE_CLIENT_ID" in said["explained"]
    assert said["moves"] == 6
    assert said["answers"] == 408
