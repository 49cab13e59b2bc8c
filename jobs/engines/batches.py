"""Pieces as batches of Arrow: what the workers of an engine that sends rows make of them.

A row is a piece, but around the UDF: there it is a question, so a situation, with the columns of
``QuestionSubject``, which a person reads. Nothing of Spark or of pandas is imported here: each
worker would spend more time on that than on its shards.
"""

import gc
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

import pyarrow as pa

from rebalance_core.grouping import grouped

from .engine import Opened, ShardStep, Slice, SliceStep, Work, tuned
from .pieces import Piece, in_parts, pack_value, unpack_rows, unpack_value

_Made = TypeVar("_Made")

Batches = Iterator[pa.RecordBatch]
#: A step from rows of the named table to pieces.
RowStep = Callable[[str, Batches], Iterator[Piece]]

PIECE_COLUMNS: dict[str, pa.DataType] = {
    "shard": pa.int32(),
    "kind": pa.string(),
    "data": pa.binary(),
}
_SCHEMA = pa.schema(PIECE_COLUMNS)
#: The row that rides with a question: what its shard began, which then ends beside it, or ...
_BEGINS = "begins"
#: ... what waits for answers from elsewhere: what a large shard began, questions of it, an answer.
BEGUN, QUESTIONS, ANSWER = WAITING = "begun", "questions", "answer"
#: A row of the UDF.
_ASKED_COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys(("cluster", "consumer_group", "topic", "situation"), pa.string()),
    **dict.fromkeys(("members", "queues"), pa.int64()),
    **PIECE_COLUMNS,
    "question": pa.binary(),
}
ASKED = pa.schema(_ASKED_COLUMNS)
_ENDED = [*PIECE_COLUMNS, "answer"]
#: A shard with fewer members in all its questions has them answered beside it: some seconds of one
#: core.
_MEMBERS_OF_A_LARGE_SHARD = 320_000
#: The approximate bytes of a batch of rows that a step makes, and of a row of questions.
_BATCH = 1 << 20
_ROW_OF_QUESTIONS = 16 << 20


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
    by_path = grouped((_place(each.path)[1], each) for each in slices)

    def opened(batches: Batches) -> Iterator[Opened]:
        for batch in batches:
            paths: list[Any] = batch.column("path").to_pylist()
            for path, content in zip(paths, batch.column("content"), strict=True):
                authority, place = _place(path)
                slice_ = next(
                    each for each in by_path[place] if _place(each.path)[0] in ("", authority)
                )
                yield slice_, content.as_buffer()

    return lambda batches: in_worker(_rows(step(opened(batches))))


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
    of_tasks: Sequence[Sequence[Slice]], step: SliceStep
) -> Callable[[Batches], Batches]:
    """Rows of the number of a task -> the pieces of its slices, which are opened here."""

    def opened(batches: Batches) -> Iterator[Opened]:
        for batch in batches:
            numbers: list[Any] = batch.column(0).to_pylist()
            for slice_ in chain.from_iterable(of_tasks[number] for number in numbers):
                yield slice_, None if slice_.size else pa.py_buffer(b"")

    return lambda batches: in_worker(_rows(step(opened(batches))))


def unpacked_rows(batches: Batches) -> Batches:
    """Pieces of rows -> the rows."""
    for batch in batches:
        for data in batch.column("data"):
            yield from unpack_rows(data.as_buffer()).to_batches()


def rows_step(name: str, step: RowStep) -> Callable[[Batches], Batches]:
    """Rows of a table -> pieces."""
    return lambda batches: in_worker(_rows(step(name, batches)))


def shards_step(step: ShardStep) -> Callable[[Batches], Batches]:
    """Pieces, those of a shard next to each other -> what each shard becomes."""

    def run(batches: Batches) -> Batches:
        for _, pieces in groupby(_pieces(batches), attrgetter("shard")):
            yield from _rows(step(list(pieces)))

    return lambda batches: in_worker(run(batches))


