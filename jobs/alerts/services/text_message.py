"""A message as a service takes it: plain text, one line is one line whatever a name contains.

How a name is kept from being a link, a mention or bold is the rule of each service.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple, Self, TypeVar

from rebalance_core.english import count

from ...languages.language import ENGLISH, Language
from ...reports.run_findings import PlaceFinding
from ...reports.tables import Place
from ...texts.shown import visible
from ...verdict.verdict import WELL

#: The place of all that a message leaves out.
OTHERS = Place("", "", "")
#: The place of all that was not read or not audited.
MISSING = Place("", "", "?")

#: RocketMQ takes no longer names; a dump may have them.
_LONGEST_NAME = 255
#: Ranks of lines: where a service has no room those of the last rank go first.
TITLE, WHY, PROBLEM, WHERE = range(4)
_Made = TypeVar("_Made")


class Link(str):
    """A line of ours with an address, which may become a link: no stranger's name is in it."""

    url: str

    def __new__(cls, line: str, url: str) -> Self:
        """The line that ends with the address."""
        link = super().__new__(cls, line)
        link.url = url
        return link


@dataclass(frozen=True)
class Item:
    """A problem as a message has it, with those of its findings that it is sent for.

    ``findings`` are those of the group's retry topic, too: what is wrong is the group's.
    ``place`` has the exact names; ``summary`` and ``explanations`` are text of one line each, and
    so is ``brief``, below a cause that has the time and what waits of all its topics;
    ``url`` is where the page has it, "" where nothing is known of a page; ``owner`` may be "", too.
    """

    place: Place
    severity: str
    is_ongoing: bool
    summary: str
    explanations: tuple[str, ...]
    findings: tuple[PlaceFinding, ...]
    url: str = ""
    owner: str = ""
    brief: str = ""

    @property
    def link(self) -> list[tuple[int, str]]:
        """The line with its place on the page, and the rank of the line."""
        return [(WHERE, Link(f"    {self.url}", self.url))] if self.url else []


class Cause(NamedTuple):
    """The text about the problems of one cause, as the page has them together.

    ``lines`` are those after the title, each with its rank.
    """

    title: str
    problems: int
    lines: tuple[tuple[int, str], ...]

    @classmethod
    def of_one(cls, item: Item) -> Self:
        """The cause of a problem that is alone."""
        why = [(WHY, f"    {explanation}") for explanation in item.explanations]
        return cls(item.summary, 1, (*why, *item.link))


@dataclass(frozen=True)
class Message:
    """The message to send: ``items`` are the worst of all, ``left_out`` is the number of others.

    ``causes`` are about all of them.

    ``heading`` has no name that a stranger chose. ``resolved`` are the groups and topics whose
    incident is over, for a service that has incidents; ``url`` is the address of the page. All text
    is in the ``language``.
    """

    date: str
    run_id: str
    heading: str
    items: tuple[Item, ...] = ()
    left_out: int = 0
    resolved: tuple[Place, ...] = ()
    url: str = ""
    language: Language = ENGLISH
    #: Events in the cluster, a line each.
    events: tuple[str, ...] = ()
    #: The ids of those whom a service calls.
    mentions: tuple[str, ...] = ()
    #: The line on groups that have nothing any more that the run before had; may be empty.
    ended: str = ""
    #: The line on what was not read or not audited; empty: nothing.
    missing: str = ""
    #: One of the states of a run.
    state: str = WELL
    causes: tuple[Cause, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The whole message as text."""
        return self.shortened(len(self._ranked))

    def fitted(
        self, made: Callable[[list[str]], _Made], longest: int, size: Callable[[_Made], int]
    ) -> _Made:
        """Makes the body with as many lines as fit into ``longest``; the heading is always in it.

        Lines are whole, and the last one is how many problems are left out. It is better to know of
        all groups than why the first one is wrong: explanations go first.

        >>> item = Item(Place("C", "G", "T"), "WARNING", True, "G / T", ("why",), ())
        >>> message = Message("2026-11-20", "run", "Audit", causes=(Cause.of_one(item),) * 2)
        >>> message.fitted(list, 4, len)
        ['Audit', '• G / T', '    why', '• G / T']
        >>> message.fitted(list, 2, len)
        ['Audit', 'and 2 more groups and topics']
        """
        kept = len(self._ranked)
        while size(body := made(self.shortened(kept))) > longest and kept:
            kept -= 1
        return body

    def shortened(self, kept: int) -> list[str]:
        """The heading, so many lines of the problems, and how many problems are left out.

        Events come first, as long as there is room for any problem.
        """
        lines = [self.heading, *([self.missing] if self.missing else ())]
        lines += [f"• {event}" for event in self.events if kept]
        first = {number for _, number, _ in sorted(self._ranked, key=itemgetter(0))[:kept]}
        lines += [line for _, number, line in self._ranked if number in first]
        titles = sum(rank == TITLE and number in first for rank, number, _ in self._ranked)
        if left_out := sum(cause.problems for cause in self.causes[titles:]):
            others = count(left_out, "more group and topic", "more groups and topics")
            lines.append(self.language("and {others}", others=others))
        if self.ended and (kept or not self.causes):
            lines.append(self.ended)
        if self.url:
            lines.append(Link(self.language("The page: {url}", url=self.url), self.url))
        return lines

    @cached_property
    def _ranked(self) -> list[tuple[int, int, str]]:
        """The lines of the problems, each with its rank and its number."""
        ranked = (
            line for cause in self.causes for line in ((TITLE, f"• {cause.title}"), *cause.lines)
        )
        return [(rank, number, line) for number, (rank, line) in enumerate(ranked)]


def shown(text: str, longest: int = _LONGEST_NAME) -> str:
    r"""A stranger's text on one line, no longer than this; what cannot be printed is spelt out.

    >>> shown("a\nb"), shown("0123456789", 4)
    ('a\\nb', '012…')
    """
    text = visible(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
