"""The ingest job over folders of good and bad files: nothing is lost, nothing stops the night."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from jobs.errors import InputError, QuarantineError
from jobs.pipeline.ingest import Ingested, ingest
from jobs.progress import Progress
from jobs.settings import Settings
from jobs.storage import Location

pytestmark = pytest.mark.spark

ROUTE_BODY = (
    '{"brokerDatas":[{"brokerAddrs":{0:"10.0.1.1:10911"},"brokerName":"broker-a"}],'
    '"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"writeQueueNums":4}]}'
)


def route_line(**overrides: object) -> str:
    envelope: dict[str, object] = {
        "kind": "topic_route",
        "cluster": "C",
        "snapshot_time": "2026-11-20T10:00:00.000Z",
        "collected_at": "2026-11-20T10:00:00.100Z",
        "namesrv_addr": "10.0.0.1:9876",
        "topic": "ORDER",
        "body": ROUTE_BODY,
    }
    envelope.update(overrides)
    return json.dumps({key: value for key, value in envelope.items() if value is not None})


def run(
    spark: SparkSession, dumps: Path, output: Path, allowed_share: float = 1.0
) -> tuple[Ingested, list[Row]]:
    settings = Settings(allowed_quarantine_share=allowed_share)
    result = ingest(spark, [str(dumps)], Location(output), settings, Progress(quiet=True))
    quarantine = spark.read.parquet(str(output / "quarantine")).orderBy("file", "line_number")
    return result, quarantine.collect()


def rows(spark: SparkSession, output: Path, table: str) -> int:
    return spark.read.parquet(str(output / table)).count()


GARBAGE = {
    "half-written line": (route_line()[:80], "expected one JSON object, came"),
    "JSON array": (f"[{route_line()}]", "expected one JSON object, came"),
    "two objects on one line": (route_line() + route_line(), "expected one JSON object, came"),
    "two objects with a comma": (
        route_line() + "," + route_line(),
        "expected one JSON object, came",
    ),
    "something after the object": (route_line() + " oops", "expected one JSON object, came"),
    "a bracket after the object": (route_line() + "] oops", "expected one JSON object, came"),
    "number": ("17", "expected one JSON object, came '17'"),
    "text": ('"topic_route"', "expected one JSON object, came"),
    "null": ("null", "expected one JSON object, came 'null'"),
    "no JSON": ("Exception in thread main", "expected one JSON object, came"),
    "empty line": ("", "came an empty line"),
    "blank line": ("   ", "came an empty line"),
    "unknown kind": (route_line(kind="rote"), "expected kind to be one of"),
    "no kind": (route_line(kind=None), "expected kind to be one of"),
    "kind of another type": (route_line(kind=5), "expected kind to be one of"),
    "no cluster": (route_line(cluster=None), "expected cluster to be a text"),
    "empty topic": (route_line(topic=""), "expected topic to be a text that is not empty"),
    "no time": (route_line(snapshot_time=None), "expected snapshot_time to be a time"),
    "time without zone": (
        route_line(snapshot_time="2026-11-20T10:00:00"),
        "expected snapshot_time to be a time as ISO 8601 with zone, came '2026-11-20T10:00:00'",
    ),
    "impossible time": (
        route_line(collected_at="2026-02-31T10:00:00Z"),
        "expected collected_at to be a time",
    ),
    "time as number": (route_line(snapshot_time=1795226590), "expected snapshot_time to be a time"),
    "no body": (route_line(body=None), "expected body or error_code, came neither"),
    "body of another type": (route_line(body=17), "body: expected TopicRouteData"),
    "half a body": (route_line(body=ROUTE_BODY[:60]), "body: expected TopicRouteData"),
    "body without its fields": (route_line(body="{}"), "body: expected TopicRouteData with"),
    "queue number as text": (
        route_line(body=ROUTE_BODY.replace('"readQueueNums":4', '"readQueueNums":"four"')),
        "body: expected TopicRouteData",
    ),
    "queue number out of range": (
        route_line(body=ROUTE_BODY.replace('"readQueueNums":4', '"readQueueNums":2147483647')),
        "body: expected every queueData",
    ),
    "broker id as text": (
        json.dumps(
            {
                "kind": "heartbeat",
                "cluster": "C",
                "collected_at": "2026-11-20T10:00:00Z",
                "broker_name": "broker-a",
                "broker_id": "zero",
                "client_addr": "10.0.0.9:4000",
                "body": '{"clientID":"a@1","consumerDataSet":[]}',
            }
        ),
        "expected broker_id to be an integer, came 'zero'",
    ),
    "no body and no error": (
        route_line(body=None, error_code=0),
        "expected body or error_code, came neither",
    ),
    "error code as text": (
        route_line(body=None, error_code="many"),
        "expected error_code to be an integer, came 'many'",
    ),
    "log line cut in half": (
        json.dumps(
            {
                "kind": "client_log",
                "cluster": "C",
                "collected_at": "2026-11-20T10:00:00Z",
                "body": "rebalanced result changed. allocateMessageQueueStrategyName=AVG, group=G",
            }
        ),
        "body: ",
    ),
}


def test_every_bad_line_is_quarantined_as_it_came_with_its_number_and_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    lines = [text for text, _ in GARBAGE.values()]
    (dumps / "night.jsonl").write_text("\n".join([route_line(), *lines, route_line()]) + "\n")

    result, quarantine = run(spark, dumps, tmp_path / "out")

    got = {row["line_number"] - 2: row for row in quarantine}
    wrong = {
        name: got.get(number) and got[number]["reason"]
        for number, (name, (text, reason)) in enumerate(GARBAGE.items())
        if number not in got or reason not in got[number]["reason"] or got[number]["line"] != text
    }
    assert wrong == {}
    assert result.lines == len(lines) + 2
    assert result.quarantined == len(lines)
    assert rows(spark, tmp_path / "out", "topic_routes") == 1  # the same poll, collected twice


def test_a_byte_order_mark_and_windows_line_ends_are_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    text = f"{route_line(topic='A')}\r\n{route_line(topic='B')}\r\n"
    (dumps / "windows.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())

    result, quarantine = run(spark, dumps, tmp_path / "out")

    assert quarantine == []
    assert result.lines == 2
    assert rows(spark, tmp_path / "out", "topic_routes") == 2


def test_binary_files_keep_their_exact_bytes(spark: SparkSession, tmp_path: Path) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    binary = bytes(range(128, 256)) + b"\n" + b"\x00\xff{}"
    (dumps / "core.bin").write_bytes(binary)
    (dumps / "empty.jsonl").write_bytes(b"")
    (dumps / "night.jsonl").write_text(route_line() + "\n")

    result, quarantine = run(spark, dumps, tmp_path / "out")

    assert b"\n".join(bytes(row["line_bytes"]) for row in quarantine) == binary
    assert {row["reason"] for row in quarantine} == {
        "expected UTF-8 text, came bytes that are none"
    }
    assert (result.files, result.lines, result.quarantined) == (3, 3, 2)
    assert rows(spark, tmp_path / "out", "topic_routes") == 1


def test_a_truncated_gzip_file_is_read_up_to_the_damage(
    spark: SparkSession, tmp_path: Path
) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    many = [route_line(topic=f"T{number:05d}-{hash(number)}") for number in range(4000)]
    whole = gzip.compress(("\n".join(many) + "\n").encode())
    (dumps / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    (dumps / "fake.jsonl.gz").write_bytes(b"this is not gzip\n")
    (dumps / "night.jsonl").write_text(route_line() + "\n")

    result, quarantine = run(spark, dumps, tmp_path / "out")

    by_file = {Path(row["file"]).name: row for row in quarantine}
    assert set(by_file) == {"cut.jsonl.gz", "fake.jsonl.gz"}
    assert by_file["fake.jsonl.gz"]["line_number"] == 0
    assert "gzip" in by_file["fake.jsonl.gz"]["reason"]
    assert by_file["cut.jsonl.gz"]["line_number"] > 1000
    assert result.lines == rows(spark, tmp_path / "out", "topic_routes") + len(quarantine)


def test_line_numbers_count_on_over_the_blocks_of_a_large_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    lines = [route_line(topic=f"T{number}") for number in range(2000)]
    lines[1500] = "bad one"
    (dumps / "night.jsonl").write_text("\n".join(lines) + "\n")
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "65536")
    try:
        _, quarantine = run(spark, dumps, tmp_path / "out")
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    assert [(row["line_number"], row["line"]) for row in quarantine] == [(1501, "bad one")]


def test_more_bad_lines_than_allowed_are_an_error_after_everything_was_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    (dumps / "night.jsonl").write_text(route_line() + "\nbad\n")

    with pytest.raises(QuarantineError, match=r"1 of 2 lines were not understood \(50.0%"):
        run(spark, dumps, tmp_path / "out", allowed_share=0.4)
    assert rows(spark, tmp_path / "out", "topic_routes") == 1
    assert rows(spark, tmp_path / "out", "quarantine") == 1


@pytest.mark.parametrize("name", ["missing.jsonl", "none-*.jsonl"])
def test_a_path_that_names_nothing_is_an_error(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match="no dump at"):
        run(spark, tmp_path / name, tmp_path / "out")


def test_a_folder_of_nothing_but_broken_archives_is_all_quarantine(
    spark: SparkSession, tmp_path: Path
) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    (dumps / "fake.jsonl.gz").write_bytes(b"this is not gzip\n")
    result, quarantine = run(spark, dumps, tmp_path / "out")
    assert (result.lines, result.quarantined) == (1, 1)
    assert len(quarantine) == 1


def test_hidden_files_below_a_folder_are_no_dumps_but_an_error_when_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    (dumps / "night.jsonl").write_text(route_line() + "\n")
    (dumps / "_SUCCESS").write_text("")
    result, _ = run(spark, dumps, tmp_path / "out")
    assert result.files == 1
    with pytest.raises(InputError, match="_SUCCESS"):
        run(spark, dumps / "_SUCCESS", tmp_path / "out2")
