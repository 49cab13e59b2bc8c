"""The engine without Spark: this process, or several of them on this machine."""

import gc
import multiprocessing
import pickle
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import chain
from multiprocessing.context import BaseContext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from ..errors import InputError
from . import in_background
from .engine import InputFile, ShardStep, Slice, SliceStep, Work, in_tasks, tuned
from .files import list_local_files, no_dumps
from .pieces import Piece

#: Pieces of so many bytes in all are held in memory; those beyond lie in files, one for each shard.
_MOST_IN_MEMORY = 256 << 20
#: One shard for so many bytes of input: its groups are held at a time.
_BYTES_OF_A_SHARD = 64 << 20

#: Shows how much is done: the items again, and what they are.
Each = Callable[[Sequence[Any], str], Iterable[Any]]


@dataclass(frozen=True)
class Spool:
    """Pieces by shard: in memory, or in files of a temporary folder."""

    shards: Mapping[int, list[Piece]]
    folder: Path | None
    kinds: frozenset[str] | None = None
    others: "tuple[Spool, ...]" = ()

    def only(self, *kinds: str) -> "Spool":
        """The pieces of some kinds."""
        wanted = frozenset(kinds) if self.kinds is None else self.kinds.intersection(kinds)
        others = tuple(other.only(*kinds) for other in self.others)
        return Spool(self.shards, self.folder, wanted, others)

    def and_also(self, others: "Spool") -> "Spool":
        """The pieces of both."""
        return Spool(self.shards, self.folder, self.kinds, (*self.others, others))

    def numbers(self) -> list[int]:
        """The shards of which there are pieces, sorted."""
        found = set(self.shards).union(*(other.numbers() for other in self.others))
        if self.folder is not None:
            found |= {int(path.name) for path in self.folder.iterdir()}
        return sorted(found)

    def of(self, shard: int) -> Iterator[Piece]:
        """The pieces of a shard."""
        if self.folder is not None and (self.folder / str(shard)).exists():
            with (self.folder / str(shard)).open("rb") as file:
                while file.peek(1):
                    yield from self._wanted(pickle.load(file))  # noqa: S301 - written below
        yield from self._wanted(self.shards.get(shard, ()))
        for other in self.others:
            yield from other.of(shard)

    def _wanted(self, pieces: Iterable[Piece]) -> Iterable[Piece]:
        return [piece for piece in pieces if self.kinds is None or piece.kind in self.kinds]


