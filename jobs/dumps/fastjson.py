r"""Reads what RocketMQ's servers, tools and dashboard print as JSON, and gives standard JSON.

RocketMQ prints through fastjson 1.x, whose text is often not JSON:

* numbers as map keys are not quoted: ``{0:"10.0.1.1:10911"}`` (``brokerAddrs`` of a route);
* objects are map keys: ``{{"brokerName":"b","queueId":0,"topic":"T"}:{...}}`` (``mqTable`` of
  ConsumerRunningInfo, ``offsetTable`` of ConsumeStats);
* a Java object that occurs twice is printed once, then named: ``{"$ref":"$.result.ip1[0]"}``.

The dashboard prints the same beans through Jackson, which spells a message queue that is a map
key with Java's ``toString()``: ``"MessageQueue [topic=T, brokerName=b, queueId=0]"``.

``parse`` reads any of these. ``to_standard_json`` moreover makes the spellings of the maps keyed
by message queue one, so that a single schema reads them:

    >>> to_standard_json('{"mqTable":{{"brokerName":"b","queueId":0,"topic":"T"}:{"locked":true}}}')
    '{"mqTable":[{"key":{"topic":"T","brokerName":"b","queueId":0},"value":{"locked":true}}]}'

Errors: only ``FastjsonError``, whatever the text.

Source: alibaba/fastjson 1.x, ``MapSerializer`` (keys), ``JSONSerializer.writeReference`` and
``SerialContext`` (references), ``JSONLexerBase.scanString`` (escapes); apache/rocketmq
``MessageQueue.toString``; apache/rocketmq-dashboard ``JsonResult``.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn

#: Brackets and braces that may be open at once. Real bodies stay under ten.
MAX_DEPTH = 100
#: Values that a text may hold once its references are written out.
MAX_REFERRED_VALUES = 1_000_000
#: The fields whose value is a map keyed by message queue.
QUEUE_MAP_FIELDS = frozenset({"mqTable", "mqPopTable", "offsetTable", "messageQueueTable"})
_KEY_FIELDS = ("topic", "brokerName", "queueId")

#: Maps whose keys are anybody's names, among them perhaps a topic "mqTable". Not looked into.
_FREE_MAPS = frozenset({"properties", "statusTable", "subscriptionTable", "userConsumerInfo"})
_MAY_NEED_CONVERSION = re.compile("|".join([*sorted(QUEUE_MAP_FIELDS), "queueStatInfoList"]))

#: How often the standard decoder may fail within one text before it is no longer tried.
_MAX_FAILURES = 32
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
_NESTING = re.compile(r"""[{}\[\]]|"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'""", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")

#: One step of a reference's path: ``.name`` with its special characters escaped, or ``[index]``.
_STEP = re.compile(r"\.((?:[^.\[\\]|\\.)+)|\[(-?[0-9]+)\]", re.DOTALL)
_STEP_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
#: What fastjson calls an object that it printed as a map key, in the path of a reference.
_KEY_STEP = "null"


class FastjsonError(ValueError):
    """The text is not what fastjson or Jackson print, or a queue in it cannot be told.

    ``position`` is the offset of the character where it shows, ``expected`` says what could have
    stood there, ``came`` what did (an excerpt, escaped).
    """

    def __init__(self, position: int, expected: str, came: str) -> None:
        super().__init__(position, expected, came)
        self.position = position
        self.expected = expected
        self.came = came

    def __str__(self) -> str:
        return f"at character {self.position}: expected {self.expected}, came {self.came}"


