"""Pieces as batches of Arrow: what the workers of an engine that sends rows make of them.

A row is a piece, but around the UDF: there it is a situation, with the columns of
``schemas.SITUATIONS``, which a person reads. Nothing of Spark or of pandas is imported here: each
worker would spend more time on that than on its shards.

A step is a function with a name, which Spark shows in its plans.
"""

import gc
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.grouping import grouped

from ..schemas import SITUATIONS
from .engine import Opened, ShardStep, Slice, SliceStep, Work, tuned
from .pieces import Piece, in_parts, pack_rows, pack_value, unpack_rows, unpack_value

_Made = TypeVar("_Made")

Batches = Iterator[pa.RecordBatch]
#: A step from rows of the named table to pieces.
RowStep = Callable[[str, Batches], Iterator[Piece]]

PIECES = pa.schema(dict[str, pa.DataType](shard=pa.int32(), kind=pa.string(), data=pa.binary()))
#: A row of situations, and the rest of it, which no person reads.
SITUATION = pa.schema([*SITUATIONS.schema, pa.field("rest", pa.binary())])
#: The rows of ``find_situations``: the groups of a shard, as a piece, then its situations.
FOUND = pa.schema([*PIECES, *(field.with_nullable(True) for field in SITUATION)])
#: A row of a situation that was spread.
SPREAD_ROWS = pa.schema([PIECES.field("shard"), *SITUATION])
GROUPS = "groups"
#: The pieces of a large shard, whose situations are spread: its groups, and these rows.
LARGE_GROUPS, SPREAD = OF_LARGE_SHARDS = "large groups", SITUATIONS.name
#: A shard with fewer members in all its situations has them evaluated beside it: some seconds of
#: one core.
_MEMBERS_OF_A_LARGE_SHARD = 320_000
#: The approximate bytes of a batch of rows that a step makes; of a queue or a client id in it.
_BATCH = 1 << 20
_BYTES_OF_A_NAME = 64


def in_worker(made: Iterable[_Made]) -> Iterator[_Made]:
    """Yields what a task makes, in a worker of Spark.

    After each task Spark looks for cycles of objects, among all that the worker has ever imported:
    that takes longer than many a step. What is there when a task begins is left out from then on.
    It is not garbage, for Spark has just looked.
    """
    gc.freeze()
    with tuned():
        yield from made


def contents_step(slices: Sequence[Slice], step: SliceStep) -> Callable[[Batches], Batches]:
    """Rows of a path and the bytes of its file -> the pieces of the slices."""
    by_path = grouped((_place(slice_.path)[1], slice_) for slice_ in slices)

    def opened(batches: Batches) -> Iterator[Opened]:
        for batch in batches:
            paths: list[Any] = batch.column("path").to_pylist()
            for path, content in zip(paths, batch.column("content"), strict=True):
                authority, place = _place(path)
                known = ("", authority)
                slice_ = next(it for it in by_path[place] if _place(it.path)[0] in known)
                yield slice_, content.as_buffer()

    def read_files(batches: Batches) -> Batches:
        return _rows(step(opened(batches)))

    return read_files


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


def task_numbers_step(
    slices_by_task: Sequence[Sequence[Slice]], step: SliceStep
) -> Callable[[Batches], Batches]:
    """Rows of the number of a task -> the pieces of its slices, which are opened here."""

    def opened(batches: Batches) -> Iterator[Opened]:
        for batch in batches:
            numbers: list[Any] = batch.column(0).to_pylist()
            for slice_ in chain.from_iterable(slices_by_task[number] for number in numbers):
                yield slice_, None if slice_.size else pa.py_buffer(b"")

    def read_slices(batches: Batches) -> Batches:
        return _rows(step(opened(batches)))

    return read_slices


def unpacking_step(table: str) -> Callable[[Batches], Batches]:
    """Pieces of rows of a table -> the rows."""

    def unpack(batches: Batches) -> Batches:
        for batch in batches:
            for data in batch.column("data"):
                yield from unpack_rows(data.as_buffer()).to_batches()

    return _named(unpack, f"unpack_{table}")


def rows_step(name: str, step: RowStep) -> Callable[[Batches], Batches]:
    """Rows of a table -> pieces."""
    return _named(lambda batches: _rows(step(name, batches)), f"fold_{name}")


def shards_step(step: ShardStep) -> Callable[[Batches], Batches]:
    """Pieces, those of a shard next to each other -> what each shard becomes."""

    def run(batches: Batches) -> Batches:
        return _rows(chain.from_iterable(map(step, _shards(batches))))

    return _named(run, getattr(step, "__name__", type(step).__name__))


