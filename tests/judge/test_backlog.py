"""offsets -> backlog of a queue over the time of a finding."""

from __future__ import annotations

import numpy as np
import pytest

from jobs.declared.dossier import QueueOffsets
from jobs.judge.observe.backlog import Backlog, backlog, topic_backlog
from tests.judge.phases import at


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
