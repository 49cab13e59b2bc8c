"""The ingest job over folders of good and bad files: nothing is lost, nothing stops the night.

Both engines read by the same reader: what Spark adds is tried once, on files of every kind.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from shutil import copy, copytree
from typing import Any

import pytest

from jobs.config.settings import Settings
from jobs.engines.engine import Engine
from jobs.engines.local import LocalEngine
from jobs.errors import QuarantineError
from jobs.pipeline.ingest import IngestCounts
from jobs.pipeline.ingest import ingest as run_ingest
from jobs.schemas import SNAPSHOT_TABLES
from jobs.storage import Location, Snapshots
from jobs.verdict.gaps import gaps_of, packed
from tests.dumps.samples import line
from tests.support.runs import QUIET, writing

Rows = list[dict[str, Any]]


def route_line(topic: str = "ORDER", **overrides: object) -> str:
    return line("topic_route", topic=topic, **overrides)


UNKNOWN = route_line().replace("topic_route", "rote")


def ingest_by(engine: Engine, dumps: Path, output: Path, settings: Settings) -> IngestCounts:
    with writing(output) as writer:
        return run_ingest(engine, [str(dumps)], writer, settings, QUIET)


def ingest(dumps: Path, output: Path, allowed_share: float = 1.0) -> IngestCounts:
    with LocalEngine() as engine:
        return ingest_by(engine, dumps, output, Settings(allowed_quarantine_share=allowed_share))


def rows(output: Path, name: str) -> Rows:
    return Snapshots.open(Location(output)).unchecked(name).to_table().to_pylist()


def quarantine(output: Path) -> Rows:
    return sorted(rows(output, "quarantine"), key=lambda row: (row["file"], row["line_number"]))


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    folder = tmp_path / "dumps"
    folder.mkdir()
    return folder


def test_every_bad_line_is_quarantined_as_it_came_with_its_number_and_reason(
    dumps: Path, tmp_path: Path
) -> None:
    binary = bytes(range(128, 256))
    lines = [route_line(), "", "17", "  \ufffd half", UNKNOWN, route_line()]
    text = "\n".join(lines).encode() + b"\n" + binary + b"\n" + b"{}"
    (dumps / "night 1%.jsonl").write_bytes(text)
    (dumps / "empty.jsonl").write_bytes(b"")

    result = ingest(dumps, tmp_path / "out")

    found = {row["line_number"]: row for row in quarantine(tmp_path / "out")}
    assert {number: row["line"] for number, row in found.items()} == {
        2: "",
        3: "17",
        4: "  \ufffd half",
        5: UNKNOWN,
        7: "\ufffd" * 128,
        8: "{}",
    }
    exact = {number: row["line_bytes"] for number, row in found.items() if row["line_bytes"]}
    assert exact == {7: binary}
    assert found[3]["reason"] == "expected one JSON object, came '17'"
    assert {Path(row["file"]) for row in found.values()} == {
        Path(f"file:{dumps}/night%201%25.jsonl")
    }
    assert result == IngestCounts(files=2, bytes=len(text), lines=8, quarantined=6)
    # The same poll, collected twice.
    assert len(rows(tmp_path / "out", "topic_routes")) == 1


def test_more_bad_lines_than_allowed_are_an_error_after_everything_was_written(
    dumps: Path, tmp_path: Path
) -> None:
    (dumps / "night.jsonl").write_text(route_line() + "\nbad\n")

    with pytest.raises(QuarantineError, match=r"1 of 2 lines, .* not understood \(50.0%"):
        ingest(dumps, tmp_path / "out", allowed_share=0.4)
    assert len(rows(tmp_path / "out", "topic_routes")) == 1
    assert len(quarantine(tmp_path / "out")) == 1
    ingested = Snapshots.open(Location(tmp_path / "out")).ingested
    assert [each.kind for each in gaps_of(ingested)] == ["LINES_LOST"]
    assert ingested == {
        "files": 1,
        "bytes": (dumps / "night.jsonl").stat().st_size,
        "lines": 2,
        "quarantined": 1,
        "incomplete": packed(gaps_of(ingested))["incomplete"],
        "heartbeat_expiry_seconds": 130,
    }


def test_what_was_there_before_is_replaced(dumps: Path, tmp_path: Path) -> None:
    (dumps / "night.jsonl").write_text(route_line(topic="A") + "\nbad\n")
    ingest(dumps, tmp_path / "out")
    (part,) = (tmp_path / "out" / "topic_routes").glob("*/*.parquet")
    # As an earlier version wrote it.
    copy(part, tmp_path / "out" / "topic_routes" / "part-of-another-engine.parquet")
    (dumps / "night.jsonl").write_text(route_line(topic="B") + "\n")
    ingest(dumps, tmp_path / "out")
    assert [row["topic"] for row in rows(tmp_path / "out", "topic_routes")] == ["B"]
    assert quarantine(tmp_path / "out") == []
    # The tables of the ingest before stay for those who read them.
    assert len(list((tmp_path / "out" / "topic_routes").rglob("*.parquet"))) == 2


@pytest.mark.parametrize("packed", ["early.jsonl", "late.jsonl"])
def test_of_what_was_collected_at_one_instant_the_later_file_and_then_the_later_line_counts(
    dumps: Path, tmp_path: Path, packed: str
) -> None:
    gone = {"body": None, "error_code": 17}
    files = {
        # Longer than the other, so that its lines lie further from the file's beginning.
        "early.jsonl": [*[route_line(topic=each) for each in "XYZ"], route_line(topic="A", **gone)],
        "late.jsonl": [route_line(topic="A"), route_line(topic="B", **gone), route_line(topic="B")],
    }
    for name, lines in files.items():
        text = "".join(f"{each}\n" for each in lines).encode()
        path = dumps / (name + ".gz" if name == packed else name)
        path.write_bytes(gzip.compress(text) if name == packed else text)

    ingest(dumps, tmp_path / "out")

    found = {row["topic"]: row["broker_name"] for row in rows(tmp_path / "out", "topic_routes")}
    assert found == dict.fromkeys("XYZAB", "broker-a")


def test_one_log_of_several_groups_has_one_offset(dumps: Path, tmp_path: Path) -> None:
    """The last line alone tells that the log is in GMT+8; it is about another group."""

    def logged(group: str, printed: str, collected: str) -> str:
        body = (
            f"2026-11-20 {printed},000 INFO RocketmqClient - rebalanced result changed. "
            f"allocateMessageQueueStrategyName=AVG, group={group}, topic=T, clientId=a, "
            "mqAllSize=4, cidAllSize=1, rebalanceResultSize=0, rebalanceResultSet=[]"
        )
        collected_at = f"2026-11-20T{collected}Z"
        return json.dumps(
            {"kind": "client_log", "cluster": "C", "collected_at": collected_at, "body": body}
        )

    lines = [logged("G", "18:00:00", "12:00:00"), logged("H", "20:00:00", "12:00:01")]
    (dumps / "night.jsonl").write_text("\n".join(lines))

    ingest(dumps, tmp_path / "out")

    states = rows(tmp_path / "out", "client_states")
    found = {state["consumer_group"]: state["logged_at"].isoformat() for state in states}
    assert found == {"G": "2026-11-20T10:00:00+00:00", "H": "2026-11-20T12:00:00+00:00"}


def write_bad_files(dumps: Path) -> None:
    """Lines of every kind, archives sound and damaged, and a plain file of several ranges."""
    binary = bytes(range(128, 256))
    lines = [route_line(topic=f"T{number}").encode() for number in range(2000)]
    lines[1500] = b"bad one"
    lines[700] = binary
    (dumps / "night.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    text = "\n".join(["", "17", route_line("U"), route_line(collected_at="2100-01-01T00:00:00Z")])
    (dumps / "small 1%.jsonl").write_text(text)
    whole = gzip.compress(b"\n".join(lines[:500]))
    (dumps / "members.jsonl.gz").write_bytes(whole + gzip.compress(route_line("V").encode()))
    (dumps / "cut.jsonl.gz").write_bytes(whole[:-20])
    (dumps / "fake.jsonl.gz").write_bytes(b"this is not gzip\n")


@pytest.fixture
def in_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain files are read in ranges of 64 KB."""
    monkeypatch.setattr("jobs.engines.files.MOST_BYTES", 100_000)
    monkeypatch.setattr("jobs.engines.files._BYTES_OF_A_RANGE", 65_536)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.e2e)])
