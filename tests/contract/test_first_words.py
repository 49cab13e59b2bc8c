"""Docstrings begin with a verb or a noun: what it is or does is read first."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

#: Words with which a clause begins that has its subject later, and how many docstrings of public
#: modules, classes and functions still begin so. A number may only become smaller.
LEFT = {
    "what": 5,
    "whether": 2,
    "by": 2,
    "how": 2,
    "where": 0,
    "from": 1,
    "of": 0,
    "who": 1,
    "when": 0,
    "those": 1,
    "for": 0,
    "which": 0,
    "why": 0,
    "that": 0,
    "as": 0,
    "it": 0,
    "so": 0,
    "in": 0,
    "these": 1,
    "whose": 0,
}


def first_words(source: str) -> Iterator[tuple[str, str]]:
    """The names of what is public in a module, each with the first word of its docstring."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            name = getattr(node, "name", "the module")
            if not name.startswith("_"):
                yield name, text.split()[0].strip(":,.;").lower()


def test_no_more_docstrings_than_before_begin_with_a_clause(repository: Path) -> None:
    found: dict[str, list[str]] = {}
    for root in ("jobs", "rebalance_core"):
        for path in sorted((repository / root).rglob("*.py")):
            for name, word in first_words(path.read_text(encoding="utf-8")):
                found.setdefault(word, []).append(f"{path.relative_to(repository)}: {name}")
    more = {word: found[word] for word in LEFT if len(found.get(word, ())) > LEFT[word]}
    assert not more, f"begin with a verb or a noun; of these one is new: {more}"


def test_a_docstring_that_begins_with_a_clause_would_be_seen() -> None:
    source = '"""Rules."""\ndef f():\n    """Whether it is."""\ndef _g():\n    """What it is."""\n'
    assert Counter(word for _, word in first_words(source)) == {"rules": 1, "whether": 1}
