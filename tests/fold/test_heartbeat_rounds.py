"""Heartbeats at times of their own become the lists that a collector would have been given."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.contract import check_tables
from jobs.errors import InputError, SettingsError
from jobs.fold.heartbeat_rounds import (
    OF_A_BROKER,
    as_rounds,
    connections,
    listed,
    listed_in_parts,
    polls_of,
    rounds_of,
)
from jobs.schemas import BROKER_POLLS, CLIENT_STATES, HEARTBEATS, QUEUE_OFFSETS, TOPIC_ROUTES
from tests.support.snapshots import (
    Row,
    at,
    heartbeat_row,
    info_row,
    log_row,
    offset_row,
    poll_row,
    route_row,
    table,
)

EXPIRY = 130
#: Whom a broker lists at a time.
Lists = Mapping[tuple[str, float], set[str]]


def beat(client_id: str, seconds: float, broker: str = "b", **values: Any) -> Row:
    values |= {"client_id": client_id, "broker_name": broker, "snapshot_time": at(seconds)}
    return heartbeat_row(**{"client_addr": f"{client_id}:{broker}"} | values)


def beats(client_id: str, times: Iterable[float], **values: Any) -> list[Row]:
    return [beat(client_id, each, **values) for each in times]


def seconds(time: datetime | None) -> float:
    assert time is not None
    return (time - at(0)).total_seconds()


def lists_of(rows: pa.Table) -> Lists:
    found = defaultdict(set)
    for row in rows.to_pylist():
        if row["snapshot_time"] is not None:
            found[row["broker_name"], seconds(row["snapshot_time"])].add(row["client_id"])
    return dict(found)


def converted(rows: Sequence[Row], round_seconds: int = 60, expiry: int = EXPIRY) -> pa.Table:
    events = table(HEARTBEATS, rows)
    return listed(events, rounds_of(events, round_seconds, expiry))


def outcomes(rows: Sequence[Row]) -> dict[tuple[str, str, float], tuple[str, int]]:
    events = table(HEARTBEATS, rows)
    rounds = rounds_of(events, 60, EXPIRY)
    polls = polls_of(connections(listed(events, rounds)), rounds)
    check_tables([(BROKER_POLLS, polls.schema)])
    return {
        (row["consumer_group"], row["broker_name"], seconds(row["snapshot_time"])): (
            row["outcome"],
            row["connections"],
        )
        for row in polls.to_pylist()
    }


def test_a_connection_is_listed_from_its_heartbeat_until_it_expires() -> None:
    rows = beats("stays", range(0, 601, 30)) + beats("goes", range(10, 200, 30))
    found = lists_of(converted(rows))
    # The last heartbeat of "goes" came at 190: it is dropped at 320.
    assert found == {
        ("b", r): {"stays", "goes"} if r <= 300 else {"stays"} for r in range(60, 601, 60)
    }


def test_the_last_heartbeat_up_to_a_round_has_the_facts() -> None:
    rows = beats("a", range(0, 300, 30)) + beats("b", range(5, 300, 30), version=1)
    rows += [beat("b", 145, version=2)]
    versions = {
        seconds(row["snapshot_time"]): row["version"]
        for row in converted(
            [r for r in rows if r["version"] != 1 or r["snapshot_time"] < at(146)]
        ).to_pylist()
        if row["client_id"] == "b"
    }
    assert versions == {60: 1, 120: 1, 180: 2, 240: 2}


def test_a_heartbeat_at_a_round_is_in_it_and_no_row_is_changed_but_in_its_time() -> None:
    rows = [beat("a", 60 * n, last_heartbeat_at=at(60 * n - 1)) for n in range(5)]
    found = converted(rows).to_pylist()
    assert found == [row | {"last_heartbeat_at": None} for row in rows[1:]]


def test_a_row_of_a_list_counts_from_the_heartbeat_that_it_names() -> None:
    """A collector's lists at odd times: "gone" was last heard at 10, and is listed until 130."""
    rows = beats("here", range(5, 900, 60))
    rows += [beat("gone", 60 * n + 5, last_heartbeat_at=at(10)) for n in range(1, 3)]
    # The broker does not drop it: its list of 605 has it still.
    rows += [beat("stays", 60 * n + 5, last_heartbeat_at=at(0)) for n in range(11)]
    found = lists_of(converted(rows))
    assert {r for (_, r), members in found.items() if "gone" in members} == {120, 180}
    assert max(r for (_, r), members in found.items() if "stays" in members) == 660


def test_two_connections_of_one_client_are_two() -> None:
    rows = [
        beat("a", time + 9 * port, client_addr=f"h:{port}")
        for time in range(0, 600, 30)
        for port in (1, 2)
    ]
    counts = Counter(row["snapshot_time"] for row in converted(rows).to_pylist())
    assert set(counts.values()) == {2}


def test_a_table_that_ends_is_no_fleet_that_dies() -> None:
    rows = [
        row
        for n, (client, broker) in enumerate(product("abc", "xyz"))
        for row in beats(client, range(7 * n, 600, 60), broker=broker)
    ]
    found = lists_of(converted(rows))
    assert set(found.values().__iter__().__next__()) == {"a", "b", "c"}
    assert all(each == {"a", "b", "c"} for each in found.values())
    assert {time for _, time in found} == set(range(120, 541, 60))


