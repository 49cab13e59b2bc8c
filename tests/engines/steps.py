"""Small steps for engines: each in a module, for they travel to other processes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import chain, starmap
from typing import Any

import pyarrow as pa

from jobs.engines.engine import Opened, Slice, SliceStep
from jobs.engines.pieces import Piece, in_parts, pack_value, unpack_value
from jobs.storage import Location

SHARDS = 3
#: A number, its square, and the task that found it.
Found = tuple[int, int, int]


def of_each(step: Callable[[Slice, pa.Buffer | None], Iterator[Piece]]) -> SliceStep:
    """A step that looks at each slice alone."""

    @wraps(step)
    def of_all(opened: Iterable[Opened]) -> Iterator[Piece]:
        return chain.from_iterable(starmap(step, opened))

    return of_all


@of_each
def read_lines(slice_: Slice, content: pa.Buffer | None) -> Iterator[Piece]:
    """Each line of the slice, in the shard of its length; and what the slice is, for all.

    A file whose bytes did not come is opened here.
    """
    was_handed = content is not None
    data = content.to_pybytes() if content is not None else Location(slice_.path).read_bytes()
    if not slice_.is_whole:
        data = data[slice_.start : slice_.stop]
    yield pack_value(-1, "slice", (slice_.number, slice_.what, slice_.path, len(data)))
    if not slice_.is_whole:
        yield pack_value(-1, "range", was_handed)
    for line in data.split():
        yield Piece(len(line) % SHARDS, "line", line)


@of_each
def was_handed(slice_: Slice, content: pa.Buffer | None) -> Iterator[Piece]:
    """The bytes of a file that the engine read itself; None of one that the step has to open."""
    data = None if content is None else content.to_pybytes()
    yield pack_value(-1, "handed", (slice_.number, data))


@of_each
def in_which_task(slice_: Slice, content: pa.Buffer | None) -> Iterator[Piece]:
    """The task of Spark that has the slice, and the size of its file."""
    from pyspark import TaskContext  # noqa: PLC0415 - Spark takes its time to import

    context = TaskContext.get()
    assert context is not None
    yield pack_value(-1, "task", (context.partitionId(), slice_.size))


@of_each
def nothing_at_all(slice_: Slice, content: pa.Buffer | None) -> Iterator[Piece]:
    """A slice that comes to nothing."""
    return iter(())


@of_each
def fail_on(slice_: Slice, content: pa.Buffer | None) -> Iterator[Piece]:
    """A step with an error of its own, in the middle."""
    yield Piece(0, "line", b"before")
    raise StepError(slice_.what)


class StepError(Exception):
    """An error that no engine has."""


def count(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """What a shard has: one piece, so that two calls for a shard would show."""
    (shard,) = {piece.shard for piece in pieces}
    counts = Counter((piece.kind, piece.data) for piece in pieces)
    yield pack_value(shard, "counts", sorted(counts.items()))


def to_next_shard(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Every piece in the shard beside."""
    return (piece._replace(shard=(piece.shard + 1) % SHARDS) for piece in pieces)


def of_even_shards(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """The pieces of the even shards; of others nothing."""
    return (piece for piece in pieces if piece.shard % 2 == 0)


def fail_on_shard(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """An error in a step over shards."""
    raise StepError(pieces[0].kind)


#: A situation of the work below: what it is, and its number.
Situation = tuple[str, int]


@dataclass(frozen=True)
class Squares:
    """Work: the squares of a shard's numbers, evaluated one by one, each plus ``more``."""

    more: int

    def find_groups(self, pieces: Sequence[Piece]) -> list[int]:
        """The numbers; an error where the pieces are not those of one shard's numbers."""
        assert {piece.kind for piece in pieces} == {"number"}
        assert len({piece.shard for piece in pieces}) == 1
        return sorted(int(unpack_value(piece.data)) for piece in pieces)

    def situations(self, groups: list[int]) -> Iterator[Situation]:
        """One for each number that is not negative."""
        return (("square of", number) for number in groups if number >= 0)

    def evaluate(self, situations: Iterable[Situation]) -> Iterator[list[Found]]:
        """The verdicts, those on three at a time."""
        return (list(map(self.evaluate_one, some)) for some in in_parts(situations, 3))

    def evaluate_one(self, situation: Situation) -> Found:
        """The number, its square, and the process that found it."""
        what, number = situation
        assert what == "square of"
        return number, number * number + self.more, _task()

    def to_row(self, situation: Situation) -> tuple[object, ...]:
        """The number is the list of client ids, and not in the rest. 16 situations are few, 17 are
        many.
        """
        what, number = situation
        place = ("c", f"G{number // 2}", "T", str(number))
        ids = [str(number)]
        return (*place, None, None, None, ids, [], [], [], 19_000, 1, what.encode())

    def recompute(self, row: Sequence[Any]) -> tuple[list[object], bytes]:
        """Nobody takes anything."""
        *_, ids, _, _, _, _, _, what = row
        found = self.evaluate_one((what.decode(), int(ids[0])))
        return [], pack_value(0, "", found).data

    def verdicts(self, rows: pa.RecordBatch) -> list[Found]:
        """The verdicts of rows."""
        recomputed: Any = rows.column("recomputed")
        return [unpack_value(each["verdict"]) for each in recomputed.to_pylist()]

    def judge(self, groups: list[int], verdicts: Iterable[list[Found]]) -> Iterator[Piece]:
        """The numbers with their squares, and how many tasks were at it."""
        found = list(chain.from_iterable(verdicts))
        squares = sorted((number, square) for number, square, _ in found)
        yield pack_value(len(groups) % SHARDS, "squares", (groups, squares))
        yield pack_value(-1, "tasks", sorted({task for *_, task in found}))


def _task() -> int:
    from pyspark import TaskContext  # noqa: PLC0415 - of the test on Spark alone

    context = TaskContext.get()
    return os.getpid() if context is None else context.partitionId()


@dataclass(frozen=True)
class Failing(Squares):
    """Work that fails at one of its steps."""

    where: str = "evaluate"

    def find_groups(self, pieces: Sequence[Piece]) -> list[int]:
        """Fails at ``find``."""
        self._fail("find")
        return super().find_groups(pieces)

    def evaluate_one(self, situation: Situation) -> Found:
        """Fails at ``evaluate``."""
        self._fail("evaluate")
        return super().evaluate_one(situation)

    def judge(self, groups: list[int], verdicts: Iterable[list[Found]]) -> Iterator[Piece]:
        """Fails at ``judge``."""
        self._fail("judge")
        return super().judge(groups, verdicts)

    def _fail(self, where: str) -> None:
        if where == self.where:
            raise StepError(where)
