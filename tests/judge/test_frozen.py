"""Processes none of whose queues moves while those of others do."""

from __future__ import annotations

import pytest

from jobs.declared.dossier import Dossier
from jobs.judge.observe.holdings_index import index_holdings
from jobs.judge.observe.situations import Situations
from jobs.judge.rules import stalls
from jobs.judge.rules.found import FaultEpisode, GroupFindings
from jobs.judge.rules.stalls import frozen_processes, stalled_queues
from jobs.judge.times.extents import Extent
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
    intervals_of,
    offsets,
    periods,
    steady,
    stuck,
)


def frozen(queues, **inputs):
    """(client, since, until, polls, queues) of each frozen process."""
    intervals = intervals_of(queues, **inputs)
    rows = []
    for fault in frozen_processes(intervals, 60, ()) if intervals else ():
        times = (in_seconds(fault.first_seen), in_seconds(fault.last_seen))
        rows.append((*fault.client_ids, *times, fault.extent.snapshots, fault.queues_affected))
    return sorted(rows)


def test_a_process_that_froze_after_a_burst_is_one_fault_with_what_was_seen_in_words():
    (fault,) = frozen_processes(intervals_of(burst()), 60, ())
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


def test_one_queue_and_one_message_are_written_in_the_singular():
    queues = [offsets(0, steady(0, 60)), offsets(3, {0: (2, 1), 60: (2, 1)})]
    (fault,) = frozen_processes(intervals_of(queues), 60, ())
    assert fault.evidence.startswith("queue 3 of broker-a is computed for b; it did not move from")
    assert fault.evidence.endswith("1 message waits")
    assert fault.extent.ongoing


def test_who_takes_over_at_last_is_not_blamed():
    # Between 123 and 139 the brokers dropped b; queue 3 was read only after that.
    taken_over = [*range(4), (OTHER_BROKER, 0)]
    assert frozen(
        burst(read_later=True),
        orphans=[((BROKER, 3), 135, 135)],
        segments=[("one", -60), ("two", 135)],
        owners={"one": OWNERS, "two": [allocated("a", taken_over)]},
    ) == [("b", 27, 123, 7, 3)]


@pytest.mark.parametrize("snapshot", [90, 120])
def test_a_queue_that_changes_hands_and_does_not_move_freezes_each_owner_in_its_time(snapshot):
    times = (0, 60, 120, 180)
    assert frozen(
        [offsets(0, steady(*times)), offsets(3, stuck(*times))],
        segments=[("one", -60), ("two", snapshot)],
        owners={"one": OWNERS, "two": [allocated("a", [0]), allocated("c", [3])]},
    ) == [("b", 0, 120, 3, 1), ("c", 120, 180, 2, 1)]


def test_a_poll_that_a_queue_is_missing_from_does_not_end_it():
    # At 60 and 180 broker-b gave no offsets.
    queues = [offsets(0, steady(0, 60, 120, 180, 240))]
    queues.append(offsets(0, stuck(0, 120, 240), OTHER_BROKER))
    assert frozen(queues) == [("b", 0, 240, 3, 1)]


def test_an_offset_that_is_set_back_parts_two_faults():
    # Whoever set it back, it was not the stall that ended: two freezes, not one.
    reset = stuck(0, 60, 120, at_offset=5) | stuck(180, 240, at_offset=2)
    queues = [offsets(0, steady(0, 60, 120, 180, 240)), offsets(3, reset)]
    assert frozen(queues) == [("b", 0, 120, 3, 1), ("b", 180, 240, 2, 1)]


def test_a_client_of_which_a_queue_moves_lives():
    times = (0, 60, 120)
    queues = [offsets(0, steady(*times)), offsets(3, stuck(*times))]
    assert frozen(queues) == [("b", 0, 120, 3, 1)]
    assert frozen([*queues, offsets(0, steady(*times), OTHER_BROKER)]) == []


def test_a_queue_without_messages_that_is_set_back_ends_what_is_seen_of_the_client():
    times = (0, 60, 120, 180)
    # All of it was read; between 60 and 120 somebody set the offset back by two messages.
    set_back = {0: (9, 9), 60: (9, 9), 120: (9, 7), 180: (9, 7)}
    queues = [offsets(0, steady(*times)), offsets(3, stuck(*times))]
    queues.append(offsets(0, set_back, OTHER_BROKER))
    assert frozen(queues) == [("b", 0, 60, 2, 1), ("b", 120, 180, 2, 2)]


def test_a_client_whose_done_queue_is_the_only_measure_is_not_called_frozen():
    done = {0: (0, 0), 60: (20, 20), 120: (20, 20), 180: (20, 20)}
    left = {0: (0, 0), 60: (20, 5), 120: (20, 5), 180: (20, 5)}
    assert frozen([offsets(3, left), offsets(0, done, OTHER_BROKER)]) == []


