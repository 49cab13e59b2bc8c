"""Connections over time: one process that reconnects, or several that share an id."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.declared.instants import SECOND
from jobs.judge.answers import broker_answers
from jobs.judge.channels import Channel, ProcessCounts, channels_of
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


def test_channels_side_by_side_for_longer_than_a_silent_one_is_kept_are_processes():
    dossier = group({"x": polls(*[(1, 2)] * 5)})
    assert [number for number, _ in processes(dossier, 120)] == [2]


def test_whatever_else_of_the_group_changes():
    busy = group({"x": polls(*[(1, 2)] * 5, others=[lambda n: f"restarted-{n}"])})
    assert [number for number, _ in processes(busy, 120)] == [2]


def test_a_channel_that_goes_in_time_was_left_behind():
    # Each connection is listed for two rounds beside the next one: 60 s, dropped by 120 s.
    dossier = group({"x": polls((1,), (1, 2), (1, 2), (2, 3), (2, 3), (3, 4), (4,))})
    for second in (60, 120, 180, 240, 300):
        assert [number for number, _ in processes(dossier, second)] == [1]


def test_the_end_of_the_window_is_told_by_what_was_before():
    reconnects = group({"x": polls((1,), (1, 2), (1, 2), (2, 3), (2, 3))})
    assert [number for number, _ in processes(reconnects, 240)] == [1]
    two = group({"x": polls((1, 2), (1, 2), (1, 2), (1, 2), (3, 4))})
    assert [number for number, _ in processes(two, 240)] == [2]


def test_where_time_shows_nothing_nothing_is_said():
    assert processes(group({"x": polls((1, 2))}), 0) == []
    assert processes(group({"x": polls((1,), (2,))}), 60) == []


def test_one_start_time_proves_nothing_until_a_channel_could_have_timed_out():
    # Each broker may have passed the question to the same one of two processes.
    infos = [started(ID, 5, 0, 30)]
    assert [n for n, _ in processes(group({"x": polls((1, 2))}, clients=infos), 0)] == []


def test_one_answer_may_be_that_of_either_process():
    assert processes(group({"x": polls((1, 2))}, clients=[started(ID, 5, 0)]), 0) == []


def test_start_times_that_alternate_are_processes():
    infos = [started(ID, 5, 0, 60), started(ID, 9, 30)]
    assert [n for n, _ in processes(group({"x": polls((1, 2))}, clients=infos), 0)] == [2]


def test_a_process_that_was_restarted_does_not_answer_again():
    infos = [started(ID, 5, 0, 30), started(ID, 40, 60, 90)]
    dossier = group({"x": polls((1,), (1, 2), (2,))}, clients=infos)
    assert [number for number, _ in processes(dossier, 60)] == [1]


@pytest.mark.parametrize("brokers", [("x",), ("x", "y", "z")])
def test_twelve_pods_that_were_restarted_without_closing_are_twelve_processes(brokers):
    ids = [f"pod-{n}@app" for n in range(12)]

    def listed(number):
        old = [(each, f"h:{n}") for n, each in enumerate(ids)] if number < 5 else []
        new = [(each, f"h:{100 + n}") for n, each in enumerate(ids)] if number > 2 else []
        return [*old, *new]

    dossier = group({name: [(30 * n, 30 * n, listed(n)) for n in range(10)] for name in brokers})
    counts = ProcessCounts(channels_of(dossier, broker_answers(dossier.polls)), (), EXPIRY)
    moments = {run.broker: at(120) for run in dossier.polls}
    assert [each.processes for each in counts.at(moments)] == [1] * 12


def test_channels_have_their_times_and_when_they_were_gone():
    dossier = group({"x": polls((1,), (2,))})
    (first, second) = sorted(channels_of(dossier, broker_answers(dossier.polls))[ID])
    assert (first.first_seen, first.last_seen, first.gone_by) == (0, 0, at(60))
    assert (second.first_seen, second.gone_by) == (at(60), None)


# ---------------------------------------------------------------- many connections of one id


@st.composite
def channels(draw):
    """Up to nine connections of an id at one broker, of which some are still listed at the end."""
    drawn = st.tuples(st.integers(0, 12), st.integers(0, 12), st.booleans())
    return [
        Channel(
            ("x", 0),
            ID,
            f"h:{port}",
            at(60 * first),
            at(60 * (first + length)),
            at(60 * (first + length + 1)) if goes else None,
        )
        for port, (first, length, goes) in enumerate(draw(st.lists(drawn, max_size=9)))
    ]


def listed(channels, moment):
    return [each for each in channels if each.first_seen <= moment <= each.last_seen]


def together(channels):
    """The definition, word by word: so many are listed when the latest came, and stay so long."""
    return max(
        (
            sum(
                each.first_seen <= latest.first_seen and each.last_seen - latest.first_seen > EXPIRY
                for each in channels
            )
            for latest in channels
        ),
        default=0,
    )


def left_behind(one, channels):
    return one.gone_by is not None and any(
        one.first_seen < each.first_seen <= one.last_seen
        and one.last_seen - each.first_seen <= EXPIRY
        for each in channels
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
    if at_other_times > 1:
        return [at_other_times]
    return [1] if any(left_behind(each, channels) for each in channels) else []


@given(channels())
def test_the_counts_are_those_of_the_plain_definitions(channels):
    counts = ProcessCounts({ID: channels}, [], EXPIRY)
    for minute in range(25):
        found = [each.processes for each in counts.at({("x", 0): at(60 * minute)})]
        assert found == counted(channels, at(60 * minute))


def test_thousands_of_connections_of_one_id_take_seconds_at_most():
    # Containers that all have the address 127.0.0.1 and no instance name; some reconnect.
    began = time.perf_counter()
    ports = [
        [60_000 + (n + round_) // 30 * 2_000 + n for n in range(2_000)] for round_ in range(30)
    ]
    dossier = group({"x": polls(*ports)})
    counts = ProcessCounts(channels_of(dossier, broker_answers(dossier.polls)), [], EXPIRY)
    assert all(counts.at({("x", 0): at(60 * round_)}) for round_ in range(30))
    assert time.perf_counter() - began < 10


def test_start_times_that_alternate_are_at_least_so_many_processes():
    # Three are listed by both brokers; two of them have answered so far.
    infos = [started(ID, 5, 0, 60), started(ID, 9, 30)]
    dossier = group({"x": polls((1, 2, 3)), "y": polls((1, 2, 3))}, clients=infos)
    assert [number for number, _ in processes(dossier, 0)] == [3]
