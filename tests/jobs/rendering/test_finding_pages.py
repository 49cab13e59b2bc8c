"""The pages on the findings, as parts of the page of a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.declared.kinds import KINDS
from jobs.languages.language import ENGLISH
from jobs.rendering.page import FindingPages

PAGES = FindingPages.of_this_installation(ENGLISH)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_its_text_and_no_link_to_a_file(name: str) -> None:
    html = PAGES.html(name, [name])
    assert html.count("<h3>") >= 3
    links = re.findall('href="(.*?)"', html)
    assert all(link == f"#kind-{name.lower()}" or link.startswith("https://") for link in links)
    assert html.count("<table>") == html.count("<caption>")
    assert "<th>" not in html
    # All of the Markdown was understood.
    assert not re.search(r"^ *(#|\||- )|\]\(", re.sub("<code>.*?</code>", "", html), re.MULTILINE)


def test_a_link_leads_to_a_kind_that_is_shown_beside_it(tmp_path: Path) -> None:
    (tmp_path / "duplicate.md").write_text(
        "# DUPLICATE\n\n## What\nSee [that](stalled.md), [this](orphaned.md), <b>bold</b>,\n"
        "[out](https://rocketmq.apache.org), [run](javascript:alert)."
    )
    html = FindingPages(tmp_path).html("DUPLICATE", ["ORPHANED"])
    assert 'See that, <a href="#kind-orphaned">this</a>, &lt;b&gt;bold&lt;/b&gt;' in html
    assert '<a href="https://rocketmq.apache.org">out</a>, run.' in html
    assert "DUPLICATE" not in html


def test_of_a_page_that_kinds_share_each_has_what_is_of_all_and_of_itself(tmp_path: Path) -> None:
    (tmp_path / "duplicate_client_id.md").write_text(
        "# Both\n\n## What it means\nShared.\n\n### STACKED\nOf the id.\n\n"
        "### DUPLICATE_CLIENT_ID\nOf the cause.\n\n## How to confirm\n### STACKED\n`mqadmin a`\n"
        "\n### DUPLICATE_CLIENT_ID\n`mqadmin b`\n"
    )
    pages = FindingPages(tmp_path)
    for kind, own, other, check in (
        ("STACKED", "Of the id.", "Of the cause.", "mqadmin a"),
        ("DUPLICATE_CLIENT_ID", "Of the cause.", "Of the id.", "mqadmin b"),
    ):
        html = pages.html(kind, [])
        assert "Shared." in html
        assert own in html
        assert other not in html
        assert pages.checks(kind) == [check]


def test_without_the_pages_there_is_no_text_and_no_command(tmp_path: Path) -> None:
    for pages in (FindingPages(), FindingPages(tmp_path)):
        assert (pages.html("DUPLICATE", []), pages.checks("DUPLICATE")) == ("", [])
    # A kind of a later version has none, whatever its name is.
    (tmp_path / "later.md").write_text("# LATER\n\ntext")
    assert FindingPages(tmp_path / "x").html("../LATER", []) == ""


def test_commands_over_two_lines_are_one(tmp_path: Path) -> None:
    (tmp_path / "duplicate.md").write_text(
        "# DUPLICATE\n\n## How to confirm\n- `mqadmin a\n  -g GROUP`, `mqadmin b` or `other`\n"
        "- `mqadmin b` again\n\n## How to repair\n`mqadmin updateTopic`\n"
    )
    assert FindingPages(tmp_path).checks("DUPLICATE") == ["mqadmin a -g GROUP", "mqadmin b"]
