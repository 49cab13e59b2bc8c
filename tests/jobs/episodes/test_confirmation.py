"""Findings, against what the processes held."""

from __future__ import annotations

import pytest

from jobs.episodes.confirmation import confirm_findings
from tests.support.snapshots import (
    BROKER,
    CLUSTER,
    GROUP,
    TOPIC,
    allocation_row,
    at,
    frame,
    info_row,
    log_row,
)

pytestmark = pytest.mark.spark

EPISODES = (
    "cluster string, consumer_group string, topic string, broker_name string, queue_id int, "
    "kind string, certainty string, first_seen timestamp, last_seen timestamp, "
    "claimants array<struct<client_id:string,processes:int,probability:double>>"
)

#: a and b both take queue 0; nobody takes queue 3.
OVERLAPPING = [allocation_row("a", [0, 1]), allocation_row("b", [0, 2])]


@pytest.fixture
def confirmed(spark, holdings):
    """What is confirmed of the duplicate queue 0 and the orphaned queue 3, over ten minutes."""

    def find(
        client_states,
        first=0.0,
        last=600.0,
        claimants=(("a", 1), ("b", 1)),
        certainty="CERTAIN",
        **inputs,
    ):
        of_queue = (CLUSTER, GROUP, TOPIC, BROKER)
        claims = [(client_id, processes, 1.0) for client_id, processes in claimants]
        episodes = frame(
            spark,
            EPISODES,
            [
                (*of_queue, 0, "DUPLICATE", certainty, at(first), at(last), claims),
                (*of_queue, 3, "ORPHANED", certainty, at(first), at(last), []),
            ],
        )
        told = holdings(client_states, **{"allocations": OVERLAPPING} | inputs)
        rows = confirm_findings(episodes, told).collect()
        by_kind = {each["kind"]: each["confirmed"] for each in rows}
        assert len(rows) == 2
        return by_kind["DUPLICATE"], by_kind["ORPHANED"]

    return find


def test_two_holders_confirm_a_duplicate_and_no_holder_an_orphan(confirmed):
    assert confirmed([info_row("a", 60, [0, 1]), info_row("b", 60, [0, 2])]) == (True, True)


def test_one_holder_in_a_round_that_all_answered_refutes_both(confirmed):
    assert confirmed([info_row("a", 60, [0, 1]), info_row("b", 60, [2, 3])]) == (False, False)


def test_a_round_in_which_not_all_answered_tells_what_is_held_and_not_what_is_not(confirmed):
    round_ = [info_row("a", 60, [0, 1]), info_row("b", 60, [0, 2])]
    assert confirmed(round_, processes=3) == (True, None)
    assert confirmed([info_row("a", 60, [0, 1])]) == (None, None)
    assert confirmed([info_row("a", 60, [1, 3])]) == (None, False)


def test_one_round_that_shows_it_outweighs_those_that_do_not(confirmed):
    without = [info_row("a", 60, [0]), info_row("b", 60, [3])]
    shown = [info_row("a", 120, [0]), info_row("b", 120, [0])]
    assert confirmed(without + shown) == (True, True)


def test_rounds_outside_of_the_run_do_not_count(confirmed):
    round_ = [info_row("a", 60, [0, 1]), info_row("b", 60, [0, 2])]
    assert confirmed(round_, first=61.0) == (None, None)
    assert confirmed(round_, last=59.0) == (None, None)


def test_what_is_held_just_after_a_change_refutes_nothing(confirmed):
    infos = [info_row("a", 115, [0, 1]), info_row("b", 115, [2, 3])]
    segments = [("one", 0, 100), ("two", 110, 600)]
    assert confirmed(infos, first=110.0, segments=segments) == (None, None)
    shown = [info_row("a", 115, [0, 1]), info_row("b", 115, [0, 2])]
    assert confirmed(shown, first=110.0, segments=segments) == (True, True)


def test_processes_of_one_id_are_two_holders(confirmed):
    stacked = [allocation_row("a", [0, 1], processes=2)]
    twice = [info_row("a", 60, [0, 1]), info_row("a", 60, [0, 1], started=7)]
    assert confirmed(twice, allocations=stacked) == (True, True)
    # The same process, by way of two brokers.
    again = [info_row("a", 60, [0, 1], broker_id=each) for each in (0, 1)]
    assert confirmed(again, allocations=stacked) == (None, None)


def test_a_consumer_that_does_not_show_what_it_holds_leaves_the_round_incomplete(confirmed):
    silent = [info_row("a", 60, [0, 1]), info_row("b", 60, [], consume_type="CONSUME_ACTIVELY")]
    assert confirmed(silent) == (None, None)


def test_two_logs_confirm_a_duplicate_where_both_results_are_in_force(confirmed):
    first, other = log_row("p", "a", -100, [0, 1]), log_row("q", "b", 100, [0, 2])
    assert confirmed([first, other]) == (True, None)
    assert confirmed([first, other], last=115.0) == (None, None)
    assert confirmed([first, other, log_row("p", "a", 115, [1])]) == (None, None)
    assert confirmed([first, other, log_row("p", "a", 125, [1])]) == (True, None)
    assert confirmed([first, log_row("p", "a", 50, [0])]) == (None, None)
    assert confirmed([first, other], claimants=[("a", 1), ("c", 1)]) == (None, None)


def test_two_logs_of_one_id_confirm_a_duplicate_if_there_are_two_processes(confirmed):
    lines = [log_row("p", "a", -100, [0, 1]), log_row("q", "a", -50, [0, 1])]
    stacked = [allocation_row("a", [0, 1], processes=2)]
    assert confirmed(lines, allocations=stacked, claimants=[("a", 2)]) == (True, None)
    assert confirmed(lines, claimants=[("a", 1)]) == (None, None)


def test_what_was_held_counts_over_what_was_computed(confirmed):
    lines = [log_row("p", "a", -100, [0, 1]), log_row("q", "b", -100, [0, 2])]
    infos = [info_row("a", 60, [0, 1]), info_row("b", 60, [2])]
    assert confirmed(infos + lines) == (False, True)
    assert confirmed(infos[:1] + lines) == (True, None)


def test_what_is_there_at_times_is_not_refuted_by_the_times_when_it_is_not(confirmed):
    without = [info_row("a", 60, [0, 1]), info_row("b", 60, [2, 3])]
    shown = [info_row("a", 120, [0, 1]), info_row("b", 120, [0, 2])]
    assert confirmed(without, certainty="POSSIBLE") == (None, None)
    assert confirmed(without + shown, certainty="POSSIBLE") == (True, True)


def test_without_client_states_nothing_is_confirmed(spark):
    episodes = frame(
        spark,
        EPISODES,
        [(CLUSTER, GROUP, TOPIC, BROKER, 0, "DUPLICATE", "CERTAIN", at(0), at(9), [])],
    )
    assert confirm_findings(episodes, None).first()["confirmed"] is None
