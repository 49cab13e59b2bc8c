"""Published tables in a terminal: which rows and columns, in which order, and as what."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.cli import main
from jobs.commands.common import remember_run
from jobs.contract import type_name
from jobs.reports.table_text import columns_that_matter
from jobs.schemas import EVENTS, REPORT_TABLES, comment_of
from jobs.storage import Location
from tests.support.command_line import CommandLine
from tests.support.written_reports import NOON, publish, report_row

LONG = "10.0.0.1@" + "x" * 90


def orphan(queue_id: int, **values: Any) -> dict[str, Any]:
    return report_row("orphaned_queues", queue_id=queue_id, **values)


CLAIMANTS = [
    {"client_id": client_id, "processes": processes, "probability": probability}
    for client_id, processes, probability in ((LONG, 2, 1.0), ("b", 1, 0.25))
]
MOVES = [
    {"broker_name": "broker-a", "queue_id": number, "before": before, "after": after}
    for number, before, after in ((3, ["a", "b"], ["b"]), (4, [], ["c"]))
]
TABLES = {
    "orphaned_queues": [
        orphan(10, topic="T2", probability=1 / 3),
        orphan(2, first_seen=NOON + timedelta(hours=1)),
        orphan(2, causes=["GHOST_MEMBER", "UNEXPLAINED"]),
        orphan(1, consumer_group="H", severity="INFO"),
    ],
    "duplicate_queues": [report_row("duplicate_queues", claimants=CLAIMANTS)],
    "stacked_client_ids": [
        report_row("stacked_client_ids", client_id="=1+1", topics=["T", "%RETRY%G"]),
        report_row("stacked_client_ids", client_id="\x1b[2J", topics=["T2"]),
    ],
    "group_faults": [report_row("group_faults", moves=MOVES)],
    "allocations": [report_row("allocations", queues=[{"broker_name": "broker-a", "queue_id": 3}])],
}
Said = Callable[..., tuple[str, str]]


@pytest.fixture
def said(tmp_path: Path, cli: CommandLine) -> Said:
    """Both streams of ``show`` of the reports in the folder of the test."""

    def said(*arguments: str, code: int = 0) -> tuple[str, str]:
        return cli("show", *arguments, "--reports", tmp_path, code=code), cli.err

    return said


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of these tables, and one of none the day before."""
    folder = tmp_path_factory.mktemp("reports")
    publish(folder, "2026-11-19", {}, run_id="run-0")
    publish(folder, "2026-11-20", TABLES)
    return folder


@pytest.fixture
def show(reports: Path, cli: CommandLine):
    """The lines that ``show`` prints of that run."""
    return lambda *arguments: cli("show", *arguments, "--reports", reports).splitlines()


def test_rows_are_sorted_by_where_and_when(show) -> None:
    columns = ["--columns", "queue_id,consumer_group,first_seen"]
    header, _, *rows, number = show("orphaned_queues", *columns)
    assert header.split() == ["queue_id", "consumer_group", "first_seen"]
    noon, later = "2026-11-20T12:00:00.000Z", "2026-11-20T13:00:00.000Z"
    found = [tuple(row.split()) for row in rows]
    assert found == [("2", "G", noon), ("2", "G", later), ("10", "G", noon), ("1", "H", noon)]
    assert number == "(4 rows)"


def test_the_worst_comes_first_in_a_terminal(tmp_path: Path, said: Said) -> None:
    severities = [orphan(1, severity="INFO"), orphan(2, severity="WARNING")]
    rows = [*severities, orphan(3, ongoing=False), orphan(4), orphan(5)]
    healths = [
        report_row("group_health", consumer_group=group, worst_severity=worst, **minutes)
        for group, worst, minutes in (
            ("A", None, {}),
            ("A1", "WARNING", {"orphan_queue_minutes": 1.0}),
            ("A2", "WARNING", {"orphan_queue_minutes": 2.0}),
        )
    ]
    publish(tmp_path, "2026-11-20", {"orphaned_queues": rows, "group_health": healths})

    def shown(table: str, column: str, *options: str) -> list[str]:
        return said(table, "--columns", column, *options)[0].split()

    assert shown("orphaned_queues", "queue_id")[2:7] == ["4", "5", "2", "3", "1"]
    assert shown("group_health", "consumer_group")[2:5] == ["A2", "A1", "A"]
    # A program gets the rows by where and when.
    assert shown("orphaned_queues", "queue_id", "--format", "csv")[1:] == ["1", "2", "3", "4", "5"]


def test_only_a_groups_or_a_topics_rows(show) -> None:
    assert show("orphaned_queues", "--group", "H")[-1] == "(1 row)"
    assert show("orphaned_queues", "--topic", "T2", "--group", "G")[-1] == "(1 row)"
    assert show("orphaned_queues", "--topic", "T2", "--group", "H")[-1] == "(0 rows)"
    # A client id stands in the lists of several topics; a line of a dump in that of no group.
    client_ids = show("stacked_client_ids", "--topic", "T2", "--columns", "client_id")
    assert client_ids[2:] == [r"\x1b[2J", "(1 row)"]
    assert show("quarantine", "--topic", "T", "--group", "G")[-1] == "(0 rows)"


