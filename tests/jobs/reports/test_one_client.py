"""``show --client``: the groups that share a client, and what it does in each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandLine
from tests.support.written_reports import publish, report_row

POD = "10.0.0.1"
A, B, STRANGER = f"{POD}@a", f"{POD}@b", "10.0.0.11@a"


def taken(group: str, client_id: str, **values: Any) -> dict[str, Any]:
    return report_row("allocations", consumer_group=group, client_id=client_id, **values)


def load(group: str, client_id: str, **values: Any) -> dict[str, Any]:
    values = {"topics": 1, "queues": 4.0, "processes": 1, "idle": False} | values
    return report_row("group_load", consumer_group=group, client_id=client_id, **values)


def health(group: str, **values: Any) -> dict[str, Any]:
    return report_row("group_health", consumer_group=group, **{"coverage": "AUDITED"} | values)


TABLES = {
    "group_health": [
        *(health(group, members=2) for group in ("BUSY", "IDLE", "LEFT", "SLOT", "ALIEN")),
        health("GONE", members=0),
        health("LATER", members=2),
        health("HIDDEN", members=2, coverage="BROADCASTING"),
    ],
    "allocations": [
        *(taken(group, A, subscribed=True) for group in ("BUSY", "IDLE", "LEFT", "GONE", "LATER")),
        taken("SLOT", A, subscribed=False),
        # Of another state of the group: one row of the view all the same.
        taken("BUSY", A, subscribed=False, state_id="2"),
        taken("ALIEN", STRANGER, subscribed=True),
    ],
    "group_load": [
        load("BUSY", A, processes=2),
        load("IDLE", A, queues=0.0, idle=True),
        load("SLOT", A, topics=0, queues=0.0),
        load("BUSY", B),
        load("LEFT", STRANGER),
        load("ALIEN", STRANGER),
    ],
    "group_faults": [
        report_row(
            "group_faults",
            consumer_group="BUSY",
            fault=fault,
            severity=severity,
            ongoing=ongoing,
            client_ids=[A, STRANGER],
        )
        for fault, severity, ongoing in (
            ("DUPLICATE_CLIENT_ID", "WARNING", True),
            ("GHOST_MEMBER", "CRITICAL", False),
        )
    ],
    "stalled_queues": [report_row("stalled_queues", consumer_group="IDLE", owners=[A])],
}
Show = Callable[..., list[str]]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    publish(folder := tmp_path_factory.mktemp("reports"), "2026-11-20", TABLES)
    return folder


@pytest.fixture
def show(reports: Path, cli: CommandLine) -> Show:
    def show(*arguments: str, code: int = 0) -> list[str]:
        return cli("show", *arguments, "--reports", reports, code=code).splitlines()

    return show


def test_a_client_has_a_row_for_each_group_with_its_role_and_its_faults(show: Show) -> None:
    rows = {
        row["consumer_group"]: row
        for row in map(json.loads, show("--client", A, "--format", "json"))
    }
    assert {group: row["role"] for group, row in rows.items()} == {
        "BUSY": "takes queues",
        "IDLE": "gets no queue",
        "SLOT": "takes a slot and no queue",
        "LEFT": "was a member, and is none at the end",
        "GONE": "was a member, and is none at the end",
        # Its topics were not audited at the end: nobody knows who was a member.
        "LATER": "not known at the end",
    }
    assert (rows["BUSY"]["processes"], rows["BUSY"]["queues"]) == (2, 4.0)
    # What is over is not how bad it is.
    assert (rows["BUSY"]["severity"], rows["BUSY"]["ongoing"]) == ("WARNING", True)
    assert rows["BUSY"]["faults"] == ["DUPLICATE_CLIENT_ID of T", "GHOST_MEMBER of T"]
    assert rows["IDLE"]["faults"] == ["STALLED of T"]
    assert (rows["LEFT"]["severity"], rows["LEFT"]["faults"]) == (None, [])


def test_the_worst_group_is_first_and_what_no_table_has_is_said(
    show: Show, cli: CommandLine
) -> None:
    head, _, *rows, total = show("--client", A)
    assert head.split()[-1] == "faults"
    assert [row.split()[1] for row in rows[:2]] == ["IDLE", "BUSY"]
    assert total == "(6 rows)"
    assert "the members of HIDDEN, not audited, are in no table" in cli.err


def test_an_address_is_all_that_it_has(show: Show) -> None:
    ids = [json.loads(line)["client_id"] for line in show("--client", POD, "--format", "json")]
    assert set(ids) == {A, B}


def test_of_the_groups_of_a_client_one_is_chosen(show: Show, cli: CommandLine) -> None:
    (row,) = show("--client", A, "--group", "IDLE", "--topic", "T", "--format", "json")
    assert json.loads(row)["consumer_group"] == "IDLE"
    assert "--topic was left out" in cli.err


def test_a_client_that_no_audited_group_has_is_no_all_clear(show: Show, cli: CommandLine) -> None:
    show("--client", "10.0.0.1@aa", code=2)
    assert "has a client '10.0.0.1@aa': did you mean '10.0.0.1@a'" in cli.err
    assert "the members of HIDDEN, not audited, are in no table" in cli.err


@pytest.mark.parametrize(
    ("table", "rows"),
    [("group_load", 3), ("group_faults", 2), ("stalled_queues", 1), ("allocations", 7)],
)
def test_a_table_has_the_rows_of_a_client_alone(show: Show, table: str, rows: int) -> None:
    assert len(show(table, "--client", A, "--format", "json")) == rows
