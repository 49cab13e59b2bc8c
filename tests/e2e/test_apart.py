"""Two workers that share no folder: what is right comes, and what cannot be is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from jobs.storage import Location, Snapshots
from tests.support.runs import ingest_locally
from tests.support.standalone import APART, cluster, environment
from tests.support.truth import CAPTURES, SAMPLE_SETTINGS

pytestmark = [pytest.mark.house, pytest.mark.spark]

DRIVER = """
import json
import sys

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from rebalance_audit import audit, load_settings
from rebalance_audit.spark import audit as audit_frames

master, settings, tables, folder = sys.argv[1:]
spark = (
    SparkSession.builder.master(master)
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.executor.memory", "1g")
    .config("spark.ui.enabled", "false")
    .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)


def rows(report):
    return {name: report[name].to_pylist() for name in report}


def refused(asked):
    try:
        return rows(asked())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


arrow = {name: pq.read_table(path) for name, path in json.loads(tables).items()}
frames = {name: spark.createDataFrame(each) for name, each in arrow.items()}
result = audit_frames(**frames, settings=settings)
found = {
    "frames": rows(result),
    "counted": result.allocations.count(),
    "here": rows(audit(arrow, settings)),
    "executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1,
    "dumps": refused(lambda: audit(f"{folder}/dump.jsonl.gz", settings, spark=spark)),
    "files": refused(
        lambda: audit_frames(
            **{name: spark.read.parquet(f"{folder}/{name}") for name in arrow}, settings=settings
        )
    ),
}
print(json.dumps(found, default=str))
spark.stop()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, java: None) -> dict[str, Any]:
    """What came of each, in a driver that has the folder ``apart``, and of the workers none."""
    place = tmp_path_factory.mktemp("apart")
    folder = place / "apart"
    folder.mkdir()
    if subprocess.run([*APART, str(folder), "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not permit unshare --mount")
    ingest_locally([str(CAPTURES / "S2")], place / "snapshots")
    snapshots = Snapshots.open(Location(place / "snapshots"))
    names = ("heartbeats", "topic_routes", "broker_polls", "queue_offsets", "client_states")
    tables = {name: snapshots.table(name).uri for name in names}
    for name, path in tables.items():
        (folder / name).symlink_to(path.removeprefix("file://"))
    dump = CAPTURES / "S2" / "dump.jsonl.gz"
    (folder / dump.name).write_bytes(dump.read_bytes())
    with cluster(place, 2, memory="1g", apart=folder) as master:
        command = [sys.executable, "-c", DRIVER, master, str(SAMPLE_SETTINGS), json.dumps(tables)]
        command.append(str(folder))
        done = subprocess.run(
            command, env=environment(), cwd=place, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_frames_need_no_folder_that_workers_share(found: dict[str, Any]) -> None:
    assert found["executors"] == 2
    assert found["counted"] == len(found["here"]["allocations"]) > 0
    # These have the run's id.
    for table in found["here"].keys() - {"events", "verdict", "runs"}:
        ours, theirs = (sorted(map(repr, found[each][table])) for each in ("here", "frames"))
        assert ours == theirs, table
    assert found["frames"]["orphaned_queues"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("dumps", "SparkError: a worker of Spark has no file .*/apart/dump.jsonl.gz: put the fi"),
        # Of tables that the caller reads Spark itself says so.
        ("files", "(?s).*file:.*/apart/heartbeats/"),
    ],
)
def test_files_that_workers_do_not_see_are_refused(
    found: dict[str, Any], asked: str, said: str
) -> None:
    assert re.match(said, str(found[asked]))
