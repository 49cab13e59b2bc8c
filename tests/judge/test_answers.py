"""polls -> what each broker says at each snapshot: held, bridged, or not known."""

from __future__ import annotations

import pytest

from jobs.judge.observe.answers import NOTHING, broker_answers, in_force, snapshots_of, times_of
from jobs.judge.result.health import Rounds, find_rounds, with_rounds
from jobs.judge.times import watches
from tests.judge.lists import NO_ANSWER, NOT_ONLINE, group
from tests.judge.phases import at


def given(polls, broker="x"):
    """By second of the snapshot what counts of the broker; None: nothing is known."""
    answers = broker_answers(group(polls).polls)
    snapshots = snapshots_of(answers)
    (of_broker,) = [each for each in answers if each.witness[0] == broker]
    return {
        int(snapshot // at(1)): None if poll == NOTHING else of_broker.name_of(poll)
        for snapshot, poll in zip(
            snapshots.tolist(), in_force(of_broker, snapshots).tolist(), strict=True
        )
    }


def rounds(*answers, every=60):
    """Each round's answer; None: the broker was not asked."""
    return [
        (every * number, every * number, answer)
        for number, answer in enumerate(answers)
        if answer is not None
    ]


A = ["a"]
LISTED = "[('a', 'a:x')]"


@pytest.mark.parametrize(
    ("of_x", "of_y", "said"),
    [
        # A poll that is missing between two answers is bridged; what was before the gap counts.
        (rounds(A, None, A, A), rounds(A, A, A, A), [LISTED] * 4),
        (rounds(A, NO_ANSWER, A, A), rounds(A, A, A, A), [LISTED] * 4),
        (rounds(A, None, ["b"]), rounds(A, A, A), [LISTED, LISTED, "[('b', 'b:x')]"]),
        # No answer for long is no answer.
        (rounds(A, *[NO_ANSWER] * 4, A), rounds(*[A] * 6), [LISTED, *[NO_ANSWER] * 4, LISTED]),
        # A broker that is asked no more is not known.
        (rounds(A, A), rounds(A, A, A), [LISTED, LISTED, None]),
        # Two collectors have two schedules, and each answer holds until the next.
        ([(0, 0, A), (60, 60, A)], [(20, 20, A), (80, 80, A)], [LISTED, LISTED, LISTED, None]),
        # That a broker has no member is an answer.
        (rounds(NOT_ONLINE, None, NOT_ONLINE), rounds(A, A, A), [NOT_ONLINE] * 3),
    ],
)
def test_an_answer_holds_until_the_next_one(of_x, of_y, said):
    assert list(given({"x": of_x, "y": of_y}).values()) == said


def test_of_two_answers_of_a_round_the_list_counts_with_the_later_time():
    polls = {"x": [(0, 5, NOT_ONLINE), (0, 2, A), (0, 7, "ANSWERED")]}
    assert given(polls) == {0: LISTED}
    (answers,) = broker_answers(group(polls).polls)
    assert answers.collected_at.tolist() == [at(7)]


def test_a_round_ends_when_the_last_of_its_brokers_answered():
    dossier = group({"x": [(0, 3, A), (60, 61, A)], "y": [(0, 8, A)]})
    answers = broker_answers(dossier.polls)
    snapshots = snapshots_of(answers)
    polls = {each.witness: in_force(each, snapshots) for each in answers}
    assert times_of(answers, polls, snapshots).tolist() == [at(8), at(61)]


def test_an_answer_that_comes_after_the_next_round_began_is_of_that_round():
    # A round takes 100 s and one comes each minute: x is asked first, y last.
    polls = {
        "x": [(0, 0, A), (60, 60, A), (120, 120, A)],
        "y": [(0, 100, A), (60, 160, ["b"]), (120, 220, ["b"])],
    }
    of_y = given(polls, "y")
    assert of_y == {0: None, 60: "[('a', 'a:y')]", 120: "[('b', 'b:y')]"}


# ---------------------------------------------------------------- watches


MINUTES = [60 * n for n in range(6)]
HOURS = [3600 * n for n in range(8)]


@pytest.mark.parametrize(
    ("seconds", "begins"),
    [
        ([], []),
        ([0], [0]),
        # A day has gone by between two rounds, however few there are.
        ([0, 28_800], [0, 28_800]),
        ([0, 60, 120, 28_800, 28_860], [0, 28_800]),
        ([0, 60, 120, 180, 28_800], [0, 28_800]),
        # Half an hour is no pause, a second more is one.
        ([*MINUTES, 300 + 1800], [0]),
        ([*MINUTES, 300 + 1801], [0, 2101]),
        # Rounds each hour; with one missing; by two collectors that start 10 s apart.
        (HOURS, [0]),
        ([*HOURS, HOURS[-1] + 7200], [0, HOURS[-1] + 7200]),
        (sorted([*HOURS, *[each + 10 for each in HOURS]]), [0]),
        # Of three gaps nobody can say that an hour is usual.
        (HOURS[:4], HOURS[:4]),
    ],
)
def test_a_watch_begins_where_nobody_looked_for_longer_than_usual(seconds, begins):
    assert watches([at(each) for each in seconds]) == [at(each) for each in begins]


# ---------------------------------------------------------------- answers -> rounds


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
