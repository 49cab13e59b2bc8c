"""A night with a broker's restart and one fault of each planted kind, on every surface.

A smaller copy of ``tests.support.night``: 24 groups, 8 of them with a fault that lasts.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.declared.kinds import INFO
from jobs.rendering.nights import read_history
from jobs.rendering.page import to_html
from jobs.rendering.page_values import PageValues, build_report
from jobs.reports.tables import PublishedTables
from jobs.storage import Location, Reports
from tests.support.night import FAULTS, Group, groups_of, write_night
from tests.support.surfaces import Surfaces, surfaces_of

pytestmark = pytest.mark.long

DAY = "2026-11-20"
RESTART = (
    "10:30:03 the master of broker-a left, back at 10:32:03: 24 groups touched, "
    "24 recovered by 10:33:03, no queue lost"
)
GROUPS = groups_of(24, len(FAULTS))
FAULTY = [each for each in GROUPS if each.fault]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("night")
    dump = write_night(folder, GROUPS)
    options = ["--engine", "local", "--workers", "1", "--quiet"]
    assert main(["run", "--dumps", str(dump), "--output", str(folder), *options]) == 0
    return folder / "reports"


@pytest.fixture(scope="module")
def surfaces(folder: Path) -> Surfaces:
    return surfaces_of(folder, DAY)


@pytest.fixture(scope="module")
def report(folder: Path) -> PageValues:
    reports = Reports(Location(folder))
    published = reports.resolve(DAY)
    return build_report(published, PublishedTables(reports, published), 10)


def test_a_restart_is_one_line_on_each_surface_and_the_first_one(surfaces: Surfaces) -> None:
    texts = surfaces.texts
    for surface in ("page", "ticket", "console"):
        assert RESTART in texts[surface], surface
    # In a message about many topics it may be cut.
    assert RESTART[:80] in texts["alert"]
    for surface in ("page", "ticket", "console", "alert"):
        # The page has it in its picture, too, and before the names that it folded.
        times = texts[surface].count("10:30:03 the master")
        assert times == 1 or (surface == "page" and times > 1), surface
    # What is missing goes to standard error.
    lines = [each for each in surfaces.console.splitlines() if "not complete" not in each]
    assert lines[0] == RESTART
    happened = texts["page"].partition("What happened")[2]
    assert happened.strip().startswith(RESTART)
    passed = texts["page"].partition("Passed by itself: ")[2]
    assert passed.partition("10:30:03")[0].count(" / ") == 0


def test_each_fault_that_lasts_is_found_and_no_other(report: PageValues) -> None:
    """The truth is what was planted; GROUP_OFFLINE is there twice, with messages and without."""
    found = {each.place.consumer_group: each for each in reversed(report.counted)}
    assert set(found) == {each.name for each in FAULTY}

    def names(group: Group) -> set[str]:
        problem = found[group.name]
        return {fault.fault for fault in problem.there} | {*problem.lasting}

    assert [each.name for each in FAULTY if FAULTS[each.fault] not in names(each)] == []


def test_what_waits_comes_first_and_idle_queues_after_it(report: PageValues) -> None:
    order = [each.place.consumer_group for each in report.counted if "%RETRY" not in each.place[2]]
    planted = {each.name: each for each in FAULTY}
    kinds = [planted[name].fault for name in order]
    assert kinds[0] == "stalled"
    assert kinds.index("idle and dead") > kinds.index("offline")
    (stalled,) = (each for each in FAULTY if each.fault == "stalled")
    # 3 queues that 20,000 messages a minute come to; of the others the last message is on its way.
    unread = 3 * 20_000 * (44 - stalled.begins)
    waiting = report.counted[0].waiting
    assert (waiting.messages, waiting.per_minute) == (unread + 9, 60_000)
    assert waiting.first_seen is not None
    assert (waiting.first_seen.hour, waiting.first_seen.minute) == (10, stalled.begins + 1)
    words = f"{unread + 9:,} messages wait, 60,000 more a minute"
    assert words in report.counted[0].headline


def test_what_waits_is_on_every_surface(surfaces: Surfaces, report: PageValues) -> None:
    number = f"{report.verdict.waiting.messages:,} messages wait"
    for surface in ("page", "ticket", "console", "in_python"):
        assert number in surfaces.texts[surface], surface
    first = f"{report.counted[0].waiting.messages:,} messages wait"
    for surface in ("page", "ticket", "console", "alert"):
        assert first in surfaces.texts[surface], surface
    metric = surfaces.metrics['backlog_messages{cluster="prod"}']
    assert metric == report.verdict.waiting.messages


def test_what_passed_has_no_card_and_no_box_of_what_to_do(report: PageValues) -> None:
    assert {card.problem.standing for card in report.cards} == {"COUNTED"}
    html = to_html(report, "reports")
    passed = html.partition('id="passed"')[2].partition("</details>")[0]
    assert passed.count("<li id=") >= 16
    assert "todo" not in passed
    for card in re.findall(r"<article.*?</article>", html, re.S):
        own = re.sub(r'<details class="retry.*?</details>', "", card, flags=re.S)
        assert own.count('class="todo"') <= 1
    events = [each.headline for each in report.passed]
    assert events[0] == RESTART
    # All that passed began with the restart.
    assert len(events) == 1


def test_nights_show_the_groups_of_which_something_lasted_alone(folder: Path) -> None:
    history = read_history(Reports(Location(folder)), DAY, 1)
    assert {each.consumer_group for each in history.strips} == {each.name for each in FAULTY}
    levels = {level for night in history.nights for level in night.levels.values()}
    assert INFO in levels
    assert history.well == len(GROUPS) - len(FAULTY)
