"""The strips of the last nights, the index of them, and a folder of linked pages."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from datetime import date, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from jobs.declared.kinds import KINDS, kind_of
from jobs.rendering.nights import Night, Nights, history_of, read_history
from jobs.rendering.write import Look, NightPage, to_index, write_site
from jobs.storage import Location, Reports
from tests.support.command_line import CommandLine
from tests.support.html import Page
from tests.support.reports import last_pointer
from tests.support.written_reports import NOON, publish, report_row


def summary(left_out: int = 0, **levels: str | dict[str, Any]) -> dict[str, Any]:
    groups = {
        name: level if isinstance(level, dict) else {"level": level, "findings": 1}
        for name, level in levels.items()
    }
    return {"groups": {"clusters": {"C": groups}, "left_out": left_out}}


def night(day: int, **levels: str | dict[str, Any]) -> Night:
    return Night(f"2026-11-{day:02}", is_published=True, summary=summary(**levels))


def missing(day: int) -> Night:
    return Night(f"2026-11-{day:02}", is_published=False, summary=None)


def a_page(*causes: str, **anchors: str) -> NightPage:
    """A page with so many topics of each cause."""
    named = {("C", group): anchor for group, anchor in anchors.items()}
    return NightPage(named, Counter(map(kind_of, causes)))


def audited(folder: Path, day: str, **levels: str) -> None:
    """A published night with a finding of each group that is CRITICAL; all of them have health."""
    bad = [group for group, level in levels.items() if level == "CRITICAL"]
    told = {"nights_open": 4, "open_since": NOON}
    tables = {
        "orphaned_queues": [report_row("orphaned_queues", consumer_group=g, **told) for g in bad],
        "group_health": [report_row("group_health", consumer_group=group) for group in levels],
    }
    run = {"schema_version": 1, "engine": "local", "settings": "0123456789abcdef"}
    window = {"first_snapshot": f"{day}T10:00:00Z", "last_snapshot": f"{day}T19:59:00Z"}
    run |= {"versions": {"rebalance-audit": "0.2.0"}, "window": window}
    publish(folder, day, tables, **run, **summary(**levels))


def test_a_night_without_a_run_is_missing_and_not_clean() -> None:
    nights = [night(1, G="CRITICAL"), missing(2), night(3, G="OK")]
    (strip,) = history_of(nights).strips
    assert strip.levels == ("CRITICAL", "MISSING", "OK")
    assert strip.sentence == "1 night CRITICAL, 1 MISSING, 1 OK"


def test_what_was_open_and_was_not_looked_for_does_not_look_repaired() -> None:
    """A group that was not collected had a white cell, and the chart of open findings fell."""
    gone = {"level": "NOT_AUDITED", "findings": 0, "left_open": "CRITICAL"}
    milder = {"level": "WARNING", "findings": 1, "left_open": "CRITICAL"}
    worse = {"level": "CRITICAL", "findings": 1, "left_open": "WARNING"}
    nights = [night(1, G="CRITICAL"), night(2, G=gone), night(3, G=milder), night(4, G=worse)]
    (strip,) = history_of(nights).strips
    assert strip.levels == ("CRITICAL", "OPEN_CRITICAL", "OPEN_CRITICAL", "CRITICAL")
    assert strip.sentence == "1 night CRITICAL, 2 CRITICAL NOT LOOKED FOR, 1 CRITICAL"
    pages = {
        "2026-11-01": a_page("STALLED", "STALLED"),
        "2026-11-02": a_page()._replace(left_open=2),
    }
    text = to_index(history_of(nights[:2]), pages)
    assert '<td class="n_open_critical"><a href="dt=2026-11-02.html#groups">C?</a></td>' in text
    boxes = re.findall('<rect class="left-open" x="(.*?)%" y="(.*?)%".* height="(.*?)%"/>', text)
    assert boxes == [("55.0", "0.0", "100.0")], "as high as what was found the night before"
    assert "<title>2026-11-02: open before and not looked for: 2</title>" in text


def test_a_known_issue_is_neither_well_nor_wrong() -> None:
    known = {"level": "INFO", "findings": 0, "known": "CRITICAL"}
    beside = {"level": "WARNING", "findings": 1, "known": "CRITICAL"}
    (strip,) = history_of([night(1, G=known), night(2, G=beside), night(3, G="INFO")]).strips
    assert strip.levels == ("KNOWN_CRITICAL", "WARNING", "INFO")
    text = to_index(history_of([night(1, G=known)]), {})
    assert '<td class="n_known_critical">c</td>' in text


def test_a_night_says_how_complete_it_was_and_what_is_new_returned_and_mended() -> None:
    complete = {"level": "OK", "new": 0, "returned": 0, "resolved": 1_200, "left_open": 0}
    complete |= {"gaps": {}, "not_audited": {}}
    lacking = {"level": "CRITICAL", "new": 3, "returned": 1, "resolved": 0, "left_open": 2}
    unaudited = {"NO_BROKER_ANSWERED": {"groups": 1, "topics": 5}}
    lacking |= {"gaps": {"BROKER_SILENT": 1}, "not_audited": unaudited}
    earlier = {"level": "OK", "left_open": 0, "gaps": {}, "not_audited": {}}
    verdicts = [{}, {"verdict": earlier}, {"verdict": lacking}, {"verdict": complete}]
    nights = [
        Night(f"2026-11-{day:02}", is_published=True, summary=summary(G="OK") | verdict)
        for day, verdict in enumerate(verdicts, 1)
    ]
    table = to_index(history_of(nights), {}).partition('<table class="nights">')[2]
    rows = [re.findall("<td.*?>(.*?)</td>", row)[5:9] for row in re.findall("<tr>.*", table)[1:]]
    what = "not audited: 5 topics (no broker answered); not looked for: 2 findings; "
    what += "not read: BROKER_SILENT 1"
    assert rows == [
        ["0", "0", "1,200", "COMPLETE"],
        ["3", "1", "0", f"<strong>INCOMPLETE</strong>: {what}"],
        ["?", "?", "?", "COMPLETE"],
        ["?", "?", "?", "not known"],
    ]


def test_what_a_summary_does_not_say_is_not_taken_for_clean() -> None:
    damaged = Night("2026-11-01", is_published=True, summary=None)
    with_others = Night("2026-11-02", is_published=True, summary=summary(7, other="OK"))
    nights = [damaged, with_others, night(3, other="OK"), night(4, G="WARNING")]
    strips = {strip.consumer_group: strip.levels for strip in history_of(nights).strips}
    assert strips["G"] == ("UNKNOWN", "UNKNOWN", "NO_GROUP", "WARNING")


def test_groups_without_findings_are_counted_and_the_worst_of_now_come_first() -> None:
    nights = [
        night(1, now="OK", before="CRITICAL", well="OK", never="NOT_AUDITED"),
        night(2, now="WARNING", before="OK", well="OK", never="NOT_AUDITED"),
    ]
    history = history_of(nights)
    assert [strip.consumer_group for strip in history.strips] == ["now", "never", "before"]
    assert history.well == 1


def test_the_last_nights_are_days_from_the_first_that_was_published(tmp_path: Path) -> None:
    reports = Reports(Location(tmp_path))
    for day in ("2026-11-14", "2026-11-16", "2026-11-20"):
        audited(tmp_path, day, G="OK")
    dates = [each.date for each in read_history(reports, "2026-11-16", 30).nights]
    assert dates == ["2026-11-14", "2026-11-15", "2026-11-16"]
    assert len(read_history(reports, "2026-11-20", 3).nights) == 3


def test_a_night_whose_pointer_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    audited(tmp_path, "2026-11-19", G="CRITICAL")
    audited(tmp_path, "2026-11-20", G="CRITICAL")
    last_pointer(tmp_path, "dt=2026-11-19").write_text("{")
    for manifest in (tmp_path / "_manifests" / "dt=2026-11-19").iterdir():
        manifest.write_text("{")
    history = read_history(Reports(Location(tmp_path)), "2026-11-20", 30)
    (strip,) = history.strips
    assert strip.levels == ("UNKNOWN", "CRITICAL")


def links(page: Path) -> list[str]:
    found = (each.get("href", "") for each in Page(page.read_text()).all("a"))
    return [each for each in found if each.endswith(".html") and not each.startswith(("#", "http"))]


def test_a_site_links_each_night_with_those_around_it(tmp_path: Path, cli: CommandLine) -> None:
    for day in ("2026-11-16", "2026-11-18", "2026-11-20"):
        audited(tmp_path, day, G="CRITICAL")
    out = cli("report", "--nights=30", "--reports", tmp_path, "--output", tmp_path / "site")
    assert "site: 3 pages up to 2026-11-20" in out
    site = tmp_path / "site"
    pages = ["dt=2026-11-16.html", "dt=2026-11-18.html", "dt=2026-11-20.html"]
    assert sorted(path.name for path in site.iterdir()) == [*pages, "index.html"]
    assert set(links(site / "index.html")) == set(pages)
    assert links(site / pages[0]) == ["index.html", pages[1]]
    assert links(site / pages[1]) == [pages[0], "index.html", pages[2]]
    assert links(site / pages[2]) == [pages[1], "index.html"]
    assert "4 nights" in (site / pages[2]).read_text()


def test_a_damaged_night_alone_has_no_page_and_no_link(tmp_path: Path, cli: CommandLine) -> None:
    for day in ("2026-11-18", "2026-11-19", "2026-11-20"):
        audited(tmp_path, day, G="CRITICAL")
    shutil.rmtree(tmp_path / "orphaned_queues" / "dt=2026-11-19")
    reports, folder = Reports(Location(tmp_path)), tmp_path / "site"
    site = write_site(reports, "2026-11-20", 30, str(folder), Look(10))
    assert list(site.pages) == ["2026-11-18", "2026-11-20"]
    (failed,) = site.failed
    assert failed.startswith("no page of 2026-11-19: ")
    assert links(folder / "dt=2026-11-20.html") == ["dt=2026-11-18.html", "index.html"]
    assert set(links(folder / "index.html")) == {"dt=2026-11-18.html", "dt=2026-11-20.html"}
    # The index has the night all the same.
    assert "2026-11-19" in (folder / "index.html").read_text()
    cli("report", "--nights=30", "--reports", tmp_path, "--output", folder, code=4)


def test_each_cell_is_a_link_to_where_the_page_of_that_night_has_the_group(tmp_path: Path) -> None:
    audited(tmp_path, "2026-11-16", G="CRITICAL", later="OK")
    audited(tmp_path, "2026-11-18", G="OK", later="CRITICAL", gone="NOT_AUDITED")
    folder = tmp_path / "site"
    write_site(Reports(Location(tmp_path)), "2026-11-18", 30, str(folder), Look(10))
    index = (folder / "index.html").read_text()
    cells = {
        group: re.findall('<td class="n_[a-z_]+">(?:<a href="(.*?)">)?', row)
        for group, row in re.findall(r'class="id">(\w+)</bdi></th>(.*)</tr>', index)
    }
    assert cells == {
        "G": ["dt=2026-11-16.html#G/T", "", "dt=2026-11-18.html#groups"],
        "later": ["dt=2026-11-16.html#groups", "", "dt=2026-11-18.html#later/T"],
        "gone": ["", "", "dt=2026-11-18.html#groups"],
    }
    for link in filter(None, chain(*cells.values())):
        page, _, anchor = link.partition("#")
        assert (folder / page).read_text().count(f'id="{anchor}"') == 1


def test_a_night_without_a_page_has_no_links_and_one_that_says_nothing_has() -> None:
    nights = [night(1, G="WARNING"), Night("2026-11-02", is_published=True, summary=None)]
    text = to_index(history_of(nights), {"2026-11-02": a_page(G="G/T")})
    assert '<td class="n_warning">W</td>' in text
    assert '<td class="n_unknown"><a href="dt=2026-11-02.html#G/T">?</a></td>' in text


def test_the_chart_has_a_bar_for_each_cause_and_a_gap_for_each_night_without_a_page() -> None:
    damaged = Night("2026-11-03", is_published=True, summary=None)
    history = history_of([night(1, G="CRITICAL"), missing(2), damaged, night(4, G="OK")])
    causes = ("STRATEGY_MISMATCH", "GHOST_MEMBER", "STRATEGY_MISMATCH")
    text = to_index(history, {"2026-11-01": a_page(*causes), "2026-11-04": a_page()})
    chart = text.partition('<svg class="chart"')[2].partition("</svg>\n<ul")[0]
    titles = re.findall('<rect class="(.*?)".*?<title>(.*?)</title>', chart)
    said = f"{kind_of('STRATEGY_MISMATCH').title}: 2; {kind_of('GHOST_MEMBER').title}: 1"
    assert titles == [
        ("hit", f"2026-11-01: {said}"),
        ("gap", "2026-11-02: no audit of this night"),
        ("gap", "2026-11-03: the audit of this night does not say"),
        ("hit", "2026-11-04: no lasting findings"),
    ]
    # Whoever does not see the chart reads the same in the table.
    table = text.partition('<table class="nights">')[2]
    assert f'<td class="wide">{said}</td>' in table
    assert '<td class="wide">no lasting findings</td>' in table
    assert "<svg" not in to_index(history, {})
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    named = [each.get("aria-labelledby") for _, each in page.elements if "aria-labelledby" in each]
    assert len(set(ids)) == len(ids)
    assert set(named) <= set(ids)


def test_no_name_changes_what_the_index_is_made_of() -> None:
    name = "<script>alert(1)</script>\"'\u202e{{ 7 * 7 }}"
    text = to_index(history_of([night(1, **{name: "CRITICAL"})]), {})
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "\u202e" not in text
    assert "49" not in re.sub(r"#[0-9a-f]{6}", "", text)


def test_the_index_of_many_groups_stays_small() -> None:
    names = {f"GID_payment-{number:04}": "WARNING" for number in range(1_000)}
    page = a_page(*KINDS, **{name: f"{name}/TOPIC_payments" for name in names})
    first = date(2026, 9, 1)
    days = [(first + timedelta(days=each)).isoformat() for each in range(90)]
    nights = [Night(day, is_published=True, summary=summary(1_000, **names)) for day in days]
    text = to_index(history_of(nights), dict.fromkeys(days, page))
    assert len(text) < 1_300_000
    assert "889 more groups not shown" in text


def test_the_nights_around_the_first_and_the_last() -> None:
    assert Nights.around("2026-11-18", ["2026-11-18"]) == Nights(None, None)
    nights = ["2026-11-16", "2026-11-18", "2026-11-20"]
    assert Nights.around("2026-11-17", nights) == Nights("2026-11-16", "2026-11-18")


@pytest.mark.parametrize("number", ["0", "1000", "-1", "x"])
def test_a_number_of_nights_that_is_none_is_refused(number: str, cli: CommandLine) -> None:
    cli("report", "--reports", "out", f"--nights={number}", code=2)
    assert "expected a" in cli.err
