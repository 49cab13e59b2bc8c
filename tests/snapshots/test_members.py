"""What is true of a member at the time of a poll: whose word counts, and from when on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.snapshots.builders import (
    Rows,
    at,
    heartbeat,
    log_line,
    poll,
    running_info,
    shown,
    tables,
)


def columns(rows: Rows, *names: str) -> dict[str, tuple[Any, ...]]:
    """By client id the values of the columns."""
    return {row["client_id"]: tuple(row[name] for name in names) for row in rows["heartbeats"]}


def test_what_a_member_says_itself_counts_before_its_running_info_before_the_groups_table():
    rows = tables(
        heartbeat("own", "T2", seconds=-20, message_model="BROADCASTING"),
        poll("own", "told", "silent", topics=["T1"]),
        running_info("own", "T3", message_model="CLUSTERING"),
        running_info("told", "T3", message_model="BROADCASTING", pull_consumer=True),
    )

    names = ("subscriptions", "subscription_source", "message_model", "pull_consumer")
    assert columns(rows, *names) == {
        "own": (shown("T2"), "HEARTBEAT", "BROADCASTING", False),
        "told": (shown("T3"), "RUNNING_INFO", "BROADCASTING", True),
        "silent": (shown("T1"), "GROUP_TABLE", "CLUSTERING", None),
    }


def test_what_one_witness_leaves_open_the_next_one_tells_column_by_column():
    rows = tables(
        heartbeat("a", "T2", consume_type=None, message_model=None),
        running_info("a", "T3", consume_type="CONSUME_ACTIVELY"),
        poll("a", "b"),
        # An info without a subscriptionSet says nothing of what it subscribes to.
        running_info("b", subscriptions=None),
        heartbeat("b", "T4", broker="broker-b"),
    )

    names = ("subscriptions", "subscription_source", "consume_type", "message_model")
    assert columns(rows, *names) == {
        "a": (shown("T2"), "HEARTBEAT", "CONSUME_ACTIVELY", "CLUSTERING"),
        "b": (shown("T4"), "HEARTBEAT", "CONSUME_PASSIVELY", "CLUSTERING"),
    }


def test_of_several_heartbeats_the_last_full_one_before_the_poll_counts():
    rows = tables(
        # Heartbeat V2: the subscriptions are left out of what did not change.
        heartbeat("v2", "T1", seconds=0),
        heartbeat("v2", seconds=30, is_full=False),
        # assign() subscribes to nothing, and says so.
        heartbeat("assign", "T1", seconds=0),
        heartbeat("assign", seconds=30),
        # At the instant of the poll itself still counts, after it no more.
        heartbeat("changed", "T1", seconds=0),
        heartbeat("changed", "T2", "T1", seconds=60),
        heartbeat("changed", "T3", seconds=61),
        # The collector began to listen after the poll: what a process is it has been before.
        heartbeat("late", "T4", seconds=90),
        heartbeat("late", "T5", seconds=120),
        # Over another connection of the id: said by the client, but no heartbeat of this one.
        heartbeat("other", "T6", seconds=0, address="other:2"),
        heartbeat("elsewhere", "T8", seconds=0, broker="broker-b"),
        heartbeat("elsewhere", seconds=30, is_full=False),
        poll("v2", "assign", "changed", "late", "other", "elsewhere", "silent", seconds=60),
    )

    names = ("subscriptions", "subscription_source", "last_heartbeat_at")
    assert columns(rows, *names) == {
        "v2": (shown("T1"), "HEARTBEAT", at(30)),
        "assign": ([], "HEARTBEAT", at(30)),
        "changed": (shown("T1", "T2"), "HEARTBEAT", at(60)),
        "late": (shown("T4"), "HEARTBEAT", None),
        "other": (shown("T6"), "HEARTBEAT", None),
        "elsewhere": (shown("T8"), "HEARTBEAT", at(30)),
        "silent": (shown("T"), "GROUP_TABLE", None),
    }


def test_what_is_said_elsewhere_counts_from_when_it_was_first_said_over_any_connection():
    # T1 again at 50 s is no news: T2 is what the client said newly last.
    said = [("T1", 0, "x:1"), ("T2", 20, "x:2"), ("T1", 50, "x:1")]
    rows = tables(
        *[heartbeat("a", topic, seconds=when, address=where) for topic, when, where in said],
        poll("a", seconds=10),
        poll("a", seconds=60),
    )
    found = [(row["snapshot_time"], row["subscriptions"]) for row in rows["heartbeats"]]
    assert found == [(at(10), shown("T1")), (at(60), shown("T2"))]


def test_a_member_goes_back_to_what_it_said_before_though_another_connection_is_heard():
    # broker-b's heartbeats are not collected: what the client says to broker-a counts there too.
    said = [("T1", 0), ("T2", 60), ("T1", 120), ("T1", 150)]
    rows = tables(
        *[heartbeat("a", topic, seconds=when) for topic, when in said],
        *[poll("a", seconds=when + 10, broker="broker-b") for _, when in said],
        # Long after: broker-a is neither polled nor heard any more.
        poll("a", seconds=9000, broker="broker-b"),
    )
    found = [row["subscriptions"] for row in rows["heartbeats"]]
    assert found == [shown(topic) for topic in ("T1", "T2", "T1", "T1", "T1")]


@pytest.mark.parametrize(
    ("polled", "topic", "source"),
    [
        # Over its own connection it was heard less than 90 s ago.
        (150, "T1", "HEARTBEAT"),
        # That connection is silent, and the client said something else since.
        (151, "T2", "RUNNING_INFO"),
        (269, "T2", "RUNNING_INFO"),
        # 90 s before it is heard again: what a process is it has been since before.
        (270, "T1", "HEARTBEAT"),
        (500, "T1", "HEARTBEAT"),
    ],
)
def test_what_a_member_said_last_counts_once_its_connection_is_not_heard(polled, topic, source):
    rows = tables(
        *[heartbeat("a", "T1", seconds=each) for each in (0, 30, 60, 360, 390)],
        running_info("a", "T1", seconds=0),
        running_info("a", "T2", seconds=70),
        *[poll("a", seconds=each) for each in (65, polled)],
    )
    row = rows["heartbeats"][-1]
    assert (row["subscriptions"], row["subscription_source"]) == (shown(topic), source)


def test_processes_that_share_an_id_keep_their_own_words_whatever_the_others_say():
    said = [("T1", "a:1"), ("T2", "a:2")]
    rows = tables(
        *[
            heartbeat("a", topic, seconds=each, address=address)
            for topic, address in said
            for each in range(0, 300, 30)
        ],
        *[poll("a", "a", seconds=each) for each in (5, 95, 250)],
    )
    found = {
        (row["client_addr"], *[it["topic"] for it in row["subscriptions"]])
        for row in rows["heartbeats"]
    }
    assert found == {("a:1", "T1"), ("a:2", "T2")}


@pytest.mark.parametrize(
    ("name", "value", "before"),
    [
        ("message_model", "BROADCASTING", "CLUSTERING"),
        ("consume_type", "CONSUME_ACTIVELY", "CONSUME_PASSIVELY"),
    ],
)
def test_what_only_the_group_tells_may_change_from_poll_to_poll(name, value, before):
    changed = poll("a", seconds=60)
    rows = tables(
        heartbeat("a", "T", consume_type=None, message_model=None),
        poll("a"),
        changed._replace(content=changed.content._replace(**{name: value})),
        poll("a", seconds=120),
    )
    assert [row[name] for row in rows["heartbeats"]] == [before, value, before]


def test_a_poll_that_was_collected_again_counts_at_its_later_time_alone():
    rows = tables(
        poll("a", topics=["T1"], seconds=0),
        poll("a", topics=["T2"], seconds=0, collected=100, broker="broker-b"),
        poll("a", topics=["T3"], seconds=0, collected=300),
    )
    found = [(row["broker_name"], row["subscriptions"]) for row in rows["heartbeats"]]
    assert found == [("broker-b", shown("T2")), ("broker-a", shown("T3"))]


def test_a_member_that_says_nothing_subscribes_to_all_that_the_groups_table_showed():
    rows = tables(
        poll("a", topics=["T1"], seconds=0),
        poll("a", topics=["T2"], seconds=90),
        # 120 s before and after count: an expired member is gone after them.
        poll("a", topics=["T3"], seconds=120, broker="broker-b"),
        poll("a", topics=["T4"], seconds=500),
        poll(seconds=500, broker="broker-b", code=-1),
    )
    found = {row["snapshot_time"]: row["subscriptions"] for row in rows["heartbeats"]}
    assert found == {
        at(0): shown("T1", "T2", "T3"),
        at(90): shown("T1", "T2", "T3"),
        at(120): shown("T1", "T2", "T3"),
        at(500): shown("T4"),
    }


def test_the_strategy_is_what_was_last_seen_and_a_log_names_what_nearby_wraps():
    rows = tables(
        poll("info", "nearby", "bare", "logged", "pop", "by broker", "failed", "changed"),
        running_info("info", strategy="AVG_BY_CIRCLE"),
        # The class alone does not tell what it wraps; a log line of the client once did.
        running_info("nearby", strategy="MACHINE_ROOM_NEARBY"),
        log_line("nearby", "MACHINE_ROOM_NEARBY-AVG", seconds=-600),
        running_info("bare", strategy="MACHINE_ROOM_NEARBY"),
        log_line("logged", "CONSISTENT_HASH", seconds=10),
        running_info("pop", strategy="AVG", client_rebalance=False),
        log_line("by broker", "AVG", by_broker=True),
        running_info("failed", code=1),
        log_line("changed", "MACHINE_ROOM_NEARBY-AVG", seconds=-20),
        log_line("changed", "CONFIG", seconds=-10),
        running_info("changed", strategy="AVG", seconds=10),
    )

    assert columns(rows, "strategy", "strategy_source", "client_rebalance") == {
        "info": ("AVG_BY_CIRCLE", "RUNNING_INFO", None),
        "nearby": ("MACHINE_ROOM_NEARBY-AVG", "RUNNING_INFO", None),
        "bare": ("MACHINE_ROOM_NEARBY", "RUNNING_INFO", None),
        "logged": ("CONSISTENT_HASH", "CLIENT_LOG", None),
        "pop": ("AVG", "RUNNING_INFO", False),
        "by broker": ("AVG", "CLIENT_LOG", False),
        "failed": (None, None, None),
        "changed": ("CONFIG", "CLIENT_LOG", None),
    }


def test_a_list_that_stays_the_same_is_looked_at_again_when_other_words_count():
    polled = (110, 140, 150, 151, 200, 269, 270, 300)
    rows = tables(
        *[heartbeat("a", "T1", seconds=each) for each in (0, 30, 60, 360, 390)],
        running_info("a", "T2", seconds=70),
        *[poll("a", seconds=each) for each in polled],
    )
    found = [each["topic"] for row in rows["heartbeats"] for each in row["subscriptions"]]
    assert found == ["T1"] * 3 + ["T2"] * 3 + ["T1"] * 2
