"""The command: which file it writes, where, and what the page links to."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.command_line import CommandLine
from tests.support.written_reports import NOON, publish, report_row

SVG = "{http://www.w3.org/2000/svg}"

WINDOW = {"first_snapshot": "2026-11-20T10:00:00.000Z", "last_snapshot": "2026-11-20T19:59:00.000Z"}
TABLES = {
    "orphaned_queues": [report_row("orphaned_queues", causes=["GHOST_MEMBER"])],
    "group_faults": [report_row("group_faults", fault="GHOST_MEMBER", queues_affected=1)],
    "group_health": [report_row("group_health")],
}


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    publish(folder, "2026-11-20", TABLES, window=WINDOW)
    return folder


@pytest.mark.parametrize(
    ("options", "written"),
    [
        ([], "reports/report/dt=2026-11-20.html"),
        (["--format", "markdown"], "reports/report/dt=2026-11-20.md"),
        (["--output", "there"], "there/dt=2026-11-20.html"),
        (["--output", "new/", "--format", "markdown"], "new/dt=2026-11-20.md"),
        (["--output", "new/page.txt", "--format", "markdown"], "new/page.txt"),
    ],
)
def test_the_file_is_where_it_is_said_to_be(
    reports: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: CommandLine,
    options: list[str],
    written: str,
) -> None:
    folder = reports.parent
    monkeypatch.chdir(folder)
    (folder / "there").mkdir()
    before = {path for path in folder.rglob("*") if path.is_file()}
    out = cli("report", "--reports", reports, *options)
    (new,) = {path for path in folder.rglob("*") if path.is_file()} - before
    assert new == folder / written
    assert (
        out == f"report of 2026-11-20: 1 topic of 1 group has lasting faults, 1 critical. {new}\n"
    )


def test_a_finding_is_a_picture_by_itself(tmp_path: Path, cli: CommandLine) -> None:
    state = {"state_id": "s", "first_seen": NOON, "last_seen": NOON}
    name = "<b>& " + "group " * 20 + "end"
    evil = {"consumer_group": name}
    queues = [{"broker_name": "broker-a", "queue_id": 0}]
    tables = {
        "orphaned_queues": [report_row("orphaned_queues", finding_id="1", **evil)],
        "group_faults": [report_row("group_faults", finding_id="f", topic="U", fault="CONFIG_GAP")],
        "state_runs": [report_row("state_runs", **evil, **state)],
        "allocations": [
            report_row("allocations", **evil, state_id="s", client_id="a", queues=queues)
        ],
    }
    publish(tmp_path, "2026-11-20", tables)
    picture = tmp_path / "x.svg"
    options = ["report", "--reports", tmp_path, "--output", picture, "--finding"]
    cli(*options, "1")
    drawn = ElementTree.parse(picture)  # noqa: S314 - ours
    texts = [each.text or "" for each in drawn.iter(f"{SVG}text")]
    assert f"CRITICAL {name} / T: 1 queue consumed by nobody; " in " ".join("".join(texts).split())
    # A character of 13 pixels is about 8 across, and the picture 960.
    assert max(map(len, texts)) <= 118
    assert "http" not in picture.read_text(encoding="utf-8").replace(SVG[1:-1], "")
    for other, said in (("f", "this finding has no picture"), ("2", "no finding 2 in this run")):
        cli(*options, other, code=3)
        assert said in cli.err


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_standard_output_has_the_report_and_nothing_else(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    report = ["report", "--reports", reports, "--format", form, "--output"]
    cli(*report, "file")
    assert cli.err.count("\n") <= 1, "which settings are read"
    assert cli(*report, "-") == (tmp_path / "file").read_text().removesuffix("\n") + "\n"
    assert "1 critical. standard output\n" in cli.err
    assert not (tmp_path / "-").exists()
    cli(*report, "-", "--quiet")
    assert cli.err == ""


def test_a_page_has_what_findings_mean_and_links_no_file(reports: Path, cli: CommandLine) -> None:
    place = reports / "report"
    page, ticket = place / "dt=2026-11-20.html", place / "dt=2026-11-20.md"

    def written(*options: str) -> str:
        cli("report", "--reports", reports, *options)
        return (ticket if options[0] == "--format" else page).read_text()

    html = written("--top", "9")
    # Of the page on GHOST_MEMBER, which other kinds share.
    assert "stopped sending heartbeats, and a list still has it" in html
    assert "of one client that have messages" not in html
    # Both are read elsewhere: they link to pages that everybody can reach, or to none.
    assert "frozen_process.md" not in html
    assert "frozen_process.md" not in written("--format", "markdown")
    elsewhere = ("--set", "paths.finding_pages=https://wiki.example/x/")
    there = "https://wiki.example/x/frozen_process.md#ghost_member"
    assert f"({there})" in written("--format", "markdown", *elsewhere)
    assert f'href="{there}"' in written("--top", "9", *elsewhere)


@pytest.mark.parametrize(("options", "cards"), [([], 10), (["--top", "2"], 2), (["--top", "0"], 0)])
def test_ten_topics_are_told_in_full_unless_another_number_is_named(
    tmp_path: Path, cli: CommandLine, options: list[str], cards: int
) -> None:
    rows = [report_row("orphaned_queues", topic=f"T{number}") for number in range(12)]
    publish(tmp_path, "2026-11-20", {"orphaned_queues": rows}, window=WINDOW)
    cli("report", "--reports", tmp_path, *options)
    page = (tmp_path / "report" / "dt=2026-11-20.html").read_text()
    assert page.count("<article") == min(cards, 2)
