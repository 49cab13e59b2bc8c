"""A night that was not read or not audited is an all-clear on no surface."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.reports.tables import PublishedTables
from jobs.storage import Location, Reports
from jobs.verdict.verdict import read_verdict
from tests.verdict.scenarios import DAY, SCENARIOS, Line, Scenario, changed, lines_of, run, surfaces

LEVELS = {"WRONG": "CRITICAL", "INCOMPLETE": "INCOMPLETE", "WELL": "OK"}
#: Scenarios of which every surface is asked: that all agree is the matter of ``test_surfaces``.
ON_ALL_SURFACES = {"a healthy night", "a fault that lasts", "a group that is gone"}


@pytest.mark.long
@pytest.mark.parametrize("scenario", [pytest.param(each, id=each.name) for each in SCENARIOS])
def test_no_surface_gives_an_all_clear_not_earned(scenario: Scenario, tmp_path: Path) -> None:
    code, console = run(scenario, tmp_path, "CRITICAL,INCOMPLETE")
    # Too much that was not understood is an exit code of its own.
    assert (code == 0) is (scenario.state == "WELL")
    assert code in (0, 1, 3)
    # The console has the first of what is missing, and the number of the others.
    assert any(each in " ".join(console.split()) for each in scenario.words or [""])
    reports = Reports(Location(tmp_path / "out" / "reports"))
    verdict = read_verdict(PublishedTables(reports, reports.resolve(DAY)))
    assert verdict.state == scenario.state
    missing = "; ".join(verdict.missing)
    assert [each for each in scenario.words if each not in missing] == []
    if scenario.name not in ON_ALL_SURFACES:
        return
    found, level = surfaces(tmp_path), LEVELS[scenario.state]
    assert f"LEVEL:{level.lower()}" in found.page
    assert found.night == level
    assert found.ticket.startswith(f"# {level}")
    assert found.metrics[f'state{{state="{scenario.state}"}}'] == 1
    assert any(found.gate[name] for name in ("CRITICAL", "INCOMPLETE")) is (code != 0)
    assert found.alert.startswith("nothing to send") is (scenario.state == "WELL")
    texts = {name: text for name, text in found.texts.items() if name != "alert"}
    for words in scenario.words:
        assert [name for name, text in texts.items() if words not in text] == []


def test_the_secret_of_a_client_whose_lines_were_refused_is_published_nowhere(
    tmp_path: Path,
) -> None:
    one = next(line["client_id"] for line in lines_of("S1") if "client_id" in line)

    def refuse(line: Line) -> Line:
        if line.get("client_id") == one:
            line |= {"client_id": "10.0.0.1@secretKey=hunter2hunter2", "body": "{}x"}
        return line

    code, console = run(Scenario("", "", changed("S1", refuse)), tmp_path, "INCOMPLETE")
    found = surfaces(tmp_path)
    assert code
    assert "client 10.0.0.1@secretKey=(secret " in found.texts["page"]
    summaries = list((tmp_path / "out" / "reports").rglob("*.json"))
    every = [console, *found.texts.values(), *(each.read_text() for each in summaries)]
    assert len(every) > 5
    assert not [text for text in every if "hunter2" in text]
