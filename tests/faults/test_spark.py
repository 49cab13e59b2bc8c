"""Spark's processes killed in the midst of a night: the night before stays, the next run mends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.nights import Night, Tables

pytestmark = pytest.mark.house

_LONGEST_SECONDS = 300


@contextmanager
def started(night: Night, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The night's job on Spark, in a session of its own."""
    command = [each for each in night.command() if each != "--quiet"]
    command[command.index("local")] = "spark"
    process = subprocess.Popen(
        [sys.executable, "-m", "jobs.cli", *command, *options],
        cwd=night.place,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"no line with {words!r}: exit code {process.wait()}")


def kill(process: subprocess.Popen[str], word: str) -> int:
    """Kills the processes of the session whose command has the word; how many there were."""
    killed = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(path.name)) == process.pid and word in (path / "cmdline").read_text(
                errors="replace"
            ):
                os.kill(int(path.name), signal.SIGKILL)
                killed += 1
        except OSError:
            continue
    return killed


def comparable(tables: Tables) -> dict[str, list[str]]:
    return {
        name: sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)
        for name, rows in tables.items()
    }


@pytest.mark.parametrize("step", ["records, ", "findings, "])
def test_a_java_that_is_killed_leaves_the_night_before_and_the_next_run_mends(
    nights, tmp_path, counts, java, step
):
    night = nights.begin(tmp_path / "night")
    with started(night) as process:
        wait_for(process, step)
        assert kill(process, "org.apache.spark.deploy.SparkSubmit")
        _, text = process.communicate(timeout=_LONGEST_SECONDS)
    assert process.returncode == 4, text
    last = text.splitlines()[-1]
    assert "Traceback" not in text
    seen = comparable(night.read())
    if "was published before this failed" in last:  # Java was not needed any more
        assert seen == comparable(nights.new)
    else:
        assert "that was published before is unchanged" in last
        assert seen == comparable(nights.old)
    assert night.run().code == 0
    assert night.read() == nights.new
    counts["Spark's processes killed"] += 1


def test_an_executor_that_is_lost_is_replaced_and_the_tables_are_the_same(
    nights, tmp_path, counts, java
):
    night = nights.begin(tmp_path / "night")
    with started(night, "--master", "local-cluster[1,1,1024]") as process:
        killed = 0
        ends = time.monotonic() + _LONGEST_SECONDS
        while not killed and process.poll() is None and time.monotonic() < ends:
            killed = kill(process, "CoarseGrainedExecutorBackend")
            time.sleep(0.05)
        _, text = process.communicate(timeout=_LONGEST_SECONDS)
    assert killed
    assert process.returncode == 0, text
    assert comparable(night.read()) == comparable(nights.new)
    counts["Spark's processes killed"] += 1
