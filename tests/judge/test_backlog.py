"""offsets -> backlog of a queue over the time of a finding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jobs.declared.dossier import QueueOffsets
from jobs.declared.instants import SECOND
from jobs.judge.observe.backlog import Backlog, backlog, backlog_over_time, topic_backlog
from tests.judge.phases import at
from tests.support.judged import with_problems
from tests.support.published import finding, health


def offsets(polls):
    """``polls``: by second the two offsets, the broker's and the consumer's."""
    times = np.array([at(second) for second in polls], dtype=np.int64)
    both = np.array(list(polls.values()), dtype=np.int64).reshape(-1, 2)
    return QueueOffsets("T", "broker-a", 0, times, both[:, 0], both[:, 1])


@pytest.mark.parametrize(
    ("polls", "messages"),
    [
        # What was seen after the end has been consumed since, or came since.
        ({0: (500, 100), 60: (510, 500), 601: (999, 0)}, 10),
        # The two offsets are read one after the other: the consumer's may be ahead.
        ({0: (7, 9)}, 0),
        ({601: (999, 0)}, None),
        ({600: (19, 10)}, 9),
        # The group never committed an offset of it: nothing is known to wait before more comes.
        ({0: (900, 0), 600: (900, 0)}, 0),
        ({0: (900, 0), 600: (901, 0)}, 901),
    ],
)
def test_the_backlog_is_that_of_the_last_offsets_seen_before_the_finding_ends(polls, messages):
    assert backlog(offsets(polls), at(0), at(600)).messages == messages


def lags(by_second):
    return {second: (lag + 1_000, 1_000) for second, lag in by_second.items()}


@pytest.mark.parametrize(
    ("polls", "expected"),
    [
        # From the last poll before the finding.
        (lags({0: 7, 90: 3, 110: 50, 200: 40, 301: 999}), Backlog(40, 37, 1.0)),
        # Its first and last; messages are being read, and none came.
        ({100: (6, 1), 300: (6, 4)}, Backlog(2, -3, None)),
        # Nothing before it.
        (lags({110: 5, 200: 40, 301: 999}), Backlog(40, 35, 1.0)),
        # None within: what lay there is known, not what came.
        (lags({90: 3, 301: 999}), Backlog(3, None, None)),
        # Nothing to compare with.
        (lags({200: 40}), Backlog(40, None, None)),
        # A quarter of what came was not read.
        ({100: (0, 0), 300: (100, 75)}, Backlog(25, 25, 0.25)),
    ],
)
def test_the_growth_of_a_backlog_is_from_the_poll_before_the_finding_to_its_last(polls, expected):
    assert backlog(offsets(polls), at(100), at(300)) == expected


@pytest.mark.parametrize(
    ("polls", "per_minute"),
    [
        # Over the last ten minutes; where polls are further apart, over the last two.
        ({0: 0, 300: 60, 900: 80}, 2.0),
        ({0: 0, 3600: 60, 7200: 120}, 1.0),
        ({7200: 120}, 0.0),
    ],
)
def test_the_growth_of_what_waits_is_that_of_late(polls, per_minute):
    assert topic_backlog([offsets(lags(polls))]).backlog_per_minute == per_minute


# ---------------------------------------------------------------- over the time of a run


MINUTE = 60 * SECOND


def growing(polls: int, rate: int) -> QueueOffsets:
    """A queue into which messages come, and which nobody reads."""
    times, written = np.arange(polls) * MINUTE, np.arange(polls) * rate
    return QueueOffsets("T", "broker-a", 0, times, written + 1, np.ones(polls, np.int64))


@pytest.mark.parametrize("polls", [1, 2, 59, 60, 61, 1_440])
def test_a_day_of_polls_is_few_points_with_the_first_and_the_last(polls: int) -> None:
    points = backlog_over_time([growing(polls, 10), growing(polls, 1)])
    assert len(points) == min(polls, 60)
    assert (points[0], points[-1]) == ((0, 0), ((polls - 1) * MINUTE, (polls - 1) * 11))
    assert points == sorted(set(points))


@pytest.mark.parametrize(
    ("values", "backlog", "expected"),
    [
        ({}, 25, [0, 10, 25]),
        # Offsets that do not show what waits at the end, and what does not count.
        ({}, None, []),
        ({"severity": "INFO", "persistence": "TRANSIENT", "ongoing": False}, 25, []),
        ({"known_issue": "OPS-1"}, 25, []),
    ],
    ids=["counted", "not known", "passed", "known"],
)
def test_a_problem_that_counts_has_it_and_ends_with_its_backlog(
    values: dict[str, Any], backlog: int | None, expected: list[int]
) -> None:
    tables = {"orphaned_queues": [finding(**values)], "group_health": [health(backlog=backlog)]}
    (row,) = with_problems(tables, offsets={"T": [growing(3, 10)]})["problems"]
    assert [each["messages"] for each in row["backlog_over_time"]] == expected
