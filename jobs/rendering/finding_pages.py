"""The pages on the findings (docs/findings), as sections of the page of a run.

The page itself holds them: in a mail, or on another machine, a link to a file leads nowhere.
"""

import re
from collections.abc import Collection
from pathlib import Path

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from rebalance_core.texts import Text

from ..config.toml_files import installed_folder
from ..declared.kinds import KINDS, kind_of
from ..languages.language import ENGLISH, Language

#: Raw HTML is shown as text.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")
#: The section of a page that several kinds share about one of them alone.
_OF_ONE = re.compile(r"^### ([A-Z_]+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
#: The heading of the section with the commands, as each language has it.
TO_CONFIRM = Text("How to confirm")
_FOLDER = "findings"
_TOOLS = ("mqadmin ", "rebalance-audit show ")


class FindingPages:
    """The pages of folders, as Markdown: of the first folder that has the page."""

    def __init__(self, *folders: Path, language: Language = ENGLISH) -> None:
        self._folders = folders
        self._language = language

    @classmethod
    def of_this_installation(cls, language: Language) -> "FindingPages":
        """The pages of the checkout, or those that were installed with the package.

        A page that the language lacks is English.
        """
        installed = installed_folder()
        roots = (Path(__file__).parents[2] / "docs", installed)
        root = next((path for path in roots if (path / _FOLDER).is_dir()), installed)
        return cls(root / language.code / _FOLDER, root / _FOLDER, language=language)

    def text(self, name: str) -> str:
        """The page on a kind, as Markdown, without what is of other kinds; "" if there is none."""
        if name not in KINDS:
            return ""
        pages = (folder / KINDS[name].page.partition("#")[0] for folder in self._folders)
        page = next((path for path in pages if path.is_file()), None)
        text = page.read_text(encoding="utf-8") if page else ""
        return _OF_ONE.sub(lambda found: found[2] if found[1] == name else "", text)

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

        # Headings one step below that of the section: the title of the page is left out.
        body = re.sub(r"^## ", "### ", _LINK.sub(link, body), flags=re.MULTILINE)
        # Every table of the page has a caption, and heads with a scope.
        title = self._language.of(kind_of(name).title)
        caption = f"<table><caption>{escape(title)}</caption>"
        html = _MARKDOWN.render(body).replace("<table>", caption)
        html = html.replace("<th>", '<th scope="col">')
        return Markup(html)  # noqa: S704 - raw HTML in it is escaped

    def checks(self, name: str) -> list[str]:
        """The commands by which the page on a kind confirms it, with its placeholders.

        >>> FindingPages.of_this_installation(ENGLISH).checks("FROZEN_PROCESS")[0]
        'mqadmin consumerStatus -g GROUP -i CLIENT_ID -s'
        """
        text = self.text(name)
        # The page may be English where the language lacks it.
        headings = (self._language.of(TO_CONFIRM), TO_CONFIRM)
        section = next(filter(None, (_section(text, heading) for heading in headings)), "")
        codes = (" ".join(code.split()) for code in _CODE.findall(section))
        return list(dict.fromkeys(code for code in codes if code.startswith(_TOOLS)))


def _section(text: str, heading: str) -> str:
    """The text below a heading; "" where there is no such heading."""
    form = rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)"
    found = re.search(form, text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""
