"""Values as numbers and hashes: equal ones for equal values, and others for others."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.fold.numbers import key_numbers, reader, segments
from jobs.schemas import INT, STRING

_TOPIC = st.sampled_from(["a", "b", ""]) | st.none()
_STRUCT = st.builds(
    lambda topic, percent: {"topic": topic, "percent": percent},
    _TOPIC,
    st.none() | st.integers(0, 2),
)
_OF_STRUCTS = pa.list_(pa.struct([pa.field("topic", STRING), pa.field("percent", INT)]))
_OF_LISTS = pa.list_(pa.list_(INT))


def _lists(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Rows of lists; as in a fleet, many are equal to the one before."""
    row = st.none() | st.lists(elements, max_size=3)
    runs = st.lists(st.tuples(row, st.integers(1, 3)), min_size=1, max_size=6)
    return runs.map(lambda found: [each for each, times in found for _ in range(times)])


def _array(rows: list[Any], type_: pa.DataType, *, by_dictionary: bool) -> Any:
    """The rows, their texts as such or as numbers into a dictionary."""
    column: Any = pa.array(rows, type_)
    if not by_dictionary or type_ != _OF_STRUCTS:
        return column
    topics, percents = column.values.flatten()
    structs = pa.StructArray.from_arrays(
        [topics.dictionary_encode(), percents],
        ["topic", "percent"],
        mask=column.values.is_null(),
    )
    return pa.ListArray.from_arrays(column.offsets, structs, mask=column.is_null())


@pytest.mark.parametrize("by_dictionary", [False, True])
@given(first=_lists(_STRUCT | st.none()), second=_lists(_STRUCT | st.none()))
def test_lists_have_equal_hashes_where_they_are_equal(
    first: list[Any], second: list[Any], by_dictionary: bool
) -> None:
    column_reader = reader(_OF_STRUCTS)
    found: list[tuple[Any, ...]] = []
    for rows in (first, second):
        hashes: Any = column_reader(_array(rows, _OF_STRUCTS, by_dictionary=by_dictionary))
        found += zip(*[np.broadcast_to(each, len(rows)).tolist() for each in hashes], strict=True)
    by_value: dict[str, tuple[Any, ...]] = {}
    for row, pair in zip([*first, *second], found, strict=True):
        assert by_value.setdefault(repr(row), pair) == pair
    assert len(set(by_value.values())) == len(by_value)


@given(_lists(st.none() | st.lists(st.none() | st.integers(0, 1), max_size=2)))
def test_lists_of_lists_have_equal_hashes_where_they_are_equal(rows: list[Any]) -> None:
    hashes: Any = reader(_OF_LISTS)(_array(rows, _OF_LISTS, by_dictionary=False))
    pairs = list(zip(*[np.broadcast_to(each, len(rows)).tolist() for each in hashes], strict=True))
    by_value = dict(zip(map(repr, rows), pairs, strict=True))
    assert [by_value[repr(row)] for row in rows] == pairs
    assert len(set(pairs)) == len(by_value)


@given(st.lists(st.tuples(_TOPIC, st.none() | st.integers(0, 1)), min_size=1, max_size=12))
def test_segments_begin_where_a_key_changes(rows: list[tuple[Any, Any]]) -> None:
    topics, percents = zip(*rows, strict=True)
    columns: list[Any] = [pa.array(topics, STRING).dictionary_encode(), pa.array(percents, INT)]
    numbers = [each for column in columns for each in key_numbers(column)]
    changes = [n for n, (one, other) in enumerate(pairwise(rows), 1) if one != other]
    assert segments(numbers, len(rows)).tolist() == [0, *changes]
