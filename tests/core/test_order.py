"""The modules of the core import downwards, in the order that its docstring names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import rebalance_core

FOLDER = Path(rebalance_core.__file__).parent


def test_a_module_of_the_core_imports_those_before_it_alone() -> None:
    _, order = (rebalance_core.__doc__ or "").split("in this order")
    floors = [re.findall(r"\w+", floor) for floor in order.partition(":")[2].split("<")]
    floor_of = {name: number for number, floor in enumerate(floors) for name in floor}
    assert floor_of.keys() == {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert not list(FOLDER.glob("*/*.py"))
    for name, floor in floor_of.items():
        for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                below = [node.module] if node.module else [alias.name for alias in node.names]
                assert all(floor_of[other] < floor for other in below), (name, below)
