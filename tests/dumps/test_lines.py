"""Lines to rows and back: on one hand without Spark, on the other as Spark reads files."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from jobs.dumps.lines import blocks_of, no_lines, number_lines, read_lines, read_statements
from jobs.dumps.memory import ENTRY_BYTES, Memory
from jobs.dumps.rows import (
    LINES,
    ROWS,
    ROWS_DDL,
    Decoder,
    decode_content,
    decode_source,
    encode,
    to_rows,
)
from jobs.dumps.statement import KINDS, Source, Statement
from jobs.dumps.statements import Reader, Refused
from tests.dumps.samples import BODIES, line

HEARTBEAT, CONNECTION, ROUTE, INFO, STATS, MODES, LOG = KINDS


def batch(*lines: tuple[str, int, int, bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [dict(zip(LINES.names, each, strict=True)) for each in lines], LINES
    )


def numbered(*lines: str, file: str = "a") -> pa.RecordBatch:
    return batch(*[(file, 0, number, text.encode()) for number, text in enumerate(lines)])


def rows_of(*batches: pa.RecordBatch, files: tuple[str, ...] = ("a",)) -> pa.Table:
    return pa.Table.from_batches(to_rows(batches, files), ROWS)


def statements_of(rows: pa.Table) -> list[Statement]:
    decoder = Decoder()
    return [each for piece in rows.to_batches() for each in decoder.statements(piece)]


def read(text: str, order: int = 0) -> list[Statement]:
    said = Reader().read(text, order)
    assert not isinstance(said, Refused)
    return said


def test_rows_have_what_the_reader_says_of_each_line() -> None:
    lines = [line(kind) for kind in KINDS]

    said = statements_of(rows_of(numbered(*lines[:3]), numbered(*lines[3:])))

    assert [each._replace(order=0) for each in said] == [read(text)[0] for text in lines]
    assert [type(each.content) for each in said] == [type(read(text)[0].content) for text in lines]
    assert [each.order for each in said] == sorted({each.order for each in said})


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_within_a_content_comes_again_as_what_it_was(kind: str) -> None:
    (said,) = read(line(kind))
    assert said.content is not None

    content = decode_content(kind, encode(said.content))

    assert repr(content) == repr(said.content)


def test_an_error_has_no_content() -> None:
    (said,) = statements_of(rows_of(numbered(line(CONNECTION, body=None, error_code=206))))

    assert (said.content, said.source.code) == (None, 206)


@given(st.builds(Source, *[st.none() | st.text() if n != 1 else st.integers() for n in range(9)]))
def test_any_source_comes_again(source: Source) -> None:
    assert decode_source(encode(source)) == source


def test_equal_contents_are_equal_bytes_and_one_object_again() -> None:
    """What was read of another text, by another reader, in another order."""
    connections = [{"clientId": each, "clientAddr": "x:1"} for each in "ab"]
    lines = [
        line(CONNECTION, body={"connectionSet": each}) for each in (connections, connections[::-1])
    ]
    rows = [rows_of(numbered(each)) for each in lines]

    assert rows[0].column("content")[0] == rows[1].column("content")[0]
    first, second = statements_of(pa.concat_tables(rows))
    assert first.content is second.content
    assert first.source is second.source


def test_equal_values_are_equal_bytes_whichever_of_their_texts_are_one_object() -> None:
    once = "".join(["T", "1"])

    assert encode((once, once)) == encode(("".join(["T", "1"]), "".join(["T", "1"])))


def test_a_refused_line_is_there_as_it_came_with_its_reason() -> None:
    rows = rows_of(batch(("a", 0, 5, b"\xef\xbb\xbfbad\r"), ("a", 0, 6, b"\xff\xfe{}"))).to_pylist()

    assert [(row["row"], row["line"], row["line_bytes"]) for row in rows[:2]] == [
        (5, "\ufeffbad\r", None),
        (6, "\ufffd\ufffd{}", b"\xff\xfe{}"),
    ]
    assert [row["reason"] for row in rows[:2]] == [
        "expected one JSON object, came 'bad\r'",
        "expected UTF-8 text, came bytes that are none",
    ]
    assert statements_of(rows_of(numbered("bad"))) == []


def test_each_block_tells_the_number_of_its_lines_once_whatever_they_say() -> None:
    two_groups = line(
        HEARTBEAT,
        body={"clientID": "a", "consumerDataSet": [{"groupName": "G"}, {"groupName": "H"}]},
    )
    first = batch(("a", 0, 7, two_groups.encode()), ("a", 0, 8, b"bad"))
    second = batch(("a", 0, 9, line(LOG, body="chatter").encode()), ("a", 64, 10, b"bad"))
    third = batch(("b", 0, 11, b""))

    rows = rows_of(first, second, third).to_pylist()

    blocks = [row for row in rows if row["lines"] is not None]
    assert [(b["file"], b["block"], b["row"], b["lines"]) for b in blocks] == [
        ("a", 0, 7, 3),
        ("a", 64, 10, 1),
        ("b", 0, 11, 1),
    ]
    assert all(row["kind"] is None and row["reason"] is None for row in blocks)
    assert rows_of().num_rows == 0


def test_later_lines_and_later_files_have_a_higher_order() -> None:
    """Of what was collected twice at one time the line that comes later counts."""
    text = line(ROUTE).encode()
    # Tasks take the blocks in any order.
    rows = rows_of(
        batch(("b", 0, 0, text), ("a", 10_000, 1, text), ("a", 0, 2, text), ("a", 0, 3, text)),
        files=("a", "b"),
    )

    b, a_block_2, a_first, a_second = (each.order for each in statements_of(rows))

    assert a_first < a_second < a_block_2 < b


def test_a_log_line_tells_how_far_its_print_is_ahead_and_of_which_log() -> None:
    printed = BODIES[LOG].replace("09:00:00,000", "17:00:00,000")
    lines = [
        line(LOG, body=printed),
        line(LOG, body=printed, process=None),
        line(LOG, body=BODIES[LOG].replace("2026-01-05 09:00:00,000", "INFO")),
        line(ROUTE),
    ]

    rows = rows_of(numbered(*lines)).to_pylist()

    ahead = 8 * 3_600_000_000 - 250_000
    assert [(row["log"], row["ahead"]) for row in rows[:4]] == [
        ("host-1", ahead),
        ("10.0.0.1@1", ahead),
        (None, None),
        (None, None),
    ]


def test_a_memory_forgets_when_it_is_full() -> None:
    memory: Memory[int, int] = Memory(most_bytes=3 * (10 + ENTRY_BYTES))
    for number in range(4):
        assert memory.remember(number, number, 10) == number
    assert memory == {3: 3}


# ------------------------------------------------------------------ as Spark reads


@pytest.fixture
def small_blocks(spark: SparkSession) -> Iterator[SparkSession]:
    """Files in many blocks."""
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "65536")
    yield spark
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(before))


@pytest.mark.spark
def test_the_columns_are_those_that_spark_is_told_of(spark: SparkSession) -> None:
    rows = read_statements(no_lines(spark))

    assert rows.columns == ROWS.names
    assert rows.collect() == []
    assert spark.createDataFrame([], ROWS_DDL).schema == rows.schema


@pytest.mark.spark
def test_a_large_file_is_read_in_blocks_and_its_lines_are_numbered_through(
    small_blocks: SparkSession, tmp_path: Path
) -> None:
    lines = [line(ROUTE, topic=f"T{number}") for number in range(2000)]
    lines[1500] = "bad one"
    (tmp_path / "night.jsonl").write_text("\n".join(lines) + "\n")
    with gzip.open(tmp_path / "other.jsonl.gz", "wt") as stream:
        stream.write(line(ROUTE) + "\r\n\n" + line(ROUTE))

    rows = read_statements(read_lines(small_blocks, [str(tmp_path)])).persist()

    blocks = blocks_of(rows)
    assert blocks.where("file like '%night%'").count() > 1
    assert blocks.groupBy().sum("lines").collect()[0][0] == 2003
    refused = number_lines(rows.where("reason is not null"), blocks).orderBy("file")
    assert [(row["line_number"], row["line"]) for row in refused.collect()] == [
        (1501, "bad one"),
        (2, ""),
    ]
    said = rows.where("kind is not null").orderBy("order").select("subject").collect()
    expected = [f"T{number}" for number in range(2000) if number != 1500] + ["T", "T"]
    assert [row["subject"] for row in said] == expected


@pytest.mark.spark
def test_bytes_that_are_no_text_come_through_spark(spark: SparkSession, tmp_path: Path) -> None:
    binary = bytes(range(128, 256)) + b"\n" + b"\x00\xff{}"
    (tmp_path / "core.bin").write_bytes(binary)

    rows = read_statements(read_lines(spark, [str(tmp_path)])).where("reason is not null")

    kept = [bytes(row["line_bytes"]) for row in rows.orderBy("row").collect()]
    assert b"\n".join(kept) == binary
