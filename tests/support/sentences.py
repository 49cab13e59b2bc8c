"""Sentences without a name that they should have, as a list that is empty leaves them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from rebalance_core.texts import Text, slots

#: What is left where a name is missing: blanks and signs with nothing between them.
_HOLES = re.compile(
    r"  |^\s|\s$|(?<!\w)\(\)|（）|[([（] | [)\]）]|(?:^|[\s(（])[,;:，；：、]"
    r"|[,;:，；、]$|[,;，；、]\s*[,;，；、]|\bNone\b"
)


def holes(sentence: str) -> list[str]:
    """The places of a sentence where a name is missing.

    >>> holes("check whether  can be reached from ")
    ['  ', ' ']
    >>> holes("queue 0 of broker-a (slave 1) stands; restart it")
    []
    """
    return _HOLES.findall(sentence)


def empty_slots(text: str) -> Iterator[str]:
    """The slots of a text, and of the texts within it, whose value is empty."""
    if not isinstance(text, Text):
        return
    for slot in slots(text.template):
        value = text.values[slot]
        if value is None or value == "":
            yield f"{{{slot}}} of {text.template!r}"
        yield from empty_slots(value)


@pytest.fixture(autouse=True)
def no_empty_values(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No text that a test makes has a slot with nothing in it, whatever it is a test of.

    It is looked for at the end: an error would cost the group alone that is judged. For tests of
    what finds and describes: pages have slots that may be empty, and rows by hand lack texts.
    """
    noted: list[str] = []
    new = Text.__new__

    def made(cls: type[Text], template: str, **values: Any) -> Text:
        text = new(cls, template, **values)
        noted.extend(empty_slots(text))
        return text

    monkeypatch.setattr(Text, "__new__", made)
    yield
    assert noted == []
