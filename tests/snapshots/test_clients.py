"""What clients say of themselves in running infos and log lines, and when a line was written."""

from __future__ import annotations

import pytest

from jobs.dumps.statement import InfoQueue
from jobs.schemas import CLIENT_STATES
from tests.snapshots.builders import (
    CLUSTER,
    GROUP,
    at,
    heartbeat,
    instant,
    log_line,
    running_info,
    shown,
    tables,
)

HOUR = 3600


def row(**values):
    unset = dict.fromkeys(CLIENT_STATES.schema.names)
    return unset | {"cluster": CLUSTER, "consumer_group": GROUP} | values


def test_a_running_info_and_a_log_line_are_one_row_each():
    rows = tables(
        running_info(
            "a",
            "T",
            seconds=30,
            source={"broker_name": "broker-a", "broker_id": 0, "process": "host-1"},
            start_timestamp=instant(0),
            strategy="CONSISTENT_HASH",
            message_model="CLUSTERING",
            consume_type="CONSUME_PASSIVELY",
            consume_orderly=True,
            # That it consumes nothing is said beside what it holds; one that is released needs not.
            queues=(
                InfoQueue("T", "broker-a", 3, True, instant(60)),
                InfoQueue("T", "broker-a", 4, False, instant(30), locked=False),
            ),
        ),
        log_line("b", "AVG", seconds=60, printed=0),
        heartbeat("a", "T"),
    )
    assert rows["client_states"] == [
        row(
            snapshot_time=at(30),
            observed_at=at(30),
            source="RUNNING_INFO",
            client_id="a",
            broker_name="broker-a",
            broker_id=0,
            process="host-1",
            start_timestamp=at(0),
            strategy="CONSISTENT_HASH",
            message_model="CLUSTERING",
            consume_type="CONSUME_PASSIVELY",
            pull_consumer=False,
            consume_orderly=True,
            subscriptions=shown("T"),
            queues=[
                {
                    "topic": "T",
                    "broker_name": "broker-a",
                    "queue_id": 3,
                    "dropped": True,
                    "last_pull_at": at(60),
                },
                {
                    "topic": "T",
                    "broker_name": "broker-a",
                    "queue_id": 4,
                    "dropped": False,
                    "last_pull_at": at(30),
                },
            ],
            activities=[None, "NOT_LOCKED"],
        ),
        row(
            observed_at=at(60),
            logged_at=at(0),
            source="CLIENT_LOG",
            client_id="b",
            strategy="AVG",
            topic="T",
            queue_count=4,
            client_count=1,
            queues=[
                {
                    "topic": "T",
                    "broker_name": "broker-a",
                    "queue_id": 3,
                    "dropped": False,
                    "last_pull_at": None,
                }
            ],
        ),
    ]


def test_a_client_that_did_not_answer_has_the_error_and_nothing_else():
    (state,) = tables(running_info("a", code=1))["client_states"]
    assert state == row(
        snapshot_time=at(0), observed_at=at(0), source="RUNNING_INFO", client_id="a", error_code=1
    )


def test_a_client_that_gave_no_table_of_queues_has_null_and_one_that_holds_none_has_none():
    rows = tables(running_info("a", seconds=0), running_info("a", seconds=60, queues=()))
    assert [state["queues"] for state in rows["client_states"]] == [None, []]


def written(*lines, time_zone=None):
    """When each line was written, in seconds; the lines are (log, printed, collected second)."""
    rows = tables(
        *[
            log_line("a", "AVG", seconds, printed=printed, process=process)
            for process, printed, seconds in lines
        ],
        time_zone=time_zone,
    )
    return {
        (state["process"], (state["observed_at"] - at(0)).total_seconds()): state["logged_at"]
        and (state["logged_at"] - at(0)).total_seconds()
        for state in rows["client_states"]
    }


def test_the_zone_of_each_log_is_the_least_that_leaves_no_line_later_than_it_was_collected():
    found = written(
        ("4.x in UTC", HOUR + 0.25, HOUR + 0.25),
        ("5.x in GMT+8", 9 * HOUR + 0.5, HOUR + 1),
        # Gathered together a while later: the last line tells the zone of them all.
        ("in a bundle", 8 * HOUR, 4200),
        ("in a bundle", 9 * HOUR, 4201),
        ("New York", -4 * HOUR, HOUR + 0.5),
        ("Kathmandu", 6.75 * HOUR, HOUR + 100),
        ("Kiritimati", 15 * HOUR, HOUR),
        ("Baker Island", -11 * HOUR, HOUR),
        # Its clock is half a minute ahead of the collector's.
        ("ahead", 9 * HOUR + 30, HOUR),
    )
    assert found == {
        ("4.x in UTC", 3600.25): 3600.25,
        ("5.x in GMT+8", 3601): 3600.5,
        ("in a bundle", 4200): 0,
        ("in a bundle", 4201): 3600,
        ("New York", 3600.5): 3600,
        ("Kathmandu", 3700): 3600,
        ("Kiritimati", 3600): 3600,
        ("Baker Island", 3600): 3600,
        ("ahead", 3600): 3630,
    }


def test_a_line_without_a_time_counts_as_of_when_it_was_collected():
    lines = [("p", None, 60), ("q", None, 61), ("p", 9 * HOUR, 3600)]
    expected = {("p", 60): 60, ("q", 61): 61, ("p", 3600): 3600}
    assert written(*lines) == expected
    assert written(*lines, time_zone="GMT+8") == expected


def test_what_no_zone_explains_was_collected_much_later_and_when_it_was_is_not_known():
    line = ("p", -24 * HOUR, 60)
    assert written(line) == {("p", 60): None}
    assert written(line, time_zone="UTC") == {("p", 60): -24 * HOUR}


@pytest.mark.parametrize(
    ("time_zone", "seconds"),
    [
        ("GMT+8", 1 * HOUR),
        ("UTC-3:30", 12.5 * HOUR),
        ("Asia/Shanghai", 1 * HOUR),
        ("America/New_York", 14 * HOUR),
        ("UTC", 9 * HOUR),
    ],
)
def test_a_configured_zone_is_that_of_every_log_however_late_it_was_collected(time_zone, seconds):
    lines = [("p", 9 * HOUR, 90000), ("q", 9 * HOUR, 3600)]
    assert set(written(*lines, time_zone=time_zone).values()) == {seconds}
