"""A text in the language, and with the times of the zone, of whoever reads it."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import lru_cache
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from unicodedata import category, east_asian_width
from zoneinfo import ZoneInfo, available_timezones

from rebalance_core.texts import Text, forms, pieces


@dataclass(frozen=True)
class Language:
    """A language by its code, the templates in it by the English ones, and the reader's zone."""

    code: str
    templates: Mapping[str, str] = field(hash=False)
    zone: tzinfo = UTC

    def of(self, text: str) -> str:
        """The text in this language and zone; what is not a ``Text``, a name or a code, as it is.

        A template that the language lacks is English, but for the texts within it.

        >>> french = Language("fr", {"{n:,} queues": "{n:,} files"})
        >>> french.of(Text("{n:,} queues", n=2)), french.of("2 queues")
        ('2 files', '2 queues')
        """
        if not isinstance(text, Text):
            return text
        if not self.templates and self.zone is UTC:
            return str(text)
        template = self.templates.get(text.template, text.template)
        values = {name: self.of(value) for name, value in text.values.items()}
        parts = pieces(template, values, self.zone)
        return _closed_up(parts) if self.templates else "".join(parts)

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
def language(code: str, zone: str = "UTC") -> Language:
    """The language of one of the codes in ``choices.LANGUAGES``, with the times of a zone.

    ``"{clients} [uses|use] {strategy}" = "{clients} 使用 {strategy}"`` is an entry for both forms;
    a translation that differs with the number has ``[one|many]`` as well.
    """
    if zone != "UTC":
        return replace(language(code), zone=time_zone(zone))
    if code == ENGLISH.code:
        return ENGLISH
    templates: dict[str, str] = {}
    for area in sorted(files(__package__).joinpath(code).iterdir(), key=lambda file: file.name):
        if area.name.endswith(".toml"):
            for english, translation in tomllib.loads(area.read_text(encoding="utf-8")).items():
                templates |= zip(forms(english), forms(translation), strict=True)
    return Language(code, templates)


def time_zone(name: str) -> tzinfo:
    """The zone of a name: ``UTC``, ``local``, which is this machine's, or one of the IANA list.

    ValueError: it is none of them, or this machine does not name its own.
    """
    if name == "local":
        name = _local()
    if name == "UTC":
        return UTC
    if name not in available_timezones():
        raise ValueError("expected UTC, local or the name of a time zone such as Europe/Berlin")
    return ZoneInfo(name)


def _local() -> str:
    """The name of this machine's zone: that of the variable TZ, else of /etc/localtime."""
    if named := os.environ.get("TZ", "").removeprefix(":"):
        return named
    file = Path("/etc/localtime")
    return str(file.resolve()).rpartition("zoneinfo/")[2] if file.exists() else "UTC"
