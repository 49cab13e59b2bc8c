"""What the driver of Spark is sent of a large input, and what it takes: of few tasks and of many.

    python -m tests.bench.driver --tasks 16,400

Simulated in pieces, for it is the number of cores that is asked about: each task has some of the
groups, and of these all rounds and brokers. What the tasks know is merged as the engine merges it
in its workers, and measured is what is left for the driver, in a process of its own.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa

from jobs.engines.pieces import FOR_ALL, Piece, all_values, pack_value
from jobs.fold.runs import POLL_RUNS, Contents
from jobs.fold.slice_facts import FACTS, POLLS, Facts, merge_facts
from jobs.schemas import NOT_ONLINE

GROUPS, ROUNDS, BROKERS = 5_000, 1_440, 30
_MINUTE = 60_000_000


def facts_of_task(groups: range) -> Facts:
    """What a task knows that read the polls of some groups."""
    keys = [(group, broker) for group in groups for broker in range(BROKERS)]
    rounds = np.arange(ROUNDS, dtype=np.int64) * _MINUTE
    times = pa.array(np.tile(rounds, len(keys)))
    offsets = pa.array(np.arange(len(keys) + 1) * ROUNDS, pa.int32())
    nulls = pa.nulls(len(times), pa.int64())
    polled = pa.StructArray.from_arrays([times, nulls], ["snapshot_time", "collected_at"])
    given = {
        "cluster": ["c"] * len(keys),
        "consumer_group": [f"GROUP_{group}" for group, _ in keys],
        "broker_name": [f"broker-{broker}" for _, broker in keys],
        "broker_id": [0] * len(keys),
        "outcome": [NOT_ONLINE] * len(keys),
        "times": pa.ListArray.from_arrays(offsets, polled).cast(POLL_RUNS.field("times").type),
    }
    columns = [
        pa.array(given[name], type_) if name in given and name != "times" else given.get(name)
        for name, type_ in zip(POLL_RUNS.names, POLL_RUNS.types, strict=True)
    ]
    arrays = [
        pa.nulls(len(keys), type_) if column is None else column
        for column, type_ in zip(columns, POLL_RUNS.types, strict=True)
    ]
    facts = Facts()
    facts.add(Contents(pa.Table.from_arrays(arrays, schema=POLL_RUNS), {}), POLLS, None)
    return facts


def gathered(tasks: int, few: int = 2, at_once: int = 16) -> list[Piece]:
    """The pieces that the driver gets of so many tasks, as ``SparkEngine.gather`` merges them."""
    edges = [GROUPS * task // tasks for task in range(tasks + 1)]
    pieces = [pack_value(FOR_ALL, FACTS, facts_of_task(range(*part))) for part in pairwise(edges)]
    while len(pieces) > few:
        parts = -(-len(pieces) // at_once)
        pieces = [piece for part in range(parts) for piece in merge_facts(pieces[part::parts])]
    return pieces


def driven(path: str) -> tuple[int, float, float]:
    """The rows that pieces in a file have of rounds; CPU seconds and MiB of Arrow that the
    driver takes."""
    pieces = pickle.loads(Path(path).read_bytes())  # noqa: S301 - written below
    started = time.process_time()
    facts = list(all_values(pieces, FACTS))
    rows = sum(each.polls.rounds.num_rows for each in facts)
    Facts.of(facts)
    used = time.process_time() - started
    return rows, used, pa.default_memory_pool().max_memory() / 2**20


def measured(tasks: int) -> str:
    """A line of the table."""
    with tempfile.NamedTemporaryFile() as file:
        pieces = gathered(tasks)
        Path(file.name).write_bytes(pickle.dumps(pieces))
        size = sum(len(piece.data) for piece in pieces)
        with get_context("spawn").Pool(1) as pool:
            rows, seconds, memory = pool.apply(driven, (file.name,))
    return (
        f"| {tasks} | {len(pieces)} | {rows:,} | {size / 1e6:.1f} | {seconds:.2f} | {memory:.0f} |"
    )


def lines(tasks: list[int]) -> Iterator[str]:
    """The table."""
    yield f"{GROUPS:,} groups, {ROUNDS:,} rounds, {BROKERS} brokers"
    yield "| tasks | pieces | rows of rounds | MB | CPU s of the driver | MiB of Arrow, at most |"
    yield "|---|---|---|---|---|---|"
    yield from map(measured, tasks)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default="4,16,32,400", help="numbers, separated by commas")
    for line in lines([int(each) for each in parser.parse_args().tasks.split(",")]):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
