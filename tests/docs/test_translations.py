"""A translation has what its English page has: the same sections, names in code, figures and links.

Words differ, these do not: an option, a column, a line of a log or a number of seconds that is
missing or wrong in one language is a sentence that somebody changed in the other alone.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from jobs.declared.kinds import KINDS
from jobs.languages.language import language
from tests.docs.test_blocks import DOCS, IN_CHINESE, ROOT, TRANSLATED, original
from tests.support.blocks import blocks

#: Names that one language alone has: which command writes a page is for those who write it.
OF_ENGLISH_ALONE = {"docs/findings/README.md": {"make docs"}}
#: What a word makes of the number before it.
SCALES = {"million": 10**6, "万": 10**4, "亿": 10**8}
SECTIONS = ["含义", "RocketMQ 为什么察觉不到", "如何确认", "如何修复"]
TRANSLATIONS = [
    page
    for page in [ROOT / "README.zh-CN.md", *sorted(TRANSLATED.rglob("*.md"))]
    if original(page).exists()
]


def without_blocks(text: str) -> str:
    """A page without its blocks of code: those are compared elsewhere."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def prose(text: str) -> str:
    """A page without its blocks, on one line."""
    return " ".join(without_blocks(text).split())


def names(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", prose(text)))


def outline(text: str) -> list[tuple[str, set[str], set[str]]]:
    """By section the level of its heading, its names, and the reports (rocketmq#1547) in it."""
    sections = re.split(r"^(?=#+ )", without_blocks(text), flags=re.M)
    return [
        (re.match("#*", each)[0], names(each), set(re.findall(r"\[([\w-]+#\d+)\]", each)))  # type: ignore[index]
        for each in sections
    ]


def figures(text: str) -> Counter[str]:
    """The numbers, in full: Chinese counts in 万 and 亿 where English has millions."""

    def in_full(match: re.Match[str]) -> str:
        scale = SCALES[match[2]]
        return re.sub(
            r"\d[\d.]*", lambda n: str(round(float(n[0]) * scale)), match[1].replace(",", "")
        )

    listed = r"((?:\d[\d.]*(?:, | and ))*\d[\d.,]*)"
    text = re.sub(rf"{listed} ({'|'.join(SCALES)})", in_full, prose(text))
    return Counter(re.findall(r"\d[\d.,]*\d|\d", text))


def pages_linked(page: Path) -> set[Path]:
    """The files that a page links to, each as its English page or picture."""
    found = set()
    for target in re.findall(r"\]\((?!https:)([^)\s#]+)", page.read_text(encoding="utf-8")):
        there = (page.parent / target.replace(".zh.png", ".png")).resolve()
        translated = there.is_relative_to(TRANSLATED) or there.name == "README.zh-CN.md"
        found.add(original(there) if translated else there)
    return found


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_translation_has_the_sections_names_figures_and_links_of_its_page(page: Path) -> None:
    english = original(page)
    there, here = english.read_text(encoding="utf-8"), page.read_text(encoding="utf-8")
    missing = OF_ENGLISH_ALONE.get(str(english.relative_to(ROOT)), set())
    assert outline(here) == [
        (level, named - missing, reports) for level, named, reports in outline(there)
    ]
    assert figures(here) == figures(there)
    # It may link to more: to the words that it uses, to a page that English only names.
    assert pages_linked(english) - {page} <= pages_linked(page)


def test_what_moved_to_another_section_would_be_seen() -> None:
    assert outline("# A\n`b` [c#1]\n## D\n```sh\n# e\n```\n") == [
        ("", set(), set()),
        ("#", {"b"}, {"c#1"}),
        ("##", set(), set()),
    ]
    assert outline("# A\n`b`\n## C\n`d`\n") != outline("# A\n`b` `d`\n## C\n")


def test_numbers_are_compared_in_full() -> None:
    assert figures("0.5, 5 and 60 million in 3 s") == figures("50 万、500 万和 6,000 万，3 秒")
    assert figures("260 million") == figures("2.6 亿") != figures("2.6 万")


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_translation_quotes_what_its_page_quotes(page: Path) -> None:
    # What is in straight quotes is English: of RocketMQ's logs, or of what the audit prints.
    there, here = (prose(each.read_text(encoding="utf-8")) for each in (original(page), page))
    assert [each for each in re.findall(r'"([^"]+)"', here) if each not in there] == []


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_translation_links_to_translations_where_there_are_any(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s#]+)", page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve()
        if page.parent == ROOT and there == ROOT / "README.md":
            continue  # The way to the other language.
        assert there not in {original(each) for each in TRANSLATIONS}, target


#: What a user reads first; all other pages are in English alone.
FIRST = [
    Path(f"{page}.md")
    for page in ("tutorial", "reading", "alerts", "faq", "field_book", "collect/README")
]


def test_every_page_that_is_read_first_and_every_finding_is_in_chinese() -> None:
    findings = {page.relative_to(DOCS) for page in DOCS.glob("findings/*.md")}
    chinese = {page.relative_to(TRANSLATED) for page in TRANSLATED.rglob("*.md")}
    assert chinese == {*FIRST, *findings}


@pytest.mark.parametrize("name", sorted({kind.page.partition("#")[0] for kind in KINDS.values()}))
def test_every_kind_has_a_page_in_chinese(name: str) -> None:
    page, english = (
        (docs / "findings" / name).read_text(encoding="utf-8") for docs in (TRANSLATED, DOCS)
    )
    assert page.partition(": ")[0] == english.partition(": ")[0]
    assert re.findall(r"^## (.*)$", page, re.M) == SECTIONS
    assert re.findall(r"^### (.*)$", page, re.M) == re.findall(r"^### (.*)$", english, re.M)


def test_the_chinese_index_has_every_kind_in_order_as_the_page_calls_it() -> None:
    index = (TRANSLATED / "findings" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(\w+)\]\(([\w.#]+)\): (.*)$", index, re.M)
    chinese = language("zh")
    assert listed == [(kind.name, kind.page, chinese.of(kind.title)) for kind in KINDS.values()]


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_paragraph_of_chinese_is_one_line(page: Path) -> None:
    # The end of a line is shown as a space, which Chinese does not have.
    assert within_paragraphs(page.read_text(encoding="utf-8")) == []


def within_paragraphs(text: str) -> list[str]:
    """The lines that end before their paragraph or item does, and have Chinese at the end."""
    text = without_blocks(text)
    begins = r" *(?:- |\d+\. |[|#<]|\n)"
    return re.findall(rf"^(?![|#<]).*[^\x00-\x7f](?=\n(?!{begins}).)", text, re.M)


def test_a_line_that_ends_too_early_would_be_seen() -> None:
    assert within_paragraphs("- 一，\n  二。\n- 三。\n\n四\n`five`\n") == ["- 一，", "四"]
    assert (
        within_paragraphs("# 一\n二。\n\n三：\n- 四。\n\n| 五 |\n```sh\nls  # 六\n七\n```\n") == []
    )


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_translation_runs_and_prints_what_its_page_does(page: Path) -> None:
    # Its commands are the English ones, which are run, or print Chinese and are run themselves
    # (test_blocks.py).
    for here, there in zip(blocks(page), blocks(original(page)), strict=True):
        assert here.not_run == there.not_run, here.where
        assert here.prints == there.prints or IN_CHINESE in here.text, here.where
        if here.language == "json":
            assert here.text == there.text, here.where
