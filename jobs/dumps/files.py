"""paths -> files: what the operator named, as the list of files that Spark reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jobs.dumps.on_disk import check_visible, files_on_disk, is_hidden
from jobs.errors import InputError
from jobs.failures import sentence_of_spark
from jobs.storage import absolute_paths
from jobs.text import visible

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
    def is_archive(self) -> bool:
        """Whether it is compressed, by its name."""
        return self.path.endswith(".gz")

    @property
    def unpacked_size(self) -> int:
        """About how many bytes of text are in it, rather too many than too few."""
        return self.size * (_UNPACKED if self.is_archive else 1)


def list_files(spark: SparkSession, paths: Sequence[str]) -> list[InputFile]:
    """Every file that the paths name: files, folders (with all below them) and globs.

    This machine's files as ``on_disk`` lists them; other file systems by Hadoop, so that any path
    that Spark reads can be listed. A path that is there is taken as it is, else it is a glob. Files
    whose names begin with ``_`` or ``.`` are no dumps (Spark skips them without a word): below a
    folder they are left out, named outright they are an error. Raises InputError for a path that
    names nothing, or that cannot be listed.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415 - Spark's workers import this module
    from pyspark.errors import PySparkException  # noqa: PLC0415

    jvm: Any = spark.sparkContext._jvm
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    local: list[str] = []
    files: dict[str, InputFile] = {}
    for path in _given(paths):
        try:
            pattern = jvm.org.apache.hadoop.fs.Path(path)
            if _is_local(path) or pattern.getFileSystem(conf).getScheme() == "file":
                local.append(path)
            else:
                _list_by_hadoop(pattern, pattern.getFileSystem(conf), files)
        except (Py4JError, PySparkException) as error:
            raise InputError(
                f"cannot list {visible(path)}: {sentence_of_spark(str(error))}"
            ) from error
    on_disk = _list_on_disk(local)
    _check_names(on_disk, jvm.java.lang.System.getProperty("sun.jnu.encoding"))
    return sorted([*files.values(), *on_disk], key=lambda file: file.path)


def list_local_files(paths: Sequence[str]) -> list[InputFile] | None:
    """What ``list_files`` gives for local paths, without Spark; None for other file systems."""
    given = _given(paths)
    if not all(path.startswith("/") or _is_local(path) for path in given):
        return None
    return _list_on_disk(given)


#: What ``java.net.URI`` quotes: of ASCII these, control characters, and the spaces of Unicode.
_NOT_IN_URI = re.compile(
    r"""[\x00-\x20"#%<>?\[\\\]^`{|}\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"""
)


def file_uri(path: str) -> str:
    """The path of a dump file as Spark names the file that a line is in.

    >>> file_uri("file:/dumps/night 1.jsonl")
    'file:/dumps/night%201.jsonl'
    """
    return _NOT_IN_URI.sub(lambda character: quote(character.group()), path)


def _given(paths: Sequence[str]) -> list[str]:
    if not all(paths):
        raise InputError("dumps: expected a file, a folder or a glob, came an empty text")
    return absolute_paths(paths)


def _is_local(path: str) -> bool:
    return path.startswith("file:")


def _list_on_disk(paths: Sequence[str]) -> list[InputFile]:
    return [InputFile(f"file:{path}", size) for path, size in files_on_disk(paths)]


def _check_names(files: Sequence[InputFile], encoding: str) -> None:
    """InputError where Java, in the locale C, cannot open a file by its name."""
    for file in files:
        if encoding != "UTF-8" and not file.path.isascii():
            raise InputError(
                f"{visible(file.path)}: expected that Java reads names of files as UTF-8, it reads "
                f"them as {encoding}; set LC_ALL=C.UTF-8 and start again"
            )


#: What a glob of Hadoop's has, and a plain path has not.
_GLOB = re.compile(r"[*?\[\]{}\\]")


def _list_by_hadoop(pattern: Any, file_system: Any, files: dict[str, InputFile]) -> None:
    path = str(pattern.toString())
    is_there = _GLOB.search(path) and file_system.exists(pattern)
    named = [file_system.getFileStatus(pattern)] if is_there else file_system.globStatus(pattern)
    if not named:
        raise InputError(f"no dump at {visible(path)}")
    for status in named:
        if status.isFile():
            check_visible(status.getPath().toString(), status.getPath().getName())
            _add(files, status)
            continue
        below = file_system.listFiles(status.getPath(), True)
        depth = status.getPath().depth()
        while below.hasNext():
            each = below.next()
            parts = str(each.getPath().toUri().getPath()).strip("/").split("/")[depth:]
            if not any(is_hidden(part) for part in parts):
                _add(files, each)


def _add(files: dict[str, InputFile], status: Any) -> None:
    path = str(status.getPath().toString())
    files[path] = InputFile(path, int(status.getLen()))
