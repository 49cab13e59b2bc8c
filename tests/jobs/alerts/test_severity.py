"""How bad a fault is: its row says it, and the page, the message and the metrics say the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.alerts.message import ids_of, problems_to_send, read_digest
from jobs.commands.batch import is_closed
from jobs.config.settings import Alerts
from jobs.declared.kinds import FAULTS, QUEUE_FINDINGS
from jobs.languages.language import ENGLISH
from jobs.reports.problem_lines import ending_lines
from jobs.reports.problems import read_problems
from jobs.reports.run_findings import read_findings
from jobs.reports.tables import PublishedTables
from jobs.storage import Location, Reports
from tests.support.written_reports import publish, report_row


def severe_rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """A row of each kind that has a severity, with queues and without, by the name of its table."""
    for table in QUEUE_FINDINGS:
        yield table, {}
    for fault in FAULTS:
        for queues_affected in (0, 3):
            yield "group_faults", {"fault": fault, "queues_affected": queues_affected}


@pytest.mark.parametrize("severity", ["WARNING", "CRITICAL"])
def test_no_severe_row_that_lasts_is_missing_anywhere(tmp_path: Path, severity: str) -> None:
    """Whatever kind it is, and where no other row shows it: the reading, the counts, the gate."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    every = dict(enumerate(severe_rows()))
    for number, (table, values) in every.items():
        keys = {"consumer_group": f"G{number}", "finding_id": f"{number}"}
        rows[table].append(report_row(table, severity=severity, **keys, **values))
    published = publish(tmp_path, "2026-11-20", rows)
    tables = PublishedTables(Reports(Location(tmp_path)), published)
    problems = read_problems(tables)
    found = {each.place.consumer_group: each for each in problems}
    levels, of_places = published.summary["groups"]["clusters"]["C"], read_findings(tables)
    counts: Counter[tuple[str, str]] = Counter()
    for number, (table, values) in every.items():
        problem, where = found[f"G{number}"], (table, values)
        findings = [(each.severity, each.ids) for each in of_places[problem.place]]
        assert findings == [(severity, (f"{number}",))], where
        assert problem.is_counted, where
        counts[table, severity] += 1
        assert levels[f"G{number}"]["level"] == severity, where
        first, *_ = ending_lines([problem], 100, ENGLISH, is_short=False)
        assert first.startswith(f"Still there  {severity}"), where
    of_tables = {name: of[severity] for name, of in published.summary["findings"].items()}
    assert of_tables == {name: counts[name, severity] for name in of_tables}
    assert is_closed(published, [severity])
    digest = read_digest(published, tables)
    sent = ids_of(problems_to_send(digest, Alerts(severity=severity), {}))
    assert sent == {f"{number}" for number in every}
