"""A dossier: what it says of a group that nobody lists."""

from __future__ import annotations

import pytest

from jobs.declared.dossier import Dossier, ListedMembers, PollRun
from tests.judge.witnesses import TOPIC, info, offsets, steady, stuck

MINUTES = (0, 60, 120)
IDLE = dict.fromkeys(MINUTES, (5, 5))


def topics(*queues, list_topics=None, is_polled=True):
    dossier = Dossier("c", "G", list_topics=list_topics or {})
    if is_polled:
        dossier.polls.append(PollRun(("broker-a", 0), "NOT_ONLINE", (0,), (0,)))
    for each in queues:
        dossier.offsets.setdefault(each.topic, []).append(each)
    return dossier.topics()


def test_a_group_that_nobody_lists_has_the_topics_in_which_messages_wait_for_it():
    assert topics(offsets(0, stuck(*MINUTES)), offsets(1, IDLE)) == [TOPIC]


@pytest.mark.parametrize(
    "polls",
    [
        pytest.param(IDLE, id="nobody needs it any more: nothing waits"),
        pytest.param(steady(*MINUTES), id="somebody reads it, as behind a proxy"),
        pytest.param({0: (90, 5)}, id="one poll tells nothing"),
        pytest.param({0: (5, 5), 60: (5, 5), 120: (6, 5)}, id="a message has just come"),
    ],
)
def test_it_has_none_where_nothing_waits_from_poll_to_poll_or_the_offsets_move(polls):
    assert topics(offsets(0, polls)) == [""]


@pytest.mark.parametrize(
    ("offline", "listed", "is_offline"),
    [
        ([], [0], False),
        ([60], [0], True),
        ([0], [60], False),
        ([0, 120], [60], True),
        ([0], [], True),
    ],
)
def test_a_group_is_offline_that_was_so_after_its_last_list(offline, listed, is_offline):
    answers = {"NOT_ONLINE": offline, "list": listed}
    polls = [
        PollRun(("broker-a", 0), answer, (time,), (time,))
        for answer, times in answers.items()
        for time in times
    ]
    dossier = Dossier("c", "G", polls)
    dossier.list_members["list"] = lambda: ListedMembers(("a",), ("h:1",))
    assert dossier.is_offline == is_offline


def test_a_topic_one_queue_of_which_moves_has_a_reader():
    assert topics(offsets(0, stuck(*MINUTES)), offsets(1, steady(*MINUTES))) == [""]


def test_where_a_list_tells_the_topics_offsets_do_not_count():
    assert topics(offsets(0, stuck(*MINUTES)), list_topics={"1": ("OTHER",)}) == ["OTHER"]


def test_of_a_group_that_was_not_polled_nothing_is_said():
    assert topics(offsets(0, stuck(*MINUTES)), is_polled=False) == []


@pytest.mark.parametrize(
    ("modes", "held", "divides", "mode"),
    [
        # No broker has a mode of the group: with POP the client's table would be empty.
        pytest.param({}, [0, 1], False, "PULL", id="it holds what the broker gave it"),
        pytest.param({}, [], False, None, id="it may use POP"),
        pytest.param({}, [0, 1], True, None, id="it asks no broker"),
        pytest.param({TOPIC: "POP"}, [0, 1], False, "POP", id="a broker says so"),
    ],
)
def test_who_leaves_the_division_to_the_broker_and_holds_queues_pulls(modes, held, divides, mode):
    told = info("a", 0, held, client_rebalance=divides)
    dossier = Dossier("c", "G", clients=[told], request_modes=modes)
    assert (dossier.request_mode(TOPIC), dossier.request_mode("OTHER")) == (mode, None)
