"""The report for other programs: JSON, and CSV for a spreadsheet; English whatever the language."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jobs.rendering.problems import Problem
from jobs.rendering.report import Report
from jobs.text import as_plain, csv_line, json_text, span

#: The columns of the CSV, one row per cluster, group and topic with findings or faults.
COLUMNS = (
    "cluster",
    "consumer_group",
    "topic",
    "severity",
    "ongoing",
    "statuses",
    "known_issues",
    "what",
    "first_seen",
    "last_seen",
    "orphaned_queues",
    "duplicate_queues",
    "stalled_queues",
    "orphan_queue_minutes",
    "duplicate_queue_minutes",
    "faults",
    "evidence",
    "remedy",
)


def _row(problem: Problem) -> dict[str, Any]:
    cause = problem.cause
    queues = {
        kind: problem.lasting.get(kind, 0) or problem.passing.get(kind, 0)
        for kind in ("ORPHANED", "DUPLICATE", "STALLED")
    }
    values = (
        *problem.place,
        problem.severity,
        problem.ongoing,
        sorted(problem.statuses),
        problem.known_issues,
        problem.headline,
        problem.first_seen,
        problem.last_seen,
        *queues.values(),
        problem.orphan_minutes,
        problem.duplicate_minutes,
        list(dict.fromkeys(fault.fault for fault in problem.faults)),
        cause.evidence if cause else "",
        problem.remedy,
    )
    return dict(zip(COLUMNS, values, strict=True))


def to_csv(report: Report) -> str:
    """Every problem, worst first; no cell is taken for a formula."""
    rows = [csv_line(list(_row(problem).values())) for problem in report.problems]
    return "\n".join([csv_line(COLUMNS), *rows]) + "\n"


def to_json(report: Report) -> str:
    """The verdict, every problem with its faults, what ended, the health of all groups."""
    published = report.published
    value = {
        "date": published.date,
        "run_id": published.run_id,
        "window": published.summary["window"],
        "previous": published.summary["previous"],
        "verdict": asdict(report.verdict),
        "problems": [
            {**_row(problem), "faults": [asdict(fault) for fault in problem.faults]}
            for problem in report.problems
        ],
        "former": [_placed(asdict(each)) for each in report.former],
        "unreadable": [_placed(asdict(each)) for each in report.unreadable],
        "health": [asdict(each) for each in report.health],
        "not_audited": [_placed(asdict(each)) for each in report.coverage.not_audited],
        "quarantine": asdict(report.quarantine),
    }
    return json_text(as_plain(value), indent=2) + "\n"


def _placed(value: dict[str, Any]) -> dict[str, Any]:
    """The value with the names of its place instead of a tuple, and its time in words."""
    place = value.pop("place")
    time = (value["first_seen"], value["last_seen"]) if "first_seen" in value else None
    return {**place._asdict(), **value, **({"time": span(*time)} if time else {})}
