"""What a reader does with the page: filter, follow links, unfold lists, on any screen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Browser

from .conftest import LANGUAGES, opened, page_of_a_fleet

FILTER = "nav input[type=search]"
GROUPS = "#groups a"
#: The groups that are there, whether their line is open or not.
NAMES = "#groups :is(tr[id], li):not([hidden])"

in_each_language = pytest.mark.parametrize("language", LANGUAGES)


@in_each_language
def test_the_filter_leaves_what_has_the_name_and_gives_all_back(
    browser: Browser, pages: dict[str, Path], language: str
) -> None:
    with opened(browser, pages[language]) as seen:
        names = seen.page.locator(NAMES)
        groups, problems = names.count(), seen.count("main > section .problem")
        heading = seen.page.locator("#verdict h2")
        whole = heading.inner_text()
        assert (groups > 10, problems > 3) == (True, True)
        seen.page.fill(FILTER, "G_S3")
        assert seen.page.locator(f"{GROUPS}:visible").all_inner_texts() == ["G_S3"]
        texts = seen.page.locator("main > section .problem:visible").all_inner_texts()
        assert texts
        assert all("G_S3" in each for each in texts)
        seen.page.fill(FILTER, "no such name")
        assert (names.count(), seen.count("main > section .problem")) == (0, 0)
        assert heading.inner_text() == seen.ask("document.querySelector('#verdict').dataset.none")
        seen.page.fill(FILTER, "")
        assert (names.count(), heading.inner_text()) == (groups, whole)
        assert seen.count("main > section .problem") == problems


@in_each_language
def test_the_filter_knows_every_client_and_leaves_no_head_without_a_row(
    browser: Browser, large: dict[str, Path], language: str
) -> None:
    """Of 300 groups 260 have no finding that lasts: their clients are in no text of the page."""
    with opened(browser, large[language]) as seen:
        names = seen.page.locator(NAMES)
        verdict = "document.querySelector('#verdict').dataset"
        for client, level in (("10.0.1.2@app", "info"), ("10.0.21.2@app", "critical")):
            seen.page.fill(FILTER, client)
            assert names.count() == 1, client
            assert names.is_visible(), client
            heading = seen.page.locator("#verdict h2").inner_text()
            assert heading == seen.ask(f"{verdict}.{level}"), client
            heads = "table:visible:not(:has(tbody tr:visible)):not(#words table)"
            assert seen.page.locator(heads).count() == 0, client
        # Whom it is about is there, though its text does not have the client.
        assert seen.count("main > section .problem") == 1


@in_each_language
def test_every_link_leads_to_a_place_of_the_page(
    browser: Browser, pages: dict[str, Path], language: str
) -> None:
    with opened(browser, pages[language]) as seen:
        links = seen.page.locator("a[href]").evaluate_all(
            "all => all.map((each) => each.getAttribute('href'))"
        )
        nowhere = seen.page.locator("a[href^='#']").evaluate_all(
            "all => all.map((each) => each.hash.slice(1)).filter((id) =>"
            " !document.getElementById(id) && !document.getElementById(decodeURIComponent(id)))"
        )
        assert nowhere == []
        outside = [each for each in links if not each.startswith("#")]
        assert outside == [], "whoever opens it from a mail or a disk has this file alone"


@in_each_language
def test_a_link_to_a_group_shows_its_fault_and_the_way_back_is_there(
    browser: Browser, pages: dict[str, Path], language: str
) -> None:
    with opened(browser, pages[language]) as seen:
        number = seen.count(GROUPS)
        for place in range(number):
            link = seen.page.locator(GROUPS).nth(place)
            hash_ = cast("str", link.get_attribute("href"))
            link.click()
            shown = seen.ask(
                "(() => { const box = document.getElementById("
                "location.hash.slice(1)).getBoundingClientRect();"
                " return box.height > 0 && box.top < innerHeight && box.bottom > 0; })()"
            )
            assert shown, hash_
            seen.page.go_back()
            assert seen.ask("location.hash") == ""
        closed = seen.page.locator("details.problem:not([open])")
        if closed.count():
            anchor = closed.first.get_attribute("id")
            seen.ask(f"location.hash = {anchor!r}")
            seen.page.wait_for_function("document.querySelector('details.problem[open]') !== null")


@in_each_language
def test_what_is_folded_unfolds_by_a_click_and_folds_again(
    browser: Browser, pages: dict[str, Path], language: str
) -> None:
    with opened(browser, pages[language]) as seen:
        folded = seen.page.locator("details:not([open]) > summary:visible")
        assert folded.count() > 3
        element = folded.first.element_handle()
        assert element is not None
        for is_open in (True, False):
            element.click()
            assert element.evaluate("each => each.parentElement.open") is is_open


@in_each_language
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_lies_beyond_the_edge_and_all_can_be_read(
    browser: Browser, pages: dict[str, Path], language: str, scheme: str, width: int
) -> None:
    with opened(browser, pages[language], width=width, scheme=scheme) as seen:
        for unfolded in (False, True):
            if unfolded:
                seen.ask("document.querySelectorAll('details').forEach((each) => each.open = true)")
            assert seen.ask("document.documentElement.scrollWidth <= innerWidth"), unfolded
            if width == 1280:
                cut_off = seen.page.locator(".scroll:visible").evaluate_all(
                    "all => all.filter((each) => each.scrollWidth > each.clientWidth)"
                    ".map((each) => each.getAttribute('aria-label'))"
                )
                assert cut_off == []
        assert (language == "zh") is bool(re.search("[一-鿿]", seen.page.inner_text("h1")))
        style = "getComputedStyle(document.body)"
        colours = seen.ask(f"[{style}.color, {style}.backgroundColor]")
        text, page = (_light(each) for each in cast("list[str]", colours))
        assert (page > text) is (scheme == "light")
        # The least contrast that WCAG 2 asks of a text.
        assert (max(text, page) + 0.05) / (min(text, page) + 0.05) >= 4.5


@in_each_language
@pytest.mark.parametrize("width", [400, 1280])
def test_the_index_of_nights_fits_and_each_cell_leads_to_its_group(
    browser: Browser, pages: dict[str, Path], language: str, width: int
) -> None:
    index = pages[language].parent / f"nights-{language}" / "index.html"
    with opened(browser, index, width=width) as seen:
        assert seen.ask("document.documentElement.scrollWidth <= innerWidth")
        links = seen.page.locator("a[href]").evaluate_all(
            "all => all.map((each) => decodeURIComponent(each.getAttribute('href')).split('#'))"
        )
        assert len(links) > 5
        for file, *anchor in links:
            page = (index.parent / file).read_text(encoding="utf-8")
            assert all(f'id="{each}"' in page for each in anchor), (file, anchor)


@in_each_language
def test_nothing_of_the_picture_of_a_finding_is_cut_off(
    browser: Browser, pages: dict[str, Path], language: str
) -> None:
    with opened(browser, pages[language].with_suffix(".svg")) as seen:
        width, height = cast(
            "list[float]",
            seen.ask(
                "['width', 'height'].map(each =>"
                " Number(document.documentElement.getAttribute(each)))"
            ),
        )
        texts = seen.page.locator("text").evaluate_all(
            "all => all.map((each) => [each.textContent, each.getBoundingClientRect().toJSON()])"
        )
        assert len(texts) > 10
        beyond = [
            text
            for text, box in texts
            if box["left"] < 0 or box["right"] > width or box["bottom"] > height
        ]
        assert beyond == []


@in_each_language
@pytest.mark.parametrize("width", [400, 1280])
def test_the_faults_of_300_groups_can_be_read_without_scrolling_for_long(
    browser: Browser, large: dict[str, Path], language: str, width: int
) -> None:
    assert large[language].stat().st_size < 500_000
    with opened(browser, large[language], width=width) as seen:
        assert seen.ask("document.documentElement.scrollWidth <= innerWidth")
        bottoms = seen.page.locator(".cause .problem:visible").evaluate_all(
            "all => all.map((each) => each.getBoundingClientRect().bottom + scrollY)"
        )
        # Every group with a fault that lasts has a card of its own, or a line of one.
        assert len(bottoms) >= 40
        assert max(bottoms) < 12_000


@pytest.mark.parametrize("groups", [300, 2_000])
def test_a_page_is_as_long_as_what_is_wrong_and_not_as_its_groups(
    browser: Browser, large: dict[str, Path], tmp_path: Path, groups: int
) -> None:
    """A broker's restart touched all groups; 40 have faults, and these are what is long."""
    file = large["en"] if groups == 300 else page_of_a_fleet(tmp_path, groups, ["en"])["en"]
    with opened(browser, file) as seen:
        assert cast("int", seen.ask("document.documentElement.scrollHeight")) < 15_000
        # Whoever did well is there by name, behind a line.
        assert seen.page.locator("#groups li").count() == groups - 40
        assert seen.count("#groups li") == 0


def _light(colour: str) -> float:
    """The relative luminance of a colour of a browser, as WCAG 2 has it."""

    def linear(part: float) -> float:
        return part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(each) / 255) for each in re.findall(r"\d+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
