"""The report as a page and as a ticket: the templates, and what they escape.

The page may run one script, ``templates/page.js``: the Content-Security-Policy names it by its
hash, and lets nothing load. It filters, and adds the times of the browser's zone where the page
has others, in the pictures too; without it all can be read.

Every value that a template prints is escaped, unless it is Markup: in HTML by Jinja2's autoescape,
in Markdown by ``_markdown``, and in both control and direction characters are shown as escapes.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Collection
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import count as count_up
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from rebalance_core.english import agreeing, count, within
from rebalance_core.texts import Text

from .. import __version__
from ..config.toml_files import installed_folder
from ..declared.kinds import KINDS, kind_of
from ..errors import InputError
from ..languages.language import ENGLISH, Language
from ..reports.commands import commands_for, where_published
from ..reports.run_findings import PlaceQueue
from ..reports.words import begin, in_general, in_words, sentences
from ..texts.shown import day_and_time, ends_at, folded, iso, share_in_words, visible
from ..texts.templates import templates_of
from .drawings import NARROW, WIDE, colour, draw_allocation, draw_timeline, shorten
from .night import draw_night
from .nights import INDEX, SHOWN_LEVELS, History, Nights
from .page_values import MOST_GROUPS, MOST_LISTED, Card, PageValues
from .pictures import ranges

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


#: The most names of groups without numbers.
_MOST_NAMES = 5_000
_MARKS = re.compile(r"([\\`*_\[\]|~#])")
#: A name may be broken after these alone.
_AFTER_SEPARATOR = re.compile(r"(?<=[-_./@:|%#+~,;=])")
#: A part of a name that is longer has no room on a telephone: its middle is left out.
_LONGEST_PART = 30
#: The browser's tag of a language, where it is more than its code.
_TAGS = {"zh": "zh-CN"}
Translate = Callable[..., Markup]
_MENTION = re.compile(r"(?<!\w)@")


def _markdown(value: Any) -> Any:
    r"""A value as Markdown shows it as it is, in a cell of a table too.

    >>> print(_markdown("a|b <script> *c* @all"))
    a\|b &lt;script&gt; \*c\* &#64;all
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = visible(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _MENTION.sub("&#64;", _MARKS.sub(r"\\\1", text))
    return Markup(text.replace("://", ":&#47;&#47;"))  # noqa: S704 - all of it is escaped


def _code(text: str) -> Markup:
    r"""A text as a code span, whatever backquotes it has; a bar would end the cell of a table.

    >>> print(_code("G|1"), _code("a``b`c"), _code("`a"), _code("a`"))
    `G\|1` ```a``b`c``` `` `a `` `` a` ``
    """
    shown = visible(text).replace("|", r"\|")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    room = " " if shown.startswith("`") or shown.endswith("`") else ""
    return Markup(f"{fence}{room}{shown}{room}{fence}")  # noqa: S704 - nothing ends a code span


def _link(base: str, page: str) -> Markup:
    """The place of a page, as Markdown takes it between brackets."""
    return Markup(quote(f"{base}/{page}", safe="/:?&=#%~"))  # noqa: S704 - quoted


def _named(name: str) -> Markup:
    """A name that strangers chose, broken after separators alone.

    A part that is too long is shortened, and a title has the whole.

    >>> print(_named("G_a<b"))
    <bdi class="id">G_<wbr>a&lt;b</bdi>
    """
    parts = [shorten(part, _LONGEST_PART) for part in _AFTER_SEPARATOR.split(visible(name))]
    title = "" if "".join(parts) == visible(name) else Markup(' title="{}"').format(visible(name))
    text = Markup("<wbr>").join(part for part in parts if part)
    return Markup('<bdi class="id"{}>{}</bdi>').format(title, text)


def _when(language: Language, t: Translate) -> Callable[..., Markup]:
    """Makes ``when``: a period with times that a browser understands, and its share of the time.

    >>> when = _when(ENGLISH, _translate(ENGLISH, _shown(ENGLISH)))
    >>> print(when(datetime(2026, 11, 20, 10), datetime(2026, 11, 20, 10), 0.5, zone=" UTC"))
    <span class="when"><time datetime="2026-11-20T10:00:00Z">2026-11-20 10:00:00</time> UTC</span>,\
 50 % of the time
    """

    def element(time: datetime, shown: str) -> Markup:
        machine, text = iso(time, "seconds"), language.of(shown)
        return Markup('<time datetime="{}">{}</time>').format(machine, text)

    def when(
        first_seen: datetime, last_seen: datetime, share: float | None = None, *, zone: str = ""
    ) -> Markup:
        time = element(first_seen, day_and_time(first_seen))
        if last_seen != first_seen:
            until = element(last_seen, ends_at(first_seen, last_seen, language.zone))
            time = t("{since} to {until}", since=time, until=until)
        whole = Markup('<span class="when">{}{}</span>').format(time, zone)
        gaps = share_in_words(share)
        return t("{time}, {gaps}", time=whole, gaps=gaps) if gaps else whole

    return when


def _span(language: Language) -> Callable[[datetime, datetime], str]:
    """Makes ``span``: a period as a text."""

    def span(first_seen: datetime, last_seen: datetime) -> str:
        since = day_and_time(first_seen)
        if first_seen == last_seen:
            return since
        return Text(
            "{since} to {until}", since=since, until=ends_at(first_seen, last_seen, language.zone)
        )

    return span


def _minutes(minutes: float) -> str:
    return f"{minutes:,.1f}" if minutes else "0"


def _share(share: float, digits: int = 0) -> Text:
    return Text("{percent} %", percent=f"{share * 100:.{digits}f}")


def _shown(language: Language) -> Callable[[Any], Any]:
    """A value as a page shows it: in the language, and without what directs a reader's eyes."""

    def shown(value: Any) -> Any:
        value = language.of(value)
        is_plain = isinstance(value, str) and not isinstance(value, Markup)
        return visible(value) if is_plain else value

    return shown


def _translate(language: Language, shown: Callable[[Any], Any]) -> Translate:
    """``t`` of the templates: a template in the language, its values as they are shown.

    The template itself is trusted: it is part of the page, as its translation is.

    >>> t = _translate(ENGLISH, _shown(ENGLISH))
    >>> print(t("<b>{number:,}</b> of {group}", number=1200, group="<i>"))
    <b>1,200</b> of &lt;i&gt;
    """

    def t(template: str, **values: Any) -> Markup:
        texts = {name: escape(shown(of)) for name, of in values.items() if isinstance(of, str)}
        return Markup(language(template, **values | texts))  # noqa: S704 - values are escaped

    return t


@cache
def html_environment(language: Language) -> Environment:
    """The templates, and what they escape; made once, for to compile them takes longest."""
    return _environment(language, _shown(language))


@cache
def _markdown_environment(language: Language) -> Environment:
    environment = _environment(language, lambda value: _markdown(language.of(value)))
    environment.globals |= {"id": _code, "link": _link}
    return environment


#: Functions that templates call by name.
_FUNCTIONS = (
    *(agreeing, begin, colour, count, day_and_time, draw_allocation, draw_night, draw_timeline),
    *(in_general, in_words, iso, kind_of, sentences, within),
)


def _environment(language: Language, shown: Callable[[Any], Any]) -> Environment:
    """The templates, whose values are shown so, and what they know whatever the report."""
    environment = templates_of(__package__, shown, _FUNCTIONS, is_html=True)
    t = _translate(language, shown)
    environment.globals |= {
        "index": INDEX,
        "instant": datetime.fromisoformat,
        "lang": _TAGS.get(language.code, language.code),
        "minutes": _minutes,
        "narrow": NARROW,
        "named": lambda name: _named(language.of(name)),
        "share": _share,
        "shown_levels": SHOWN_LEVELS,
        "t": t,
        "version": __version__,
        "wide": WIDE,
        "span": _span(language),
        "when": _when(language, t),
        "zone": str(language.zone),
    }
    return environment


def _values(report: PageValues, reports: str, finding_pages: str | None) -> dict[str, Any]:
    """The values of a report for every template."""
    return {
        "report": report,
        "finding_pages": finding_pages and finding_pages.rstrip("/"),
        "several_clusters": len(report.clusters) > 1,
        "run_options": where_published(report.published, reports),
    }


def _queues_by_kind(card: Card) -> list[tuple[str, str]]:
    """The queues of each kind of finding."""
    queues: dict[str, set[PlaceQueue]] = {}
    for finding in card.findings:
        queues.setdefault(finding.kind, set()).update(finding.queues)
    return [(kind, ranges(card.problem.place.topic, of)) for kind, of in queues.items()]


def to_html(
    report: PageValues,
    reports: str,
    finding_pages: str | None = None,
    pages: FindingPages | None = None,
    nights: Nights | None = None,
    history: History | None = None,
    language: Language = ENGLISH,
) -> str:
    """The page: one file that needs no other and no network; without its script all can be read.

    ``reports`` is the folder of the reports, for the commands that the page names; ``pages`` are
    the pages on the findings, which it holds; ``finding_pages`` the address where they are, which
    it links to. ``nights`` are those around it, where their pages lie beside it; ``history`` has
    how each group was in the nights before.
    """
    script = (files(__package__) / "templates" / "page.js").read_text(encoding="utf-8")
    held = pages or FindingPages()

    values = _values(report, reports, finding_pages) | {
        "history": history,
        "nights": nights,
        "commands_for": lambda of: commands_for(of, report.published, reports, held.checks),
        "ids": map("p{}".format, count_up(1)).__next__,
        "most_groups": MOST_GROUPS,
        "most_listed": MOST_LISTED,
        "most_names": _MOST_NAMES,
        "page_on": lambda kind: held.html(kind, report.kinds),
        "queues_by_kind": _queues_by_kind,
        "ranges": ranges,
        "script": Markup(script),  # noqa: S704 - a file of the package, with no value in it
        "script_hash": b64encode(sha256(script.encode()).digest()).decode(),
    }
    return html_environment(language).get_template("report.html").render(values)


def to_svg(card: Card, language: Language) -> str:
    """The picture of a group and topic by itself, for a chat or a ticket.

    InputError where nothing of it can be drawn.
    """
    pictures = card.pictures
    if pictures is None or pictures.timeline is None or not pictures.timeline.lanes:
        raise InputError("this finding has no picture: no owner of a queue was computed for it")
    environment = html_environment(language)
    drawing, problem = draw_timeline(pictures.timeline, pictures.numbers), card.problem
    found = Text(
        "{severity} {group} / {topic}: {found}; {time}",
        severity=problem.severity,
        group=problem.place.consumer_group,
        topic=problem.place.topic,
        found=problem.headline,
        time=_span(language)(problem.first_seen, problem.last_seen),
    )
    owners = list(pictures.numbers.items())
    values = {"found": folded(language.of(found), 115), "drawing": drawing, "owners": owners}
    return environment.get_template("picture.svg").render(values) + "\n"


def to_markdown(
    report: PageValues,
    reports: str,
    finding_pages: str | None,
    language: Language,
    top: int,
) -> str:
    """The verdict and the worst of it, of so many topics, for a ticket."""
    values = _values(report, reports, finding_pages) | {"top": max(top, 1)}
    return _markdown_environment(language).get_template("report.md").render(values) + "\n"
