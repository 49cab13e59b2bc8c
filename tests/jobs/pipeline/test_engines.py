"""Which engine a job is given."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.commands import engine_choice
from jobs.commands.engine_choice import check_input, choose_engine
from jobs.config.choices import AUTO, LOCAL, SPARK
from jobs.console.progress import Progress
from jobs.errors import InputError, SettingsError
from jobs.schemas import HEARTBEATS, Table
from jobs.storage import Location
from tests.support.runs import ingest_locally
from tests.support.snapshots import heartbeat_row, write_tables
from tests.support.tables import write_table

# ---------------------------------------------------------------- which engine


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    folder = tmp_path / "dumps"
    folder.mkdir()
    (folder / "dump.jsonl").write_text("x" * 1000)
    (folder / "dump.jsonl.gz").write_text("x" * 1000)
    return folder


def chosen_for(
    dumps: list[str] | None,
    snapshots: Path | str = "nowhere",
    asked: str = AUTO,
    master: str | None = None,
    *,
    is_submitted: bool = False,
) -> engine_choice.Choice:
    with patch.dict(os.environ, {"PYSPARK_GATEWAY_PORT": "1"} if is_submitted else {}):
        return choose_engine(asked, dumps, Location(snapshots), master=master)


def test_a_little_text_is_read_here_and_much_of_it_by_spark(
    dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An archive counts as what is likely in it: 25 bytes for each of its bytes.
    for most, engine, sentence in (
        (26_000, LOCAL, "engine local, without Spark: about 0.0 MB of text"),
        (25_999, SPARK, "engine spark: about 0.0 MB of text, more than 0.0"),
    ):
        monkeypatch.setattr(engine_choice, "_MOST_DUMP_BYTES", most)
        choice = chosen_for([str(dumps)])
        assert (choice.engine, choice.sentence) == (engine, sentence)


def test_a_few_rows_are_folded_here_and_many_by_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tables(tmp_path, [(HEARTBEATS, [heartbeat_row()] * 3)])
    rows = pa.table({"line": ["x"] * 2})
    write_table(Table("quarantine", "line", rows.schema), rows, Location(tmp_path) / "quarantine")
    for most, engine, sentence in (
        (5, LOCAL, "engine local, without Spark: 5 rows in the snapshot tables"),
        (4, SPARK, "engine spark: 5 rows in the snapshot tables, more than 4"),
    ):
        monkeypatch.setattr(engine_choice, "_MOST_ROWS", most)
        choice = chosen_for(None, tmp_path)
        assert (choice.engine, choice.sentence) == (engine, sentence)


def test_rows_are_counted_by_footers_alone(tmp_path: Path) -> None:
    location = Location(tmp_path) / "heartbeats"
    rows = pa.table({"client_id": ["a"] * 10_000})
    write_table(Table("heartbeats", "client", rows.schema), rows, location)
    (file,) = (each.path for each in location.files())
    content = bytearray(Path(file).read_bytes())
    footer = pq.read_metadata(file).serialized_size + 8
    content[4 : len(content) - footer] = bytes(len(content) - footer - 4)
    Path(file).write_bytes(content)
    assert "10,000 rows" in chosen_for(None, tmp_path).sentence


@pytest.mark.parametrize("path", ["hdfs:///dumps", "s3a://b/dumps", "viewfs:///dumps"])
def test_what_does_not_lie_on_this_machine_is_for_spark(path: str) -> None:
    said = "engine spark: the dumps do not lie on this machine"
    assert chosen_for([path]) == engine_choice.Choice(SPARK, said)


@pytest.mark.parametrize(
    ("asked", "master", "is_submitted", "came"),
    [
        (LOCAL, None, False, (LOCAL, "engine local, by --engine")),
        (SPARK, None, False, (SPARK, "engine spark, by --engine")),
        (SPARK, "local[2]", False, (SPARK, "engine spark, by --engine")),
        # Whoever names a master, or comes from spark-submit, has Spark already.
        (AUTO, "local[2]", False, (SPARK, "engine spark, by --master")),
        (AUTO, None, True, (SPARK, "engine spark, by spark-submit")),
        (AUTO, "yarn", True, (SPARK, "engine spark, by spark-submit")),
    ],
)
def test_an_engine_that_is_asked_for_is_taken(
    dumps: Path, asked: str, master: str | None, is_submitted: bool, came: tuple[str, str]
) -> None:
    choice = chosen_for([str(dumps)], asked=asked, master=master, is_submitted=is_submitted)
    assert (choice.engine, choice.sentence) == came


def test_the_local_engine_is_refused_where_spark_is_there_already(dumps: Path) -> None:
    for master, named in (("local[2]", "--master"), (None, "spark-submit")):
        with pytest.raises(SettingsError, match=f"expected --engine spark with {named}, came"):
            chosen_for([str(dumps)], asked=LOCAL, master=master, is_submitted=master is None)


def test_the_local_engine_reads_local_dumps_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path, said in (
        ("s3a://bucket/dumps", "with --engine local, came s3a:"),
        (tmp_path / "empty", "no dump at"),
        (tmp_path / "missing-*.jsonl", "no dump at"),
    ):
        with pytest.raises(InputError, match=said):
            ingest_locally([str(path)], tmp_path / "snapshots")
    assert [path for path in (tmp_path / "snapshots").rglob("*") if path.is_file()] == []


def test_an_input_that_is_missing_here_is_an_error_before_java_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no dump at"):
        check_input([str(tmp_path)], Location(tmp_path))
    with pytest.raises(InputError, match="no table heartbeats"):
        check_input(None, Location(tmp_path))
    choice = engine_choice.Choice(SPARK, "")
    inputs = ([str(tmp_path)], Location(tmp_path))
    opened = engine_choice.open_engine(choice, "ingest", *inputs, "local[1]", Progress(quiet=True))
    with pytest.raises(InputError, match="no dump at"), opened:
        raise AssertionError("Java was started")
    (tmp_path / "dump.jsonl").write_text("{}")
    check_input([str(tmp_path)], Location(tmp_path))
    check_input(["s3a://bucket/dumps"], Location(tmp_path))
