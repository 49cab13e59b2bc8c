"""Values of JSON -> what a field means; each demand on a field's type once, and its sentence.

A field that is read must have its type, or be null: a queue count that is a text, or that no int
holds, is not a guess of ours. What is a text may come as anything, and is its JSON then: dashboards
print names of digits as numbers. Other fields may hold what they like.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

from rebalance_core.state import BROADCASTING, CLUSTERING

from ..declared.instants import Instant
from .statement import Subscriptions

_INTEGER = re.compile(r"-?[0-9]{1,18}")

Fields: TypeAlias = Mapping[str, Any]
Value = TypeVar("Value")


class LineError(ValueError):
    """A line, or its body, is not what its kind demands; the message has what was expected."""


class BoundError(LineError):
    """A line asks for more than the bounds allow; the message names the setting."""


class WrongTypeError(ValueError):
    """A field that is read has another type than RocketMQ's class."""


def expected(what: str, came: str | None) -> str:
    """``expected ..., came '...'``, with no more than the beginning of what came.

    >>> expected("one JSON object", "x" * 70)[-12:], expected("an integer", None)
    ("xxxxxxxx...'", 'expected an integer, came nothing')
    """
    if came is None:
        return f"expected {what}, came nothing"
    return f"expected {what}, came '{came[:60]}{'...' if len(came) > 60 else ''}'"


def json_text(value: Any) -> str:
    """The value as JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def as_text(value: Any) -> str | None:
    """A text, or the JSON of what is none; None for null.

    >>> as_text("a"), as_text(True), as_text({"a": [1]}), as_text(None)
    ('a', 'true', '{"a":[1]}', None)
    """
    return value if value is None or isinstance(value, str) else json_text(value)


def integer_in(text: str | None) -> int | None:
    """The integer of at most 18 digits that a text is; None where it is none.

    >>> integer_in("-7"), integer_in("7.0")
    (-7, None)
    """
    return int(text) if text is not None and _INTEGER.fullmatch(text) else None


#: The highest ``int`` of Java.
JAVA_INT_MAX = 2**31 - 1


def is_java_int(number: int) -> bool:
    """True if an ``int`` of Java holds the number."""
    return -JAVA_INT_MAX - 1 <= number <= JAVA_INT_MAX


def as_type(kind: type[Value], value: Any) -> Value | None:
    """A value of a type, or None for null."""
    if value is not None and not isinstance(value, kind):
        raise WrongTypeError
    return value


def as_map(value: Any) -> dict[str, Any]:
    """An object; null is an empty one."""
    return as_type(dict, value) or {}


def as_maps(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list; null is an empty one."""
    return map(as_map, as_type(list, value) or ())


def as_integer(value: Any, bits: int) -> int | None:
    """An integer that so many bits hold, or None for null."""
    if value is None:
        return None
    if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise WrongTypeError
    return value


def integers(fields: Fields, bits: int, *names: str) -> list[int | None]:
    """The integers of these names."""
    return [as_integer(fields.get(name), bits) for name in names]


def needed(body: Fields, name: str) -> Any:
    """A field without which a body is none of its class."""
    if body.get(name) is None:
        raise WrongTypeError
    return body[name]


_YEAR_1, _YEAR_10000 = -62_135_596_800_000, 253_402_300_800_000


def instant_of_millis(millis: int | None) -> Instant | None:
    """The instant; None beyond the years 1 to 9999, which no table can hold."""
    return millis * 1000 if millis is not None and _YEAR_1 <= millis < _YEAR_10000 else None


#: The values of enums of RocketMQ, by their fields.
ENUMS = {
    "consumeFromWhere": tuple(
        f"CONSUME_FROM_{where}" for where in ("LAST_OFFSET", "FIRST_OFFSET", "TIMESTAMP")
    ),
    "consumeType": ("CONSUME_PASSIVELY", "CONSUME_ACTIVELY", "CONSUME_POP"),
    "messageModel": (CLUSTERING, BROADCASTING),
}


def known(name: str, text: str | None) -> str | None:
    """The value that a client gives of itself, in words of its SDK; None where none knows it."""
    return text if text in ENUMS[name] else None


def as_subscriptions(data: Iterable[Fields]) -> Subscriptions:
    """SubscriptionData: sorted, each once; what has no topic is none.

    ``subVersion`` is left out: it changes at every rebalance, whatever is consumed.
    """
    distinct = set()
    for fields in data:
        topic = as_text(fields.get("topic"))
        if topic is not None:
            kind = as_text(fields.get("expressionType"))
            kind = "TAG" if kind is None else kind
            expression = as_text(fields.get("subString"))
            distinct.add((topic, kind, "*" if expression is None else expression))
    return tuple(sorted(distinct))
