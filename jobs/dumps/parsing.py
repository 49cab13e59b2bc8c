r"""text -> value: what RocketMQ's servers, tools and dashboard print, as JSON or nearly so.

RocketMQ prints through fastjson 1.x, whose text is often not JSON:

* numbers as map keys are not quoted: ``{0:"10.0.1.1:10911"}`` (``brokerAddrs`` of a route);
* objects are map keys: ``{{"brokerName":"b","queueId":0,"topic":"T"}:{...}}`` (``mqTable`` of
  ConsumerRunningInfo, ``offsetTable`` of ConsumeStats);
* a Java object that occurs twice is printed once, then named: ``{"$ref":"$.result.ip1[0]"}``.

Keys of the first two kinds are put in quotes, and a JSON parser reads the rest: ``orjson`` where it
is installed, the standard library's where it is not. What one of them refuses is tried by the
other, so that all ways give the same value, or the same refusal (``tests/fuzz``). All else
(``$ref``, single quotes, blanks before a key) ``parse_tokens`` reads, one token after the other.
How deeply a text may nest is left to none of them: MAX_DEPTH holds for all. An integer beyond 64
bits is a float.

Source: alibaba/fastjson 1.x, ``MapSerializer`` (keys), ``JSONSerializer.writeReference`` and
``SerialContext`` (references), ``JSONLexerBase.scanString`` (escapes).
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from .values import json_text

#: Brackets and braces that may be open at once. Real bodies stay under ten.
MAX_DEPTH = 100
#: Values that a text may hold once its references are written out.
MAX_REFERRED_VALUES = 1_000_000
_KEY_FIELDS = ("topic", "brokerName", "queueId")
#: Longer than any index; int() refuses thousands of digits with another error.
_MAX_INT_DIGITS = 20
_EXCERPT = 24

#: A text is a row of tokens; ``none``, which is empty, is taken where no other fits.
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<mark>[{}\[\],:])
      | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*" | '[^'\\]*(?:\\.[^'\\]*)*')
      | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)
      | (?P<word>[A-Za-z_$][\w$]*)
      | (?P<none>)
    )""",
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"-?[0-9]+")
_WORDS = {"true": True, "false": False, "null": None, "NaN": None}

