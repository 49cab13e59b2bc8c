"""Small days: nothing lasts of what is ordinary, and each fault that was planted is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.clock import MINUTE
from tests.simulation.days import FAULTS, run_day


@pytest.mark.long
@pytest.mark.parametrize(("minutes", "hours"), [(1, 4), (2, 4), (5, 10), (15, 24)])
def test_a_healthy_day_is_well_however_often_rounds_come(
    minutes: int, hours: int, tmp_path: Path
) -> None:
    every = minutes * MINUTE
    verdict = run_day("healthy", 2, tmp_path, hours=hours, groups=5, every=every, faults=False)
    assert not verdict.false
    assert not verdict.unread


@pytest.mark.long
def test_of_a_day_with_faults_each_is_found_where_it_is(tmp_path: Path) -> None:
    groups = len(FAULTS) + 1
    verdict = run_day("faults", 1, tmp_path, hours=2, groups=groups, every=MINUTE, faults=True)
    assert verdict.planted == len(FAULTS)
    assert not (verdict.missed or verdict.late or verdict.false)
