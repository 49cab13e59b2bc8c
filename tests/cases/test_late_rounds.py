"""A round that comes late: what it shows first happened at some time since the round before."""

from __future__ import annotations

import pytest

from tests.cases.small_dumps import MEMBERS, rounds

#: At 10:05 to 10:08 nobody asked.
LATE = (0, 1, 2, 3, 4, 9, 10, 11, 12, 13)


def polled(minutes, changed):
    """From the minute ``changed`` on the last member is gone."""
    return rounds(lambda minute, _: MEMBERS if minute < changed else MEMBERS[:3], minutes=minutes)


@pytest.mark.parametrize(
    ("minutes", "changed", "is_said"),
    [(LATE, 9, True), (LATE, 11, False), (range(14), 9, False), (range(0, 70, 5), 25, False)],
)
def test_what_a_late_round_shows_happened_since_the_one_before(audit, minutes, changed, is_said):
    (event,) = audit(polled(minutes, changed))["events"]
    said = "no round was collected between 10:04:00 UTC and 10:09:00 UTC: it happened at some time"
    assert (said in event["evidence"]) == is_said
