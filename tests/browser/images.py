"""The pictures of docs/images, made anew from the sample: make images. Look at them afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser

from .conftest import LANGUAGES, ROOT, opened

#: What is folded, or a table, takes the room of the pictures.
OPEN_ALONE = """each => {
    each.open = true;
    each.querySelectorAll("details").forEach((inner) => inner.remove());
}"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_pictures_of_the_docs_are_made_of_the_page(
    browser: Browser, pages: dict[str, Path], language: str
) -> None:
    ending = ".png" if language == "en" else f".{language}.png"
    verdict, finding = (
        ROOT / "docs" / "images" / f"report-{name}{ending}" for name in ("verdict", "finding")
    )
    with opened(browser, pages[language], width=1000) as seen:
        tiles = seen.page.locator(".tiles").bounding_box()
        assert tiles is not None
        height = tiles["y"] + tiles["height"] + 16
        clip = {"x": 0.0, "y": 0.0, "width": 1000.0, "height": height}
        seen.page.screenshot(path=verdict, clip=clip, full_page=True)  # type: ignore[arg-type]
        card = seen.page.locator("[id='G_S2/T_S2']")
        card.evaluate(OPEN_ALONE)
        card.screenshot(path=finding)
    for file in (verdict, finding):
        Image.open(file).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(file)
