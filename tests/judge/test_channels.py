"""Connections over time: one process that reconnects, or several that share an id."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.declared.instants import SECOND
from jobs.judge.observe.answers import broker_answers
from jobs.judge.observe.channels import Channel, ProcessCounts, channels_of
from tests.judge.lists import group, started
from tests.judge.phases import at

ID = "10.0.0.1@app"
EXPIRY = 130 * SECOND


def connections(*ports):
    return [(ID, f"h:{port}") for port in ports]


def polls(*ports_of_rounds, every=60, others=()):
    """The ports that a broker lists of the id, round by round."""
    return [
        (every * n, every * n, [*connections(*ports), *(o(n) for o in others)])
        for n, ports in enumerate(ports_of_rounds)
    ]


def processes(dossier, second):
    """(how many, why) at a second."""
    counts = ProcessCounts(
        channels_of(dossier, broker_answers(dossier.polls)), dossier.clients, EXPIRY
    )
    moments = {run.broker: at(second) for run in dossier.polls}
    return [(each.processes, each.because) for each in counts.at(moments)]


ONE_START = [started(ID, 5, 0, 30)]
BY_TURNS = [started(ID, 5, 0, 60), started(ID, 9, 30)]
THREE = {"x": polls((1, 2, 3)), "y": polls((1, 2, 3))}


@pytest.mark.parametrize(
    ("lists", "clients", "second", "number"),
    [
        # Side by side for longer than a silent one is kept, whatever else of the group changes.
        ({"x": polls(*[(1, 2)] * 5)}, (), 120, [2]),
        ({"x": polls(*[(1, 2)] * 5, others=[lambda n: f"restarted-{n}"])}, (), 120, [2]),
        # The end of the window is told by what was before.
        ({"x": polls((1,), (1, 2), (1, 2), (2, 3), (2, 3))}, (), 240, [1]),
        ({"x": polls((1, 2), (1, 2), (1, 2), (1, 2), (3, 4))}, (), 240, [2]),
        # Where time shows nothing, nothing is said.
        ({"x": polls((1, 2))}, (), 0, []),
        ({"x": polls((1,), (2,))}, (), 60, []),
        # Each broker may have passed the question to the same one of two processes: one start
        # time proves nothing until a channel could have timed out.
        ({"x": polls((1, 2))}, ONE_START, 0, []),
        ({"x": polls((1, 2))}, [started(ID, 5, 0)], 0, []),
        # Start times that alternate are at least so many: of three, two have answered so far.
        ({"x": polls((1, 2))}, BY_TURNS, 0, [2]),
        (THREE, BY_TURNS, 0, [3]),
        # A process that was restarted does not answer again.
        ({"x": polls((1,), (1, 2), (2,))}, [*ONE_START, started(ID, 40, 60, 90)], 60, [1]),
    ],
)
def test_what_channels_and_start_times_show_of_how_many_processes(lists, clients, second, number):
    assert [n for n, _ in processes(group(lists, clients=clients), second)] == number


def rounds_of_300(*ports_of_rounds):
    return polls(*ports_of_rounds, every=300)


#: It reconnects each 45 s: each list has three connections, and no connection is in two lists.
RECONNECTS = [tuple(range(10 * n, 10 * n + 3)) for n in range(1, 7)]


@pytest.mark.parametrize(
    ("ports", "numbers"),
    [
        # One process, in every round; it is there from the second to the last but one.
        (RECONNECTS, [1] * 6),
        ([(1,), *RECONNECTS[:3], (2,), (2,)], [1, 1, 1]),
        # Two rounds alone have no connection in common.
        (RECONNECTS[:2], [1, 1]),
        # Nothing is known of one round.
        (RECONNECTS[:1], []),
        # The last of its connections stays: it reconnected no more.
        ([*RECONNECTS[:3], (99, 98, 97), (99,), (99,)], [1] * 4),
        # Two processes that keep their connections; at last both are deployed, or come back.
        ([(1, 2)] * 4, [2] * 4),
        ([(1, 2)] * 3 + [(3, 4)], [2] * 4),
        ([(1, 2)] * 3 + [(3, 4)] + [(5, 6)] * 2, [2] * 6),
        # One of two ends, and the other reconnects since.
        ([(1, 2)] * 3 + RECONNECTS[:3], [2, 2, 2, 1, 1, 1]),
        # One process keeps its connection, and another one of its id reconnects.
        ([(1, *each) for each in RECONNECTS], [2] * 6),
    ],
)
def test_who_connects_between_rounds_that_are_far_apart_is_one_process(ports, numbers):
    dossier = group({"x": rounds_of_300(*ports), "y": rounds_of_300(*ports)})
    found = [processes(dossier, 300 * n) for n in range(len(ports))]
    assert [number for each in found for number, _ in each] == numbers


def test_start_times_that_alternate_count_no_connection_that_one_list_has():
    """Two answer by turns, and one of them reconnects before each round."""
    dossier = group({"x": rounds_of_300(*RECONNECTS)}, clients=BY_TURNS)
    assert [processes(dossier, 300 * n)[0][0] for n in range(6)] == [2] * 6


# ---------------------------------------------------------------- many connections of one id


@st.composite
def channels(draw):
    """Up to nine connections of an id at one broker, of which some are still listed at the end."""
    drawn = st.tuples(st.integers(0, 12), st.integers(0, 12), st.booleans())
    made = []
    for port, (first, length, goes) in enumerate(draw(st.lists(drawn, max_size=9))):
        gone_by = at(60 * (first + length + 1)) if goes else None
        times = (at(60 * first), at(60 * (first + length)), gone_by)
        made.append(Channel(("x", 0), ID, f"h:{port}", *times))
    return made


def listed(channels, moment):
    return [each for each in channels if each.first_seen <= moment <= each.last_seen]


def together(channels):
    """The definition, word by word: all that were there when one came, and stay so long, and at
    least one of those that came."""
    return max(
        (
            sum(stays(each, new) for each in channels if each.first_seen < new.first_seen)
            + max(
                1, sum(stays(each, new) for each in channels if each.first_seen == new.first_seen)
            )
            for new in channels
        ),
        default=0,
    )


def stays(one, new):
    return one.last_seen - new.first_seen > EXPIRY


def seen_once(one):
    return one.first_seen == one.last_seen and one.gone_by is not None


def left_behind(one, channels):
    return one.gone_by is not None and any(
        one.first_seen < each.first_seen <= one.last_seen
        and one.last_seen - each.first_seen <= EXPIRY
        for each in channels
    )


def come_and_go(there, channels):
    """None of them is in two lists, nor is any of the list before, or of the one after."""
    before = [one for one in channels if any(one.gone_by == each.first_seen for each in there)]
    after = [one for one in channels if any(one.first_seen == each.gone_by for each in there)]
    return all(each.first_seen == each.last_seen for each in there) and any(
        crowd and all(map(seen_once, crowd)) for crowd in (before, after)
    )


def counted(channels, moment):
    """How many processes there are, from the plain definitions."""
    there = listed(channels, moment)
    if len(there) < 2:
        return []
    if together(there) > 1:
        return [together(there)]
    if sum(not left_behind(each, there) for each in there) <= 1:
        return [1]
    at_other_times = max(together(listed(channels, each.last_seen)) for each in channels)
    if at_other_times > 1 and not come_and_go(there, channels):
        return [at_other_times]
    return [1] if any(left_behind(each, channels) or seen_once(each) for each in channels) else []


@given(channels())
def test_the_counts_are_those_of_the_plain_definitions(channels):
    counts = ProcessCounts({ID: channels}, [], EXPIRY)
    for minute in range(25):
        found = [each.processes for each in counts.at({("x", 0): at(60 * minute)})]
        assert found == counted(channels, at(60 * minute))
