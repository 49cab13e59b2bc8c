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

from jobs.cli import main
from jobs.dumps.files import list_local_files
from jobs.errors import InputError
from jobs.schemas import SNAPSHOT_TABLES
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
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshots, reports = tmp_path / "snapshots", tmp_path / "reports"
    write_snapshots(snapshots, 4)
    for day in ("2026-11-19", "2026-11-20"):
        publish(reports, day, {}, run_id=f"run-{day}")
    before = sorted(tmp_path.rglob("*"))
    command = ["audit", "--snapshots", str(snapshots), "--reports", str(reports), "--dry-run"]
    assert main([*command, "--date", "2026-11-20", "--set", "persistence_seconds=7"]) == 0
    told = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert any(
        line.startswith("heartbeats 4 files, ")
        and line.endswith(
            "8 rows, 2 of them in the window, 2026-11-20T23:00:00Z to 2026-11-21T02:00:00Z"
        )
        for line in told
    )
    assert "client_states not there, and not needed" in told
    assert "window 2026-11-20T00:00:00Z to 2026-11-21T00:00:00Z, exclusive" in told
    assert f"writes {reports}/<table>/dt=2026-11-20/run=<run id>" in told
    assert "replaces run run-2026-11-20" in told
    assert "compared with run run-2026-11-19 of 2026-11-19" in told
    assert f"reads {snapshots}" in told
    assert "persistence_seconds=7" in told[told.index("paths.dumps=[]") :]
    assert any(line.startswith("settings ") for line in told)
    assert "severity.critical_probability=0.5" in told
    assert not any("null" in line for line in told)
    assert told[-1] == "dry run: nothing was written"
    # Without a window the date is that of the last snapshot.
    assert main(command) == 0
    assert "/dt=2026-11-21/" in capsys.readouterr().out
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.usefixtures("without_spark")
def test_a_whole_run_is_told_from_the_dumps_alone(
    tmp_path: Path, dumps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert main(["run", "--dumps", str(dumps), "--output", str(output), "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "reads    3 files, 30 bytes, about 318 bytes of text" in told
    assert f"file:{dumps}/b/c.jsonl.gz" in told
    assert f"below {output}/snapshots" in told
    assert f"{output}/reports/<table>/dt=<date of the last snapshot>/run=<run id>" in told
    assert not output.exists()


@pytest.mark.usefixtures("without_spark")
def test_of_many_dumps_the_largest_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for size in range(1, 13):
        (tmp_path / f"{size}.jsonl").write_bytes(b"x" * size)
    command = ["ingest", "--snapshots", "s", "--dry-run", "--dumps"]
    assert main([*command, str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line.split() for line in lines if line.endswith(".jsonl")]
    assert [int(size.replace(",", "")) for size, _ in named] == list(range(12, 2, -1))
    assert "           and 2 smaller ones" in lines
    (replaced,) = (line for line in lines if line.startswith("  replaces "))
    assert all(f" {table.name}" in replaced for table in SNAPSHOT_TABLES)
    assert main([*command, *(str(tmp_path / f"{n}.jsonl") for n in range(1, 11))]) == 0
    assert "smaller ones" not in capsys.readouterr().out


@pytest.mark.usefixtures("without_spark")
def test_where_footers_tell_no_times_none_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshots = tmp_path / "snapshots"
    write_snapshots(snapshots, 1)
    file = snapshots / "heartbeats" / "0.parquet"
    pq.write_table(pq.read_table(file), file, write_statistics=False)
    command = ["audit", "--snapshots", str(snapshots), "--reports", "r", "--dry-run"]
    assert main(command) == 0
    (line,) = (each for each in capsys.readouterr().out.splitlines() if " heartbeats " in each)
    assert line.endswith(" 2 rows, 2 of them in the window")


@pytest.mark.usefixtures("without_spark")
def test_times_without_a_zone_are_those_of_utc_wherever_the_machine_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "snapshots"
    write_snapshots(folder, 1)
    late = pa.array([datetime(2026, 11, 20, 18)], pa.timestamp("us"))
    pq.write_table(pa.table({"snapshot_time": late}), folder / "heartbeats" / "0.parquet")
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert main(["audit", "--snapshots", str(folder), "--reports", "r", "--dry-run"]) == 0
    finally:
        monkeypatch.undo()
        time.tzset()
    shown = capsys.readouterr().out
    assert "2026-11-20T18:00:00Z to 2026-11-20T18:00:00Z" in shown
    assert "/dt=2026-11-20/" in shown


@pytest.mark.usefixtures("without_spark")
def test_a_run_since_the_last_one_shows_the_window_that_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshots, reports = tmp_path / "snapshots", tmp_path / "reports"
    write_snapshots(snapshots, 3)
    command = ["audit", "--snapshots", str(snapshots), "--reports", str(reports), "--dry-run"]
    assert main([*command, "--since", "last"]) == 0
    told = capsys.readouterr().out
    assert "  window   all snapshots\n" in told
    assert "  replaces no run: the date has none\n  compared with no run\n" in told
    publish(reports, "2026-11-20", {}, window=SUMMARY["window"] | {"since": "2026-11-20T22:00:00Z"})
    assert main([*command, "--since", "last"]) == 0
    told = capsys.readouterr().out
    assert "  window   2026-11-20T22:00:00Z to the last one\n" in told
    assert main([*command, "--until", "2026-11-21T00:00:00Z"]) == 0
    told = capsys.readouterr().out
    assert "  window   the first snapshot to 2026-11-21T00:00:00Z, exclusive\n" in told
    assert "/dt=2026-11-20/" in told
    assert "  replaces run run-1\n" in told


@pytest.mark.spark
def test_dumps_that_only_hadoop_can_list_are_told_by_a_session(
    spark: SparkSession,
    dumps: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
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
    assert main([*command, "--master", "local[7]"]) == 0
    assert started == ["local[7]"]
    assert "reads    3 files, 30 bytes" in capsys.readouterr().out


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
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--snapshots", "snapshots", "--dry-run"]) == 3
    assert said in capsys.readouterr().err
