"""Slices of the snapshot tables -> parts of runs: what one row, one list, one poll comes to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem

from jobs.declared.contents import MEMBER_FACTS
from jobs.declared.member_flags import chooses_queues, is_expired, silence_bounds
from jobs.engines.pieces import all_values
from jobs.fold import numbers
from jobs.fold.checked_rows import TableReading
from jobs.fold.facts import FACTS
from jobs.fold.kernel import Cutting, client_runs, member_runs, poll_runs, route_runs
from jobs.schemas import BROKER_POLLS, CLIENT_STATES, HEARTBEATS, TOPIC_ROUTES
from tests.fold.fleets import EXPIRY_SECONDS, HEARTBEAT, START, SUBSCRIPTION, fleet
from tests.support.snapshots import info_row, poll_row, route_row, table

PLACES = {fact.name: place for place, fact in enumerate(MEMBER_FACTS)}


def heartbeats(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([HEARTBEAT | each for each in rows], HEARTBEATS.schema)


# ---------------------------------------------------------------- flags: a member, and columns

_SECOND = 1_000_000
members = st.fixed_dictionaries(
    {
        "pull_consumer": st.none() | st.booleans(),
        "consume_type": st.sampled_from([None, "CONSUME_ACTIVELY", "CONSUME_PASSIVELY"]),
        "subscription_source": st.sampled_from([None, "HEARTBEAT", "GROUP_TABLE", "RUNNING_INFO"]),
        "subscriptions": st.lists(st.just(SUBSCRIPTION), max_size=2),
        "is_silent": st.none() | st.booleans(),
    }
)


def heard(silence: int | None) -> datetime | None:
    return None if silence is None else START - timedelta(microseconds=silence)


@given(st.data(), st.integers(0, 1000))
def test_columns_have_the_flags_that_one_member_has(data: st.DataObject, expiry: int) -> None:
    edges = [
        bound + off for bound in silence_bounds(expiry) for off in (-_SECOND, -1, 0, 1, _SECOND)
    ]
    silences = st.none() | st.sampled_from(edges) | st.integers(-(10**12), 10**12)
    chosen = data.draw(st.lists(st.tuples(members, silences), min_size=1, max_size=12))
    rows = [
        values | {"broker_id": number, "last_heartbeat_at": heard(silence)}
        for number, (values, silence) in enumerate(chosen)
    ]
    (found,) = member_runs(TableReading(HEARTBEATS, [heartbeats(*rows)]), expiry)
    assert found.runs.num_rows == len(rows)
    for run in found.runs.to_pylist():
        values, silence = chosen[run["broker_id"]]
        ((*record,),) = found.records[run["list_id"]]
        subscriptions = values["subscriptions"]
        assert record[PLACES["is_expired"]] is is_expired(
            silence, silence_bounds(expiry), is_silent=bool(values["is_silent"])
        )
        assert record[PLACES["chooses_queues"]] is chooses_queues(
            values["pull_consumer"],
            values["consume_type"],
            values["subscription_source"],
            None if subscriptions is None else len(subscriptions),
        )


@pytest.mark.parametrize(
    ("silence", "expiry", "is_silent", "expected"),
    [
        (0, 130, False, False),
        (-5, 130, False, False),
        (90, 130, False, False),
        (90.000001, 130, False, None),
        (130, 130, False, None),
        (130.000001, 130, False, True),
        (0, 130, True, True),
        (None, 130, True, True),
        (None, 130, False, None),
        # Heard is no longer than a broker keeps a silent connection.
        (60, 60, False, False),
        (60.000001, 60, False, True),
    ],
)
def test_a_member_is_heard_expired_or_neither(
    silence: float | None, expiry: int, is_silent: bool, expected: bool | None
) -> None:
    micros = None if silence is None else round(silence * _SECOND)
    assert is_expired(micros, silence_bounds(expiry), is_silent=is_silent) is expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((True, None, None, None), True),
        ((True, "CONSUME_PASSIVELY", "GROUP_TABLE", 3), True),
        ((False, "CONSUME_ACTIVELY", "HEARTBEAT", 0), True),
        ((None, "CONSUME_ACTIVELY", "RUNNING_INFO", 0), True),
        # It subscribes, so that a strategy gives it queues.
        ((None, "CONSUME_ACTIVELY", "HEARTBEAT", 1), False),
        # The last heartbeat of any member wrote the group's table.
        ((None, "CONSUME_ACTIVELY", "GROUP_TABLE", 0), False),
        # Nothing shows what it subscribes to.
        ((None, "CONSUME_ACTIVELY", None, 0), False),
        ((None, "CONSUME_ACTIVELY", "HEARTBEAT", None), False),
        ((None, "CONSUME_PASSIVELY", "HEARTBEAT", 0), False),
        ((None, None, None, None), False),
    ],
)
def test_a_member_chooses_its_queues_itself_or_does_not(
    values: tuple[Any, ...], expected: bool
) -> None:
    assert chooses_queues(*values) is expected


# ---------------------------------------------------------------- lists of rows


def only_list(rows: pa.Table) -> list[tuple[str, str | None]]:
    """Client id and address of the members of the one list."""
    (lists,) = member_runs(TableReading(HEARTBEATS, [rows]), EXPIRY_SECONDS)
    (records,) = lists.records.values()
    return [record[:2] for record in records]


def test_a_connection_is_once_in_a_list_however_often_its_row_comes() -> None:
    row = {"client_addr": "h:1"}
    assert only_list(heartbeats(row, row, {"client_addr": "h:2"})) == [("i", "h:1"), ("i", "h:2")]


def test_members_without_an_address_count_once_and_their_group_is_named() -> None:
    row = {"client_addr": None}
    assert only_list(heartbeats(row, row)) == [("i", None)]
    pieces = Cutting(1, EXPIRY_SECONDS).pieces(HEARTBEATS, [heartbeats(row, row)])
    (facts,) = all_values(list(pieces), FACTS)
    assert facts.indistinct == {("c", "G")}


def test_a_list_is_the_same_in_whatever_order_its_rows_come() -> None:
    rows = [{"client_id": name} for name in "abc"]
    (ids,) = {
        tuple(lists.runs["list_id"].to_pylist())
        for order in (rows, rows[::-1], [rows[1], rows[0], rows[2]])
        for lists in member_runs(TableReading(HEARTBEATS, [heartbeats(*order)]), EXPIRY_SECONDS)
    }
    assert len(ids) == 1


def test_the_runs_of_a_list_have_all_its_times_and_no_time_of_an_answer() -> None:
    later = START + timedelta(minutes=1)
    rows = heartbeats({}, {"snapshot_time": later}, {"snapshot_time": later, "broker_name": "x"})
    (lists,) = member_runs(TableReading(HEARTBEATS, [rows]), EXPIRY_SECONDS)
    found = {run["broker_name"]: run["times"] for run in lists.runs.to_pylist()}
    at = [micros(START), micros(later)]
    assert found["b"] == [{"snapshot_time": time, "collected_at": None} for time in at]
    assert [each["snapshot_time"] for each in found["x"]] == at[1:]


@pytest.mark.parametrize(
    ("most_held", "statements", "contents"),
    [(1, [1, 1, 1, 1], [1, 1, 1, 1]), (4, [1, 1, 1, 1], [1, 2, 1, 2]), (100, [3], [3])],
)
def test_what_is_held_is_given_away_part_by_part_and_then_forgotten(
    monkeypatch: pytest.MonkeyPatch, most_held: int, statements: list[int], contents: list[int]
) -> None:
    """A batch of each slice is one statement of three records; the last slice is the first."""
    monkeypatch.setattr("jobs.fold.runs.MOST_HELD", most_held)
    slices = [
        heartbeats(*[{"broker_name": name, "client_id": name + end} for end in "123"])
        for name in "xyzx"
    ]
    lists = member_runs(TableReading(HEARTBEATS, slices), EXPIRY_SECONDS)
    given_away = [(each.runs["list_id"].to_pylist(), {*each.records}) for each in lists]
    assert [len(ids) for ids, _ in given_away] == statements
    assert [len(records) for _, records in given_away] == contents
    assert all(records.issuperset(ids) for ids, records in given_away)


def micros(time: datetime) -> int:
    return int(time.timestamp()) * 1_000_000


def test_a_file_may_lack_columns_that_may_be_null_and_have_times_of_another_unit(tmp_path):
    rows = fleet(4)["heartbeats"]
    nothing = pa.nulls(rows.num_rows, pa.bool_())
    place = rows.schema.get_field_index("pull_consumer")
    expected = rows.set_column(place, HEARTBEATS.schema.field("pull_consumer"), nothing)
    time = rows.schema.get_field_index("snapshot_time")
    in_nanos = rows.column("snapshot_time").cast(pa.timestamp("ns", "UTC"))
    written = rows.set_column(time, "snapshot_time", in_nanos).drop_columns("pull_consumer")
    pq.write_table(written, tmp_path / "rows.parquet")
    source = numbers.open_files(HEARTBEATS, [str(tmp_path / "rows.parquet")], LocalFileSystem())
    (came,) = member_runs(TableReading(HEARTBEATS, [source]), EXPIRY_SECONDS)
    (wanted,) = member_runs(TableReading(HEARTBEATS, [expected]), EXPIRY_SECONDS)
    assert came.runs.sort_by("list_id").equals(wanted.runs.sort_by("list_id"))
    assert came.records == wanted.records


# ---------------------------------------------------------------- polls and routes


def broker_poll(**values: Any) -> pa.Table:
    poll = {"cluster": "c", "snapshot_time": START, "broker_name": "b", "connections": 0}
    return table(BROKER_POLLS, [poll_row(**poll | values)])


@pytest.mark.parametrize(
    ("outcome", "connections", "list_id", "said", "named"),
    [
        # An answer with an empty list says what NOT_ONLINE says.
        ("ANSWERED", 0, None, "NOT_ONLINE", None),
        ("NOT_ONLINE", 0, None, "NOT_ONLINE", None),
        ("NO_ANSWER", 0, None, "NO_ANSWER", None),
        # A list that came: by rows the answer's time alone, by ids its id, or the time without one.
        ("ANSWERED", 2, None, "ANSWERED", None),
        ("ANSWERED", 2, "1", "ANSWERED", "1"),
        # An id of what is no list names nothing.
        ("NO_ANSWER", 0, "1", "NO_ANSWER", None),
        ("ANSWERED", 0, "1", "NOT_ONLINE", None),
    ],
)
def test_what_a_poll_says_by_rows_and_by_ids(
    outcome: str, connections: int | None, list_id: str | None, said: str, named: str | None
) -> None:
    polls = broker_poll(outcome=outcome, connections=connections, list_id=list_id)
    for has_ids, of_list in ((False, None), (True, named)):
        found = poll_runs(TableReading(BROKER_POLLS, [polls]), has_ids=has_ids)
        runs = [run for part in found for run in part.runs.to_pylist()]
        assert [(run["outcome"], run["list_id"]) for run in runs] == [(said, of_list)]


def test_a_poll_has_the_time_of_its_answer_where_the_row_has_one() -> None:
    at = START + timedelta(seconds=4)
    polls = broker_poll(outcome="NO_ANSWER", collected_at=at)
    for rows, wanted in ((polls, micros(at)), (broker_poll(outcome="NO_ANSWER"), None)):
        (runs,) = poll_runs(TableReading(BROKER_POLLS, [rows]), has_ids=False)
        (run,) = runs.runs.to_pylist()
        assert run["times"] == [{"snapshot_time": micros(START), "collected_at": wanted}]


def routes(*rows: dict[str, Any]) -> pa.Table:
    return table(TOPIC_ROUTES, [route_row(**{"broker_name": "b"} | each) for each in rows])


NO_BROKER = {"broker_name": None, "perm": 0, "read_queue_nums": 0, "write_queue_nums": 0}


def test_a_nameserver_that_does_not_know_the_topic_gives_a_route_of_no_broker() -> None:
    (found,) = route_runs(TableReading(TOPIC_ROUTES, [routes(NO_BROKER)]))
    assert list(found.records.values()) == [[]]
    (both,) = route_runs(TableReading(TOPIC_ROUTES, [routes(NO_BROKER, {})]))
    assert [[record[0] for record in each] for each in both.records.values()] == [["b"]]


@pytest.mark.parametrize(
    ("ids", "expected"), [([1, 0, 2], (0, 1, 2)), ([], ()), (None, None), ([3], (3,))]
)
def test_the_ids_of_a_broker_are_in_order_and_none_is_not_an_empty_list(
    ids: list[int] | None, expected: tuple[int, ...] | None
) -> None:
    (found,) = route_runs(TableReading(TOPIC_ROUTES, [routes({"broker_ids": ids})]))
    ((record,),) = found.records.values()
    assert record[1] == expected


# ---------------------------------------------------------------- what clients and brokers report


def test_a_broker_that_forwards_a_question_makes_no_other_answer_and_one_that_refuses_does() -> (
    None
):
    def runs(source: str) -> list[tuple[str | None, int]]:
        rows = [info_row("", 0, (), source=source, broker_name=name) for name in ("a", "b")]
        (found,) = client_runs(TableReading(CLIENT_STATES, [table(CLIENT_STATES, rows)]))
        return sorted((each["broker_name"], len(each["times"])) for each in found.runs.to_pylist())

    assert runs("RUNNING_INFO") == [(None, 1)]
    assert runs("CONSUME_DISABLED") == [("a", 1), ("b", 1)]
