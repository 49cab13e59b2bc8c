r"""text -> value: JSON by the fastest parser that is there, what is none by ``fastjson``.

Most of what RocketMQ prints is JSON but for two kinds of map keys: integers (``{0:"10.0.1.1"}``)
and message queues (``{{"brokerName":"b","queueId":0,"topic":"T"}:{..}}``). Such keys are put in
quotes, and a JSON parser reads the rest. All else (``$ref``, single quotes, blanks before a key)
is left to ``fastjson.parse``, which reads one token after the other.

``orjson`` is used where it is installed, the standard library's parser where it is not; what one
of them refuses is tried by the other, so that all ways give the same value, or the same refusal
(``tests/fuzz``). How deeply a text may nest is left to none of them: MAX_DEPTH holds for all. An
integer beyond 64 bits is a float, as of orjson.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

from . import fastjson
from .fastjson import MAX_DEPTH, number_of

#: Quoting inside a string cannot go unseen: the quote ends the string, and a digit or a brace after
#: a string is no JSON, so that the text goes to ``fastjson`` as it came.
_INTEGER_KEY = re.compile(r"([{,])(-?(?:0|[1-9][0-9]*)):")
_QUEUE_KEY = re.compile(
    r'(\{"brokerName":"[^"\\]*","queueId":(?:0|-?[1-9][0-9]{0,9}),"topic":"[^"\\]*"\}):'
)

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
_LONG_NUMBER = re.compile(r"[0-9]{19}")


def _no_infinity(name: str) -> None:
    if name != "NaN":
        raise ValueError(name)


_STANDARD = json.JSONDecoder(parse_constant=_no_infinity, parse_float=number_of)
_OF_LONG_NUMBERS = json.JSONDecoder(
    parse_constant=_no_infinity, parse_float=number_of, parse_int=number_of
)


def _standard(text: str) -> Any:
    decoder = _OF_LONG_NUMBERS if _LONG_NUMBER.search(text) else _STANDARD
    value = decoder.decode(text)
    return without_half_pairs(value) if _HALF_PAIR.search(text) else value


#: The fastest that is there.
_LOADS: Callable[[str], Any] = _standard
with suppress(ImportError):
    _LOADS = import_module("orjson").loads


def parse_json(text: str) -> Any:
    """The value of a JSON text; NaN is None, as it is for RocketMQ's servers.

    Raises ValueError: for all that is no JSON, and for more than MAX_DEPTH open brackets.

    >>> parse_json('{"kind":"heartbeat"}')
    {'kind': 'heartbeat'}
    """
    try:
        value = _LOADS(text)
    except (ValueError, RecursionError):
        try:
            value = _standard(text)
        except RecursionError as error:
            raise ValueError(str(error)) from error
    if _may_be_deep(text) and _is_deeper(value, MAX_DEPTH):
        raise ValueError(f"expected at most {MAX_DEPTH} brackets open at once")
    return value


_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _may_be_deep(text: str) -> bool:
    """True if more than MAX_DEPTH brackets may be open at once; those in strings count too."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    brackets = text.encode("utf-8", "replace").translate(None, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        inner = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if inner == brackets:
            break
        brackets = inner
    return bool(brackets)


def _is_deeper(value: Any, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return depth == 0 or any(_is_deeper(part, depth - 1) for part in parts)


def parse_body(text: str) -> Any:
    """The value of a body as RocketMQ or the dashboard print it.

    An object that is a key comes as its JSON text; of equal keys the last counts, as in any map.

    Raises FastjsonError: see ``fastjson.parse``.

    >>> parse_body('{"brokerAddrs":{0:"10.0.1.1:10911"}}')
    {'brokerAddrs': {'0': '10.0.1.1:10911'}}
    >>> parse_body('{{"id":7} : "a"}')
    {'{"id":7}': 'a'}
    """
    if '"$ref"' not in text and not _may_be_deep(text):
        for quoted in _quoted(text):
            try:  # not by suppress(), which takes its time with every body
                return _LOADS(quoted)
            except (ValueError, RecursionError):
                continue
    value = fastjson.parse(text)
    return without_half_pairs(value) if _HALF_PAIR.search(text) else value


def _quoted(text: str) -> Iterator[str]:
    """The text as it came, with quotes around the queues that are keys, and around the integers."""
    yield text
    parts = _QUEUE_KEY.split(text)
    parts[1::2] = ['"' + queue.replace('"', '\\"') + '":' for queue in parts[1::2]]
    queues_quoted = "".join(parts)
    yield queues_quoted
    yield _INTEGER_KEY.sub(r'\1"\2":', queues_quoted)


def without_half_pairs(value: Any) -> Any:
    r"""The value with ``?`` for each half of a surrogate pair, which no UTF-8 text can hold.

    Java writes it so; a client that cuts a name in the middle of a character prints such halves.

    >>> without_half_pairs({"clientId": ["a\ud83d"]})
    {'clientId': ['a?']}
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [without_half_pairs(part) for part in value]
    if isinstance(value, dict):
        return {without_half_pairs(name): without_half_pairs(it) for name, it in value.items()}
    return value