@pytest.mark.parametrize(
    ("table", "option", "left_out"),
    [
        ("quarantine", "--group", "quarantine is not by group: --group was left out"),
        ("quarantine", "--topic", "quarantine is not by topic: --topic was left out"),
        # Its column ``topics`` is a number.
        ("group_load", "--topic", "group_load is not by topic: --topic was left out"),
    ],
)
def test_rows_of_all_are_not_taken_for_those_of_one(
    tmp_path: Path, said: Said, table: str, option: str, left_out: str
) -> None:
    publish(tmp_path, "2026-11-20", {table: [report_row(table)]})
    out, err = said(table, option, "x", "--quiet")
    assert err == f"rebalance-audit: {left_out}\n"
    assert out.endswith("(1 row)\n")


def test_the_summary_says_which_options_it_has_no_use_for(tmp_path: Path, said: Said) -> None:
    publish(tmp_path, "2026-11-20", {})
    assert said("summary", "--quiet", "--format", "json")[1] == ""
    _, err = said("summary", "--quiet", "--group", "G", "--columns", "a", "--format", "csv")
    left_out = "summary is one JSON document: left out --group, --columns, --format csv"
    assert err == f"rebalance-audit: {left_out}\n"


def test_columns_are_shown_once_whatever_is_between_them(show) -> None:
    lines = show("orphaned_queues", "--columns", " queue_id ,topic,,queue_id,", "--format", "csv")
    assert lines[0] == "queue_id,topic"


def test_the_last_date_is_shown_unless_another_is_named(show) -> None:
    assert show("orphaned_queues", "--date", "2026-11-19")[-1] == "(0 rows)"
    assert json.loads("\n".join(show("summary")))["rows"]["orphaned_queues"] == 4


def test_a_terminal_gets_short_cells_unless_columns_are_named(show) -> None:
    _, _, row, _ = show("duplicate_queues", "--all-columns")
    assert f"{LONG[:57]}..." in row
    assert LONG not in row
    assert row.split()[:4] == ["C", "G", "T", "broker-a"]
    _, _, row, _ = show("duplicate_queues", "--columns", "claimants")
    assert row == f"{LONG} x2 b p=0.25"
    _, _, row, _ = show("allocations", "--columns", "queues")
    assert row == "broker-a:3"
    _, _, row, _ = show("group_faults", "--columns", "moves")
    assert row == "broker-a:3 a,b -> b; broker-a:4 nobody -> c;"
    head, rule, *rows, _ = show("orphaned_queues", "--columns", "topic,probability,causes,severity")
    assert head == "topic  probability  causes                    severity"
    assert rule == "-----  -----------  ------------------------  --------"
    assert rows[0] == "T      0            GHOST_MEMBER UNEXPLAINED  CRITICAL"
    assert rows[2] == "T2     0.3333                                 CRITICAL"
    # What is null is no word.
    *_, row, _ = show("orphaned_queues", "--columns", "known_issue,topic")
    assert row.split() == ["T"]


def test_what_texts_are_made_of_is_shown_to_a_person_who_asks_for_it(show) -> None:
    for arguments in ([], ["--wide"]):
        assert "texts" not in show("stacked_client_ids", *arguments)[0].split()
    assert show("stacked_client_ids", "--columns", "client_id,texts")[0].split()[1] == "texts"
    for form in ("csv", "json"):
        assert "texts" in show("stacked_client_ids", "--format", form)[0]


def test_json_has_whole_rows(show) -> None:
    (row,) = map(json.loads, show("duplicate_queues", "--format", "json"))
    assert row["claimants"][0] == {"client_id": LONG, "processes": 2, "probability": 1.0}
    assert row["first_seen"] == "2026-11-20T12:00:00.000Z"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["Summary"], "no table Summary (did you mean summary?) in the run"),
        (["nights"], "no table nights (did you mean rebalance-audit report --nights 30?) in the"),
        (["deploys"], "no table deploys (did you mean events?) in the run"),
        (["quarantine", "--columns", "raeson,b"], "no column raeson (did you mean reason?), b; th"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(
    reports: Path, cli: CommandLine, arguments: list[str], told: str
) -> None:
    cli("show", *arguments, "--reports", reports, code=2)
    assert told in cli.err


HEALTHS = [
    report_row("group_health", consumer_group=group, topic=topic, coverage=coverage)
    for group, topic, coverage in (
        ("G_ORDER", "ORDER", "AUDITED"),
        ("G_PAY", "PAY", "AUDITED"),
        ("G_GAPS", "A", "AUDITED"),
        ("G_GAPS", "B", "NO_ROUTE"),
    )
]


@pytest.fixture(scope="module")
def of_healths(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healths")
    publish(folder, "2026-11-20", {"group_health": HEALTHS})
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        # A name that is mistyped is no all-clear.
        (["--group", "G_ORDR"], 2, "no group 'G_ORDR' in the run of 2026-11-20: did you mean 'G_O"),
        (["--topic", "order"], 2, "no topic 'order' in the run of 2026-11-20: did you mean 'ORDER"),
        (["--group", "G_PAY", "--topic", "PAI"], 2, "no topic 'PAI'"),
        # What is there and has no rows is told apart from what was not looked at.
        (["--group", "G_ORDER"], 0, "0 rows: it was audited in the run of 2026-11-20, and there"),
        (["--topic", "ORDER"], 0, "0 rows: it was audited"),
        (["--group", "G_PAY", "--topic", "ORDER"], 0, "group G_PAY has no topic ORDER in the run"),
        (["--group", "G_GAPS"], 0, "not all of it was audited: group G_GAPS, topic B: NO_ROUTE"),
        (["--group", "G_GAPS", "--topic", "A"], 0, "0 rows: it was audited"),
    ],
)
def test_no_rows_have_a_reason(
    of_healths: Path, cli: CommandLine, arguments: list[str], code: int, told: str
) -> None:
    for form in ("table", "json"):
        show = ["show", "orphaned_queues", "--format", form, *arguments, "--reports", of_healths]
        out = cli(*show, code=code)
        assert told in cli.err
        assert "0 rows: " not in out, "a program reads this"
    cli(*show, "--quiet", code=code)
    assert (told in cli.err) == (code == 2)


