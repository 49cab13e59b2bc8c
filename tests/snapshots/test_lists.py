"""Brokers' lists: outcomes of polls, ids of contents, members that have fallen silent."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from jobs.declared.contents import MEMBER_FACTS, content_id, record_text
from jobs.dumps.statement import Connection, Connections, Statement
from jobs.fold.kernel import Cutting
from jobs.schemas import BROKER_POLLS, HEARTBEATS, MEMBER_LISTS
from tests.fold.plain import parts_of
from tests.snapshots.builders import (
    Rows,
    at,
    heartbeat,
    poll,
    running_info,
    shown,
    subscriptions,
    tables,
)
from tests.support.folding import fold_slices, whole


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
        # Of neither a heartbeat was collected.
        "is_expired": None,
        "chooses_queues": False,
        "subscription_source": "RUNNING_INFO",
        "doubtful_topics": None,
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


def test_every_fact_about_a_member_comes_from_somewhere():
    """Whoever adds a fact writes here what shows it."""
    rows = tables(
        heartbeat("a", "T"),
        *flipping("x-" * 20),
        running_info("a", "T", strategy="AVG", client_rebalance=True),
    )
    members = [member for each in rows["member_lists"] for member in each["members"]]
    for fact in MEMBER_FACTS:
        assert any(member[fact.name] is not None for member in members), fact.name


def answered(seconds: float, connections: tuple[Connection, ...]) -> Statement:
    answer = Connections(connections, "CONSUME_PASSIVELY", "CLUSTERING", None, subscriptions("T"))
    return poll(seconds=seconds)._replace(content=answer)


ONE, OTHER = Connection("a", "a:1", "JAVA", 401), Connection("a", "a:2", "JAVA", 401)


@pytest.mark.long
@given(
    st.lists(st.lists(st.sampled_from([ONE, OTHER, Connection("b", "b:1", "GO", 1)])), min_size=1),
    st.lists(st.integers(0, 400), max_size=4),
)
@hypothesis_settings(max_examples=20)
def test_the_ids_of_lists_say_what_their_rows_say(lists, heard):
    statements = [answered(60 * place, tuple(each)) for place, each in enumerate(lists)]
    rows = tables(*statements, *[heartbeat("a", "T", seconds=each) for each in heard])
    made = {
        table.name: pa.Table.from_pylist(rows.get(table.name, []), table.schema)
        for table in (HEARTBEATS, BROKER_POLLS, MEMBER_LISTS)
    }
    by_rows, by_ids = (
        parts_of(fold_slices(whole(made, cutting), cutting).all())
        for cutting in (Cutting(1, 130), Cutting(1, 130, list_ids=True))
    )
    assert by_ids == by_rows


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
    [
        (0, True),
        # Two heartbeats did not come, and then one came: it was frozen, and is no ghost.
        (425.5, False),
        # One that was lost.
        (426, False),
        (490, False),
        (None, None),
    ],
)
def test_a_member_is_expired_from_when_it_stopped_to_send_heartbeats(last_heartbeat, is_expired):
    # Where no heartbeat was collected nothing tells; one after the poll is too late for it.
    heard = [] if last_heartbeat is None else [heartbeat("a", "T", seconds=last_heartbeat)]
    rows = tables(*heard, heartbeat("a", "T", seconds=501), poll("a", seconds=500), expiry=120)
    assert rows["member_lists"][0]["members"][0]["is_expired"] is is_expired


@pytest.mark.parametrize(
    ("others_until", "is_expired"),
    [
        # Others are heard for long after it: it stopped, from 15 s after its last heartbeat on.
        (200, [False, True, True, True]),
        # Nobody is heard any more: it is the collector that stopped to listen.
        (30, [False, False, None, True]),
    ],
)
def test_a_member_that_is_heard_no_more_stopped_if_others_are_heard(others_until, is_expired):
    others = [heartbeat("b", "T", seconds=each) for each in range(0, others_until + 1, 10)]
    polls = [poll("a", "b", seconds=each) for each in (10, 40, 100, 150)]
    rows = tables(heartbeat("a", "T", seconds=0), *others, *polls, expiry=120)
    lists = {row["list_id"]: row["members"] for row in rows["member_lists"]}
    found = [
        next(each["is_expired"] for each in lists[list_id] if each["client_id"] == "a")
        for list_id in ids(rows)
    ]
    assert found == is_expired


def test_a_member_that_signed_off_is_no_ghost_in_the_last_list_that_has_it():
    # a leaves in order at 25 s; b is heard and polled for long after it.
    others = [heartbeat("b", "T", seconds=each) for each in range(0, 200, 30)]
    polls = [poll("a", "b", seconds=20), *[poll("b", seconds=each) for each in (40, 60, 180)]]
    rows = tables(heartbeat("a", "T", seconds=0), *others, *polls, expiry=120)
    assert rows["member_lists"][0]["members"][0]["client_id"] == "a"
    assert rows["member_lists"][0]["members"][0]["is_expired"] is False


def test_one_member_expires_with_the_time_of_the_snapshot_and_its_list_is_another_one():
    rows = tables(
        heartbeat("a", "T"),
        heartbeat("b", "T", seconds=0),
        heartbeat("b", "T", seconds=60),
        heartbeat("b", "T", seconds=120),
        *[poll("a", "b", seconds=each) for each in (5, 10, 60, 120)],
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


def flipping(has_topic: str, *, every: float = 30, ids: str = "abc", broker: str = "broker-a"):
    """Polls of a broker whose group's table has T2 in some (x) and lacks it in others (-)."""
    return [
        poll(*ids, topics=["T1", "T2"] if has == "x" else ["T1"], seconds=n * every, broker=broker)
        for n, has in enumerate(has_topic)
    ]


