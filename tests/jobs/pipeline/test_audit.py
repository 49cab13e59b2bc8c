"""snapshot tables -> published report tables: all steps together, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.config.window import Window
from jobs.errors import InputError
from jobs.pipeline.inputs import Inputs
from jobs.schemas import (
    ALLOCATION_DRIFT,
    CLIENT_STATES,
    HEARTBEATS,
    REPORT_TABLES,
    SNAPSHOT_TABLES,
    TOPIC_ROUTES,
    comment_of,
)
from jobs.storage import Location, Snapshots
from tests.support.ids import ids_locally
from tests.support.reports import PublishedReports
from tests.support.runs import as_ingested, audit_locally, table_of, task
from tests.support.snapshots import CLUSTER, GROUP, TOPIC, at, info_row, table, write_tables
from tests.support.stacked import STACKED, STACKED_ROUTES, STALLED
from tests.support.tables import write_table

_TABLES = {table.name: table for table in SNAPSHOT_TABLES}
PLACE = {"cluster": CLUSTER, "consumer_group": GROUP, "topic": TOPIC}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tables(tmp_path / "snapshots", STACKED)
    return tmp_path


def audited(folder: Path, window: Window | None = None) -> PublishedReports:
    return audit_locally(task(folder / "snapshots", folder / "reports", window))


#: What all rows here have of the first night.
FIRST_NIGHT = PLACE | {
    "first_seen": at(120),
    "last_seen": at(360),
    "persistence": "PERSISTENT",
    "severity": "CRITICAL",
    "status": "NEW",
    "open_since": at(120),
    "nights_open": 1,
}


def said(row: dict[str, Any], *without: str) -> dict[str, Any]:
    """All that is there of a row: every column but nulls, and these."""
    return {name: of for name, of in row.items() if of is not None and name not in without}


def part_of(rows: list[dict[str, Any]], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in columns) for row in rows)


def test_a_stacked_id_orphans_the_queues_of_its_later_slot_while_it_is_there(folder: Path) -> None:
    reports = audited(folder)
    orphans = sorted(reports.rows("orphaned_queues"), key=lambda row: row["broker_name"])
    # Six queues, [a, a, b]: a 0-1 of broker-a, nobody the next two, b the last two.
    places = [(row["broker_name"], row["queue_id"]) for row in orphans]
    assert places == [("broker-a", 2), ("broker-b", 0)]
    for row in orphans:
        assert said(row, "finding_id", "broker_name", "queue_id") == FIRST_NIGHT | {
            # The poll that was not answered is between two that were.
            "snapshots": 5,
            "share_of_time": 1.0,
            "computed": True,
            "ongoing": False,
            "certainty": "CERTAIN",
            "probability": 1.0,
            "completeness": 1.0,
            "claimants": [],
            "causes": ["DUPLICATE_CLIENT_ID"],
            "strategy_source": "observed",
            "episode_first_seen": at(120),
            "episode_last_seen": at(360),
        }
    columns = ("broker_name", "queue_id", "claimants", "severity")
    claimants = [{"client_id": "a", "processes": 2, "probability": 1.0}]
    assert part_of(reports.rows("duplicate_queues"), columns) == [
        ("broker-a", queue_id, claimants, "WARNING") for queue_id in (0, 1)
    ]
    runs = part_of(reports.rows("state_runs"), ("first_seen", "last_seen", "snapshots"))
    assert runs == [
        (at(60 * first), at(60 * last), snapshots)
        for first, last, snapshots in [(0, 1, 2), (2, 6, 5), (7, 7, 1)]
    ]


def test_the_fault_behind_a_stacked_id_is_told_once_with_what_a_repair_moves(folder: Path) -> None:
    (fault,) = audited(folder).rows("group_faults")
    moves = [
        ("broker-a", 0, ["a", "a"], ["a"]),
        ("broker-a", 1, ["a", "a"], ["a"]),
        ("broker-a", 2, [], ["a (process 2)"]),
        ("broker-b", 0, [], ["a (process 2)"]),
    ]
    # The words are the core's, and tested there.
    assert said(fault, "evidence", "remedy", "texts", "finding_id") == FIRST_NIGHT | {
        "fault": "DUPLICATE_CLIENT_ID",
        "snapshots": 5,
        "share_of_time": 1.0,
        "ongoing": False,
        "client_ids": ["a"],
        "client_addrs": ["a:1", "a:2"],
        "broker_names": [],
        "queues_affected": 4,
        "findings_cleared": 4,
        "findings_left": 0,
        "is_finding": False,
        "moves": [
            dict(zip(("broker_name", "queue_id", "before", "after"), each, strict=True))
            for each in moves
        ],
    }


def test_a_process_that_stands_still_is_told_with_its_queues_but_no_orphan(tmp_path: Path) -> None:
    write_tables(tmp_path / "snapshots", STALLED)
    reports = audited(tmp_path)
    stalls = sorted(reports.rows("stalled_queues"), key=lambda row: row["queue_id"])
    # Queue 0 of broker-b has no owner then, the others b.
    assert [row["queue_id"] for row in stalls] == [1, 2]
    assert len({row["finding_id"] for row in stalls}) == 2
    why = "frozen process: none of the queues of its process moves"
    for row in stalls:
        assert said(row, "finding_id", "queue_id") == FIRST_NIGHT | {
            "broker_name": "broker-b",
            "polls": 4,
            "ongoing": True,
            "backlog": 16,
            "backlog_growth": 4,
            "owners": ["b"],
            "why": why,
            "texts": f'{{"why":["{why}"]}}',
        }
    faults = part_of(reports.rows("group_faults"), ("fault", "client_ids", "queues_affected"))
    assert faults == [("DUPLICATE_CLIENT_ID", ["a"], 4), ("FROZEN_PROCESS", ["b"], 2)]


def test_every_report_table_is_published_with_its_columns_and_comments(folder: Path) -> None:
    write_tables(folder / "snapshots", [(CLIENT_STATES, [info_row("a", 60, [0, 1])])])
    reports = audited(folder)
    published = {table.name for table in REPORT_TABLES}
    assert set(reports.published["tables"]) == published
    for of in REPORT_TABLES:
        for file in (reports.reports / of.name).rglob("*.parquet"):
            written = pq.read_schema(file)
            assert written.equals(of.schema), of.name
            assert list(map(comment_of, written)) == list(map(comment_of, of.schema)), of.name


def test_tables_without_anything_to_tell_are_there_and_empty(folder: Path) -> None:
    reports = audited(folder)
    assert "stalled_queues" in reports.published["tables"]
    assert reports.rows("stalled_queues") == []
    # Of drift nothing is known without client states: no table says that there was none.
    assert ALLOCATION_DRIFT.name not in reports.published["tables"]


def test_the_window_and_what_was_seen_in_it_are_told(folder: Path) -> None:
    summary = audited(folder, Window(at(60), at(240))).summary
    assert summary["window"] == {
        "since": "2026-01-05T00:01:00.000Z",
        "until": "2026-01-05T00:04:00.000Z",
        "first_snapshot": "2026-01-05T00:01:00.000Z",
        "last_snapshot": "2026-01-05T00:03:00.000Z",
    }
    assert summary["engine"] == "local"
    assert summary["versions"] == {"pyarrow": pa.__version__}


def test_of_faults_those_are_counted_that_no_finding_of_a_queue_shows(folder: Path) -> None:
    grown = [each | {"snapshot_time": at(420), "read_queue_nums": 4} for each in STACKED_ROUTES]
    grown = [*STACKED_ROUTES, *grown]
    write_tables(folder / "snapshots", [(TOPIC_ROUTES, grown)])
    reports = audited(folder)
    faults = {row["fault"]: row["queues_affected"] for row in reports.rows("group_faults")}
    assert faults == {"DUPLICATE_CLIENT_ID": 4, "ROUTE_CHANGED": 0}
    findings = reports.summary["findings"]
    assert findings["orphaned_queues"]["total"] == findings["duplicate_queues"]["total"] == 2
    assert findings["group_faults"]["total"] == 1


def test_a_window_in_which_no_group_was_seen_is_an_error_in_words(folder: Path) -> None:
    with pytest.raises(InputError, match=r"no list of members from .* at .* came none;") as error:
        audited(folder, Window(since=at(3600)))
    assert "audit --dry-run shows" in error.value.console, "a shell has no such option"
    write_tables(folder / "snapshots", [(HEARTBEATS, [])])
    (folder / "snapshots" / "broker_polls" / "part-0.parquet").unlink()
    with pytest.raises(InputError, match=r"no list of members at .* came none;"):
        audited(folder)
    assert table(HEARTBEATS, []).num_rows == 0


def test_of_an_earlier_ingest_without_a_fact_rows_count_and_lists_do_not(folder: Path) -> None:
    expected = audited(folder).comparable("orphaned_queues")
    snapshots = folder / "snapshots"
    read = {each.name: pq.read_table(snapshots / each.name) for each, _ in STACKED}
    seconds = 130
    ids = ids_locally(read["heartbeats"], read.get("broker_polls"), read["topic_routes"], seconds)
    for name, rows in ids.items():
        write_table(_TABLES[name], rows, Location(snapshots) / name)
    as_ingested(snapshots, files=1, heartbeat_expiry_seconds=seconds)
    settings = task(snapshots, folder / "reports").settings
    assert Inputs(Snapshots.open(Location(snapshots)), settings).has_list_ids()
    assert audited(folder).comparable("orphaned_queues") == expected

    lists = ids["member_lists"]
    members = lists["members"].combine_chunks()
    fewer = [field for field in members.type.value_type if field.name != "strategy"]
    columns = [members.flatten().field(field.name) for field in fewer]
    values = pa.StructArray.from_arrays(columns, fields=fewer)
    place = lists.schema.get_field_index("members")
    earlier = lists.set_column(place, "members", pa.ListArray.from_arrays(members.offsets, values))
    pq.write_table(earlier, table_of(snapshots, "member_lists") / "part-0.parquet")
    as_ingested(snapshots, files=1, heartbeat_expiry_seconds=seconds)
    assert not Inputs(Snapshots.open(Location(snapshots)), settings).has_list_ids()
    assert audited(folder).comparable("orphaned_queues") == expected
