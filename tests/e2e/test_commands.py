"""The console command as users and schedulers meet it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Run
from tests.support.reports import PublishedReports
from tests.support.truth import CAPTURES

pytestmark = pytest.mark.e2e

AUDIT = ["rebalance-audit", "audit", "--quiet"]


def test_a_second_run_publishes_the_same_rows_clears_what_was_left_and_may_fail_on_findings(
    tmp_path: Path, run_command: Run, sample_output: Path, settings_file: str
) -> None:
    output = tmp_path / "out"
    shutil.copytree(sample_output, output)
    reports = output / "reports"
    first = PublishedReports(reports)
    rows = {table: first.comparable(table) for table in first.published["tables"]}
    left_behind = reports / "orphaned_queues" / "dt=2026-11-21" / "run=died"
    left_behind.mkdir()
    command = [*AUDIT, "--snapshots", str(output / "snapshots"), "--reports", str(reports)]
    command += ["--settings", settings_file]
    run_command([*command, "--fail-on", "CRITICAL"], expect=1)
    second = PublishedReports(reports)
    assert second.published["run_id"] != first.published["run_id"]
    assert {table: second.comparable(table) for table in rows} == rows
    kept = {path.name for path in left_behind.parent.iterdir()}
    # The run before lies aside for a day; what died without a claim is gone.
    assert kept == {f"run={second.published['run_id']}"}
    assert (reports / "_replaced" / "dt=2026-11-21" / first.published["run_id"]).is_dir()


@pytest.mark.house
@pytest.mark.spark
def test_the_session_that_the_command_starts_finds_what_one_process_finds(
    tmp_path: Path, run_command: Run, sample_output: Path, settings_file: str
) -> None:
    """Its workers come from a daemon of ours (jobs/spark/daemon.py), as in no other session."""
    command = [*AUDIT, "--engine", "spark", "--snapshots", str(sample_output / "snapshots")]
    run_command([*command, "--reports", str(tmp_path), "--settings", settings_file])
    here, there = PublishedReports(sample_output / "reports"), PublishedReports(tmp_path)
    assert there.published["tables"] == here.published["tables"]
    for table in here.published["tables"]:
        assert there.comparable(table) == here.comparable(table), table


def test_a_run_that_is_killed_leaves_whole_reports_and_the_next_one_mends(
    tmp_path: Path,
    command_environment: dict[str, str],
    sample_output: Path,
    run_command: Run,
    settings_file: str,
) -> None:
    """A process that is killed while it publishes; each single step: tests/faults."""
    output = tmp_path / "out"
    shutil.copytree(sample_output, output)
    before = PublishedReports(output / "reports")
    rows = before.comparable("orphaned_queues")
    command = ["--snapshots", str(output / "snapshots"), "--reports", str(output / "reports")]
    command += ["--settings", settings_file]
    claims = output / "reports" / "_claims" / "dt=2026-11-21"
    running = subprocess.Popen(
        [*AUDIT, *command],
        env=command_environment,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not list(claims.glob("*.claim")):
            assert running.poll() is None
            time.sleep(0.01)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert PublishedReports(output / "reports").comparable("orphaned_queues") == rows
    run_command([*AUDIT, *command])
    after = PublishedReports(output / "reports")
    assert after.comparable("orphaned_queues") == rows
    assert list(claims.glob("*.claim")) == []
    of_date = output / "reports" / "orphaned_queues" / "dt=2026-11-21"
    assert {path.name for path in of_date.iterdir()} == {f"run={after.published['run_id']}"}


def test_garbage_is_quarantined_and_the_rest_of_the_night_is_audited(
    tmp_path: Path, run_command: Run
) -> None:
    dumps = tmp_path / "dumps"
    shutil.copytree(CAPTURES / "S2", dumps)
    (dumps / "core.bin").write_bytes(bytes(range(256)))
    (dumps / "empty.jsonl").write_text("")
    (dumps / "half.jsonl").write_text('{"kind":"topic_route","clus')
    (dumps / "array.json").write_text('[{"kind":"topic_route"}]\n')
    command = ["rebalance-audit", "run", "--quiet", "--dumps", str(dumps)]
    # The run sums up and audits all the same; only the exit code and a line say what was amiss.
    done = run_command(
        [*command, "--output", str(tmp_path / "out"), "--set", "allowed_quarantine_share=0.001"],
        expect=3,
    )
    assert "bytes, were not understood" in done.stderr
    assert "1 shared client id," in done.stdout
    published = PublishedReports(tmp_path / "out" / "reports")
    (stacked,) = published.rows("stacked_client_ids")
    assert stacked["client_id"] == "10.0.2.10@app-DUP"
    names = {Path(row["file"]).name for row in published.rows("quarantine")}
    assert names == {"core.bin", "half.jsonl", "array.json"}


def test_the_process_ends_with_the_exit_code(run_command: Run) -> None:
    """All that can be wrong, without a process: tests/contract/test_command_line.py."""
    done = run_command(["rebalance-audit", "show", "summary", "--reports", "nowhere"], expect=3)
    assert done.stderr.splitlines()[-1].startswith("rebalance-audit: no published reports under ")
    assert done.stdout == ""