def _named(step: Callable[[Batches], Batches], name: str) -> Callable[[Batches], Batches]:
    """The step by a name that says in a plan what is done there."""
    step.__name__ = name
    return step


def situations_step(work: Work) -> Callable[[Batches], Batches]:
    """Pieces, those of a shard next to each other -> ``FOUND``: its groups, then its situations.

    The situations of a large shard, which are to be spread, are pieces too.
    """

    def found(pieces: Sequence[Piece]) -> Iterator[dict[str, Any]]:
        shard, groups = pieces[0].shard, work.find_groups(pieces)
        made = map(work.to_row, work.situations(groups))
        rows: Iterator[dict[str, Any]]
        rows = (dict(zip(SITUATION.names, row, strict=True)) for row in made)
        few = next(in_parts(rows, _MEMBERS_OF_A_LARGE_SHARD, itemgetter("connections")), [])
        is_large = sum(row["connections"] for row in few) >= _MEMBERS_OF_A_LARGE_SHARD
        yield pack_value(shard, LARGE_GROUPS if is_large else GROUPS, groups)._asdict()
        rows = chain(few, rows)
        del groups, few
        if is_large:
            for some in in_parts(rows, _BATCH, _size_of_row):
                table = pa.Table.from_pylist(some, SITUATION)
                yield from (piece._asdict() for piece in pack_rows(shard, SPREAD, table))
        else:
            yield from ({"shard": shard, **row} for row in rows)

    def find_situations(batches: Batches) -> Batches:
        rows = chain.from_iterable(map(found, _shards(batches)))
        return in_worker(
            pa.RecordBatch.from_pylist(some, FOUND) for some in in_parts(rows, _BATCH, _size_of_row)
        )

    return find_situations


def spread_situations(batches: Batches) -> Batches:
    """The situations of large shards, each a row again."""
    for batch in batches:
        for shard, data in zip(batch.column("shard"), batch.column("data"), strict=True):
            rows = unpack_rows(data.as_buffer())
            numbers = pa.array([shard.as_py()] * rows.num_rows, pa.int32())
            yield from rows.add_column(0, "shard", numbers).to_batches()


def verdicts_step(work: Work) -> Callable[[Batches], Batches]:
    """``FOUND``, and in ``recomputed`` what came of each situation -> what each shard becomes.

    The groups of a shard come first. The pieces of a large one are as they were.
    """

    def judged(parts: Iterator[pa.RecordBatch]) -> Iterator[Piece]:
        first = next(parts)
        batches = chain([first], parts)
        if first.column("kind")[0].as_py() != GROUPS:
            return _pieces(batches)
        groups = unpack_value(first.column("data")[0].as_py())
        rows = (batch.filter(pc.is_null(batch.column("data"))) for batch in batches)
        return work.judge(groups, (work.verdicts(some) for some in rows if some.num_rows))

    def judge_groups(batches: Batches) -> Batches:
        shards = groupby(_by_shard(batches), itemgetter(0))
        return _rows(chain.from_iterable(judged(map(itemgetter(1), of)) for _, of in shards))

    return judge_groups


def _by_shard(batches: Batches) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows that follow each other in a batch and are of one shard."""
    for batch in batches:
        shards: list[Any] = batch.column("shard").to_pylist()
        start = 0
        for shard, rows in groupby(shards):
            length = sum(1 for _ in rows)
            yield shard, batch.slice(start, length)
            start += length


def _size_of_row(row: Mapping[str, Any]) -> int:
    named = sum(len(row.get(name) or ()) for name in ("queues", "client_ids"))
    return len(row.get("data") or b"") + len(row.get("rest") or b"") + _BYTES_OF_A_NAME * named


def _pieces(batches: Batches) -> Iterator[Piece]:
    for batch in batches:
        shards: list[Any] = batch.column("shard").to_pylist()
        kinds: list[Any] = batch.column("kind").to_pylist()
        for shard, kind, data in zip(shards, kinds, batch.column("data"), strict=True):
            yield Piece(shard, kind, data.as_py())


def _shards(batches: Batches) -> Iterator[list[Piece]]:
    """The pieces of each shard, which lie next to each other."""
    return (list(pieces) for _, pieces in groupby(_pieces(batches), attrgetter("shard")))


def _rows(pieces: Iterable[Piece]) -> Batches:
    """The pieces that a task makes, as rows."""
    return in_worker(pa.RecordBatch.from_pylist([it._asdict()], schema=PIECES) for it in pieces)
