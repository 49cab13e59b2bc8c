"""Published tables in a terminal: which rows and columns, in which order, and as what."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.cli import main
from tests.support.written_reports import NOON, publish, report_row

LONG = "10.0.0.1@" + "x" * 90
TABLES = {
    "orphaned_queues": [
        report_row("orphaned_queues", queue_id=10, topic="T2", probability=1 / 3),
        report_row("orphaned_queues", queue_id=2, first_seen=NOON + timedelta(hours=1)),
        report_row("orphaned_queues", queue_id=2, causes=["GHOST_MEMBER", "UNEXPLAINED"]),
        report_row("orphaned_queues", queue_id=1, consumer_group="H", severity="INFO"),
    ],
    "duplicate_queues": [
        report_row(
            "duplicate_queues",
            claimants=[
                {"client_id": LONG, "processes": 2, "probability": 1.0},
                {"client_id": "b", "processes": 1, "probability": 0.25},
            ],
        )
    ],
    "stacked_client_ids": [
        report_row("stacked_client_ids", client_id="=1+1", topics=["T", "%RETRY%G"]),
        report_row("stacked_client_ids", client_id="\x1b[2J", topics=["T2"]),
    ],
    "allocations": [report_row("allocations", queues=[{"broker_name": "broker-a", "queue_id": 3}])],
}


@pytest.fixture
def show(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The lines that ``show`` prints of a run of these tables."""
    publish(tmp_path, "2026-11-19", {}, run_id="run-0")
    publish(tmp_path, "2026-11-20", TABLES)

    def shown(*arguments: str) -> list[str]:
        assert main(["show", *arguments, "--reports", str(tmp_path)]) == 0
        return capsys.readouterr().out.splitlines()

    return shown


def test_rows_are_sorted_by_where_and_when(show) -> None:
    columns = ["--columns", "queue_id,consumer_group,first_seen"]
    header, _, *rows, number = show("orphaned_queues", *columns)
    assert header.split() == ["queue_id", "consumer_group", "first_seen"]
    assert [row.split() for row in rows] == [
        ["2", "G", "2026-11-20T12:00:00.000Z"],
        ["2", "G", "2026-11-20T13:00:00.000Z"],
        ["10", "G", "2026-11-20T12:00:00.000Z"],
        ["1", "H", "2026-11-20T12:00:00.000Z"],
    ]
    assert number == "(4 rows)"


def test_only_a_groups_or_a_topics_rows(show) -> None:
    assert show("orphaned_queues", "--group", "H")[-1] == "(1 row)"
    assert show("orphaned_queues", "--topic", "T2", "--group", "G")[-1] == "(1 row)"
    assert show("orphaned_queues", "--topic", "T2", "--group", "H")[-1] == "(0 rows)"
    # A client id stands in the lists of several topics; a line of a dump in that of no group.
    assert show("stacked_client_ids", "--topic", "T2", "--columns", "client_id")[2:] == [
        r"\x1b[2J",
        "(1 row)",
    ]
    assert show("quarantine", "--topic", "T", "--group", "G")[-1] == "(0 rows)"


def test_the_last_date_is_shown_unless_another_is_named(show) -> None:
    assert show("orphaned_queues", "--date", "2026-11-19")[-1] == "(0 rows)"
    assert json.loads("\n".join(show("summary")))["rows"]["orphaned_queues"] == 4


def test_a_terminal_gets_short_cells_unless_columns_are_named(show) -> None:
    _, _, row, _ = show("duplicate_queues")
    assert f"{LONG[:57]}..." in row
    assert LONG not in row
    assert row.split()[:4] == ["C", "G", "T", "broker-a"]
    _, _, row, _ = show("duplicate_queues", "--columns", "claimants")
    assert row == f"{LONG} x2 b p=0.25"
    _, _, row, _ = show("allocations", "--columns", "queues")
    assert row == "broker-a:3"
    head, rule, *rows, _ = show("orphaned_queues", "--columns", "topic,probability,causes,severity")
    assert head == "topic  probability  causes                    severity"
    assert rule == "-----  -----------  ------------------------  --------"
    assert rows[0] == "T      0            GHOST_MEMBER UNEXPLAINED  CRITICAL"
    assert rows[2] == "T2     0.3333                                 CRITICAL"
    # What is null is no word.
    *_, row, _ = show("orphaned_queues", "--columns", "known_issue,topic")
    assert row.split() == ["T"]


def test_what_strangers_chose_commands_neither_a_terminal_nor_a_spreadsheet(show) -> None:
    assert any(line.startswith(r"\x1b[2J") for line in show("stacked_client_ids", "--columns",
               "client_id"))  # fmt: skip
    cells = list(csv.DictReader(show("stacked_client_ids", "--format", "csv")))
    assert {cell["client_id"] for cell in cells} == {"'=1+1", "\x1b[2J"}
    assert {cell["topics"] for cell in cells} == {'["T", "%RETRY%G"]', '["T2"]'}


def test_json_has_whole_rows(show) -> None:
    (row,) = map(json.loads, show("duplicate_queues", "--format", "json"))
    assert row["claimants"][0] == {"client_id": LONG, "processes": 2, "probability": 1.0}
    assert row["first_seen"] == "2026-11-20T12:00:00.000Z"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["orphans"], "no table orphans in the run of 2026-11-20; there are duplicate_queues, "),
        (["quarantine", "--columns", "a,file,b"], "no column a, b; there are file, "),
        (["quarantine", "--date", "yesterday"], "expected a date as YYYY-MM-DD"),
        (["quarantine", "--date", "2026-13-01"], "came '2026-13-01'"),
        (["quarantine", "--date", "20261120"], "came '20261120'"),
        (["quarantine", "--date", "2026-11-20\n"], r"came '2026-11-20\n'"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    publish(tmp_path, "2026-11-20", TABLES)
    assert main(["show", *arguments, "--reports", str(tmp_path)]) == 3
    assert said in capsys.readouterr().err


def test_a_table_whose_files_are_gone_is_an_error_and_not_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, "2026-11-20", TABLES)
    (file,) = (tmp_path / "orphaned_queues").rglob("*.parquet")
    file.unlink()
    assert main(["show", "orphaned_queues", "--reports", str(tmp_path)]) == 3
    assert "table orphaned_queues of run run-1 has no files at" in capsys.readouterr().err
