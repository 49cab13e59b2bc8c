"""The dry run: what it tells, that it writes nothing, and which dumps paths name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.engines.files import list_local_files
from jobs.errors import InputError
from jobs.schemas import SNAPSHOT_TABLES
from tests.support.command_line import CommandLine
from tests.support.written_reports import SUMMARY, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 11, 20, 23, tzinfo=UTC)


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Dumps in folders, among files and folders that Spark skips."""
    folder = tmp_path / "dumps"
    for name in ("a.jsonl", "b/c.jsonl.gz", "b/d/e.jsonl", "b/_f.jsonl", "_g/h.jsonl", "b/.i/j"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


A, C, E = "a.jsonl", "b/c.jsonl.gz", "b/d/e.jsonl"
#: In a folder that a glob names.
H = "_g/h.jsonl"


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["."], [A, C, E]),
        (["b"], [C, E]),
        (["a.jsonl", "./a.jsonl", "*"], [H, A, C, E]),
        (["*.jsonl", "b/*.gz", "b/?"], [A, C, E]),
        (["[!b]*"], [H, A]),
        (["b/d/"], [E]),
        (["**/*.gz"], [C]),
        (["../dumps/a*"], [A]),
        (["{a.jsonl,b/*.gz}"], [A, C]),
        (["[^b]*"], [H, A]),
        ([r"b/\d"], [E]),
    ],
)
def test_globs_mean_what_they_mean_to_hadoop(
    dumps: Path, monkeypatch: pytest.MonkeyPatch, patterns: list[str], names: list[str]
) -> None:
    monkeypatch.chdir(dumps)
    listed = list_local_files(patterns) or []
    assert [file.path for file in listed] == [f"file:{dumps}/{name}" for name in names]
    assert [file.size for file in listed] == [len(name) for name in names]


