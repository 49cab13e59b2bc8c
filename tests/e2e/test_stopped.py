"""What stops a command from outside: signals, kills, folders. One line, and an exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.conftest import ALL_DUMPS

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.house]

#: Longer than any of these commands takes on a machine that is busy.
_LONGEST_SECONDS = 300

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, command_environment: dict[str, str]) -> Iterator[Start]:
    """Starts a run of all sample dumps; what it left of temporary files lies in ``tmp_path``."""
    running = []

    def begin(*options: str, **variables: str) -> subprocess.Popen[str]:
        (tmp_path / "temporary").mkdir(exist_ok=True)
        command = ["rebalance-audit", "run", "--output", str(tmp_path / "out"), *options]
        process = subprocess.Popen(
            [*command, "--dumps", *ALL_DUMPS],
            cwd=tmp_path,
            env=command_environment | {"TMPDIR": str(tmp_path / "temporary")} | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        return process

    yield begin
    for each in running:
        each.kill()
        each.communicate()


def descendants(process: subprocess.Popen[str], words: Sequence[str]) -> list[int]:
    """The processes of its session whose command line has one of the words."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            session = os.getsid(int(path.name))
            command = (path / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if session == process.pid and any(word in command for word in words):
            found.append(int(path.name))
    return found


def wait_for_a_line(process: subprocess.Popen[str], words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"no line with {words!r}: exit code {process.wait()}")


def last_line(process: subprocess.Popen[str]) -> str:
    _, said = process.communicate(timeout=_LONGEST_SECONDS)
    assert "Traceback" not in said
    assert "\tat " not in said
    return said.splitlines()[-1]


@pytest.mark.parametrize(
    ("signal_number", "to_all", "code", "said"),
    [
        # Ctrl-C in a terminal comes to Java as well, kill to the command alone.
        (signal.SIGINT, True, 130, "interrupted; there is no published report at "),
        (signal.SIGTERM, False, 143, "terminated by SIGTERM; there is no published report at "),
    ],
)
def test_a_run_that_is_stopped_stops_spark_and_says_what_stands(
    start: Start, tmp_path: Path, signal_number: int, to_all: bool, code: int, said: str
) -> None:
    running = start("--engine", "spark")
    wait_for_a_line(running, "records, ")
    if to_all:
        os.killpg(running.pid, signal_number)
    else:
        os.kill(running.pid, signal_number)
    assert last_line(running).startswith(f"rebalance-audit: {said}")
    assert running.returncode == code
    assert not [*(tmp_path / "temporary").glob("rebalance-audit-*")]


def test_a_worker_that_is_killed_is_named_and_the_stack_is_kept(
    start: Start, tmp_path: Path
) -> None:
    running = start("--engine", "spark", "--quiet")
    until = time.monotonic() + _LONGEST_SECONDS
    while running.poll() is None and time.monotonic() < until:
        for each in descendants(running, ["pyspark.worker"]):
            os.kill(each, signal.SIGKILL)
        time.sleep(0.05)
    line = last_line(running)
    assert running.returncode == 4
    assert "a Python worker ended in the midst of its work: something killed it" in line
    (log,) = (tmp_path / "temporary").glob("rebalance-audit-*.log")
    assert f"the stack is in {log}; there is no published report at {tmp_path}/out" in line
    assert "Traceback" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_java_that_is_killed_is_named(start: Start) -> None:
    running = start("--engine", "spark")
    wait_for_a_line(running, "records, ")
    for each in descendants(running, ["org.apache.spark.deploy.SparkSubmit"]):
        os.kill(each, signal.SIGKILL)
    assert "Java ended in the midst of its work" in last_line(running)
    assert running.returncode == 4


def test_a_folder_for_temporary_files_that_spark_cannot_write_to_is_named(start: Start) -> None:
    running = start("--engine", "spark", "--quiet", SPARK_LOCAL_DIRS="/proc/none")
    assert "set SPARK_LOCAL_DIRS to one with room" in last_line(running)
    assert running.returncode == 4


def test_workers_without_a_python_are_named(start: Start) -> None:
    running = start("--engine", "spark", "--quiet", PYSPARK_PYTHON="/nowhere/python")
    assert "the workers cannot run /nowhere/python: set PYSPARK_PYTHON" in last_line(running)
    assert running.returncode == 4
