"""answers -> rounds: how long a round takes, and how often one comes."""

from __future__ import annotations

from jobs.judge.result.health import Rounds, find_rounds, with_rounds
from tests.judge.lists import NO_ANSWER, group

A = ["a"]


def test_a_round_takes_from_its_first_answer_to_its_last():
    dossier = group(
        {
            "x": [(0, 1, A), (60, 61, A), (120, 121, A)],
            "y": [(0, 9, A), (60, 69, NO_ANSWER), (120, 150, A)],
        }
    )
    assert find_rounds(dossier) == Rounds(8.0, 60.0)


def test_rounds_of_two_collectors_are_counted_by_broker():
    """Each asks its brokers every 5 min, the second 10 s after the first."""
    each = {
        name: [(300 * n + late, 300 * n + late, A) for n in range(6)]
        for name, late in {"x": 0, "y": 10}.items()
    }
    assert find_rounds(group(each)) == Rounds(0.0, 300.0)
    both = [(60 * n + late, 60 * n + late, A) for n in range(6) for late in (0, 2)]
    assert find_rounds(group({"x": both, "y": both})) == Rounds(0.0, 58.0)


def test_of_one_round_there_is_no_interval_and_of_none_nothing():
    assert find_rounds(group({"x": [(0, 1, A)]})) == Rounds(0.0, None)
    assert find_rounds(group({})) is None


def test_a_round_that_takes_longer_than_a_fault_has_to_last_is_said_to_be_too_wide():
    row = {"reason": "why"}
    wide = with_rounds(row, Rounds(240.0, 300.0), 180)
    assert wide["reason"].startswith("why; a round of questions takes 240 s, longer than a fault")
    assert (wide["round_seconds"], wide["round_interval_seconds"]) == (240.0, 300.0)
    assert with_rounds(row, Rounds(12.0, 60.0), 180)["reason"] == "why"
    assert with_rounds(row, Rounds(0.4, 60.0), 0)["reason"] == "why", "whatever has to last"
    assert with_rounds({"reason": ""}, None, 180) == {
        "reason": "",
        "round_seconds": None,
        "round_interval_seconds": None,
        "rounds_too_wide": None,
    }
