"""What an audit from Python is asked for: a window, known issues, and what it is compared with."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.api import audit
from jobs.config.settings import Settings
from jobs.config.window import Window
from jobs.errors import SettingsError
from jobs.shell.report import Report
from tests.support.runs import audit_locally, task
from tests.support.snapshots import table, write_tables
from tests.support.stacked import STACKED

#: Two days on which the same happens.
TABLES = {
    of.name: table(
        of,
        [
            {**row, "snapshot_time": row["snapshot_time"] + timedelta(days=day)}
            for day in range(2)
            for row in rows
        ],
    )
    for of, rows in STACKED
}
ISSUE = {"groups": "G", "reason": "OPS-7", "expires": "2026-01-05"}


def statuses(report: Report) -> Counter[Any]:
    rows = report["orphaned_queues"].to_pylist()
    return Counter((row["status"], row["nights_open"]) for row in rows)


@pytest.mark.parametrize(
    ("asked", "first", "last", "published"),
    [
        ({"date": "2026-01-05"}, "05T00:00", "05T00:07", "05"),
        ({"date": date(2026, 1, 6)}, "06T00:00", "06T00:07", "06"),
        ({"since": "2026-01-05T00:03Z"}, "05T00:03", "06T00:07", "06"),
        ({"until": datetime(2026, 1, 5, 0, 7)}, "05T00:00", "05T00:06", "05"),
        (
            {"since": "2026-01-05T08:02+08:00", "until": "2026-01-05T00:06"},
            "05T00:02",
            "05T00:05",
            "05",
        ),
        ({}, "05T00:00", "06T00:07", "06"),
    ],
    ids=str,
)
def test_the_window_is_that_of_the_command(
    asked: dict[str, Any], first: str, last: str, published: str
) -> None:
    summary = audit(TABLES, **asked).summary
    assert summary["window"]["first_snapshot"] == f"2026-01-{first}:00.000Z"
    assert summary["window"]["last_snapshot"] == f"2026-01-{last}:00.000Z"
    assert summary["date"] == f"2026-01-{published}"


def test_a_moment_is_one_of_the_window() -> None:
    report = audit(TABLES, date="2026-01-05")
    assert "as of 2026-01-05T00:07:00.000Z" in report.explain("G", "T")
    assert "2026-01-06" not in report.explain("G", "T", "2026-01-06T00:03Z")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"date": "2026-01-05", "since": "2026-01-05"}, "expected date or since/until, came both"),
        ({"date": "yesterday"}, "date: expected a date as YYYY-MM-DD, came 'yesterday'"),
        ({"date": datetime(2026, 1, 5)}, "date: expected a date as YYYY-MM-DD"),
        ({"since": "noon"}, "since: expected a time as ISO 8601, or last, came 'noon'"),
        ({"until": "last"}, "until: expected a time as ISO 8601, came 'last'"),
        ({"since": "2026-01-06", "until": "2026-01-05"}, "expected since before until, came 2026-"),
        ({"known_issues": "none.toml"}, "none.toml cannot be read"),
        ({"known_issues": {"known_issues": [{"groups": "G"}]}}, "reason: expected a value"),
        ({"known_issues": [ISSUE]}, "known_issues: expected a file, or what it has"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_said_before_anything_runs(
    asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SettingsError, match=sentence):
        audit({}, **asked) if asked else None


@pytest.mark.parametrize("form", ["mapping", "file"])
def test_known_issues_mark_findings_until_they_expire(form: str, tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text("[[known_issues]]\n" + "".join(f'{k} = "{v}"\n' for k, v in ISSUE.items()))
    given: Any = file if form == "file" else {"known_issues": [ISSUE]}
    for day, reason in (("2026-01-05", "OPS-7"), ("2026-01-06", None)):
        report = audit(TABLES, {"persistence_seconds": 60}, known_issues=given, date=day)
        marks = report["orphaned_queues"].column("known_issue").to_pylist()
        assert marks
        assert set(marks) == {reason}


def test_with_the_reports_of_before_it_finds_what_the_command_finds(tmp_path: Path) -> None:
    write_tables(tmp_path / "snapshots", [(of, TABLES[of.name].to_pylist()) for of, _ in STACKED])
    reports, settings = tmp_path / "reports", Settings(persistence_seconds=60)
    found = []
    for day in (5, 6):
        until = datetime(2026, 1, day, 0, 4, tzinfo=UTC)
        # A folder that is yet to come has no earlier date.
        came = audit(TABLES, settings, until=until, history=reports)
        published = audit_locally(
            task(tmp_path / "snapshots", reports, Window(until=until), settings)
        )
        for name in ("orphaned_queues", "former_findings", "group_faults", "gaps"):
            assert sorted(map(repr, came[name].to_pylist())) == sorted(
                map(repr, published.rows(name))
            ), name
        found.append({each for each in statuses(came) if each[0]})
    assert found == [{("NEW", 1)}, {("PERSISTING", 2)}]
    assert came.summary["previous"]["date"] == "2026-01-05"
