"""How bad a fault is: its row says it, and the page, the message and the metrics say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.alerts.message import problems_to_send, read_digest
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
