"""Each contender runs where it belongs, in a process of its own, and what it found is checked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.bench.contenders import CONTENDERS
from tests.bench.fleets import Tables
from tests.bench.run import check, contenders_on, median, run_once, table_of

NAMES = [each.name for each in CONTENDERS]


def test_xl_is_for_the_audit_in_one_process() -> None:
    assert contenders_on("XL", NAMES) == ["driver", "driver_ids"]
    assert contenders_on("XL", ["audit", "on_polars"]) == []
    assert contenders_on("L", NAMES) == NAMES


@pytest.mark.spark
def test_a_run_of_a_relative_folder_finds_what_is_true(tiny: Tables, tmp_path: Path) -> None:
    # As `make bench` asks for it. The fleet takes Spark to write; the run does without.
    tables = Tables(Path(os.path.relpath(tiny.folder)))
    runs = [run_once(name, tables, tmp_path, tmp_path) for name in ("driver", "driver_ids")]
    for run in runs:
        check(run.contender, tables, tmp_path)
    rows, by_ids = runs
    assert rows.cpu_seconds > 0
    assert (rows.jvm, by_ids.jvm) == (0, 0)
    assert rows.python >= rows.largest > 50
    text = "\n".join(table_of([median([run], "TINY", 1000) for run in runs], "TINY"))
    assert "| the audit in one process, from rows | 1.00 | 1.00 |" in text


@pytest.mark.spark
def test_a_run_that_misses_a_finding_fails_the_bench(tiny: Tables, tmp_path: Path) -> None:
    findings = tmp_path / "on_polars" / "findings"
    shutil.copytree(tiny.true_findings, findings)
    check("on_polars", tiny, tmp_path)
    largest = max(findings.glob("*.parquet"), key=lambda path: pq.read_metadata(path).num_rows)
    pq.write_table(pq.read_table(largest)[1:], largest)
    with pytest.raises(RuntimeError, match="1 true, not found"):
        check("on_polars", tiny, tmp_path)
