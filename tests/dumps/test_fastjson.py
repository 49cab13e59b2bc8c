"""Every way in which RocketMQ's JSON is not JSON, and that nothing but FastjsonError comes out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.dumps import parsing
from jobs.dumps.parsing import MAX_DEPTH, FastjsonError, parse_tokens

QUEUE_0 = '{"brokerName":"b","queueId":0,"topic":"T"}'

READABLE: dict[str, Any] = {
    # JSON, and keys that are none there.
    '{"a":[1,-2,3.5,true,false,null,"x"]}': {"a": [1, -2, 3.5, True, False, None, "x"]},
    '"x"': "x",
    " \t\r\n7 \n": 7,
    '{0:"a"}': {"0": "a"},
    '{-1:"a"}': {"-1": "a"},
    "{status:0,$x_1:1,null:2}": {"status": 0, "$x_1": 1, "null": 2},
    # Pretty prints.
    '{0:"a",1:"b"\n\t}': {"0": "a", "1": "b"},
    '{\n\t"brokerAddrs":{0:"a",1:"b"\n\t},\n\t"n":[\n\t\t1,\n\t\t2\n\t]\n}\n': {
        "brokerAddrs": {"0": "a", "1": "b"},
        "n": [1, 2],
    },
    # Quotes and escapes.
    "{'a':'it\\'s \"x\"'}": {"a": 'it\'s "x"'},
    "['']": [""],
    r"[0x]".replace("0x", r'"\"\\\/\b\f\n\r\t"'): ['"\\/\b\f\n\r\t'],
    r"['\x41\v\0\7\F']": ["A\v\0\7\f"],
    r"['\uD83D\uDE00']": ["\U0001f600"],
    r"['\uD83D']": ["\ud83d"],
    r'{0:"\u8BA2\u5355"}': {"0": "订单"},
    '{0:"a\tb"}': {"0": "a\tb"},
    # Numbers.
    '{"a":18446744073709551615}': {"a": 18446744073709551615},
    "{0:123456789012345678901234567890}": {"0": 1.2345678901234568e29},
    "{0:1.5E-3}": {"0": 0.0015},
    '{"a":NaN,0:NaN}': {"a": None, "0": None},
    # Of a repeated key the last one counts.
    '{"a":1,"a":2}': {"a": 2},
    "{0:1,0:2}": {"0": 2},
    # Objects as keys.
    '{{"id":7}:true}': {'{"id":7}': True},
    "{{a:2}:0, {a:1}:1 ,{a:2} : 2}": {'{"a":2}': 2, '{"a":1}': 1},
    '{"s":1,{"a":1}:2,"t":3}': {"s": 1, '{"a":1}': 2, "t": 3},
    "{{{a:1}:2}:3}": {'{"{\\"a\\":1}":2}': 3},
    "{{}:1}": {"{}": 1},
    '{0:"{{\\"}:{[,"}': {"0": '{{"}:{[,'},
    # References.
    '{"a":[{"n":1}],"b":{"$ref":"$.a[0]"}}': {"a": [{"n": 1}], "b": {"n": 1}},
    '[{"$ref":"$[1]"},{"n":1}]': [{"n": 1}, {"n": 1}],
    '{"a":[{"n":1},{"$ref":"$.a[0]"}],"b":{"$ref":"$.a"}}': {
        "a": [{"n": 1}, {"n": 1}],
        "b": [{"n": 1}, {"n": 1}],
    },
    '{"a":{"x":[5]},"b":{"$ref":"$.a"},"c":{"$ref":"$.b.x"}}': {
        "a": {"x": [5]},
        "b": {"x": [5]},
        "c": [5],
    },
    '{"m":{0:{"n":1},7:[]},"b":{"$ref":"$.m[0]"}}': {"m": {"0": {"n": 1}, "7": []}, "b": {"n": 1}},
    r'{"t":{"%RETRY%g.1":{"n":1}},"b":{"$ref":"$.t.\\%RETRY\\%g\\.1"}}': {
        "t": {"%RETRY%g.1": {"n": 1}},
        "b": {"n": 1},
    },
    r'{"t":{"a\"\\":{"n":1}},"b":{"$ref":"$.t.a\\\"\\\\"}}': {
        "t": {'a"\\': {"n": 1}},
        "b": {"n": 1},
    },
    '{"mqTable":{' + QUEUE_0 + ':{"n":1}},"b":{"$ref":"$.mqTable.'
    r'MessageQueue\\ \\[topic\\=T\\,\\ brokerName\\=b\\,\\ queueId\\=0\\]"}}': {
        "mqTable": {QUEUE_0: {"n": 1}},
        "b": {"n": 1},
    },
    '{"m":{{"id":7}:1},"b":{"$ref":"$.m.null"}}': {"m": {'{"id":7}': 1}, "b": {"id": 7}},
    '{"a":{"id":7},"m":{{"$ref":"$.a"}:1}}': {"a": {"id": 7}, "m": {'{"id":7}': 1}},
    # No reference.
    '[{"$ref":1},{"$ref":"x","y":2},"$ref"]': [{"$ref": 1}, {"$ref": "x", "y": 2}, "$ref"],
}


@pytest.mark.parametrize("text", READABLE)
def test_it_reads(text: str) -> None:
    assert parse_tokens(text) == READABLE[text]


@pytest.mark.parametrize(
    "text",
    [
        "[" * MAX_DEPTH + "]" * MAX_DEPTH,
        "[" + "[[]]," * MAX_DEPTH + "0]",
        '["' + "[{" * MAX_DEPTH + '",[]]',
        "[" * (MAX_DEPTH - 1) + '"' + "[" * MAX_DEPTH + '",[]' + "]" * (MAX_DEPTH - 1),
    ],
    ids=["as deep as may be", "many, not deep", "in a string", "as deep as may be, and a string"],
)
def test_brackets_are_read_if_not_too_many_are_open_at_once(text: str) -> None:
    assert parse_tokens(text) == json.loads(text)


UNREADABLE: dict[str, tuple[str, int, str]] = {
    "nothing": ("", 0, "a value"),
    "blanks only": (" \n", 2, "a value"),
    "text after the value": ('{"a":1} x', 8, "the end of the text"),
    "a second value": ("{0:1}{0:1}", 5, "the end of the text"),
    "two commas in an array": ("[1,,2]", 3, "a value"),
    "two commas in an object": ("{0:1,,1:2}", 5, "a key"),
    "a comma before the end of an array": ("[1,]", 3, "a value"),
    "a comma before the end of an object": ("{0:1,}", 5, "a key"),
    "no comma": ("{0:1 1:2}", 5, "',' or '}'"),
    "no colon": ("{0}", 2, "':' after a key"),
    "the wrong bracket": ("[1}", 2, "',' or ']'"),
    "an object that is cut": ('{"a":{0:1}', 10, "',' or '}'"),
    "a string that is cut": ('{0:"abc', 3, "a value"),
    "a key that is cut": ('{"abc', 1, "a key"),
    "a fraction as key": ("{1.5:1}", 1, "a key"),
    "an array as key": ("{[1]:1}", 1, "a key"),
    "an unknown word": ("[undefined]", 1, "a value"),
    "Infinity": ("[Infinity]", 1, "a value"),
    "minus Infinity": ("[-Infinity]", 1, "a value"),
    "a leading zero": ("[01]", 2, "',' or ']'"),
    "a leading plus": ("[+1]", 1, "a value"),
    "an escape that nobody knows": (r"['a\qb']", 3, "an escape that fastjson knows"),
    "an escape that is cut": (r"['\u12']", 2, "an escape that fastjson knows"),
    "an expression of fastjson": ("[new Date(1)]", 1, "a value"),
    "a reference to nothing": ('{"a":{"$ref":"$.b"}}', 5, "a reference to a value that is there"),
    "a reference past the end of a list": ('[{"$ref":"$[7]"}]', 1, "a reference to a value"),
    "a reference to a long index": ('[{"$ref":"$[' + "9" * 5000 + ']"}]', 1, "a reference to a"),
    "a reference to a field of a number": ('[1,{"$ref":"$[0].a"}]', 3, "a reference to a value"),
    "a reference to one of two objects that are keys": (
        '{"m":{{"i":7}:1,{"i":8}:2},"b":{"$ref":"$.m.null"}}',
        31,
        "the only one of its name",
    ),
    "a reference to the root": ('{"a":{"$ref":"$"}}', 5, "does not hold it"),
    "a reference to its parent": ('{"a":{"b":{"$ref":".."}}}', 10, "does not hold it"),
    "a reference to itself": ('{"a":{"$ref":"@"}}', 5, "does not hold it"),
    "a reference that is the root": ('{"$ref":"$"}', 0, "do not name each other"),
    "a reference to what holds it": ('{"a":{"b":{"$ref":"$.a"}}}', 10, "does not hold it"),
    "a reference to its own place": ('{"a":{"$ref":"$.a"}}', 5, "do not name each other"),
    "two to each other": ('{"a":{"$ref":"$.b"},"b":{"$ref":"$.a"}}', 5, "do not name each other"),
    "two objects that hold references to each other": (
        '{"a":{"x":{"$ref":"$.b"}},"b":{"y":{"$ref":"$.a"}}}',
        35,
        "does not hold it",
    ),
    "a path that does not start at the root": ('[{"$ref":"#/a"}]', 1, "starts with '$'"),
    "a path that is no path": ('[{"$ref":"$a"}]', 1, "'.name' and '[index]'"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_it_refuses_and_tells_where(name: str) -> None:
    text, position, expected = UNREADABLE[name]

    with pytest.raises(FastjsonError) as caught:
        parse_tokens(text)

    assert caught.value.args[0] == position
    assert expected in caught.value.args[1]


def test_an_error_tells_in_one_line_what_was_expected_and_what_came() -> None:
    with pytest.raises(FastjsonError) as caught:
        parse_tokens('{0:1\n"next":2, "and a long rest":3}')

    assert str(caught.value) == (
        "at character 5: expected ',' or '}', came '\"next\":2, \"and a long re'"
    )


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 100_000])
@pytest.mark.parametrize(
    ("opening", "closing"),
    [("[", "]"), ('{"a":', "}"), ("{0:", "}"), ("{", ":1}")],
    ids=["arrays", "objects", "unquoted keys", "objects as keys"],
)
def test_deep_nesting_is_refused_where_it_goes_too_far(
    opening: str, closing: str, depth: int
) -> None:
    innermost = "{}" if opening == "{" else "0"
    text = opening * depth + innermost + closing * depth

    with pytest.raises(FastjsonError, match="brackets open at once") as caught:
        parse_tokens(text)

    assert caught.value.args[0] == MAX_DEPTH * len(opening)


def test_references_that_double_what_they_name_do_not_grow_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parsing, "MAX_REFERRED_VALUES", 1_000)
    levels = ['"a0":[1]']
    for level in range(1, 40):
        reference = json.dumps({"$ref": f"$.a{level - 1}"})
        levels.append(f'"a{level}":[{reference},{reference}]')

    with pytest.raises(FastjsonError, match="at most 1000 values"):
        parse_tokens("{" + ",".join(levels) + "}")


def test_references_that_nest_what_they_name_are_refused_without_exhausting_the_stack() -> None:
    deep = MAX_DEPTH - 10
    texts = [f'"a0":{"[" * deep + "]" * deep}']
    for level in range(1, 8):
        reference = json.dumps({"$ref": f"$.a{level - 1}"})
        texts.append(f'"a{level}":{"[" * deep + reference + "]" * deep}')

    with pytest.raises(FastjsonError, match="do not nest deeply"):
        parse_tokens("{" + ",".join(texts) + "}")


def test_a_long_chain_of_references_is_refused() -> None:
    links = ",".join(json.dumps({"$ref": f"$[{index}]"}) for index in range(1, 5_001))

    with pytest.raises(FastjsonError, match="references that name each other"):
        parse_tokens(f"[{links},7]")


def test_what_references_name_is_not_shared() -> None:
    value = parse_tokens('{"a":[{"n":1}],"b":{"$ref":"$.a[0]"}}')

    value["b"]["n"] = 2

    assert value["a"] == [{"n": 1}]