def test_nothing_is_said_of_rows_that_are_there_or_of_all_rows(show, cli: CommandLine) -> None:
    for arguments in (["orphaned_queues", "--group", "H"], ["former_findings"]):
        show(*arguments)
        assert "0 rows" not in cli.err


def test_the_help_of_a_table_has_what_a_row_is_and_each_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for table in REPORT_TABLES:
        with pytest.raises(SystemExit):
            main(["show", table.name, "--help"])
        text = " ".join(capsys.readouterr().out.split())
        assert f"{table.name}. Grain: {table.grain}." in text
        for column in table.schema:
            assert f"{column.name} {type_name(column.type)}" in text
            assert " ".join(comment_of(column).split()) in text


def test_without_a_table_the_tables_are_listed(show) -> None:
    head, _, *rows, number = show()
    assert head.split() == ["table", "rows", "a", "row", "is"]
    assert any(row.split()[:2] == ["orphaned_queues", "4"] for row in rows)
    assert rows[-1].startswith("summary ")
    assert number == f"({len(rows)} rows)"


def test_a_person_gets_columns_that_matter_and_a_program_all(tmp_path: Path, said: Said) -> None:
    def columns(*options: str) -> list[str]:
        return said("orphaned_queues", *options)[0].splitlines()[0].replace(",", " ").split()

    rows = [report_row("orphaned_queues", cluster=cluster) for cluster in "AB"]
    publish(tmp_path, "2026-11-19", {"orphaned_queues": rows})
    publish(tmp_path, "2026-11-20", {"orphaned_queues": rows[:1]})
    assert set(columns()) == {
        *("consumer_group", "topic", "broker_name", "queue_id", "first_seen", "status"),
        *("causes", "severity"),
    }
    assert columns("--date", "2026-11-19")[0] == "cluster"
    # An event says in one sentence what it was and what came of it.
    events = pa.Table.from_pylist([{"cluster": each} for each in "AB"], EVENTS.schema)
    assert "headline" in columns_that_matter(events).column_names
    assert len(columns("--all-columns")) == len(columns("--format", "csv")) > 20


def test_the_reports_of_the_last_run_here_are_read_where_none_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    publish(tmp_path / "ours", "2026-11-20", TABLES)
    publish(tmp_path / "others", "2026-11-20", {})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    show = ["show", "orphaned_queues"]
    cli(*show, code=2)
    assert "REBALANCE_AUDIT_PATHS__REPORTS in the environment" in cli.err
    remember_run(Location(str(tmp_path / "ours")))
    assert cli(*show).endswith("(4 rows)\n")
    assert f"reads {tmp_path}/ours, the reports of the last run here" in cli.err
    monkeypatch.setenv("REBALANCE_AUDIT_PATHS__REPORTS", str(tmp_path / "others"))
    assert cli(*show).endswith("(0 rows)\n")
    assert cli(*show, "--reports", tmp_path / "ours").endswith("(4 rows)\n")
    monkeypatch.delenv("REBALANCE_AUDIT_PATHS__REPORTS")
    monkeypatch.chdir(tmp_path / "elsewhere")
    cli(*show, code=2)


def test_the_events_of_a_group_are_those_that_touched_it(tmp_path: Path, said: Said) -> None:
    rows = [
        report_row("events", subject="later", groups=["G", "H"], begins=NOON + timedelta(hours=1)),
        report_row("events", subject="other", groups=["H"]),
        report_row("events", subject="first", groups=["G"]),
    ]
    publish(tmp_path, "2026-11-20", {"events": rows})
    out, _ = said("events", "--group", "G", "--columns", "subject", "--format", "csv")
    assert out.split() == ["subject", "first", "later"]
