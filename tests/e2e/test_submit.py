"""What spark-submit tells its caller; that it audits as it should: test_standalone.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Run

pytestmark = pytest.mark.e2e


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
