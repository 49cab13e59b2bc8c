"""The report as a page and as a ticket: the templates, and what they escape.

Every value that a template prints is escaped, unless it is Markup: in HTML by Jinja2's autoescape,
in Markdown by ``_markdown``, and in both control and direction characters are shown as escapes.
"""

from __future__ import annotations

import re
from datetime import datetime
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from jobs.kinds import kind_of
from jobs.rendering.problems import Problem
from jobs.rendering.report import MOST_GROUPS, MOST_LISTED, Detail, Report
from jobs.text import day_and_time, time_of_day, visible
from rebalance_core.english import count, noun

#: How many topics are listed before the first is told in full.
_FIRST_LISTED = 12
#: How many faults of a topic are told in full.
_MOST_FAULTS = 4
_MARKDOWN = re.compile(r"([\\`*_\[\]|~#])")
_MENTION = re.compile(r"(?<!\w)@")


def _template(name: str) -> str:
    """A template's text; read as a resource, so that it may lie in a zip."""
    return (files("jobs.rendering") / "templates" / name).read_text(encoding="utf-8")


def _printable(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _markdown(value: Any) -> Any:
    r"""A value as Markdown shows it as it is, in a cell of a table too.

    >>> print(_markdown("a|b <script> *c* @all"))
    a\|b &lt;script&gt; \*c\* &#64;all
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = visible(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _MENTION.sub("&#64;", _MARKDOWN.sub(r"\\\1", text))
    return Markup(text.replace("://", ":&#47;&#47;"))  # noqa: S704 - all of it is escaped


def _code(text: str) -> Markup:
    r"""A text as a code span, whatever backquotes it has; a bar would end the cell of a table.

    >>> print(_code("G|1"), _code("a`b"))
    `G\|1` ``a`b``
    """
    shown = visible(text).replace("|", r"\|")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    room = " " if shown.startswith("`") or shown.endswith("`") else ""
    return Markup(f"{fence}{room}{shown}{room}{fence}")  # noqa: S704 - nothing ends a code span


def _link(base: str, page: str) -> Markup:
    """The place of a page, as Markdown takes it between brackets."""
    return Markup(quote(f"{base}/{page}", safe="/:?&=#%~"))  # noqa: S704 - quoted


def _clock(iso: str) -> str:
    """A time of the summary as a person reads it."""
    return day_and_time(datetime.fromisoformat(iso))


def _minutes(minutes: float) -> str:
    return f"{minutes:,.1f}" if minutes else "0"


def _share(share: float, digits: int = 0) -> str:
    return f"{share * 100:.{digits}f} %"


def _begin(sentence: str) -> str:
    """The sentence with a capital at its beginning."""
    return sentence[:1].upper() + sentence[1:]


def _environment(report: Report, reports: str, finding_pages: str | None) -> Environment:
    """What templates know of a report, whatever they write."""
    environment = Environment(
        loader=FunctionLoader(_template),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_printable,
    )
    environment.globals |= {
        "report": report,
        "reports": reports,
        "finding_pages": finding_pages and finding_pages.rstrip("/"),
        "several_clusters": len(report.clusters) > 1,
        "begin": _begin,
        "clock": _clock,
        "count": count,
        "kind_of": kind_of,
        "minutes": _minutes,
        "noun": noun,
        "share": _share,
        "time_of_day": time_of_day,
    }
    return environment


def to_html(report: Report, reports: str, finding_pages: str | None = None) -> str:
    """The page: one file that needs no other, no network and no script.

    ``reports`` is the folder of the reports, for the commands that the page names;
    ``finding_pages`` the folder of the pages on the findings, which it links to.
    """
    environment = _environment(report, reports, finding_pages)

    def shown(problems: list[Problem]) -> list[Detail]:
        return [detail for each in problems if (detail := report.detail_of(each))]

    environment.globals |= {
        "first_listed": _FIRST_LISTED,
        "most_faults": _MOST_FAULTS,
        "most_groups": MOST_GROUPS,
        "most_listed": MOST_LISTED,
        "shown": shown,
    }
    return environment.get_template("report.html").render()


def to_markdown(report: Report, reports: str, finding_pages: str | None = None) -> str:
    """The verdict and the worst of it, for a ticket."""
    environment = _environment(report, reports, finding_pages)
    environment.finalize = _markdown
    environment.globals |= {"id": _code, "link": _link, "top": max(len(report.details), 1)}
    return environment.get_template("report.md").render() + "\n"
