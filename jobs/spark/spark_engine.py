"""The engine on Spark: it loads the files, brings pieces to their shards, and lends its cores.

Files on a disk, or on a mount that all machines have, are opened where they are read, as one
process does. Others are read by Spark's own source ``binaryFile``, so with its file systems and
credentials, and their bytes are handed to the step.

That is so of files of up to 256 MB, which all are that ingest writes. A larger plain dump is read
in ranges, a larger table by its row groups, a larger archive as a stream: PyArrow opens each where
it is read. One that it cannot open is refused in one sentence before anything runs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from math import inf
from typing import Any

import pandas as pd
import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from ..engines import batches
from ..engines.engine import (
    MOST_BYTES,
    InputFile,
    ShardStep,
    Slice,
    SliceStep,
    Work,
    in_tasks,
)
from ..engines.environment import sentence_of_spark
from ..engines.files import (
    check_visible,
    given_paths,
    is_local,
    list_local_files,
    no_dumps,
)
from ..engines.pieces import Piece
from ..errors import InputError, SparkError
from ..storage import Location
from ..texts.failures import one_line
from ..texts.shown import visible
from .functions import recompute_allocations
from .session import unnoticed

_PIECES = from_arrow_schema(batches.PIECES)
_FOUND = from_arrow_schema(batches.FOUND)
_SPREAD = from_arrow_schema(batches.SPREAD_ROWS)

_DESCRIPTION = "spark.job.description"

#: Files are read by their very names.
_BY_NAME = {"__globPaths__": "false", "recursiveFileLookup": "true"}
#: The most bytes that are collected at once; more come in parts of so many.
_COLLECTED_AT_ONCE = 64 << 20
_COLLECTED_PART = 16 << 20
#: A task costs as much as a megabyte of input, or so many rows or groups. For each core there are
#: two, so that it seldom waits for another one; of a large input a shard has about so many bytes.
_LEAST_BYTES_OF_A_TASK = 1 << 20
_LEAST_ROWS_OF_A_TASK, _LEAST_GROUPS_OF_A_TASK = 25_000, 10
_MOST_BYTES_OF_A_SHARD = 32 << 20
TASKS_OF_A_CORE = 2
#: The pieces that the driver gathers as they are; more are merged, so many at a time.
_GATHERED, _MERGED_AT_ONCE = 2, 16


@dataclass(frozen=True)
class PieceFrame:
    """Pieces as rows. ``most_bytes``: they have about so many at most, as far as that is known.

    ``what``: what they are made of, in words, for whoever looks at Spark's jobs.
    """

    rows: DataFrame
    most_bytes: float = inf
    what: str = "pieces"

    def only(self, *kinds: str) -> "PieceFrame":
        """The pieces of some kinds."""
        return replace(self, rows=self.rows.where(F.col("kind").isin(*kinds)))

    def and_also(self, others: "PieceFrame") -> "PieceFrame":
        """The pieces of both."""
        rows = self.rows.unionAll(others.rows)
        return PieceFrame(rows, self.most_bytes + others.most_bytes, self.what)


class SparkEngine(AbstractContextManager["SparkEngine"]):
    """Runs the steps in Spark's workers. What is kept between steps is let go when it is closed."""

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.versions: Mapping[str, str] = {"spark": spark.version, "pyspark": pyspark.__version__}
        self._kept: list[DataFrame] = []
        self._most_tasks = TASKS_OF_A_CORE * cores_of(spark)
        self._tasks = self._most_tasks
        self._input_bytes = inf
        #: The situations of the groups that were judged last, with what came of each.
        self._situations: DataFrame | None = None
        #: The pieces of their report tables.
        self._judged: PieceFrame | None = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of what is kept."""
        for rows in self._kept:
            rows.unpersist()

    def shards(self, input_bytes: int) -> int:
        """Plans some per core, more of a large input, and one of a small one, whose rows come in
        the order of the groups: a task holds one at a time.
        """
        self._tasks = min(self._most_tasks, max(1, input_bytes // _LEAST_BYTES_OF_A_TASK))
        self._input_bytes = input_bytes
        least = 1 if self._tasks == 1 else self._most_tasks
        return max(least, -(-input_bytes // _MOST_BYTES_OF_A_SHARD))

    def plan_tasks(self, rows: int, groups: int) -> None:
        """Plans the tasks of the shards by what was read: bytes say little of either."""
        wanted = max(rows // _LEAST_ROWS_OF_A_TASK, groups // _LEAST_GROUPS_OF_A_TASK)
        self._tasks = min(self._most_tasks, max(1, wanted))

    def list_files(self, paths: Sequence[str]) -> list[InputFile]:
        """Lists this machine's files as every engine does, others as Spark does, with globs."""
        given = given_paths(paths)
        files = list_local_files([path for path in given if is_local(path)]) or []
        for path in given:
            if not is_local(path):
                files += self._list(path)
        if not files:
            raise no_dumps(paths)
        return sorted(files, key=lambda file: file.path)

    def _list(self, path: str) -> list[InputFile]:
        """The files below a folder, or those that a glob names, and their sizes."""
        check_visible(path, path.rstrip("/").rsplit("/", 1)[-1])
        files = self.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        try:
            return [InputFile(*row) for row in files.load(path).select("path", "length").collect()]
        except (PySparkException, Py4JError) as error:
            if "PATH_NOT_FOUND" in str(error):
                raise no_dumps([path]) from error
            reason = sentence_of_spark(str(error))
            raise InputError(f"cannot list {visible(path)}: {reason}") from error

    def map(self, slices: Sequence[Slice], step: SliceStep) -> PieceFrame:
        """The pieces of all slices; files that cannot be handed over are opened where they are
        read. InputError, before anything runs, for one that only Spark can open.
        """
        frames = []
        handed = list(filter(_is_handed, slices))
        opened = [slice_ for slice_ in slices if not _is_handed(slice_)]
        for path, size in {slice_.path: slice_.size for slice_ in opened if slice_.size}.items():
            _check_can_be_opened(path, size)
        if handed:
            files = self.spark.read.format("binaryFile").options(**_BY_NAME)
            contents = files.load([slice_.path for slice_ in handed]).select("path", "content")
            frames.append(contents.mapInArrow(batches.contents_step(handed, step), _PIECES))
        if opened:
            size = sum(slice_.size for slice_ in opened)
            by_task = list(in_tasks(opened, size, self._tasks))
            numbers = self.spark.range(0, len(by_task), 1, len(by_task))
            frames.append(numbers.mapInArrow(batches.task_numbers_step(by_task, step), _PIECES))
        rows = reduce(DataFrame.unionAll, frames or [self.given([]).rows])
        tables = ", ".join(dict.fromkeys(slice_.what for slice_ in slices))
        return self._keep(rows, self._input_bytes, f"slices -> pieces: {tables}")

    def map_rows(self, tables: Mapping[str, DataFrame], step: batches.RowStep) -> PieceFrame:
        """The pieces of the rows of tables, which go from Spark to the step as batches of Arrow."""
        rows = reduce(
            DataFrame.unionAll,
            (
                given.mapInArrow(batches.rows_step(name, step), _PIECES)
                for name, given in tables.items()
            ),
        )
        what = f"rows -> pieces: {', '.join(tables)}"
        return self._keep(rows.coalesce(1) if self._tasks == 1 else rows, self._input_bytes, what)

    def given(self, pieces: Iterable[Piece]) -> PieceFrame:
        """Pieces that the caller has."""
        there = list(pieces)
        # By way of pandas and Arrow: rows of Python, and none at all, would need a worker.
        if not there:
            return PieceFrame(self.spark.sql("SELECT 0 shard, '' kind, X'' data WHERE false"), 0)
        with unnoticed(self.spark):
            rows = self.spark.createDataFrame(pd.DataFrame(there), _PIECES)
        return PieceFrame(rows, sum(len(piece.data) for piece in there))

    def by_shard(self, pieces: PieceFrame, step: ShardStep) -> PieceFrame:
        """Runs the step on the pieces of each shard."""
        rows = self._grouped(pieces.rows).mapInArrow(batches.shards_step(step), _PIECES)
        return self._keep(rows, pieces.most_bytes, f"shards: {pieces.what}")

    def _grouped(self, rows: DataFrame) -> DataFrame:
        """All pieces of a shard next to each other."""
        return rows.repartition(self._tasks, "shard").sortWithinPartitions("shard")

    def judge_groups(self, pieces: PieceFrame, work: Work) -> PieceFrame:
        """Every situation goes through the UDF ``recompute_allocations``, beside its shard: its
        groups are found, their situations evaluated, and the groups judged, in one stage.

        The situations of a large shard are spread over all cores: a giant group has all the cores
        there are. Its groups wait for the verdicts.
        """
        found = self._grouped(pieces.rows).mapInArrow(batches.situations_step(work), _FOUND)
        self._situations = recomputed = self._recomputed(found, work)
        what = "shards of groups: situations -> allocations -> rows of tables"
        rows = recomputed.mapInArrow(batches.verdicts_step(work), _PIECES)
        made = self._keep(rows, pieces.most_bytes, what)
        is_waiting = F.col("kind").isin(*batches.OF_LARGE_SHARDS)
        # Told apart here: Spark would do it in tasks of its own, by default 200 of them.
        with self._described(what):
            sizes = made.rows.select(is_waiting, F.length("data")).collect()
        size = sum(size for waits, size in sizes if not waits)
        self._judged = PieceFrame(made.rows.where(~is_waiting), size, what)
        if any(waits for waits, _ in sizes):
            spread = made.only(batches.SPREAD).rows.mapInArrow(batches.spread_situations, _SPREAD)
            large_groups = self._recomputed(spread.repartition(self._most_tasks), work)
            self._situations = recomputed.unionByName(large_groups, allowMissingColumns=True)
            groups = made.only(batches.LARGE_GROUPS).rows.withColumn("kind", F.lit(batches.GROUPS))
            rows = groups.unionByName(large_groups, allowMissingColumns=True)
            rows = rows.repartition(self._tasks, "shard")
            rows = rows.sortWithinPartitions("shard", F.col("data").isNull())
            rows = rows.mapInArrow(batches.verdicts_step(work), _PIECES)
            self._judged = self._judged.and_also(self._keep(rows, inf, f"large {what}"))
        return self._judged

    def read_again(self) -> tuple[DataFrame, DataFrame]:
        """The pieces of the groups that were judged last, and their situations with what came of
        each, which are kept from where they are read first: the audit itself reads them once.
        """
        assert self._judged is not None and self._situations is not None  # noqa: S101 - judged
        return self._judged.rows, self._keep(self._situations, inf, "situations").rows

    def _recomputed(self, rows: DataFrame, work: Work) -> DataFrame:
        recompute = recompute_allocations(work)(*batches.SITUATION.names)
        return rows.select("*", recompute.alias("recomputed")).drop("rest")

    def collect(self, pieces: PieceFrame) -> Iterator[Piece]:
        """The pieces; few of them are held in the driver at a time.

        Java holds a partition as a whole, and those of a giant group are in one.
        """
        with self._described(pieces.what):
            rows: Any
            size = 0
            if pieces.most_bytes > _COLLECTED_AT_ONCE:
                row = pieces.rows.select(F.sum(F.length("data"))).first()
                size = (row and row[0]) or 0
            if size <= _COLLECTED_AT_ONCE:
                rows = pieces.rows.collect()
            else:
                # By a hash: to deal rows out in turn, Spark would sort them all first.
                parts = pieces.rows.repartition(-(-size // _COLLECTED_PART), F.xxhash64("data"))
                rows = parts.toLocalIterator()
        for shard, kind, data in rows:
            yield Piece(shard, kind, bytes(data))

    def gather(self, pieces: PieceFrame, merge: ShardStep) -> Iterator[Piece]:
        """The pieces in the driver, few and distinct however many tasks made them: they are merged
        in the workers, by a tree.
        """
        # One task makes one of each table.
        number = 1 if self._tasks == 1 else pieces.rows.count()
        while number > _GATHERED:
            number = -(-number // _MERGED_AT_ONCE)
            part = F.pmod(F.xxhash64("data"), F.lit(number)).cast("int")
            parts = replace(pieces, rows=pieces.rows.withColumn("shard", part))
            pieces = self.by_shard(parts, merge)
        return self.collect(pieces)

    def _keep(self, rows: DataFrame, most_bytes: float, what: str) -> PieceFrame:
        # Java would keep in its memory what it reads once or twice.
        self._kept.append(rows.persist(StorageLevel.DISK_ONLY))
        return PieceFrame(self._kept[-1], most_bytes, what)

    @contextmanager
    def _described(self, what: str) -> Iterator[None]:
        """Spark's jobs that begin in the block have this description, others their own."""
        if is_remote():  # Spark Connect has none.
            yield
            return
        context = self.spark.sparkContext
        before: Any = context.getLocalProperty(_DESCRIPTION)
        context.setLocalProperty(_DESCRIPTION, f"rebalance audit: {what}")
        try:
            yield
        finally:
            context.setLocalProperty(_DESCRIPTION, before)


@contextmanager
def in_a_sentence() -> Iterator[None]:
    """A failure of Spark in the block is a SparkError: its cause, and what to do."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkError(sentence_of_spark(str(error))) from error


#: Names that Spark's listing leaves out, also of files that are named.
_LEFT_OUT = re.compile(r".*/[._][^/]*|.*\._COPYING_", re.DOTALL)


def _is_handed(slice_: Slice) -> bool:
    """True if Spark reads the file. It leaves out empty files and some names."""
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
    """The number of tasks at a time; a guess for Spark Connect, which does not tell it."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:
        return 4


def is_here(spark: SparkSession) -> bool:
    """True if all workers are on this machine, and see its temporary folders."""
    return not is_remote() and str(spark.sparkContext.master).startswith("local")
