"""A text in the language of whoever reads it."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from itertools import accumulate, pairwise
from typing import Any
from unicodedata import category, east_asian_width

from rebalance_core.texts import Text, forms, pieces


@dataclass(frozen=True)
class Language:
    """A language by its code, and the templates in it by the English ones."""

    code: str
    templates: Mapping[str, str] = field(hash=False)

    def of(self, text: str) -> str:
        """The text in this language; what is no ``Text``, a name or a code, as it is.

        A template that the language lacks is English, but for the texts within it.

        >>> french = Language("fr", {"{n:,} queues": "{n:,} files"})
        >>> french.of(Text("{n:,} queues", n=2)), french.of("2 queues")
        ('2 files', '2 queues')
        """
        if not isinstance(text, Text):
            return text
        if not self.templates:
            return str(text)
        template = self.templates.get(text.template, text.template)
        values = {name: self.of(value) for name, value in text.values.items()}
        return _closed_up(pieces(template, values))

    def __call__(self, template: str, **values: Any) -> str:
        """A text of a template, at once."""
        return self.of(Text(template, **values))


ENGLISH = Language("en", {})


def _closed_up(parts: Sequence[str]) -> str:
    """The parts of a template and the values between them, without a blank that is one too many.

    A full-width mark has its room in itself: between it and another wide character Chinese has no
    blank. A template cannot know that its value ends in such a mark, so its blank beside the value
    goes here. What is in a value stays, for it may be a name.

    >>> _closed_up(["", "「a」", " 和 ", "订 单", ""])
    '「a」和 订 单'
    """
    text = "".join(parts)
    ends = [0, *accumulate(map(len, parts))]
    of_template = list(pairwise(ends))[::2]
    edges = {at for begin, end in of_template if begin < end for at in (begin, end - 1)}
    for at in sorted(edges - {0, len(text) - 1}, reverse=True):
        if text[at] == " " and _needs_no_blank(text[at - 1], text[at + 1]):
            text = text[:at] + text[at + 1 :]
    return text


def _needs_no_blank(before: str, after: str) -> bool:
    """Whether both characters are wide, and one of them at least is a mark."""
    return all(east_asian_width(mark) in "WF" for mark in (before, after)) and any(
        category(mark).startswith("P") for mark in (before, after)
    )


@lru_cache(maxsize=8)
def language(code: str) -> Language:
    """The language of one of the codes in ``choices.LANGUAGES``.

    ``"{clients} [uses|use] {strategy}" = "{clients} 使用 {strategy}"`` is an entry for both forms;
    a translation that differs with the number has ``[one|many]`` as well.
    """
    if code == ENGLISH.code:
        return ENGLISH
    templates: dict[str, str] = {}
    for area in sorted(files(__package__).joinpath(code).iterdir(), key=lambda file: file.name):
        if area.name.endswith(".toml"):
            for english, translation in tomllib.loads(area.read_text(encoding="utf-8")).items():
                templates |= zip(forms(english), forms(translation), strict=True)
    return Language(code, templates)
