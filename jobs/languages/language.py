"""A text in the language, and with the times of the zone, of whoever reads it."""

import os
import tomllib
from collections import defaultdict
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

from rebalance_core.texts import Text, forms, pieces, slots


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
        if not self.templates:
            return "".join(parts)
        return _closed_up(parts, [isinstance(text.values[name], Text) for name in slots(template)])

    def __call__(self, template: str, **values: Any) -> str:
        """A text of a template, at once."""
        return self.of(Text(template, **values))


ENGLISH = Language("en", {})


def _closed_up(parts: Sequence[str], are_texts: Sequence[bool]) -> str:
    """The parts of a template and the values between them, without a blank that is one too many.

    Between two wide characters Chinese has no blank. A template cannot know what its value ends in,
    so its blank beside the value goes here: where the value is a text, and beside a name where one
    of the two is a full-width mark, which has its room in itself. Elsewhere the blank shows where
    the name ends. What is in a value stays.

    >>> _closed_up(["用 ", "相关客户端", " 查看 ", "订 单", ""], [True, False])
    '用相关客户端查看 订 单'
    """
    text = "".join(parts)
    ends = [0, *accumulate(map(len, parts))]
    beside: dict[int, list[bool]] = defaultdict(list)
    for number, (begin, end) in enumerate(list(pairwise(ends))[::2]):
        if begin < end:
            beside[begin] += are_texts[max(number - 1, 0) : number]
            beside[end - 1] += are_texts[number : number + 1]
    for at in sorted(beside.keys() - {0, len(text) - 1}, reverse=True):
        around = text[at - 1], text[at + 1]
        if text[at] == " " and all(east_asian_width(each) in "WF" for each in around):
            is_mark = any(category(each).startswith("P") for each in around)
            if is_mark or all(beside[at]):
                text = text[:at] + text[at + 1 :]
    return text


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