def test_what_the_stream_does_not_have_is_told_from_what_is_not_there() -> None:
    """Broker y gives nothing for ten minutes; of all there is nothing for an hour; group H leaves
    broker x; z comes later.
    """
    every = range(0, 3001, 30)
    hour = 7000
    rows = []
    for group, broker, times in (
        ("G", "x", every),
        ("G", "y", [each for each in every if not 900 < each < 1500]),
        ("G", "z", [each for each in every if each >= 2400]),
        ("H", "x", [each for each in every if each <= 1200]),
        ("H", "y", [each for each in every if not 900 < each < 1500]),
    ):
        for again in (0, hour):
            rows += beats("a", [again + t for t in times], broker=broker, consumer_group=group)
    found = outcomes([row for row in rows if row["snapshot_time"] < at(hour + 600)])
    first, later = range(60, 3001, 60), range(7080, 7591, 60)
    of_y = {r: "NO_ANSWER" if 900 < r < 1560 else "ANSWERED" for r in first}
    # Back at 1500, its connections have sent their heartbeats by 1530.
    assert of_y | dict.fromkeys(later, "ANSWERED") == {
        r: what for (group, broker, r), (what, _) in found.items() if (group, broker) == ("G", "y")
    }
    of_h = {
        r: what for (group, broker, r), (what, _) in found.items() if (group, broker) == ("H", "x")
    }
    assert {r for r, what in of_h.items() if what == "NOT_ONLINE"} == set(range(1380, 3001, 60))
    assert {r for (_, broker, r) in found if broker == "z"} == {*range(2460, 3001, 60), *later}
    assert {r for *_, r in found} == {*first, *later}


# The last one: 30 s as milliseconds that were taken for seconds.
@pytest.mark.parametrize("period", [150, 30_000])
def test_a_sink_that_has_few_of_the_heartbeats_is_an_error(period: int) -> None:
    rows = beats("a", range(0, 40 * period, period)) + beats("b", range(50, 40 * period, period))
    with pytest.raises(InputError, match="at least once in heartbeat_expiry_seconds = 130"):
        converted(rows)
    assert lists_of(converted(rows, expiry=2 * period + 10))


@pytest.mark.parametrize("length", [0, 3601, 60.0, "60", True, None])
def test_a_length_that_is_none_is_an_error(length: Any) -> None:
    with pytest.raises(SettingsError, match="round_seconds: expected a whole number of seconds"):
        as_rounds({"heartbeats": table(HEARTBEATS, [beat("a", 0)])}, length, EXPIRY)


def test_tables_of_nothing_have_no_round_and_of_one_row_are_refused() -> None:
    found = as_rounds({"heartbeats": table(HEARTBEATS, [])}, 60, EXPIRY)
    assert [found[name].num_rows for name in ("heartbeats", "broker_polls")] == [0, 0]
    with pytest.raises(InputError, match="came none: the heartbeats last 0 s, and the first 130 s"):
        as_rounds({"heartbeats": table(HEARTBEATS, [beat("a", 0)])}, 60, EXPIRY)


def test_rows_that_break_their_contract_are_still_there_to_be_refused() -> None:
    rows = beats("a", range(0, 300, 30))
    broken = [beat("a", 70) | each for each in ({"snapshot_time": None}, {"client_id": None})]
    schema = pa.schema(field.with_nullable(True) for field in HEARTBEATS.schema)
    events = pa.Table.from_pylist(rows + broken, schema)
    found = listed(events, rounds_of(events, 60, EXPIRY)).to_pylist()
    assert [row["client_id"] for row in found if row["snapshot_time"] is None] == ["a"]
    assert [row["snapshot_time"] for row in found if row["client_id"] is None] == [at(120), at(180)]


def test_the_other_tables_get_the_rounds_in_which_they_would_have_been_collected() -> None:
    events = table(HEARTBEATS, beats("a", range(0, 600, 30)))
    came = as_rounds(
        {
            "heartbeats": events,
            "topic_routes": table(TOPIC_ROUTES, [route_row(snapshot_time=at(7))]),
            "broker_polls": table(
                BROKER_POLLS,
                [
                    poll_row(snapshot_time=at(61), collected_at=at(61), first_collected_at=at(60)),
                    poll_row(snapshot_time=at(180), collected_at=at(183)),
                ],
            ),
            "queue_offsets": table(
                QUEUE_OFFSETS,
                [offset_row(snapshot_time=at(t), consumer_offset=t) for t in (110, 70, 130)],
            ),
            "client_states": table(
                CLIENT_STATES, [info_row("a", 61, [0]), log_row("p", "a", 61, [0])]
            ),
        },
        60,
        EXPIRY,
    )
    polls = came["broker_polls"].to_pylist()
    assert [(row["snapshot_time"], row["collected_at"]) for row in polls] == [
        (at(120), None),
        (at(180), at(183)),
    ]
    assert polls[0]["first_collected_at"] is None
    offsets = came["queue_offsets"].to_pylist()
    assert [(row["snapshot_time"], row["consumer_offset"]) for row in offsets] == [
        (at(120), 110),
        (at(180), 130),
    ]
    states = came["client_states"].to_pylist()
    assert [row["snapshot_time"] for row in states] == [at(120), None]
    assert came["topic_routes"].to_pylist() == [route_row(snapshot_time=at(7))]