@pytest.mark.usefixtures("in_ranges")
def test_line_numbers_count_on_over_the_ranges_of_a_large_file(
    dumps: Path, tmp_path: Path, workers: int
) -> None:
    write_bad_files(dumps)
    for path in dumps.glob("[!n]*"):
        path.unlink()
    assert (dumps / "night.jsonl").stat().st_size > 5 * 65_536
    with LocalEngine(workers) as engine:
        settings = Settings(allowed_quarantine_share=1)
        result = ingest_by(engine, dumps, tmp_path / "out", settings)
    found = [(row["line_number"], row["line"]) for row in quarantine(tmp_path / "out")]
    assert found == [(701, "\ufffd" * 128), (1501, "bad one")]
    assert (result.lines, result.quarantined) == (2000, 2)
    assert len(rows(tmp_path / "out", "topic_routes")) == 1998


@pytest.mark.spark
@pytest.mark.usefixtures("in_ranges")
def test_spark_makes_the_same_tables_of_the_captures_and_of_bad_files(
    spark: Any, repository: Path, dumps: Path, tmp_path: Path
) -> None:
    from jobs.spark.spark_engine import SparkEngine  # noqa: PLC0415 - Spark takes its time to import

    captures = repository / "tests" / "data" / "captures"
    copytree(captures, dumps / "captures")
    write_bad_files(dumps)
    settings = Settings(allowed_quarantine_share=1)
    with LocalEngine() as engine:
        here = ingest_by(engine, dumps, tmp_path / "local", settings)
    with SparkEngine(spark) as engine_on_spark:
        there = ingest_by(engine_on_spark, dumps, tmp_path / "spark", settings)

    assert here == there
    assert here.quarantined == 8
    for table in SNAPSHOT_TABLES:
        of_both = [
            sorted(map(repr, rows(tmp_path / name, table.name))) for name in ("local", "spark")
        ]
        assert of_both[0] == of_both[1], table.name
        assert of_both[0]
