"""A whole group: the order in which statements come changes nothing, nor how they were carried."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.dumps import reading
from jobs.engines.pieces import all_rows, pack_value
from jobs.schemas import SNAPSHOT_TABLES
from jobs.snapshots.group_tables import GroupTables
from jobs.snapshots.groups import SnapshotTerms, group_tables
from jobs.snapshots.members import Members, member_at
from jobs.snapshots.topics import SubjectTables
from tests.snapshots import builders
from tests.snapshots.builders import (
    heartbeat,
    in_time,
    instant,
    log_line,
    poll,
    route,
    running_info,
    stats,
)

CLIENTS = ("a", "b", "c")
TIMES = st.integers(0, 30).map(lambda number: number * 10)
TOPICS = st.sampled_from([(), ("T1",), ("T1", "T2")])
BROKERS = st.sampled_from(["broker-a", "broker-b"])
STRATEGIES = st.sampled_from(["AVG", "MACHINE_ROOM_NEARBY", "MACHINE_ROOM_NEARBY-AVG"])

HEARTBEATS = st.builds(
    lambda client, topics, time, broker, full: heartbeat(
        client, *topics, seconds=time, broker=broker, is_full=full or bool(topics)
    ),
    st.sampled_from(CLIENTS),
    TOPICS,
    TIMES,
    BROKERS,
    st.booleans(),
)
POLLS = st.builds(
    lambda clients, topics, time, late, broker: poll(
        *clients, topics=topics, seconds=time, collected=time + late, broker=broker
    ),
    st.lists(st.sampled_from(CLIENTS), max_size=4),
    TOPICS,
    TIMES,
    st.sampled_from([0, 5, 40]),
    BROKERS,
)
INFOS = st.builds(
    lambda client, topics, time, strategy, pulls, code: running_info(
        client,
        *topics,
        seconds=time,
        code=code,
        strategy=strategy,
        pull_consumer=pulls,
        client_rebalance=pulls,
    ),
    st.sampled_from(CLIENTS),
    TOPICS,
    TIMES,
    STRATEGIES,
    st.sampled_from([None, True, False]),
    st.sampled_from([None, None, 1]),
)
LOG_LINES = st.builds(
    lambda client, strategy, time: log_line(client, strategy, seconds=time, printed=time),
    st.sampled_from(CLIENTS),
    STRATEGIES,
    TIMES,
)
STATS = st.builds(
    lambda offset, time, late: stats({0: (offset, offset)}, seconds=time, collected=time + late),
    st.integers(0, 9),
    TIMES,
    st.sampled_from([0, 5]),
)
STATEMENTS = st.lists(st.one_of(HEARTBEATS, POLLS, INFOS, LOG_LINES, STATS), max_size=40)


@given(STATEMENTS, st.randoms(use_true_random=False))
def test_shuffled_statements_give_the_same_tables(statements, randomness: random.Random):
    shuffled = randomness.sample(statements, len(statements))
    assert builders.tables(*shuffled) == builders.tables(*statements)


@given(STATEMENTS)
def test_what_is_resolved_once_for_many_polls_is_what_each_poll_resolves_to(statements):
    """Held against every member of every list resolved for itself."""
    members = Members()
    in_order = in_time(statements)
    last = {}
    for each in in_order:
        if each.kind == "heartbeat":
            members.add_heartbeat(each.collected_at, each.source, each.content)
        elif each.kind == "client_log":
            members.add_log_line(each.collected_at, each.content)
        elif each.kind == "consumer_running_info" and each.content is not None:
            members.add_running_info(each.collected_at, each.source.client_id, each.content)
        elif each.kind == "consumer_connection":
            last[each.snapshot_time, each.source.broker_name] = each
    polls = in_time(last.values())
    tables = GroupTables(
        [(each.collected_at, (each.source.broker_name, 0), each.content) for each in polls]
    )
    names = ("client_addr", "subscription_source", "strategy", "client_rebalance", "pull_consumer")
    expected = []
    for each in polls:
        broker = each.source.broker_name, each.source.broker_id
        shown = tables.at(each.collected_at, broker)
        for connection in each.content.connections:
            member, _ = member_at(
                each.collected_at, broker, connection, each.content, members, shown
            )
            topics = tuple(topic for topic, *_ in member.subscriptions)
            facts = tuple(getattr(member, name) for name in names)
            expected.append((each.snapshot_time, broker[0], topics, *facts))
    rows = builders.tables(*statements).get("heartbeats", [])
    found = [
        (
            instant((row["snapshot_time"] - builders.DAY).total_seconds()),
            row["broker_name"],
            tuple(each["topic"] for each in row["subscriptions"]),
            *[row[name] for name in names],
        )
        for row in rows
    ]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_pieces_of_a_table_are_the_whole_table(monkeypatch):
    statements = [
        *[poll("a", "b", str(each), seconds=each) for each in range(20)],
        *[heartbeat("a", "T", seconds=each) for each in range(20)],
        *[running_info("a", seconds=each) for each in range(20)],
        *[stats({0: (each, each), 1: (each, 0)}, seconds=each) for each in range(20)],
    ]
    whole = builders.tables(*statements)
    for module in ("groups", "lists"):
        monkeypatch.setattr(f"jobs.snapshots.{module}.PIECE_ROWS", 7)
    counts: dict[str, int] = {}
    for name, _ in group_tables(in_time(statements), SnapshotTerms(130)):
        counts[name] = counts.get(name, 0) + 1
    assert builders.tables(*statements) == whole
    assert counts == {
        "heartbeats": 7,
        "broker_polls": 3,
        "member_lists": 7,
        "client_states": 3,
        "queue_offsets": 6,
    }


@pytest.mark.parametrize("bytes_at_once", [1, 1 << 30])
def test_a_shard_makes_the_tables_of_each_of_its_groups_and_topics(monkeypatch, bytes_at_once):
    """Statements of one group lie in several pieces; groups and topics may have one name."""
    monkeypatch.setattr("jobs.snapshots.topics._BYTES_AT_ONCE", bytes_at_once)
    of_group = [poll("a"), heartbeat("a", "T"), log_line("a", "AVG")]
    of_other = [each._replace(subject=builders.TOPIC) for each in of_group]
    of_topic = [route()]
    mixed = [*of_other[::-1], *of_topic, *of_group[::-1]]
    shard = [
        pack_value(3, reading.STATEMENTS, list(zip(*part, strict=True)))
        for part in (mixed[:2], mixed[2:])
    ]

    made = list(SubjectTables(SnapshotTerms(130, "UTC")).make_tables(shard))

    assert {piece.shard for piece in made} == {3}
    expected = [
        builders.tables(*of_group, time_zone="UTC"),
        builders.tables(*of_other, time_zone="UTC"),
        builders.tables_of_topic(*of_topic),
    ]
    for table in SNAPSHOT_TABLES:
        rows = [row for each in expected for row in each.get(table.name, [])]
        assert all_rows(made, table.name, table.schema).to_pylist() == rows, table.name
    assert len([piece for piece in made if piece.kind == "heartbeats"]) == (
        2 if bytes_at_once == 1 else 1
    )
