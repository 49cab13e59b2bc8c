"""What lists do not decide is so in the simulator as a hand reckons it."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise

import pytest

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clients import (
    MOCK_BROKER,
    OWN,
    OWN_WITH_GAP,
    OWN_WITH_OVERLAP,
    Process,
)
from tests.simulation.clock import MINUTE, SECOND
from tests.simulation.collectors import Collector, Habits, Line
from tests.simulation.fleets import Fleet, Polling, draw_fleet
from tests.simulation.situations import SITUATIONS
from tests.simulation.test_simulator import cluster, process_in, reads_of, started, world_of
from tests.simulation.truth import length
from tests.simulation.world import RETRY, World

A0, A1 = (MessageQueue("T", "broker-a", number) for number in (0, 1))


def collector_of(world: World, rate: float = 10.0) -> Collector:
    return Collector(world, "C", Habits(), world.nameservers, {"T": rate}, 0)


def offsets_of(world: World, broker_name: str) -> dict[int, Line]:
    """By the number of a queue of T what the broker tells of it."""
    collector = collector_of(world)
    (broker,) = world.replicas(broker_name)
    collector._ask_offsets(0, broker)
    told = re.findall(r'"queueId":(\d+),"topic":"T"}:({.*?})', str(collector.lines[0]["body"]))
    return {int(number): json.loads(offsets) for number, offsets in told}


@pytest.mark.parametrize(
    ("strategy", "by_hand"),
    [
        # The last queue first, by turns: 2 and 0 for the first, 1 for the second.
        (OWN, [{"p1"}, {"p2"}, {"p1"}]),
        # Without the last one 1 for the first and 0 for the second.
        (OWN_WITH_GAP, [{"p2"}, {"p1"}, set()]),
        (OWN_WITH_OVERLAP, [{"p1", "p2"}, {"p2"}, {"p1"}]),
    ],
)
def test_own_strategies_divide_as_a_hand_does(strategy: str, by_hand: list[set[str]]) -> None:
    world, _ = cluster("broker-a", queues=3, clients=2, strategy=strategy)
    assert [reads_of(world, "broker-a", number) for number in range(3)] == by_hand


def test_a_running_info_names_the_class_of_an_own_strategy() -> None:
    world, (client,) = cluster("broker-a", strategy=OWN)
    collector = collector_of(world)
    collector._ask_info(0, world.brokers[0], client.client_id)
    assert '"allocateMessageQueueStrategy": "com.example.' in str(collector.lines[0]["body"])


def test_who_was_given_queues_holds_them_whoever_comes_and_is_listed_without_topics() -> None:
    world = world_of("broker-a", queues=3)
    given = [frozenset({A0}), frozenset({A0, A1})]
    members = [
        process_in(world, number, assigned=queues) for number, queues in enumerate(given, start=1)
    ]
    for each in members:
        each.subscriptions = frozenset()
    started(world, members[0])
    started(world, members[1])
    assert [reads_of(world, "broker-a", number) for number in range(3)] == [
        {"p1", "p2"},
        {"p2"},
        set(),
    ]
    collector = collector_of(world)
    collector._ask_members(0, world.brokers[0])
    body = json.loads(collector.lines[0]["body"])
    assert (body["consumeType"], body["subscriptionTable"]) == ("CONSUME_ACTIVELY", {})
    # A group without subscriptions: the broker tells of every topic of which it has offsets.
    offsets = offsets_of(world, "broker-a")
    assert offsets[0]["consumerOffset"] > 0
    assert (offsets[2]["consumerOffset"], offsets[2]["lastTimestamp"]) == (0, 0)


@pytest.mark.parametrize("orderly", [False, True])
def test_an_elected_slave_is_the_master_at_its_own_address_and_no_offset_is_lost(
    orderly: bool,
) -> None:
    world, (client,) = cluster("broker-a", slaves=True, orderly=orderly)
    world.clock.run(10 * MINUTE)
    was, slave = world.replicas("broker-a")
    before = world.progress.committed(A0, world.clock.now)
    assert before is not None
    began = world.clock.now
    world.elect("broker-a", 20 * SECOND)
    world.clock.run(began + 10 * SECOND)
    assert not client.reads
    world.clock.run(began + 21 * SECOND)
    assert (world.progress.committed(A0, world.clock.now) or 0) >= before
    world.clock.run(began + 3 * MINUTE)
    assert world.replica("broker-a", 0) is slave
    assert not slave.acts_as_master
    # The election, and the poll of routes or of locks after it.
    assert length(world.truth.unread(A0, began, world.clock.now)) <= 51 * SECOND
    assert world.writable["broker-a"].at(world.clock.now)
    world.start_broker("broker-a")
    assert [each.shown_id for each in (slave, was)] == [0, 1]


def static_world() -> tuple[World, list[Process]]:
    """Logical 0 to 3 are broker-a 0, broker-b 0, and, changed, broker-b 1 and broker-a 1."""
    world = world_of("broker-a", "broker-b", queues=2)
    world.make_static("T")
    members = [process_in(world, number) for number in (1, 2)]
    started(world, *members)
    return world, members


def test_clients_hold_the_logical_queues_of_a_static_topic() -> None:
    world, (first, second) = static_world()
    logical = [MessageQueue("T", MOCK_BROKER, number) for number in range(4)]
    assert [first.held["T"], second.held["T"]] == [set(logical[:2]), set(logical[2:])]
    assert {queue for queue in world.truth.exists if queue.topic == "T"} == set(logical)
    assert reads_of(world, MOCK_BROKER, 3) == {"p2"}
    world.stop_broker("broker-b")
    there = [world.truth.exists[queue].at(world.clock.now) for queue in logical]
    assert there == [True, False, False, True]
    assert not world.truth.readers[logical[2]].at(world.clock.now)


def test_brokers_count_by_physical_queues_and_the_route_says_which() -> None:
    world, (_, second) = static_world()
    collector = collector_of(world)
    collector._ask_route(0, world.nameservers[0], "T")
    mapping = json.loads(collector.lines[0]["body"])["topicQueueMappingByBroker"]
    maps = {name: each["currIdMap"] for name, each in mapping.items()}
    assert maps == {"broker-a": {"0": 0, "3": 1}, "broker-b": {"1": 0, "2": 1}}
    second.block()
    world.clock.run(world.clock.now + 10 * MINUTE)
    waits = {
        (name, number): each["brokerOffset"] - each["consumerOffset"] > 1000
        for name in ("broker-a", "broker-b")
        for number, each in offsets_of(world, name).items()
    }
    # Logical 2 and 3 are the second one's.
    assert [place for place, much in waits.items() if much] == [("broker-a", 1), ("broker-b", 1)]


def test_an_old_go_client_commits_nothing_over_what_the_filter_leaves_out() -> None:
    world, (client,) = cluster("broker-a")
    world.last_match["T"] = lambda time: min(time, 0)
    world.clock.run(10 * MINUTE)
    first = offsets_of(world, "broker-a")[0]
    world.clock.run(20 * MINUTE)
    second = offsets_of(world, "broker-a")[0]
    # All that came before zero: ten a second for an hour.
    assert first["consumerOffset"] == second["consumerOffset"] == 36_000
    assert second["brokerOffset"] - first["brokerOffset"] == 6_000
    assert {A0, A1} <= client.consumes
    assert not world.truth.unconsumed(A0, 0, world.clock.now)


@pytest.mark.parametrize(("from_first", "read_from"), [(True, -60 * MINUTE), (False, None)])
def test_a_broker_without_offsets_tells_nothing_until_the_group_is_back(
    from_first: bool, read_from: int | None
) -> None:
    world, (client,) = cluster("broker-a")
    client.stop()
    world.stop_broker("broker-a")
    world.start_broker("broker-a")
    assert set(offsets_of(world, "broker-a")) == {0, 1}
    world.forget_offsets("broker-a", reads_from_first=from_first)
    assert not offsets_of(world, "broker-a")
    world.clock.run(10 * MINUTE)
    again = process_in(world, 2)
    again.start()
    started_at = world.clock.now
    world.clock.run(started_at + 5 * SECOND)
    # From the first message at ten times the pace, or from where the queue ended.
    committed = world.progress.committed(A0, world.clock.now)
    assert committed is not None
    begin = started_at if read_from is None else read_from
    assert begin <= committed <= begin + 50 * SECOND
    assert offsets_of(world, "broker-a")[0]["consumerOffset"] > 0


# ---------------------------------------------------------------- fleets


def fleet_of(name: str, seed: int = 1, polling: Polling | None = None) -> Fleet:
    return draw_fleet(name, [SITUATIONS[name]], seed, polling=polling or Polling())


def most_unread(fleet: Fleet) -> int:
    """For how long a queue that is there was nobody's, without a break."""
    spans = [
        end - start
        for queue in fleet.truth.exists
        for start, end in fleet.truth.orphaned(queue, 0, fleet.until)
    ]
    return max(spans, default=0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "name",
    [
        *("own_strategy", "assigned", "controller_fails_over", "static_topic"),
        *("go_filters_by_tag", "deploys_while_broker_restarts", "three_deploys"),
    ],
)
def test_what_looks_wrong_and_is_well_leaves_no_queue_alone_for_long(name: str, seed: int) -> None:
    fleet = fleet_of(name, seed)
    assert not fleet.faults - {"QUEUES_LEFT_ROUTE"}
    assert most_unread(fleet) < 60 * SECOND
    twice = [fleet.truth.duplicated(queue, 0, fleet.until) for queue in fleet.truth.exists]
    assert all(length(spans) < MINUTE for spans in twice)
    assert all(len(steps.values[-1]) <= 1 for steps in fleet.truth.running.values())


