"""Rounds that are few, late or one alone: what they show, and what they do not."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import MEMBERS, MINUTES, OFFLINE, TIMED_OUT, rounds


@pytest.mark.parametrize(
    ("every", "away", "certainty", "share_of_time"),
    [
        # It is away when it is asked, and back in between: nobody knows for how long.
        pytest.param(5, "x.x", "POSSIBLE", 2 / 3, id="two of three"),
        pytest.param(5, "xx.x", "POSSIBLE", 3 / 4, id="three of four"),
        pytest.param(5, "xxx.xx.xxx", "POSSIBLE", 8 / 10, id="again and again"),
        # It was away all the time, or but for one time between two long ones.
        pytest.param(5, "xxx", "CERTAIN", 1.0, id="all the time"),
        pytest.param(5, "xxxxx...xxxxx", "CERTAIN", 10 / 13, id="two long times"),
        # What lasts does not fit between two rounds of a minute.
        pytest.param(1, "x.x.x.x.x", "CERTAIN", 5 / 9, id="each minute"),
    ],
)
def test_what_few_coarse_rounds_interrupt_is_possible(audit, every, away, certainty, share_of_time):
    """``away``: by round whether no broker lists a member; before and after all are there."""
    shown = f"...{away}..."
    minutes = [every * number for number in range(len(shown))]
    nobody = {every * number for number, mark in enumerate(shown) if mark == "x"}
    lines = rounds(lambda minute, _: OFFLINE if minute in nobody else MEMBERS, minutes=minutes)

    orphans = audit(lines)["orphaned_queues"]

    assert len(orphans) == 8
    assert {row["causes"][0] for row in orphans} == {"GROUP_OFFLINE"}
    assert {row["certainty"] for row in orphans} == {certainty}
    (share,) = {row["share_of_time"] for row in orphans}
    assert share == pytest.approx(share_of_time)
    assert {row["severity"] for row in orphans} == {"CRITICAL"}


# ---------------------------------------------------------------- a late round


#: At 10:05 to 10:08 nobody asked.
LATE = (0, 1, 2, 3, 4, 9, 10, 11, 12, 13)


def polled(minutes, changed):
    """From the minute ``changed`` on the last member is gone."""
    return rounds(lambda minute, _: MEMBERS if minute < changed else MEMBERS[:3], minutes=minutes)


@pytest.mark.parametrize(
    ("minutes", "changed", "is_said"),
    [(LATE, 9, True), (LATE, 11, False), (range(14), 9, False), (range(0, 70, 5), 25, False)],
)
def test_what_a_late_round_shows_happened_since_the_one_before(audit, minutes, changed, is_said):
    (event,) = audit(polled(minutes, changed))["events"]
    said = "no round was collected between 10:04:00 UTC and 10:09:00 UTC: it happened at some time"
    assert (said in event["evidence"]) == is_said


# ---------------------------------------------------------------- one round alone


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
