"""Each line of the guide to lakes is run, on reports of which a date was audited three times."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from pyiceberg.utils.config import Config
from pyspark.sql import DataFrame, SparkSession

from jobs import read_reports
from jobs.errors import DamagedError, InputError
from jobs.schemas import REPORT_TABLES
from jobs.spark.dataframes import replace_date
from tests.support.blocks import ROOT, blocks
from tests.support.reports import last_pointer
from tests.support.written_reports import publish, report_row

GUIDE = (ROOT / "docs" / "lakes.md").read_text(encoding="utf-8")
BLOCKS = [
    (block.language, block.text)
    for block in blocks(ROOT / "docs" / "lakes.md")
    if block.language in ("python", "sql") and block.not_run is None
]
#: Rows of the last run of each date.
ROWS = {"2026-11-19": 1, "2026-11-20": 2}


def block(*words: str) -> str:
    """The one block of Python or SQL that has all these words."""
    (found,) = [text for _, text in BLOCKS if all(word in text for word in words)]
    return str(found)


@pytest.fixture
def lake(here: Path) -> Path:
    """The working directory, with the reports of two dates; one was audited again."""
    reports = here / "lake" / "reports"
    for day, number in ROWS.items():
        publish_rows(reports, day, 0, number)
    # Which may find less.
    for run_number, rows in ((1, 4), (2, ROWS["2026-11-20"])):
        publish_rows(reports, "2026-11-20", run_number, rows)
    return reports


def publish_rows(reports: Path, day: str, run_number: int, number: int) -> None:
    findings = [report_row("orphaned_queues", queue_id=each) for each in range(number)]
    tables = {"orphaned_queues": [{**each, "finding_id": "f"} for each in findings]}
    publish(reports, day, tables, run_id=f"20261121T02000{run_number}Z-00000a")


def died(lake: Path) -> None:
    """A run of the last date was killed while it wrote."""
    (of_run,) = (lake / "orphaned_queues" / "dt=2026-11-20").iterdir()
    dead = of_run.with_name("run=20261121T030000Z-00000d")
    dead.mkdir()
    (dead / "part-0.parquet").write_bytes((of_run / "part-0.parquet").read_bytes())


def run(text: str, **values: Any) -> Any:
    """What a block of Python calls ``rows``, where it does."""
    exec(text, values)  # noqa: S102 - the guide's own text
    return values.get("rows")


def counted(rows: DataFrame, column: str) -> dict[str, int]:
    return {str(row[0]): row[1] for row in rows.groupBy(column).count().collect()}


def by_date(days: Iterable[Any]) -> dict[str, int]:
    return Counter(map(str, days))


def test_every_block_of_the_guide_is_run_here() -> None:
    assert len(BLOCKS) == 19


def test_python_counts_right_while_a_run_is_written(lake: Path) -> None:
    died(lake)
    rows = run(block("orphaned_queues", "report_rows"))
    assert by_date(rows["date"].to_pylist()) == {"2026-11-20": 2}
    every = run(block("orphaned_queues", "report_rows").replace(', ["2026-11-20"]', ""))
    assert by_date(every["date"].to_pylist()) == ROWS
    # What the guide says of other libraries.
    assert len(every.to_pandas()) == len(polars.from_arrow(every)) == sum(ROWS.values())
    rows = every
    assert duckdb.sql("SELECT count(*) FROM rows").fetchall() == [(sum(ROWS.values()),)]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_other_libraries_count_right(lake: Path, library: str) -> None:
    assert by_date(run(block(f"{library}.read_parquet"))["dt"]) == ROWS


@pytest.mark.parametrize("words", [["SELECT *"], ["SEMI JOIN"]])
def test_duckdb_counts_right(lake: Path, words: list[str]) -> None:
    if words == ["SEMI JOIN"]:
        died(lake)
    query = f"SELECT dt::VARCHAR, count(*) FROM ({block(*words)}) GROUP BY ALL"  # noqa: S608 - the guide's own text
    assert dict(duckdb.sql(query).fetchall()) == ROWS


def test_duckdb_tells_how_long_a_finding_is_open(lake: Path) -> None:
    ((finding, group, topic, dates, _),) = duckdb.sql(block("open_since")).fetchall()
    assert (finding, group, topic, dates) == ("f", "G", "T", 2)


def test_the_pointer_has_the_keys_that_the_guide_names(lake: Path) -> None:
    section = GUIDE.split("## The pointer")[1].split("## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    pointer = json.loads(last_pointer(lake, "dt=2026-11-20").read_text())
    assert named == set(pointer)
    ((of_files,),) = [[row[2]] for row in rows if "files" in row[1]]
    (file,) = pointer["files"]["orphaned_queues"]
    assert set(re.findall(r"`(\w+)`", of_files)) == set(file)


@pytest.mark.long
@pytest.mark.parametrize(
    ("writer", "readers"),
    [
        ("write_deltalake", [["DeltaTable("], ["polars.read_delta"]]),
        ("create_namespace", [["load_catalog", "to_pandas"], ["polars.scan_iceberg"]]),
    ],
)
def test_tables_of_other_formats_count_right(
    lake: Path, monkeypatch: pytest.MonkeyPatch, writer: str, readers: list[list[str]]
) -> None:
    for key in ("URI", "WAREHOUSE"):
        (configured,) = re.findall(rf"^    {key.lower()}: (.*)$", GUIDE, re.MULTILINE)
        here = configured.replace("/lake/", f"{lake.parent}/")
        monkeypatch.setenv(f"PYICEBERG_CATALOG__PROD__{key}", here)
    # PyIceberg reads the environment when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    run(block(writer).replace("2026-11-20", "2026-11-19"))
    for run_number, number in ((3, 5), (4, ROWS["2026-11-20"])):
        publish_rows(lake, "2026-11-20", run_number, number)
        run(block(writer))
    for words in readers:
        assert by_date(run(block(*words))["date"]) == ROWS, words


@pytest.mark.house
@pytest.mark.spark
def test_of_saved_tables_what_runs_names_counts(spark: SparkSession) -> None:
    # A block of another page may have left one in this session.
    spark.sql("DROP DATABASE IF EXISTS rocketmq_audit CASCADE")
    spark.sql("CREATE DATABASE rocketmq_audit")
    try:
        # Of the first date another run was replaced in part, and that of the last one died.
        days = [date(2026, 11, number) for number in (19, 20, 21)]
        for day, *runs in zip(days, ("a", "c", "d"), ("b", "c", "d"), strict=True):
            rows = spark.createDataFrame(
                [(f"{run}-{n}", run) for run in runs for n in range(2)],
                "finding_id string, run_id string",
            )
            replace_date(rows, "rocketmq_audit.orphaned_queues", day)
            named = spark.createDataFrame([(runs[1],)], "run_id string")
            replace_date(named.limit(int(day < days[-1])), "rocketmq_audit.runs", day)
        spark.sql(block("CREATE OR REPLACE VIEW"))
        found = spark.table("rocketmq_audit.counting_orphaned_queues")
        assert {row.run_id for row in found.collect()} == {"b", "c"}
        assert counted(found, "date") == {"2026-11-19": 2, "2026-11-20": 4}
        rows = run(block("read_tables"), spark=spark)
        assert rows.columns[0] == "date"
        assert {row.finding_id for row in rows.collect()} == {"c-0", "c-1"}
    finally:
        spark.sql("DROP DATABASE rocketmq_audit CASCADE")


@pytest.mark.spark
def test_spark_counts_right_and_reads_what_the_pointers_name(
    lake: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    # Java has a working directory of its own.
    rows = run(block("spark.read.parquet").replace("lake/reports", str(lake)), spark=spark)
    assert counted(rows, "dt") == ROWS

    try:
        spark.sql(block("CREATE TABLE orphaned").replace("lake/reports", str(lake)))
        spark.sql(block("MSCK"))
        rows = spark.table("orphaned_queues")
        assert counted(rows, "dt") == ROWS
        publish_rows(lake, "2026-11-20", 3, 2)
        spark.sql(block("MSCK"))
        assert counted(rows, "dt") == ROWS
    finally:
        spark.sql("DROP TABLE IF EXISTS orphaned_queues")

    died(lake)
    rows = run(block("read_reports"), spark=spark)
    assert rows.columns[0] == "date"
    assert rows.schema["date"].dataType.simpleString() == "date"
    assert {str(row.date) for row in rows.collect()} == {"2026-11-20"}
    assert rows.count() == ROWS["2026-11-20"]
    assert counted(read_reports(spark, "lake/reports", "orphaned_queues"), "date") == ROWS
    # One date alone, by a text or a date; a table that no run has rows of; a folder with brackets.
    (day,) = {row.date for row in rows.collect()}
    assert read_reports(spark, "lake/reports", "orphaned_queues", day).count() == 2
    assert read_reports(spark, "lake/reports", "stalled_queues", "2026-11-20").count() == 0
    lake.rename(lake.with_name("[1] *"))
    assert read_reports(spark, "lake/[1] *", "orphaned_queues").count() == 3

    for arguments, said in (
        (("orphaned_queue", None), "did you mean 'orphaned_queues'"),
        (("orphaned_queues", ["2026-11-20", "2026-11-21"]), "no published report of 2026-11-21"),
        (("orphaned_queues", "20.11.2026"), "expected a date as YYYY-MM-DD"),
    ):
        with pytest.raises(InputError, match=said):
            read_reports(spark, "lake/[1] *", *arguments)
    with pytest.raises(InputError, match="no published reports"):
        read_reports(spark, "lake", "orphaned_queues")
    of_day = lake.with_name("[1] *") / "orphaned_queues" / "dt=2026-11-19"
    next(of_day.rglob("*.parquet")).unlink()
    with pytest.raises(DamagedError, match="is missing"):
        read_reports(spark, "lake/[1] *", "orphaned_queues")

    exec(block("REPORT_TABLES", "EXTERNAL"), {})  # noqa: S102 - the guide's own text
    statements = capsys.readouterr().out.splitlines()
    assert len(statements) == len(REPORT_TABLES)
    for statement in statements:
        spark._jsparkSession.sessionState().sqlParser().parsePlan(statement.rstrip(";"))