def counted(fleet: Fleet) -> Counter[str]:
    """Queues of T that were so all the time."""
    found: Counter[str] = Counter()
    for queue in fleet.truth.exists:
        if queue.topic != RETRY:
            found["nobody"] += length(fleet.truth.orphaned(queue, 0, fleet.until)) == fleet.until
            found["two"] += length(fleet.truth.duplicated(queue, 0, fleet.until)) == fleet.until
    return +found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "so"),
    [
        ("own_strategy_with_gap", {"nobody": 1}),
        ("own_strategy_with_overlap", {"two": 1}),
        ("assigned_with_gap", {"nobody": 1}),
        ("assigned_with_overlap", {"two": 1}),
        ("assigned_with_gap_and_overlap", {"nobody": 1, "two": 1}),
    ],
)
def test_one_queue_is_left_out_or_given_twice(name: str, so: dict[str, int], seed: int) -> None:
    assert counted(fleet_of(name, seed)) == so


@pytest.mark.parametrize("name", ["static_topic_blocked", "go_filters_and_hangs"])
def test_the_queues_of_one_that_hangs_are_handled_by_nobody(name: str) -> None:
    fleet = fleet_of(name)
    (planted,) = fleet.planted
    (pod,) = planted.pods
    assert pod.running.held["T"]
    since = (planted.start, fleet.until)
    alone = {
        queue
        for queue, exists in fleet.truth.exists.items()
        if exists.at(fleet.until) and fleet.truth.unconsumed(queue, *since) == [since]
    }
    assert alone == {queue for queues in pod.running.held.values() for queue in queues}


def test_one_process_that_reconnects_is_listed_three_times_or_more() -> None:
    fleet = fleet_of("reconnecting_faster", polling=Polling(300 * SECOND, lists_alone=True))
    (planted,) = fleet.planted
    (client_id,) = planted.client_ids
    listed = [
        [each["clientId"] for each in json.loads(line["body"])["connectionSet"]].count(client_id)
        for line in fleet.lines
        if line["kind"] == "consumer_connection" and "body" in line
    ]
    assert sorted(listed)[len(listed) // 2] >= 3
    assert max(len(who) for who in fleet.truth.running[client_id].values) == 1


def test_all_fleets_can_be_polled_alike_by_lists_alone() -> None:
    polling = Polling(300 * SECOND, lists_alone=True)
    # It has habits of its own: VMs each minute, and all that there is of what waits.
    for name in ("vm_rolling_restart", "one_member_blocked"):
        fleet = fleet_of(name, polling=polling)
        assert {line["kind"] for line in fleet.lines} == {"topic_route", "consumer_connection"}
        assert len(fleet.rounds) >= 10
        apart = {after - before for before, after in pairwise(fleet.rounds)}
        assert apart == {300 * SECOND + fleet.habits.drift}