def test_a_client_is_not_called_frozen_for_a_time_in_which_nobody_moves():
    times = (0, 60, 120, 180, 240, 300)
    # Both clients move at 60 and at 300, and nobody between.
    of_a = {0: (0, 0), 60: (9, 9), 120: (10, 9), 180: (11, 9), 240: (12, 9), 300: (20, 20)}
    of_b = {0: (0, 0)} | dict.fromkeys(times[1:5], (9, 9)) | {300: (20, 20)}
    queues = [offsets(0, of_a), offsets(3, stuck(*times)), offsets(0, of_b, OTHER_BROKER)]
    assert frozen(queues) == []


def test_a_queue_of_the_client_that_has_nothing_to_consume_says_nothing_of_it():
    times = (0, 60, 120, 180)
    # The first message came to queue 0 of broker-b between 60 and 120.
    late = {0: (7, 7), 60: (7, 7), 120: (8, 7), 180: (9, 7)}
    queues = [
        offsets(0, steady(*times)),
        offsets(3, stuck(*times)),
        offsets(0, late, OTHER_BROKER),
        offsets(1, dict.fromkeys(times, (4, 4)), OTHER_BROKER),
    ]
    assert frozen(queues) == [("b", 0, 180, 4, 2)]


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


def test_a_client_that_shares_one_of_its_queues_is_left_out():
    times = (0, 60, 120)
    queues = [offsets(0, steady(*times)), offsets(3, stuck(*times)), offsets(2, stuck(*times))]
    taken = [allocated("a", [0]), allocated("b", [2, 3]), allocated("c", [3])]
    assert frozen(queues, owners={"one": taken}) == []


def test_names_are_names_whatever_is_in_them():
    hostile = "x'; --\"\n`%s` {0} NULL \u202e"
    broker, client_id = "b'\" of 7, queue", "1.2.3.4@\u00e9\x1b[31m"
    times = (0, 60, 120)
    queues = [
        offsets(number, polls, broker, hostile)
        for number, polls in ((0, steady(*times)), (3, stuck(*times)), (5, stuck(*times)))
    ]
    taken = [allocated("a", [(broker, 0)]), allocated(client_id, [(broker, 3), (broker, 5)])]
    (fault,) = frozen_processes(intervals_of(queues, owners={"one": taken}, topic=hostile), 60, ())
    assert fault.topic == hostile
    assert fault.client_ids == (client_id,)
    assert fault.evidence.startswith(
        f"queues 3, 5 of {broker} are computed for {client_id}; none of them"
    )


def test_of_many_brokers_the_first_are_named():
    names = [f"b{number}" for number in range(8)]
    taken = [allocated("a", [0]), allocated("b", [(name, 0) for name in names])]
    queues = [offsets(0, steady(0, 60)), *[offsets(0, stuck(0, 60), name) for name in names]]
    (fault,) = frozen_processes(intervals_of(queues, owners={"one": taken}), 60, ())
    assert "queue 0 of b3, queue 0 of b4 and 3 more brokers are computed for " in fault.evidence
    assert fault.broker_names == tuple(names)


def test_a_client_that_says_that_it_does_not_hold_the_queues_is_not_blamed_for_them():
    # They are computed for b; it answers, and holds none of them.
    answers = [info("b", range(0, 300, 30), []), info("a", range(0, 300, 30), [0, 1, 2])]
    (holdings,) = index_holdings(holdings_of(answers, allocations=OWNERS)).values()
    assert any(frozen_processes(intervals_of(burst()), 60, ()))
    assert not any(frozen_processes(intervals_of(burst()), 60, holdings.holdings))


def test_a_client_that_says_that_it_holds_them_holds_them():
    queues = [offsets(3, stuck(0, 60, 120)), offsets(0, steady(0, 60, 120))]
    answers = [info("b", (30, 90), [3]), info("a", (30, 90), [0, 1, 2])]
    (holdings,) = index_holdings(holdings_of(answers, allocations=OWNERS)).values()
    (fault,) = frozen_processes(intervals_of(queues), 60, holdings.holdings)
    assert fault.evidence.startswith("b holds queue 3 of broker-a; it did not move")


@pytest.mark.parametrize("moves", [True, False])
def test_a_client_that_moves_a_queue_of_another_topic_lives(monkeypatch, moves):
    monkeypatch.setattr(stalls, "has_moving_queue", lambda *of: of[1] == {"U"} and moves)
    of = case(
        dossier=Dossier("C", "G", offsets={TOPIC: burst()}),
        situations=Situations({TOPIC: periods([("one", -60)])}),
        evaluated={"one": evaluated(OWNERS)},
        timelines={TOPIC: None, "U": None},
        holdings=index_holdings([]),
        persistence_seconds=60,
    )
    assert bool(stalled_queues(of, GroupFindings()).faults) is not moves
