"""Clients that died without a word, as their running infos show."""

from __future__ import annotations

import pytest

from jobs.declared.instants import SECOND
from jobs.judge.observe.answers import broker_answers, gone_clients
from tests.judge.lists import group, started
from tests.judge.phases import at


def polls(*listed, every=60):
    """What a broker lists, round by round."""
    return [(every * n, every * n, of_round) for n, of_round in enumerate(map(list, listed))]


def gone(clients, *listed):
    """By client id since when it is dead and until when it is listed, in seconds."""
    dossier = group({"x": polls(*listed)}, clients=clients)
    found = gone_clients(dossier, broker_answers(dossier.polls), 130 * SECOND)
    return {
        client_id: ((each.begins - at(0)) / SECOND, (each.last_seen - at(0)) / SECOND)
        for client_id, each in found.items()
    }


def answered(client_id, *seconds):
    return started(client_id, 0, *seconds)


def silent(*seconds, error_code=207):
    return started("a", 0, *seconds)._replace(start_timestamp=None, error_code=error_code)


OTHER = answered("b", 0, 60, 120, 180, 240)
#: a answers at 0 s alone, and is listed until 120 s.
LISTED = ("ab", "ab", "ab", "b", "b")


def test_a_client_that_answers_no_more_and_leaves_the_lists_in_time_is_silent():
    assert gone([answered("a", 0), silent(60, 120), OTHER], *LISTED) == {"a": (30, 120)}


def test_an_answer_that_was_lost_before_is_none_of_them():
    # It is listed until 240 s, so that the broker heard it after 60 s.
    clients = [answered("a", 0), silent(60, 120, 180, 240), OTHER, answered("b", 300)]
    assert gone(clients, *["ab"] * 5, "b") == {"a": (110, 240)}


@pytest.mark.parametrize(
    ("clients", "listed"),
    [
        # It never answered: its SDK may not know the question.
        ([silent(60, 120), OTHER], LISTED),
        # It answers again: it was frozen, or its answers were lost.
        ([answered("a", 0, 180), silent(60, 120), OTHER], LISTED),
        # It is in the last list: it may hang, and send heartbeats.
        ([answered("a", 0), silent(60, 120, 180, 240), OTHER], ["ab"] * 5),
        # One question: it stopped in order between the list and the question.
        ([answered("a", 0, 60), silent(120), OTHER], LISTED),
        # Nobody else answers either: it is the collector.
        ([answered("a", 0), silent(60, 120), answered("b", 0)], LISTED),
        # The broker that was asked does not list it, and could not ask it.
        ([answered("a", 0), silent(60, 120, error_code=1), OTHER], LISTED),
    ],
)
def test_nothing_is_shown(clients, listed):
    assert gone(clients, *listed) == {}
