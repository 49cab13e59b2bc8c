"""The parsers of JSON that may read a dump, to be put in each other's place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jobs.dumps import parsing, queues


def standard(text: str) -> Any:
    """The parser of the standard library, which reads where orjson is not installed."""
    return parsing._standard(text)


def none(text: str) -> Any:
    """No parser: all bodies are left to the tokenizer."""
    raise ValueError(text)


@contextmanager
def reading_by(loads: Callable[[str], Any]) -> Iterator[None]:
    """Reads JSON by another parser than the fastest."""
    before = parsing._LOADS
    parsing._LOADS = parsing._standard if loads is standard else loads
    queues._spelled.cache_clear()
    try:
        yield
    finally:
        parsing._LOADS = before
        queues._spelled.cache_clear()
