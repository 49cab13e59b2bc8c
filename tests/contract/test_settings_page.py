"""The page of the settings: written from jobs/config/settings.py, up to date, with every
setting.
"""

from __future__ import annotations

import re

import pytest

from jobs.config.settings import NamedDestination, Settings
from rebalance_core.strategy_factory import STRATEGIES
from tests.contract.test_declarations import declared
from tests.support.settings_page import MARK, PAGE, page


@pytest.mark.long
def test_the_page_is_what_the_settings_say() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(written), "make docs"


def test_every_setting_is_on_the_page() -> None:
    # A destination of several has the settings of a single one, which are shown there.
    every = {
        (section, key)
        for section, key in declared(Settings)
        if not section.startswith("alerts.destinations") or key in NamedDestination.__annotations__
    }
    _, *sections = re.split(r"^### ", "### \n" + page(MARK), flags=re.M)
    shown = {
        (section.partition("\n")[0].strip("[] "), key)
        for section in sections
        for key in re.findall(r"^- `(\w+)`", section, re.M)
    }
    assert shown == every


def test_the_name_of_a_strategy_says_which_there_are() -> None:
    (name,) = re.findall(r"^### \[\[strategies\]\].*?^- `name` .*?$", page(MARK), re.M | re.DOTALL)
    named = re.findall(r"`(\w+)`", name.rpartition("\n")[2])
    assert {*STRATEGIES} <= {*named}