class LocalEngine(AbstractContextManager["LocalEngine"]):
    """Runs the steps in ``workers`` processes, of which this one is one.

    ``each`` shows how much of a step is done. What is spilled lies in a temporary folder until the
    engine is closed.
    """

    name = "local"

    def __init__(self, workers: int = 1, each: Each = lambda items, _: items) -> None:
        self.versions: Mapping[str, str] = {"pyarrow": pa.__version__}
        self.each = each
        self._most_in_memory = _MOST_IN_MEMORY
        self._workers = workers
        self._closing = ExitStack()
        self._pool: ProcessPoolExecutor | None = None
        #: Done when the other processes may be given something.
        self._has_started: Future[object] = Future()
        if workers > 1:
            pool = ProcessPoolExecutor(workers - 1, _started_context(), initializer=gc.freeze)
            self._closing.callback(pool.shutdown, cancel_futures=True)
            self._pool, self._has_started = pool, in_background(lambda: pool.submit(int).result())

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def shards(self, input_bytes: int) -> int:
        """One for every 64 MB, and some for each worker."""
        least = 1 if self._workers == 1 else 4 * self._workers
        return max(least, -(-input_bytes // _BYTES_OF_A_SHARD))

    def list_files(self, paths: Sequence[str]) -> list[InputFile]:
        """Every dump file on this machine that the paths name."""
        files = list_local_files(paths)
        if files is None:
            raise InputError(
                f"expected dumps on this machine with --engine local, came {', '.join(paths)}"
            )
        if not files:
            raise no_dumps(paths)
        return files

    def map(self, slices: Sequence[Slice], step: SliceStep) -> Spool:
        """The pieces of all slices; each file is opened where it is read."""
        size = sum(slice_.size for slice_ in slices)
        # What is equal in several tasks is read in each: no more of them than keep all busy.
        few = max(2 * self._workers, -(-size // _BYTES_OF_A_SHARD))
        number = self.shards(size) if self._pool is None else few
        tasks = in_tasks(self.each(slices, "files"), size, number)
        return self._run(partial(_run_closed, step), tasks)

    def given(self, pieces: Iterable[Piece]) -> Spool:
        """Pieces that the caller has."""
        return self._spool([pieces])

    def by_shard(self, pieces: Spool, step: ShardStep) -> Spool:
        """Runs the step on the pieces of each shard."""
        numbers = self.each(pieces.numbers(), "shards")
        shards = (found for number in numbers if (found := list(pieces.of(number))))
        return self._run(step, shards)

    def judge_groups(self, pieces: Spool, work: Work) -> Spool:
        """A shard after the other: its situations are evaluated where they are found."""
        return self.by_shard(pieces, partial(_judged, work))

    def collect(self, pieces: Spool) -> Iterator[Piece]:
        """The pieces of all shards, in their order."""
        for shard in pieces.numbers():
            yield from pieces.of(shard)

    def gather(self, pieces: Spool, _: ShardStep) -> Iterator[Piece]:
        """The pieces: they are in this process, and the driver merges them itself."""
        return self.collect(pieces)

    def plan_tasks(self, rows: int, groups: int) -> None:
        """A process takes one shard after the other."""

    def _run(self, task: Callable[[Any], Iterator[Piece]], items: Iterable[Any]) -> Spool:
        with tuned():
            return self._spool(self._made(task, items))

    def _made(
        self, task: Callable[[Any], Iterator[Piece]], items: Iterable[Any]
    ) -> Iterator[Iterable[Piece]]:
        """Yields what the task makes of each item, in any order.

        The other processes, once they are there, have an item each, and one to go on with; the
        rest is done here.
        """
        under_way: list[Future[list[Piece]]] = []
        for item in items:
            for future in filter(Future.done, [*under_way]):
                under_way.remove(future)
                yield future.result()
            if self._pool and self._has_started.done() and len(under_way) < self._workers:
                under_way.append(self._pool.submit(_listed, task, item))
            else:
                yield task(item)
        yield from (future.result() for future in under_way)

    def _spool(self, made: Iterable[Iterable[Piece]]) -> Spool:
        shards: dict[int, list[Piece]] = defaultdict(list)
        folder: Path | None = None
        held = 0
        for piece in chain.from_iterable(made):
            shards[piece.shard].append(piece)
            held += len(piece.data)
            if held > self._most_in_memory:
                if folder is None:
                    temporary = TemporaryDirectory(prefix="rebalance-audit-")
                    folder = Path(self._closing.enter_context(temporary))
                for shard, pieces in shards.items():
                    with (folder / str(shard)).open("ab") as file:
                        pickle.dump(pieces, file, protocol=pickle.HIGHEST_PROTOCOL)
                shards.clear()
                held = 0
        return Spool(dict(shards), folder)


def _started_context() -> BaseContext:
    """The context whose processes are forks of a server that has imported what this process has.

    It imports while this process begins. This one is not forked: Arrow has threads, and what they
    hold would be held for ever.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():  # Windows
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    ours = {__name__.split(".")[0], "rebalance_core", "pyarrow"}
    context.set_forkserver_preload([name for name in sys.modules if name.split(".")[0] in ours])
    # Only where several processes are asked for: not every machine has it.
    from multiprocessing import forkserver  # noqa: PLC0415

    forkserver.ensure_running()
    return context


def _run_closed(step: SliceStep, slices: Iterable[Slice]) -> Iterator[Piece]:
    return step((slice_, None) for slice_ in slices)


def _judged(work: Work, pieces: Sequence[Piece]) -> Iterator[Piece]:
    groups = work.find_groups(pieces)
    return work.judge(groups, work.evaluate(work.situations(groups)))


def _listed(task: Callable[[Any], Iterator[Piece]], item: Any) -> list[Piece]:
    with tuned():
        return list(task(item))
