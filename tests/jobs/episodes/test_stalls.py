"""Queues that have an owner and stand still, and processes none of whose queues moves."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.episodes.frozen import frozen_processes
from jobs.episodes.stalls import queue_intervals, stall_episodes
from jobs.reports.findings import group_faults, stalled_queues
from jobs.schemas import GROUP_FAULTS, QUEUE_OFFSETS, STALLED_QUEUES
from tests.support.snapshots import CLUSTER, GROUP, TOPIC, at, frame, offset_row

pytestmark = pytest.mark.spark

FINDINGS = (
    "cluster string, consumer_group string, topic string, kind string, broker_name string, "
    "queue_id int, episode_first_seen timestamp, episode_last_seen timestamp"
)
SEGMENTS = (
    "cluster string, consumer_group string, topic string, state_id string, first_seen timestamp, "
    "last_seen timestamp"
)
STATES = (
    "state_id string, coverage string, allocations array<struct<client_id:string,processes:int,"
    "view_weight:double,queues:array<struct<broker_name:string,queue_id:int>>>>"
)
A, B = "broker-a", "broker-b"
#: Queues 0 to 2 of broker-a belong to a, queue 3 and those of broker-b to b.
OWNERS = [
    ("a", 1, 1.0, [(A, 0), (A, 1), (A, 2)]),
    ("b", 1, 1.0, [(A, 3), (B, 0), (B, 1)]),
]


def queue(queue_id, polls, broker_name=A, **overrides):
    """The polls of one queue: by second its broker and consumer offset."""
    return [
        offset_row(
            snapshot_time=at(seconds),
            broker_name=broker_name,
            queue_id=queue_id,
            broker_offset=broker_offset,
            consumer_offset=consumer_offset,
            **overrides,
        )
        for seconds, (broker_offset, consumer_offset) in polls.items()
    ]


def steady(*seconds):
    """A queue that gets a message a second and is always read to its end."""
    return {second: (second, second) for second in seconds}


def stuck(*seconds, at_offset=0):
    """A queue that gets a message a second and is not read beyond its offset."""
    return {second: (second + 10, at_offset) for second in seconds}


def intervals(spark, offsets, orphans=(), segments=(("one", -60),), owners=None, pair=None):
    """``orphans``: queue id of broker-a, since, until; ``segments``: state, first snapshot."""
    pair = pair or (CLUSTER, GROUP, TOPIC)
    owners = owners or {"one": OWNERS}
    return queue_intervals(
        frame(spark, QUEUE_OFFSETS, [row for rows in offsets for row in rows]),
        frame(
            spark,
            FINDINGS,
            [(*pair, "ORPHANED", A, number, at(f), at(u)) for number, f, u in orphans]
            + [(*pair, "DUPLICATE", A, 3, at(-60), at(900))],
        ),
        frame(spark, SEGMENTS, [(*pair, state, at(first), at(first)) for state, first in segments]),
        frame(
            spark,
            STATES,
            [
                (state, "AUDITED" if taken else "STRATEGY_NOT_KNOWN", taken)
                for state, taken in owners.items()
            ],
        ),
    )


def seconds(row):
    """The first and the last second of a run."""
    return [
        int((row[name] - at(0).replace(tzinfo=None)).total_seconds())
        for name in ("first_seen", "last_seen")
    ]


def stalled(rows):
    """(queue id, since, until, polls, backlog, growth, owners) of each stall, by queue and time."""
    return sorted(
        (
            row["queue_id"],
            *seconds(row),
            row["polls"],
            row["backlog"],
            row["backlog_growth"],
            row["owners"],
        )
        for row in stalled_queues(stall_episodes(rows, 60)).collect()
    )


def frozen(rows):
    """(client, since, until, polls, queues) of each frozen process."""
    return sorted(
        (
            *row["client_ids"],
            *seconds(row),
            row["snapshots"],
            row["queues_affected"],
        )
        for row in frozen_processes(rows, 60).collect()
    )


def burst(*, read_later=False):
    """Thirty messages came to each queue; b, which has three of them, froze at the tenth.

    As a real cluster showed it: nothing came after that, so nobody moved.
    """
    times = (27, 43, 59, 75, 91, 107, 123)
    read = {0: (0, 0)} | dict.fromkeys((*times, 139), (30, 30))
    left = {0: (0, 0)} | dict.fromkeys(times, (30, 10)) | {139: (30, 30)}
    later = left | {139: (30, 10), 189: (30, 30)}
    return [
        *[queue(number, read) for number in (0, 1, 2)],
        queue(3, later if read_later else left),
        queue(0, left, B),
        queue(1, left, B),
    ]


def test_the_queues_of_a_frozen_process_stall_though_nothing_comes_after_the_burst(spark):
    rows = intervals(spark, burst()).cache()
    fixed = {"polls": 7, "severity": "WARNING", "backlog": 20, "backlog_growth": 0}
    expected = {
        "cluster": CLUSTER,
        "consumer_group": GROUP,
        "topic": TOPIC,
        "first_seen": at(27),
        "last_seen": at(123),
        "persistence": "PERSISTENT",
        "ongoing": False,
        "owners": ["b"],
        "known_issue": None,
        **fixed,
    }
    assert_df_equality(
        stalled_queues(stall_episodes(rows, 60)),
        frame(
            spark,
            STALLED_QUEUES,
            [
                tuple(
                    (expected | {"broker_name": broker, "queue_id": number})[name]
                    for name in STALLED_QUEUES.schema.names
                )
                for broker, number in ((A, 3), (B, 0), (B, 1))
            ],
        ),
        ignore_row_order=True,
        ignore_nullable=True,
    )
    evidence = (
        "b holds queue 3 of broker-a and queues 0-1 of broker-b; none of them moved from 00:00:27 "
        "to 00:02:03 UTC while other clients' queues did; 60 messages wait"
    )
    fault = (
        *(CLUSTER, GROUP, TOPIC, "FROZEN_PROCESS", at(27), at(123), 7, "PERSISTENT", False),
        *(evidence, "", ["b"], [], [A, B], 3, 0, 0, [], None),
    )
    assert_df_equality(
        group_faults(frozen_processes(rows, 60)).drop("remedy"),
        frame(spark, GROUP_FAULTS, [fault]).drop("remedy"),
        ignore_nullable=True,
    )


def test_who_takes_over_at_last_is_not_blamed_and_a_moment_without_owner_hides_no_stall(spark):
    # Between 123 and 139 the brokers dropped b; queue 3 was read only after that.
    rows = intervals(
        spark,
        burst(read_later=True),
        orphans=[(3, 135, 135)],
        segments=[("one", -60), ("two", 135)],
        owners={"one": OWNERS, "two": [("a", 1, 1.0, [(A, n) for n in range(4)] + [(B, 0)])]},
    ).cache()
    assert stalled(rows) == [
        (0, 27, 123, 7, 20, 0, ["b"]),
        (1, 27, 123, 7, 20, 0, ["b"]),
        (3, 27, 139, 8, 20, 0, ["b"]),
    ]
    assert frozen(rows) == [("b", 27, 123, 7, 3)]


def test_a_queue_that_changes_hands_and_still_does_not_move_is_one_stall_of_its_last_owner(spark):
    times = (0, 60, 120, 180)
    rows = intervals(
        spark,
        [queue(0, steady(*times)), queue(3, stuck(*times))],
        segments=[("one", -60), ("two", 90)],
        owners={"one": OWNERS, "two": [("a", 1, 1.0, [(A, 0)]), ("c", 1, 1.0, [(A, 3)])]},
    ).cache()
    assert stalled(rows) == [(3, 0, 180, 4, 190, 180, ["c"])]
    assert frozen(rows) == [("b", 0, 120, 3, 1), ("c", 120, 180, 2, 1)]


def test_a_queue_that_is_read_slowly_is_not_stalled(spark):
    slow = {0: (10, 1), 60: (100, 2), 120: (200, 3), 180: (300, 4)}
    offsets = [queue(0, steady(0, 60, 120, 180)), queue(3, slow)]
    assert stalled(intervals(spark, offsets)) == []


def test_one_poll_is_no_stall_and_two_are(spark):
    once = {0: (0, 0), 60: (20, 0), 120: (20, 20)}
    twice = {0: (0, 0), 60: (20, 0), 120: (25, 0), 180: (25, 25)}
    times = (0, 60, 120, 180)
    offsets = [queue(0, steady(*times)), queue(3, once), queue(0, twice, B)]
    assert stalled(intervals(spark, offsets)) == [(0, 60, 120, 2, 25, 5, ["b"])]


@pytest.mark.parametrize("new_messages", [0, 5])
def test_nothing_is_stalled_where_the_whole_group_stands_still(spark, new_messages):
    # All moved until second 70, in the middle of their messages; then nobody, ever.
    def stops(left):
        polls = {0: (10, 5), 60: (80, 70), 120: (160, 100)}
        return polls | {
            second: (160 + left + new_messages * number, 100)
            for number, second in enumerate((180, 240, 300))
        }

    offsets = [queue(number, stops(number)) for number in (0, 1, 3)]
    # It had nothing to do, before and after: it is no measure.
    idle = queue(2, dict.fromkeys((0, 60, 120, 180, 240, 300), (7, 7)))
    assert stalled(intervals(spark, [*offsets, idle])) == []


def test_where_a_queue_that_was_done_stands_still_with_the_next_message_all_may_stand_still(spark):
    # Since 61 nobody reads: the first message came to queue 3, the next, at 180, to queue 0.
    times = (60, 120, 180, 240, 300)
    last = {0: (0, 0)} | dict.fromkeys(times, (10, 8))
    done = {0: (0, 0)} | dict.fromkeys(times, (9, 9))
    next_message = done | {180: (10, 9), 240: (11, 9), 300: (12, 9)}
    offsets = [queue(0, next_message), queue(1, done), queue(3, last)]
    assert stalled(intervals(spark, offsets)) == [(3, 60, 120, 2, 2, 0, ["b"])]


def test_a_group_that_stands_still_for_an_hour_makes_no_lasting_stall_of_who_is_last_to_move(spark):
    times = (*range(0, 3600, 60),)
    hour = {time: (time + 1, 0) for time in times}
    early = hour | {3600: (4000, 100), 3660: (4000, 4000)}
    late = hour | {3600: (4000, 0), 3660: (4000, 100)}
    rows = intervals(spark, [queue(0, early), queue(3, late)])
    assert [row[:4] for row in stalled(rows)] == [(3, 3540, 3600, 2)]


def test_where_nothing_can_be_compared_nothing_is_stalled(spark):
    alone = queue(0, stuck(0, 60, 120))
    elsewhere = [
        queue(1, steady(0, 60, 120), **{name: "other"})
        for name in ("cluster", "consumer_group", "topic")
    ]
    assert stalled(intervals(spark, [alone, *elsewhere])) == []


def test_a_queue_without_owner_is_an_orphan_and_not_stalled(spark):
    times = (0, 60, 120, 180, 240)
    offsets = [queue(number, stuck(*times)) for number in (1, 2, 3, 9)]
    rows = intervals(
        spark,
        [queue(0, steady(*times)), *offsets],
        # 1: all the time; 2: over most of the time between two polls; 3: at one poll.
        # 9 is not readable, so nobody was given it.
        orphans=[(1, -60, 240), (2, 65, 110), (3, 120, 120)],
    )
    assert stalled(rows) == [
        (2, 0, 60, 2, 70, 60, ["a"]),
        (2, 120, 240, 3, 250, 120, ["a"]),
        (3, 0, 60, 2, 70, 60, ["b"]),
        (3, 180, 240, 2, 250, 60, ["b"]),
    ]


def test_a_poll_that_a_queue_is_missing_from_breaks_no_stall(spark):
    times = (0, 60, 120, 180, 240)
    # At 60 and 180 broker-b gave no offsets.
    rows = intervals(spark, [queue(0, steady(*times)), queue(0, stuck(0, 120, 240), B)]).cache()
    assert stalled(rows) == [(0, 0, 240, 3, 250, 240, ["b"])]
    assert frozen(rows) == [("b", 0, 240, 3, 1)]


def test_when_a_queue_moved_that_was_missing_is_not_known_so_it_is_no_measure(spark):
    # broker-b was not asked from 60 to 240: its queue may have stopped at 61.
    away = {0: (10, 0), 60: (100, 60), 240: (300, 61)}
    rows = intervals(spark, [queue(3, stuck(60, 120, 180, 240)), queue(0, away, B)])
    assert stalled(rows) == []


def test_an_offset_that_is_set_back_ends_a_stall(spark):
    times = (0, 60, 120, 180, 240)
    reset = stuck(0, 60, 120, at_offset=5) | stuck(180, 240, at_offset=2)
    rows = intervals(spark, [queue(0, steady(*times)), queue(3, reset)]).cache()
    assert stalled(rows) == [(3, 0, 120, 3, 125, 120, ["b"]), (3, 180, 240, 2, 248, 60, ["b"])]
    # Whoever set it back, it was not the stall that ended: two freezes, not one.
    assert frozen(rows) == [("b", 0, 120, 3, 1), ("b", 180, 240, 2, 1)]


def test_a_client_of_which_a_queue_moves_lives(spark):
    times = (0, 60, 120)
    rows = intervals(
        spark,
        [
            queue(0, steady(*times)),
            queue(3, stuck(*times)),
            queue(0, steady(*times), B),
        ],
    ).cache()
    assert [row[:3] for row in stalled(rows)] == [(3, 0, 120)]
    assert frozen(rows) == []


def test_a_client_whose_done_queue_is_the_only_measure_is_not_called_frozen(spark):
    done = {0: (0, 0), 60: (20, 20), 120: (20, 20), 180: (20, 20)}
    left = {0: (0, 0), 60: (20, 5), 120: (20, 5), 180: (20, 5)}
    rows = intervals(spark, [queue(3, left), queue(0, done, B)]).cache()
    assert [row[:3] for row in stalled(rows)] == [(3, 60, 180)]
    assert frozen(rows) == []


def test_a_client_is_not_called_frozen_for_a_time_in_which_nobody_moves(spark):
    times = (0, 60, 120, 180, 240, 300)
    # Both clients move at 60 and at 300, and nobody between.
    of_a = {0: (0, 0), 60: (9, 9), 120: (10, 9), 180: (11, 9), 240: (12, 9), 300: (20, 20)}
    of_b = {0: (0, 0)} | dict.fromkeys(times[1:5], (9, 9)) | {300: (20, 20)}
    rows = intervals(spark, [queue(0, of_a), queue(3, stuck(*times)), queue(0, of_b, B)]).cache()
    assert [row[:3] for row in stalled(rows)] == [(3, 0, 300)]
    assert frozen(rows) == []


def test_a_queue_of_the_client_that_has_nothing_to_consume_says_nothing_of_it(spark):
    times = (0, 60, 120, 180)
    # The first message came to queue 0 of broker-b between 60 and 120.
    late = {0: (7, 7), 60: (7, 7), 120: (8, 7), 180: (9, 7)}
    rows = intervals(
        spark,
        [
            queue(0, steady(*times)),
            queue(3, stuck(*times)),
            queue(0, late, B),
            queue(1, dict.fromkeys(times, (4, 4)), B),
        ],
    )
    assert frozen(rows) == [("b", 0, 180, 4, 2)]


@pytest.mark.parametrize(
    ("taken", "owners"),
    [
        ([("a", 1, 1.0, [(A, 0)]), ("b", 1, 1.0, [(A, 3)]), ("c", 1, 1.0, [(A, 3)])], ["b", "c"]),
        ([("a", 1, 1.0, [(A, 0)]), ("b", 1, 0.5, [(A, 3)]), ("c", 1, 0.5, [(A, 3)])], ["b", "c"]),
        ([("a", 1, 1.0, [(A, 0)]), ("b", 2, 1.0, [(A, 3)])], ["b"]),
        ([("a", 1, 1.0, [(A, 0)]), ("b", 1, 0.5, [(A, 3)])], ["b"]),
        ([], []),
    ],
    ids=[
        "two clients",
        "one client or the other, by view",
        "two processes of one id",
        "under one view of two",
        "not known",
    ],
)
def test_where_it_is_not_known_whose_the_queue_is_no_process_is_blamed(spark, taken, owners):
    times = (0, 60, 120)
    offsets = [queue(0, steady(*times)), queue(3, stuck(*times))]
    rows = intervals(spark, offsets, owners={"one": taken}).cache()
    assert stalled(rows) == [(3, 0, 120, 3, 130, 120, owners)]
    assert frozen(rows) == []


def test_names_are_names_whatever_is_in_them(spark):
    hostile = "x'; --\"\n`%s` NULL \u202e"
    pair = {"cluster": hostile, "consumer_group": hostile, "topic": hostile}
    broker, client = "b'\" of 7, queue", "1.2.3.4@\u00e9\x1b[31m"
    times = (0, 60, 120)
    rows = intervals(
        spark,
        [
            queue(0, steady(*times), broker, **pair),
            queue(3, stuck(*times), broker, **pair),
            queue(5, stuck(*times), broker, **pair),
        ],
        pair=(hostile,) * 3,
        owners={
            "one": [("a", 1, 1.0, [(broker, 0)]), (client, 1, 1.0, [(broker, 3), (broker, 5)])]
        },
    ).cache()
    assert [row[:3] for row in stalled(rows)] == [(3, 0, 120), (5, 0, 120)]
    (fault,) = frozen_processes(rows, 60).collect()
    assert fault["topic"] == hostile
    assert fault["client_ids"] == [client]
    assert fault["evidence"].startswith(f"{client} holds queues 3, 5 of {broker}; none of them")


def test_of_many_brokers_the_first_are_told(spark):
    names = [f"b{number}" for number in range(8)]
    times = (0, 60)
    taken = [("a", 1, 1.0, [(A, 0)]), ("b", 1, 1.0, [(name, 0) for name in names])]
    offsets = [queue(0, steady(*times)), *[queue(0, stuck(*times), name) for name in names]]
    (fault,) = frozen_processes(intervals(spark, offsets, owners={"one": taken}), 60).collect()
    assert "queue 0 of b3, queue 0 of b4 and 3 more brokers; none of them" in fault["evidence"]
    assert fault["broker_names"] == names
    (alone,) = frozen_processes(
        intervals(spark, [queue(0, steady(*times)), queue(3, {0: (1, 0), 60: (1, 0)})]), 60
    ).collect()
    assert alone["evidence"].startswith("b holds queue 3 of broker-a; it did not move from")
    assert alone["evidence"].endswith("1 message waits")
