"""snapshots -> what is usual between them, and the times in which nobody looked."""

from __future__ import annotations

import pytest

from jobs.judge.times import watches
from tests.judge.phases import at

MINUTES = [60 * n for n in range(6)]
HOURS = [3600 * n for n in range(8)]


@pytest.mark.parametrize(
    ("seconds", "begins"),
    [
        ([], []),
        ([0], [0]),
        # A day has gone by between two rounds, however few there are.
        ([0, 28_800], [0, 28_800]),
        ([0, 60, 120, 28_800, 28_860], [0, 28_800]),
        ([0, 60, 120, 180, 28_800], [0, 28_800]),
        # Half an hour is no pause, a second more is one.
        ([*MINUTES, 300 + 1800], [0]),
        ([*MINUTES, 300 + 1801], [0, 2101]),
        # Rounds each hour; with one missing; by two collectors that start 10 s apart.
        (HOURS, [0]),
        ([*HOURS, HOURS[-1] + 7200], [0, HOURS[-1] + 7200]),
        (sorted([*HOURS, *[each + 10 for each in HOURS]]), [0]),
        # Of three gaps nobody can say that an hour is usual.
        (HOURS[:4], HOURS[:4]),
    ],
)
def test_a_watch_begins_where_nobody_looked_for_longer_than_usual(seconds, begins):
    assert watches([at(each) for each in seconds]) == [at(each) for each in begins]
