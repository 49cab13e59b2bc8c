"""Words that people type for what has another name: each leads to something that there is."""

from __future__ import annotations

import pytest

from jobs.console.arguments import parse_arguments
from jobs.console.options import _TABLES, _WORDS, _WORDS_OF, COMMANDS, meant_by
from jobs.schemas import REPORT_TABLES

TABLES = {table.name for table in REPORT_TABLES}
#: What the shortest lines of these commands lack.
NEEDED = {
    "what-if": ["--group", "G"],
    "explain": ["--group", "G"],
    "run": ["--output", "o"],
    "collect": ["--dumps", "d"],
}


@pytest.mark.parametrize("meant", [each for each in _WORDS_OF if not each.startswith("--")])
def test_each_word_leads_to_a_command_that_is_understood(meant: str) -> None:
    args = parse_arguments([*meant.split(), *NEEDED.get(meant, [])])
    if args.command == "show":
        assert args.table in {None, "summary", *TABLES}


def test_every_table_is_led_to_and_no_word_is_a_name_of_its_own_or_stands_twice() -> None:
    assert {"summary", *TABLES} == set(_TABLES)
    assert not _WORDS.keys() & {*COMMANDS, *TABLES}
    assert sum(len(words.split()) for words in _WORDS_OF.values()) == len(_WORDS)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("nights", ["report --nights 30"]),
        ("Deploys", ["show events"]),
        ("fixed", ["check"]),
        ("events", ["show events"]),
        ("what_if", ["what-if"]),
        ("quarantin", ["show quarantine"]),
        ("xyzzy", []),
        ("quar", ["show quarantine"]),
        ("q", []),
        ("", []),
    ],
)
def test_a_word_is_led_by_its_meaning_and_then_by_its_letters(typed: str, meant: list[str]) -> None:
    assert meant_by(typed) == meant
