r"""Reads what RocketMQ's servers, tools and dashboard print as JSON, token by token.

RocketMQ prints through fastjson 1.x, whose text is often not JSON:

* numbers as map keys are not quoted: ``{0:"10.0.1.1:10911"}`` (``brokerAddrs`` of a route);
* objects are map keys: ``{{"brokerName":"b","queueId":0,"topic":"T"}:{...}}`` (``mqTable`` of
  ConsumerRunningInfo, ``offsetTable`` of ConsumeStats);
* a Java object that occurs twice is printed once, then named: ``{"$ref":"$.result.ip1[0]"}``.

Errors: only ``FastjsonError``, whatever the text.

Source: alibaba/fastjson 1.x, ``MapSerializer`` (keys), ``JSONSerializer.writeReference`` and
``SerialContext`` (references), ``JSONLexerBase.scanString`` (escapes).
"""

import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

#: Brackets and braces that may be open at once. Real bodies stay under ten.
MAX_DEPTH = 100
#: Values that a text may hold once its references are written out.
MAX_REFERRED_VALUES = 1_000_000
_KEY_FIELDS = ("topic", "brokerName", "queueId")
#: Longer than any index; int() refuses thousands of digits with another error.
_MAX_INT_DIGITS = 20
_EXCERPT = 24

