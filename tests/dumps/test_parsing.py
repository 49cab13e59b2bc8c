"""What is JSON but for its keys is read by a JSON parser, and comes out as of the tokenizer."""

from __future__ import annotations

import math
from typing import Any

import pytest

from jobs.dumps import parsing
from jobs.dumps.parsing import MAX_DEPTH, FastjsonError, parse_body, parse_json

QUEUE_0 = '{"brokerName":"b","queueId":0,"topic":"T"}'
TOO_DEEP = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)


def nested(depth: int) -> Any:
    return [] if depth == 1 else [nested(depth - 1)]


@pytest.fixture(params=["the fastest parser", "the standard library's"])
def _either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "the standard library's":
        monkeypatch.setattr(parsing, "_LOADS", parsing._standard)


@pytest.mark.usefixtures("_either_parser")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"brokerAddrs":{0:"a",1:"b"}}', {"brokerAddrs": {"0": "a", "1": "b"}}),
        ("{{" + QUEUE_0[1:] + ":7}", {QUEUE_0: 7}),
        # What looks like a key within a text, beside a key that is one.
        ('{0:"x,1:y{2:z"}', {"0": "x,1:y{2:z"}),
        ('{"a":"one","b":{"$ref":"$.a"}}', {"a": "one", "b": "one"}),
        ("{'a':NaN}", {"a": None}),
        (r'{"clientId":"a\ud83d"}', {"clientId": "a?"}),
        (r'{"clientId":"\ud83d\ude00"}', {"clientId": "\U0001f600"}),
        # An object that is a key is its text wherever it comes, and whichever parser read it.
        ("{'a':{" + QUEUE_0 + ":1," + QUEUE_0 + ":2}}", {"a": {QUEUE_0: 2}}),
        ('{{"id":[1]}:1,"s":{"$ref":"$.s2"},"s2":2}', {'{"id":[1]}': 1, "s": 2, "s2": 2}),
        # What 64 bits do not hold is a float for orjson.
        ('{"a":18446744073709551615,0:1}', {"a": 2**64 - 1, "0": 1}),
        ('{"a":18446744073709551616,0:1}', {"a": 2.0**64, "0": 1}),
        ('{"a":[18446744073709551616]}', {"a": [2.0**64]}),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, nested(MAX_DEPTH)),
    ],
)
def test_it_reads(text: str, expected: Any) -> None:
    assert parse_body(text) == expected


@pytest.mark.usefixtures("_either_parser")
@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "{}{}", "[1,]", "Infinity", "'a'", "{0:1}", "\ufeff{}", "[" * 5000),
        # Some parsers go deeper.
        TOO_DEEP,
    ],
)
def test_a_line_must_be_json(text: str) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


@pytest.mark.usefixtures("_either_parser")
@pytest.mark.parametrize("number", ["1e999", "-1e400", "9" * 400, "9" * 5000])
def test_a_number_that_no_double_holds_costs_its_field(number: str) -> None:
    for parse in (parse_json, parse_body):
        value = parse(f'{{"a":{number},"b":7}}')
        assert (math.isinf(value["a"]), value["b"]) == (True, 7)


@pytest.mark.usefixtures("_either_parser")
@pytest.mark.parametrize(
    "text",
    [
        *("{01:1}", "{0:1,}", "{-:1}", "{1.5:1}", "{0:1}}", ""),
        TOO_DEEP,
    ],
)
def test_it_refuses_what_the_tokenizer_refuses(text: str) -> None:
    with pytest.raises(FastjsonError):
        parse_body(text)


@pytest.mark.usefixtures("_either_parser")
def test_what_one_parser_reads_the_other_reads() -> None:
    """orjson refuses both; a dump must not be another one where it is not installed."""
    assert parse_json(r'[NaN,"\ud83d"]') == [None, "?"]