def parse(text: str, *, shortcuts: bool = True) -> Any:
    r"""The value that the text holds: dict, list, str, int, float, bool or None.

    A map with at least one object as key becomes a list of ``{"key": ..., "value": ...}`` in the
    text's order, repeated keys kept. Other keys become strings; of a repeated one the last counts,
    as with fastjson. References are replaced with a copy of what they name. ``NaN`` is None.
    Strings may stand in single quotes, hold fastjson's escapes (``\x41``, ``\v``, ``\0``) and
    control characters.

    With ``shortcuts=False`` the standard library's decoder is not used; the answer is the same.

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
    has_references = "$ref" in text
    try:
        if shortcuts and not has_references:
            value = _decoded(text)
            _check_depth(text, value)
            return value
        reader = _Reader(text, shortcuts=False)
        value = reader.read()
        return _Resolver(value).resolved() if has_references else value
    except RecursionError:
        raise FastjsonError(0, "a text that the stack left allows", _excerpt(text, 0)) from None


def to_standard_json(text: str) -> str:
    """The text as standard JSON without blanks, each map keyed by message queue as an entry list.

    The value of ``mqTable``, ``mqPopTable``, ``offsetTable`` and ``messageQueueTable`` becomes
    ``[{"key":{"topic":..,"brokerName":..,"queueId":..},"value":{..}}]``, whichever way its keys
    were spelled; null stays null. The dashboard's ``queryTopicByConsumer.query`` (topics with
    their ``queueStatInfoList``) becomes ``{"offsetTable":[..]}`` likewise. The dashboard's
    envelope (``status``, ``data``, ``errMsg``) stays. Applying it twice is applying it once.

    Raises FastjsonError: as ``parse``; and for a key of such a map that is no message queue. Its
    position is then that of the map's field name.

    >>> key = "MessageQueue [topic=T, brokerName=b, queueId=0]"
    >>> to_standard_json('{"status":0,"data":{"offsetTable":{"%s":{"brokerOffset":9}}}}' % key)[:49]
    '{"status":0,"data":{"offsetTable":[{"key":{"topic'
    """
    value = parse(text)
    if _MAY_NEED_CONVERSION.search(text) is not None:
        value = _Converter(text).converted(value)
    standard = _ENCODE(value)
    if not standard.isascii():
        # Half a pair cannot be written as UTF-8; its escape can.
        standard = _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", standard)
    return standard


def parse_message_queue(text: str) -> tuple[str, str, int] | None:
    """Topic, broker name and queue id of what ``MessageQueue.toString()`` printed, else None.

    The names may hold commas and brackets. Where ``, brokerName=`` occurs more than once the first
    one separates, because RocketMQ lets no comma, blank or equals sign into a topic name
    (``TopicValidator``), whereas a broker's name is free.

    >>> parse_message_queue("MessageQueue [topic=%RETRY%g, brokerName=a, b], queueId=-1]")
    ('%RETRY%g', 'a, b]', -1)
    """
    body = text.removeprefix("MessageQueue [topic=")
    names, separator, last = body.rpartition(", queueId=")
    topic, between, broker_name = names.partition(", brokerName=")
    queue_id = last.removesuffix("]")
    if body == text or not separator or not between or queue_id == last:
        return None
    if len(queue_id) > _MAX_INT_DIGITS or _INTEGER.fullmatch(queue_id) is None:
        return None
    return topic, broker_name, int(queue_id)


#: Longer than any queue id; int() refuses thousands of digits with an error of its own.
_MAX_INT_DIGITS = 20


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(number)
    return value


def _constant(name: str) -> None:
    """What the standard decoder makes of NaN; Infinity, which fastjson reads not, is refused."""
    if name != "NaN":
        raise ValueError(name)


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_constant)
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _decoded(text: str) -> Any:
    with contextlib.suppress(ValueError, RecursionError):
        return _DECODER.decode(text)
    return _Reader(text, shortcuts=True).read()


def _excerpt(text: str, position: int) -> str:
    part = text[position : position + _EXCERPT]
    return repr(part) if part else "the end of the text"


def _check_depth(text: str, value: Any) -> None:
    """Refuses what the standard decoder read although it is nested too deeply."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    # The value is nested at least as deeply as the text: more where objects are keys.
    level: list[Any] = [value]
    depth = 0
    while level and depth < MAX_DEPTH:
        depth += 1
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
    if not level:
        return
    depth = 0
    for bracket in _NESTING.finditer(text):
        if bracket[0] in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(text, bracket.start())
        elif bracket[0] in "}]":
            depth -= 1


def _too_deep(text: str, position: int) -> FastjsonError:
    return FastjsonError(
        position, f"at most {MAX_DEPTH} brackets open at once", _excerpt(text, position)
    )


class _Reference:
    """A ``{"$ref": path}`` that has not been looked up yet."""

    __slots__ = ("path", "position")

    def __init__(self, path: str, position: int) -> None:
        self.path = path
        self.position = position

    def error(self, expected: str) -> FastjsonError:
        return FastjsonError(self.position, expected, f"a reference to {self.path[:80]!r}")


class _Entries(list[dict[str, Any]]):
    """The entry list of a map with object keys, told apart from an array that looks like one."""


