"""A night that was not read or not audited is an all-clear on no surface."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verdict.scenarios import SCENARIOS, Scenario, run, surfaces

LEVELS = {"WRONG": "CRITICAL", "INCOMPLETE": "INCOMPLETE", "WELL": "OK"}


@pytest.mark.long
@pytest.mark.parametrize("scenario", [pytest.param(each, id=each.name) for each in SCENARIOS])
def test_no_surface_gives_an_all_clear_not_earned(scenario: Scenario, tmp_path: Path) -> None:
    code, console = run(scenario, tmp_path, "CRITICAL,INCOMPLETE")
    # Too much that was not understood is an exit code of its own.
    assert (code == 0) is (scenario.state == "WELL")
    assert code in (0, 1, 3)
    found = surfaces(tmp_path)
    level = LEVELS[scenario.state]
    assert f"LEVEL:{level.lower()}" in found.page
    assert found.night == level
    assert found.ticket.startswith(f"# {level}")
    assert found.metrics[f'state{{state="{scenario.state}"}}'] == 1
    assert any(found.gate[name] for name in ("CRITICAL", "INCOMPLETE")) is (code != 0)
    assert found.alert.startswith("nothing to send") is (scenario.state == "WELL")
    texts = {**found.texts, "console": " ".join(console.split())}
    texts.pop("alert")  # it has the first gap and the number of the others
    assert [name for name, text in texts.items() if scenario.words not in text] == []
