"""The docs: a page for each kind of finding, none for what is not there, and links that lead on."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from jobs.collect.questions import RequestCode
from jobs.declared.kinds import KINDS
from jobs.engines.environment import RANGES
from jobs.schemas import REPORT_TABLES

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
FINDINGS = DOCS / "findings"
INDEX = FINDINGS / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "tests").rglob("*.md")])

SECTIONS = (
    "## What it means",
    "## Why RocketMQ does not notice",
    "## How to confirm",
    "## How to repair",
)


#: By page the kinds that it is about.
SHARED = {
    page: {name for name, kind in KINDS.items() if kind.page.partition("#")[0] == page}
    for page in {kind.page.partition("#")[0] for kind in KINDS.values()}
}


@pytest.mark.parametrize("name", sorted(SHARED))
def test_every_kind_has_a_page_with_what_to_know_and_to_do(name: str) -> None:
    page = (FINDINGS / name).read_text(encoding="utf-8")
    titled = page.partition("\n")[0].removeprefix("# ").partition(": ")[0].split(", ")
    assert set(titled) == SHARED[name]
    # Of a page that several share each has a part of its own, to which links lead.
    assert set(re.findall(r"^### (.*)$", page, re.M)) == set(titled if titled[1:] else [])
    assert [line for line in page.splitlines() if line.startswith("## ")] == list(SECTIONS)
    for section in page.split("\n## ")[1:]:
        assert len(section) > 60


@pytest.mark.parametrize("language", ["", "zh/"])
def test_a_page_names_what_users_reported_of_its_kind(language: str) -> None:
    book = (DOCS / language / "field_book.md").read_text(encoding="utf-8")
    reported = 0
    for section in re.split(r"^(?=##)", book, flags=re.MULTILINE):
        (anchor, *_) = slugs(section.partition("\n")[0]) or ("",)
        # Most reports are of these two.
        for kind in KINDS.keys() - {"ORPHANED", "DUPLICATE"}:
            if f"`{kind}`" in section:
                page = DOCS / language / "findings" / KINDS[kind].page.partition("#")[0]
                assert f"/field_book.md#{anchor})" in page.read_text("utf-8"), (kind, anchor)
                reported += 1
    assert reported > 20


def test_no_page_is_of_a_kind_that_is_not_there_and_the_index_has_all() -> None:
    assert {path.name for path in FINDINGS.glob("*.md")} == {"README.md", *SHARED}
    listed = re.findall(r"^- \[(\w+)\]\(([\w.#]+)\): ", INDEX.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted((name, kind.page) for name, kind in KINDS.items())


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


def test_the_readme_is_short_and_begins_with_what_to_type() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 150
    assert re.search(r"^make \w+", readme, re.M | re.S)[0] == "make audit"  # type: ignore[index]
    # What the picture shows is what the report of the same dumps says.
    verdicts = re.findall(r"\d+ topics of \d+ groups have lasting faults", readme)
    assert len(verdicts) == 2
    assert len(set(verdicts)) == 1


#: What people read: pages and settings, and the sources with their names and docstrings.
TEXTS = [
    *ROOT.glob("*.md"),
    *DOCS.rglob("*.md"),
    *DOCS.rglob("*.toml"),
    *ROOT.glob("conf/*"),
    *(each for root in ("jobs", "rebalance_core") for each in (ROOT / root).rglob("*.py")),
    *ROOT.glob("jobs/rendering/templates/*"),
]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_text_has_no_word_with_a_meaning_of_our_own(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # What a shell's prediction was called before, which still works.
    text = text.replace("`told`", "").replace("def told(self)", "")
    found = re.findall(r"\b(?:told|tells|stands?|stood|stretch(?:es)?)\b.*", text)
    assert found == []  # shows, reports, is; distinguishes; does not move; a time


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_a_page_names_the_versions_that_the_project_is_for(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pythons = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python ::" in each]
    assert f"{', '.join(pythons[:-1])} or {pythons[-1]}" in text
    oldest, too_new = RANGES["pyspark"]
    assert f"{oldest} or a later {int(too_new) - 1}.x" in text
    assert re.search(rf"\bpandas {RANGES['pandas'][1]}\b|\| {RANGES['pandas'][0]} or a later", text)


def test_the_guide_to_findings_has_every_report_table() -> None:
    guide = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
    table = guide.partition("\n## The tables\n")[2].partition("\n#")[0]
    first_cells = "".join(re.findall(r"^\| (`.+?`) \|", table, re.M))
    assert set(re.findall(r"\w+", first_cells)) == {table.name for table in REPORT_TABLES}


def test_the_site_has_every_page() -> None:
    site = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    shown = set(re.findall(r": ([\w/.-]+\.md)$", site, re.M))
    pages = {str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]}
    # The index of the findings leads to their pages; a change of the next release is no page yet.
    left_out = re.compile(r"/findings/(?!README)|/changes/")
    assert shown == {page for page in pages if not left_out.search(page)}


def lists_within_paragraphs(text: str) -> list[str]:
    """The first items that are right below a text: the site shows them as a part of it."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    found = []
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.strip().splitlines() if not line.startswith("#")]
        first = [re.match(r"- |\d+\. |\|", line) is not None for line in lines]
        if any(first) and not first[0]:
            found.append(lines[first.index(True)])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_list_or_table_has_an_empty_line_before_it(page: Path) -> None:
    assert lists_within_paragraphs(page.read_text(encoding="utf-8")) == []


