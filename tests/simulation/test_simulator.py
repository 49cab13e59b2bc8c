"""The simulator does what RocketMQ does: small clusters, by hand."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clients import Process
from tests.simulation.clock import MINUTE, SECOND, Clock, dice_of
from tests.simulation.collectors import Collector, Habits, epoch_millis
from tests.simulation.fleets import WARM_UP, draw_fleet
from tests.simulation.servers import Nameserver
from tests.simulation.situations import MIXES, SITUATIONS
from tests.simulation.truth import length
from tests.simulation.world import RETRY, World

pytestmark = pytest.mark.house


def world_of(*broker_names: str, queues: int = 2) -> World:
    world = World(dice_of(1), dice_of(2), Clock())
    world.nameservers = [Nameserver("10.9.0.1:9876")]
    for name in broker_names:
        world.add_broker(name, {"T": queues, RETRY: 1})
    return world


def process_in(world: World, number: int, client_id: str | None = None, **setup: Any) -> Process:
    process = Process(
        world=world,
        label=f"p{number}",
        client_id=client_id or f"10.2.0.{number}@app",
        host=f"10.2.0.{number}",
        subscriptions=frozenset({"T", RETRY}),
        nameserver=world.nameservers[0],
        **setup,
    )
    world.processes.append(process)
    return process


def started(world: World, *processes: Process) -> None:
    for process in processes:
        process.start()
    world.clock.run(world.clock.now + MINUTE)


def cluster(
    *broker_names: str,
    clients: int = 1,
    queues: int = 2,
    slaves: bool = False,
    client_id: str | None = None,
    **setup: Any,
) -> tuple[World, list[Process]]:
    """Brokers of so many queues, and clients that have run for a minute."""
    world = world_of(*broker_names, queues=queues)
    for name in broker_names if slaves else ():
        world.have_slave(name)
    processes = [process_in(world, each, client_id, **setup) for each in range(1, clients + 1)]
    started(world, *processes)
    return world, processes


def running_info_of(world: World, process: Process) -> str:
    """As the broker passes it on that lists the process first."""
    collector = Collector(world, "C", Habits(), (), {}, 0)
    listing = next(each for each in world.brokers if process.client_id in each.client_ids)
    collector._ask_info(0, listing, process.client_id)
    return str(collector.lines[0]["body"])


def reads_of(world: World, broker_name: str, queue_id: int) -> set[str]:
    queue = MessageQueue("T", broker_name, queue_id)
    return set(world.truth.readers[queue].at(world.clock.now))


def test_two_members_hold_what_a_hand_computes() -> None:
    _, (first, second) = cluster("broker-a", "broker-b", queues=3, clients=2)
    # AVG over a0 a1 a2 b0 b1 b2: half for each.
    assert first.held["T"] == {MessageQueue("T", "broker-a", number) for number in range(3)}
    assert second.held["T"] == {MessageQueue("T", "broker-b", number) for number in range(3)}
    assert first.held[RETRY] == {MessageQueue(RETRY, "broker-a", 0)}


def test_an_id_of_two_processes_wastes_the_slot_of_the_second() -> None:
    world, _ = cluster("broker-a", queues=3, clients=2, client_id="10.2.0.1@app")
    # Two slots: the first has 0 and 1, and both processes find it.
    assert [reads_of(world, "broker-a", number) for number in range(3)] == [
        {"p1", "p2"},
        {"p1", "p2"},
        set(),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_silent_channel_is_dropped_120_to_130_s_after_its_last_heartbeat(seed: int) -> None:
    world = world_of("broker-a", "broker-b")
    world.draws.seed(seed)
    _, dies = members = [process_in(world, 1), process_in(world, 2)]
    started(world, *members)
    last = max(each.last_heartbeat for each in world.brokers[0].channels.values())
    dies.kill(connections_close=False)
    dropped: list[int] = []
    for second in range(0, 140):
        world.clock.run(world.clock.now + SECOND)
        if not dropped and len(world.brokers[0].channels) == 1:
            dropped.append(second)
            assert 120 * SECOND <= world.clock.now - last <= 131 * SECOND + 30 * SECOND
    assert dropped
    # Nobody is notified; the next rebalance sees it.
    world.clock.run(world.clock.now + 20 * SECOND)
    assert reads_of(world, "broker-b", 0) == {"p1"}


def test_a_process_that_is_killed_is_replaced_at_once_where_its_connections_close() -> None:
    world, (_, dies) = cluster("broker-a", "broker-b", clients=2)
    dies.kill(connections_close=True)
    assert reads_of(world, "broker-b", 0) == set()
    world.clock.run(world.clock.now + SECOND)
    assert reads_of(world, "broker-b", 0) == {"p1"}


def test_a_member_that_loses_a_broker_never_reads_its_queues() -> None:
    world, (_, second) = cluster("broker-a", "broker-b", clients=2)
    second.lose("broker-b", seen=True)
    began = world.clock.now
    world.clock.run(began + 20 * MINUTE)
    queue = MessageQueue("T", "broker-b", 0)
    # broker-b lists the first alone, which then takes all; broker-a lists both. The first draws.
    assert {"p2"} not in world.truth.readers[queue].values[-20:]
    unread = length(world.truth.unread(queue, began, world.clock.now))
    assert 0.2 < unread / (20 * MINUTE) < 0.8
    # It asks broker-a alone, and so it always has its half: all of broker-b, which it cannot read.
    assert not second.reads - {MessageQueue(RETRY, "broker-a", 0)}


def test_a_queue_out_of_reach_is_kept_and_not_read_however_long_that_lasts() -> None:
    world, (_, second) = cluster("broker-a", "broker-b", clients=2)
    second.lose("broker-b", seen=False)
    world.clock.run(world.clock.now + 20 * MINUTE)
    # It asks broker-a, which lists both, and tries to pull again and again.
    queue = MessageQueue("T", "broker-b", 0)
    assert queue in second.held["T"]
    assert queue not in second.reads
    # Each attempt sets the time of its last pull, and fails 3 s later.
    info = running_info_of(world, second)
    (pulled,) = re.findall(r'"broker-b","queueId":0,"topic":"T".*?"lastPullTimestamp": (\d+)', info)
    assert 0 <= epoch_millis(world.clock.now) - int(pulled) <= 3 * SECOND


def with_slave(*, acts: bool, reads: bool) -> tuple[World, Process]:
    world, (client,) = cluster("broker-a", slaves=True, reads_from_slaves=reads)
    world.slaves_act_as_master = acts
    world.stop_master("broker-a")
    assert bool(client.reads) == acts
    world.clock.run(world.clock.now + 31 * SECOND)
    return world, client


@pytest.mark.parametrize(
    ("acts", "reads", "goes_on"),
    [(False, True, True), (False, False, False), (True, False, True)],
    ids=["Java", "Go", "Go, acting master"],
)
def test_from_its_next_route_on_a_client_reads_from_the_slave(
    acts: bool, reads: bool, goes_on: bool
) -> None:
    world, client = with_slave(acts=acts, reads=reads)
    assert (MessageQueue("T", "broker-a", 0) in client.reads) == goes_on
    world.start_broker("broker-a")
    world.clock.run(world.clock.now + 31 * SECOND)
    assert MessageQueue("T", "broker-a", 0) in client.reads


def locked_at(world: World) -> set[str]:
    return {client_id for each in world.brokers for client_id, _ in each.locks.values()}


def test_who_consumes_in_order_reads_what_it_locked_at_the_master() -> None:
    world, clients = cluster("broker-a", "broker-b", clients=2, slaves=True, orderly=True)
    assert [reads_of(world, name, 0) for name in ("broker-a", "broker-b")] == [{"p1"}, {"p2"}]
    assert not any(each.locks for each in world.brokers if each.broker_id)
    assert '"locked": true' in running_info_of(world, clients[0])


def test_without_a_master_a_lock_is_over_after_30_s_and_the_table_keeps_the_queue() -> None:
    world, clients = cluster("broker-a", clients=2, slaves=True, orderly=True)
    world.clock.run(world.clock.now + SECOND)
    (queue,) = [each for each in clients[0].in_table if each.topic == "T"]
    last = clients[0].locked[queue]
    world.stop_master("broker-a")
    world.clock.run(world.clock.now + 10 * MINUTE)
    # It reads the slave from its next route on, and handles nothing once its lock is over.
    read = [*world.truth.readers[queue].spans(bool, last, world.clock.now)]
    assert read[-1][1] == last + 30 * SECOND + 1
    assert queue in clients[0].in_table
    assert clients[0].can_read(queue)
    world.start_broker("broker-a")
    world.clock.run(world.clock.now + 60 * SECOND)
    assert reads_of(world, "broker-a", queue.queue_id) == {"p1"}


def test_an_acting_master_gives_locks() -> None:
    world, _ = cluster("broker-a", clients=2, slaves=True, orderly=True)
    world.slaves_act_as_master = True
    world.stop_master("broker-a")
    world.clock.run(world.clock.now + 2 * MINUTE)
    assert {frozenset(reads_of(world, "broker-a", number)) for number in (0, 1)} == {
        frozenset({"p1"}),
        frozenset({"p2"}),
    }


@pytest.mark.parametrize(("killed", "least", "most"), [(True, 60, 81), (False, 0, 21)])
def test_a_lock_of_one_that_died_lasts_60_s_at_the_broker(
    killed: bool, least: int, most: int
) -> None:
    world, (first, second) = cluster("broker-a", "broker-b", clients=2, orderly=True)
    queue = MessageQueue("T", "broker-b", 0)
    last = second.locked[queue]
    second.kill(connections_close=True) if killed else second.stop()
    world.clock.run(world.clock.now + 2 * MINUTE)
    readers = world.truth.readers[queue]
    assert readers.values[-1] == {"p1"}
    # It tries again at each rebalance.
    assert least * SECOND <= readers.times[-1] - last <= most * SECOND
    assert locked_at(world) == {first.client_id}


def test_two_processes_with_one_id_both_have_the_lock() -> None:
    world, _ = cluster("broker-a", clients=2, client_id="10.2.0.1@app", orderly=True)
    assert reads_of(world, "broker-a", 0) == {"p1", "p2"}


def test_a_broker_that_dies_is_in_routes_for_two_minutes_and_nothing_is_written_to_it() -> None:
    world, (client,) = cluster("broker-a", "broker-b")
    began = world.clock.now
    world.stop_broker("broker-a", in_order=False)
    world.clock.run(began + 119 * SECOND)
    assert len(world.nameservers[0].route("T")) == 2
    assert MessageQueue("T", "broker-a", 0) in client.in_table
    world.clock.run(began + 126 * SECOND)
    assert len(world.nameservers[0].route("T")) == 1
    world.start_broker("broker-a", loses_offsets=True)
    queue, now = MessageQueue("T", "broker-a", 0), world.clock.now
    collector = Collector(world, "C", Habits(), (), {"T": 10.0}, 0)
    written = collector._messages(queue, now)
    assert written == collector._messages(queue, began)
    # Of 600 a minute; nobody has read since, and a broker without offsets begins at 0.
    world.truth.reads(now, "p9", frozenset())
    assert world.progress.committed(queue, now) == -60 * MINUTE


def test_a_slave_takes_over_with_offsets_of_before() -> None:
    world, (client,) = cluster("broker-a", slaves=True)
    world.clock.run(world.clock.now + 10 * MINUTE)
    queue = MessageQueue("T", "broker-a", 0)
    before = world.progress.committed(queue, world.clock.now)
    assert before is not None
    address = world.brokers[1].address
    world.fail_over("broker-a", 5 * MINUTE)
    master = world.replica("broker-a", 0)
    assert master is not None
    assert master.address == address
    assert master.client_ids == (client.client_id,)
    assert world.progress.committed(queue, world.clock.now) == before - 5 * MINUTE


def test_one_message_that_is_not_finished_holds_its_queue_until_it_is_sent_back() -> None:
    world, (client,) = cluster("broker-a")
    queue, other = (MessageQueue("T", "broker-a", number) for number in (0, 1))
    client.stick(queue)
    began = world.clock.now
    world.clock.run(began + 14 * MINUTE)
    assert queue in client.reads
    assert client.consumes & {queue, other} == {other}
    collector = Collector(world, "C", Habits(), (), {"T": 10.0}, 0)
    collector._ask_info(0, world.brokers[0], client.client_id)
    committed = collector._offsets(queue)["consumerOffset"]
    assert f'"cachedMsgMinOffset": {committed}' in str(collector.lines[0]["body"])
    world.clock.run(began + 15 * MINUTE + SECOND)
    assert queue in client.consumes


def test_a_client_stays_with_its_nameserver_until_that_fails() -> None:
    world = world_of("broker-a", "broker-b")
    world.nameservers.append(Nameserver("10.9.0.2:9876"))
    for name in ("broker-a", "broker-b"):
        world.register(name)
    client = process_in(world, 1)
    started(world, client)
    world.registers_with["broker-b"] = world.nameservers[:1]
    world.register("broker-b")
    for _ in range(20):
        world.clock.run(world.clock.now + MINUTE)
        assert len(client.routes["T"]) == 2
    world.stop_nameserver(world.nameservers[0])
    world.clock.run(world.clock.now + 31 * SECOND)
    assert client.nameserver is world.nameservers[1]
    assert len(client.routes["T"]) == 1


def test_a_group_all_of_one_nameserver_is_well_whatever_the_other_one_lacks() -> None:
    fleet = draw_fleet("x", [SITUATIONS["one_nameserver_for_all"]], 5)
    assert {pod.running.nameserver for pod in fleet.pods} == {fleet.world.nameservers[0]}
    assert [each.fault for each in fleet.planted] == ["ROUTE_DIVERGENCE"]
    for queue in fleet.truth.exists:
        assert not fleet.truth.unread(queue, 0, fleet.until), queue


def test_vms_restart_under_their_ids_while_brokers_are_asked_seconds_apart() -> None:
    fleet = draw_fleet("x", [SITUATIONS["vm_and_broker_restarts"]], 3)
    assert {len(pod.client_ids) for pod in fleet.pods} == {1}
    assert len(fleet.world.processes) == 2 * len(fleet.pods) + 1
    answers = [each for each in fleet.lines if each["kind"] == "consumer_connection"]
    first = [each for each in answers if each["snapshot_time"] == answers[0]["snapshot_time"]]
    apart = [datetime.fromisoformat(str(each["collected_at"])) for each in first]
    assert max(apart) - min(apart) >= timedelta(milliseconds=fleet.habits.pause)
    # One of them restarts too.
    assert {each["broker_name"] for each in answers if each.get("error_code") == -1}


def test_a_blocked_member_holds_its_queues_and_handles_nothing() -> None:
    world, (client,) = cluster("broker-a")
    client.block()
    queue = MessageQueue("T", "broker-a", 0)
    now = world.clock.now
    assert queue in client.reads
    assert world.truth.readers[queue].at(now) == {"p1"}
    assert not world.truth.consumers[queue].at(now)


def test_a_group_that_may_not_consume_holds_its_queues() -> None:
    world, (client,) = cluster("broker-a")
    world.set_consume_enabled(False)
    assert client.reads
    assert not client.consumes


def test_no_list_ever_shows_the_topic_that_the_last_heartbeat_lacks() -> None:
    fleet = draw_fleet("x", [SITUATIONS["table_never_shows_topic"]], 4)
    assert {topic for _, topics in fleet.tables for topic in topics} == {"T", RETRY}


def test_a_client_that_the_list_lacks_drops_what_it_has() -> None:
    world, (first, second) = cluster("broker-a", clients=2)
    before = (first.reads, second.reads)
    world.brokers[0].remove(second.addresses[world.brokers[0].address])
    second.rebalance()
    assert not second.reads
    # It said so in a heartbeat, so that it is listed again, and gets its half back.
    world.clock.run(world.clock.now + SECOND)
    assert (first.reads, second.reads) == before


def test_a_group_that_no_broker_knows_keeps_what_it_has() -> None:
    world, (first,) = cluster("broker-a")
    held = first.held
    world.brokers[0].channels.clear()
    first.rebalance()
    assert first.held == held


def test_a_restart_without_a_closed_connection_lists_an_id_twice_for_a_time() -> None:
    world = world_of("broker-a")
    before, after = (process_in(world, number, "10.2.0.1@app") for number in (1, 2))
    started(world, before)
    before.kill(connections_close=False)
    started(world, after)
    assert world.brokers[0].client_ids == ("10.2.0.1@app",) * 2
    assert reads_of(world, "broker-a", 0) == {"p2"}
    assert reads_of(world, "broker-a", 1) == set()
    world.clock.run(world.clock.now + 3 * MINUTE)
    assert reads_of(world, "broker-a", 1) == {"p2"}


def test_a_new_queue_is_held_within_50_s() -> None:
    world, _ = cluster("broker-a")
    world.set_queues("T", 3)
    world.clock.run(world.clock.now + 50 * SECOND)
    assert reads_of(world, "broker-a", 2) == {"p1"}


@pytest.mark.parametrize("seed", range(8))
def test_in_a_healthy_fleet_every_queue_has_one_reader_all_the_time(seed: int) -> None:
    fleet = draw_fleet("healthy", [SITUATIONS["healthy"]], seed)
    assert fleet.truth.exists
    for queue in fleet.truth.exists:
        spans = fleet.truth.readers[queue].spans(lambda who: len(who) != 1, 0, fleet.until)
        assert not list(spans), queue


def test_a_seed_gives_the_same_dump_again_and_another_seed_another() -> None:
    def lines(seed: int) -> list[object]:
        return [*draw_fleet("x", [SITUATIONS["crash_loop"]], seed).lines]

    assert lines(1) == lines(1)
    assert lines(1) != lines(2)


def test_how_a_fleet_is_collected_changes_nothing_for_the_clients() -> None:
    def readers(names: list[str]) -> object:
        fleet = draw_fleet("x", [SITUATIONS[name] for name in names], 4)
        return {queue: steps.values for queue, steps in fleet.truth.readers.items()}

    assert readers(["unreachable_broker"]) == readers(["unreachable_broker", "two_collectors"])


IN_MIXES = {name for names in MIXES for name in names}
ALONE = [(name,) for name in SITUATIONS if name not in IN_MIXES]


@pytest.mark.long
@pytest.mark.parametrize("names", [*ALONE, *MIXES], ids="+".join)
def test_every_situation_makes_a_dump_of_whole_rounds(names: tuple[str, ...]) -> None:
    fleet = draw_fleet("x", [SITUATIONS[name] for name in names], 3)
    kinds = {line["kind"] for line in fleet.lines}
    assert {"consumer_connection", "topic_route"} <= kinds
    assert len(fleet.rounds) >= 20
    asked = {*fleet.must_if_lasting, *(one for must in fleet.must for one in must.split("|"))}
    assert asked <= fleet.faults
    assert fleet.clock.now == fleet.until + 2 * MINUTE > WARM_UP


def test_where_the_broker_divides_a_shared_id_stacks_all_the_same() -> None:
    of_5: dict[str, Any] = {"divides": False, "version": 433}
    world, processes = cluster("broker-a", queues=3, clients=2, client_id="10.2.0.1@app", **of_5)
    assert [len(reads_of(world, "broker-a", number)) for number in range(3)] == [2, 2, 0]
    info = running_info_of(world, processes[0])
    assert '"clientRebalance": "false"' in info
    assert '"queueId":0' in info


def test_who_uses_pop_has_no_queue_in_its_table_and_moves_no_offset() -> None:
    world = world_of("broker-a")
    pulls, pops = process_in(world, 1), process_in(world, 2)
    pops.pops = True
    started(world, pulls, pops)
    assert {queue.topic for queue in pops.in_table | pops.consumes} <= {RETRY}
    assert {queue.queue_id for queue in pops.reads if queue.topic == "T"} == {0, 1}
    # Who pulls counts all members, and takes its share alone.
    assert {queue.queue_id for queue in pulls.reads if queue.topic == "T"} == {0}