_BLANKS = " \t\r\n"
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        ([{}\[\],:])
      | "([^"\\]*)"
      | ("[^"\\]*(?:\\.[^"\\]*)*" | '[^'\\]*(?:\\.[^'\\]*)*')
      | (-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)
      | ([A-Za-z_$][\w$]*)
    )""",
    re.VERBOSE | re.DOTALL,
)
_PUNCTUATION, _PLAIN, _QUOTED, _NUMBER, _WORD = range(1, 6)
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
#: What fastjson calls an object that it printed as a map key, in the path of a reference.
_KEY_STEP = "null"


class FastjsonError(ValueError):
    """The text is not what fastjson or Jackson print, or a queue in it is none.

    ``position`` is the offset of the character where it shows, ``expected`` is what could have
    been there, ``came`` what was (an excerpt, escaped).
    """

    def __init__(self, position: int, expected: str, came: str) -> None:
        super().__init__(position, expected, came)
        self.position = position
        self.expected = expected
        self.came = came

    def __str__(self) -> str:
        return f"at character {self.position}: expected {self.expected}, came {self.came}"


def parse(text: str) -> Any:
    r"""The value that the text holds: dict, list, str, int, float, bool or None.

    A map with at least one object as key becomes ``Entries``, a list of
    ``{"key": ..., "value": ...}`` in the text's order, repeated keys kept. Other keys become
    strings; of a repeated one the last counts, as with fastjson. References are replaced with a
    copy of what they name. ``NaN`` is None. Strings may be in single quotes, hold fastjson's
    escapes (``\x41``, ``\v``, ``\0``) and control characters.

    Raises FastjsonError: for anything else (``,,``, a comma before a closing bracket, text after
    the value, ``Infinity``, numbers out of range, more than MAX_DEPTH open brackets), and for a
    reference to nothing or to an object that holds the reference.

    >>> parse('{0:"a",1:"b"\n\t}')
    {'0': 'a', '1': 'b'}
    >>> parse('{{"id":7}:true}')
    [{'key': {'id': 7}, 'value': True}]
    >>> parse('{"a":[{"n":1}],"b":{"$ref":"$.a[0]"}}')
    {'a': [{'n': 1}], 'b': {'n': 1}}
    """
    try:
        value = _Reader(text).read()
        return _Resolver(value).copy(value) if "$ref" in text else value
    except RecursionError:
        raise FastjsonError(0, "a text that the stack left allows", _excerpt(text, 0)) from None


def finite(number: str) -> float:
    """The number; ValueError where no double is so large."""
    value = float(number)
    if math.isinf(value):
        raise ValueError(number)
    return value


def _excerpt(text: str, position: int) -> str:
    part = text[position : position + _EXCERPT]
    return repr(part) if part else "the end of the text"


class _Reference:
    """A ``{"$ref": path}`` that has not been looked up yet."""

    __slots__ = ("path", "position")

    def __init__(self, path: str, position: int) -> None:
        self.path = path
        self.position = position

    def error(self, expected: str) -> FastjsonError:
        return FastjsonError(self.position, expected, f"a reference to {self.path[:80]!r}")


class Entries(list[dict[str, Any]]):
    """The entry list of a map with object keys: an array that looks like one is a plain list."""


class _Reader:
    """One pass over the text, token by token."""

    __slots__ = ("_position", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def read(self) -> Any:
        value = self._value(0)
        if self._peek():
            self._fail("the end of the text", self._position)
        return value

    def _token(self, expected: str) -> tuple[int, str, int]:
        """The next token: its kind, what it is, and where it starts."""
        self._peek()
        start = self._position
        match = _TOKEN.match(self._text, start)
        if match is None or match.lastindex is None:
            self._fail(expected, start)
        self._position = match.end()
        return match.lastindex, match[match.lastindex], start

    def _value(self, depth: int) -> Any:
        kind, lexeme, start = self._token("a value")
        if kind == _PLAIN:
            return lexeme
        if kind == _NUMBER:
            return self._number(lexeme, start)
        if lexeme == "{":
            return self._object(depth + 1, start)
        if lexeme == "[":
            return [self._value(depth + 1) for _ in self._items("]", depth + 1, start)]
        if kind == _QUOTED:
            return self._unescaped(lexeme, start)
        if kind == _WORD and lexeme in _WORDS:
            return _WORDS[lexeme]
        return self._fail("a value", start)

    def _items(self, closing: str, depth: int, start: int) -> Iterator[None]:
        """Goes to each of the items between two brackets, and behind the closing one."""
        if depth > MAX_DEPTH:
            self._fail(f"at most {MAX_DEPTH} brackets open at once", start)
        if self._peek() == closing:
            self._position += 1
            return
        came = ","
        while came == ",":
            yield
            came = self._peek()
            if came not in (",", closing):
                self._fail(f"',' or {closing!r}", self._position)
            self._position += 1

    def _object(self, depth: int, start: int) -> Any:
        fields: dict[str, Any] = {}
        entries: Entries | None = None
        for _ in self._items("}", depth, start):
            key = self._key(depth)
            if self._peek() != ":":
                self._fail("':' after a key", self._position)
            self._position += 1
            value = self._value(depth)
            if entries is None and not isinstance(key, str):
                entries = Entries({"key": name, "value": it} for name, it in fields.items())
            if entries is None:
                fields[key] = value
            else:
                entries.append({"key": key, "value": value})
        if entries is not None:
            return entries
        if len(fields) == 1 and isinstance(fields.get("$ref"), str) and "$ref" in self._text:
            return _Reference(fields["$ref"], start)
        return fields

    def _key(self, depth: int) -> Any:
        """A string, an integer or a name as string; or the object that is the key."""
        if self._peek() == "{":
            return self._value(depth)
        kind, lexeme, start = self._token("a key")
        if kind == _QUOTED:
            return self._unescaped(lexeme, start)
        if kind in (_PLAIN, _WORD) or (kind == _NUMBER and _INTEGER.fullmatch(lexeme) is not None):
            return lexeme
        return self._fail("a key", start)

    def _peek(self) -> str:
        """Goes to the next character that is no blank, and returns it; "" at the end."""
        position = self._position
        character = self._text[position : position + 1]
        if character in _BLANKS:
            blanks = _SPACE.match(self._text, position)
            position = self._position = blanks.end() if blanks is not None else position
            character = self._text[position : position + 1]
        return character

    def _number(self, lexeme: str, start: int) -> int | float:
        try:
            if _INTEGER.fullmatch(lexeme) is None:
                return finite(lexeme)
            if len(lexeme) > _MAX_INT_DIGITS:
                finite(lexeme)
            return int(lexeme)
        except ValueError:
            return self._fail("a number in range", start)

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
            node = self._follow(node)
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
        if isinstance(node, dict):
            copy: Any = {name: self.copy(child, depth + 1, via) for name, child in node.items()}
        else:
            copy = type(node)(self.copy(child, depth + 1, via) for child in node)
        self._open.discard(id(node))
        return copy

    def _follow(self, reference: _Reference) -> Any:
        """What a reference names, which is no reference itself."""
        path = reference.path
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

    def _named(self, node: Any) -> Any:
        return self._follow(node) if isinstance(node, _Reference) else node

    def _field(self, node: Any, name: str, reference: _Reference) -> Any:
        if isinstance(node, dict) and name in node:
            return node[name]
        if isinstance(node, Entries):
            found = [entry["value"] for entry in node if self._key_text(entry["key"]) == name]
            if not found and name == _KEY_STEP:
                found = [entry["key"] for entry in node if isinstance(entry["key"], dict)]
            if len(found) == 1:
                return found[0]
        raise reference.error("a reference to a value that is there, and the only one of its name")

    def _item(self, node: Any, index: str, reference: _Reference) -> Any:
        if isinstance(node, dict | Entries):  # a map with integer keys
            return self._field(node, index, reference)
        if isinstance(node, list) and len(index) < _MAX_INT_DIGITS and 0 <= int(index) < len(node):
            return node[int(index)]
        raise reference.error("a reference to a value that is there")

    def _key_text(self, key: Any) -> str | None:
        """What Java prints for a key; of objects as keys only message queues are supported."""
        key = self._named(key)
        if isinstance(key, str):
            return key
        if not isinstance(key, dict) or not key.keys() >= {*_KEY_FIELDS}:
            return None
        topic, broker_name, queue_id = (key[name] for name in _KEY_FIELDS)
        return f"MessageQueue [topic={topic}, brokerName={broker_name}, queueId={queue_id}]"
