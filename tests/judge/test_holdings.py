"""What each process had, and what was computed for it, period by period."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.declared.dossier import ReportedQueue
from jobs.judge.observe.holdings_index import find_drift
from tests.judge.witnesses import (
    AGREED,
    BROKER,
    TOPIC,
    allocated,
    at,
    holdings_of,
    in_seconds,
    info,
    log,
)


def periods(clients, **inputs):
    """(client id, since, until, held) of each holding."""
    rows = []
    for each in holdings_of(clients, **inputs):
        times = (in_seconds(each.first_seen), in_seconds(each.last_seen))
        rows.append((each.process.client_id, *times, [number for _, number in each.activities]))
    return rows


def test_of_two_answers_in_one_round_the_one_observed_last_counts():
    # Two brokers forwarded the question, and between them the process got queue 1.
    clients = [info("a", 60, [0, 1], observed=3), info("a", 60, [0], observed=1)]
    assert periods(clients) == [("a", 63, 63, [0, 1])]
    assert periods(clients[::-1]) == [("a", 63, 63, [0, 1])]


def test_an_answer_that_shows_nothing_does_not_hide_one_that_does():
    # The second broker's question ran into its time limit.
    clients = [info("a", 60, [0]), info("a", 60, [], observed=9, error_code=1)]
    assert periods(clients) == [("a", 60, 60, [0])]


def test_answers_are_cut_where_a_change_explains_a_difference_no_longer():
    segments = [("one", 0, 100), ("two", 110, 600)]
    infos = [info("a", [90, 115, 125, 135, 300], [0])]
    holdings = holdings_of(infos, segments=segments)
    found = [(*map(in_seconds, h.rounds), h.explained_by, h.is_settled) for h in holdings]
    # From 130 on, 20 seconds after the second phase began, the client has rebalanced.
    assert found == [(90, None, True), (115, 125, "STATE_CHANGED", False), (135, 300, None, True)]


# Two collectors' rounds overlap: the change of the first round may have been given last.
@pytest.mark.parametrize("changes", [[70], [70, 20]])
def test_answers_are_cut_where_the_route_explains_them_no_longer_and_the_lists_still_do(changes):
    segments = [("one", 0, 100), ("two", 110, 600)]
    holdings = holdings_of([info("a", [115, 120, 121], [0])], segments=segments, changes=changes)
    found = [(len(each.rounds), each.explained_by) for each in holdings]
    assert found == [(2, "ROUTE_CHANGED"), (1, "STATE_CHANGED")]


def test_queues_of_other_topics_and_queues_being_released_are_not_held():
    queues = (
        ReportedQueue(TOPIC, BROKER, 0, dropped=False),
        ReportedQueue(TOPIC, BROKER, 1, dropped=True),
        ReportedQueue("%RETRY%G", BROKER, 0, dropped=False),
    )
    (only,) = holdings_of([info("a", 60, [], queues=queues)])
    assert tuple(only.activities) == ((BROKER, 0),)


@pytest.mark.parametrize(
    ("lines", "held"),
    [
        # Until the next one.
        (
            [log("p", "a", 100, [0]), log("p", "a", 200, [0, 1])],
            [("a", 120, 200, [0]), ("a", 220, 600, [0, 1])],
        ),
        # One that was collected twice is one; one about another topic replaces none.
        (
            [log("p", "a", 100, [0], times=((at(100), at(110)), (at(100), at(900))))],
            [("a", 120, 600, [0])],
        ),
        ([log("p", "a", 100, [0]), log("p", "a", 200, [], topic="OTHER")], [("a", 120, 600, [0])]),
    ],
)
def test_a_line_counts_from_20_seconds_after_it(lines, held):
    assert periods(lines) == held


def test_the_log_of_another_process_replaces_no_line():
    allocations = [allocated("a", [0, 1], processes=2)]
    clients = [log("p", "a", 100, [0]), log("q", "a", 200, [1])]
    found = periods(clients, allocations=allocations)
    assert found == [("a", 120, 600, [0]), ("a", 220, 600, [1])]


@pytest.mark.parametrize(
    ("second", "tells"), [(-100, False), (19, False), (20, True), (500, True), (601, None)]
)
def test_the_lengths_show_the_view_of_a_line_that_was_printed_in_the_settled_phase(second, tells):
    found = holdings_of([log("p", "a", second, [0, 1])])
    assert [each.has_lengths_of_phase for each in found] == ([] if tells is None else [tells])


def test_more_logs_than_processes_say_nothing_for_as_long_as_both_are_in_force():
    # From the second phase on the id has two processes.
    segments = [("one", 0, 100), ("two", 110, 300)]
    two = {name: [allocated("a", [0, 1], processes=n)] for name, n in (("one", 1), ("two", 2))}
    clients = [log("p", "a", -100, [0, 1]), log("q", "a", -50, [0])]
    found = periods(clients, segments=segments, allocations=two)
    assert found == [("a", 130, 300, [0, 1]), ("a", 130, 300, [0])]


def test_a_log_without_a_label_counts_though_its_id_is_in_a_small_share_of_the_views():
    # One broker of four lists it: a quarter of a process, which is none.
    views = [allocated("a", [0], 0.25), allocated("b", [0], 0.75)]
    for process, held in (("p", []), (None, [("a", 20, 600, [0])])):
        assert periods([log(process, "a", -100, [0])], allocations=views) == held


def test_half_a_process_counts_as_one():
    # Two under one view and three under the other: nothing shows that the third is gone.
    views = [allocated("a", [0], 0.5, processes=n) for n in (2, 3)]
    clients = [log(process, "a", -100, [0]) for process in "pqrs"]
    assert len(periods(clients[:3], allocations=views)) == 3
    assert periods(clients, allocations=views) == []


ANSWERS = st.dictionaries(
    st.sampled_from(range(0, 600, 15)), st.sampled_from([(0,), (0, 1), (2,), ()]), max_size=30
)


@given(ANSWERS, st.lists(st.sampled_from(range(0, 600, 25)), max_size=2))
def test_folded_answers_drift_as_single_ones_do(answers, changes):
    """A run of equal statements is only a shorter way to write them."""
    segments = [("one", 0, 100), ("two", 130, 300), ("one", 310, 590)]
    differing = [allocated("a", [0], 0.5), allocated("a", [1, 2], 0.5, client_count=3)]
    situations = {"one": AGREED, "two": differing}
    inputs = {"segments": segments, "allocations": situations, "changes": changes}
    single = [info("a", second, held) for second, held in answers.items()]
    folded = [
        info("a", [second for second in sorted(answers) if answers[second] == held], held)
        for held in set(answers.values())
    ]
    one, other = (holdings_of(clients, **inputs) for clients in (single, folded))
    times_of = [sorted(t for each in found for t in each.rounds) for found in (one, other)]
    assert times_of[0] == times_of[1]

    def rows(holdings):
        return sorted(repr(each.row() | {"run": None}) for each in find_drift(holdings, 60))

    assert rows(one) == rows(other)
