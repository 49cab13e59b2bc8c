"""The engine on Spark: it loads the files, brings pieces to their shards, and lends its cores.

No row of Spark has a column of ours: a row is a piece. Files on a disk, or on a mount that all
machines have, are opened where they are read, as one process does. Others are read by Spark's own
source ``binaryFile``, so with its file systems and credentials, and their bytes are handed to the
step.

That is so of files of up to 256 MB, which all are that ingest writes. A larger plain dump is read
in ranges, a larger table by its row groups, a larger archive as a stream: PyArrow opens each where
it is read. One that it cannot open is refused in one sentence before anything runs.
"""

import gc
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import reduce
from itertools import chain, groupby, islice
from math import inf
from operator import attrgetter
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..dumps.files import InputFile, check_visible, given_paths, is_local, list_local_files
from ..engines.engine import (
    MOST_BYTES,
    Opened,
    ShardStep,
    Slice,
    SliceStep,
    Work,
    in_tasks,
    tuned,
)
from ..environment import sentence_of_spark
from ..errors import InputError
from ..failures import one_line
from ..pieces import Piece, pack_value, unpack_value
from ..storage import Location
from ..text import visible

_DDL = "shard int, kind string, data binary"
_COLUMNS: dict[str, pa.DataType] = {
    "shard": pa.int32(),
    "kind": pa.string(),
    "data": pa.binary(),
}
_SCHEMA = pa.schema(_COLUMNS)
#: Kinds of pieces between a shard's begin and its end.
_QUESTION, _ANSWER = "question", "answer"

#: Files are read by their very names.
_BY_NAME = {"__globPaths__": "false", "recursiveFileLookup": "true"}
#: So many bytes are collected at once; more come in parts of so many.
_COLLECTED_AT_ONCE = 64 << 20
_COLLECTED_PART = 16 << 20
#: A task costs as much as a megabyte of input. For each core there are two, so that it seldom waits
#: for another one; of a large input each holds about so many bytes.
_LEAST_BYTES_OF_A_SHARD = 1 << 20
_MOST_BYTES_OF_A_SHARD = 32 << 20
_TASKS_OF_A_CORE = 2
#: A shard with so many questions at most answers them where it is: some seconds of one core.
_MOST_QUESTIONS_IN_PLACE = 16


@dataclass(frozen=True)
class Frame:
    """Pieces as rows. ``most_bytes``: they have about so many at most, as far as that is known."""

    rows: DataFrame
    most_bytes: float = inf

    def only(self, *kinds: str) -> "Frame":
        """Those of some kinds."""
        return Frame(self.rows.where(F.col("kind").isin(*kinds)), self.most_bytes)

    def and_also(self, others: "Frame") -> "Frame":
        """These and others."""
        return Frame(self.rows.unionAll(others.rows), self.most_bytes + others.most_bytes)


