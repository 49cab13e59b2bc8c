"""The truth is of another origin than what it judges."""

from __future__ import annotations

import ast
import doctest
from importlib import import_module
from pathlib import Path

import pytest

MODULES = sorted(
    path for path in Path(__file__).parent.glob("*.py") if not path.name.startswith(("test_", "__"))
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_simulator_takes_nothing_of_the_project_but_the_arithmetic(path: Path) -> None:
    imported = {
        str(node.module)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    }
    of_project = {name for name in imported if name.split(".")[0] in ("jobs", "rebalance_core")}
    allowed = {"rebalance_core.message_queue", "rebalance_core.strategy_factory"}
    if path.stem == "score":
        allowed |= {"jobs.cli", "jobs.storage"}
    assert of_project <= allowed


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_examples_in_docstrings_hold(path: Path) -> None:
    assert doctest.testmod(import_module(f"tests.simulation.{path.stem}")).failed == 0