def test_a_list_within_a_paragraph_would_be_seen() -> None:
    assert lists_within_paragraphs("# One\n- two\n\nthree:\n- four\n  five\n- six\n") == ["- four"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_folder_of_this_machine(page: Path) -> None:
    assert not re.search(r"/work/|/tmp/|/root/|\bissue \d", page.read_text(encoding="utf-8"))


def test_a_link_to_what_is_not_there_would_be_seen() -> None:
    assert slugs("# Done when\n## `--help`, pinned") == {"done-when", "--help-pinned"}
    assert len([page for page in PAGES if "](" in page.read_text()]) > 5


def test_every_text_counts_the_requests_of_the_collector_right() -> None:
    english, chinese = {9: ("nine", "九")}[len(RequestCode)]
    texts = ("README.md", "docs/faq.md", "docs/collect/README.md", "jobs/collect/__init__.py")
    for name in texts:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert re.search(rf"\b{english} requests\b", text, re.I), name
    for name in ("README.zh-CN.md", "docs/zh/faq.md", "docs/zh/collect/README.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert re.findall(r"([一二三四五六七八九十]+)种请求", text) == [chinese], name


@pytest.mark.parametrize("page", ["reading.md", "zh/reading.md"])
def test_the_table_of_severities_says_what_the_code_does(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(CRITICAL|WARNING|INFO)` \| (.*) \|$", text, re.MULTILINE))
    # GROUP_NOT_CONSUMING has no findings, warning_probability makes findings INFO that last, and
    # what left the route harms nobody once it is back: severity.py.
    assert "GROUP_NOT_CONSUMING" in rows["CRITICAL"]
    assert "warning_probability" in rows["INFO"]
    assert "ROUTE_CHANGED" in rows["INFO"]
    assert all("QUEUES_LEFT_ROUTE" in rows[each] for each in ("CRITICAL", "INFO"))


def test_contributing_names_tests_that_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = [*(ROOT / "tests").rglob("test_*.py")]
    sources = "".join(each.read_text(encoding="utf-8") for each in files)
    there = {*re.findall(r"def (test_\w+)", sources), *(each.name for each in files)}
    for name, cut in re.findall(r"`(?:tests/[\w/]+/)?(test_\w+(?:\.py)?)(\.\.\.)?`", text):
        assert name in there or (cut and any(each.startswith(name) for each in there)), name


def test_the_exercises_name_what_is_in_the_files_that_they_name() -> None:
    """A name in a table is in a file of its row; one beside a file, ``X`` of ``y.py``, is there."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Exercises")[2]
    folders = (ROOT / each for each in ("jobs", "rebalance_core", "tests"))
    files = [each for folder in folders for each in folder.rglob("*.*")]
    name, path = r"`(?:\w+\.)?(_\w+|[A-Z]\w+)`", r"`([\w./]+\.(?:py|toml|json))`"
    # What a row with a new file names may be in that file alone.
    rows = [row for row in re.findall(r"^\| `.*", text, re.MULTILINE) if "(new)" not in row]
    named = [(each, re.findall(path, row)) for row in rows for each in re.findall(name, row)]
    named += [(each, [of]) for each, of in re.findall(rf"{name}(?: of| in)? \(?{path}", text)]
    assert len(named) > 20
    for each, places in named:
        found = [file for file in files if any(file.match(place) for place in places)]
        sources = "".join(file.read_text(encoding="utf-8") for file in found)
        assert re.search(rf"\b{each}\b", sources), f"{each} is not in {' or '.join(places)}"


def test_contributing_says_where_a_fault_begins_that_no_repair_proves() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.search(
        r"A fault that no repair proves .*?EXPRESSION_MISMATCH.*?RULES", text, re.DOTALL
    )
