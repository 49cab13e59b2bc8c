"""The audit in somebody else's session: a shell or a notebook."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Run
from tests.support.truth import CAPTURES

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

NOTEBOOK = """
import sys
from pyspark.sql import SparkSession
from rebalance_audit import audit
from rebalance_audit.storage import Location, Snapshots

snapshots = Snapshots.open(Location(sys.argv[1]))
conf = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
}
spark = SparkSession.builder.master("local[1]").config(map=conf).getOrCreate()
assert spark.sparkContext.pythonExec == "python3"
names = ("heartbeats", "topic_routes")
report = audit({name: spark.read.parquet(snapshots.table(name).uri) for name in names})
print("stacked:", report["stacked_client_ids"].num_rows)
spark.stop()
"""


@pytest.mark.house
def test_a_notebook_whose_environment_is_not_activated_audits(
    tmp_path: Path, run_command: Run, command_environment: dict[str, str]
) -> None:
    # The first python3 on the PATH is one that no worker can use.
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho 'this is another Python' >&2\nexit 1\n")
    other.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{command_environment['PATH']}"
    dumps, output = str(CAPTURES / "S2" / "dump.jsonl.gz"), str(tmp_path / "out")
    for command in (
        ["-m", "rebalance_audit.cli", "run", "--dumps", dumps, "--output", output],
        ["-c", NOTEBOOK, f"{output}/snapshots"],
    ):
        done = run_command([sys.executable, *command], PATH=path)
    assert done.stdout.endswith("stacked: 1\n")
