"""Small days: nothing lasts of what is ordinary, and each fault that was planted is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.clock import MINUTE
from tests.simulation.days import FAULTS, run_day


@pytest.mark.long
def test_of_a_healthy_day_nothing_lasts(tmp_path: Path) -> None:
    verdict = run_day("healthy", 2, tmp_path, hours=4, groups=5, every=MINUTE, faults=False)
    assert not verdict.false


@pytest.mark.long
def test_of_a_day_with_faults_each_is_found_where_it_is(tmp_path: Path) -> None:
    groups = len(FAULTS) + 1
    verdict = run_day("faults", 1, tmp_path, hours=2, groups=groups, every=MINUTE, faults=True)
    assert verdict.planted == len(FAULTS)
    assert not (verdict.missed or verdict.late or verdict.false)
