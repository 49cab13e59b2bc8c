"""Slices of the snapshot tables -> parts of runs: what one row, one list, one poll comes to."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

from jobs.declared.contents import chooses_queues, is_expired, silence_bounds
from jobs.engines.pieces import all_values
from jobs.fold import numbers
from jobs.fold.checked_rows import TableReading
from jobs.fold.kernel import Cutting, client_runs, member_runs, poll_runs
from jobs.fold.slice_facts import FACTS
from jobs.schemas import BROKER_POLLS, CLIENT_STATES, HEARTBEATS
from tests.fold.fleets import EXPIRY_SECONDS, HEARTBEAT, START, fleet
from tests.support.snapshots import info_row, poll_row, table


def heartbeats(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([HEARTBEAT | each for each in rows], HEARTBEATS.schema)


# ---------------------------------------------------------------- flags: a member, and columns

_SECOND = 1_000_000


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


@pytest.mark.parametrize("address", [None, "h:1"])
def test_a_group_whose_members_have_no_or_one_address_is_named(
    address: str | None,
) -> None:
    rows = heartbeats(*[{"client_addr": address, "client_id": name} for name in "ab"])
    (facts,) = all_values([*Cutting(1, EXPIRY_SECONDS).pieces(HEARTBEATS, [rows])], FACTS)
    assert facts.indistinct == {("c", "G")}


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
