"""The bars of causes, night by night."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from jobs.declared.kinds import KINDS, Kind
from jobs.rendering.nights import Bars, chart_of

FIRST, SECOND, *OTHERS = KINDS.values()


def heights(bars: Bars) -> dict[int, tuple[int, int]]:
    """By night from where down to where the bar goes."""
    found = re.findall(r"M(\d+)\.1 (\d+)h\.8v-(\d+)h-\.8z", bars.path)
    assert "".join(f"M{x}.1 {y}h.8v-{h}h-.8z" for x, y, h in found) == bars.path
    return {int(x): (int(y), int(y) - int(h)) for x, y, h in found}


def test_the_commonest_cause_is_at_the_foot_and_the_others_stand_on_it() -> None:
    chart = chart_of([Counter({SECOND: 3}), Counter(), Counter({FIRST: 2, SECOND: 1})])
    assert (chart.nights, chart.top, chart.lines) == (3, 3, (0, 1, 2, 3))
    assert [bars.title for bars in chart.bars] == [SECOND.title, FIRST.title]
    assert [heights(bars) for bars in chart.bars] == [{0: (3, 0), 2: (3, 2)}, {2: (2, 0)}]


def test_rare_causes_are_one_and_no_topic_is_lost() -> None:
    night = Counter({kind: 50 - number for number, kind in enumerate(KINDS.values())})
    chart = chart_of([night])
    assert len(chart.bars) == 9
    assert chart.bars[-1].title == "other causes"
    assert len({bars.css for bars in chart.bars}) == 9
    drawn = sum(foot - top for bars in chart.bars for foot, top in heights(bars).values())
    assert drawn == night.total()


@pytest.mark.parametrize(
    ("highest", "lines"),
    [
        (1, (0, 1)),
        (4, (0, 1, 2, 3, 4)),
        (5, (0, 2, 4, 6)),
        (41, (0, 20, 40, 60)),
        (900, (0, 500, 1_000)),
    ],
)
def test_lines_are_at_round_numbers_none_over_the_top(highest: int, lines: tuple[int, ...]) -> None:
    chart = chart_of([Counter({FIRST: highest})])
    assert (chart.lines, chart.top) == (lines, lines[-1])


@pytest.mark.parametrize(
    ("nights", "dates"),
    [(0, ()), (1, (0,)), (5, (4, 3, 2, 1, 0)), (6, (5, 3, 1)), (90, (89, 66, 43, 20))],
)
def test_a_few_nights_have_a_date_the_last_one_always(nights: int, dates: tuple[int, ...]) -> None:
    assert chart_of([Counter[Kind]() for _ in range(nights)]).dates == dates
