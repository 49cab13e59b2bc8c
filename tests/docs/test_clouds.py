"""What docs/clouds.md hands to the jobs is what they take."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.console.arguments import build_parser
from tests.support.blocks import ROOT, blocks

PAGE = ROOT / "docs" / "clouds.md"


def lists(value: Any) -> Iterator[list[str]]:
    """Every list of words in a request."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from lists(each)


def submitted() -> Iterator[list[str]]:
    """The command lines of the jobs, whoever submits them."""
    for block in blocks(PAGE):
        if block.language == "json":
            request = json.loads(block.text)
            entry = request["sparkSubmit"]["entryPoint"] if "sparkSubmit" in request else None
            yield from ([entry, *words] if entry else words for words in lists(request))
        elif block.language == "text":
            yield ["audit.py", *shlex.split(block.text)]
        else:
            yield from (each for each in block.commands() if each[:2] == ["gcloud", "dataproc"])


@pytest.mark.parametrize("words", list(submitted()), ids=" ".join)
def test_the_jobs_take_what_is_submitted(words: list[str]) -> None:
    (entry,) = (n for n, word in enumerate(words) if word.endswith(".py") or word == "run")
    command, arguments = Path(words[entry]), words[entry + 1 :]
    if command.suffix:
        assert (ROOT / "jobs" / command.name).is_file()
    if "--" in arguments:
        arguments = arguments[arguments.index("--") + 1 :]
    build_parser(None).parse_args([command.stem, *arguments])
