"""What holds at a moment: held against the definition, value by value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jobs.snapshots.members import NEVER, ValueHistory

EVENTS = st.lists(st.tuples(st.integers(0, 20), st.sampled_from("ab"))).map(
    lambda events: sorted(events, key=lambda event: event[0])
)


def history(events):
    values = ValueHistory[str]()
    for time, value in events:
        values.add(time, value)
    return values


@given(EVENTS, st.integers(-1, 21))
def test_the_last_value_up_to_a_time_counts_else_the_first_one_after(events, time):
    before = [value for when, value in events if when <= time]
    expected = before[-1] if before else events[0][1] if events else None
    assert history(events).nearest(time) == expected


@given(EVENTS, st.integers(-1, 21))
def test_until_the_next_change_the_value_stays(events, time):
    values = history(events)
    until = values.next_change(time)
    assert until > time
    within = range(time, min(until, 25))
    assert {values.nearest(each) for each in within} == {values.nearest(time)}
    assert until == NEVER or until in {when for when, _ in events}
