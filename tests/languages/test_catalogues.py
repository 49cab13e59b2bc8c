"""Every language has every text, once, with its slots, and no text that is not there any more."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from jobs.config.choices import LANGUAGES
from jobs.languages.language import ENGLISH, language
from rebalance_core.texts import Text, forms
from tests.languages.templates import (
    ROOT,
    declared,
    found,
    has_words,
    in_page,
    in_python_text,
    templates,
    without_slots,
)

FOLDER = ROOT / "jobs" / "languages"
CODES = sorted(LANGUAGES.keys() - {ENGLISH.code})
#: What makes a text of a template that it is given, and whose templates ``declared`` has.
GIVEN = {
    ("jobs/judge/observe/evaluation.py", "because"),
    ("jobs/declared/kinds.py", "title"),
    ("jobs/declared/kinds.py", "meaning"),
    ("jobs/languages/language.py", "code"),
    ("jobs/languages/language.py", "template"),
    ("jobs/rendering/page.py", "template"),
    ("jobs/reports/words.py", "kind.title"),
    ("jobs/config/settings.py", "ENGLISH.code"),
    ("jobs/config/settings.py", "self.language"),
    ("rebalance_core/changes.py", "self.step"),
    ("rebalance_core/client_id.py", "kind.value"),
    ("rebalance_core/descriptions.py", "what_to_do"),
    ("rebalance_core/english.py", "counted(singular, plural)"),
    ("rebalance_core/english.py", "one if number == 1 else many"),
    ("jobs/reports/words.py", "kind.meaning"),
    ("rebalance_core/strategy.py", "self.variant"),
    ("rebalance_core/texts.py", "self.template"),
}
#: Names, codes and signs, which are the same in a language.
SAME = {"zh": {"client-go", "{client_id} (x{n})"}}


def catalogue(code: str) -> dict[str, dict[str, str]]:
    """The translations of a language by file."""
    files = sorted((FOLDER / code).glob("*.toml"))
    return {each.name: tomllib.loads(each.read_text(encoding="utf-8")) for each in files}


def entries(code: str) -> list[tuple[str, str]]:
    """Every template with its translation; an entry for one and many is two of them."""
    written = [entry for of_file in catalogue(code).values() for entry in of_file.items()]
    both = [zip(forms(text), forms(other), strict=True) for text, other in written]
    return list(chain.from_iterable(map(dict.fromkeys, both)))


def slots(template: str) -> set[str]:
    """The slots with how their values are written; English alone has a capital to lose."""
    return set(re.findall(r"\{\w+(?::[^{}]*)?\}", template.replace(":within}", "}")))


@pytest.mark.long
def test_every_template_can_be_read_from_the_sources() -> None:
    """One that is put together while the program runs would be missed by all that follows."""
    unread = {(each.place.path, each.code) for each in found() if each.template is None}
    assert unread <= GIVEN, sorted(unread - GIVEN)


@pytest.mark.parametrize("code", CODES)
def test_a_language_has_every_text(code: str) -> None:
    there = dict(entries(code))
    missing = {text: str(place) for text, place in templates().items() if text not in there}
    assert not missing


@pytest.mark.parametrize("code", CODES)
def test_a_language_has_no_text_that_is_not_there_any_more(code: str) -> None:
    used = {each.template for each in found()} | declared()
    assert [text for text, _ in entries(code) if text not in used] == []


@pytest.mark.parametrize("code", CODES)
def test_a_text_has_one_translation(code: str) -> None:
    """Else the name of a file would decide which of them is shown."""
    number = Counter(text for text, _ in entries(code))
    assert [text for text, times in number.items() if times > 1] == []


@pytest.mark.parametrize("code", CODES)
def test_a_translation_has_the_slots_of_its_text_and_no_other(code: str) -> None:
    """It leaves out no name and no number."""
    wrong = {text: other for text, other in entries(code) if slots(other) != slots(text)}
    assert not wrong


@pytest.mark.parametrize("code", CODES)
def test_a_translation_is_not_empty_and_not_english(code: str) -> None:
    for text, other in entries(code):
        assert other.strip(), text
        assert "{" not in without_slots(other) and "}" not in without_slots(other), text
        if has_words(text) and text not in SAME.get(code, ()):
            assert other != text


@pytest.mark.parametrize("code", CODES)
def test_a_file_of_a_language_has_texts_alone(code: str) -> None:
    for name, of_file in catalogue(code).items():
        assert all(isinstance(each, str) for each in of_file.values()), name


#: Beside a Chinese character: a mark that Chinese writes otherwise, or no blank before Latin.
CHINESE_CHARACTER = r"[\u4e00-\u9fff]"
NOT_CHINESE = re.compile(
    rf"{CHINESE_CHARACTER}[,;:!?()]|[,;!?()]{CHINESE_CHARACTER}"
    rf"|{CHINESE_CHARACTER}[A-Za-z0-9]|[A-Za-z0-9%]{CHINESE_CHARACTER}"
    rf"|{CHINESE_CHARACTER}[\"']|[\"']{CHINESE_CHARACTER}"
    r"|[，。；：、！？（）] | [，。；：、！？）]|\u3000"
)


def test_chinese_has_chinese_marks_and_blanks_around_latin() -> None:
    wrong = {text: NOT_CHINESE.search(other) for text, other in entries("zh")}
    assert not {text: match[0] for text, match in wrong.items() if match}


#: By what an English text has, the word of ``docs/zh/reading.md`` and what was once there for it.
WORDS = {
    r"\bmasked\b": ("脱敏", "遮盖|掩码|打码"),
    r"\bfrozen\b": ("卡死", "冻结"),
    r"change hands|\bmoved\b|that move|repair moves|No queue moves": (
        "改变归属|不动",
        "换负责者|推进",
    ),
    r"\boffsets?\b": ("位点", "偏移"),
    r"\bmasters?\b": ("主节点", r"(?<![A-Za-z])[Mm]aster(?![A-Za-z])"),
    r"\bslaves?\b": ("备节点", r"(?<![A-Za-z])[Ss]lave(?![A-Za-z])|从节点"),
    r"\bnot understood\b": ("无法解析", "看不懂|读不懂|无法理解"),
    r"\bsettings\b": ("配置", "来自设置|，设置"),
    r"\bheartbeats?\b": ("心跳", ""),
    r"\bnameservers?\b": ("NameServer", "名称服务器"),
    r"\bbacklog\b": ("堆积", "积压"),
    r"\bsubscri": ("订阅", ""),
    r"\brunning infos?\b": ("运行信息", ""),
    r"\bdumps\b": ("采集文件", "转储"),
}


@pytest.mark.parametrize("english", WORDS)
def test_chinese_has_one_word_for_one_thing(english: str) -> None:
    wanted, unwanted = WORDS[english]
    texts = [each for each in entries("zh") if re.search(english, without_slots(each[0]))]
    assert texts
    assert [text for text, other in texts if not re.search(wanted, other)] == []
    if unwanted:
        assert [other for _, other in entries("zh") if re.search(unwanted, other)] == []


@pytest.mark.parametrize("code", CODES)
def test_every_text_can_be_said_in_a_language(code: str) -> None:
    """With a number or a name in each slot, whatever it is."""
    chosen = language(code)
    for text in templates().keys() & chosen.templates.keys():
        numbers = dict.fromkeys((each.strip("{}").split(":")[0] for each in slots(text)), 1)
        assert chosen.of(Text(text, **numbers))
        names = dict.fromkeys(numbers, "{x}")
        assert chosen.of(Text(text, **names)).count("{x}") >= len(slots(chosen.templates[text]))


# ------------------------------------------------------------------ what reads the sources


def test_templates_are_found_wherever_a_text_is_made() -> None:
    code = """
