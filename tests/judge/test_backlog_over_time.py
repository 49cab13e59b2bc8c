"""What waited over the time of a run, of the topics in which something counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jobs.declared.dossier import QueueOffsets
from jobs.declared.instants import SECOND
from jobs.judge.observe.backlog import backlog_over_time
from tests.support.judged import with_problems
from tests.support.published import finding, health

MINUTE = 60 * SECOND


def offsets(polls: int, rate: int) -> QueueOffsets:
    """A queue into which messages come, and which nobody reads."""
    times, written = np.arange(polls) * MINUTE, np.arange(polls) * rate
    return QueueOffsets("T", "broker-a", 0, times, written + 1, np.ones(polls, np.int64))


@pytest.mark.parametrize("polls", [1, 2, 59, 60, 61, 1_440])
def test_a_day_of_polls_is_few_points_with_the_first_and_the_last(polls: int) -> None:
    points = backlog_over_time([offsets(polls, 10), offsets(polls, 1)])
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
    (row,) = with_problems(tables, offsets={"T": [offsets(3, 10)]})["problems"]
    assert [each["messages"] for each in row["backlog_over_time"]] == expected
