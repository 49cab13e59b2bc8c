"""Values as text."""

from __future__ import annotations

import csv
import io
import json
import re
import textwrap
import unicodedata
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.texts.shown import (
    as_plain,
    csv_line,
    cut,
    display_width,
    encodable,
    folded,
    json_text,
    padded,
    visible,
    visible_lines,
)

#: Texts in which every second character matters.
TEXTS = st.text(
    st.sampled_from("=+-@\t\r\n;,|\"' \\a\x1b\x9b\u202e\ufeff\uff1d\U000e0041é") | st.characters()
)
#: What a terminal obeys, what turns the direction of a line, what nobody sees.
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


@given(st.lists(TEXTS, min_size=1))
def test_a_line_of_csv_is_one_record_and_keeps_its_texts(texts: list[str]) -> None:
    (record,) = csv.reader(io.StringIO(csv_line(["id", *texts]) + "\r\n", newline=""))
    for cell, text in zip(record[1:], texts, strict=True):
        # Nothing is changed but for apostrophes that come in.
        rest = iter(cell)
        assert all(character in rest for character in text)
        assert cell.replace("'", "") == text.replace("'", "")
        if not re.search(r"[=+\-@\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b\t\r\n]", text):
            assert cell == text


@given(st.lists(TEXTS, min_size=1))
def test_no_cell_is_a_formula_whichever_character_separates(texts: list[str]) -> None:
    line = csv_line(texts)
    (record,) = csv.reader(io.StringIO(line + "\r\n", newline=""))
    # Who splits at another character, and knows no quotes, finds other cells.
    for cell in (*record, *re.split(r"[;\t\r\n]", line)):
        # The quote that opens a cell; two of them are one that is in its text.
        bare = re.sub(r'^"(?!")', "", cell).lstrip()
        assert not bare.startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"))


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1", "'=1"),
        ("  +1", "'  +1"),
        ("\ufeff-1", "'\ufeff-1"),
        ("\uff1d1", "'\uff1d1"),
        ("\t=1", "\"'\t'=1\""),
        ("a;=1", '"a;\'=1"'),
        ("a\r\n@b", '"a\r\n\'@b"'),
        ("a=1", "a=1"),
        ("10.0.0.1@1#2", "10.0.0.1@1#2"),
        ("a;b", '"a;b"'),
        ("a b", "a b"),
        (["a;=1"], '"[""a;\'=1""]"'),
        (-1, "-1"),
        (None, ""),
        (True, "True"),
    ],
)
def test_a_cell_of_csv(text: object, cell: str) -> None:
    assert csv_line(["id", text]) == f"id,{cell}"


def test_a_record_of_one_empty_cell_is_no_empty_line() -> None:
    assert csv_line([""]) == csv_line([None]) == '""'


@given(TEXTS)
def test_what_is_visible_is_printable(text: str) -> None:
    assert visible(text).isprintable()
    assert not UNSEEN & set(map(unicodedata.category, visible(text)))
    assert not text.isprintable() or visible(text) == text
    assert visible_lines(text).split("\n") == [visible(each) for each in text.split("\n")]


@pytest.mark.long
@given(
    st.recursive(
        TEXTS | st.integers() | st.none(),
        lambda each: st.lists(each) | st.dictionaries(TEXTS, each),
    ),
    st.sampled_from([None, 2]),
)
def test_json_is_exact_and_has_nothing_unseen(value: object, indent: int | None) -> None:
    text = json_text(value, indent)
    assert json.loads(text) == value
    assert all(line.isprintable() for line in text.split("\n"))
    # Even the half of a character can be written.
    text.encode()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "gb18030"])
@given(text=TEXTS)
def test_every_text_can_be_written(encoding: str, text: str) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    written = encodable(text, stream)
    written.encode(encoding)
    assert written == text or any(unicodedata.category(c) == "Cs" or ord(c) > 0x7F for c in text)


def test_a_stream_without_an_encoding_takes_all_but_halves() -> None:
    assert encodable("• 日\ud800", io.StringIO()) == r"• 日\ud800"


def test_values_are_told_as_json_has_them() -> None:
    noon = datetime(2026, 11, 20, 12, 0, 0, 1999)
    there = noon.replace(tzinfo=timezone(timedelta(hours=8)))
    assert as_plain({"times": [noon, there], "bytes": (b"\x01\xff",), "other": 1.5}) == {
        "times": ["2026-11-20T12:00:00.001Z", "2026-11-20T04:00:00.001Z"],
        "bytes": ["01ff"],
        "other": 1.5,
    }
    assert csv_line([b"\x01", {"é": there}]) == '01,"{""é"": ""2026-11-20T04:00:00.001Z""}"'


#: Names that take as many columns as characters, and others; marks after which a line may end.
LINES = st.text(st.sampled_from("ab 订单，。）(é\u0301\U0001f525"), max_size=80)


@given(st.text("ab-.,( ", max_size=120), st.integers(0, 4))
def test_a_line_without_wide_characters_is_folded_at_its_blanks(text: str, indent: int) -> None:
    line = f"{' ' * indent}{text.strip()}"
    options = {"break_long_words": False, "break_on_hyphens": False}
    expected = textwrap.wrap(line, 30, subsequent_indent=" " * (indent + 4), **options)
    assert folded(line, 30) == (expected or [""])


@given(LINES)
def test_what_is_folded_loses_nothing_but_blanks_and_breaks_no_word(line: str) -> None:
    lines = folded(line, 20)
    assert "".join(lines).replace(" ", "") == line.replace(" ", "")
    for each in lines:
        words = re.split(r"[ ，。）]+", each.strip(" ，。）"))
        assert display_width(each) <= 20 or len(words) == 1


def test_chinese_is_folded_after_its_marks_by_the_columns_that_it_takes() -> None:
    line = "  修复：给每个进程不同的 instanceName，例如容器的名称；然后重启（逐个）。"
    lines = ["  修复：给每个进程不同的 instanceName，", "      例如容器的名称；然后重启（逐个）。"]
    assert folded(line, 40) == lines
    assert list(map(display_width, lines)) == [39, 40]
    assert folded(line, 39)[1:] == ["      例如容器的名称；", "      然后重启（逐个）。"]


@given(LINES, st.integers(3, 40))
def test_what_is_padded_or_cut_fills_its_columns(text: str, width: int) -> None:
    """One column may be left where the next character takes two."""
    shown = cut(text, width)
    assert display_width(shown) <= width
    assert display_width(padded(shown, width)) == width
    if display_width(text) > width:
        assert shown.endswith("...")
        assert width - display_width(shown) <= 1
    else:
        assert shown == text
