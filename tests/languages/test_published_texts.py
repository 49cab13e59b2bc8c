"""Every text that an audit of the dumps at hand publishes is Chinese for whoever asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from jobs.config.settings import Settings
from jobs.languages.language import language
from jobs.languages.translated_rows import with_texts
from rebalance_core.texts import Text
from tests.languages.english_left import english_in, every_part
from tests.support.audited import Rows, audit_dumps
from tests.support.sentences import empty_slots, holes

DATA = Path(__file__).parent.parent / "data"
#: By table the columns that are made of words.
WORDS = {
    "group_faults": ("evidence", "remedy"),
    "stacked_client_ids": ("evidence", "remedy"),
    "stalled_queues": ("why",),
    "group_health": ("reason",),
    "events": ("headline", "what", "evidence"),
}
CHINESE = language("zh")


@cache
def audited(kind: str) -> dict[str, Rows]:
    return audit_dumps(sorted((DATA / kind).glob("*/*.gz")), Settings(persistence_seconds=60))


def published(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """By table and column each text, as it is read again."""
    for table, columns in WORDS.items():
        for row in audited(kind)[table]:
            read = with_texts(row)
            yield from ((table, read[column]) for column in columns if read[column])


def names(value: Any) -> Iterator[str]:
    """What the tables name: every text in them that is no sentence."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for column, each in value.items():
            if column not in (*chain.from_iterable(WORDS.values()), "texts", "line"):
                yield from names(each)
    elif isinstance(value, list):
        for each in value:
            yield from names(each)


def values(text: Text) -> Iterator[str]:
    for value in text.values.values():
        if isinstance(value, Text):
            yield from values(value)
        elif isinstance(value, str):
            yield value


KINDS = ("captures", "cases", "field")


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_no_english_is_left_in_a_chinese_text(kind: str) -> None:
    named = {name for rows in audited(kind).values() for name in names(rows)}
    parts, found = every_part(named), 0
    for table, text in published(kind):
        assert isinstance(text, Text), f"{table}: no parts of {text!r}"
        # A value is a name, a code or a number: no word that should have been a text.
        for value in values(text):
            # The id of a member that shares no queues is in no other column.
            is_name = value in parts or re.fullmatch(r"\S+@\S+", value)
            assert is_name or not re.search("[a-z]{2}", value), f"{value!r} of {text!r}"
        chinese = CHINESE.of(text)
        assert english_in(chinese, values(text)) == set(), chinese
        found += 1
    assert found > 20


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_english_columns_are_the_parts_in_english(kind: str) -> None:
    """Whoever reads a column without its parts reads the same."""
    for _, text in published(kind):
        assert isinstance(text, Text)
        assert Text(text.template, **text.values) == str(text)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_no_sentence_lacks_a_name(kind: str) -> None:
    for table, text in published(kind):
        assert not re.search(r"\b(these|those) (clients|brokers|processes)\b", str(text)), text
        assert [*empty_slots(text)] == [], table
        for sentence in (text, CHINESE.of(text)):
            assert holes(sentence) == [], sentence
