"""The page, the index of nights and the ticket in another language."""

from __future__ import annotations

import ast
import inspect
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from jobs.config.choices import LANGUAGES
from jobs.declared.kinds import KINDS
from jobs.languages.language import ENGLISH, Language, language
from jobs.rendering.nights import History, Nights, history_of
from jobs.rendering.page import FindingPages, html_environment, to_html, to_markdown
from jobs.rendering.write import to_index
from jobs.reports import words
from jobs.texts.shown import visible
from rebalance_core import findings
from rebalance_core.texts import Text, encode
from tests.jobs.rendering.test_nights import a_page, missing, night
from tests.jobs.rendering.test_page import HOSTILE, full_report, report
from tests.languages.english_left import english_in
from tests.support.html import VOID, Page
from tests.support.published import fault, finding, health

CHINESE = language("zh")
DATA = Path(__file__).parents[2] / "data"
NAMES = ["C", "GID_payment-settlement-consumer", "TOPIC_payments", "a", "b", "broker-a"]
#: What Chinese operators write in Latin letters, beside the codes of ``english_left``.
LATIN = {
    *("dashboard", "map", "pid", "true", "slave", "local", "x", "Push", "Pull", "Lite"),
    *("client-cpp", "client-go", "rebalance-audit", "pyarrow", "Python", "Consumer", "Detail"),
    *("RocketMQ", "ali-ons", "Node.js", "NewLife", "NewLife.RocketMQ", "ClientId", "ClientAddr"),
    *("Properties", "Go", "Asia"),
    # Headings that mqadmin prints.
    *("Different", "subscription", "in", "the", "same", "group", "of", "consumer"),
    *("Below", "is", "Subscription"),
}
_SPOKEN = ("title", "aria-label", "data-label", "placeholder")