def doubts(rows: Rows) -> dict[str, list[dict[str, int]]]:
    """By client id the distinct values of doubtful_topics, in order of time."""
    found: dict[str, list[dict[str, int]]] = {}
    for row in sorted(rows["heartbeats"], key=lambda row: row["snapshot_time"]):
        topics = {each["topic"]: each["percent"] for each in row["doubtful_topics"] or ()}
        of_client = found.setdefault(row["client_id"], [])
        if topics not in of_client[-1:]:
            of_client.append(topics)
    return found


@pytest.mark.parametrize(
    ("has_topic", "every", "found"),
    [
        # Half of the members subscribe to T2; one of three does, as likely as half of them.
        ("x-x-" * 10, 31, [{"T2": 50}]),
        ("x---" * 10, 31, [{"T2": 40}]),
        # Polled in step with the heartbeats: each poll finds the table of the same member, so that
        # the share tells nothing.
        ("x---" * 10, 30, [{"T2": 50}]),
        # Again and again, but not at regular times; few polls, far from each other.
        ("xx-x--xxx-x-x--x-xx-", 31.5, [{"T2": 50}]),
        ("x-x--x-x", 300, [{"T2": 50}]),
        # One change is a deploy that adds the topic, two are one that was rolled back.
        ("-" * 20 + "x" * 20, 30, [{}]),
        ("-" * 20 + "x" * 20 + "-" * 20, 30, [{}]),
        # A rolling deploy: the table flips until the last member is new, five minutes at most.
        ("-" * 20 + "x-x-x-x-x-" + "x" * 20, 30, [{}]),
        # It is polled about as often as members write it: it changes seldom, and again and again.
        (("-" * 25 + "x" * 25) * 2, 30, [{"T2": 50}]),
        # It flipped for a while: before and after nothing is in doubt.
        ("-" * 30 + "x-" * 15 + "x" * 30, 30, [{}, {"T2": 50}, {}]),
    ],
)
def test_a_table_that_flips_again_and_again_makes_a_topic_doubtful(has_topic, every, found):
    rows = tables(*flipping(has_topic, every=every))
    assert doubts(rows) == dict.fromkeys("abc", found)


