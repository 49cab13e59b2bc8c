"""Lines of dumps that are rows: what an audit of their files finds, however the rows lie."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import jobs
from jobs.errors import InputError
from jobs.spark import audit
from tests.support.truth import CAPTURES, SAMPLE_SETTINGS

pytestmark = pytest.mark.spark

#: They name the run, or the places of lines.
NAMING_THE_RUN = ("runs", "verdict", "quarantine")
DUMP = CAPTURES / "S2" / "dump.jsonl.gz"


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two dumps, with three lines that are none."""
    folder = tmp_path_factory.mktemp("dumps") / "night 1"
    folder.mkdir()
    lines = gzip.decompress(DUMP.read_bytes()).splitlines(keepends=True)
    (folder / "a.jsonl").write_bytes(b"".join(lines[::2]) + b"no line\n")
    more = [*lines[1::2], b"\n", b'{"kind":"topic_route","cluster":"C"}\n']
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(b"".join(more)))
    return folder


@pytest.fixture(scope="module")
def of_files(dumps: Path) -> Any:
    return jobs.audit(str(dumps), SAMPLE_SETTINGS)


def rows_of(report: Any) -> dict[str, list[str]]:
    """All that was found, as sets of rows."""
    found = {name: sorted(map(repr, report[name].to_pylist())) for name in report}
    return {name: rows for name, rows in found.items() if name not in NAMING_THE_RUN}


def test_lines_are_audited_as_their_files_are(
    spark: SparkSession, dumps: Path, of_files: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        report = audit(lines=spark.read.text(str(dumps)), settings=SAMPLE_SETTINGS)
    assert rows_of(report) == rows_of(of_files)
    assert report.stacked_client_ids.count() == of_files["stacked_client_ids"].num_rows == 1
    refused = [
        sorted((row["reason"], row["line"], row["file"]) for row in of["quarantine"].to_pylist())
        for of in (report, of_files)
    ]
    refused[0] = [(*row[:2], row[2].replace("file:///", "file:/")) for row in refused[0]]
    assert refused[0] == refused[1]
    assert len(refused[0]) == 3
    of_summaries = [of.summary["inputs"]["ingested"] for of in (report, of_files)]
    assert [each["lines"] for each in of_summaries] == [of_summaries[1]["lines"]] * 2
    assert [each["quarantined"] for each in of_summaries] == [3, 3]
    assert "G_S2" in report.explain("G_S2", "T_S2", "2026-11-21T02:05:10Z")


def test_a_sink_of_raw_answers_is_a_table_with_a_column_of_them(
    spark: SparkSession, dumps: Path, of_files: Any
) -> None:
    """Shuffled: then Spark does not know any more which files they are of."""
    rows = spark.read.text(str(dumps)).repartition(3, F.xxhash64("value"))
    rows = rows.select(
        F.lit("key").alias("key"),
        F.col("value").cast("binary").alias("payload"),
        F.lit("kafka 7").alias("source"),
    )
    rows.createOrReplaceTempView("answers")
    with pytest.raises(InputError, match="no column is known to have the lines; audit") as error:
        audit(lines="answers", spark=spark)
    assert 'columns={"line": "..."}) names one of the columns key string, payload binary' in str(
        error.value
    )
    columns = {"line": "payload", "file": F.concat("source", F.lit("!"))}
    report = audit(lines="answers", columns=columns, settings=SAMPLE_SETTINGS, spark=spark)
    assert rows_of(report) == rows_of(of_files)
    assert {row.file for row in report.quarantine.collect()} == {"kafka 7!"}


def test_lines_in_place_of_lists_are_told_how_they_go_in(spark: SparkSession, dumps: Path) -> None:
    rows = spark.read.text(str(dumps))
    told = r"came the columns value string; lines of dumps go in as audit\(lines=\.\.\.\), as "
    with pytest.raises(InputError, match=told + r'audit\(lines=spark\.read\.text\("dumps/"\)\)'):
        audit(rows)
    with pytest.raises(InputError, match="came lines and heartbeats"):
        audit(rows, lines=rows)
    with pytest.raises(InputError, match="came lines and round_seconds: lines have their rounds"):
        audit(lines=rows, round_seconds=60)
    with pytest.raises(InputError, match="lines: expected lines of dumps, came no row"):
        audit(lines=rows.limit(0))
    with pytest.raises(InputError, match=r"expected in line an object of a dump .* came int"):
        audit(lines=rows, columns={"line": F.lit(1)})
    with pytest.raises(InputError, match="lines have the columns line and file, came client_id"):
        audit(lines=rows, columns={"client_id": "clientId"})


def test_more_lines_that_are_none_than_are_allowed_are_warned_of(
    spark: SparkSession, dumps: Path
) -> None:
    rows = spark.read.text(str(dumps))
    bad = spark.range(rows.count()).select(F.lit("[1]").alias("value"))
    said = r"lines: expected one JSON object, came '\[1\]'; .* lines, .* were not understood"
    with pytest.warns(UserWarning, match=said) as warned:
        audit(lines=rows.select("value").union(bad), settings=SAMPLE_SETTINGS)
    (one,) = [each for each in warned if "not understood" in str(each.message)]
    assert "see the table quarantine: write one object a line" in str(one.message)
    assert one.filename == __file__
