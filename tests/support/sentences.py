"""Sentences without a name that they should have, as a list that is empty leaves them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

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


def noting(new: Callable[..., Text], noted: list[str]) -> Callable[..., Text]:
    """Makes texts as ``new`` does, and notes empty values: an error would cost the group alone that
    is judged, and no test would show it.
    """

    def made(cls: type[Text], template: str, **values: Any) -> Text:
        text = new(cls, template, **values)
        noted.extend(empty_slots(text))
        return text

    return made
