"""A text in the language of whoever reads it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from rebalance_core.texts import Text, fill

#: By code how people call them; English is the source and has no folder.
LANGUAGES = {"en": "English", "zh": "中文"}


@dataclass(frozen=True)
class Language:
    """A language by its code, and the templates in it by the English ones."""

    code: str
    templates: Mapping[str, str]

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
        return fill(template, {name: self._value(value) for name, value in text.values.items()})

    def _value(self, value: Any) -> Any:
        return self.of(value) if isinstance(value, Text) else value

    def __call__(self, template: str, **values: Any) -> str:
        """A text of a template, at once."""
        return self.of(Text(template, **values))


ENGLISH = Language("en", {})


@lru_cache(maxsize=8)
def language(code: str) -> Language:
    """The language of one of the codes in ``LANGUAGES``."""
    if code == ENGLISH.code:
        return ENGLISH
    templates: dict[str, str] = {}
    for area in sorted(files(__package__).joinpath(code).iterdir(), key=lambda each: each.name):
        if area.name.endswith(".toml"):
            templates |= tomllib.loads(area.read_text(encoding="utf-8"))
    return Language(code, templates)