def test_a_doubtful_topic_is_in_the_subscriptions_at_every_poll_and_the_list_stays_the_same():
    rows = tables(*flipping("x-x--x-x", every=300))
    assert all(row["subscriptions"] == shown("T1", "T2") for row in rows["heartbeats"])
    assert len(set(ids(rows))) == 1


def test_who_says_itself_what_it_subscribes_to_is_not_in_doubt_and_the_others_are_the_rest():
    # Of four members half subscribe: a does, so it is one of the other three, in steps of 5 %.
    rows = tables(running_info("a", "T1", "T2"), *flipping("x-x-" * 10, ids="abcd"))
    assert doubts(rows) == {"a": [{}], **{each: [{"T2": 35}] for each in "bcd"}}


def test_a_broker_at_which_all_members_subscribe_clears_the_doubt_of_its_list_alone():
    # Members of T1 alone send no heartbeat to a broker that has T2 alone.
    rows = tables(
        *flipping("x-x-" * 10, ids="ab"),
        *flipping("xxxx" * 10, ids="cd", broker="broker-b"),
        # Too few polls to see it flip.
        *flipping("xxx", ids="ef", broker="broker-c"),
    )
    assert doubts(rows) == {
        **{each: [{"T2": 50}] for each in "abef"},
        **{each: [{}] for each in "cd"},
    }


def test_changes_that_lie_far_apart_with_other_connections_do_not_belong_together():
    pods = [*["abc"] * 30, *["abd"] * 60, *["abe"] * 30]
    has_topic = "-" * 15 + "x" * 30 + "-" * 30 + "x" * 45
    rows = tables(
        *[
            poll(*ids, topics=["T1", "T2"] if has == "x" else ["T1"], seconds=30 * n)
            for n, (ids, has) in enumerate(zip(pods, has_topic, strict=True))
        ]
    )
    assert not any(row["doubtful_topics"] for row in rows["heartbeats"])


@pytest.mark.parametrize(
    ("has_topic", "found"),
    [
        # A deploy that adds the topic, its rollback, and the deploy again.
        ("-" * 10 + "x" * 10 + "-" * 10 + "x" * 10, {}),
        # It goes on and on: pods that do not live long, and do not subscribe alike.
        ("-" * 10 + "x" * 10 + "-" * 10 + "x" * 5 + "-" * 5, {"T2": 50}),
    ],
)
def test_flips_that_come_with_other_connections_are_deploys_unless_they_go_on(has_topic, found):
    rows = tables(
        *[
            poll("a", f"pod-{n}", topics=["T1", "T2"] if has == "x" else ["T1"], seconds=30 * n)
            for n, has in enumerate(has_topic)
        ]
    )
    assert doubts(rows)["pod-15"] == [found]


def test_a_table_that_never_lacks_the_topic_is_no_proof_where_the_members_are_the_same():
    # They send the same heartbeat to both brokers: broker-b was asked at other moments.
    rows = tables(
        *flipping("x-x-" * 10, ids="ab"),
        *flipping("xxxx" * 10, ids="ab", broker="broker-b"),
    )
    assert doubts(rows) == {each: [{"T2": 50}] for each in "ab"}


def test_an_empty_list_is_an_answer_without_an_id():
    (row,) = tables(poll())["broker_polls"]
    assert (row["outcome"], row["connections"], row["list_id"]) == ("ANSWERED", 0, None)


@pytest.mark.parametrize(("last_heard", "is_expired"), [(500, False), (501, True)])
def test_who_is_never_heard_again_while_another_one_is_has_stopped(last_heard, is_expired):
    rows = tables(
        heartbeat("a", "T", seconds=425.5),
        heartbeat("b", "T", seconds=last_heard),
        poll("a", "b", seconds=500),
        expiry=120,
    )
    first = rows["member_lists"][0]["members"][0]
    assert (first["client_id"], first["is_expired"]) == ("a", is_expired)
