"""A published run as the one row of the table ``runs``, and back."""

import json
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from ..schemas import RUNS
from ..storage import PublishedRun, TableFiles


def table_of_run(published: PublishedRun, verdict: Mapping[str, Any]) -> pa.Table:
    """The row of a run, with that of its verdict in it."""
    summary = published.summary
    window, previous = summary["window"], summary["previous"] or {}
    named = ("state", "level", "sentence", "critical", "warning", "missing")
    row = {
        "date": date.fromisoformat(published.date),
        "run_id": published.run_id,
        "started_at": datetime.fromisoformat(summary["started_at"]),
        "duration_seconds": summary["duration_seconds"],
        "engine": summary["engine"],
        **{name: verdict[name] for name in named},
        **{name: time and datetime.fromisoformat(time) for name, time in window.items()},
        "previous_date": (previous and date.fromisoformat(previous["date"])) or None,
        "previous_run_id": previous.get("run_id"),
        "tables": [{"name": name, "rows": rows} for name, rows in summary["rows"].items()],
        "summary": json.dumps(summary, ensure_ascii=False),
    }
    return pa.Table.from_pylist([row], RUNS.schema)


def run_of_row(row: Mapping[str, Any]) -> PublishedRun:
    """The run of a row, whose files nobody knows."""
    files = {table["name"]: TableFiles(()) for table in row["tables"]}
    return PublishedRun(row["date"].isoformat(), row["run_id"], json.loads(row["summary"]), files)
