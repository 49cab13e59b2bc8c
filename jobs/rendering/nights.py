"""Summaries of many nights -> how each group was in each: the strips, and the index of all pages.

A night that was not audited is shown as missing, never as one without findings; what was open and
was not looked for as still open, never as repaired.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import count as count_up
from itertools import groupby
from typing import Any, NamedTuple

from rebalance_core.english import count, joined, with_commas
from rebalance_core.texts import Text

from ..config.choices import INCOMPLETE
from ..declared.kinds import CRITICAL, INFO, LEVELS, NOT_AUDITED, OK, SEVERITIES, WARNING, Kind
from ..errors import AuditError
from ..reports.words import in_words
from ..storage import Reports

_LOGGER = logging.getLogger(__name__)

#: The name of the page with all nights.
INDEX = "index.html"
#: The strips of an index have so many cells at most, those of the worst groups: each is a link.
MOST_CELLS = 10_000
#: The number of nights in the strip of a group within the page of one night.
STRIP_NIGHTS = 30

#: No run was published for the night.
MISSING = "MISSING"
#: There is a run, and nothing shows how the group was: its files are damaged, or it left the group
#: out because there are so many.
UNKNOWN = "UNKNOWN"
#: There is a run, and it does not have the group.
NOT_THERE = "NO_GROUP"


class ShownLevel(NamedTuple):
    """A level of a night: its sign in a strip, what it means, and how a person reads its name."""

    sign: str
    meaning: Text
    name: str


#: The level of a group by what was open before and was not looked for, where that is worse than
#: what the night shows; and by what known issues explain, where nothing else is found.
LEFT_OPEN = {WARNING: "OPEN_WARNING", CRITICAL: "OPEN_CRITICAL"}
KNOWN = {WARNING: "KNOWN_WARNING", CRITICAL: "KNOWN_CRITICAL"}

_NOT_SAID = (MISSING, UNKNOWN, NOT_THERE)

#: The mildest first. Severities are called as the tables have them.
SHOWN_LEVELS = {
    OK: ShownLevel("·", Text("no findings"), OK),
    INFO: ShownLevel("◦", Text("it passed, is too new to count, or is harmless"), INFO),
    KNOWN[WARNING]: ShownLevel("w", Text("a known issue, WARNING"), Text("WARNING KNOWN")),
    KNOWN[CRITICAL]: ShownLevel("c", Text("a known issue, CRITICAL"), Text("CRITICAL KNOWN")),
    NOT_AUDITED: ShownLevel("–", Text("not audited"), Text("NOT AUDITED")),  # noqa: RUF001 - a dash
    INCOMPLETE: ShownLevel("–", Text("not everything was read and audited"), Text("INCOMPLETE")),  # noqa: RUF001
    LEFT_OPEN[WARNING]: ShownLevel(
        "W?", Text("open before and not looked for, WARNING"), Text("WARNING NOT LOOKED FOR")
    ),
    WARNING: ShownLevel("W", Text("lasting findings, WARNING"), WARNING),
    LEFT_OPEN[CRITICAL]: ShownLevel(
        "C?", Text("open before and not looked for, CRITICAL"), Text("CRITICAL NOT LOOKED FOR")
    ),
    CRITICAL: ShownLevel("C", Text("lasting findings, CRITICAL"), CRITICAL),
    MISSING: ShownLevel(" ", Text("no audit of this night"), Text("MISSING")),
    UNKNOWN: ShownLevel("?", Text("the audit of this night does not say"), Text("UNKNOWN")),
    NOT_THERE: ShownLevel(" ", Text("the group was not there"), Text("NO GROUP")),
}
#: The levels that say how a group was, the mildest first.
_LEVELS = [level for level in SHOWN_LEVELS if level not in (INCOMPLETE, *_NOT_SAID)]


def level_of_group(named: Mapping[str, Any]) -> str:
    """The level of a group, as the summary of a night has the group.

    >>> level_of_group({"level": "NOT_AUDITED", "findings": 0, "left_open": "CRITICAL"})
    'OPEN_CRITICAL'
    >>> level_of_group({"level": "CRITICAL", "findings": 1, "left_open": "WARNING"})
    'CRITICAL'
    >>> [level_of_group({"level": each, "known": "CRITICAL"}) for each in ("INFO", "WARNING")]
    ['KNOWN_CRITICAL', 'WARNING']
    """
    level = str(named["level"])
    left_open, known = named.get("left_open"), named.get("known")
    if left_open in LEFT_OPEN and LEVELS.index(left_open) > LEVELS.index(level):
        return LEFT_OPEN[left_open]
    return KNOWN[known] if known in KNOWN and level in (OK, INFO) else level


class Nights(NamedTuple):
    """The published nights around one, whose pages lie in one folder; None where there is none."""

    before: str | None
    after: str | None

    @staticmethod
    def page(night: str) -> str:
        """The name of the page of a night."""
        return f"dt={night}.html"

    @classmethod
    def around(cls, night: str, nights: Sequence[str]) -> "Nights":
        """Finds the nights next to one; the nights are in order.

        >>> Nights.around("2026-11-20", ["2026-11-17", "2026-11-20"])
        Nights(before='2026-11-17', after=None)
        """
        return cls(
            max((other for other in nights if other < night), default=None),
            min((other for other in nights if other > night), default=None),
        )


@dataclass(frozen=True)
class Night:
    """One date of the calendar, and what was published for it."""

    date: str
    is_published: bool
    summary: Mapping[str, Any] | None

    @cached_property
    def _named(self) -> dict[tuple[str, str], Mapping[str, Any]]:
        """The groups that the summary names, by cluster and group; empty without a summary."""
        clusters = self.summary["groups"]["clusters"] if self.summary is not None else {}
        return {
            (cluster, group): named
            for cluster, groups in clusters.items()
            for group, named in groups.items()
        }

    @cached_property
    def levels(self) -> dict[tuple[str, str], str]:
        """The level of each group, by cluster and group."""
        return {group: level_of_group(named) for group, named in self._named.items()}

    def level_of(self, cluster: str, consumer_group: str) -> str:
        """The level of the group, or the reason why there is none."""
        if self.summary is None:
            return self.level
        left_out = self.summary["groups"]["left_out"]
        return self.levels.get((cluster, consumer_group), UNKNOWN if left_out else NOT_THERE)

    @property
    def level(self) -> str:
        """The level of its verdict; for a run of an earlier version that of its worst group."""
        if self.summary is None:
            return UNKNOWN if self.is_published else MISSING
        if self.verdict is not None:
            return str(self.verdict["level"])
        return max(self.counts, key=LEVELS.index, default=NOT_AUDITED)

    @property
    def counts(self) -> Mapping[str, int]:
        """The groups by what this night shows of them, of those that are named."""
        return Counter(str(named["level"]) for named in self._named.values())

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """Its verdict; None where it has none, as a run of an earlier version."""
        return None if self.summary is None else self.summary.get("verdict")

    @property
    def lacks(self) -> str:
        """All that was not read, not audited or not looked for; empty: nothing is known to lack."""
        verdict = self.verdict or {}
        parts = []
        for coverage, of in verdict.get("not_audited", {}).items():
            topics, words = count(of["topics"], "topic"), in_words(coverage)
            parts.append(Text("not audited: {topics} ({coverage})", topics=topics, coverage=words))
        if left_open := verdict.get("left_open", 0):
            parts.append(Text("not looked for: {findings}", findings=count(left_open, "finding")))
        parts += [
            Text("not read: {kind} {number:,}", kind=kind, number=number)
            for kind, number in verdict.get("gaps", {}).items()
        ]
        return joined(parts)


class Strip(NamedTuple):
    """The levels of one group, night by night."""

    cluster: str
    consumer_group: str
    levels: tuple[str, ...]

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts the worst first: of the last night with a level, then of all nights."""
        levels = [_LEVELS.index(level) for level in self.levels if level in _LEVELS]
        return (
            -levels[-1] if levels else 0,
            *(-levels.count(_LEVELS.index(level)) for level in reversed(SEVERITIES)),
            self.cluster,
            self.consumer_group,
        )

    @property
    def says_something(self) -> bool:
        """True if any night has the group."""
        return not set(self.levels).issubset(_NOT_SAID)

    @property
    def sentence(self) -> str:
        """The strip in words, for who cannot see it.

        >>> Strip("C", "G", ("OK", "MISSING", "CRITICAL", "CRITICAL")).sentence
        '1 night OK, 1 MISSING, 2 CRITICAL'
        """
        runs = ((SHOWN_LEVELS[level].name, len([*same])) for level, same in groupby(self.levels))
        (first, number), *others = runs
        nights = Text("{nights} {level}", nights=count(number, "night"), level=first)
        later = [Text("{number} {level}", number=n, level=name) for name, n in others]
        return with_commas([nights, *later])


