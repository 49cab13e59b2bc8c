"""The page of the sample dumps in the machine's browser: make test-browser.

``BROWSER`` is the program; ``rebalance-audit`` on the PATH makes the pages.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ["--settings", str(ROOT / "tests" / "data" / "sample.toml"), "--quiet"]
LANGUAGES = ("en", "zh")


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of the sample in each language; beside it its nights and the picture of a finding.

    ``nights-en/index.html`` and ``en.svg`` are those in English.
    """
    folder = tmp_path_factory.mktemp("sample")

    def audit(*options: str) -> None:
        subprocess.run(["rebalance-audit", *options, *SAMPLE], check=True, cwd=folder)

    dumps = sorted(map(str, (ROOT / "tests" / "data" / "captures").glob("*/dump.jsonl.gz")))
    audit("run", "--engine", "local", "--output", "out", "--dumps", *dumps)
    shown = ["show", "orphaned_queues", "--group", "G_S2", "--columns", "finding_id"]
    table = subprocess.check_output(
        ["rebalance-audit", *shown, "--reports", "out/reports", "--format", "csv", *SAMPLE],
        cwd=folder,
        text=True,
    )
    finding = table.splitlines()[1]
    for each in LANGUAGES:
        report = ["report", "--reports", "out/reports", "--language", each, "--output"]
        audit(*report, f"{each}.html")
        audit(*report, f"nights-{each}/", "--nights", "2")
        audit(*report, f"{each}.svg", "--finding", finding)
    return {each: folder / f"{each}.html" for each in LANGUAGES}


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a night of 300 groups, of which 40 have faults that last, in each language."""
    return page_of_a_fleet(tmp_path_factory.mktemp("large"), 300, LANGUAGES)


def page_of_a_fleet(folder: Path, groups: int, languages: Sequence[str]) -> dict[str, Path]:
    """The page of a night of so many groups, of which 40 have faults that last."""
    night = [sys.executable, "-m", "tests.support.night", "--groups", str(groups), "--faults", "40"]
    subprocess.run([*night, "--output", str(folder)], check=True, cwd=ROOT)

    def audit(*options: str) -> None:
        subprocess.run(["rebalance-audit", *options, "--quiet"], check=True, cwd=folder)

    audit("run", "--engine", "local", "--output", "out", "--dumps", "night.jsonl.gz")
    for each in languages:
        audit("report", "--reports", "out/reports", "--language", each, "--output", f"{each}.html")
    return {each: folder / f"{each}.html" for each in languages}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Root, as in a container, has no sandbox.
        browser = playwright.chromium.launch(
            executable_path=os.environ["BROWSER"], args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@dataclass
class Open:
    """A page that a reader has open, and what it did that no page of ours may do."""

    page: Page
    wrong: list[str] = field(default_factory=list)

    def count(self, selector: str) -> int:
        """How many of them a reader sees; in what is folded none."""
        return self.page.locator(f"{selector}:visible").count()

    def ask(self, script: str) -> object:
        return self.page.evaluate(script)


@contextmanager
def opened(
    browser: Browser, file: Path, *, width: int = 1280, scheme: str = "light"
) -> Iterator[Open]:
    """The page at this width; it has asked nobody for anything, and no script of it failed."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
        timezone_id="UTC",
    )
    page = context.new_page()
    seen = Open(page)
    page.on("request", lambda each: seen.wrong.append(each.url))
    page.on("console", lambda each: seen.wrong.append(each.text))
    page.on("pageerror", lambda each: seen.wrong.append(str(each)))
    address = file.as_uri()
    page.goto(address)
    yield seen
    context.close()
    # Its own file, and the icon, which is empty.
    assert [each for each in seen.wrong if not each.startswith((address, "data:"))] == []
