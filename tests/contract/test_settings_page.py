"""The page of all settings: written from jobs/settings.py, up to date, with every setting."""

from __future__ import annotations

import re
import tomllib

import pytest

from jobs.settings import NamedDestination, Settings
from tests.contract.test_declarations import declared
from tests.support.data_dictionary import in_chinese
from tests.support.settings_page import CHINESE, CHINESE_PAGE, PAGE, page


@pytest.mark.long
def test_the_pages_are_what_the_settings_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "make docs"
    assert CHINESE_PAGE.read_text(encoding="utf-8") == page(in_chinese(CHINESE)), "make docs"


@pytest.mark.long
def test_no_translation_of_the_page_is_left_over() -> None:
    asked: set[str] = set()
    page(lambda text: asked.add(text) or text)  # type: ignore[func-returns-value]
    assert set(tomllib.loads(CHINESE.read_text(encoding="utf-8"))) == asked


def test_every_setting_is_on_the_page() -> None:
    # A destination of several has the settings of a single one, which are shown there.
    every = {
        (section, key)
        for section, key in declared(Settings)
        if not section.startswith("alerts.destinations") or key in NamedDestination.__annotations__
    }
    _, *sections = re.split(r"^## ", "## \n" + page(), flags=re.M)
    shown = {
        (section.partition("\n")[0].strip("[] "), key)
        for section in sections
        for key in re.findall(r"^\| `(\w+)`", section, re.M)
    }
    assert shown == every
