"""Published runs written without Spark: report rows with defaults, under a folder of reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.languages.translated_rows import TEXTS, texts_of
from jobs.publish.publish import Tally
from jobs.schemas import BOOLEAN, DOUBLE, INT, LONG, REPORT_TABLES, STRING, TIMESTAMP
from jobs.storage import Location, PublishedRun, Reports, TableFiles
from jobs.verdict.gaps import gaps_of
from jobs.verdict.verdict import make_verdict
from tests.support.judged import with_problems

Row = dict[str, Any]

TABLES = {table.name: table for table in REPORT_TABLES}
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)

_EMPTY: dict[pa.DataType, Any] = {
    STRING: "",
    LONG: 0,
    INT: 0,
    DOUBLE: 0.0,
    BOOLEAN: False,
    TIMESTAMP: NOON,
}
_USUAL = {
    "cluster": "C",
    "consumer_group": "G",
    "topic": "T",
    "broker_name": "broker-a",
    "persistence": "PERSISTENT",
    "ongoing": True,
    "severity": "CRITICAL",
    "status": "NEW",
    "coverage": "AUDITED",
    "completeness": 1.0,
    "share_of_time": 1.0,
}


def report_row(table: str, **values: Any) -> Row:
    """A row of a report table: lasting, new and critical where nothing else is said."""
    schema = TABLES[table].schema
    unknown = values.keys() - set(schema.names)
    if unknown:
        raise ValueError(f"no such columns: {', '.join(sorted(unknown))}")
    defaults = {
        field.name: _USUAL.get(field.name, None if field.nullable else _EMPTY.get(field.type, []))
        for field in schema
    }
    return defaults | values


#: Of a run: what readers take from it.
SUMMARY: dict[str, Any] = {
    "started_at": "2026-11-20T20:00:00.000Z",
    "duration_seconds": 12.5,
    "window": {
        "since": None,
        "first_snapshot": "2026-11-20T10:00:00.000Z",
        "last_snapshot": "2026-11-20T19:59:00.000Z",
    },
    "rows": {},
    "inputs": {
        "snapshots": "snapshots",
        "ingested": {"files": 1, "lines": 200, "quarantined": 5},
    },
    "groups": {"clusters": {}, "left_out": 0},
    "assumptions": {"groups": 0, "asked": 0, "strategy": 0, "subscriptions": 0},
    "rounds": {"groups_too_wide": 0},
    "incomplete": [],
    "brokers": {},
    "known_issues": [],
}


def _parquet(rows: pa.Table) -> bytes:
    pq.write_table(rows, file := pa.BufferOutputStream())
    return file.getvalue().to_pybytes()


@cache
def _empty(name: str) -> bytes:
    """The file of a table without rows: of most tables of a run, which are made in each test."""
    return _parquet(TABLES[name].schema.empty_table())


def publish(
    folder: Path,
    date: str,
    tables: Mapping[str, Sequence[Row]],
    previous: PublishedRun | None = None,
    run_id: str = "run-1",
    **summary: Any,
) -> PublishedRun:
    """Publishes a run of these rows; the tables that are not given are empty.

    Its problems and its verdict are made of them, as the audit makes them.
    """
    reports, files, tally = Reports(Location(folder)), {}, Tally()
    given = {name: list(tables.get(name, ())) for name in TABLES} | with_problems(tables)

    def write(name: str) -> None:
        place = Path(reports.table(name, date, run_id).base)
        place.mkdir(parents=True)
        rows = pa.Table.from_pylist(given[name], TABLES[name].schema)
        (place / "part-0.parquet").write_bytes(_parquet(rows) if given[name] else _empty(name))
        files[name] = TableFiles.written(reports.root, Location(place), rows.num_rows)
        tally.add(name, rows)

    for name in TABLES.keys() - {"verdict", "gaps"}:
        write(name)
    gaps, slow = gaps_of({**SUMMARY, **summary}), summary.get("slow_rounds") or {}
    verdict = make_verdict(run_id, tally, tally.findings(), gaps, slow)
    for name, rows in (("verdict", [verdict.row()]), ("gaps", verdict.rows_of_gaps())):
        given[name] = [{**row, TEXTS: texts_of(row)} for row in rows]
        write(name)
    whole = {
        **SUMMARY,
        "rows": {name: len(given[name]) for name in TABLES},
        "previous": previous and {"date": previous.date, "run_id": previous.run_id},
        **summary,
    }
    whole["findings"] = tally.findings()
    whole["groups"] = summary.get("groups", tally.levels())
    whole["verdict"] = verdict.packed()
    with reports.publication(date).writing(run_id, 0, lambda _: None) as number:
        published = PublishedRun(date, run_id, whole, files, number)
        reports.publish(published)
    return published