@pytest.mark.parametrize(
    ("path", "said"), [("nowhere", "no dump at "), ("b/_f.jsonl", "begin with _ or")]
)
def test_what_is_no_dump_is_told(dumps: Path, path: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        list_local_files([f"{dumps}/{path}"])


@pytest.mark.parametrize("path", ["hdfs:///dumps", "s3a://b/dumps"])
def test_what_only_hadoop_can_list_is_left_to_spark(path: str) -> None:
    assert list_local_files([path]) is None


def write_snapshots(folder: Path, rounds: int) -> None:
    """Two of the tables, with two rows a round of an hour each, in one file a round."""
    for name in ("heartbeats", "topic_routes"):
        (folder / name).mkdir(parents=True)
        for number in range(rounds):
            times = pa.array([START + timedelta(hours=number)] * 2, pa.timestamp("us", "UTC"))
            pq.write_table(pa.table({"snapshot_time": times}), folder / name / f"{number}.parquet")


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a session was started")

    monkeypatch.setattr("jobs.spark.session.spark_session", refuse)


@pytest.mark.usefixtures("without_spark")
def test_the_audit_is_told_by_footers_and_pointers_and_nothing_is_written(
    tmp_path: Path, cli: CommandLine
) -> None:
    snapshots, reports = tmp_path / "snapshots", tmp_path / "reports"
    write_snapshots(snapshots, 4)
    for day in ("2026-11-19", "2026-11-20"):
        publish(reports, day, {}, run_id=f"run-{day}")
    before = sorted(tmp_path.rglob("*"))
    command = ["audit", "--snapshots", snapshots, "--reports", reports, "--dry-run"]
    text = cli(*command, "--date", "2026-11-20", "--set", "persistence_seconds=7")
    told = [" ".join(line.split()) for line in text.splitlines()]
    (of_lists,) = [line for line in told if line.startswith("heartbeats 4 files, ")]
    seen = "8 rows, 2 of them in the window, 2026-11-20T23:00:00Z to 2026-11-21T02:00:00Z"
    assert of_lists.endswith(seen)
    for line in (
        "client_states not there, and not needed",
        "window 2026-11-20T00:00:00Z to 2026-11-21T00:00:00Z, exclusive",
        f"writes {reports}/<table>/dt=2026-11-20/run=<run id>",
        "replaces run run-2026-11-20",
        "compared with run run-2026-11-19 of 2026-11-19",
        f"reads {snapshots}",
        "severity.critical_probability=0.5",
    ):
        assert line in told
    assert "persistence_seconds=7" in told[told.index("paths.dumps=[]") :]
    assert any(line.startswith("settings ") for line in told)
    assert not any("null" in line for line in told)
    assert told[-1] == "dry run: nothing was written"
    # Without a window the date is that of the last snapshot.
    assert "/dt=2026-11-21/" in cli(*command)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.usefixtures("without_spark")
def test_a_whole_run_is_told_from_the_dumps(tmp_path: Path, dumps: Path, cli: CommandLine) -> None:
    output = tmp_path / "out"
    told = cli("run", "--dumps", dumps, "--output", output, "--dry-run")
    assert "reads    3 files, 30 bytes, about 318 bytes of text" in told
    assert f"file:{dumps}/b/c.jsonl.gz" in told
    assert f"below {output}/snapshots" in told
    assert f"{output}/reports/<table>/dt=<date of the last snapshot>/run=<run id>" in told
    assert not output.exists()


@pytest.mark.usefixtures("without_spark")
def test_of_many_dumps_the_largest_are_named(tmp_path: Path, cli: CommandLine) -> None:
    for size in range(1, 13):
        (tmp_path / f"{size}.jsonl").write_bytes(b"x" * size)
    command = ["ingest", "--snapshots", "s", "--dry-run", "--dumps"]
    lines = cli(*command, tmp_path).splitlines()
    named = [line.split() for line in lines if line.endswith(".jsonl")]
    assert [int(size.replace(",", "")) for size, _ in named] == list(range(12, 2, -1))
    assert "           and 2 smaller ones" in lines
    (replaced,) = (line for line in lines if line.startswith("  replaces "))
    assert all(f" {table.name}" in replaced for table in SNAPSHOT_TABLES)
    assert "smaller ones" not in cli(*command, *(tmp_path / f"{n}.jsonl" for n in range(1, 11)))


@pytest.mark.usefixtures("without_spark")
def test_where_footers_tell_no_times_none_are_told(tmp_path: Path, cli: CommandLine) -> None:
    write_snapshots(tmp_path, 1)
    file = tmp_path / "heartbeats" / "0.parquet"
    pq.write_table(pq.read_table(file), file, write_statistics=False)
    text = cli("audit", "--snapshots", tmp_path, "--reports", "r", "--dry-run")
    (line,) = (each for each in text.splitlines() if " heartbeats " in each)
    assert line.endswith(" 2 rows, 2 of them in the window")


@pytest.mark.usefixtures("without_spark")
def test_times_without_a_zone_are_those_of_utc_wherever_the_machine_is(
    tmp_path: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_snapshots(tmp_path, 1)
    late = pa.array([datetime(2026, 11, 20, 18)], pa.timestamp("us"))
    pq.write_table(pa.table({"snapshot_time": late}), tmp_path / "heartbeats" / "0.parquet")
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        shown = cli("audit", "--snapshots", tmp_path, "--reports", "r", "--dry-run")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "2026-11-20T18:00:00Z to 2026-11-20T18:00:00Z" in shown
    assert "/dt=2026-11-20/" in shown


@pytest.mark.usefixtures("without_spark")
def test_a_run_since_the_last_one_shows_its_window(tmp_path: Path, cli: CommandLine) -> None:
    snapshots, reports = tmp_path / "snapshots", tmp_path / "reports"
    write_snapshots(snapshots, 3)
    command = ["audit", "--snapshots", snapshots, "--reports", reports, "--dry-run"]
    told = cli(*command, "--since", "last")
    assert "  window   all snapshots\n" in told
    assert "  replaces no run: the date has none\n  compared with no run\n" in told
    publish(reports, "2026-11-20", {}, window=SUMMARY["window"] | {"since": "2026-11-20T22:00:00Z"})
    told = cli(*command, "--since", "last")
    assert "  window   2026-11-20T22:00:00Z to the last one\n" in told
    told = cli(*command, "--until", "2026-11-21T00:00:00Z")
    assert "  window   the first snapshot to 2026-11-21T00:00:00Z, exclusive\n" in told
    assert "/dt=2026-11-20/" in told
    assert "  replaces run run-1\n" in told


@pytest.mark.spark
def test_dumps_that_only_hadoop_can_list_are_told_by_a_session(
    spark: SparkSession, dumps: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    started = []

    @contextmanager
    def session(name: str, master: str | None, **_: object) -> Iterator[SparkSession]:
        started.append(master)
        yield spark

    monkeypatch.setattr("jobs.spark.session.spark_session", session)
    # A file system that Hadoop makes of another one.
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.lake.link./dumps", f"file:{dumps}")
    paths = "viewfs://lake/dumps/{a.jsonl,b}"
    command = ["ingest", "--dumps", paths, "--snapshots", "s", "--dry-run"]
    assert "reads    3 files, 30 bytes" in cli(*command, "--master", "local[7]")
    assert started == ["local[7]"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["ingest", "--dumps", "nowhere"], "no dump at"),
        (["audit", "--reports", "reports"], "no table heartbeats at"),
    ],
)
def test_what_would_fail_for_lack_of_input_fails_now(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: CommandLine,
    command: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    cli(*command, "--snapshots", "snapshots", "--dry-run", code=3)
    assert said in cli.err
