"""The last lines of a run: whom to call, since when, and what to do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from jobs.languages.language import ENGLISH
from jobs.reports.problem_lines import ending_lines
from jobs.reports.problems import Problem, read_problems
from jobs.reports.tables import PublishedTables
from jobs.storage import Location, Reports
from tests.support.written_reports import NOON, publish, report_row


def problems_of(folder: Path, tables: dict[str, list[dict[str, object]]]) -> list[Problem]:
    publish(folder, "2026-11-20", tables)
    reports = Reports(Location(str(folder)))
    return read_problems(PublishedTables(reports, reports.resolve(None)))


def orphans(group: str, **more: object) -> dict[str, object]:
    return report_row("orphaned_queues", **{**more, "consumer_group": group})


def fault(group: str, **more: object) -> dict[str, object]:
    row = {"consumer_group": group, "fault": "STRATEGY_MISMATCH", "queues_affected": 1}
    return report_row("group_faults", **{**row, **more})


def ending(problems: list[Problem], width: int, *, is_short: bool = False) -> list[str]:
    return list(ending_lines(problems, width, ENGLISH, is_short=is_short))


def test_what_is_worst_comes_first_with_who_since_when_and_what_to_do(tmp_path: Path) -> None:
    clients = [f"10.0.0.{number}@app" for number in range(1, 6)]
    tables = {
        "orphaned_queues": [
            orphans("G_LATE", severity="WARNING", first_seen=NOON + timedelta(hours=1)),
            orphans("G_BAD"),
        ],
        "group_faults": [fault("G_BAD", client_ids=clients, remedy="use one strategy " * 5)],
    }
    lines = ending(problems_of(tmp_path, tables), 60)
    assert lines[0] == "Still there  CRITICAL  G_BAD / T: 1 queue consumed by nobody"
    assert lines[1:3] == ["  who:    10.0.0.1@app, 10.0.0.2@app, 10.0.0.3@app and 2", "      more"]
    assert lines[3].startswith("  when:   since 2026-11-20 12:00:00")
    assert lines[4].startswith("  to do:  use one strategy use")
    assert all(len(line) <= 60 for line in lines)
    assert next(line for line in lines if "G_LATE" in line).startswith("Still there  WARNING ")


def test_of_many_the_worst_are_named_and_the_others_counted(tmp_path: Path) -> None:
    rows = [orphans(f"G{number}") for number in range(8)]
    lines = ending(problems_of(tmp_path, {"orphaned_queues": rows}), 100)
    assert sum(line.startswith("Still there  CRITICAL") for line in lines) == 5
    assert lines[0].startswith(
        "Still there: CRITICAL 8 groups: orphaned queue, since 2026-11-20 12:00 UTC: G0"
    )
    assert lines[-1] == "and 3 more topics with lasting faults: see the page"


def test_what_passed_or_is_known_calls_nobody(tmp_path: Path) -> None:
    rows = [orphans("A", severity="INFO"), orphans("B", known_issue="OPS-1")]
    assert ending(problems_of(tmp_path, {"orphaned_queues": rows}), 100) == []


def test_where_nothing_can_last_yet_what_has_begun_is_named(tmp_path: Path) -> None:
    begun = {"severity": "INFO", "persistence": "TRANSIENT", "ongoing": True}
    evidence = "a is used by 2 processes, 10.0.0.1:1 and 10.0.0.2:1; both take queue 0 of broker-a"
    tables = {
        "orphaned_queues": [orphans("G_DUP", **begun)],
        "group_faults": [fault("G_DUP", **begun, client_ids=["a"], evidence=evidence)],
    }
    problems = problems_of(tmp_path, tables)
    assert ending(problems, 200, is_short=True) == [
        "Still there  not counted yet  G_DUP / T: 1 queue consumed by nobody, not seen for long "
        "yet",
        "  who:    a",
        f"  why:    {evidence}",
    ]
    # At the end of a day something always has.
    assert ending(problems, 200) == []


def test_the_cluster_is_named_where_there_are_several(tmp_path: Path) -> None:
    rows = [orphans("G", cluster="A"), orphans("G", cluster="B")]
    lines = ending(problems_of(tmp_path, {"orphaned_queues": rows}), 200)
    named = [line.split(" / ")[0] for line in lines if "nobody" in line]
    assert named == ["Still there  CRITICAL  A", "Still there  CRITICAL  B"]