class SparkEngine(AbstractContextManager["SparkEngine"]):
    """Runs the steps in Spark's workers. What is kept between steps is let go when it is closed."""

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.versions: Mapping[str, str] = {"spark": spark.version, "pyspark": pyspark.__version__}
        self._kept: list[DataFrame] = []
        self._most_tasks = _TASKS_OF_A_CORE * cores_of(spark)
        self._tasks = self._most_tasks
        self._input_bytes = inf

    def __exit__(self, *_: object) -> None:
        for rows in self._kept:
            rows.unpersist()

    def shards(self, input_bytes: int) -> int:
        """Some for each core, fewer of a small input, more of a large one: a task holds one."""
        least = max(1, input_bytes // _LEAST_BYTES_OF_A_SHARD)
        self._tasks = min(self._most_tasks, least)
        self._input_bytes = input_bytes
        return max(self._tasks, -(-input_bytes // _MOST_BYTES_OF_A_SHARD))

    def list_files(self, paths: Sequence[str]) -> list[InputFile]:
        """This machine's files as every engine lists them, others as Spark does, with globs."""
        given = given_paths(paths)
        files = list_local_files([path for path in given if is_local(path)]) or []
        for path in given:
            if not is_local(path):
                files += self._list(path)
        return sorted(files, key=lambda file: file.path)

    def _list(self, path: str) -> list[InputFile]:
        """The files below a folder, or those that a glob names, and their sizes."""
        check_visible(path, path.rstrip("/").rsplit("/", 1)[-1])
        files = self.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        try:
            rows = files.load(path).select("path", "length").collect()
            return [InputFile(*row) for row in rows]
        except (PySparkException, Py4JError) as error:
            if "PATH_NOT_FOUND" in str(error):
                raise InputError(f"no dump at {visible(path)}") from error
            raise InputError(
                f"cannot list {visible(path)}: {sentence_of_spark(str(error))}"
            ) from error

    def map(self, slices: Sequence[Slice], step: SliceStep) -> Frame:
        """The pieces of all slices; files that cannot be handed over are opened where they are
        read. InputError, before anything runs, for one that only Spark can open.
        """
        frames = []
        handed = list(filter(_is_handed, slices))
        opened = [each for each in slices if not _is_handed(each)]
        for path, size in {each.path: each.size for each in opened if each.size}.items():
            _check_can_be_opened(path, size)
        if handed:
            files = self.spark.read.format("binaryFile").options(**_BY_NAME)
            contents = files.load([each.path for each in handed])
            contents = contents.select("path", "content")
            frames.append(contents.mapInArrow(_of_contents(handed, step), _DDL))
        if opened:
            size = sum(each.size for each in opened)
            of_tasks = list(in_tasks(opened, size, self._tasks))
            numbers = self.spark.range(0, len(of_tasks), 1, len(of_tasks))
            frames.append(numbers.mapInArrow(_of_numbers(of_tasks, step), _DDL))
        rows = reduce(DataFrame.unionAll, frames or [self.given([]).rows])
        return self._keep(rows, self._input_bytes)

    def given(self, pieces: Iterable[Piece]) -> Frame:
        """Pieces that the caller has."""
        there = list(pieces)
        # By way of pandas and Arrow: rows of Python, and none at all, would need a worker.
        if not there:
            return Frame(self.spark.sql("SELECT 0 shard, '' kind, X'' data WHERE false"), 0)
        rows = self.spark.createDataFrame(pd.DataFrame(there), _DDL)
        return Frame(rows, sum(len(piece.data) for piece in there))

    def by_shard(self, pieces: Frame, step: ShardStep) -> Frame:
        """What the pieces of each shard become."""
        # All pieces of a shard next to each other.
        grouped = pieces.rows.repartition(self._tasks, "shard").sortWithinPartitions("shard")
        return self._keep(grouped.mapInArrow(_of_shards(step), _DDL), pieces.most_bytes)

    def ask(self, pieces: Frame, work: Work) -> Frame:
        """A shard of few questions answers them itself. Those of a large one are spread by number
        over all cores, and it begins again for its end: a giant group has all the cores there are.
        """
        made = self.by_shard(pieces, _whole_or_questions(work)).rows
        is_question = F.col("kind") == _QUESTION
        # Told apart here: Spark would do it in tasks of its own, by default 200 of them.
        sizes = made.select("shard", is_question, F.length("data")).collect()
        large = list({shard for shard, asks, _ in sizes if asks})
        done = Frame(made.where(~is_question), sum(size for _, asks, size in sizes if not asks))
        if not large:
            return done
        answer: Any = F.pandas_udf(_answers(work), "binary")  # type: ignore[attr-defined]
        asked = made.where(is_question)
        answered = asked.repartition(self._most_tasks).select(
            "shard", F.lit(_ANSWER).alias("kind"), answer("data").alias("data")
        )
        of_large = pieces.rows.where(F.col("shard").isin(large)).unionAll(answered)
        return done.and_also(self.by_shard(Frame(of_large), _end(work)))

    def collect(self, pieces: Frame) -> Iterator[Piece]:
        """The pieces; few of them are held in the driver at a time.

        Java holds a partition as a whole, and those of a giant group are in one.
        """
        is_little = pieces.most_bytes <= _COLLECTED_AT_ONCE
        size = 0 if is_little else self._size_of(pieces)
        parts = -(-size // _COLLECTED_PART)
        rows = (
            pieces.rows.collect()
            if size <= _COLLECTED_AT_ONCE
            # By a hash: to deal rows out in turn, Spark would sort them all first.
            else pieces.rows.repartition(parts, F.xxhash64("data")).toLocalIterator()
        )
        for row in rows:
            yield Piece(row[0], row[1], bytes(row[2]))

    def _size_of(self, pieces: Frame) -> int:
        row = pieces.rows.select(F.sum(F.length("data"))).first()
        return 0 if row is None else row[0] or 0

    def _keep(self, rows: DataFrame, most_bytes: float) -> Frame:
        # Java would keep in its memory what it reads once or twice.
        self._kept.append(rows.persist(StorageLevel.DISK_ONLY))
        return Frame(self._kept[-1], most_bytes)


#: Names that Spark's listing leaves out, also of files that are named.
_LEFT_OUT = re.compile(r".*/[._][^/]*|.*\._COPYING_", re.DOTALL)


def _is_handed(slice_: Slice) -> bool:
    """Whether Spark reads the file. It leaves out empty files and some names."""
    is_small = slice_.is_whole and 0 < slice_.size <= MOST_BYTES
    return is_small and not is_local(slice_.path) and not _LEFT_OUT.fullmatch(slice_.path)


def _check_can_be_opened(path: str, size: int) -> None:
    try:
        Location(path).exists()
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = one_line(str(error))
        raise InputError(
            f"{visible(path)} has {size:,} bytes. Spark hands over files of up to {MOST_BYTES:,} "
            f"bytes; larger ones are opened by PyArrow, which cannot: {reason}. Split the file"
        ) from error


def cores_of(spark: SparkSession) -> int:
    """How many tasks run at a time; of a session of Spark Connect, which does not tell it, some."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except Exception:
        return 4


Batches = Iterator[pa.RecordBatch]


def _of_contents(slices: Sequence[Slice], step: SliceStep) -> Callable[[Batches], Batches]:
    by_path: dict[str, list[Slice]] = defaultdict(list)
    for each in slices:
        by_path[_place(each.path)[1]].append(each)

    def opened(batches: Batches) -> Iterator[Opened]:
        for batch in batches:
            paths: list[Any] = batch.column("path").to_pylist()
            for path, content in zip(paths, batch.column("content"), strict=True):
                authority, place = _place(path)
                slice_ = next(
                    each for each in by_path[place] if _place(each.path)[0] in ("", authority)
                )
                yield slice_, content.as_buffer()

    return lambda batches: _in_worker(_rows(step(opened(batches))))


_URI = re.compile(r"(?:[a-zA-Z][\w+.-]*:)?(?://(?P<authority>[^/]*))?(?P<path>/.*)", re.DOTALL)


def _place(path: str) -> tuple[str, str]:
    """The authority and the path of a file, whichever of its names it comes by: Spark adds the host
    that ``hdfs:///`` leaves out, and takes ``..`` away.

    >>> _place("hdfs:///a/../b"), _place("hdfs://host:8020/b")
    (('', '/b'), ('host:8020', '/b'))
    """
    match = _URI.fullmatch(path)
    authority, place = (match["authority"] or "", match["path"]) if match else ("", path)
    return authority, "/" + posixpath.normpath(place).lstrip("/")


def _of_numbers(
    of_tasks: Sequence[Sequence[Slice]], step: SliceStep
) -> Callable[[Batches], Batches]:
    def opened(batches: Batches) -> Iterator[Opened]:
        for batch in batches:
            numbers: list[Any] = batch.column(0).to_pylist()
            for slice_ in chain.from_iterable(of_tasks[number] for number in numbers):
                yield slice_, None if slice_.size else pa.py_buffer(b"")

    return lambda batches: _in_worker(_rows(step(opened(batches))))


def _of_shards(step: ShardStep) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for _, pieces in groupby(_pieces(batches), attrgetter("shard")):
            yield from _rows(step(list(pieces)))

    return lambda batches: _in_worker(run(batches))


def _whole_or_questions(work: Work) -> ShardStep:
    """The end of a shard of few questions, else its questions."""

    def step(pieces: Sequence[Piece]) -> Iterator[Piece]:
        begun = work.begin(pieces)
        questions = iter(work.questions(begun))
        few = list(islice(questions, _MOST_QUESTIONS_IN_PLACE))
        more = next(questions, None)
        if more is None:
            yield from work.end(begun, map(work.answer, few))
            return
        for question in chain(few, [more], questions):
            yield pack_value(pieces[0].shard, _QUESTION, question)

    return step


def _answers(work: Work) -> Callable[[Iterator[pd.Series]], Iterator[pd.Series]]:
    """The pandas UDF around what the work answers."""

    def answer_one(question: bytes) -> bytes:
        return pack_value(0, _ANSWER, work.answer(unpack_value(question))).data

    def answer(questions: Iterator[pd.Series]) -> Iterator[pd.Series]:
        return _in_worker(batch.map(answer_one) for batch in questions)

    # The kind of the UDF follows from its hints, which have to be there as objects.
    answer.__annotations__ = {"questions": Iterator[pd.Series], "return": Iterator[pd.Series]}
    return answer


def _end(work: Work) -> ShardStep:
    def step(pieces: Sequence[Piece]) -> Iterator[Piece]:
        answers = [each for each in pieces if each.kind == _ANSWER]
        begun = work.begin([each for each in pieces if each.kind != _ANSWER])
        del pieces
        return work.end(begun, _unpacked(answers))

    return step


def _unpacked(answers: list[Piece]) -> Iterator[Any]:
    """The answers; each piece is let go as its answer is taken."""
    while answers:
        yield unpack_value(answers.pop().data)


def _pieces(batches: Batches) -> Iterator[Piece]:
    for batch in batches:
        shards: list[Any] = batch.column("shard").to_pylist()
        kinds: list[Any] = batch.column("kind").to_pylist()
        for shard, kind, data in zip(shards, kinds, batch.column("data"), strict=True):
            yield Piece(shard, kind, data.as_py())


def _rows(pieces: Iterable[Piece]) -> Batches:
    for piece in pieces:
        yield pa.RecordBatch.from_pylist([piece._asdict()], schema=_SCHEMA)


_Made = TypeVar("_Made")


def _in_worker(made: Iterable[_Made]) -> Iterator[_Made]:
    """What a task makes, in a worker of Spark.

    After each task Spark looks for cycles of objects, among all that the worker has ever imported:
    that takes longer than many a step. What is there when a task begins is left out from then on.
    It is no garbage, for Spark has just looked.
    """
    gc.freeze()
    with tuned():
        yield from made
