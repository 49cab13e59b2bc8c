"""Values as text."""

from __future__ import annotations

import csv
import doctest
import io

from hypothesis import given
from hypothesis import strategies as st

import jobs.rendering.drawings
import jobs.rendering.page
import jobs.rendering.words
import jobs.text
from jobs.text import csv_line, visible


@given(st.lists(st.text(), min_size=1))
def test_a_line_of_csv_is_one_record_and_keeps_its_texts(texts: list[str]) -> None:
    (record,) = csv.reader(io.StringIO(csv_line(["id", *texts]) + "\r\n", newline=""))
    for cell, text in zip(record[1:], texts, strict=True):
        assert cell == text or (cell == f"'{text}" and text[0] in "=+-@\t\r")
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


@given(st.text())
def test_what_is_visible_is_printable(text: str) -> None:
    assert visible(text).isprintable()
    assert not text.isprintable() or visible(text) == text


def test_the_examples_hold() -> None:
    for module in (
        jobs.text,
        jobs.rendering.words,
        jobs.rendering.page,
        jobs.rendering.drawings,
    ):
        result = doctest.testmod(module)
        assert result.attempted
        assert not result.failed, module
