"""One round alone: the last lines of the run name what is there."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import MEMBERS, MINUTES, TIMED_OUT, rounds

SHARED = "10.0.0.1@1"
IDS = [SHARED, SHARED, *MEMBERS[2:]]
WHO = f"who: {SHARED}"


@pytest.mark.parametrize(
    ("of_a", "of_b", "said"),
    [
        # Two processes have one id: by AVG of four ids both take a0 and a1, and nobody a2 and a3.
        (
            *(IDS, IDS),
            (
                "Still there not counted yet G / T: 2 queues consumed by nobody",
                WHO,
                "10.0.0.1:40100",
                "10.0.0.1:40101",
                "no list shows yet that its connections stay",
            ),
        ),
        (MEMBERS, TIMED_OUT, ("broker-b/0 at broker-b:10911 of cluster C never answered",)),
    ],
)
def test_one_round_names_what_is_there_and_who_did_not_answer(end_of_run, of_a, of_b, said):
    shown = end_of_run(of_a, of_b, minutes=[0])
    assert [each for each in said if each not in shown] == []


def test_what_lasts_is_not_said_to_be_too_new(end_of_run):
    shown = end_of_run(IDS, IDS, minutes=MINUTES)
    assert "CRITICAL G / T" in shown
    assert "NOW" not in shown


@pytest.fixture
def end_of_run(run):
    """All that a run says where the two brokers list these."""

    def of(of_a, of_b, minutes):
        listed = {"broker-a": of_a, "broker-b": of_b}
        return run(rounds(lambda _, name: listed[name], minutes=minutes))[1]

    return of
