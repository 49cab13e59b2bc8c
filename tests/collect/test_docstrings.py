"""The worked examples of the docstrings are true."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent.parent / "jobs" / "collect"


@pytest.mark.parametrize("name", sorted(path.stem for path in PACKAGE.glob("[a-z]*.py")))
def test_examples_give_what_they_say(name: str) -> None:
    assert doctest.testmod(import_module(f"jobs.collect.{name}")).failed == 0
