"""polls -> what each broker says at each snapshot: held, bridged, or not known."""

import pytest

from jobs.judge.observe.answers import NOTHING, broker_answers, in_force, snapshots_of, times_of
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
