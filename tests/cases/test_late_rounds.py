"""A round that comes late: what it shows first happened at some time since the round before."""

from __future__ import annotations

import pytest

from tests.cases.test_small_dumps import MEMBERS, instant, members, route

#: At 10:05 to 10:08 nobody asked.
LATE = (0, 1, 2, 3, 4, 9, 10, 11, 12, 13)


def polled(minutes, changed):
    """From the minute ``changed`` on the last member is gone."""
    for minute in minutes:
        ids = MEMBERS if minute < changed else MEMBERS[:3]
        every = [
            route(60 * minute, "broker-a", "broker-b"),
            *(members(60 * minute + 1, name, ids) for name in ("broker-a", "broker-b")),
        ]
        round_ = instant(60 * minute).isoformat().replace("+00:00", "Z")
        yield from (each | {"snapshot_time": round_} for each in every)


@pytest.mark.parametrize(
    ("minutes", "changed", "is_said"),
    [(LATE, 9, True), (LATE, 11, False), (range(14), 9, False), (range(0, 70, 5), 25, False)],
)
def test_what_a_late_round_shows_first_happened_since_the_one_before(
    audit, minutes, changed, is_said
):
    (event,) = audit(polled(minutes, changed))["events"]
    said = "no round was collected between 10:04:00 UTC and 10:09:00 UTC: it happened at some time"
    assert (said in event["evidence"]) == is_said
