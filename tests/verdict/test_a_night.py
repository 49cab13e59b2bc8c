"""A night with a broker's restart and one fault of each planted kind, on every surface.

A smaller copy of ``tests.support.night``: 24 groups, 8 of them with a fault that lasts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli import main
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


def test_what_waits_is_on_every_surface(surfaces: Surfaces, report: PageValues) -> None:
    number = f"{report.verdict.waiting.messages:,} messages wait"
    for surface in ("page", "ticket", "console", "in_python"):
        assert number in surfaces.texts[surface], surface
    first = f"{report.counted[0].waiting.messages:,} messages wait"
    for surface in ("page", "ticket", "console", "alert"):
        assert first in surfaces.texts[surface], surface
    metric = surfaces.metrics['backlog_messages{cluster="prod"}']
    assert metric == report.verdict.waiting.messages
