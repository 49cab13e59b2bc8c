"""Rows as fits a terminal: nothing is wider than it, and nothing of a cell is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.reports.fitting import fitted, wide, wrapped
from jobs.terminal import coloured, plain
from jobs.text import display_width

LONG = "10.0.0.1@app and 10.0.0.2@app use AVG; 10.0.0.3@app uses AVG_BY_CIRCLE"
#: What a cell may have: what is visible, in scripts of one column, of two and of none.
CELLS = st.text(st.sampled_from("ab @:.-_订单，。组́é한😀"), max_size=60)


@given(CELLS, st.integers(2, 30))
def test_a_cell_is_folded_into_lines_that_fit_and_keeps_its_characters(
    cell: str, width: int
) -> None:
    lines = wrapped(cell, width)
    assert all(display_width(line) <= width for line in lines)
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", cell)


@given(
    st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=4),
    st.integers(20, 150),
)
def test_no_line_is_wider_than_the_terminal(rows: list[list[str]], width: int) -> None:
    names = ["topic", "evidence", "severity"]
    lines = list(fitted(names, rows, width, plain))
    assert all(display_width(line) <= width for line in lines)
    text = re.sub(r"\s", "", "".join(lines))
    for row in rows:
        # A cell of one line is found whole; folded ones share their lines with their neighbours.
        assert all(re.sub(r"\s", "", cell) in text for cell in row if display_width(cell) <= 12)


def test_a_table_that_fits_is_a_row_a_line() -> None:
    assert list(fitted(["topic", "n"], [["订单", "1"], ["T", "20"]], 11, plain)) == [
        "topic  n",
        "-----  --",
        "订单   1",
        "T      20",
        "(2 rows)",
    ]


def test_the_widest_cells_are_folded_and_what_follows_is_indented() -> None:
    """A name must not be able to pass for a row of its own."""
    assert list(fitted(["evidence", "topic"], [[LONG, "T"], ["", "U"]], 40, plain)) == [
        "evidence                           topic",
        "---------------------------------  -----",
        "10.0.0.1@app and 10.0.0.2@app      T",
        "  use AVG; 10.0.0.3@app uses",
        "  AVG_BY_CIRCLE",
        "                                   U",
        "(2 rows)",
    ]


def test_a_table_that_cannot_fit_is_a_block_a_row() -> None:
    names = ["consumer_group", "evidence", "remedy", "severity"]
    rows = [["G", LONG, "", "CRITICAL"], ["H", "x", "wait", "INFO"]]
    assert list(fitted(names, rows, 44, plain)) == [
        "-- row 1 of 2 --",
        "consumer_group  G",
        "evidence        10.0.0.1@app and",
        "                10.0.0.2@app use AVG;",
        "                10.0.0.3@app uses",
        "                AVG_BY_CIRCLE",
        "remedy",
        "severity        CRITICAL",
        "-- row 2 of 2 --",
        "consumer_group  H",
        "evidence        x",
        "remedy          wait",
        "severity        INFO",
        "(2 rows)",
    ]
    # A phone has no room for two columns.
    assert list(fitted(names, rows[1:], 20, plain))[1:5] == [
        "consumer_group",
        "  H",
        "evidence",
        "  x",
    ]


def test_no_row_still_names_the_columns() -> None:
    assert list(fitted(["topic", "n"], [], 80, plain)) == ["topic  n", "-----  -", "(0 rows)"]


def test_only_what_is_severe_has_a_colour() -> None:
    names = ["topic", "severity"]
    rows = [["CRITICAL", "CRITICAL"], ["T", "odd"]]
    for lines in (fitted(names, rows, 80, coloured), wide(names, rows, coloured)):
        _, _, first, second, _ = lines
        assert first == "CRITICAL  \x1b[1;31mCRITICAL\x1b[0m"
        assert second == "T         odd"


@pytest.mark.long
def test_a_cell_of_megabytes_is_folded_within_a_moment() -> None:
    """A quarantined line may be so long; to fold it must not cost its square."""
    for cell in ("x" * 1_000_000, "订" * 300_000):
        lines = wrapped(cell, 78)
        assert "".join(lines) == cell
        assert {display_width(line) for line in lines[:-1]} == {78}
