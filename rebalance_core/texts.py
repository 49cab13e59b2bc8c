"""Texts that can be read in another language: English that remembers what it was made of."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Self

#: A name, a number, or a text again.
TextValue = Any
#: ``{name}``, ``{name:,}`` with how a number is written, ``{name:clock}`` with how a time is, or
#: ``{name:within}`` of a text without its capital; nothing else, for what is published may come
#: back changed by strangers.
_SLOT = re.compile(r"\{(\w+)(?::([,.0-9]{0,3}[df%]?|[a-z_]+Z?))?\}")
_WITHIN = "within"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Forms of a time. With a ``Z`` its offset follows; ``offset`` is that alone.
_TIMES = {
    "clock": "%H:%M:%S",
    "day": "%Y-%m-%d %H:%M:%S",
    "day_minute": "%Y-%m-%d %H:%M",
    "minute": "%H:%M",
    "month_minute": "%m-%d %H:%M",
    "iso": "",
    "offset": "",
}


class Text(str):
    """An English text with its template and the values in it.

    To whoever needs a ``str`` it is the English text. ``template`` with ``{slots}`` is what another
    language has a translation of; ``values`` are names, numbers, times and texts again, by slot.
    A time is whole microseconds since 1970 UTC, so that each reader has it in their own zone; the
    English text has it in UTC.

    >>> queues = Text("{number:,} queues", number=1200)
    >>> found = Text("{queues} of {broker}", queues=queues, broker="a")
    >>> found
    '1,200 queues of a'
    >>> found.template, found.values["broker"]
    ('{queues} of {broker}', 'a')
    """

    template: str
    values: Mapping[str, TextValue]

    def __new__(cls, template: str, **values: TextValue) -> Self:
        """The text of a template with a value for each of its slots."""
        return cls.of(fill(template, values), template, values)

    @classmethod
    def of(cls, english: str, template: str, values: Mapping[str, TextValue]) -> Self:
        """A text whose English is there already."""
        text = super().__new__(cls, english)
        text.template, text.values = template, values
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        return Text.of, (str(self), self.template, dict(self.values))

    def with_values(self, change: Callable[[str], str]) -> "Text":
        """The text with every name in it changed, in texts within it too; the very text where
        ``change`` gives back each name as it is.
        """
        values = {name: _changed(value, change) for name, value in self.values.items()}
        is_same = all(value is self.values[name] for name, value in values.items())
        return self if is_same else Text(self.template, **values)

    def parts(self) -> list[Any]:
        """Its parts, as JSON has them: ``[template, {slot: value}]``, texts within alike."""
        values = dict(self.values)
        values |= {name: text.parts() for name, text in values.items() if isinstance(text, Text)}
        return [self.template, values] if values else [self.template]


def _changed(value: TextValue, change: Callable[[str], str]) -> TextValue:
    if isinstance(value, Text):
        return value.with_values(change)
    return change(value) if isinstance(value, str) else value


def fill(template: str, values: Mapping[str, TextValue]) -> str:
    """The template with the values in its slots; a slot without a value is an error (KeyError).

    Times are in UTC.

    A value is never read as a template. One that goes on within a sentence loses its capital, which
    English alone has.

    >>> fill("{client}: {share:.0%} of {n:,}", {"client": "{x}", "share": 0.5, "n": 1200})
    '{x}: 50% of 1,200'
    >>> fill("since then {what:within}", {"what": "A queue stalled"})
    'since then a queue stalled'
    """
    return "".join(pieces(template, values))


def pieces(template: str, values: Mapping[str, TextValue], zone: tzinfo = UTC) -> list[str]:
    """The pieces that ``fill`` joins: a part of the template, a value, a part of the template, and
    so on.

    >>> pieces("{number:,} queues of {broker}", {"number": 1200, "broker": "a"})
    ['', '1,200', ' queues of ', 'a', '']
    """
    first, *others = _SLOT.split(template)
    every = [first]
    for name, form, after in zip(others[::3], others[1::3], others[2::3], strict=True):
        every += [_filled(values[name], form, zone), after]
    return every


def _filled(value: TextValue, form: str | None, zone: tzinfo) -> str:
    if form == _WITHIN and isinstance(value, str):
        return value[:1].lower() + value[1:]
    if not form or not isinstance(value, int | float | datetime):
        return str(value)
    try:
        is_time = form.removesuffix("Z") in _TIMES
        return written(value, form, zone) if is_time else format(value, form)
    except (ValueError, OverflowError):  # a published text that somebody changed
        return str(value)


def written(time: datetime | float, form: str, zone: tzinfo) -> str:
    """A time in a zone; one without a zone is in UTC, a number is microseconds since 1970 UTC.

    In the hour that comes twice, when summer ends, the offset is beside the time in any form.

    >>> from zoneinfo import ZoneInfo
    >>> written(datetime(2026, 11, 20, 9), "clockZ", UTC)
    '09:00:00 UTC'
    >>> written(datetime(2026, 10, 25, 1), "clock", ZoneInfo("Europe/Berlin"))
    '02:00:00 UTC+01:00'
    """
    if not isinstance(time, datetime):
        time = _EPOCH + timedelta(microseconds=time)
    time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(zone)
    if form == "iso":
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    offset = time.utcoffset() or timedelta()
    comes_twice = time.replace(fold=1 - time.fold).utcoffset() != offset
    if form == "offset":
        return str(timezone(offset))
    beside = f" {timezone(offset)}" if form.endswith("Z") or comes_twice else ""
    return f"{time:{_TIMES[form.removesuffix('Z')]}}{beside}"


#: ``[uses|use]`` in a template: the word for one, and the word for any other number.
_ONE_OR_MANY = re.compile(r"\[([^][|]*)\|([^][|]*)\]")


def forms(template: str) -> tuple[str, str]:
    """The template for one thing, and the template for any other number of things.

    >>> forms("{clients} [uses|use] {strategy}")
    ('{clients} uses {strategy}', '{clients} use {strategy}')
    """
    return _ONE_OR_MANY.sub(r"\1", template), _ONE_OR_MANY.sub(r"\2", template)


def slots(template: str) -> list[str]:
    """The names of a template's slots, in order, each as often as it is there.

    >>> slots("{number:,} queues of {broker}")
    ['number', 'broker']
    """
    return [slot[1] for slot in _SLOT.finditer(template)]


def for_slots(template: str, values: Mapping[str, TextValue]) -> dict[str, TextValue]:
    """The values that a template has a slot for.

    >>> for_slots("{client} subscribes", {"client": "a", "topic": "T"})
    {'client': 'a'}
    """
    return {name: values[name] for name in slots(template)}


#: The most levels of texts within each other. A list of a million parts is 20 deep; a published
#: text that somebody nested deeper would break whoever goes through it.
_DEEPEST = 50
#: The most characters of a text's values together: small texts within each other, each of which
#: repeats its slot, make a text that no machine holds.
_LONGEST = 1_000_000


def from_parts(parts: Any, english: str | None = None, deepest: int = _DEEPEST) -> Text:
    """The text of what ``Text.parts`` gave; ``english`` where it is there.

    ValueError: it is not of this form, a slot has no value, or it is nested too deep or too long.

    >>> from_parts(Text("{n:,} queues", n=2).parts())
    '2 queues'
    """
    if not deepest:
        raise ValueError(f"expected at most {_DEEPEST} texts within each other, came more")
    if not isinstance(parts, list) or not parts or not isinstance(parts[0], str):
        raise ValueError(f"expected [template, {{slot: value}}], came {str(parts)[:100]}")
    template, values = parts[0], parts[1] if len(parts) > 1 else {}
    template_slots = slots(template)
    if not isinstance(values, dict) or not values.keys() >= set(template_slots):
        raise ValueError(f"expected a value for each slot of {template[:100]!r}")
    filled = {
        name: from_parts(value, None, deepest - 1) if isinstance(value, list) else value
        for name, value in values.items()
    }
    if sum(len(str(filled[name])) for name in template_slots) > _LONGEST:
        raise ValueError(f"expected at most {_LONGEST:,} characters of values, came more")
    return Text.of(fill(template, filled) if english is None else english, template, filled)


def encode(texts: Mapping[str, str | None]) -> str | None:
    """The parts of those that are ``Text``, by name, as JSON; None: none is.

    >>> encode({"remedy": Text("restart {client}", client="a"), "why": None})
    '{"remedy":["restart {client}",{"client":"a"}]}'
    """
    parts = {name: text.parts() for name, text in texts.items() if isinstance(text, Text)}
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")) if parts else None


def decode(encoded: str | None, english: Mapping[str, str | None]) -> dict[str, str | None]:
    """The English texts, by name, as ``Text`` where ``encode`` has their parts.

    What cannot be read, as of another version, stays English.
    """
    texts = dict(english)
    try:
        parts = json.loads(encoded) if encoded else {}
        for name in texts.keys() & parts.keys():
            plain = texts[name]
            if plain is not None:
                texts[name] = from_parts(parts[name], plain)
    except (ValueError, AttributeError, RecursionError):
        return dict(english)
    return texts