def begun(work: Work) -> Callable[[Batches], Batches]:
    """A row for each question of a shard; with the first one rides what the shard began.

    The questions of a large shard, which are to be spread, ride with few others.
    """

    def row(shard: int, question: Any) -> dict[str, Any]:
        packed = pack_value(shard, "", question).data
        return {**work.about(question)._asdict(), "shard": shard, "question": packed}

    def rows(pieces: Sequence[Piece]) -> Iterator[dict[str, Any]]:
        shard, begun = pieces[0].shard, work.begin(pieces)
        questions = work.questions(begun)
        in_place = in_parts(
            questions, _MEMBERS_OF_A_LARGE_SHARD, lambda each: work.about(each).members
        )
        few = next(in_place, [])
        asked = (row(shard, each) for each in chain(few, questions))
        is_large = sum(work.about(each).members for each in few) >= _MEMBERS_OF_A_LARGE_SHARD
        riding = pack_value(shard, BEGUN if is_large else _BEGINS, begun)._asdict()
        del begun, few
        yield next(asked, {}) | riding
        for each in asked:
            if is_large:
                spread = next(in_parts(asked, _ROW_OF_QUESTIONS, _size_of_row), [])
                each |= pack_value(shard, QUESTIONS, spread)._asdict()  # noqa: PLW2901
            yield each

    def run(batches: Batches) -> Batches:
        shards = groupby(_pieces(batches), attrgetter("shard"))
        return _batches(chain.from_iterable(rows(list(pieces)) for _, pieces in shards))

    return lambda batches: in_worker(run(batches))


def ended(work: Work) -> Callable[[Batches], Batches]:
    """Ends each shard with the answers as they come; a large one waits for the others."""

    def end(rows: Iterator[dict[str, Any]]) -> Iterator[Piece]:
        first = next(rows)
        every = chain([first], rows)
        if first["kind"] == _BEGINS:
            answers = (unpack_value(each["answer"]) for each in every if each["answer"])
            yield from work.end(unpack_value(first["data"]), answers)
            return
        for each in every:
            if each["data"]:
                yield Piece(each["shard"], each["kind"], each["data"])
            if each["answer"]:
                yield Piece(each["shard"], ANSWER, each["answer"])

    def run(batches: Batches) -> Iterator[Piece]:
        # The columns that a person reads are not needed here.
        rows = (row for batch in batches for row in batch.select(_ENDED).to_pylist())
        for _, of_shard in groupby(rows, itemgetter("shard")):
            yield from end(of_shard)

    return lambda batches: in_worker(_rows(run(batches)))


def unpacked_questions(batches: Batches) -> Batches:
    """The questions that are to be spread, each a row again."""
    return in_worker(_batches(chain.from_iterable(unpack_value(p.data) for p in _pieces(batches))))


def end_large(work: Work, pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Ends a large shard."""
    answers = [each.data for each in pieces if each.kind == ANSWER and each.data]
    (begun,) = [unpack_value(each.data) for each in pieces if each.kind == BEGUN]
    del pieces
    return work.end(begun, _unpacked(answers))


def _unpacked(answers: list[bytes]) -> Iterator[Any]:
    """The answers; each is let go as it is taken."""
    while answers:
        yield unpack_value(answers.pop())


def _size_of_row(row: Mapping[str, Any]) -> int:
    return len(row.get("data") or b"") + len(row.get("question") or b"")


def _batches(rows: Iterable[dict[str, Any]]) -> Batches:
    for some in in_parts(rows, _BATCH, _size_of_row):
        yield pa.RecordBatch.from_pylist(some, schema=ASKED)


def _pieces(batches: Batches) -> Iterator[Piece]:
    for batch in batches:
        shards: list[Any] = batch.column("shard").to_pylist()
        kinds: list[Any] = batch.column("kind").to_pylist()
        for shard, kind, data in zip(shards, kinds, batch.column("data"), strict=True):
            yield Piece(shard, kind, data.as_py())


def _rows(pieces: Iterable[Piece]) -> Batches:
    for piece in pieces:
        yield pa.RecordBatch.from_pylist([piece._asdict()], schema=_SCHEMA)
