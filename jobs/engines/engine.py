"""Interface of an engine: slices -> pieces -> shards -> pieces.

An engine opens files or has them opened, runs the steps of a job somewhere, and brings each piece
to the task of its shard. It decides nothing: what a step does with bytes and rows is the same on
every engine.
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from .pieces import Piece

#: Bytes of text for a byte of an archive: lines that repeat themselves compress to a 27th.
_UNPACKED = 25
#: A file up to this size is read whole, and its bytes handed over. A larger one is opened where it
#: is read, in ranges: see ``Slice``.
MOST_BYTES = 256 << 20


class InputFile(NamedTuple):
    """A dump file: its path or URI, and its size in bytes."""

    path: str
    size: int

    @property
    def is_archive(self) -> bool:
        """True if it is compressed, by its name."""
        return self.path.endswith(".gz")

    @property
    def unpacked_size(self) -> int:
        """The approximate number of bytes of text in it, rather too many than too few."""
        return self.size * (_UNPACKED if self.is_archive else 1)


class Slice(NamedTuple):
    """A file of the input, or a range of one.

    ``what``: the table, or the dump, that it belongs to. ``number``: its place among all slices.
    ``size``: the bytes of the file. ``start``, ``stop``: the range, in bytes of a plain dump, in
    row groups of a Parquet file; a ``stop`` of 0: the whole file.
    """

    number: int
    what: str
    path: str
    size: int
    start: int = 0
    stop: int = 0

    @property
    def is_whole(self) -> bool:
        """True if it is a file and not a range."""
        return self.stop == 0


def in_tasks(slices: Iterable[Slice], total_bytes: int, tasks: int) -> Iterator[list[Slice]]:
    """The slices by task, for so many tasks at most, which have about equally much to read.

    Slices that follow each other stay together: files of neighbouring times have the most in
    common, and a task takes what it met before as it is.

    >>> sizes = [4, 1, 1, 2, 4]
    >>> slices = [Slice(number, "x", "/x", size) for number, size in enumerate(sizes)]
    >>> [[each.size for each in of_task] for of_task in in_tasks(slices, sum(sizes), 3)]
    [[4], [1, 1, 2], [4]]
    """
    before = 0

    def task_of(slice_: Slice) -> int:
        """The task in whose share of all bytes the middle of the slice lies."""
        nonlocal before
        twice_the_middle = 2 * before + slice_.size
        before += slice_.size
        return min(twice_the_middle * tasks // max(1, 2 * total_bytes), tasks - 1)

    for _, task_slices in groupby(slices, task_of):
        yield list(task_slices)


#: A slice, and its file's bytes where the engine has them.
Opened: TypeAlias = tuple[Slice, pa.Buffer | None]
#: A step from the slices of a task, however they are dealt to tasks and in any order, to pieces.
SliceStep: TypeAlias = Callable[[Iterable[Opened]], Iterator[Piece]]
#: A step from the pieces of a shard to others.
ShardStep: TypeAlias = Callable[[Sequence[Piece]], Iterator[Piece]]


class Work(Protocol):
    """The work on a shard of groups: their situations are found, each is evaluated, on any core,
    and by the verdicts the groups are judged. It travels to where it is done, and holds plain
    values.

    Between machines a situation travels as a row (``schemas.SITUATIONS``), and so does its verdict.
    """

    def find_groups(self, pieces: Sequence[Piece]) -> Any:
        """The groups of a shard, with their situations. They can be pickled."""

    def situations(self, groups: Any) -> Iterator[Any]:
        """The situations of the groups, as they are evaluated."""

    def evaluate(self, situations: Iterable[Any]) -> Iterator[Any]:
        """The verdicts on the situations, those on some at a time."""

    def to_row(self, situation: Any) -> tuple[Any, ...]:
        """The situation as a row: the columns of ``situations``, and the rest of it as bytes."""

    def recompute(self, row: Sequence[Any]) -> tuple[list[Any], bytes]:
        """The situation of such a row, evaluated: who takes what, and the rest of the verdict."""

    def verdicts(self, rows: pa.RecordBatch) -> Any:
        """The verdicts of rows of situations, which have in ``recomputed`` what came of each."""

    def judge(self, groups: Any, verdicts: Iterable[Any]) -> Iterator[Piece]:
        """The pieces of the shard; the verdicts come in parts, and in any order."""


@contextmanager
def tuned() -> Iterator[None]:
    """Lets Python look for cycles of objects a hundredth as often within the block.

    The steps make millions of tuples and no cycles, and each look costs a walk over all of them.
    """
    before = gc.get_threshold()
    gc.set_threshold(100 * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Engine(Protocol):
    """An engine, for as long as a job lasts.

    The pieces that it holds are chosen by kind, ``pieces.only(*kinds)``, and put together,
    ``pieces.and_also(others)``.
    """

    name: str
    #: The versions of what it runs on, for the summary.
    versions: Mapping[str, str]

    def shards(self, input_bytes: int) -> int:
        """The number of shards into which to cut an input of so many bytes."""

    def list_files(self, paths: Sequence[str]) -> list[InputFile]:
        """Every dump file that the paths name, sorted; InputError where there is none."""

    def map(self, slices: Sequence[Slice], step: SliceStep) -> Any:
        """The pieces of all slices."""

    def plan_tasks(self, rows: int, groups: int) -> None:
        """Plans the tasks of the shards, of which so many rows and groups were read."""

    def given(self, pieces: Iterable[Piece]) -> Any:
        """Pieces that the driver has."""

    def by_shard(self, pieces: Any, step: ShardStep) -> Any:
        """Runs the step on the pieces of each shard."""

    def judge_groups(self, pieces: Any, work: Work) -> Any:
        """Does the work on the groups of all shards; a situation is evaluated on any core."""

    def collect(self, pieces: Any) -> Iterator[Piece]:
        """The pieces, one after the other, in the driver."""

    def gather(self, pieces: Any, merge: ShardStep) -> Iterator[Piece]:
        """The pieces in the driver, where many of them are few that ``merge`` made."""
