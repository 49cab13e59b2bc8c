"""The reach of a run: what lasts may hide in no silence that is none, and none is one answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.declared.instants import SECOND, Instant
from jobs.declared.kinds import PERSISTENT
from jobs.judge.times import Portion, extent_of, persistence, runs_of
from jobs.verdict.silence import (
    longest_silence,
    missed_rounds,
    short_nights,
    slow_rounds,
    too_short,
)

LASTS = 180
MINUTE = 60 * SECOND
PERIODS = (60, 120, 300, 900)


def rounds(seconds: int, number: int, first: int = 0) -> list[Instant]:
    return [(first + seconds * each) * SECOND for each in range(number)]


@pytest.mark.parametrize(
    ("times", "covered"),
    [
        (rounds(60, 1), 0),
        (rounds(60, 2), 60),
        # The last two minutes alone.
        (rounds(60, 3), 120),
        # All rounds have one time.
        ([0] * 60, 0),
        # Nobody looked for hours: nothing of before has lasted.
        ([*rounds(60, 3), *rounds(60, 3, 36_000)], 120),
        # A single one after a time does not make the others last.
        ([*rounds(10, 5), 300 * SECOND], 60),
        # Two that are an hour apart are two moments.
        (rounds(3_600, 2), 0),
        (rounds(60, 4), None),
        (rounds(300, 2), None),
        # These come always each hour.
        (rounds(3_600, 8), None),
        ([*rounds(60, 4), *rounds(60, 2, 36_000)], None),
    ],
)
def test_rounds_in_which_nothing_can_last_are_too_short(
    times: list[Instant], covered: int | None
) -> None:
    found = [str(each.text) for each in too_short({"C": set(times)}, LASTS)]
    words = f"cluster C: the snapshots cover {covered} s of the 180 s that a fault needs to last"
    assert [each.partition(",")[0] for each in found] == [words] * (covered is not None)


@given(
    st.lists(st.integers(0, 4_000), min_size=1, max_size=30, unique=True),
    st.integers(0, 600),
)
def test_too_short_is_what_a_fault_in_all_rounds_does_not_last_in(
    seconds: list[int], lasts: int
) -> None:
    """The judgement itself says so of a fault that is there in every round of a watch."""
    times = [each * SECOND for each in sorted(seconds) if each <= 1_800]
    runs = runs_of([Portion(each, each, 1) for each in times])
    if runs:
        is_short = bool([*too_short({"C": times}, lasts)])
        assert is_short != (extent_of(runs, len(runs), lasts).persistence == PERSISTENT)


@pytest.mark.parametrize("every", PERIODS)
@pytest.mark.parametrize("number", range(7))
def test_answers_that_are_missing_are_a_gap_at_the_period_of_the_rounds(
    every: int, number: int
) -> None:
    """By hand: the first number of answers that is one."""
    first = {60: 3, 120: 2, 300: 2, 900: 2}[every]
    due = rounds(every, 40)
    came = [each for place, each in enumerate(due) if not 10 <= place < 10 + number]
    found = longest_silence(due, came, every * SECOND, LASTS * SECOND)
    assert (found is not None) is (number >= first)
    missed = [*missed_rounds({"C": came}, LASTS)]
    assert bool(missed) is (number >= first)


@pytest.mark.parametrize("every", PERIODS)
def test_single_answers_that_are_lost_again_and_again_are_no_gap(every: int) -> None:
    due = rounds(every, 100)
    came = [each for place, each in enumerate(due) if place % 3]
    assert longest_silence(due, came, every * SECOND, LASTS * SECOND) is None


@given(
    st.sampled_from([*PERIODS, 45, 100]),
    st.sets(st.integers(0, 29), max_size=20),
    st.integers(0, 600),
)
def test_what_hides_in_a_silence_that_is_no_gap_would_not_have_lasted(
    every: int, missing: set[int], lasts: int
) -> None:
    due = rounds(every, 30)
    came = [each for place, each in enumerate(due) if place not in missing]
    if longest_silence(due, came, every * SECOND, lasts * SECOND) is None:
        hidden: list[Instant] = []
        for each in [*due, None]:
            if each is not None and each not in came:
                hidden.append(each)
                continue
            is_moment = len(hidden) < 2
            assert is_moment or persistence(hidden[0], hidden[-1], lasts) != PERSISTENT
            hidden = []


def test_who_is_asked_in_some_rounds_alone_is_silent_where_it_was_due() -> None:
    due = rounds(60, 60)
    each_fifth = due[::5]
    usual, least = 300 * SECOND, LASTS * SECOND
    assert longest_silence(due[:56], each_fifth, usual, least) is None
    assert longest_silence(due, [*each_fifth[:4], *each_fifth[5:]], usual, least) is None
    found = longest_silence(due, [*each_fifth[:4], *each_fifth[6:]], usual, least)
    assert found == (due[20], due[30])


@pytest.mark.parametrize(("every", "words"), [(60, {}), (180, {}), (300, {"C": 300.0})])
def test_slow_rounds_are_said_once_and_are_no_gap(every: int, words: dict[str, float]) -> None:
    times = {"C": rounds(every, 20), "few": rounds(every, 2)}
    assert slow_rounds(times, LASTS) == words
    assert [*too_short({"C": times["C"]}, LASTS), *missed_rounds(times, LASTS)] == []


def test_a_few_rounds_of_a_whole_night_are_most_of_it_missing() -> None:
    night = 1_440 * MINUTE
    found = short_nights({"C": rounds(60, 4)}, 0, night)
    assert [each.kind for each in found] == ["ROUNDS_END_EARLY"]
    # Four rounds a day.
    assert [*short_nights({"C": rounds(6 * 3_600, 4)}, 0, night)] == []
