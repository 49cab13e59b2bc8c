"""What runs in a worker of Spark."""

import gc
from collections.abc import Iterable, Iterator
from typing import TypeVar

from ..engines.engine import tuned

_Made = TypeVar("_Made")


def in_worker(made: Iterable[_Made]) -> Iterator[_Made]:
    """What a task makes, in a worker of Spark.

    After each task Spark looks for cycles of objects, among all that the worker has ever imported:
    that takes longer than many a step. What is there when a task begins is left out from then on.
    It is no garbage, for Spark has just looked.
    """
    gc.freeze()
    with tuned():
        yield from made
