"""A value as any tool of RocketMQ prints it is read as that value; other texts are refused."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobs.dumps import parsing
from jobs.dumps.parsing import FastjsonError, parse_body, parse_json, without_half_pairs
from jobs.dumps.statement import KINDS
from jobs.dumps.typed import read_body
from jobs.dumps.values import LineError
from tests.fuzz.mutations import ODD_TEXTS, ODD_VALUES, changed_bodies
from tests.fuzz.parsers import none, reading_by, standard

_TEXTS = st.text(max_size=8) | st.lists(st.sampled_from("\n\t\"'\\/\b\f\r\x00\u2028ab")).map(
    "".join
)
_NAMES = _TEXTS | st.sampled_from(["0", "-7", "10911", "status", "$x_1", "null", "key"])
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS
)
VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=8,
)
_BARE_NAME = re.compile(r"[A-Za-z_$][A-Za-z_$0-9]*")
_BARE_NUMBER = re.compile(r"0|-?[1-9][0-9]*")
QUEUE = '{"brokerName":"b","queueId":0,"topic":"T"}'
#: What comes anywhere in a body: parts of it, all that the quoting of keys looks for, what is odd.
PIECES = st.lists(
    st.sampled_from(
        [
            *(*ODD_TEXTS, *ODD_VALUES, *"{}[]:,", '"a":', '{"a":', "{0:", ",1:", ",-1:", ",01:"),
            *("{0 :", '"x,1:y"', '"x,{"', "{" + QUEUE + ":", "," + QUEUE + ":", QUEUE),
            *('"{' + QUEUE + ':"', '{"a":{0:"b"}}', '{"$ref":"$.a"}', '"$ref"', "}}", "]}"),
        ]
    ),
    max_size=12,
).map("".join)
ANY_BODY = changed_bodies() | PIECES | st.sampled_from(ODD_VALUES) | st.text()


@st.composite
def printed(draw: st.DrawFn) -> tuple[Any, str]:
    """A value, and a text in which one of RocketMQ's tools may have printed it."""
    value = draw(VALUES)
    random = draw(st.randoms(use_true_random=False))

    def blank() -> str:
        return random.choice(("", "", "", " ", "\n\t", "\r\n"))

    def text(of: str) -> str:
        quoted = json.dumps(of, ensure_ascii=random.choice((True, False)))
        if random.choice((True, False)):
            return quoted
        # In single quotes the other quotes need no escape, and these do.
        return "'" + quoted[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"

    def key(of: str) -> str:
        bare = _BARE_NUMBER.fullmatch(of) or _BARE_NAME.fullmatch(of)
        return of if bare and random.choice((True, False)) else text(of)

    def show(it: Any) -> str:
        if isinstance(it, str):
            return text(it)
        if isinstance(it, list):
            return "[" + ",".join(blank() + show(each) + blank() for each in it) + "]"
        if isinstance(it, dict):
            return (
                "{"
                + ",".join(
                    f"{blank()}{key(name)}{blank()}:{blank()}{show(each)}{blank()}"
                    for name, each in it.items()
                )
                + "}"
            )
        return json.dumps(it)

    return value, blank() + show(value) + blank()


@given(printed())
def test_a_value_is_read_as_it_was_printed(case: tuple[Any, str]) -> None:
    value, text = case
    assert repr(parse_body(text)) == repr(without_half_pairs(value))
    assert repr(parsing.parse_tokens(text)) == repr(value)


def reads(text: str) -> str:
    try:
        return repr(parse_body(text))
    except FastjsonError as error:
        return f"refused: {error}"


@given(ANY_BODY)
def test_every_way_to_read_a_body_gives_the_same_value_or_the_same_refusal(text: str) -> None:
    fastest = reads(text)
    with reading_by(standard):
        assert reads(text) == fastest
    with reading_by(none):
        assert reads(text) == fastest


@given(ANY_BODY)
def test_an_envelope_is_read_alike_by_every_parser(text: str) -> None:
    def came() -> str:
        try:
            return repr(parse_json(text))
        except ValueError:
            return "refused"

    fastest = came()
    with reading_by(standard):
        assert came() == fastest


@given(st.sampled_from(KINDS), ANY_BODY)
def test_a_body_is_read_or_refused_in_words_whatever_its_kind(kind: str, text: str) -> None:
    try:
        read = read_body(kind, text)
    except LineError as error:
        assert str(error).strip()
    else:
        assert all(content is None or isinstance(content, tuple) for _, content in read.contents)


@given(ANY_BODY)
def test_the_tokenizer_reads_or_says_where_it_broke_off(text: str) -> None:
    try:
        parsing.parse_tokens(text)
    except FastjsonError as error:
        assert 0 <= error.args[0] <= len(text)
        assert error.args[1]
        assert error.args[2]
