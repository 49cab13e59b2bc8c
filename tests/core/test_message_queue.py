"""Message queues, and Java's order of queues and client ids."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core import MessageQueue, java_string_key, sort_client_ids, sort_message_queues
from tests.support.generators import client_ids, message_queues

FULLWIDTH_A = "\uff21"
GRINNING = "\U0001f600"  # beyond U+FFFF: in UTF-16 it starts with D83D, before FF21


def test_a_queue_prints_as_java_prints_it() -> None:
    assert str(MessageQueue("T", "B", 0)) == "MessageQueue [topic=T, brokerName=B, queueId=0]"


def test_a_queue_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        MessageQueue("T", "B", 0).queue_id = 1  # type: ignore[misc]


def test_equal_queues_have_equal_hashes_and_survive_pickling() -> None:
    queue = MessageQueue("T", "B", 0)
    assert {queue, MessageQueue("T", "B", 0)} == {queue}
    assert pickle.loads(pickle.dumps(queue)) == queue  # noqa: S301


def test_queues_sort_by_topic_then_broker_then_number() -> None:
    expected = [
        MessageQueue("A", "broker-z", 9),
        MessageQueue("B", "broker-10", 0),
        MessageQueue("B", "broker-2", 2),
        MessageQueue("B", "broker-2", 10),
    ]
    shuffled = expected[::-1]
    assert sort_message_queues(shuffled) == expected
    assert sorted(shuffled) == expected


@pytest.mark.parametrize("place", ["topic", "broker_name"])
def test_a_character_beyond_the_bmp_sorts_by_its_surrogates(place: str) -> None:
    def queue(text: str) -> MessageQueue:
        return MessageQueue(**{"topic": "T", "broker_name": "b", "queue_id": 0, place: text})

    expected = [queue("z"), queue(GRINNING), queue(FULLWIDTH_A)]
    shuffled = expected[::-1]
    assert sort_message_queues(shuffled) == expected
    assert sorted(shuffled) == expected
    assert queue(GRINNING) < queue(FULLWIDTH_A) <= queue(FULLWIDTH_A)
    assert queue(FULLWIDTH_A) > queue(GRINNING) >= queue(GRINNING)


@given(message_queues(min_size=0), st.randoms(use_true_random=False))
def test_the_sort_of_many_agrees_with_the_comparison_of_two(queues, random) -> None:
    queues = queues + queues[:3]
    random.shuffle(queues)
    assert sort_message_queues(queues) == sorted(queues)


def test_digits_sort_before_the_at_sign() -> None:
    ids = ["10.0.12.5@1", "10.0.12.10@1", "10.0.0.1@1", "10.0.0.11@1"]
    assert sort_client_ids(ids) == ["10.0.0.11@1", "10.0.0.1@1", "10.0.12.10@1", "10.0.12.5@1"]


def test_repeated_client_ids_are_kept() -> None:
    assert sort_client_ids(["b", "a", "b"]) == ["a", "b", "b"]


def test_client_ids_sort_by_utf_16() -> None:
    assert sort_client_ids([FULLWIDTH_A, GRINNING, "z"]) == ["z", GRINNING, FULLWIDTH_A]


@given(st.lists(st.one_of(client_ids, st.text(st.characters(), max_size=3))))
def test_client_ids_always_sort_by_their_java_key(ids) -> None:
    assert sort_client_ids(ids) == sorted(ids, key=java_string_key)


def test_sorting_leaves_the_given_list_alone() -> None:
    ids, queues = ["b", "a"], [MessageQueue("T", "b", 1), MessageQueue("T", "b", 0)]
    sort_client_ids(ids)
    sort_message_queues(queues)
    assert ids == ["b", "a"]
    assert [queue.queue_id for queue in queues] == [1, 0]
