"""What clients held or computed, against what was computed for them."""

from __future__ import annotations

import pytest
from chispa import assert_df_equality

from jobs.conform import conform
from jobs.episodes.drift import drift_episodes
from jobs.schemas import ALLOCATION_DRIFT
from tests.jobs.episodes.conftest import AGREED
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


@pytest.fixture
def drift(holdings):
    """The table ``allocation_drift``, for a persistence of a minute."""

    def find(client_states, **inputs):
        return conform(drift_episodes(holdings(client_states, **inputs), 60), ALLOCATION_DRIFT)

    return find


def row(client_id, queue_id, kind, probability, first, last, observations, **overrides):
    values = {
        "cluster": CLUSTER,
        "consumer_group": GROUP,
        "topic": TOPIC,
        "client_id": client_id,
        "source": "RUNNING_INFO",
        "start_timestamp": at(0),
        "process": None,
        "broker_name": BROKER,
        "queue_id": queue_id,
        "drift": kind,
        "probability": probability,
        "first_seen": at(first),
        "last_seen": at(last),
        "observations": observations,
        "persistence": "PERSISTENT" if last - first >= 60 else "TRANSIENT",
        "attributed_to": None,
        "queue_count": None,
        "client_count": None,
    }
    return tuple((values | overrides).values())


def log_drift(process, client_id, queue_id, kind, probability, first, last, **overrides):
    values = {
        "source": "CLIENT_LOG",
        "start_timestamp": None,
        "process": process,
        "queue_count": 4,
        "client_count": 2,
    }
    observations = overrides.pop("observations", 1)
    return row(
        client_id, queue_id, kind, probability, first, last, observations, **values | overrides
    )


def assert_drift(spark, actual, rows):
    assert_df_equality(
        actual, frame(spark, ALLOCATION_DRIFT, rows), ignore_row_order=True, ignore_nullable=True
    )


# ---------------------------------------------------------------- running infos


def test_who_holds_what_was_computed_does_not_drift(spark, drift):
    infos = [info_row("a", 60, [1, 0]), info_row("b", 60, [2, 3]), info_row("a", 120, [0, 1])]
    assert_drift(spark, drift(infos), [])


def test_what_is_missing_and_what_is_too_much_are_told_from_first_to_last(spark, drift):
    infos = [
        info_row("a", 60, [0]),
        info_row("a", 120, [0]),
        info_row("a", 180, [0, 1]),
        info_row("b", 60, [1, 2, 3]),
    ]
    assert_drift(
        spark,
        drift(infos),
        [
            row("a", 1, "COMPUTED_NOT_HELD", 1.0, 60, 120, 2),
            row("b", 1, "HELD_NOT_COMPUTED", 0.0, 60, 60, 1),
        ],
    )


def test_a_queue_that_is_being_released_is_not_held(spark, drift):
    queues = [(TOPIC, BROKER, number, number == 1, None) for number in (0, 1)]
    assert_drift(
        spark,
        drift([info_row("a", 60, [], queues=queues)]),
        [row("a", 1, "COMPUTED_NOT_HELD", 1.0, 60, 60, 1)],
    )


def test_where_views_differ_the_probability_tells_how_much_to_make_of_it(spark, drift):
    allocations = [allocation_row("a", [0], 0.25), allocation_row("a", [0, 1], 0.75)]
    assert_drift(
        spark,
        drift([info_row("a", 60, [])], allocations=allocations),
        [
            row("a", 0, "COMPUTED_NOT_HELD", 1.0, 60, 60, 1),
            row("a", 1, "COMPUTED_NOT_HELD", 0.75, 60, 60, 1),
        ],
    )


def test_processes_that_share_an_id_are_each_held_against_its_share(drift):
    infos = [info_row("a", 60, [0, 1]), info_row("a", 60, [0], started=5)]
    (only,) = drift(infos).collect()
    assert (only["start_timestamp"].second, only["queue_id"]) == (at(5).second, 1)


def test_what_follows_a_change_is_attributed_to_it_for_as_long_as_it_explains_it(spark, drift):
    segments = [("one", 0, 100), ("two", 110, 600)]
    infos = [info_row("a", 115, [0]), info_row("b", 115, [2]), info_row("b", 300, [2])]
    assert_drift(
        spark,
        drift(infos, segments=segments),
        [
            row("a", 1, "COMPUTED_NOT_HELD", 1.0, 115, 115, 1, attributed_to="STATE_CHANGED"),
            row("b", 3, "COMPUTED_NOT_HELD", 1.0, 115, 300, 2),
        ],
    )
    assert_drift(
        spark,
        drift(infos[:1], segments=segments, changes=[70]),
        [row("a", 1, "COMPUTED_NOT_HELD", 1.0, 115, 115, 1, attributed_to="ROUTE_CHANGED")],
    )