_ESCAPE = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\(.)",
    re.DOTALL,
)
_ESCAPED = {
    **{letter: letter for letter in "\"'\\/"},
    **{str(code): chr(code) for code in range(8)},
    **{"b": "\b", "f": "\f", "F": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"},
}
#: One step of a reference's path: ``.name`` with its special characters escaped, or ``[index]``.
_STEP = re.compile(r"\.((?:[^.\[\\]|\\.)+)|\[(-?[0-9]+)\]", re.DOTALL)
_STEP_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
#: Fastjson's name of an object that it printed as a map key, in the path of a reference.
_KEY_STEP = "null"


class FastjsonError(ValueError):
    """The text is not what fastjson or Jackson print, or a queue in it is none.

    It is made of the offset of the character where it shows, what could have been there, and what
    was (an excerpt, escaped).
    """

    def __str__(self) -> str:
        position, expected, came = self.args
        return f"at character {position}: expected {expected}, came {came}"


def parse_tokens(text: str) -> Any:
    r"""The value that the text holds: dict, list, str, int, float, bool or None.

    Keys are strings, an object that is a key its JSON text; of equal keys the last counts, as with
    fastjson. References are replaced with a copy of what they name. ``NaN`` is None. Strings may be
    in single quotes, hold fastjson's escapes (``\x41``, ``\v``, ``\0``) and control characters.

    Raises FastjsonError, and no other error: for anything else (``,,``, a comma before a closing
    bracket, text after the value, ``Infinity``, numbers out of range, more than MAX_DEPTH open
    brackets), and for a reference to nothing or to an object that holds the reference.

    >>> parse_tokens('{0:"a",1:"b"\n\t}')
    {'0': 'a', '1': 'b'}
    >>> parse_tokens('{{"id":7} : true}')
    {'{"id":7}': True}
    >>> parse_tokens('{"a":[{"n":1}],"b":{"$ref":"$.a[0]"}}')
    {'a': [{'n': 1}], 'b': {'n': 1}}
    """
    try:
        value = _Reader(text).read()
        return _Resolver(value).copy(value)
    except RecursionError:
        raise FastjsonError(0, "a text that the stack left allows", _excerpt(text, 0)) from None


def number_of(text: str) -> int | float:
    """The number; what 64 bits do not hold is a float, and infinite where no double is so large.

    >>> number_of("18446744073709551615"), number_of("18446744073709551616"), number_of("1e400")
    (18446744073709551615, 1.8446744073709552e+19, inf)
    """
    if len(text) <= _MAX_INT_DIGITS and _INTEGER.fullmatch(text):
        whole = int(text)
        if -(1 << 63) <= whole < 1 << 64:
            return whole
    return float(text)


def _excerpt(text: str, position: int) -> str:
    part = text[position : position + _EXCERPT]
    return repr(part) if part else "the end of the text"


class _Reference(NamedTuple):
    """A ``{"$ref": path}`` that has not been looked up yet."""

    path: str
    position: int

    def error(self, expected: str) -> FastjsonError:
        return FastjsonError(self.position, expected, f"a reference to {self.path[:80]!r}")


class _Entries(list[tuple[Any, Any]]):
    """The keys and values of a map in which some key is an object, or a reference to one."""


class _Reader:
    """One pass over the text; each method takes the tokens that it reads, the next one is there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.finditer(text)
        self._take()

    def read(self) -> Any:
        value = self._value(0)
        if self._start < len(self._text):
            self._fail("the end of the text", self._start)
        return value

    def _take(self) -> None:
        """Goes to the next token: its kind, what it is, where it starts, what mark it is if one."""
        token = next(self._tokens)
        self._kind = token.lastgroup or "none"
        self._lexeme = token[self._kind]
        self._start = token.start(self._kind)
        self._mark = token["mark"]

    def _value(self, depth: int) -> Any:
        kind, lexeme, start = self._kind, self._lexeme, self._start
        if self._mark == "{":
            return self._object(depth + 1)
        if self._mark == "[":
            return [self._value(depth + 1) for _ in self._items("]", depth + 1)]
        if kind in ("mark", "none") or (kind == "word" and lexeme not in _WORDS):
            self._fail("a value", start)
        self._take()
        if kind == "word":
            return _WORDS[lexeme]
        if kind == "string":
            return self._unescaped(lexeme, start)
        return number_of(lexeme)

    def _items(self, closing: str, depth: int) -> Iterator[None]:
        """Goes to each of the items between two brackets, and behind the closing one."""
        if depth > MAX_DEPTH:
            self._fail(f"at most {MAX_DEPTH} brackets open at once", self._start)
        self._take()
        if self._mark == closing:
            self._take()
            return
        came = ","
        while came == ",":
            yield
            came = self._mark
            if came not in (",", closing):
                self._fail(f"',' or {closing!r}", self._start)
            self._take()

    def _object(self, depth: int) -> Any:
        start = self._start
        pairs = []
        for _ in self._items("}", depth):
            key = self._key(depth)
            if self._mark != ":":
                self._fail("':' after a key", self._start)
            self._take()
            pairs.append((key, self._value(depth)))
        if not all(isinstance(key, str) for key, _ in pairs):
            return _Entries(pairs)
        fields = dict(pairs)
        path = fields.get("$ref")
        if len(fields) == 1 and isinstance(path, str) and "$ref" in self._text:
            return _Reference(path, start)
        return fields

    def _key(self, depth: int) -> Any:
        """A string, an integer or a name as string; or the object that is the key."""
        if self._mark == "{":
            return self._value(depth)
        kind, lexeme, start = self._kind, self._lexeme, self._start
        if kind not in ("string", "word") and _INTEGER.fullmatch(lexeme) is None:
            self._fail("a key", start)
        self._take()
        return self._unescaped(lexeme, start) if kind == "string" else lexeme

    def _unescaped(self, quoted: str, start: int) -> str:
        def character(escape: re.Match[str]) -> str:
            high, low, code, byte, letter = escape.groups()
            if high is not None:
                return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
            if letter is None:
                return chr(int(code or byte, 16))
            if letter not in _ESCAPED:
                self._fail("an escape that fastjson knows", start + 1 + escape.start())
            return _ESCAPED[letter]

        return _ESCAPE.sub(character, quoted[1:-1])

    def _fail(self, expected: str, position: int) -> NoReturn:
        raise FastjsonError(position, expected, _excerpt(self._text, position))


class _Resolver:
    """Copies a value with each reference replaced by a copy of what it names.

    Copies, so that nothing in the answer is shared; counted, so that a few references to each
    other cannot become a text of any size.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self._open: set[int] = set()
        self._following: set[int] = set()
        self._copied = 0

    def copy(self, node: Any, depth: int = 0, via: _Reference | None = None) -> Any:
        if isinstance(node, _Reference):
            via = node
            node = self._named(node)
            if id(node) in self._open:
                raise via.error("a reference to an object that does not hold it")
        if via is not None:
            self._copied += 1
            if self._copied > MAX_REFERRED_VALUES:
                raise via.error(f"references that name at most {MAX_REFERRED_VALUES} values")
            if depth > 2 * MAX_DEPTH:
                raise via.error("references that do not nest deeply")
        if not isinstance(node, dict | list):
            return node
        self._open.add(id(node))
        if isinstance(node, list) and not isinstance(node, _Entries):
            copy: Any = [self.copy(child, depth + 1, via) for child in node]
        else:
            copy = {}
            for key, child in node.items() if isinstance(node, dict) else node:
                name = key if isinstance(key, str) else self.copy(key, depth + 1, via)
                text = name if isinstance(name, str) else json_text(name)
                copy[text] = self.copy(child, depth + 1, via)
        self._open.discard(id(node))
        return copy

    def _named(self, node: Any) -> Any:
        """The node, or what it names where it is a reference."""
        if not isinstance(node, _Reference):
            return node
        reference, path = node, node.path
        if path in ("@", ".."):
            # The object that holds the reference, and the one that holds that.
            raise reference.error("a reference to an object that does not hold it")
        if not path.startswith("$"):
            raise reference.error("a path that starts with '$'")
        if id(reference) in self._following:
            raise reference.error("references that do not name each other")
        if len(self._following) >= MAX_DEPTH:
            raise reference.error(f"at most {MAX_DEPTH} references that name each other")
        self._following.add(id(reference))
        node = self._named(self._root)
        position = 1
        while position < len(path):
            step = _STEP.match(path, position)
            if step is None:
                raise reference.error("a path of '.name' and '[index]' steps")
            name, index = step.groups()
            if name is None:
                node = self._named(self._item(node, index, reference))
            else:
                node = self._named(self._field(node, _STEP_ESCAPE.sub(r"\1", name), reference))
            position = step.end()
        self._following.discard(id(reference))
        return node

    def _field(self, node: Any, name: str, reference: _Reference) -> Any:
        if isinstance(node, dict) and name in node:
            return node[name]
        if isinstance(node, _Entries):
            found = [value for key, value in node if self._key_text(key) == name]
            if not found and name == _KEY_STEP:
                found = [key for key, _ in node if isinstance(key, dict)]
            if len(found) == 1:
                return found[0]
        raise reference.error("a reference to a value that is there, and the only one of its name")

    def _item(self, node: Any, index: str, reference: _Reference) -> Any:
        if isinstance(node, dict | _Entries):  # a map with integer keys
            return self._field(node, index, reference)
        if isinstance(node, list) and len(index) < _MAX_INT_DIGITS and 0 <= int(index) < len(node):
            return node[int(index)]
        raise reference.error("a reference to a value that is there")

    def _key_text(self, key: Any) -> str | None:
        """The text that Java prints for a key; of objects only message queues are supported."""
        key = self._named(key)
        if isinstance(key, str):
            return key
        if not isinstance(key, dict) or not key.keys() >= {*_KEY_FIELDS}:
            return None
        topic, broker_name, queue_id = (key[name] for name in _KEY_FIELDS)
        return f"MessageQueue [topic={topic}, brokerName={broker_name}, queueId={queue_id}]"


#: Quoting inside a string cannot go unseen: the quote ends the string, and a digit or a brace after
#: a string is no JSON, so that the text goes to ``parse_tokens`` as it came.
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

    Raises FastjsonError: see ``parse_tokens``.

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
    value = parse_tokens(text)
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
