"""Texts that remember what they are made of: what is published may come back changed."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.texts import Text, decode, encode, fill, from_parts


@pytest.fixture(autouse=True)
def no_empty_values() -> None:
    """A name of a stranger may be empty: here texts have any names."""


_NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False))


@given(
    value=st.one_of(_NUMBERS, st.just(float("nan")), st.booleans(), st.text()),
    form=st.sampled_from([",", "d", ".0%", ".2f", ",d", "99d", ".", "0"]),
)
def test_no_value_is_refused_by_a_slot(value: object, form: str) -> None:
    assert fill(f"<{{value:{form}}}>", {"value": value}).startswith("<")


@given(names=st.lists(st.text(), min_size=1, max_size=4), number=_NUMBERS)
def test_a_text_comes_back_as_it_was(names: list[str], number: float) -> None:
    inner = Text("{name} of {number:,}", name=names[0], number=number)
    text = Text("{inner} and {name}", inner=inner, name=names[-1])
    assert pickle.loads(pickle.dumps(text)).parts() == text.parts()  # noqa: S301 - made here
    assert copy.deepcopy(text).parts() == text.parts()
    back = decode(encode({"why": text}), {"why": str(text)})["why"]
    assert isinstance(back, Text)
    assert (str(back), back.parts()) == (str(text), text.parts())


@pytest.mark.parametrize(
    "encoded",
    [
        *(
            "",
            "{",
            "[]",
            "1",
            '{"why":1}',
            '{"why":[]}',
            '{"why":["{a}"]}',
            '{"why":["{a}",{"a":[1]}]}',
        ),
        '{"why":' + "[" * 100_000,
    ],
)
def test_what_cannot_be_read_stays_english(encoded: str) -> None:
    why = decode(encoded, {"why": "English"})["why"]
    assert why == "English"
    assert not isinstance(why, Text)


def test_of_two_names_one_is_changed_alone() -> None:
    text = Text("{client} on {broker}", client="a", broker="b")
    assert text.with_values(lambda name: name.replace("a", "c")) == "c on b"
    assert text.with_values(str) is text


def test_a_name_with_braces_is_no_slot() -> None:
    text = Text("{client} left", client="{client.__class__}")
    assert text == "{client.__class__} left"
    assert from_parts(text.parts()) == text
