"""A text in a language: no blank is left where a value and a template are both Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.languages.language import ENGLISH, Language, language
from rebalance_core.client_id import restart_of
from rebalance_core.english import list_of
from rebalance_core.texts import Text, fill, pieces

CHINESE = Language(
    "zh",
    {
        "{who} uses {what}": "{who} 使用 {what}",
        "{who} {what}": "{who} {what}",
        "list {what}": "列出 {what}",
        "none": "（无）",
        "the client": "相关客户端",
    },
)


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ("{who} uses {what}", {"who": "a（有时）", "what": "AVG"}, "a（有时）使用 AVG"),
        ("{who} uses {what}", {"who": "a", "what": Text("none")}, "a 使用（无）"),
        ("list {what}", {"what": "（未知）"}, "列出（未知）"),
        # Between two values the blank is the template's too.
        ("{who} {what}", {"who": "a、b（另有 1 个）", "what": "的"}, "a、b（另有 1 个）的"),
        # Beside Latin a blank stays, and beside a name in Chinese: it shows where the name ends.
        ("{who} uses {what}", {"who": "a", "what": "b"}, "a 使用 b"),
        ("{who} {what}", {"who": "a）", "what": "b"}, "a） b"),
        ("{who} uses {what}", {"who": "订单", "what": "支付"}, "订单 使用 支付"),
        # Beside a text in Chinese no blank is left: nothing of it is a name.
        ("{who} uses {what}", {"who": Text("the client"), "what": "a"}, "相关客户端使用 a"),
        ("{who} uses {what}", {"who": "a", "what": Text("the client")}, "a 使用相关客户端"),
        ("{who} {what}", {"who": Text("the client"), "what": Text("the client")}, "相关客户端" * 2),
        ("{who} {what}", {"who": "订单", "what": Text("the client")}, "订单 相关客户端"),
        # What is in a name stays as it is, at its edges too.
        ("{who} uses {what}", {"who": "订） 单 ", "what": " （b） "}, "订） 单  使用  （b） "),
        # No template before or after a value, and no value at all.
        ("{who} {what}", {"who": "", "what": ""}, " "),
        ("{who} {what}", {"who": "（", "what": ""}, "（ "),
    ],
)
def test_a_blank_of_a_template_goes_beside_a_full_width_mark_and_a_text_in_chinese_alone(
    template: str, values: dict[str, str], expected: str
) -> None:
    assert CHINESE.of(Text(template, **values)) == expected


def test_a_list_that_is_cut_off_is_followed_by_no_blank() -> None:
    clients = list_of(["a", "b", "c"], 2)
    text = Text("{clients} use {strategy}", clients=clients, strategy="AVG")
    assert language("zh").of(text) == "a、b（另有 1 个）使用 AVG"


def test_english_keeps_its_blanks_whatever_a_name_ends_in() -> None:
    text = Text("{who} {what}", who="支付（华东）", what="（b）")
    assert ENGLISH.of(text) == str(text) == "支付（华东） （b）"


@given(st.lists(st.text("a （）。订", max_size=4), min_size=2, max_size=2))
def test_nothing_but_blanks_of_the_template_ever_goes(values: list[str]) -> None:
    who, what = values
    shown = CHINESE.of(Text("{who} uses {what}", who=who, what=what))
    assert shown.startswith(who)
    assert shown.endswith(what)
    assert shown[len(who) : len(shown) - len(what)].strip(" ") == "使用"


def test_the_pieces_of_a_text_are_what_it_is_filled_with() -> None:
    values = {"n": 1200, "share": 0.5, "who": "{n}"}
    template = "{who} {n:,} of {share:.0%}{who}"
    assert pieces(template, values) == ["", "{n}", " ", "1,200", " of ", "50%", "", "{n}", ""]
    assert fill(template, values) == "{n} 1,200 of 50%{n}"
    assert pieces("no slot", {}) == ["no slot"]


def test_one_entry_of_a_catalogue_is_for_one_and_for_many() -> None:
    """Also where the translation differs with the number."""
    restarts = [language("zh").of(restart_of(client_ids)) for client_ids in (["a"], ["a", "b"])]
    assert restarts == [
        "重启 a：客户端启动时会取得自己的份额",
        "重启这 2 个客户端：a 和 b；客户端启动时会取得自己的份额",
    ]
