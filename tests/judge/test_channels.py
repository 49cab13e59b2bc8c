"""Connections over time: one process that reconnects, or several that share an id."""

from __future__ import annotations

import pytest

from jobs.declared.instants import SECOND
from jobs.judge.observe.answers import broker_answers
from jobs.judge.observe.channels import ProcessCounts, channels_of
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