def test_nothing_is_compared_where_nothing_is_known(spark, drift):
    outside = [
        info_row("a", 700, []),
        info_row("a", 60, [], error_code=1),
        info_row("a", 60, [], queues=None),
    ]
    assert_drift(spark, drift(outside), [])
    assert_drift(spark, drift([info_row("a", 60, [])], allocations=[]), [])


def test_consumers_that_do_not_show_what_they_hold_do_not_drift(spark, drift):
    active = {"consume_type": "CONSUME_ACTIVELY"}
    silent = [
        info_row("a", 60, [], **active),
        info_row("a", 120, [2], pull_consumer=True, **active),
        info_row("a", 180, [2], client_rebalance=False),
    ]
    assert_drift(spark, drift(silent), [])
    # A client of another language may fill in what it pulls.
    assert_drift(
        spark,
        drift([info_row("a", 60, [0], pull_consumer=False, **active)]),
        [row("a", 1, "COMPUTED_NOT_HELD", 1.0, 60, 60, 1)],
    )
    assert drift([info_row("a", 60, [], consume_type="CONSUME_PASSIVELY")]).count() == 2


# ---------------------------------------------------------------- client logs


def test_a_line_holds_until_the_next_one_in_every_state_that_it_lasts_through(spark, drift):
    states = {
        "two": [allocation_row("a", [0, 1]), allocation_row("b", [2, 3])],
        "three": [
            allocation_row("a", [0, 1], client_count=3),
            allocation_row("b", [2], client_count=3),
        ],
        "one": [allocation_row("a", [0, 1, 2, 3], client_count=1)],
    }
    segments = [("two", 0, 100), ("three", 110, 200), ("one", 210, 300), ("two", 310, 600)]
    lines = [
        log_row("p", "a", -500, [0, 1]),
        # 20 s after the state came in which it is alone it has not noticed, 5 s later it has.
        log_row("p", "a", 235, [0, 1, 2, 3], client_count=1),
        log_row("p", "a", 312, [0, 1]),
        log_row("q", "b", 50, [2, 3]),
        # b is not in the state any more: what it computed last says nothing.
    ]
    assert_drift(
        spark,
        drift(lines, segments=segments, allocations=states),
        [
            log_drift("p", "a", 2, "COMPUTED_NOT_HELD", 1.0, 230, 235),
            log_drift("p", "a", 3, "COMPUTED_NOT_HELD", 1.0, 230, 235),
            log_drift("q", "b", 3, "HELD_NOT_COMPUTED", 0.0, 130, 200),
        ],
    )


def test_a_contradiction_is_one_episode_over_the_states_that_it_lasts_through(spark, drift):
    segments = [("one", 0, 100), ("two", 110, 200), ("one", 210, 300)]
    assert_drift(
        spark,
        drift([log_row("p", "a", 0, [0])], segments=segments),
        [log_drift("p", "a", 1, "COMPUTED_NOT_HELD", 1.0, 20, 300, observations=3)],
    )


def test_a_contradiction_that_comes_again_is_another_episode(spark, drift):
    lines = [log_row("p", "a", 0, [0]), log_row("p", "a", 150, [0, 1]), log_row("p", "a", 250, [0])]
    assert_drift(
        spark,
        drift(lines),
        [
            log_drift("p", "a", 1, "COMPUTED_NOT_HELD", 1.0, 20, 150),
            log_drift("p", "a", 1, "COMPUTED_NOT_HELD", 1.0, 270, 600),
        ],
    )


def test_after_a_route_change_a_client_has_50_seconds_to_follow(spark, drift):
    segments = [("one", 0, 100), ("two", 110, 300)]
    line = log_row("p", "a", -100, [0, 1])
    more = {"two": [allocation_row("a", [0, 1, 2], queue_count=6)]}
    states = {"one": [allocation_row("a", [0, 1])]} | more
    inputs = {"segments": segments, "allocations": states, "changes": [105]}

    followed = drift([line, log_row("p", "a", 140, [0, 1, 2], queue_count=6)], **inputs)
    lag = log_drift("p", "a", 2, "COMPUTED_NOT_HELD", 1.0, 110, 140, attributed_to="ROUTE_CHANGED")
    assert_drift(spark, followed, [lag])

    # What lasts longer than 50 seconds is not explained by the change.
    stayed = log_drift("p", "a", 2, "COMPUTED_NOT_HELD", 1.0, 110, 300, observations=2)
    assert_drift(spark, drift([line], **inputs), [stayed])


#: One broker lists two clients, the others three.
DIVERGED = [
    allocation_row("a", [0, 1], 0.25, client_count=2),
    allocation_row("b", [2, 3], 0.25, client_count=2),
    allocation_row("a", [0], 0.75, client_count=3),
    allocation_row("b", [1, 2], 0.75, client_count=3),
]


