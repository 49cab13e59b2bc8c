"""How bad a fault is: its row says it, and the page, the message and the metrics say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.alerts.message import problems_to_send, read_digest
from jobs.publish.publish import count_findings
from jobs.reports.problems import find_problems
from jobs.reports.tables import PublishedTables
from jobs.settings import Alerts
from jobs.storage import Location, Published, Reports
from tests.support.written_reports import publish, report_row


def severities(folder: Path, published: Published) -> tuple[str, str, bool]:
    """Of the only fault: on the page, to alerts, and whether a message tells of it."""
    reports = Reports(Location(folder))
    tables = PublishedTables(reports, published)
    (problem,) = find_problems(tables)
    digest = read_digest(published, tables)
    (finding,) = digest.findings
    return problem.severity, finding.severity, bool(problems_to_send(digest, Alerts(), ()))


@pytest.mark.parametrize(
    ("fault", "severity", "told"),
    [
        # Members that filter differently lose messages, and no queue shows it.
        ("EXPRESSION_MISMATCH", "WARNING", True),
        ("MIXED_MESSAGE_MODEL", "CRITICAL", True),
        # The row has been seen for long, and passes by itself all the same.
        ("ROUTE_CHANGED", "INFO", False),
    ],
)
def test_the_page_and_the_alerts_take_it_from_the_row(
    tmp_path: Path, fault: str, severity: str, told: bool
) -> None:
    row = report_row("group_faults", fault=fault, severity=severity)
    published = publish(tmp_path, "2026-11-20", {"group_faults": [row]})
    assert severities(tmp_path, published) == (severity, severity, told)


@pytest.mark.long
@pytest.mark.parametrize(
    ("tables", "verdict"),
    [
        ({"orphaned_queues": [{}]}, "CRITICAL"),
        ({"duplicate_queues": [{"severity": "WARNING"}]}, "WARNING"),
        ({"stalled_queues": [{"severity": "INFO", "persistence": "TRANSIENT"}]}, None),
        ({"orphaned_queues": [{"known_issue": "OPS-1"}]}, None),
        ({"orphaned_queues": [{"known_issue": "OPS-1"}, {"severity": "WARNING"}]}, "WARNING"),
        ({"group_faults": [{"fault": "EXPRESSION_MISMATCH"}]}, "CRITICAL"),
        # It is as bad as the findings that name it.
        ({"group_faults": [{"fault": "GHOST_MEMBER", "queues_affected": 2}]}, None),
        ({"group_faults": [{"fault": "ROUTE_CHANGED", "severity": "INFO"}]}, None),
    ],
)
def test_the_gate_of_the_dag_stops_for_what_the_page_counts(
    tmp_path: Path, tables: dict[str, list[dict[str, Any]]], verdict: str | None
) -> None:
    """It reads the counts of the pointer: rows of a severity, less those that are known."""
    rows = {name: [report_row(name, **each) for each in of] for name, of in tables.items()}
    published = publish(tmp_path, "2026-11-20", rows)
    reports = Reports(Location(tmp_path))

    def written(table: str) -> Any:
        return reports.table(table, published.date, published.run_id).parquet()

    counts = count_findings(written).values()
    stops_for = [
        severity
        for severity in ("CRITICAL", "WARNING")
        if sum(of_table[severity] - of_table["known"][severity] for of_table in counts)
    ]
    problems = find_problems(PublishedTables(reports, published))
    assert [each.severity for each in problems if each.counts] == stops_for[:1]
    assert stops_for[:1] == ([verdict] if verdict else [])
