"""The pages on the findings, as parts of the page of a run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.kinds import KINDS
from jobs.rendering.finding_pages import FindingPages

PAGES = FindingPages.of_this_installation()


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
    (tmp_path / "stacked.md").write_text(
        "# STACKED\n\n## What\nSee [that](stale_channel.md), [this](orphaned.md), <b>bold</b>,\n"
        "[out](https://rocketmq.apache.org), [run](javascript:alert)."
    )
    html = FindingPages(tmp_path).html("STACKED", ["ORPHANED"])
    assert 'See that, <a href="#kind-orphaned">this</a>, &lt;b&gt;bold&lt;/b&gt;' in html
    assert '<a href="https://rocketmq.apache.org">out</a>, run.' in html
    assert "STACKED" not in html


def test_without_the_pages_there_is_no_text_and_no_command(tmp_path: Path) -> None:
    for pages in (FindingPages(), FindingPages(tmp_path)):
        assert (pages.html("STACKED", []), pages.checks("STACKED")) == ("", [])
    # A kind of a later version has none, whatever its name is.
    (tmp_path / "later.md").write_text("# LATER\n\ntext")
    assert FindingPages(tmp_path / "x").html("../LATER", []) == ""


def test_commands_over_two_lines_are_one(tmp_path: Path) -> None:
    (tmp_path / "stacked.md").write_text(
        "# STACKED\n\n## How to confirm\n- `mqadmin a\n  -g GROUP`, `mqadmin b` or `other`\n"
        "- `mqadmin b` again\n\n## How to repair\n`mqadmin updateTopic`\n"
    )
    assert FindingPages(tmp_path).checks("STACKED") == ["mqadmin a -g GROUP", "mqadmin b"]
