"""A shell that is a session of Spark Connect: its process has no Java, the server has its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Run
from tests.support.reports import PublishedReports
from tests.support.truth import CAPTURES, SAMPLE_SETTINGS

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.house]

SHELL = """
import json
import sys
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rebalance_audit import read_reports
from rebalance_audit.errors import ContractError
from rebalance_audit.spark import allocate, audit, register
from rebalance_audit.storage import Location, Snapshots
from rebalance_core import separate_ids

output, dumps = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert type(spark).__module__ == "pyspark.sql.connect.session"
spark.conf.set("spark.sql.shuffle.partitions", "1")

snapshots = Snapshots.open(Location(f"{output}/snapshots"))
names = ("heartbeats", "topic_routes", "broker_polls", "queue_offsets", "client_states")
report = audit(**{name: spark.read.parquet(snapshots.table(name).uri) for name in names})
# A text is a time of the caller's zone, which no session of the audit's own has.
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
lists = spark.read.parquet(snapshots.table("heartbeats").uri)
texts = lists.withColumn("at", F.date_format("snapshot_time", "yyyy-MM-dd HH:mm:ss.SSSSSS"))
columns = {"heartbeats": {"snapshot_time": F.to_timestamp("at")}}
others = {name: spark.read.parquet(snapshots.table(name).uri) for name in names[1:]}
of_texts = audit(texts.drop("snapshot_time"), columns=columns, **others)
of_lines = audit(lines=spark.read.text(dumps))
entries = "map_from_entries(transform(subscriptions, s -> struct(s.topic, s.expression)))"
try:
    audit(lists.withColumn("subscriptions", F.expr(entries)), others["topic_routes"])
except ContractError as error:
    to_type = str(error).rpartition("audit(..., columns=")[2]
at = datetime(2026, 11, 21, 2, 5, 10)


columns = ["topic", "broker_name", "queue_id", "severity", "persistence"]
published = read_reports(spark, f"{output}/reports", "orphaned_queues").select(*columns)
audited = report["orphaned_queues"].select(columns).to_pylist()
lazily = report.orphaned_queues.select(*columns).collect()
queues = [("a", 0), ("a", 1), ("a", 2)]
group = "queues array<struct<broker_name:string,queue_id:int>>, ids array<string>"
groups = spark.createDataFrame([(queues, ["x", "x", "y"])], group)
register(spark)
groups.createOrReplaceTempView("groups")
in_sql = spark.sql("SELECT rocketmq_allocate('AVG', queues, ids) AS shares FROM groups")
shares = groups.select(allocate("AVG", "queues", "ids").alias("shares")).unionAll(in_sql)
shares = shares.selectExpr("inline(shares)")
repaired = report.what_if("G_S2", "T_S2", [separate_ids()], at)
state_ids = [each.select("state_id") for each in (report.situations, report.state_runs)]


print(json.dumps({
    "explained": report.explain("G_S2", "T_S2", at),
    "moves": len(repaired.values["topics"][0]["moves"]),
    "read": sorted(map(list, published.collect())),
    "lazily": sorted(map(list, lazily)),
    "of_texts": of_texts["orphaned_queues"].equals(report["orphaned_queues"]),
    "of_lines": of_lines["orphaned_queues"].equals(report["orphaned_queues"]),
    "to_type": to_type,
    "allocations": [report.allocations.count(), len(report["allocations"])],
    "situations": [ids.distinct().count() for ids in state_ids],
    "shares": [list(row) for row in shares.collect()],
    "audited": sorted(list(row.values()) for row in audited),
}))
spark.stop()
"""


def test_a_session_of_spark_connect_reads_explains_and_audits(
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
    assert [each[:3] for each in said["audited"]] == [each[:3] for each in orphaned]
    assert said["lazily"] == said["audited"]
    assert said["of_texts"]
    assert said["of_lines"]
    assert 'F.expr("transform(map_entries(`subscriptions`), each0 ->' in said["to_type"]
    assert said["allocations"][0] == said["allocations"][1] > 0
    assert said["situations"][0] == said["situations"][1] > 0
    # Two processes have the id x: both take queue 0, and nobody takes queue 1.
    shares = [["x", 2, [[None, "a", 0]]], ["y", 1, [[None, "a", 2]]]]
    assert said["shares"] == shares * 2
    assert "DUPLICATE_CLIENT_ID" in said["explained"]
    assert said["moves"] == 6
