"""The published tables as the report reads them, from files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from jobs.rendering.page import to_html
from jobs.rendering.page_values import build_report
from jobs.reports.tables import Place, PublishedTables
from jobs.storage import Location, PublishedRun, Reports, TableFiles
from tests.support.judged import JUDGED, TABLES, with_problems, with_verdict
from tests.support.published import (
    RowTables,
    health,
    published,
    two_processes_share_one_client_id,
)


def table_of(name: str, rows: list[dict[str, object]]) -> pa.Table:
    """A table with the columns that its rows have; of what is made of them with all."""
    return pa.Table.from_pylist(rows, TABLES[name].schema if name in JUDGED else None)


def written(
    folder: Path, tables: dict[str, list[dict[str, object]]]
) -> tuple[PublishedRun, Reports]:
    run = published()
    reports, files = Reports(Location(folder)), {}
    for name, rows in with_verdict(with_problems(tables)).items():
        place = reports.table(name, run.date, run.run_id)
        Path(place.base).mkdir(parents=True)
        pq.write_table(table_of(name, rows), f"{place.base}/part-0.parquet")
        files[name] = TableFiles.written(reports.root, place, len(rows))
    return replace(run, files=files), reports


def test_files_and_rows_give_the_same_page(tmp_path: Path) -> None:
    tables = two_processes_share_one_client_id()
    # Of the same names in another cluster, which is not told in full.
    others = two_processes_share_one_client_id(cluster="D")
    tables = {name: [*rows, *others[name]] for name, rows in tables.items()}
    run, reports = written(tmp_path, tables)
    from_files = build_report(run, PublishedTables(reports, run), 1)
    from_rows = build_report(run, RowTables(**tables), 1)
    assert [card.pictures is not None for card in from_files.cards].count(True) == 1
    assert to_html(from_files, "r") == to_html(from_rows, "r")


def test_a_column_or_table_that_is_not_there_is_null_or_empty(tmp_path: Path) -> None:
    run, reports = written(tmp_path, {"group_health": [health(), health(topic="T2")]})
    tables = PublishedTables(reports, run)
    read = tables.read("group_health", ["known_issue", "topic"])
    assert read.to_pydict() == {"known_issue": [None, None], "topic": ["T", "T2"]}
    here = tables.read("group_health", ["topic"], [Place("C", "G", "T2")])
    assert here.to_pydict() == {"topic": ["T2"]}
    assert tables.read("quarantine", ["reason"]).to_pydict() == {"reason": []}
