"""group_load: how many queues each client has over all topics of a group, and what would help."""

from __future__ import annotations

import pytest

from jobs.judge.observe.situations import Situations
from jobs.judge.result.load import (
    GroupLoad,
    group_load,
    with_load,
)
from rebalance_core import MessageQueue, make_strategy
from tests.judge.phases import case, evaluated, fault, period
from tests.judge.witnesses import allocated

ALICE, BOB = "10.0.0.1@1", "10.0.0.2@1"


def divided(clients, queues, strategy="AVG", topic="T", **overrides):
    """A topic with so many queues, divided among the clients by a strategy."""
    numbers = [MessageQueue(topic, "broker-a", number) for number in range(queues)]
    taken = make_strategy(strategy).allocate_all("G", numbers, clients)
    allocations = [
        allocated(client, [queue.queue_id for queue in of])._replace(strategy=strategy)
        for client, of in taken.items()
    ]
    return evaluated(allocations, queues=queues, **overrides)


def load_of(**topics) -> GroupLoad:
    """Of a group each of whose topics was all window long as it is here."""
    by_topic = {topic: [period(topic, 0, 600, topic=topic)] for topic in topics}
    return group_load(case(situations=Situations(by_topic), evaluated=topics))


def queues(load: GroupLoad) -> dict[str, float]:
    return {each.client_id: each.queues for each in load.clients}


def test_what_is_left_over_of_every_topic_adds_up():
    """apache/rocketmq#1945: 5 queues and 2 clients are 3 and 2, six times over."""
    load = load_of(**{f"topic{n}": divided([ALICE, BOB], 5, topic=f"topic{n}") for n in range(6)})

    assert queues(load) == {ALICE: 18, BOB: 12}
    assert load.text().startswith(
        f"over the 6 topics of the group {ALICE} has 18 queues and {BOB} has 12 queues; "
    )
    assert load.text().endswith("queue numbers that are multiples of 2 would be even")
    columns = load.columns()
    assert (columns["group_most_queues"], columns["group_fewest_queues"]) == (18, 12)
    assert (columns["group_idle_clients"], columns["group_most_clients"]) == (0, 5)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE"])
def test_nothing_is_said_of_one_topic_that_is_divided_as_evenly_as_it_can_be(count, strategy):
    clients = [f"10.0.0.{number}@1" for number in range(count)]
    assert load_of(T=divided(clients, 8, strategy)).text() == ""


def test_idle_clients_are_told_with_what_would_help():
    """apache/rocketmq#9004: more clients than queues."""
    load = load_of(T=divided([f"cid-{number}" for number in range(1, 8)], 6))

    assert load.columns()["group_idle_clients"] == 1
    assert load.text() == (
        "1 of 7 clients has no queue of any topic (cid-7); more clients would not help, "
        "because the largest topic has 6 queues: more queues would"
    )


def test_the_retry_topic_stands_apart():
    """Its one queue is always the first client's, and says nothing of who has much to do."""
    retry = {"%RETRY%G": divided([ALICE, BOB], 2, topic="%RETRY%G")}
    load = load_of(T=divided([ALICE, BOB], 1), **retry)

    expected = [(1, 1, 1), (0, 1, 1)]
    assert [(row["queues"], row["retry_queues"], row["topics"]) for row in load.rows()] == expected
    assert [row["idle"] for row in load.rows()] == [False, True]


def test_a_ring_that_is_uneven_is_told_with_a_strategy_that_is_fairer():
    ring = divided([ALICE, BOB, "10.0.0.3@1"], 12, "CONSISTENT_HASH")
    most = max(len(each.queues) for each in ring.allocations())
    load = load_of(T=ring)

    assert most > 5, "else the vector is no longer uneven"
    assert load.columns()["fairer_strategy"] == "AVG"
    assert "with AVG each would have 4 queues" in load.text()
    assert load.text().startswith("10.0.0."), "of one topic it is not said that it is one"
    assert "divides" not in load.text(), "a ring has nothing left over"


def test_a_strategy_that_somebody_chose_for_its_rooms_is_not_compared():
    ring = divided([ALICE, BOB, "10.0.0.3@1"], 12, "CONSISTENT_HASH")
    near = [each._replace(strategy="MACHINE_ROOM_NEARBY-AVG") for each in ring.allocations()]
    assert load_of(T=evaluated(near, queues=12)).columns()["fairer_strategy"] is None


def test_a_ghost_is_not_idle():
    """It takes a slot, and nobody waits for it to get a queue."""
    ghost = (fault("GHOST_MEMBER", client_ids=(BOB,)),)
    load = load_of(T=evaluated([allocated(ALICE, [0, 1]), allocated(BOB, [])], faults=ghost))

    assert load.columns()["group_idle_clients"] == 0
    assert [row["topics"] for row in load.rows()] == [1, 0]


def test_where_views_differ_the_mean_counts():
    views = [
        allocated(ALICE, [0, 1, 2, 3], 0.5, brokers=["broker-a"]),
        allocated(ALICE, [0, 1], 0.5, brokers=["broker-b"]),
        allocated(BOB, [2, 3], 0.5, brokers=["broker-b"]),
    ]
    assert queues(load_of(T=evaluated(views))) == {ALICE: 3, BOB: 1}


def test_the_last_situation_that_was_recomputed_counts():
    by_id = {
        "before": divided([ALICE], 4),
        "last": divided([ALICE, BOB], 4),
        "blind": evaluated(coverage="NO_BROKER_ANSWERED"),
    }
    periods = [period("before", 0, 60), period("last", 120, 180), period("blind", 240, 240)]

    of = case(situations=Situations({"T": periods}), evaluated=by_id)
    assert queues(group_load(of)) == {ALICE: 2, BOB: 2}


def test_the_health_of_each_recomputed_topic_says_it_behind_its_own_reason():
    load = load_of(T=divided(["a", "b"], 1))
    audited = {"topic": "T", "coverage": "AUDITED", "reason": "zones"}

    assert with_load(audited, load, "G")["reason"].startswith("zones; 1 of 2 clients has no queue")
    for other in ({"coverage": "BROADCASTING"}, {"topic": "%RETRY%G"}):
        row = with_load(audited | other, load, "G")
        assert (row["reason"], row["group_idle_clients"]) == ("zones", None)


def test_a_fairer_strategy_that_leaves_a_remainder_is_told_with_its_range():
    ring = divided([ALICE, BOB, "10.0.0.3@1"], 13, "CONSISTENT_HASH")

    assert "with AVG each would have 4 to 5 queues" in load_of(T=ring).text()