_SAYS = {"a": ("{n} in a", "{n} in b")}
def f(n, template="by default {n}"):
    Text("one {n}" if n == 1 else "several {n}", n=n)
    agreeing(n, _SAYS["a"], n=n)
    agreeing(n, "{n} [goes|go]", n=n)
    count(n, "box", "boxes")
    list_of([], 2, ("more box", "more boxes"))
    joined([], "{before} then {next}")
    joined([], template=template)
    message.language("heading")
    Text(f"put together {n}")
"""
    expected = {
        *("one {n}", "several {n}", "{n} in a", "{n} in b", "{number:,} box", "{number:,} boxes"),
        *("{number:,} more box", "{number:,} more boxes", "{before} then {next}"),
        *("by default {n}", "heading", "{n} goes", "{n} go", None),
    }
    assert {each.template for each in in_python_text(code)} == expected


def test_templates_are_found_in_a_page() -> None:
    page = '{% set a = t("a {b}", b=count(2, "day")) %}<p title="{{ t("c") }}">{{ t(d) }}</p>'
    page += '{{ agreeing(2, "[e|f]") }}'
    assert {each.template for each in in_page(page, "")} == {
        *("a {b}", "{number:,} day", "{number:,} days", "c", "e", "f", None)
    }


def test_the_sources_have_texts() -> None:
    """Else all of this would hold of nothing."""
    places = {Path(place.path).parts[1] for place in templates().values() if place.line}
    assert len(templates()) > 600
    assert {"alerts", "judge", "rendering", "reports", "texts", "descriptions.py"} <= places
