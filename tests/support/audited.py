"""Dumps audited in this process: by name the rows of every report table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.dumps.files import list_local_files
from jobs.fold.local import member_runs_by_id, route_runs_by_id
from jobs.pipeline.audit_on_driver import Sources, find_situations, judge_all
from jobs.pipeline.ingest_on_driver import tables_of_dumps
from jobs.pipeline.terms import terms_of
from jobs.progress import Progress
from jobs.settings import Settings

Rows = list[dict[str, Any]]


def audit_dumps(paths: Sequence[Path], settings: Settings | None = None) -> dict[str, Rows]:
    """What an audit of these dumps publishes, and ``quarantine``."""
    settings = settings or Settings()
    files = list_local_files([str(path) for path in paths])
    assert files is not None
    tables = tables_of_dumps(files, settings)
    sources = Sources(
        member_runs_by_id(tables["broker_polls"], tables["member_lists"]),
        route_runs_by_id(tables["route_polls"], tables["route_contents"]),
        tables["client_states"],
        tables["queue_offsets"],
    )
    found = find_situations(sources, settings, Progress(quiet=True))
    judged = judge_all(found, terms_of(settings), None)
    rows: dict[str, Rows] = defaultdict(list)
    for name, parts in judged.pieces.items():
        for part in parts:
            rows[name] += part.to_pylist()
    rows["quarantine"] = tables["quarantine"].to_pylist()
    return rows


def lasting(rows: Rows) -> Rows:
    """Those that are PERSISTENT."""
    return [row for row in rows if row["persistence"] == "PERSISTENT"]


def queues(rows: Rows, *, topic: str | None = None) -> set[tuple[str, str, int]]:
    """(topic, broker, queue id) of rows of a table of queues."""
    return {
        (row["topic"], row["broker_name"], row["queue_id"])
        for row in rows
        if topic in (None, row["topic"])
    }
