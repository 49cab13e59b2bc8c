"""Queues that have an owner and stand still while others keep up, and processes that froze."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.declared.dossier import Dossier
from jobs.judge.observe.brokers import Absence
from jobs.judge.observe.holdings_index import index_holdings
from jobs.judge.observe.situations import Situations
from jobs.judge.rules.found import FaultEpisode, GroupFindings
from jobs.judge.rules.stalls import stalled_queues
from jobs.judge.times import Extent
from tests.judge.phases import case
from tests.judge.witnesses import (
    BROKER,
    OTHER_BROKER,
    OWNERS,
    TOPIC,
    allocated,
    at,
    burst,
    evaluated,
    holdings_of,
    in_seconds,
    info,
    offsets,
    periods,
    stalls_of,
    steady,
    stuck,
    timeline,
)


def stalled(queues, **inputs):
    """(queue id, since, until, polls, backlog, growth, owners) of each stall, by queue and time."""
    rows = []
    for each in stalls_of(queues, **inputs).stalls:
        seen = (in_seconds(each.first_seen), in_seconds(each.last_seen), each.extent.snapshots)
        rows.append((each.queue[1], *seen, each.backlog, each.backlog_growth, [*each.owners]))
    return sorted(rows)


def frozen(queues, **inputs):
    """(client, since, until, polls, queues) of each frozen process."""
    rows = []
    for fault in stalls_of(queues, **inputs).faults:
        times = (in_seconds(fault.first_seen), in_seconds(fault.last_seen))
        rows.append((*fault.client_ids, *times, fault.extent.snapshots, fault.queues_affected))
    return sorted(rows)


@pytest.mark.parametrize("snapshot", [90, 120])
def test_a_queue_that_changes_hands_is_one_stall_of_its_last_owner_and_freezes_each(snapshot):
    times = (0, 60, 120, 180)
    queues = [offsets(0, steady(*times)), offsets(3, stuck(*times))]
    inputs = {
        "segments": [("one", -60), ("two", snapshot)],
        "owners": {"one": OWNERS, "two": [allocated("a", [0]), allocated("c", [3])]},
    }
    assert stalled(queues, **inputs) == [(3, 0, 180, 4, 190, 180, ["c"])]
    assert frozen(queues, **inputs) == [("b", 0, 120, 3, 1), ("c", 120, 180, 2, 1)]


@pytest.mark.parametrize("new_messages", [0, 5])
def test_nothing_is_stalled_where_the_whole_group_stands_still(new_messages):
    # All moved until second 70, in the middle of their messages; then nobody, ever.
    def stops(left):
        polls = {0: (10, 5), 60: (80, 70), 120: (160, 100)}
        return polls | {
            second: (160 + left + new_messages * number, 100)
            for number, second in enumerate((180, 240, 300))
        }

    queues = [offsets(number, stops(number)) for number in (0, 1, 3)]
    # It had nothing to do, before and after: it is no measure.
    idle = offsets(2, dict.fromkeys((0, 60, 120, 180, 240, 300), (7, 7)))
    assert stalled([*queues, idle]) == []


def test_where_a_queue_that_was_done_stands_still_with_the_next_message_all_may_stand_still():
    # Since 61 nobody reads: the first message came to queue 3, the next, at 180, to queue 0.
    times = (60, 120, 180, 240, 300)
    last = {0: (0, 0)} | dict.fromkeys(times, (10, 8))
    done = {0: (0, 0)} | dict.fromkeys(times, (9, 9))
    next_message = done | {180: (10, 9), 240: (11, 9), 300: (12, 9)}
    queues = [offsets(0, next_message), offsets(1, done), offsets(3, last)]
    assert stalled(queues) == [(3, 60, 120, 2, 2, 0, ["b"])]


def test_a_group_that_stands_still_for_an_hour_makes_no_lasting_stall_of_who_is_last_to_move():
    hour = {time: (time + 1, 0) for time in range(0, 3600, 60)}
    early = hour | {3600: (4000, 100), 3660: (4000, 4000)}
    late = hour | {3600: (4000, 0), 3660: (4000, 100)}
    rows = stalled([offsets(0, early), offsets(3, late)])
    assert [row[:4] for row in rows] == [(3, 3540, 3600, 2)]


def test_a_queue_without_owner_is_an_orphan_and_not_stalled():
    times = (0, 60, 120, 180, 240)
    queues = [offsets(number, stuck(*times)) for number in (1, 2, 3, 9)]
    assert stalled(
        [offsets(0, steady(*times)), *queues],
        # 1: all the time; 2: over most of the time between two polls; 3: at one poll.
        # 9 is not readable, so nobody was given it.
        orphans=[((BROKER, 1), -60, 240), ((BROKER, 2), 65, 110), ((BROKER, 3), 120, 120)],
    ) == [
        # A moment without owner, and one that lasts half of the time.
        (2, 0, 240, 5, 250, 240, ["a"]),
        (3, 0, 60, 2, 70, 60, ["b"]),
        (3, 180, 240, 2, 250, 60, ["b"]),
    ]


def test_a_stall_goes_on_over_moments_without_owner_but_not_over_a_lasting_orphan():
    """Each list that lacks a ghost makes a moment without owner; nobody reads the queue at all."""
    times = tuple(range(0, 601, 30))
    queues = [offsets(0, steady(*times)), offsets(3, stuck(*times))]
    moments = [((BROKER, 3), second, second) for second in (120, 240, 360)]
    assert [row[:3] for row in stalled(queues, orphans=moments)] == [(3, 0, 600)]
    lasting = [((BROKER, 3), 200, 400)]
    assert [row[:3] for row in stalled(queues, orphans=lasting)] == [(3, 0, 180), (3, 420, 600)]
    # However long the stall is before and after it.
    times = tuple(range(0, 1801, 30))
    queues = [offsets(0, steady(*times)), offsets(3, stuck(*times))]
    lasting = [((BROKER, 3), 800, 1000)]
    assert [row[:3] for row in stalled(queues, orphans=lasting)] == [(3, 0, 780), (3, 1020, 1800)]
    shorter = [((BROKER, 3), 830, 1000)]
    assert [row[:3] for row in stalled(queues, orphans=shorter)] == [(3, 0, 1800)]


@pytest.mark.parametrize(
    ("absence", "since"),
    [
        # While clients follow to the slave, and while nothing sends them there, it shows nothing.
        ({"followed": at(450), "ends": at(540)}, None),
        ({"ends": at(600)}, None),
        ({}, None),
        # It shows what they do from a minute after the route gave it on; what was before belongs
        # to the same stall.
        ({"followed": at(60)}, 0),
        # One copy of the offsets, and a master that is back.
        ({"ends": at(600), "has_slave": False}, 0),
        ({"ends": at(110)}, 0),
    ],
)
def test_the_offsets_of_a_slave_show_a_stall_once_clients_commit_to_it(absence, since):
    times = tuple(range(0, 601, 30))
    queues = [offsets(0, steady(*times), OTHER_BROKER), offsets(3, stuck(*times))]
    given = {"ends": None, "unrouted": True, "silent": True} | absence
    away = Absence(BROKER, at(30), at(90), **given)
    rows = stalled(queues, masters_away=[away])
    assert [row[1:3] for row in rows] == ([] if since is None else [(since, 600)])


def test_polls_of_two_collectors_within_a_commit_show_no_stall():
    """As two of a real cluster did, 0.7 s apart: the same offset twice is none that stands."""
    times = (0, 1, 30, 31, 60, 61)
    moving = {second: (1000, 10 * second) for second in (0, 30, 60)}
    twice = moving | {second + 1: offset for second, offset in moving.items()}
    queues = [offsets(0, steady(*times)), offsets(3, twice)]
    assert stalled(queues) == []


@pytest.mark.parametrize(("until", "is_stalled"), [(89, True), (90, False)])
def test_half_of_the_time_between_polls_without_owner_explains_a_stall(until, is_stalled):
    # From 61 on it had none: 28 of the 58 seconds between two polls, or 29.
    queues = [offsets(0, steady(60, 118)), offsets(3, stuck(60, 118))]
    rows = stalled(queues, orphans=[((BROKER, 3), 61, until)])
    assert bool(rows) == is_stalled


def test_an_offset_that_is_set_back_ends_a_stall():
    reset = stuck(0, 60, 120, at_offset=5) | stuck(180, 240, at_offset=2)
    queues = [offsets(0, steady(0, 60, 120, 180, 240)), offsets(3, reset)]
    assert stalled(queues) == [(3, 0, 120, 3, 125, 120, ["b"]), (3, 180, 240, 2, 248, 60, ["b"])]
    # Whoever set it back, it was not the stall that ended: two freezes, not one.
    assert frozen(queues) == [("b", 0, 120, 3, 1), ("b", 180, 240, 2, 1)]


def test_before_the_first_snapshot_of_the_lists_nobody_knows_whose_a_queue_is():
    queues = [offsets(0, steady(0, 60, 120)), offsets(3, stuck(0, 60, 120))]
    assert stalled(queues, segments=[("one", 90)]) == [(3, 0, 120, 3, 130, 120, [])]
    # A topic that no member was seen to subscribe to has no period at all.
    assert stalled(queues, segments=[]) == [(3, 0, 120, 3, 130, 120, [])]


POLLS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=8)


def polls_of(steps):
    """Polls from steps: how many messages came, how many were read, whether it was asked."""
    came = read = 0
    polls = {}
    for number, (new, taken, asked) in enumerate(steps):
        came += new
        read = min(came, read + taken)
        if asked:
            polls[60 * number] = (came, read)
    return polls


@given(st.lists(POLLS, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_order_in_which_queues_come_means_nothing(steps, random):
    queues = [offsets(number, polls_of(each)) for number, each in enumerate(steps)]
    shuffled = random.sample(queues, len(queues))
    owners = {"one": [allocated("a", range(len(steps)))]}
    assert stalled(queues, owners=owners) == stalled(shuffled, owners=owners)


@given(st.lists(POLLS, min_size=1, max_size=5))
def test_a_queue_stands_still_all_through_its_stall_and_messages_wait(steps):
    polls = [polls_of(each) for each in steps]
    queues = [offsets(number, each) for number, each in enumerate(polls)]
    rows = stalled(queues, owners={"one": [allocated("a", range(len(steps)))]})
    for number, since, until, count, backlog, growth, _ in rows:
        within = {t: poll for t, poll in polls[number].items() if since <= t <= until}
        lags = [came - read for came, read in within.values()]
        assert len(within) == count >= 2
        assert len({read for _, read in within.values()}) == 1
        assert min(lags) > 0
        assert (lags[-1], lags[-1] - lags[0]) == (backlog, growth)
    for one, other in pairwise(rows):
        # Two stalls of one queue have a poll between them at which it moved, or nothing waited.
        assert one[0] != other[0] or one[2] <= other[1]


# ---------------------------------------------------------------- frozen processes


def test_a_process_that_froze_after_a_burst_is_one_fault_with_what_was_seen_in_words():
    (fault,) = stalls_of(burst()).faults
    assert fault == FaultEpisode(
        topic=TOPIC,
        fault="FROZEN_PROCESS",
        extent=Extent(at(27), at(123), 7, "PERSISTENT", ongoing=False),
        evidence="queue 3 of broker-a and queues 0-1 of broker-b are computed for b; none of them "
        "moved from 00:00:27 to 00:02:03 UTC while other clients' queues did; 60 messages wait",
        remedy="check whether b is stopped, in a long garbage collection or blocked in its "
        "listener, and restart it; its queues go to others about 130 s after its last heartbeat, "
        "at once if it shuts down in order",
        client_ids=("b",),
        client_addrs=(),
        broker_names=(BROKER, OTHER_BROKER),
        queues_affected=3,
        cleared=0,
        left=0,
        moves=(),
    )


@pytest.mark.parametrize(
    "taken",
    [
        # Two clients; one or the other, by view; two processes of one id.
        [allocated("b", [3]), allocated("c", [3])],
        [allocated("b", [3], 0.5), allocated("c", [3], 0.5)],
        [allocated("b", [3], processes=2)],
        # Under one view of two; not known.
        [allocated("b", [3], 0.5)],
        [],
    ],
)
def test_where_it_is_not_known_whose_the_queue_is_no_process_is_blamed(taken):
    queues = [offsets(0, steady(0, 60, 120)), offsets(3, stuck(0, 60, 120))]
    owners = {"one": [allocated("a", [0]), *taken] if taken else []}
    assert frozen(queues, owners=owners) == []


def test_a_client_that_says_that_it_does_not_hold_the_queues_is_not_blamed_for_them():
    # They are computed for b; it answers, and holds none of them.
    answers = [info("b", range(0, 300, 30), []), info("a", range(0, 300, 30), [0, 1, 2])]
    holdings = holdings_of(answers, allocations=OWNERS)
    assert stalls_of(burst()).faults
    assert not stalls_of(burst(), holdings=holdings).faults


@pytest.mark.parametrize(
    ("polls", "takers", "lives"),
    [
        (steady(0, 60, 120, 180), "b", True),
        (stuck(0, 60, 120, 180), "b", False),
        # What is computed for another one too may move by that one.
        (steady(0, 60, 120, 180), "ab", False),
        (steady(0, 60, 120, 180), "a", False),
    ],
)
def test_a_client_that_moves_a_queue_of_another_topic_lives(polls, takers, lives):
    other = offsets(7, polls, topic="U")
    of_u = evaluated(allocated(each, [7]) for each in takers)
    of = case(
        dossier=Dossier("C", "G", offsets={TOPIC: burst()}),
        situations=Situations({TOPIC: periods([("one", -60)])}),
        evaluated={"one": evaluated(OWNERS)},
        timelines={TOPIC: None, "U": timeline([("u", 0, 600)], {"u": of_u})},
        offsets={("U", BROKER, 7): other},
        holdings=index_holdings([]),
    )
    assert bool(stalled_queues(of, GroupFindings()).faults) is not lives
