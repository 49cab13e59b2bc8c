"""What spark-submit tells its caller; that it audits as it should: test_standalone.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Run

pytestmark = pytest.mark.e2e


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
