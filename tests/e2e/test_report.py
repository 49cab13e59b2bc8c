"""The report command, on the sample dumps' reports and from the zip."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Run

pytestmark = pytest.mark.e2e

REPORT = ["rebalance-audit", "report"]


@pytest.fixture(scope="module")
def page(run_command: Run, sample_output: Path) -> Path:
    """The page of the sample dumps, where it lies if nothing else is said."""
    reports = sample_output / "reports"
    said = run_command([*REPORT, "--reports", str(reports)]).stdout
    written = reports / "report" / "dt=2026-11-21.html"
    assert str(written) in said
    assert "7 topics of 5 groups have lasting faults, 6 critical." in said
    return written


def test_the_page_tells_what_is_wrong_why_and_what_to_do(page: Path) -> None:
    html = page.read_text(encoding="utf-8")
    assert [each.name for each in page.parent.iterdir()] == [page.name]
    assert len(html.encode()) < 200_000
    # Of nine topics two are retry topics, which lie in the card of their group, and two passed.
    assert len(re.findall('<(?:article|details) class="problem ', html)) == 5
    assert "10.0.2.10@app-DUP is used by 2 processes" in html
    assert "give each process its own instanceName" in html
    assert "As it is" in html
    assert "After the repair" in html
    for section in ("Since the previous run", "Health of all groups", "Coverage", "Quarantine"):
        assert section in html


def test_the_zip_has_all_that_the_page_needs(
    tmp_path: Path,
    command_environment: dict[str, str],
    sample_output: Path,
    page: Path,
    package: Path,
    entries: Path,
) -> None:
    written = tmp_path / "page.html"
    reports = str(sample_output / "reports")
    arguments = ["--reports", reports, "--output", str(written)]
    subprocess.run(
        [sys.executable, "-P", str(entries / "report.py"), *arguments],
        env={**command_environment, "PYTHONPATH": str(package)},
        cwd=tmp_path,
        check=True,
    )
    # From the zip there are no pages on the findings to link to.
    links = 'href="../'
    assert written.read_text().count("<article") == page.read_text().count("<article")
    assert links not in written.read_text()
