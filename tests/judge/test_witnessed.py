"""Findings, against what the processes held."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.judge.observe.holdings_index import index_holdings
from jobs.judge.rules.episodes import confirm, witnessed
from jobs.judge.rules.unlisted import unlisted_consumers, without_refuted
from jobs.judge.times import Extent
from rebalance_core.findings import Claimant
from tests.judge.phases import case, queue_finding
from tests.judge.witnesses import (
    BROKER,
    TOPIC,
    allocated,
    at,
    holdings_of,
    info,
    log,
    offsets,
    steady,
    stuck,
)

#: a and b both take queue 0; nobody takes queue 3.
OVERLAPPING = [allocated("a", [0, 1]), allocated("b", [0, 2])]


def episode(kind, queue_id, first, last, certainty="CERTAIN", claimants=(), topic=TOPIC):
    claiming = tuple(Claimant(client_id, processes, 1.0) for client_id, processes in claimants)
    # The whole episode is longer: what counts is the run of one certainty.
    extent = Extent(at(first), at(last), 1, "PERSISTENT", ongoing=False)
    found = queue_finding(kind=kind, queue=(BROKER, queue_id), topic=topic, certainty=certainty)
    return replace(found, extent=extent, claimants=claiming)


def confirmed(
    clients, first=0.0, last=600.0, claimants=(("a", 1), ("b", 1)), certainty="CERTAIN", **inputs
):
    """What is confirmed of the duplicate queue 0 and the orphaned queue 3, over ten minutes."""
    index = index_holdings(holdings_of(clients, **{"allocations": OVERLAPPING} | inputs))
    return (
        confirm(episode("DUPLICATE", 0, first, last, certainty, claimants), index),
        confirm(episode("ORPHANED", 3, first, last, certainty), index),
    )


def answers(**held):
    """Running infos at 60 s."""
    return [info(client_id, 60, queues) for client_id, queues in held.items()]


FOR_ITSELF = info("b", 60, [0, 1, 2, 3], message_model="BROADCASTING")
BOTH_HOLD = answers(a=[0, 1], b=[0, 2])
#: At 100 s b takes queue 0 over.
CHANGED = {"segments": [("one", 0, 90), ("two", 100, 600)]}
JUST_CHANGED = {"segments": [("one", 0, 100), ("two", 110, 600)], "first": 110.0}
STACKED = {"allocations": [allocated("a", [0, 1], processes=2)]}


ASKED_IN_TURN = [
    info("a", [60, 180, 300], [0, 1]),
    info("a", [120, 240], [0, 1], started=7),
]


@pytest.mark.parametrize(
    ("clients", "inputs", "duplicate", "orphan"),
    [
        # Two holders confirm a duplicate and no holder an orphan; one holder refutes both.
        (BOTH_HOLD, {}, True, True),
        (answers(a=[0, 1], b=[2, 3]), {}, False, False),
        # Who reads every queue for itself holds none for the group.
        ([*answers(a=[0, 1]), FOR_ITSELF], {}, False, True),
        # A slow round over a change tells of no one moment: a was asked before, and b after.
        ([*answers(a=[0, 1]), info("b", 60, [0, 2], observed=120)], CHANGED, None, None),
        ([*answers(a=[0, 1]), info("b", 60, [0, 2], observed=120)], {}, True, True),
        # A round in which not all answered shows what is held and not what is not.
        (BOTH_HOLD, {"processes": 3}, True, None),
        (answers(a=[0, 1]), {}, None, None),
        (answers(a=[1, 3]), {}, None, False),
        # One round that shows it outweighs those that do not.
        ([*answers(a=[0], b=[3]), info("a", 120, [0]), info("b", 120, [0])], {}, True, True),
        # Two that held it one after the other are no duplicate: in each round one of them has it.
        ([*answers(a=[0], b=[3]), info("a", 120, [3]), info("b", 120, [0])], {}, False, False),
        # Rounds outside of the run do not count.
        (BOTH_HOLD, {"first": 61.0}, None, None),
        (BOTH_HOLD, {"last": 59.0}, None, None),
        (BOTH_HOLD, {"first": 60.0, "last": 60.0}, True, True),
        # What is held just after a change refutes nothing.
        ([info("a", 115, [0, 1]), info("b", 115, [2, 3])], JUST_CHANGED, None, None),
        ([info("a", 115, [0, 1]), info("b", 115, [0, 2])], JUST_CHANGED, True, True),
        # Processes of one id are two holders; the same one by way of two brokers is one.
        ([*answers(a=[0, 1]), info("a", 60, [0, 1], started=7)], STACKED, True, True),
        ([*answers(a=[0, 1]), info("a", 60, [0, 1], observed=3)], STACKED, None, None),
        # The two of one id are asked in turn, and each has queue 0 all along; where both answer in
        # one round, and one of them has it not, it is no duplicate.
        (ASKED_IN_TURN, STACKED, None, True),
        ([*answers(a=[0, 1]), info("a", 60, [1], started=7)], STACKED, False, True),
        # A consumer that does not show what it holds leaves the round incomplete.
        ([*answers(a=[0, 1]), info("b", 60, [], consume_type="CONSUME_ACTIVELY")], {}, None, None),
    ],
)
def test_the_answers_of_a_round_confirm_or_refute_a_finding(clients, inputs, duplicate, orphan):
    assert confirmed(clients, **inputs) == (duplicate, orphan)


def test_two_logs_confirm_a_duplicate_where_both_results_are_in_force():
    first, other = log("p", "a", -100, [0, 1]), log("q", "b", 100, [0, 2])
    assert confirmed([first, other]) == (True, None)
    # The other counts from 120 on, 20 seconds after it was written.
    assert confirmed([first, other], last=115.0) == (None, None)
    assert confirmed([first, other, log("p", "a", 115, [1])]) == (None, None)
    assert confirmed([first, other, log("p", "a", 125, [1])]) == (True, None)
    assert confirmed([first, log("p", "a", 50, [0])]) == (None, None)
    assert confirmed([first, other], claimants=[("a", 1), ("c", 1)]) == (None, None)


def test_results_of_the_time_in_which_a_client_may_not_know_the_new_route_confirm_nothing():
    lines = [log("p", "a", -100, [0]), log("q", "b", -100, [0]), log("p", "a", 140, [1])]
    inputs = {"segments": [("one", 0, 100), ("two", 110, 600)], "changes": [105], "first": 110.0}
    assert confirmed(lines, **inputs) == (None, None)


def test_two_logs_of_one_id_confirm_a_duplicate_if_there_are_two_processes():
    lines = [log("p", "a", -100, [0, 1]), log("q", "a", -50, [0, 1])]
    stacked = [allocated("a", [0, 1], processes=2)]
    assert confirmed(lines, allocations=stacked, claimants=[("a", 2)]) == (True, None)
    assert confirmed(lines, claimants=[("a", 1)]) == (None, None)


def test_results_that_overlapped_before_the_run_alone_do_not_confirm_it():
    # a computed it until 200; the finding begins at 300, when b has the queue and nobody else.
    lines = [log("p", "a", -100, [0]), log("q", "b", -100, [0]), log("p", "a", 200, [1])]
    assert confirmed(lines) == (True, None)
    assert confirmed(lines, first=300.0) == (None, None)


def test_what_was_held_counts_over_what_was_computed():
    lines = [log("p", "a", -100, [0, 1]), log("q", "b", -100, [0, 2])]
    infos = [info("a", 60, [0, 1]), info("b", 60, [2])]
    assert confirmed(infos + lines) == (False, True)
    assert confirmed(infos[:1] + lines) == (True, None)


def test_what_is_there_at_times_is_not_refuted_by_the_times_when_it_is_not():
    without = answers(a=[0, 1], b=[2, 3])
    shown = [info("a", 120, [0, 1]), info("b", 120, [0, 2])]
    assert confirmed(without, certainty="POSSIBLE") == (None, None)
    assert confirmed(without + shown, certainty="POSSIBLE") == (True, True)


@pytest.mark.parametrize(
    ("after", "changes", "is_orphan"),
    # None in the round after, one that takes it, none at all, and another situation then.
    [([2], [], True), ([2, 3], [], None), (None, [], None), ([2], [("two", 400, 600)], None)],
)
def test_rounds_around_a_finding_show_what_nobody_holds_in_between(after, changes, is_orphan):
    # The round before that, in which somebody still held it, is too old.
    rounds = [info("a", 30, [0, 1]), info("b", 30, [0, 2, 3])]
    rounds += [info("a", 60, [0, 1]), info("b", 60, [0, 2])]
    if after is not None:
        rounds += [info("a", 480, [0, 1]), info("b", 480, [0, *after])]
    segments = [("one", 0, 390 if changes else 600), *changes]
    _, orphan = confirmed(rounds, first=120.0, last=420.0, segments=segments)
    assert orphan is is_orphan


@pytest.mark.parametrize("is_duplicate", [True, False])
@pytest.mark.parametrize(
    ("segments", "since", "until"),
    [
        ([("one", 0, 7200)], 0, 7200),
        # The finding is two hours long; the answers of the second one are of the last situations.
        ([("one", 0, 1800), ("two", 1860, 7200)], 1860, 7200),
        ([("one", 0, 1800), ("two", 1860, 5600), ("three", 5660, 7200)], 1860, 7200),
        ([("one", 0, 6600), ("two", 6660, 7200)], 0, 6600),
    ],
)
def test_answers_refute_no_more_of_a_finding_than_their_situations(
    segments, since, until, is_duplicate
):
    """Another one may have been what was computed, and over long before."""
    times = [5400, 5700, 6000, 6300]
    infos = [info("a", times, [0, 1]), info("b", times, [2, 3])]
    index = index_holdings(holdings_of(infos, segments=segments, allocations=OVERLAPPING))
    time, queue = Extent(at(0), at(7200), 1, "PERSISTENT", ongoing=True), (BROKER, 0)
    (found,) = index[TOPIC].refuted(queue, time, is_duplicate=is_duplicate)
    assert (found.begins, found.ends) == (at(since), at(until) + 1)
    assert found.lasts == at(6300) - at(5400)


def test_rounds_against_a_possible_duplicate_outweigh_logs_for_it():
    # They refute nothing, but what was computed does not count beside them.
    infos = [info("a", 60, [0, 1]), info("b", 60, [2, 3])]
    lines = [log("p", "a", -100, [0, 1]), log("q", "b", -100, [0, 2])]
    assert confirmed(infos + lines, certainty="POSSIBLE") == (None, None)


# ---------------------------------------------------------------- orphans that somebody reads


MINUTES = (0, 60, 120, 180, 240, 300)
WHOLE = Extent(at(0), at(300), 6, "PERSISTENT", ongoing=True)


def orphan(queue_id=0, certainty="CERTAIN", causes=("GROUP_OFFLINE",), kind="ORPHANED", **changes):
    of = {"kind": kind, "queue": (BROKER, queue_id), "certainty": certainty, "causes": causes}
    return replace(queue_finding(topic=TOPIC, **of), **{"extent": WHOLE} | changes)


def seen(episodes, queues):
    by_queue = {(each.topic, each.broker_name, each.queue_id): each for each in queues}
    of = case(offsets=by_queue, holdings=index_holdings([]))
    return [witnessed(of, each) for each in episodes]


def refuted(episodes, *queues):
    every = seen(episodes, queues)
    kept = without_refuted(every)
    return [each not in kept for each in every]


def test_what_is_read_in_the_gaps_of_an_episode_refutes_nothing():
    times = tuple((at(second), at(second)) for second in MINUTES[::2])
    with_gaps = orphan(times=times, extent=WHOLE._replace(share_of_time=0.5))
    assert refuted([with_gaps], offsets(0, steady(*MINUTES))) == [False]


@pytest.mark.parametrize(("until", "is_refuted"), [(600, True), (601, False)])
def test_what_moves_in_less_than_half_of_the_time_refutes_nothing_of_all_of_it(until, is_refuted):
    # Offsets of five of ten minutes: a collector that began late, a topic that came late.
    episode = orphan(extent=WHOLE._replace(last_seen=at(until)))
    assert refuted([episode], offsets(0, steady(*MINUTES))) == [is_refuted]


def test_where_a_group_that_no_broker_lists_reads_an_idle_queue_is_no_orphan_either():
    moving, idle = offsets(0, steady(*MINUTES)), offsets(1, dict.fromkeys(MINUTES, (5, 5)))
    waiting = offsets(2, stuck(*MINUTES))
    episodes = [orphan(0), orphan(1), orphan(2)]
    assert refuted(episodes, moving, idle, waiting) == [True, True, False]
    # Nobody reads: an idle queue of a group that is gone stays an orphan.
    assert refuted(episodes[1:], idle, waiting) == [False, False]


def test_what_may_be_an_orphan_is_read_throughout_where_its_offset_moves_at_each_poll():
    def read(polls, **changes):
        (found,) = seen([orphan(**changes)], [offsets(0, polls)] if polls else [])
        return found.is_read_throughout

    polls = steady(*MINUTES)
    assert read(polls, certainty="POSSIBLE")
    assert not read(polls), "what is certain is refuted, or no orphan at times"
    assert not read(polls, certainty="POSSIBLE", kind="DUPLICATE")
    # Nobody read it for a minute.
    once = polls | {180: (polls[180][0], polls[120][1])}
    assert not read(once, certainty="POSSIBLE")
    assert not read({}, certainty="POSSIBLE")


@pytest.mark.parametrize("cause", ["MANUAL_ASSIGNMENT", "RECONNECTING", "SUBSCRIPTION_MISMATCH"])
def test_where_members_are_listed_one_of_them_may_read_it_which_is_no_fault(cause):
    queue = offsets(0, steady(*MINUTES))
    assert unlisted_consumers(seen([orphan(causes=(cause,))], [queue])) == []
