"""Brokers' lists: outcomes of polls, ids of contents, members that have fallen silent."""

from __future__ import annotations

import pytest

from jobs.contents import MEMBER_FACTS, content_id, record_text
from tests.snapshots.builders import Rows, at, heartbeat, poll, running_info, shown, tables


def ids(rows: Rows) -> list[str | None]:
    polls = sorted(rows["broker_polls"], key=lambda row: (row["collected_at"], row["broker_name"]))
    return [row["list_id"] for row in polls]


@pytest.mark.parametrize(
    ("code", "message", "outcome"),
    [
        (206, "not there", "NOT_ONLINE"),
        (-1, "wait timeout", "NO_ANSWER"),
        (1, None, "NO_ANSWER"),
        # The dashboard passes the broker's code on only within its message.
        (-1, "CODE: 206  DESC: Not found the consumer group connection", "NOT_ONLINE"),
        (-1, "the consumer group[G] not online", "NOT_ONLINE"),
        (-1, "CODE: 2060", "NO_ANSWER"),
        (-1, "CODE: 1  DESC: timeout", "NO_ANSWER"),
    ],
)
def test_a_poll_without_a_list_has_the_outcome_that_its_error_tells(code, message, outcome):
    rows = tables(poll(code=code, message=message, broker_id=1, broker_addr="10.0.0.9:10911"))
    (row,) = rows["broker_polls"]
    assert (row["outcome"], row["error_code"], row["error_message"]) == (outcome, code, message)
    assert (row["connections"], row["list_id"]) == (0, None)
    assert (row["broker_id"], row["broker_addr"]) == (1, "10.0.0.9:10911")
    assert "heartbeats" not in rows


def test_an_empty_list_is_an_answer_without_an_id():
    (row,) = tables(poll())["broker_polls"]
    assert (row["outcome"], row["connections"], row["list_id"]) == ("ANSWERED", 0, None)


def test_of_a_poll_that_was_collected_twice_the_last_answer_counts():
    rows = tables(
        poll("a", "b", collected=1),
        poll("a", collected=2),
        poll(broker="broker-b", collected=1, code=1),
        poll("a", "b", "c", broker="broker-b", collected=3),
        poll("a", broker="broker-c", collected=2),
        poll("a", "b", broker="broker-c", collected=2),
    )
    found = {row["broker_name"]: row["connections"] for row in rows["broker_polls"]}
    assert found == {"broker-a": 1, "broker-b": 3, "broker-c": 2}
    assert len(rows["heartbeats"]) == 6


def test_equal_lists_have_one_id_and_one_content_whoever_listed_them_and_when():
    rows = tables(
        poll("a", "b", seconds=0),
        poll("b", "a", seconds=60),
        poll("a", "b", seconds=60, broker="broker-b"),
        poll("a", seconds=120),
    )
    first, second, third, other = ids(rows)
    assert first == second == third != other
    assert [row["list_id"] for row in rows["member_lists"]] == [first, other]


def test_the_id_is_that_of_the_members_facts():
    rows = tables(poll("a", "b", topics=["T1"]), running_info("a", "T2", strategy="AVG"))
    (list_,) = rows["member_lists"]
    assert [each["client_id"] for each in list_["members"]] == ["a", "b"]
    assert list_["members"][0] == {
        "client_id": "a",
        "client_addr": "a:1",
        "language": "JAVA",
        "version": 401,
        "message_model": "CLUSTERING",
        "strategy": "AVG",
        "client_rebalance": None,
        "is_expired": False,
        "chooses_queues": False,
        "subscriptions": shown("T2"),
    }
    texts = [
        record_text(
            MEMBER_FACTS,
            [
                tuple(tuple(each.values()) for each in value) if fact == "subscriptions" else value
                for fact, value in member.items()
            ],
        )
        for member in list_["members"]
    ]
    assert list_["list_id"] == content_id(texts)


def test_what_a_member_newly_says_makes_the_list_another_one_and_what_it_repeats_does_not():
    rows = tables(
        *[poll("a", seconds=each) for each in (0, 60, 120, 180)],
        *[heartbeat("a", "T1", seconds=each) for each in (0, 30, 60)],
        *[heartbeat("a", "T1", "T2", seconds=each) for each in (90, 120, 150)],
    )
    one, two, three, four = ids(rows)
    assert one == two != three == four


@pytest.mark.parametrize(
    ("last_heartbeat", "is_expired"),
    [(0, True), (379.5, True), (380, False), (490, False), (None, False)],
)
def test_a_member_is_expired_once_its_last_heartbeat_is_older_than_a_broker_keeps_it(
    last_heartbeat, is_expired
):
    # Of a member of which no heartbeat was collected nothing is known; one after the poll is late.
    heard = [] if last_heartbeat is None else [heartbeat("a", "T", seconds=last_heartbeat)]
    rows = tables(*heard, heartbeat("a", "T", seconds=501), poll("a", seconds=500), expiry=120)
    assert rows["member_lists"][0]["members"][0]["is_expired"] is is_expired


def test_one_member_expires_with_the_time_of_the_snapshot_and_its_list_is_another_one():
    rows = tables(
        heartbeat("a", "T"),
        heartbeat("b", "T", seconds=170),
        *[poll("a", "b", seconds=each) for each in (60, 119, 180, 240)],
        expiry=120,
    )
    one, two, three, four = ids(rows)
    assert one == two != three == four
    expired = [[each["is_expired"] for each in row["members"]] for row in rows["member_lists"]]
    assert expired == [[False, False], [True, False]]


def test_expiry_counts_from_the_snapshot_and_what_is_said_from_when_the_broker_was_asked():
    rows = tables(
        heartbeat("a", "T1", seconds=0),
        heartbeat("a", "T2", seconds=125),
        poll("a", seconds=100, collected=130),
        expiry=120,
    )
    (row,) = rows["heartbeats"]
    assert (row["subscriptions"], row["last_heartbeat_at"]) == (shown("T2"), at(125))
