"""Values as text."""

from __future__ import annotations

import csv
import doctest
import io
from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

import jobs.kinds
import jobs.rendering.drawings
import jobs.rendering.page
import jobs.text
from jobs.text import as_plain, csv_line, visible


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


def test_values_are_told_as_json_has_them() -> None:
    noon = datetime(2026, 11, 20, 12, 0, 0, 1999)
    there = noon.replace(tzinfo=timezone(timedelta(hours=8)))
    assert as_plain({"times": [noon, there], "bytes": (b"\x01\xff",), "other": 1.5}) == {
        "times": ["2026-11-20T12:00:00.001Z", "2026-11-20T04:00:00.001Z"],
        "bytes": ["01ff"],
        "other": 1.5,
    }
    assert csv_line([b"\x01", {"é": there}]) == '01,"{""é"": ""2026-11-20T04:00:00.001Z""}"'


def test_the_examples_hold() -> None:
    for module in (
        jobs.text,
        jobs.kinds,
        jobs.rendering.page,
        jobs.rendering.drawings,
    ):
        result = doctest.testmod(module)
        assert result.attempted
        assert not result.failed, module
