"""What clients held or computed, against what was computed for them."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.judge.observe.holdings_index import find_drift
from tests.judge.witnesses import BROKER, TOPIC, allocated, at, holdings_of, info, log


def drift(clients, **inputs) -> list[dict[str, Any]]:
    """The rows for a persistence of a minute, in the order of queue, client and time."""
    rows = [each.row() for each in find_drift(holdings_of(clients, **inputs), 60)]
    assert all(row.pop("topic") == TOPIC and row.pop("broker_name") == BROKER for row in rows)
    order = ("client_id", "process", "queue_id", "first_seen")
    return sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in order])


def row(client_id, queue_id, kind, probability, first, last, observations, **overrides):
    values = {
        "client_id": client_id,
        "source": "RUNNING_INFO",
        "start_timestamp": at(0),
        "process": None,
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
    return values | overrides


def log_drift(process, *of_row, observations=1, **overrides):
    values = {"source": "CLIENT_LOG", "start_timestamp": None, "process": process}
    values |= {"queue_count": 4, "client_count": 2}
    return row(*of_row, observations, **values | overrides)


def lacks(client_id, queue_id, *of_row, **overrides):
    return row(client_id, queue_id, "COMPUTED_NOT_HELD", 1.0, *of_row, **overrides)


def extra(client_id, queue_id, *of_row, **overrides):
    return row(client_id, queue_id, "HELD_NOT_COMPUTED", 0.0, *of_row, **overrides)


def log_lacks(process, client_id, queue_id, *of_row, **overrides):
    return log_drift(process, client_id, queue_id, "COMPUTED_NOT_HELD", 1.0, *of_row, **overrides)


# ---------------------------------------------------------------- running infos


def test_what_is_missing_and_what_is_too_much_is_one_row_from_first_to_last():
    infos = [info("a", [60, 120], [0]), info("a", 180, [0, 1]), info("b", 60, [1, 2, 3])]
    assert drift(infos) == [lacks("a", 1, 60, 120, 2), extra("b", 1, 60, 60, 1)]


def test_processes_that_share_an_id_are_each_held_against_its_share():
    infos = [info("a", 60, [0, 1]), info("a", 60, [0], started=5)]
    assert drift(infos) == [lacks("a", 1, 60, 60, 1, start_timestamp=at(5))]


@pytest.mark.parametrize(
    ("second", "explained_by"),
    [
        (110, "ROUTE_CHANGED"),
        # 50 seconds: 30 until the route is polled and 20 until the rebalance, both included.
        (120, "ROUTE_CHANGED"),
        (121, "STATE_CHANGED"),
        # 20 seconds after the phase's first snapshot, not included.
        (129, "STATE_CHANGED"),
        (130, None),
    ],
)
def test_a_route_explains_for_50_seconds_and_the_lists_for_20(second, explained_by):
    segments = [("one", 0, 100), ("two", 110, 600)]
    rows = drift([info("a", second, [0])], segments=segments, changes=[70])
    assert [each["attributed_to"] for each in rows] == [explained_by]


@pytest.mark.parametrize(
    "infos",
    [
        [info("a", 700, [])],
        [info("a", 60, [], error_code=1)],
        [info("a", 60, [], queues=None)],
        [info("c", 60, [0])],
    ],
    ids=["after the last snapshot", "no answer", "no table", "a client that no list has"],
)
def test_nothing_is_compared_where_nothing_is_known(infos):
    assert drift(infos) == []


def test_consumers_that_do_not_show_what_they_hold_do_not_drift():
    active = {"consume_type": "CONSUME_ACTIVELY"}
    silent = [info("a", 60, [], **active), info("a", 120, [2], pull_consumer=True, **active)]
    assert drift(silent) == []
    # What the broker divides by PULL is in the table like any other queue.
    assert drift([info("a", 180, [2], client_rebalance=False)])
    # A client of another language may fill in what it pulls.
    assert drift([info("a", 60, [0], pull_consumer=False, **active)]) == [lacks("a", 1, 60, 60, 1)]
    assert len(drift([info("a", 60, [], consume_type="CONSUME_PASSIVELY")])) == 2


def test_an_episode_has_the_highest_probability_in_it():
    views = [allocated("a", [0], 0.25), allocated("a", [], 0.75, client_count=3)]
    states = {"sure": [allocated("a", [0])], "at times": views}
    for one, other in (("sure", "at times"), ("at times", "sure")):
        segments = [(one, 0, 100), (other, 110, 600)]
        missing, _ = drift([info("a", [60, 300], [3])], segments=segments, allocations=states)
        assert missing == lacks("a", 0, 60, 300, 2)


# ---------------------------------------------------------------- client logs


def test_a_line_holds_until_the_next_one_in_every_phase_that_it_lasts_through():
    states = {
        "two": [allocated("a", [0, 1]), allocated("b", [2, 3])],
        "three": [allocated("a", [0, 1], client_count=3), allocated("b", [2], client_count=3)],
        "one": [allocated("a", [0, 1, 2, 3], client_count=1)],
    }
    segments = [("two", 0, 100), ("three", 110, 200), ("one", 210, 300), ("two", 310, 600)]
    lines = [
        log("p", "a", -500, [0, 1]),
        # 20 s after the phase came in which it is alone it has not noticed, 5 s later it has.
        log("p", "a", 235, [0, 1, 2, 3], client_count=1),
        log("p", "a", 312, [0, 1]),
        # b is in the lists until 200 and from 310 on; between, what it computed says nothing.
        log("q", "b", 50, [2, 3]),
    ]
    assert drift(lines, segments=segments, allocations=states) == [
        log_lacks("p", "a", 2, 230, 235),
        log_lacks("p", "a", 3, 230, 235),
        log_drift("q", "b", 3, "HELD_NOT_COMPUTED", 0.0, 130, 200),
    ]


def test_a_contradiction_that_comes_again_is_another_episode():
    lines = [log("p", "a", 0, [0]), log("p", "a", 150, [0, 1]), log("p", "a", 250, [0])]
    assert drift(lines) == [log_lacks("p", "a", 1, 20, 150), log_lacks("p", "a", 1, 270, 600)]


def test_after_a_route_change_a_client_has_50_seconds_to_follow():
    line, grown = log("p", "a", -100, [0, 1]), allocated("a", [0, 1, 2], queue_count=6)
    inputs = {
        "segments": [("one", 0, 100), ("two", 110, 300)],
        "allocations": {"one": [allocated("a", [0, 1])], "two": [grown]},
        "changes": [105],
    }
    followed = [line, log("p", "a", 140, [0, 1, 2], queue_count=6)]
    assert drift(followed, **inputs) == [
        log_lacks("p", "a", 2, 110, 140, attributed_to="ROUTE_CHANGED")
    ]
    # What lasts longer than 50 seconds is not explained by the change.
    assert drift([line], **inputs) == [log_lacks("p", "a", 2, 110, 300, observations=2)]


#: One broker lists two clients, the others three.
DIVERGED = (
    allocated("a", [0, 1], 0.25, client_count=2),
    allocated("b", [2, 3], 0.25, client_count=2),
    allocated("a", [0], 0.75, client_count=3),
    allocated("b", [1, 2], 0.75, client_count=3),
)


def test_a_result_that_some_view_gives_does_not_drift():
    segments = [("before", 0, 60), ("diverged", 70, 600)]
    allocations = {"before": DIVERGED[:2], "diverged": DIVERGED}
    # Printed from two clients; drawing the list of three it would have printed another.
    lines = [log("p", "a", 10, [0, 1]), log("q", "b", 10, [2, 3])]
    lines += [log("q", "b", 200, [1, 2], client_count=3)]
    assert drift(lines, segments=segments, allocations=allocations) == []


def test_a_result_that_no_view_gives_drifts_by_what_all_views_have_in_common():
    lines = [log("p", "b", -100, [3]), log("q", "a", -100, [1, 3])]
    assert drift(lines, allocations=DIVERGED) == [
        log_lacks("q", "a", 0, 20, 600),
        log_drift("q", "a", 3, "HELD_NOT_COMPUTED", 0.0, 20, 600),
        log_lacks("p", "b", 2, 20, 600),
    ]


def test_the_lengths_of_the_lists_prove_the_view_that_the_client_had():
    # b takes 1 and 2 from the list of three clients, and says that it had the list of two.
    assert drift([log("p", "b", 100, [1, 2])], allocations=DIVERGED) == [
        log_drift("p", "b", 1, "HELD_NOT_COMPUTED", 0.75, 120, 600),
        log_drift("p", "b", 3, "COMPUTED_NOT_HELD", 0.25, 120, 600),
    ]
    # In the phase's first 20 seconds it may have been a list of the phase before.
    assert drift([log("p", "b", 10, [1, 2])], allocations=DIVERGED) == []


@pytest.mark.parametrize(
    ("second", "client_count", "explained_by"),
    [
        (155, 9, "OTHER_LIST"),
        (155, 5, None),
        # The list of the first phase was there at most until 110, and clients lag it by 50 seconds.
        (155, 2, None),
        (170, 2, "OTHER_LIST"),
        # Of the lists before the first snapshot, and for 50 seconds after it, nothing is known.
        (-100, 9, None),
        (40, 9, None),
        (60, 9, "OTHER_LIST"),
    ],
)
def test_lists_that_no_broker_gave_are_named_unless_they_are_those_of_a_phase_nearby(
    second, client_count, explained_by
):
    segments = [("one", 0, 100), ("two", 110, 300)]
    states = {"one": [allocated("a", [0, 1])], "two": [allocated("a", [2], client_count=5)]}
    line = log("p", "a", second, [3], client_count=client_count)
    rows = drift([line], segments=segments, allocations=states)
    assert {each["attributed_to"] for each in rows} == {explained_by}


def test_no_result_of_the_client_is_compared_where_the_broker_assigns():
    assigned = log("p", "a", 100, [3], None, None, client_rebalance=False)
    assert drift([log("p", "a", -100, [0]), assigned]) == [log_lacks("p", "a", 1, 20, 100)]


def test_a_client_that_does_not_subscribe_has_no_result_to_compare():
    allocations = [allocated("a", [], subscribed=False), allocated("b", [0, 1, 2, 3])]
    assert drift([log("p", "a", -100, [0])], allocations=allocations) == []


def test_a_line_of_which_nobody_knows_when_it_was_written_says_nothing():
    # Nothing explained the offset of its time zone.
    assert drift([log("p", "a", 0, [0], times=((None, at(0)),))]) == []