class _Reader:
    """One pass over the text: token by token up to what the standard decoder cannot read.

    The decoder is tried only behind the place where it failed last, so no part of the text is
    read more than twice; and not for ever, because an error of it counts the lines before it.
    """

    __slots__ = ("_failed_at", "_failures_left", "_has_references", "_position", "_text")

    def __init__(self, text: str, *, shortcuts: bool) -> None:
        self._text = text
        self._position = 0
        self._failures_left = _MAX_FAILURES if shortcuts else 0
        self._failed_at = 0
        self._has_references = "$ref" in text

    def read(self) -> Any:
        value = self._value(0)
        if self._peek():
            self._fail("the end of the text", self._position)
        return value

    def _value(self, depth: int) -> Any:
        text = self._text
        first = self._peek()
        start = self._position
        if self._failures_left and start >= self._failed_at and first in ("{", "["):
            try:
                decoded, self._position = _DECODER.raw_decode(text, start)
            except json.JSONDecodeError as error:
                self._failed_at = error.pos
                self._failures_left -= 1
            except (ValueError, RecursionError):
                self._failures_left = 0
            else:
                return decoded
        match = _TOKEN.match(text, start)
        if match is None:
            self._fail("a value", start)
        self._position = match.end()
        kind = match.lastindex
        lexeme: str = match[kind]  # type: ignore[index]  # one group always matches
        value: Any
        if kind == _PLAIN:
            value = lexeme
        elif kind == _NUMBER:
            value = self._number(lexeme, start)
        elif lexeme == "{":
            value = self._object(depth + 1, start)
        elif lexeme == "[":
            value = self._array(depth + 1, start)
        elif kind == _QUOTED:
            value = self._unescaped(lexeme, start)
        elif kind == _WORD and lexeme in _WORDS:
            value = _WORDS[lexeme]
        else:
            self._fail("a value", start)
        return value

    def _array(self, depth: int, start: int) -> list[Any]:
        if depth > MAX_DEPTH:
            raise _too_deep(self._text, start)
        items: list[Any] = []
        if self._peek() == "]":
            self._position += 1
            return items
        while True:
            items.append(self._value(depth))
            if not self._comma_or("]"):
                return items

    def _object(self, depth: int, start: int) -> Any:
        if depth > MAX_DEPTH:
            raise _too_deep(self._text, start)
        fields: dict[str, Any] = {}
        if self._peek() == "}":
            self._position += 1
            return fields
        entries: _Entries | None = None
        while True:
            key = self._key(depth)
            if self._peek() != ":":
                self._fail("':' after a key", self._position)
            self._position += 1
            value = self._value(depth)
            if entries is None and not isinstance(key, str):
                entries = _Entries({"key": name, "value": it} for name, it in fields.items())
            if entries is None:
                fields[key] = value
            else:
                entries.append({"key": key, "value": value})
            if not self._comma_or("}"):
                break
        if entries is not None:
            return entries if self._has_references else list(entries)
        if self._has_references and len(fields) == 1 and isinstance(fields.get("$ref"), str):
            return _Reference(fields["$ref"], start)
        return fields

    def _key(self, depth: int) -> Any:
        """A string, an integer or a name as string; or the object that is the key."""
        if self._peek() == "{":
            return self._value(depth)
        start = self._position
        match = _TOKEN.match(self._text, start)
        kind = match.lastindex if match is not None else None
        if match is None or kind is None:
            self._fail("a key", start)
        lexeme: str = match[kind]
        self._position = match.end()
        if kind in (_PLAIN, _WORD):
            return lexeme
        if kind == _QUOTED:
            return self._unescaped(lexeme, start)
        if kind == _NUMBER and _INTEGER.fullmatch(lexeme) is not None:
            return lexeme
        return self._fail("a key", start)

    def _comma_or(self, closing: str) -> bool:
        """True after a comma, False after the closing bracket."""
        came = self._peek()
        if came not in (",", closing):
            self._fail(f"',' or {closing!r}", self._position)
        self._position += 1
        return came == ","

    def _peek(self) -> str:
        """Goes to the next character that is no blank, and tells it; "" at the end."""
        position = self._position
        character = self._text[position : position + 1]
        if character in _BLANKS:
            blanks = _SPACE.match(self._text, position)
            position = self._position = blanks.end() if blanks is not None else position
            character = self._text[position : position + 1]
        return character

    def _number(self, lexeme: str, start: int) -> int | float:
        try:
            return int(lexeme) if _INTEGER.fullmatch(lexeme) is not None else _finite(lexeme)
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

    def resolved(self) -> Any:
        return self._copy(self._root, 0, None)

    def _copy(self, node: Any, depth: int, via: _Reference | None) -> Any:
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
        copy: Any
        if isinstance(node, dict):
            copy = {}
            for name, child in node.items():
                copy[name] = self._copy(child, depth + 1, via)
        else:
            copy = []
            for child in node:
                copy.append(self._copy(child, depth + 1, via))
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
            if name is not None:
                node = self._field(node, _STEP_ESCAPE.sub(r"\1", name), reference)
            else:
                node = self._item(node, index, reference)
            node = self._named(node)
            position = step.end()
        self._following.discard(id(reference))
        return node

    def _named(self, node: Any) -> Any:
        return self._follow(node) if isinstance(node, _Reference) else node

    def _field(self, node: Any, name: str, reference: _Reference) -> Any:
        if isinstance(node, dict) and name in node:
            return node[name]
        if isinstance(node, _Entries):
            found = [entry["value"] for entry in node if self._key_text(entry["key"]) == name]
            if not found and name == _KEY_STEP:
                found = [entry["key"] for entry in node if isinstance(entry["key"], dict)]
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
        """What Java prints for a key: of the objects, only message queues are known."""
        key = self._named(key)
        if isinstance(key, str):
            return key
        if not isinstance(key, dict) or not key.keys() >= {*_KEY_FIELDS}:
            return None
        topic, broker_name, queue_id = (key[name] for name in _KEY_FIELDS)
        return f"MessageQueue [topic={topic}, brokerName={broker_name}, queueId={queue_id}]"


