"""The packaged zip on a standalone cluster: executors that have nothing of the checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.reports import PublishedReports
from tests.support.standalone import cluster, submit
from tests.support.truth import CAPTURES

pytestmark = pytest.mark.house

#: A stacked id, rooms by pattern from the settings, brokers whose lists differ.
SITUATIONS = ("S2", "S10", "S15")
WORKERS = 2
#: Nothing here runs long enough for the second compiler to pay.
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def test_two_workers_publish_the_rows_that_one_process_does(
    tmp_path: Path,
    package: Path,
    entries: Path,
    sample: PublishedReports,
    settings_file: str,
    java: None,
) -> None:
    snapshots, reports = str(tmp_path / "snapshots"), str(tmp_path / "reports")
    dumps = [str(CAPTURES / situation / "dump.jsonl.gz") for situation in SITUATIONS]
    ingest = ["--dumps", *dumps, "--snapshots", snapshots]
    audit = ["--snapshots", snapshots, "--reports", reports, "--settings", settings_file]
    with cluster(tmp_path, WORKERS, memory="1g") as master:
        for name, arguments in (("ingest.py", ingest), ("audit.py", audit)):
            submit(
                master,
                package,
                entries / name,
                arguments,
                tmp_path,
                executor_memory="1g",
                java_options=QUICK_START,
            )
    groups = {f"G_{situation}" for situation in SITUATIONS}
    here, there = sample, PublishedReports(tmp_path / "reports")
    # Events, gaps and the verdict are of all groups together, and here are more of them.
    tables = set(here.published["tables"]) - {"quarantine", "events", "verdict", "gaps"}
    # So is the last round, after which a topic was not seen any more.
    without = {"problems": "unseen_since"}
    rows, wanted = (
        {table: of.comparable(table, groups, without.get(table, "run_id")) for table in tables}
        for of in (there, here)
    )
    assert rows == wanted
    assert rows["duplicate_queues"]
    # Each worker ran executors of its own, with the interpreter's packages and the zip.
    for number in range(WORKERS):
        ran = list((tmp_path / f"worker-{number}").glob("app-*/*/rebalance-audit.zip"))
        assert len(ran) == 2, number


def test_the_logs_of_a_cluster_are_json(tmp_path: Path, java: None) -> None:
    with cluster(tmp_path, workers=0):
        pass
    lines = (tmp_path / "master.log").read_text().splitlines()
    # What the launcher and the JVM itself say comes before there are logs.
    before = ("Spark Command: ", "====", "WARNING: Using incubator modules")
    records = [json.loads(line) for line in lines if not line.startswith(before)]
    assert any(record["msg"].startswith("Starting Spark master at") for record in records)
    assert all({"ts", "level", "logger"} <= record.keys() for record in records)
