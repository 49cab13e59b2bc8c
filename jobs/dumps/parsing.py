r"""text -> value: JSON by the fastest parser that is there, what is none by ``fastjson``.

Most of what RocketMQ prints is JSON but for two kinds of map keys: integers (``{0:"10.0.1.1"}``)
and message queues (``{{"brokerName":"b","queueId":0,"topic":"T"}:{..}}``). Such keys are put in
quotes, and a JSON parser reads the rest. All else (``$ref``, single quotes, blanks before a key)
is left to ``fastjson.parse``, which reads one token after the other.

``orjson`` is used where it is installed, the standard library's parser where it is not; what one
of them refuses is tried by the other, so that both give the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from json import JSONDecoder
from typing import Any

from jobs.dumps import fastjson

#: Quoting inside a string cannot go unseen: the quote ends the string, and a digit or a brace after
#: a string is no JSON, so that the text goes to ``fastjson`` as it came.
_INTEGER_KEY = re.compile(r"([{,])(-?(?:0|[1-9][0-9]*)):")
_QUEUE_KEY = re.compile(
    r'([{,])\{"brokerName":"([^"\\]*)","queueId":(-?[0-9]+),"topic":"([^"\\]*)"\}:'
)
_QUOTED_QUEUE_KEY = r'\1"{\\"brokerName\\":\\"\2\\",\\"queueId\\":\3,\\"topic\\":\\"\4\\"}":'

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def _no_infinity(name: str) -> None:
    if name != "NaN":
        raise ValueError(name)


_STANDARD = JSONDecoder(parse_constant=_no_infinity)


def _standard(text: str) -> Any:
    value = _STANDARD.decode(text)
    return without_half_pairs(value) if _HALF_PAIR.search(text) else value


def _fastest() -> Callable[[str], Any]:
    try:
        loads: Callable[[str], Any] = import_module("orjson").loads
    except ImportError:
        return _standard
    return loads


_LOADS = _fastest()


def parse_json(text: str) -> Any:
    """The value of a JSON text; NaN is None, as it is for RocketMQ's servers.

    Raises ValueError: for all that is no JSON, and for brackets that nest too deeply.

    >>> parse_json('{"kind":"heartbeat"}')
    {'kind': 'heartbeat'}
    """
    try:
        return _LOADS(text)
    except (ValueError, RecursionError) as error:
        if _LOADS is _standard:
            raise ValueError(str(error)) from error
    try:
        return _standard(text)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def parse_body(text: str) -> Any:
    """The value of a body as RocketMQ or the dashboard print it.

    Message queues that are keys come as a JSON text, as Java's ``toString()``, or as entries of an
    object and a value: ``queue_maps`` reads all three.

    Raises FastjsonError: see ``fastjson.parse``.

    >>> parse_body('{"brokerAddrs":{0:"10.0.1.1:10911"}}')
    {'brokerAddrs': {'0': '10.0.1.1:10911'}}
    """
    if '"$ref"' not in text:
        try:
            return _LOADS(text)
        except (ValueError, RecursionError):
            pass
        quoted = _INTEGER_KEY.sub(r'\1"\2":', _QUEUE_KEY.sub(_QUOTED_QUEUE_KEY, text))
        if quoted != text:
            try:
                return _LOADS(quoted)
            except (ValueError, RecursionError):
                pass
    value = fastjson.parse(text)
    return without_half_pairs(value) if _HALF_PAIR.search(text) else value


def without_half_pairs(value: Any) -> Any:
    r"""The value with ``?`` for each half of a surrogate pair, which no UTF-8 text can hold.

    Java writes it so; a client that cuts a name in the middle of a character prints such halves.

    >>> without_half_pairs({"clientId": ["a\ud83d"]})
    {'clientId': ['a?']}
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [without_half_pairs(each) for each in value]
    if isinstance(value, dict):
        return {without_half_pairs(name): without_half_pairs(it) for name, it in value.items()}
    return value
