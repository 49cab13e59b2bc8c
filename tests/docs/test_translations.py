"""A translation has what its English page has: the same names in code, figures and links.

Words differ, these do not: an option, a column, a line of a log or a number of seconds that is
missing or wrong in one language is a sentence that somebody changed in the other alone.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from jobs.kinds import KINDS
from tests.docs.test_blocks import ROOT, TRANSLATED, original

#: Names that one language alone has: which command writes a page is for those who write it.
OF_ENGLISH_ALONE = {"docs/findings/README.md": {"make docs"}}
SECTIONS = ["含义", "RocketMQ 为什么察觉不到", "如何确认", "如何修复"]
TRANSLATIONS = [
    page
    for page in [ROOT / "README.zh-CN.md", *sorted(TRANSLATED.rglob("*.md"))]
    if original(page).exists()
]


def prose(text: str) -> str:
    """A page on one line, without its blocks of code: those are compared elsewhere."""
    return " ".join(re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S).split())


def names(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", prose(text)))


def figures(text: str) -> Counter[str]:
    """The numbers; Chinese counts in ten thousands, so that 2 million are 200 of them."""
    text = re.sub(r"(\d+) million", r"\g<1>00 万", prose(text))
    return Counter(re.findall(r"\d[\d.,]*\d|\d", text))


def pages_linked(page: Path) -> set[Path]:
    """The files that a page links to, each as its English page."""
    found = set()
    for target in re.findall(r"\]\((?!https:)([^)\s#]+)", page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve()
        translated = there.is_relative_to(TRANSLATED) or there.name == "README.zh-CN.md"
        found.add(original(there) if translated else there)
    return found


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_translation_has_the_names_figures_and_links_of_its_page(page: Path) -> None:
    english = original(page)
    there, here = english.read_text(encoding="utf-8"), page.read_text(encoding="utf-8")
    missing = OF_ENGLISH_ALONE.get(str(english.relative_to(ROOT)), set())
    assert names(here) == names(there) - missing
    assert figures(here) == figures(there)
    # It may link to more: to the words that it uses, to a page that English only names.
    assert pages_linked(english) - {page} <= pages_linked(page)


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_translation_links_to_translations_where_there_are_any(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve()
        if page.parent == ROOT and there == ROOT / "README.md":
            continue  # The way to the other language.
        assert there not in {original(each) for each in TRANSLATIONS}, target


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_page_in_chinese(kind: str) -> None:
    page = (TRANSLATED / "findings" / KINDS[kind].page).read_text(encoding="utf-8")
    assert page.startswith(f"# {kind}: ")
    assert re.findall(r"^## (.*)$", page, re.M) == SECTIONS


def test_the_chinese_index_has_every_kind_in_order() -> None:
    index = (TRANSLATED / "findings" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\w+)\]\((\w+\.md)\)", index, re.M)
    assert listed == [(kind.name, kind.page) for kind in KINDS.values()]


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_chinese_ends_within_a_sentence(page: Path) -> None:
    # A line's end is shown as a space, which Chinese does not have between two characters.
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^(?!#).*[\u4e00-\u9fff]\n *[\u4e00-\u9fff（]", text, re.M) == []