class _Converter:
    """Gives the maps keyed by message queue their one shape, in the value that it is given."""

    def __init__(self, text: str) -> None:
        self._text = text

    def converted(self, root: Any) -> Any:
        if self._is_topic_offsets(root):
            return self._topic_offsets(root)
        if isinstance(root, dict) and self._is_topic_offsets(root.get("data")):
            root["data"] = self._topic_offsets(root["data"])
        else:
            self._convert(root)
        return root

    def _convert(self, node: Any) -> None:
        if isinstance(node, list):
            for item in node:
                if isinstance(item, dict | list):
                    self._convert(item)
        elif isinstance(node, dict):
            for name, value in node.items():
                if name in QUEUE_MAP_FIELDS:
                    node[name] = self._entries(name, value)
                elif isinstance(value, dict | list) and name not in _FREE_MAPS:
                    self._convert(value)

    def _entries(self, field: str, table: Any) -> list[dict[str, Any]] | None:
        if table is None:
            return None
        pairs: Iterable[tuple[Any, Any]]
        if isinstance(table, dict):
            pairs = table.items()
        elif isinstance(table, list):
            for entry in table:
                if not isinstance(entry, dict) or entry.keys() != {"key", "value"}:
                    self._fail(field, f"entries of a key and a value in {field}", entry)
            pairs = ((entry["key"], entry["value"]) for entry in table)
        else:
            self._fail(field, f"a map as {field}", table)
        return [{"key": self._queue(field, key), "value": value} for key, value in pairs]

    def _queue(self, field: str, key: Any) -> dict[str, Any]:
        given = key
        if isinstance(key, str):
            if key.startswith("{"):  # fastjson's WriteNonStringKeyAsString
                try:
                    key = parse(key)
                except FastjsonError:
                    key = None
            else:
                names = parse_message_queue(key)
                if names is not None:
                    key = dict(zip(_KEY_FIELDS, names, strict=True))
        if isinstance(key, dict):
            topic, broker, queue_id = (key.get(name) for name in _KEY_FIELDS)
            if isinstance(topic, str) and isinstance(broker, str) and type(queue_id) is int:
                return {"topic": topic, "brokerName": broker, "queueId": queue_id}
        return self._fail(field, f"a message queue as key in {field}", given)

    @staticmethod
    def _is_topic_offsets(data: Any) -> bool:
        return isinstance(data, list) and any(
            isinstance(topic, dict) and "queueStatInfoList" in topic for topic in data
        )

    def _topic_offsets(self, topics: list[Any]) -> dict[str, Any]:
        field = "queueStatInfoList"
        entries = []
        for topic in topics:
            rows = topic.get(field, ()) if isinstance(topic, dict) else ()
            if not isinstance(rows, list | None):
                self._fail(field, f"a topic with its {field}", topic)
            for row in rows or ():
                if not isinstance(row, dict):
                    self._fail(field, f"objects in {field}", row)
                key = {**row, "topic": topic.get("topic")}
                value = {name: it for name, it in row.items() if name not in _KEY_FIELDS}
                entries.append({"key": self._queue(field, key), "value": value})
        return {"offsetTable": entries}

    def _fail(self, field: str, expected: str, came: Any) -> NoReturn:
        position = max(self._text.find(f'"{field}"'), 0)
        raise FastjsonError(position, expected, repr(came)[:80])