def test_the_rounds_of_a_collector_stay() -> None:
    rows = [row for client in "abc" for row in beats(client, range(0, 600, 60))]
    polls = [poll_row(snapshot_time=at(60 * n), collected_at=at(60 * n + 2)) for n in range(10)]
    tables = {"heartbeats": table(HEARTBEATS, rows), "broker_polls": table(BROKER_POLLS, polls)}
    found = as_rounds(tables, 60, EXPIRY)
    assert found["broker_polls"].equals(tables["broker_polls"])
    stays = [row for row in rows if row["snapshot_time"] > at(0)]
    order = lambda row: (row["snapshot_time"], row["client_id"])  # noqa: E731
    assert found["heartbeats"].to_pylist() == sorted(stays, key=order)


CLIENTS = "abcde"
ROUNDS = 14


@st.composite
def fleets(draw: st.DrawFn) -> tuple[dict[tuple[str, str], set[int]], dict[Any, int], int]:
    """In which rounds each connection is there, how late each sends, and the length of a round."""
    length = draw(st.sampled_from([20, 30, 60, 120]))
    there = {}
    for connection in product("xy", CLIENTS[: draw(st.integers(1, 5))]):
        begins = draw(st.integers(0, ROUNDS))
        there[connection] = set(range(ROUNDS)) - set(
            range(begins, begins + draw(st.integers(0, 9)))
        )
    kind = draw(st.sampled_from(["connection", "client", "broker"]))
    key = {"connection": lambda c: c, "client": lambda c: c[1], "broker": lambda c: c[0]}[kind]
    late = {who: draw(st.integers(0, 1000 * length - 1)) for who in {*map(key, there)}}
    return there, {each: late[key(each)] for each in there}, length


@settings(max_examples=80, deadline=None)
@given(fleets())
def test_away_from_joins_the_lists_are_those_of_the_fleet_without_jitter(fleet: Any) -> None:
    there, late, length = fleet
    rows = [
        beat(client, length * n + late[broker, client] / 1000, broker)
        for (broker, client), present in there.items()
        for n in sorted(present)
    ]
    if not rows:
        return
    try:
        found = lists_of(converted(rows, length))
    except InputError as error:
        # Streams so short that no round shows every member: nothing is known, and it is said.
        assert "came none" in str(error)
        return
    lasts = -(-EXPIRY // length) + 1
    for (broker, time), members in found.items():
        # A heartbeat of the round before comes up to a round later.
        n = int(time // length)
        for client in CLIENTS:
            present = there.get((broker, client), set())
            if {n - 1, n} <= present:
                assert client in members
            if not present.intersection(range(n - lasts, n + 1)):
                assert client not in members


@settings(max_examples=30, deadline=None)
@given(fleets(), st.integers(1, 40), st.integers(1, 30))
def test_parts_of_any_size_give_the_same(fleet: Any, most: int, batch: int) -> None:
    there, late, length = fleet
    rows = [
        beat(client, length * n + late[broker, client] / 1000, broker, consumer_group=group)
        for group in ("G", "H")
        for (broker, client), present in there.items()
        for n in sorted(present)
        if group == "G" or n % 3
    ]
    if not rows:
        return
    events = table(HEARTBEATS, rows)
    rounds = rounds_of(events, length, EXPIRY)
    by_broker = events.sort_by([(name, "ascending") for name in (*OF_A_BROKER, "snapshot_time")])
    batches = by_broker.to_batches(max_chunksize=batch)
    parts = pa.concat_tables(listed_in_parts(batches, rounds, most))
    whole = listed(events, rounds)
    assert sorted(map(str, parts.to_pylist())) == sorted(map(str, whole.to_pylist()))
    lists = connections(parts).drop_columns("connections").to_pylist()
    assert len(lists) == len({tuple(each.values()) for each in lists})  # the rows of each together
    assert polls_of(connections(parts), rounds).equals(polls_of(connections(whole), rounds))


def test_heartbeats_too_few_for_any_round_are_refused_with_what_they_last() -> None:
    events = table(HEARTBEATS, beats("a", range(7, 1_800, 30)))
    said = r"round_seconds = 3600, came none: the heartbeats last 1770 s, and the first 30 s"
    with pytest.raises(InputError, match=said):
        rounds_of(events, 3_600, EXPIRY)
    rounds_of(events, 600, EXPIRY)


def test_a_cluster_without_a_round_beside_one_with_rounds_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    few = [row | {"cluster": "few"} for row in beats("b", range(0, 40, 30))]
    events = table(HEARTBEATS, [*beats("a", range(0, 1_800, 30)), *few])
    rounds_of(events, 60, EXPIRY)
    (record,) = caplog.records
    assert record.getMessage().startswith("cluster few is not audited: its heartbeats are too few")