def test_a_result_that_some_view_gives_does_not_drift(spark, drift):
    segments = [("before", 0, 60), ("diverged", 70, 600)]
    allocations = {"before": DIVERGED[:2], "diverged": DIVERGED}
    # Printed from two clients; drawing the list of three it would have printed another.
    lines = [log_row("p", "a", 10, [0, 1]), log_row("q", "b", 10, [2, 3])]
    lines += [log_row("q", "b", 200, [1, 2], client_count=3)]
    assert_drift(spark, drift(lines, segments=segments, allocations=allocations), [])


def test_a_result_that_no_view_gives_drifts_by_what_all_views_have_in_common(spark, drift):
    assert_drift(
        spark,
        drift(
            [log_row("p", "b", -100, [3]), log_row("q", "a", -100, [1, 3])], allocations=DIVERGED
        ),
        [
            log_drift("p", "b", 2, "COMPUTED_NOT_HELD", 1.0, 20, 600),
            log_drift("q", "a", 0, "COMPUTED_NOT_HELD", 1.0, 20, 600),
            log_drift("q", "a", 3, "HELD_NOT_COMPUTED", 0.0, 20, 600),
        ],
    )


def test_the_lengths_of_the_lists_prove_the_view_that_the_client_had(spark, drift):
    # b takes 1 and 2 from the list of three clients, and says that it had the list of two.
    assert_drift(
        spark,
        drift([log_row("p", "b", 100, [1, 2])], allocations=DIVERGED),
        [
            log_drift("p", "b", 1, "HELD_NOT_COMPUTED", 0.75, 120, 600),
            log_drift("p", "b", 3, "COMPUTED_NOT_HELD", 0.25, 120, 600),
        ],
    )
    # In the state's first seconds it may have been a list of the state before.
    assert_drift(spark, drift([log_row("p", "b", 10, [1, 2])], allocations=DIVERGED), [])


def test_lists_that_no_broker_gave_are_named_unless_they_are_those_of_a_state_nearby(spark, drift):
    segments = [("one", 0, 100), ("two", 110, 300)]
    five = {"two": [allocation_row("a", [2], client_count=5)]}
    states = {"one": [allocation_row("a", [0, 1])]} | five

    def attributed(seconds, client_count):
        line = log_row("p", "a", seconds, [3], client_count=client_count)
        rows = drift([line], segments=segments, allocations=states).collect()
        return {each["attributed_to"] for each in rows}

    assert attributed(155, 9) == {"OTHER_LIST"}
    assert attributed(155, 5) == {None}
    assert attributed(155, 2) == {None}
    assert attributed(170, 2) == {"OTHER_LIST"}
    # Of the lists before the first snapshot nothing is known.
    assert attributed(-100, 9) == {None}
    assert attributed(40, 9) == {None}
    assert attributed(60, 9) == {"OTHER_LIST"}


def test_logs_of_processes_that_share_an_id_are_kept_apart(spark, drift):
    allocations = [allocation_row("a", [0, 1], processes=2)]
    lines = [log_row("p", "a", -100, [0, 1]), log_row("q", "a", -50, [0])]
    assert_drift(
        spark,
        drift(lines, allocations=allocations),
        [log_drift("q", "a", 1, "COMPUTED_NOT_HELD", 1.0, 20, 600)],
    )
    # One process, two logs: one of them is of a process that is gone.
    assert_drift(spark, drift(lines), [])


def test_no_result_of_the_clients_own_is_compared_where_the_broker_assigns(spark, drift):
    assigned = log_row(
        "p", "a", 100, [3], queue_count=None, client_count=None, client_rebalance=False
    )
    assert_drift(
        spark,
        drift([log_row("p", "a", -100, [0]), assigned]),
        [log_drift("p", "a", 1, "COMPUTED_NOT_HELD", 1.0, 20, 100)],
    )


def test_a_client_that_does_not_subscribe_has_no_result_to_compare(spark, drift):
    allocations = [allocation_row("a", [], subscribed=False), allocation_row("b", [0, 1, 2, 3])]
    assert_drift(spark, drift([log_row("p", "a", -100, [0])], allocations=allocations), [])


def test_a_process_that_keeps_what_it_had_did_not_follow_the_change(spark, drift):
    states = {"two": AGREED, "alone": (allocation_row("a", range(4)),)}
    segments = [("two", 0, 100), ("alone", 160, 600)]
    followed = [info_row("a", 100, [0, 1]), info_row("a", 300, range(4))]
    suspended = [info_row("a", 100, [0, 1]), info_row("a", 300, [0, 1])]
    # It never had its share: what it has is no earlier one.
    failing = [info_row("a", 100, [0]), info_row("a", 300, [0])]

    def attributed(client_states):
        rows = drift(client_states, segments=segments, allocations=states, processes=1)
        return {
            (r.queue_id, r.attributed_to)
            for r in rows.where("last_seen > '2026-01-05 00:03'").collect()
        }

    assert attributed(followed) == set()
    assert attributed(suspended) == {(2, "SHARE_KEPT"), (3, "SHARE_KEPT")}
    assert attributed(failing) == {(1, None), (2, None), (3, None)}
