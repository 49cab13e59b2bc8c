"""Docstrings, and comments on a name (``#:``), begin with a noun or a verb: what it is or does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

#: Words with which a clause begins that has its subject later. A yes or no begins with "True if",
#: what a function gives back with a noun, what it does with a verb: "Removes".
_CLAUSES = """
about as because by for from how in into it of on over since so that their them these they this
those until what whatever when where whether which who whom whose why with within without
"""
NEVER_FIRST = frozenset(_CLAUSES.split())
_COMMENT = "#: "


def _first_word(text: str) -> str:
    return text.split(maxsplit=1)[0].strip(":,.;").lower()


def first_words(source: str) -> Iterator[tuple[int, str]]:
    """The first word of each docstring of a module, and of each comment on a name, by line."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, _first_word(text)
    lines = [line.strip() for line in source.splitlines()]
    for number, (before, line) in enumerate(pairwise(["", *lines]), start=1):
        if line.startswith(_COMMENT) and not before.startswith(_COMMENT):
            yield number, _first_word(line.removeprefix(_COMMENT))


@pytest.mark.parametrize("root", ["jobs", "rebalance_core"])
def test_nothing_is_explained_by_a_clause(repository: Path, root: str) -> None:
    found = [
        f"{path.relative_to(repository)}:{line}: {word}"
        for path in sorted((repository / root).rglob("*.py"))
        for line, word in first_words(path.read_text(encoding="utf-8"))
        if word in NEVER_FIRST
    ]
    assert not found, "begin with a noun or a verb"


def test_a_clause_would_be_seen() -> None:
    source = (
        '"""Rules."""\n#: Of it.\n#: What it is.\nA = 1\n'
        'def f():\n    """Whether: it is."""\ndef _g():\n    """Writes it."""\n'
    )
    found = dict(first_words(source))
    assert found == {1: "rules", 2: "of", 6: "whether", 8: "writes"}
    assert NEVER_FIRST.intersection(found.values()) == {"of", "whether"}
