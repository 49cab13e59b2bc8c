"""``audit`` from Python, in this process: dumps or tables in, a report out."""

from __future__ import annotations

import gc
import gzip
import json
import re
import tempfile
from datetime import datetime
from html import unescape
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jobs
from jobs import Report, Settings, audit, load_settings
from jobs.errors import ContractError, InputError, SettingsError
from jobs.schemas import EVENTS, REPORT_TABLES, RUNS
from jobs.storage import Location, Snapshots
from jobs.texts.shown import iso
from jobs.verdict.run_table import run_of_row
from rebalance_core import separate_ids
from tests.support.runs import as_a_lake, audit_locally, ingest_locally, task
from tests.support.truth import CAPTURES, SAMPLE_SETTINGS

DUMP = CAPTURES / "S2" / "dump.jsonl.gz"
SETTINGS = load_settings(SAMPLE_SETTINGS)


@pytest.fixture(scope="module")
def report() -> Report:
    return audit(DUMP, SETTINGS)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """The snapshot tables of the dump, as a lake has them."""
    place = tmp_path_factory.mktemp("snapshots")
    ingest_locally([str(DUMP)], place)
    as_a_lake(place)
    names = ("heartbeats", "topic_routes", "broker_polls", "queue_offsets", "client_states")
    lake = Snapshots.open(Location(place))
    return {name: lake.unchecked(name).to_table() for name in names}


def rows(report: Report) -> dict[str, list[str]]:
    """All that was found; the ids of events have the run's in them, and the verdict has it."""
    names = report.keys() - {EVENTS.name, "quarantine", "verdict", "gaps", "runs"}
    found = {name: sorted(map(repr, report[name].to_pylist())) for name in names}
    return found | {"verdict": report["verdict"]["level"].to_pylist()}


def test_it_gives_what_a_night_publishes(report: Report, tmp_path: Path) -> None:
    ingest_locally([str(DUMP)], tmp_path / "snapshots")
    published = audit_locally(task(tmp_path / "snapshots", tmp_path / "reports", settings=SETTINGS))
    assert list(report) == [*published.published["tables"], RUNS.name]
    for name, found in rows(report).items():
        if name != "verdict":
            assert found == sorted(map(repr, published.rows(name))), name
    schemas = {table.name: table.schema for table in (*REPORT_TABLES, RUNS)}
    assert all(table.schema.equals(schemas[name]) for name, table in report.items())
    assert report.summary["findings"]["orphaned_queues"]["persistent"] == 4


def test_the_run_is_a_row_and_the_row_is_the_run(report: Report) -> None:
    (row,) = report["runs"].to_pylist()
    run, published = run_of_row(row), report._published
    assert (run.date, run.run_id, run.summary) == (
        published.date,
        published.run_id,
        json.loads(json.dumps(published.summary)),
    )
    assert run.tables == published.tables == tuple(each["name"] for each in row["tables"])
    assert {each["name"]: each["rows"] for each in row["tables"]} == published.summary["rows"]
    (verdict,) = report["verdict"].to_pylist()
    named = ("run_id", "state", "level", "sentence", "critical", "warning", "missing")
    assert {name: row[name] for name in named} == {name: verdict[name] for name in named}
    window = published.summary["window"]
    assert {name: row[name] and iso(row[name]) for name in window} == window
    assert row["previous_date"] is row["previous_run_id"] is None


def test_tables_of_arrow_polars_and_pandas_give_what_the_dump_gives(
    report: Report, tables: dict[str, pa.Table]
) -> None:
    assert rows(audit(tables, SETTINGS)) == rows(report)
    of_polars = {name: pl.from_arrow(table) for name, table in tables.items()}
    assert rows(audit(of_polars, SETTINGS)) == rows(report)
    # In a column without a value pandas has no type, nor in lists of nothing but nulls.
    of_pandas = {name: table.to_pandas() for name, table in tables.items()}
    in_lists = chain.from_iterable(filter(None, tables["client_states"]["activities"].to_pylist()))
    assert set(in_lists) == {None}
    assert tables["heartbeats"]["doubtful_topics"].null_count == tables["heartbeats"].num_rows
    assert rows(audit(of_pandas, SETTINGS)) == rows(report)
    assert pl.DataFrame(report["orphaned_queues"])["queue_id"].len() == 4
    assert len(report["orphaned_queues"].to_pandas()) == 4


def test_several_dumps_are_one_audit(tmp_path: Path) -> None:
    both = audit([DUMP, str(CAPTURES / "S3" / "dump.jsonl.gz")], SETTINGS)
    assert set(both["group_health"]["consumer_group"].to_pylist()) == {"G_S2", "G_S3"}


def test_a_shell_shows_the_worst_and_a_notebook_the_page(report: Report) -> None:
    shown = repr(report)
    assert "CRITICAL  G_S2 / T_S2: 3 queues consumed by nobody and 3 consumed by several" in shown
    assert "to do:  give each process its own instanceName" in shown
    assert "reports at" not in shown
    of_page = r'<iframe srcdoc="([^"]*)" width="100%" height="800"></iframe>'
    frame = re.fullmatch(of_page, report._repr_html_())
    assert frame is not None
    page = unescape(frame[1])
    assert page.startswith("<!DOCTYPE html>")
    assert "10.0.2.10@app-DUP is used by 2 processes" in page
    chinese = audit(DUMP, Settings(language="zh"))._repr_html_()
    assert 'lang="zh-CN"' in unescape(chinese)


