"""rows -> tables: just the declared columns, of their types."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobs.judge.observe.arrow_tables import RowError, to_table
from jobs.reports.tables import declared_table
from jobs.schemas import GROUP_FAULTS, REPORT_TABLES
from tests.judge.phases import at

STATE_RUNS, REASSIGNMENTS = declared_table("state_runs"), declared_table("reassignments")


def run(**overrides):
    values = {
        "cluster": "c",
        "consumer_group": "G",
        "topic": "T",
        "state_id": "s",
        "first_seen": at(0),
        "last_seen": at(60.5),
        "snapshots": 2,
    }
    return values | overrides


def test_a_row_has_just_the_columns_of_its_table_and_instants_are_times():
    table = to_table(STATE_RUNS, [run()])

    assert table.schema.equals(STATE_RUNS.schema, check_metadata=True)
    (row,) = table.to_pylist()
    assert row["last_seen"] == datetime(1970, 1, 1, 0, 1, 0, 500_000, UTC)


@pytest.mark.parametrize("table", REPORT_TABLES, ids=lambda table: table.name)
def test_a_table_without_rows_has_its_schema(table):
    made = to_table(table, [])
    assert (made.num_rows, made.schema) == (0, table.schema)


@pytest.mark.parametrize(
    ("row", "place", "what"),
    [
        (run(snapshots="two"), "state_runs.snapshots", "expected int64"),
        (run(first_seen=1.5), "state_runs.first_seen", "expected timestamp"),
        (run(topic=None), "state_runs.topic", "came null in 1"),
        ({"cluster": "c"}, "state_runs.consumer_group", "is missing"),
        (run(kind="of no table"), "state_runs", "came kind"),
    ],
)
def test_a_row_that_does_not_fit_is_an_error_that_names_table_and_column(row, place, what):
    with pytest.raises(RowError) as raised:
        to_table(STATE_RUNS, [run(), row])
    assert str(raised.value).startswith(f"{place}: ")
    assert what in str(raised.value)


def test_a_number_too_large_for_its_column_is_an_error():
    row = dict.fromkeys(REASSIGNMENTS.schema.names, "x") | {
        **dict.fromkeys(("changed_at", "seen_before", "settled_at"), 0),
        **dict.fromkeys(("clients_joined", "clients_left"), ()),
        "queues_before": 2**31,
    }
    with pytest.raises(RowError, match=r"reassignments\.queues_before: expected int32"):
        to_table(REASSIGNMENTS, [row])


def test_arrays_are_any_sequences_and_structs_are_dicts():
    move = {"broker_name": "b", "queue_id": 0, "before": ["a"], "after": ()}
    values = {
        **dict.fromkeys(GROUP_FAULTS.schema.names, "x"),
        **dict.fromkeys(("first_seen", "last_seen", "snapshots"), 1),
        **dict.fromkeys(("open_since", "nights_open", "unread_messages"), 1),
        **dict.fromkeys(("queues_affected", "findings_cleared", "findings_left"), 0),
        **dict.fromkeys(("client_addrs", "broker_names"), ()),
        "ongoing": True,
        "is_finding": False,
        "share_of_time": 0.5,
        "client_ids": ("a", "b"),
        "moves": [move],
        "known_issue": None,
    }

    (row,) = to_table(GROUP_FAULTS, [values]).to_pylist()

    assert (row["client_ids"], row["client_addrs"]) == (["a", "b"], [])
    assert row["moves"] == [move | {"after": []}]
