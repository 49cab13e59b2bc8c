"""Files that Spark cannot read as they are -> plain files with all that can be read of them.

Spark fails the whole job on one archive that is damaged, or, set to ignore it, loses its lines
without a word; it skips a line that is longer than its reader may hold. This runs only after such
a file was found: a sound night does not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.bounds import Bounds
from jobs.dumps.files import InputFile, file_uri
from jobs.dumps.statements import too_long
from jobs.dumps.unpacking import Archive, Lines
from jobs.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SALVAGED = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("problem", pa.string()),
        pa.field("readable", pa.string()),
        pa.field("numbers", pa.list_(pa.int64())),
        pa.field("reasons", pa.list_(pa.string())),
        pa.field("beginnings", pa.list_(pa.binary())),
    ]
)
_DDL = (
    "path string, problem string, readable string, numbers array<bigint>, reasons array<string>, "
    "beginnings array<binary>"
)


@dataclass(frozen=True)
class LeftOut:
    """A line of a salvaged file that its copy has as an empty one: why, and how it begins."""

    number: int
    reason: str
    beginning: bytes


@dataclass(frozen=True)
class Salvaged:
    """A file that Spark cannot read as it is, and what could be read of it."""

    path: str
    #: What is wrong with the archive; None where only some lines are left out.
    problem: str | None
    #: A plain file with the same lines under the same numbers; None where nothing could be read.
    readable: str | None
    left_out: tuple[LeftOut, ...]


#: zlib makes no more text of a byte.
_MOST_EXPANSION = 1_032
#: So many files are asked for their last bytes at a time.
_AT_A_TIME = 16
#: A last line without a line feed counts one byte more than the file has; a byte order mark, which
#: Hadoop leaves out, three less.
_SLACK = 16


def may_be_unreadable(files: Sequence[InputFile], bounds: Bounds) -> list[InputFile]:
    """The files that may be why Spark's job failed: archives, and what can hold a long line."""
    return [file for file in files if file.is_archive or _may_have_long_line(file, bounds)]


def with_skipped_lines(
    spark: SparkSession,
    files: Sequence[InputFile],
    bounds: Bounds,
    count_bytes: Callable[[], Mapping[str, int]],
) -> list[InputFile]:
    """The files of which fewer bytes came than they have: Hadoop skipped a line, too long for it.

    An archive's size is what its last four bytes say, so that one of several members, whose last
    bytes speak of the last member alone, may be named here too. ``count_bytes``: by URI the bytes
    that came; asked only where a file is so large that it can hold such a line.
    """
    large = [file for file in files if _may_have_long_line(file, bounds)]
    if not large:
        return []
    came = count_bytes()

    def is_short(file: InputFile) -> bool:
        missing = _size_of_text(spark, file) - came.get(file_uri(file.path), 0)
        if file.is_archive:
            return (missing + _SLACK) % 2**32 > 2 * _SLACK
        return missing > _SLACK

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return [file for file, short in zip(large, pool.map(is_short, large), strict=True) if short]


def _may_have_long_line(file: InputFile, bounds: Bounds) -> bool:
    return file.size * (_MOST_EXPANSION if file.is_archive else 1) > bounds.line_bytes


def _size_of_text(spark: SparkSession, file: InputFile) -> int:
    """The bytes of a file's text; of an archive what RFC 1952 calls ISIZE: modulo 2**32."""
    if not file.is_archive:
        return file.size
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(file.path)  # type: ignore[union-attr]
    file_system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    stream = file_system.open(path)
    try:
        stream.seek(file.size - 4)
        # Java reads the highest byte first, an archive has the lowest first.
        return int.from_bytes((stream.readInt() % 2**32).to_bytes(4, "big"), "little")
    finally:
        stream.close()


def salvage(
    spark: SparkSession, files: Sequence[InputFile], into: Location, bounds: Bounds
) -> list[Salvaged]:
    """Reads files to their end, on the executors; copies those that Spark cannot read."""
    if not files:
        return []
    target = into.uri

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [
                _salvage(each["path"], each["size"], bounds, target, each["number"])
                for each in batch.to_pylist()
            ]
            yield pa.RecordBatch.from_pylist([row for row in rows if row], schema=_SALVAGED)

    numbered = [(number, file.path, file.size) for number, file in enumerate(files)]
    frame = spark.createDataFrame(numbered, "number int, path string, size bigint")
    checked = frame.repartition(min(len(files), 64), "number").mapInArrow(check, _DDL)
    return [
        Salvaged(
            row["path"],
            row["problem"],
            row["readable"],
            tuple(
                LeftOut(number, reason, bytes(beginning))
                for number, reason, beginning in zip(
                    row["numbers"], row["reasons"], row["beginnings"], strict=True
                )
            ),
        )
        for row in checked.collect()
    ]


def _is_readable(lines: Lines, size: int, bounds: Bounds) -> bool:
    """Whether Spark can read a file as far as it is to be read."""
    archive = Archive(size, bounds) if lines.is_archive else None
    for line in lines:
        if line.size > bounds.line_bytes:
            return False
        if archive is not None and archive.refuses(line.size) is not None:
            return True
    return lines.problem is None


def _salvage(path: str, size: int, bounds: Bounds, into: str, number: int) -> dict[str, Any] | None:
    """What ``_SALVAGED`` has of a file; None where Spark can read it."""
    lines = Lines(path, bounds)
    if _is_readable(lines, size, bounds):
        return None
    readable = Location(into) / f"{number}.jsonl"
    readable.file_system.create_dir(readable.base.rsplit("/", 1)[0], recursive=True)
    archive = Archive(size, bounds) if lines.is_archive else None
    left_out: list[LeftOut] = []
    with readable.file_system.open_output_stream(readable.base) as stream:
        for line_number, line in enumerate(lines, 1):
            over = None if archive is None else archive.refuses(line.size)
            refused = over
            if line.size > bounds.line_bytes:
                refused = over or too_long(line.size, bounds)
            if refused is not None:
                kept = refused.kept(line.text)
                left_out.append(LeftOut(line_number, refused.reason, kept))
            stream.write(b"\n" if refused else line.text + b"\n")
            if over is not None:
                break
        written = stream.tell()
    return {
        "path": path,
        "problem": lines.problem,
        "readable": readable.uri if written else None,
        "numbers": [each.number for each in left_out],
        "reasons": [each.reason for each in left_out],
        "beginnings": [each.beginning for each in left_out],
    }