class History(NamedTuple):
    """The last nights, oldest first, and the groups of which something lasted in any of them."""

    nights: tuple[Night, ...]
    strips: tuple[Strip, ...]
    strips_left_out: int
    #: The other groups: in no night anything lasted, or was not audited.
    well: int

    def strip_of(self, cluster: str, consumer_group: str) -> Strip:
        """The strip of one group, whether it was well or not."""
        return _strip(self.nights, cluster, consumer_group)

    def up_to(self, last: str, most: int) -> "History":
        """The ``most`` nights up to this one, of those that are here."""
        return history_of([night for night in self.nights if night.date <= last][-most:])


def _strip(nights: Iterable[Night], cluster: str, group: str) -> Strip:
    return Strip(cluster, group, tuple(night.level_of(cluster, group) for night in nights))


def read_history(reports: Reports, last: str, most: int) -> History:
    """The ``most`` nights up to this one, of the calendar: one summary is read for each.

    Nights before the first that is published are not among them: nothing of them is missing.
    """
    dates = set(reports.dates())
    end = date.fromisoformat(last)
    first = date.fromisoformat(min(dates, default=last))
    ago = reversed(range(min(most, max((end - first).days, 0) + 1)))
    nights = []
    for day in ((end - timedelta(days=days)).isoformat() for days in ago):
        published = None
        try:
            published = reports.find(day) if day in dates else None
        except (AuditError, OSError) as error:
            _LOGGER.warning("%s: the night of %s is shown as one without levels", error, day)
        nights.append(Night(day, day in dates, published.summary if published else None))
    return history_of(nights)


