"""The same audit through spark-submit, with the packaged zip, in executors of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Run
from tests.support.reports import PublishedReports
from tests.support.truth import CAPTURES

pytestmark = pytest.mark.e2e

#: A stacked id, rooms by pattern, broadcasting, brokers that disagree, heartbeat V2.
SITUATIONS = ("S2", "S6", "S10", "S15", "V2")
DUMPS = [str(CAPTURES / situation / "dump.jsonl.gz") for situation in SITUATIONS]
GROUPS = {f"G_{situation}" for situation in SITUATIONS}

TABLES = (
    "duplicate_queues",
    "orphaned_queues",
    "stacked_client_ids",
    "group_faults",
    "unreadable_queues",
    "allocations",
    "state_runs",
    "reassignments",
    "allocation_drift",
    "stalled_queues",
    "group_health",
)

#: Executors are processes of their own: what is not in the zip they do not have.
MASTER = "local-cluster[2,1,1024]"


def test_spark_submit_publishes_the_rows_that_the_console_command_does(
    tmp_path: Path,
    run_command: Run,
    package: Path,
    entries: Path,
    sample_reports: PublishedReports,
) -> None:
    # Without --settings: the zip has those that the console command finds in the checkout.
    submit = ["spark-submit", "--master", MASTER, "--py-files", str(package)]
    snapshots, reports = str(tmp_path / "snapshots"), str(tmp_path / "reports")
    run_command(
        [
            *submit,
            str(entries / "ingest.py"),
            "--dumps",
            *DUMPS,
            "--snapshots",
            snapshots,
        ]
    )
    run_command(
        [
            *submit,
            str(entries / "audit.py"),
            "--snapshots",
            snapshots,
            "--reports",
            reports,
            "--date",
            "2026-11-21",
            "--set",
            "persistence_seconds=60",
        ]
    )
    submitted = PublishedReports(tmp_path / "reports")
    for table in TABLES:
        assert submitted.comparable(table) == sample_reports.comparable(table, GROUPS), table


def test_the_package_has_the_settings_and_the_known_issues(
    run_command: Run, package: Path, repository: Path
) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(package)!r})\n"
        "from jobs.known_issues import DEFAULT_KNOWN_ISSUES\n"
        "from jobs.settings import DEFAULT_SETTINGS, find_text\n"
        "for default in (DEFAULT_KNOWN_ISSUES, DEFAULT_SETTINGS):\n"
        "    print(*find_text(default), sep='\\n', end='')\n"
    )
    said = run_command([sys.executable, "-c", code]).stdout
    names = ("conf/known_issues.toml", "conf/audit.toml")
    assert said == "".join(f"{package}/{n}\n{(repository / n).read_text()}" for n in names)


def test_the_exit_code_of_a_submitted_job_is_that_of_the_command(
    tmp_path: Path, run_command: Run, package: Path, entries: Path
) -> None:
    done = run_command(
        [
            "spark-submit",
            "--master",
            "local[1]",
            "--py-files",
            str(package),
            str(entries / "audit.py"),
            "--snapshots",
            str(tmp_path / "nowhere"),
            "--reports",
            str(tmp_path / "reports"),
        ],
        expect=3,
    )
    assert "no table heartbeats" in done.stdout + done.stderr