class Visible(HTMLParser):
    """What a reader of a page sees or hears, but for names, code and what only a browser reads."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self._open.append(tag)
        spoken = () if tag == "bdi" else _SPOKEN
        for name, value in attrs:
            if name in spoken or (tag == "body" and name.startswith("data-")):
                self.texts.append(value or "")

    def handle_endtag(self, _tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if not {"bdi", "code", "pre", "script", "style"} & set(self._open):
            self.texts.append(data)


def some_nights() -> History:
    levels = ("OK", "INFO", "WARNING", "CRITICAL", "NOT_AUDITED")
    nights = [night(day, G=level) for day, level in enumerate(levels, 1)]
    return history_of([*nights, missing(6), night(7), night(8, G="OK")])


def page_of(told: Any, chosen: Language) -> str:
    pages = FindingPages.of_this_installation(chosen)
    around = Nights("2026-11-19", "2026-11-21")
    return to_html(told, "out/reports", None, pages, around, some_nights(), chosen)


def english_on(html: str, names: set[str]) -> set[str]:
    text = "\n".join(Visible(html).texts)
    # Where it was reported: apache/rocketmq#316.
    return english_in(re.sub(r"\b[\w-]+/[\w-]+#\d+", " ", text), names) - LATIN


def test_the_chinese_page_with_every_section_has_no_english_but_names_and_codes() -> None:
    html = page_of(full_report("日本"), CHINESE)
    assert "隔离" in html and "不可读的队列" in html and "已知问题" in html
    left = english_on(html, {*NAMES, "known", "passed", "other", "gone", "consumer_connection"})
    assert not left


def test_the_chinese_index_and_ticket_have_no_english_but_names_and_codes() -> None:
    pages = {"2026-11-01": a_page(*KINDS), "2026-11-02": a_page()}
    index = to_index(some_nights(), pages, CHINESE)
    assert "其他原因" in index and "没有持续的问题" in index
    assert not english_on(index, set(NAMES))
    ticket = re.sub("`[^`]*`", "", to_markdown(full_report("日本"), "r", None, CHINESE, 10))
    assert not english_in(ticket, NAMES) - LATIN
    assert "个主题有持续的故障" in ticket


@pytest.mark.long
def test_languages_differ_in_their_words_alone() -> None:
    english, chinese = (Page(page_of(full_report(), language(code))) for code in ("en", "zh"))
    # The pages on the findings are written by hand in each language, and so are their tables.
    for tag in ("article", "svg", "time", "bdi", "path", "section", "details"):
        assert len(english.all(tag)) == len(chinese.all(tag)), tag
    assert english.all("path") == chinese.all("path")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_published_text_is_translated_first_and_escaped_then(name: str) -> None:
    """Also one that somebody changed: a template from a table is never trusted."""
    remedy = Text("{queues} moved", queues=name)
    evidence = Text("<b>{name}</b>", name=name)
    texts = encode({"remedy": remedy, "evidence": evidence})
    row = fault(evidence=str(evidence), remedy=str(remedy), texts=texts)
    told = report(orphaned_queues=[finding()], group_faults=[row], group_health=[health()])
    html = to_html(told, "r", language=CHINESE)
    assert str(escape(f"{visible(name)}改变归属")) in html
    assert str(escape(f"<b>{visible(name)}</b>")) in html
    assert "<b>" not in html
    assert "改变归属" in to_markdown(told, "r", language=CHINESE, finding_pages=None, top=10)
    assert "<b>" not in to_markdown(told, "r", language=CHINESE, finding_pages=None, top=10)
    assert str(escape(f"{visible(name)} moved")) in to_html(told, "r")


@given(st.text(max_size=20), st.sampled_from(["en", "zh"]))
def test_what_fills_a_template_is_text_and_the_template_is_markup(name: str, code: str) -> None:
    environment = html_environment(language(code))
    template = '{{ t("<code>BROKER_ADDR</code> {x} {n:,} {m}", x=x, n=1200, m="<b>" | safe) }}'
    shown = environment.from_string(template).render(x=name)
    assert shown == f"<code>BROKER_ADDR</code> {escape(visible(name))} 1,200 <b>"


def test_every_time_of_the_page_can_be_shown_in_the_readers_zone() -> None:
    """It is in an element that the script reads, and stays UTC without the script."""
    html = page_of(full_report(), ENGLISH)
    body = html.partition("<header>")[2].partition("<script>")[0]
    body = re.sub("<(time|title|desc|pre|code).*?</\\1>", "", body, flags=re.DOTALL)
    body = re.sub("<text [^>]*data-time=[^>]*>[^<]*</text>", "", body)
    assert not re.findall(r"\d\d:\d\d(?::\d\d)?", body)
    ticks = re.findall(r'data-time="(.*?)">(.*?)</text>', html)
    assert ("2026-11-20T10:10:00Z", "10:10:00") in ticks
    assert html.count('<figcaption class="times">') == html.count('class="timeline"') > 0


def test_a_card_has_a_strip_of_the_nights_of_its_group() -> None:
    card = page_of(full_report(), ENGLISH).partition("<article")[2].partition("</article>")[0]
    strip = re.findall('<span class="n_([a-z_]+)" title="([^"]*)">(.*?)</span>', card)
    assert [each[0] for each in strip] == [
        *("ok", "info", "warning", "critical", "not_audited", "missing", "no_group", "ok")
    ]
    assert strip[3] == ("critical", "2026-11-04 CRITICAL", "C")
    assert 'aria-label="1 night OK, 1 INFO, 1 WARNING, 1 CRITICAL, 1 NOT AUDITED' in card
    # No strip where no night has the group, nor of one night alone.
    for nights in ([night(1, other="OK"), night(2, other="OK")], [night(1, G="OK")]):
        html = to_html(full_report(), "r", history=history_of(nights))
        assert 'class="strip" role="img"' not in html


@pytest.mark.parametrize("name", KINDS)
def test_a_page_on_a_finding_gives_the_same_commands_in_every_language(name: str) -> None:
    english = FindingPages.of_this_installation(ENGLISH)
    for code in LANGUAGES.keys() - {"en"}:
        other = FindingPages.of_this_installation(language(code))
        assert other.text(name) != english.text(name)
        assert other.checks(name) == english.checks(name)
        assert f"<h3>{language(code)('How to confirm')}</h3>" in other.html(name, [])
    assert "<h3>How to confirm</h3>" in english.html(name, [])


def test_a_page_that_a_language_lacks_is_english(tmp_path: Path) -> None:
    (tmp_path / "orphaned.md").write_text("# O\n\n## How to confirm\n`mqadmin a`\n")
    pages = FindingPages(tmp_path / "zh", tmp_path, language=CHINESE)
    assert pages.checks("ORPHANED") == ["mqadmin a"]


def test_every_coverage_and_certainty_has_words() -> None:
    module = ast.parse(inspect.getsource(findings))
    assigned = [each.value for each in module.body if isinstance(each, ast.Assign | ast.AnnAssign)]
    codes = {each.value for each in assigned if isinstance(each, ast.Constant)}
    codes = {each for each in codes if isinstance(each, str)}
    assert {"AUDITED", "NO_BROKER_ANSWERED", "CERTAIN", "QUEUES_CHOSEN"} <= codes
    for code in codes:
        assert words.in_words(code) == code.replace("_", " ").lower()
        assert CHINESE.of(words.in_words(code)) != words.in_words(code), code
    assert words.in_words("A_LATER_ONE") == "a later one"


#: A full-width mark has its room in itself; between it and a wide character Chinese has no blank.
_BLANK_TOO_MANY = re.compile(
    r"[，。；：、！？（）] [\u4e00-\u9fff，。；：、！？（）]|[\u4e00-\u9fff] [，。；：、！？（）]"
)


def spoken_on(html: str) -> list[str]:
    """What is read in one go: the words of each block, tags within it left out."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    inline = re.compile(r"</?(?:span|strong|a|bdi|code|time|wbr|em)\b[^>]*>")
    return [" ".join(text.split()) for text in re.split(r"<[^>]*>", inline.sub("", body))]


def test_sentences_in_chinese_follow_each_other_without_a_blank() -> None:
    spoken = spoken_on(page_of(full_report(), CHINESE))
    assert "（DUPLICATE_CLIENT_ID）" in "\n".join(spoken)
    assert [text for text in spoken if _BLANK_TOO_MANY.search(text)] == []


def test_a_share_is_written_as_the_language_writes_it() -> None:
    for chosen, expected in ((ENGLISH, "75 %"), (CHINESE, "75%")):
        tables = {"group_health": [health(completeness=0.75)]}
        assert f">{expected}<" in to_html(report(**tables), "r", language=chosen)
