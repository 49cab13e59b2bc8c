"""The pages on the findings (docs/findings), as sections of the page of a run.

The page itself holds them: in a mail, or on another machine, a link to a file leads nowhere.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Collection
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup

from jobs.kinds import KINDS, kind_of

#: Raw HTML is shown as text.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")
_TO_CONFIRM = re.compile(r"^## How to confirm$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_TOOLS = ("mqadmin ", "rebalance-audit show ")


class FindingPages:
    """The pages of a folder, one per kind, as Markdown; without a folder there are none."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @classmethod
    def of_this_installation(cls) -> FindingPages:
        """The pages of the checkout, or those that were installed with the package."""
        of_checkout = Path(__file__).parents[2] / "docs" / "findings"
        installed = Path(sysconfig.get_path("data")) / "share" / "rebalance-audit" / "findings"
        return cls(next((each for each in (of_checkout, installed) if each.is_dir()), None))

    def text(self, name: str) -> str:
        """The page on a kind, as Markdown; "" where there is none."""
        if self._folder is None or name not in KINDS:
            return ""
        page = self._folder / KINDS[name].page
        return page.read_text(encoding="utf-8") if page.is_file() else ""

    def html(self, name: str, shown: Collection[str]) -> Markup:
        """The page on a kind without its title; "" where there is none.

        It links to the kinds that are ``shown`` beside it, and to no file.
        """
        _, _, body = self.text(name).partition("\n")
        there = {kind_of(each).page: f"#kind-{each.lower()}" for each in shown}

        def link(found: re.Match[str]) -> str:
            text, target = found.groups()
            target = there.get(target, target)
            return f"[{text}]({target})" if target.startswith(("#", "https://")) else text

        # Headings one step below that of the section: the page's own title is left out.
        body = re.sub(r"^## ", "### ", _LINK.sub(link, body), flags=re.MULTILINE)
        # Every table of the page has a caption, and heads with a scope.
        caption = f"<table><caption>{kind_of(name).title}</caption>"
        html = _MARKDOWN.render(body).replace("<table>", caption)
        html = html.replace("<th>", '<th scope="col">')
        return Markup(html)  # noqa: S704 - raw HTML in it is escaped

    def checks(self, name: str) -> list[str]:
        """The commands by which the page on a kind confirms it, with its placeholders.

        >>> FindingPages.of_this_installation().checks("FROZEN_PROCESS")[0]
        'mqadmin consumerStatus -g GROUP -i CLIENT_ID -s'
        """
        section = _TO_CONFIRM.search(self.text(name))
        codes = (" ".join(code.split()) for code in _CODE.findall(section[1] if section else ""))
        return list(dict.fromkeys(code for code in codes if code.startswith(_TOOLS)))