def history_of(nights: Sequence[Night]) -> History:
    """The history of each group over the nights."""
    groups = {group for night in nights for group in night.levels}
    strips = [_strip(nights, *group) for group in groups]
    unwell = [strip for strip in strips if not {OK, INFO, *_NOT_SAID}.issuperset(strip.levels)]
    unwell.sort(key=lambda strip: strip.rank)
    most = MOST_CELLS // max(len(nights), 1)
    well = len(strips) - len(unwell)
    return History(tuple(nights), tuple(unwell[:most]), len(unwell[most:]), well)


#: The number of causes with bars of their own, the commonest.
_MOST_CAUSES = 8
#: The most lines across, and dates below.
_MOST_LINES, _MOST_DATES = 4, 5


class Bars(NamedTuple):
    """The bars of one cause in all nights: one path, and the class that colours it."""

    title: str
    css: str
    path: str


class LeftOpen(NamedTuple):
    """The topics of a night in which something was open before and was not looked for: their
    number, above all that was found.
    """

    night: int
    foot: int
    topics: int


class Chart(NamedTuple):
    """``nights`` wide and ``top`` high; ``lines``: the heights that have a line, from 0 to the top.

    ``dates``: the numbers of the nights that have their date below. ``left_open`` is not among the
    bars: a pattern is not drawn to their scale. Neither: no night has any.
    """

    bars: tuple[Bars, ...]
    left_open: tuple[LeftOpen, ...]
    nights: int
    top: int
    lines: tuple[int, ...]
    dates: tuple[int, ...]


def chart_of(nights: Sequence[Counter[Kind]], left_open: Sequence[int] = ()) -> Chart:
    """The bars of all nights, the commonest cause at the foot; a night without counts has none.

    ``left_open``: the topics of each night in which something was open before and was not looked
    for: they are above the bars, so that nothing looks repaired because nobody looked.

    >>> chart = chart_of([])
    >>> chart.bars, chart.top, chart.lines
    ((), 1, (0, 1))
    """
    causes = [kind for kind, _ in sum(nights, Counter[Kind]()).most_common()]
    shown, others = causes[:_MOST_CAUSES], causes[_MOST_CAUSES:]
    layers = [([kind], kind.title, f"o{number}") for number, kind in enumerate(shown)]
    if others:
        layers.append((others, Text("other causes"), "several"))
    unseen = [*left_open, *[0] * (len(nights) - len(left_open))]
    totals = (night.total() + number for night, number in zip(nights, unseen, strict=True))
    highest = max(totals, default=0) or 1
    steps = (digit * 10**power for power in count_up() for digit in (1, 2, 5))
    step = next(step for step in steps if step * _MOST_LINES >= highest)
    lines = tuple(range(0, highest + step, step))
    feet = [0] * len(nights)
    bars = []
    for kinds, title, css in layers:
        path = []
        for x, night in enumerate(nights):
            if height := sum(night[kind] for kind in kinds):
                path.append(f"M{x}.1 {lines[-1] - feet[x]}h.8v-{height}h-.8z")
                feet[x] += height
        bars.append(Bars(title, css, "".join(path)))
    above = enumerate(zip(feet, unseen, strict=True))
    hatched = tuple(LeftOpen(x, foot, topics) for x, (foot, topics) in above if topics)
    apart = max(-(-(len(nights) - 1) // (_MOST_DATES - 1)), 1)
    dates = tuple(range(len(nights) - 1, -1, -apart))
    return Chart(tuple(bars), hatched, len(nights), lines[-1], lines, dates)
