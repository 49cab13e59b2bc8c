"""Small days: nothing lasts of what is ordinary, and each fault that was planted is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.clock import MINUTE
from tests.simulation.days import FAULTS, Day, judge_day, make_day, run_day
from tests.simulation.scoring import FaultRow
from tests.simulation.truth import length
from tests.simulation.world import GROUP


@pytest.mark.parametrize(
    ("minutes", "hours"),
    [
        pytest.param(5, 3, marks=pytest.mark.long),
        *(pytest.param(*day, marks=pytest.mark.house) for day in ((1, 4), (2, 4), (15, 24))),
    ],
)
def test_a_healthy_day_is_well_however_often_rounds_come(
    minutes: int, hours: int, tmp_path: Path
) -> None:
    every = minutes * MINUTE
    verdict = run_day("healthy", 2, tmp_path, hours=hours, groups=5, every=every, faults=False)
    assert not verdict.false
    assert not verdict.unread


@pytest.mark.house
def test_of_a_day_with_faults_each_is_found_where_it_is(tmp_path: Path) -> None:
    groups = len(FAULTS) + 1
    verdict = run_day("faults", 1, tmp_path, hours=2, groups=groups, every=MINUTE, faults=True)
    assert verdict.planted == len(FAULTS)
    assert not (verdict.missed or verdict.late or verdict.false)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """Three hours of three groups."""
    folder, every = tmp_path_factory.mktemp("busy"), 5 * MINUTE
    return make_day("busy", 7, folder, hours=3, groups=3, every=every, faults=False, busy=True)


def test_on_a_busy_day_nothing_is_wrong(busy: Day) -> None:
    for fleet in busy.fleets:
        assert len(fleet.world.processes) > 2 * len(fleet.pods)
        for queue in fleet.truth.exists:
            spans = fleet.truth.orphaned(queue, 0, fleet.until)
            assert max((end - start for start, end in spans), default=0) < 2 * MINUTE, queue
            assert length(fleet.truth.duplicated(queue, 0, fleet.until)) < 10 * MINUTE, queue
        # An id of two processes at a time there is only while one follows the other.
        for client_id, steps in fleet.truth.running.items():
            both = steps.spans(lambda who: len(who) > 1, 0, fleet.until)
            assert not list(both), client_id


def test_what_is_false_of_a_busy_day_is_one_alarm_for_each_group_and_kind(busy: Day) -> None:
    def fault(topic: str, severity: str, persistence: str = "PERSISTENT") -> FaultRow:
        of_time = (10 * MINUTE, 20 * MINUTE)
        return FaultRow("busy", "FLAPPING", topic, *of_time, (), (), persistence, severity)

    of_group = {
        ("busy", f"{GROUP}-00"): [fault("T-00", "WARNING"), fault("U-00", "WARNING")],
        ("busy", f"{GROUP}-01"): [fault("T-01", "INFO")],
        ("busy", f"{GROUP}-02"): [fault("T-02", "CRITICAL", "TRANSIENT")],
    }
    verdict = judge_day(busy, {}, of_group)
    assert verdict.alarms == (("WARNING", "G-00 FLAPPING"),)
    assert len(verdict.false) == 2
