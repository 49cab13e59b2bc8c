"""Counts by cause, night by night -> bars, as the index of nights writes them down as SVG.

The unit is a night across and a topic up: the bars become as wide as the page, and texts, which are
not among them, keep their size. Colour is never alone: the table of nights has every number.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import count as count_up
from typing import NamedTuple

from rebalance_core.texts import Text

from ..declared.kinds import Kind

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
    step = next(each for each in steps if each * _MOST_LINES >= highest)
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
