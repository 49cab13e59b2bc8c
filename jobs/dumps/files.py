"""paths -> files: what the operator named, as the list of files that Spark reads."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.errors import InputError
from jobs.storage import Location, absolute_paths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Bytes of text for a byte of an archive: lines that repeat themselves compress to a 27th.
_UNPACKED = 25


@dataclass(frozen=True)
class InputFile:
    """A dump file: its path as Spark names it, and its size in bytes."""

    path: str
    size: int

    @property
    def unpacked_size(self) -> int:
        """About how many bytes of text are in it, rather too many than too few."""
        return self.size * (_UNPACKED if self.path.endswith(".gz") else 1)


def list_files(spark: SparkSession, paths: Sequence[str]) -> list[InputFile]:
    """Every file that the paths name: files, folders (with all below them) and globs.

    By Hadoop's own file systems, so that any path that Spark reads can be listed. Files whose
    names begin with ``_`` or ``.`` are no dumps (Spark skips them without a word): below a folder
    they are left out, named outright they are an error. Raises InputError for a path that names
    nothing.
    """
    jvm = spark.sparkContext._jvm
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    files: dict[str, InputFile] = {}
    for path in absolute_paths(paths):
        pattern = jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]
        file_system = pattern.getFileSystem(conf)
        named = file_system.globStatus(pattern) or []
        if not named:
            raise InputError(f"no dump at {path}")
        for status in named:
            if status.isFile():
                _check_visible(status.getPath().toString(), status.getPath().getName())
                _add(files, status)
                continue
            below = file_system.listFiles(status.getPath(), True)
            depth = status.getPath().depth()
            while below.hasNext():
                each = below.next()
                parts = str(each.getPath().toUri().getPath()).strip("/").split("/")[depth:]
                if not any(_is_hidden(part) for part in parts):
                    _add(files, each)
    return sorted(files.values(), key=lambda file: file.path)


#: What Hadoop's globs have and Python's have not: {a,b}, escapes, [^a].
_GLOB_OF_HADOOP = re.compile(r"[{}\\]|\[\^")


def list_local_files(paths: Sequence[str]) -> list[InputFile] | None:
    """What ``list_files`` says of local paths, without Spark; None where that alone can tell.

    None for other file systems, and for globs that only Hadoop understands.
    """
    files: dict[str, InputFile] = {}

    def add(path: Path) -> None:
        files[f"file:{path}"] = InputFile(f"file:{path}", path.stat().st_size)

    for path in absolute_paths(paths):
        if not path.startswith("/") or _GLOB_OF_HADOOP.search(path):
            return None
        # As Hadoop has it: .. undoes the name before it, link or not, and ** is nothing but *.
        pattern = os.path.normpath(path)
        named = [Path(each) for each in glob(pattern, include_hidden=True)]  # noqa: PTH207
        if not named:
            raise InputError(f"no dump at {path}")
        for each in named:
            if each.is_file():
                _check_visible(f"file:{each}", each.name)
                add(each)
                continue
            for folder, folders, names in os.walk(each, followlinks=True):
                folders[:] = [name for name in folders if not _is_hidden(name)]
                for name in names:
                    if not _is_hidden(name):
                        add(Path(folder) / name)
    return sorted(files.values(), key=lambda file: file.path)


def _check_visible(path: str, name: str) -> None:
    if _is_hidden(name):
        raise InputError(
            f"{path}: files whose names begin with _ or . are skipped by Spark; rename it"
        )


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _add(files: dict[str, InputFile], status: Any) -> None:
    path = str(status.getPath().toString())
    files[path] = InputFile(path, int(status.getLen()))


@dataclass(frozen=True)
class DamagedFile:
    """A compressed file that ends early or is none: the problem, and what could be read of it."""

    path: str
    problem: str
    #: A plain file with all that came before the damage; None where nothing did.
    readable: str | None


_SALVAGED = pa.schema([(name, pa.string()) for name in ("path", "problem", "readable")])


def salvage_damaged(
    spark: SparkSession, files: Sequence[InputFile], into: Location
) -> list[DamagedFile]:
    """Reads every .gz file to its end, on the executors; copies what is readable of damaged ones.

    Spark fails the whole job on one truncated file, or, told to ignore it, loses its lines without
    a word. This is for after such a failure: a sound night does not pay for it.
    """
    compressed = [file.path for file in files if file.path.endswith(".gz")]
    if not compressed:
        return []
    target = into.uri

    def check(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [_salvage(each["path"], target, each["number"]) for each in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist([row for row in rows if row], schema=_SALVAGED)

    numbered = spark.createDataFrame(list(enumerate(compressed)), "number int, path string")
    checked = numbered.repartition(min(len(compressed), 64)).mapInArrow(
        check, "path string, problem string, readable string"
    )
    return [DamagedFile(row["path"], row["problem"], row["readable"]) for row in checked.collect()]


def _salvage(path: str, into: str, number: int) -> dict[str, Any] | None:
    problem = read_gzip(path, None)
    if problem is None:
        return None
    readable = Location(into) / f"{number}.jsonl"
    readable.file_system.create_dir(readable.base.rsplit("/", 1)[0], recursive=True)
    with readable.file_system.open_output_stream(readable.base) as stream:
        read_gzip(path, stream)
        written = stream.tell()
    return {"path": path, "problem": problem, "readable": readable.uri if written else None}


_CHUNK = 1 << 20


def read_gzip(path: str, copy: Any) -> str | None:
    """What is wrong with the file, if anything; what can be read goes to ``copy``."""
    location = Location(path)
    with location.file_system.open_input_stream(location.base, compression=None) as stream:
        member = zlib.decompressobj(wbits=31)
        pending, begun = b"", False
        while True:
            data = pending or stream.read(_CHUNK)
            pending = b""
            if not data:
                return "the gzip stream ends early" if begun else None
            begun = True
            try:
                text = member.decompress(data)
            except zlib.error as error:
                return f"the gzip stream is damaged: {error}"
            if copy is not None:
                copy.write(text)
            if member.eof:
                pending, begun = member.unused_data, False
                member = zlib.decompressobj(wbits=31)
