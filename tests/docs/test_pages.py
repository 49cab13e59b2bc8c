"""The docs: a page for each kind of finding, none for what is not there, and links that lead on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.kinds import KINDS

ROOT = Path(__file__).parent.parent.parent
FINDINGS = ROOT / "docs" / "findings"
INDEX = FINDINGS / "README.md"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")]
)

SECTIONS = (
    "## What it means",
    "## Why RocketMQ does not notice",
    "## How to confirm",
    "## How to repair",
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_page_with_what_to_know_and_to_do(kind: str) -> None:
    page = (FINDINGS / f"{kind.lower()}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {kind}: ")
    assert [line for line in page.splitlines() if line.startswith("## ")] == list(SECTIONS)
    for section in page.split("\n## ")[1:]:
        assert len(section) > 60


def test_no_page_is_of_a_kind_that_is_not_there_and_the_index_has_all() -> None:
    pages = {path.stem for path in FINDINGS.glob("*.md")} - {"README"}
    assert pages == {kind.lower() for kind in KINDS}
    listed = re.findall(r"^\| \[(\w+)\]\((\w+)\.md\)", INDEX.read_text(), re.MULTILINE)
    assert sorted(kind for kind, _ in listed) == sorted(KINDS)
    assert all(kind.lower() == page for kind, page in listed)


def slugs(page: str) -> set[str]:
    """The anchors of a page's headings, as they are made where it is shown."""
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert there.is_relative_to(ROOT), target
        if anchor:
            assert anchor in slugs(there.read_text(encoding="utf-8")), target


def test_a_link_to_what_is_not_there_would_be_seen() -> None:
    assert slugs("# Done when\n## `--help`, pinned") == {"done-when", "--help-pinned"}
    assert len([page for page in PAGES if "](" in page.read_text()]) > 5
