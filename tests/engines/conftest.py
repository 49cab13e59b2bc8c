"""Every engine, to be held against one contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.engines.local import LocalEngine

#: By name the workers of a local engine, and how many bytes of pieces it holds in memory.
LOCAL = {
    "one process": (1, None),
    "two processes": (2, None),
    "one process that spills": (1, 10),
    "two processes that spill": (2, 10),
}
ENGINES = [
    *(pytest.param(n, marks=pytest.mark.e2e) if LOCAL[n][0] > 1 else n for n in LOCAL),
    pytest.param("spark", marks=pytest.mark.spark),
]


def local_engine(name: str) -> LocalEngine:
    """One of the local engines, open."""
    workers, most = LOCAL[name]
    engine = LocalEngine(workers)
    if workers > 1:
        engine._has_started.result()
    if most is not None:
        engine._most_in_memory = most
    return engine


@pytest.fixture(scope="session")
def local_engines() -> Iterator[dict[str, LocalEngine]]:
    """All local engines: their processes are started once."""
    engines = {name: local_engine(name) for name in LOCAL}
    yield engines
    for engine in engines.values():
        with engine:
            pass


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, local_engines: dict[str, LocalEngine]) -> Any:
    """An engine."""
    return local_engines.get(request.param) or request.getfixturevalue("on_spark")


@pytest.fixture
def on_spark(spark: Any) -> Iterator[Any]:
    """That of Spark."""
    from jobs.spark.spark_engine import SparkEngine  # noqa: PLC0415 - Spark takes its time to import

    with SparkEngine(spark) as engine:
        yield engine
