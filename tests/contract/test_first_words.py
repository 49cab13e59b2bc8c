"""Docstrings begin with a verb or a noun: what it is or does is read first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Words with which a clause begins that has its subject later. What is a yes or a no begins with
#: "True if", what a function gives back with a noun, what it does with a verb: "Removes".
_CLAUSES = """
about as because by for from how in into it of on over since so that their them these they this
those until what whatever when where whether which who whom whose why with within without
"""
NEVER_FIRST = frozenset(_CLAUSES.split())


def first_words(source: str) -> Iterator[tuple[str, str]]:
    """The name of each documented thing in a module, with the first word of its docstring."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield getattr(node, "name", "the module"), text.split()[0].strip(":,.;").lower()


@pytest.mark.parametrize("root", ["jobs", "rebalance_core"])
def test_no_docstring_begins_with_a_clause(repository: Path, root: str) -> None:
    found = [
        f"{path.relative_to(repository)}: {name}: {word}"
        for path in sorted((repository / root).rglob("*.py"))
        for name, word in first_words(path.read_text(encoding="utf-8"))
        if word in NEVER_FIRST
    ]
    assert not found, "begin with a verb or a noun"


def test_a_docstring_that_begins_with_a_clause_would_be_seen() -> None:
    source = '"""Rules."""\ndef f():\n    """Whether: it is."""\ndef _g():\n    """Writes it."""\n'
    found = dict(first_words(source))
    assert found == {"the module": "rules", "f": "whether", "_g": "writes"}
    assert NEVER_FIRST.intersection(found.values()) == {"whether"}