def test_a_time_may_be_the_text_that_is_printed(report: Report) -> None:
    at = "2026-11-21T02:05:10Z"
    shown = report.explain("G_S2", "T_S2", at)
    assert "as of 2026-11-21T02:05:02.272Z" in shown
    for same in (datetime.fromisoformat(at), datetime(2026, 11, 21, 2, 5, 10)):
        assert report.explain("G_S2", "T_S2", same) == shown
    assert report.what_if("G_S2", "T_S2", [separate_ids()], at).safe
    with pytest.raises(SettingsError, match="at: expected a time as ISO 8601, came 'noon'"):
        report.explain("G_S2", "T_S2", "noon")


def test_settings_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "audit.toml"
    file.write_text("persistence_seconds = 10\n")
    for given in (file, str(file)):
        assert "PERSISTENT" in audit(DUMP, given)["orphaned_queues"]["persistence"].to_pylist()
    file.write_text("persistence_second = 10\n")
    with pytest.raises(SettingsError, match=r"(?s)audit\.toml.*did you mean persistence_seconds"):
        audit(DUMP, file)


def test_settings_may_be_a_mapping_that_is_checked_as_a_file() -> None:
    orphaned = audit(DUMP, {"persistence_seconds": 10})["orphaned_queues"]
    assert "PERSISTENT" in orphaned["persistence"].to_pylist()
    with pytest.raises(SettingsError, match="did you mean persistence_seconds"):
        audit(DUMP, {"persistence_second": 10})
    with pytest.raises(SettingsError, match=r"expected a file of settings or a mapping .* came 10"):
        audit(DUMP, 10)  # type: ignore[arg-type]


def test_one_change_is_a_list_of_one_and_a_word_is_none(report: Report) -> None:
    of_list = report.what_if("G_S2", "T_S2", [separate_ids()])
    assert report.what_if("G_S2", "T_S2", separate_ids()).values == of_list.values
    for wrong in ("separate_ids", ["separate_ids"], None, [separate_ids]):
        with pytest.raises(InputError, match=r"expected changes .*\[separate_ids\(\)\], came"):
            report.what_if("G_S2", "T_S2", wrong)  # type: ignore[arg-type]


def test_the_package_lists_its_names() -> None:
    assert {"audit", "Report", "Settings", "load_settings", "report_rows"} <= set(dir(jobs))


def test_a_shell_shows_what_is_missing_and_why_nothing_lasts(report: Report) -> None:
    shown = repr(audit(DUMP, Settings(persistence_seconds=30)))
    assert shown.startswith("not complete: cluster DefaultCluster: a round comes every")
    shown = repr(audit(DUMP, Settings(persistence_seconds=600)))
    assert (
        "4 orphaned and 4 duplicated queues lasted less than persistence_seconds = 600 "
        "and count as passing: rebalance-audit show orphaned_queues and show duplicate_queues\n"
    ) in shown
    assert "as passing" not in repr(report)


@pytest.mark.parametrize(
    ("source", "error", "sentence"),
    [
        ("nothing/", InputError, "no dump at .*nothing"),
        ({"heartbeat": None}, InputError, "table 'heartbeat': did you mean 'heartbeats'"),
        ({}, InputError, "no table heartbeats"),
        ({"heartbeats": pa.table({"cluster": ["C"]})}, InputError, "no table topic_routes"),
        (
            dict.fromkeys(("heartbeats", "topic_routes"), pd.DataFrame({"client_id": ["a", 1]})),
            InputError,
            "heartbeats: expected values of one type in each column, came .*column client_id",
        ),
        (
            {"heartbeats": [1], "topic_routes": [2]},
            InputError,
            "heartbeats: expected a DataFrame, .* of pandas, Polars or Arrow, came list",
        ),
        (
            {name: pa.table({"cluster": ["C"]}) for name in ("heartbeats", "topic_routes")},
            ContractError,
            "perm: expected int, is missing|client_id: expected string, is missing",
        ),
    ],
)
def test_what_cannot_be_audited_is_said_in_a_sentence_and_leaves_nothing(
    source: Any,
    error: type[Exception],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(error, match=sentence):
        audit(source)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_table_is_answered_with_those_that_come_near(report: Report) -> None:
    with pytest.raises(KeyError, match="did you mean 'orphaned_queues'"):
        report["orphaned_queue"]


def test_what_was_written_goes_with_the_report_and_what_was_read_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    report = audit(DUMP, SETTINGS)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o77 == 0, "the tables have the true ids"
    orphaned = report["orphaned_queues"]
    del report
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    assert orphaned.num_rows == 4


def test_lines_that_are_not_understood_are_a_warning_and_a_table(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_bytes(gzip.decompress(DUMP.read_bytes()) + b"not a line\n" * 90)
    with pytest.warns(UserWarning, match="90 of .* lines, 990 of .* bytes, were not understood"):
        report = audit(dump, SETTINGS)
    assert report["quarantine"].num_rows == 90
    assert report["orphaned_queues"].num_rows == 4
