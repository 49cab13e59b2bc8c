"""Rows as fits a terminal: nothing is wider than it, and nothing of a cell is lost."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from jobs.reports.table_text import fitted, wide
from jobs.texts.shown import display_width

LONG = "10.0.0.1@app and 10.0.0.2@app use AVG; 10.0.0.3@app uses AVG_BY_CIRCLE"
#: What a cell may have: what is visible, in scripts of one column, of two and of none.
CELLS = st.text(st.sampled_from("ab @:.-_[]订单，。组é한"), max_size=60)


def printed(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, has_colours: bool = False
) -> list[str]:
    console = Console(
        file=io.StringIO(),
        width=width,
        color_system="standard" if has_colours else None,
        force_terminal=has_colours,
    )
    with console.capture() as captured:
        console.print(fitted(names, rows, console))
    return [line.rstrip() for line in captured.get().splitlines()]


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=4), st.integers(30, 150))
def test_no_line_is_too_wide_and_nothing_is_lost(rows: list[list[str]], width: int) -> None:
    lines = printed(["topic", "evidence", "severity"], rows, width)
    assert all(display_width(line) <= width for line in lines)
    text = re.sub(r"\s", "", "".join(lines))
    for row in rows:
        # A cell of one line is found whole; folded ones share their lines with their neighbours.
        assert all(re.sub(r"\s", "", cell) in text for cell in row if display_width(cell) <= 12)


def test_a_table_that_fits_is_a_row_a_line() -> None:
    rows = [["订单", "1"], ["T", "20"]]
    same = ["订单   1", "T      20", "(2 rows)"]
    assert printed(["topic", "n"], rows, 11) == ["topic  n", "---------", *same]
    assert list(wide(["topic", "n"], rows)) == ["topic  n", "-----  --", *same]


def test_the_widest_cells_are_folded_and_what_follows_is_indented() -> None:
    """A name must not be able to pass for a row of its own."""
    assert printed(["evidence", "topic"], [[LONG, "T"], ["", "U"]], 40) == [
        "evidence                           topic",
        "----------------------------------------",
        "10.0.0.1@app and 10.0.0.2@app      T",
        "  use AVG; 10.0.0.3@app uses",
        "  AVG_BY_CIRCLE",
        "                                   U",
        "(2 rows)",
    ]


def test_a_table_that_cannot_fit_is_a_block_a_row() -> None:
    names = ["consumer_group", "evidence", "remedy", "severity"]
    rows = [["G", LONG, "", "CRITICAL"], ["H", "x", "wait", "INFO"]]
    assert printed(names, rows, 44) == [
        "-- row 1 of 2 --",
        "consumer_group  G",
        "evidence        10.0.0.1@app and",
        "                  10.0.0.2@app use AVG;",
        "                  10.0.0.3@app uses",
        "                  AVG_BY_CIRCLE",
        "remedy",
        "severity        CRITICAL",
        "-- row 2 of 2 --",
        "consumer_group  H",
        "evidence        x",
        "remedy          wait",
        "severity        INFO",
        "(2 rows)",
    ]


def test_no_row_still_names_the_columns() -> None:
    assert printed(["topic", "n"], [], 80) == ["topic  n", "--------", "(0 rows)"]


def test_only_what_is_severe_has_a_colour() -> None:
    rows = [["CRITICAL", "CRITICAL"], ["T", "odd"]]
    lines = printed(["topic", "severity"], rows, 80, has_colours=True)
    assert [line.count("\x1b[1;31m") for line in lines] == [0, 0, 1, 0, 0]
    assert "CRITICAL  \x1b[1;31mCRITICAL" in lines[2]


def test_a_name_is_no_markup() -> None:
    assert "[red]x[/red]" in printed(["topic"], [["[red]x[/red]"]], 80)


@pytest.mark.long
def test_a_cell_of_megabytes_is_folded_within_a_moment() -> None:
    """A quarantined line may be so long; to fold it must not cost its square."""
    for cell in ("x" * 1_000_000, "订" * 300_000):
        assert sum(line.count(cell[0]) for line in printed(["line"], [[cell]], 80)) == len(cell)
