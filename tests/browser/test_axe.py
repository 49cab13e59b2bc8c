"""The rules of axe-core, which a program can check of what WCAG 2 asks: none is broken.

A tool for screen readers and the like reads the page by roles, names and headings; axe-core 4.12
is in the package axe-playwright-python.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Browser

from .conftest import LANGUAGES, opened

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
BROKEN = """axe.run().then((found) => found.violations.flatMap((rule) =>
    rule.nodes.map((each) => `${rule.id}: ${each.html.slice(0, 200)}`)))"""
UNFOLD = "document.querySelectorAll('details').forEach((each) => each.open = true)"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("page", ["sample", "nights", "large"])
def test_no_rule_of_axe_is_broken(
    browser: Browser,
    pages: dict[str, Path],
    large: dict[str, Path],
    page: str,
    language: str,
    scheme: str,
    width: int,
) -> None:
    sample = pages[language]
    file = {
        "sample": sample,
        "nights": sample.parent / f"nights-{language}" / "index.html",
        "large": large[language],
    }[page]
    with opened(browser, file, width=width, scheme=scheme) as seen:
        # The page's policy lets no script of a tag run; what the browser's driver evaluates does.
        seen.ask(AXE)
        for unfold in ("", UNFOLD):
            seen.ask(unfold or "0")
            assert cast("list[str]", seen.ask(BROKEN)) == [], unfold
