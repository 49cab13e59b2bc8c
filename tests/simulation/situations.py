"""What goes wrong, each a small function over a settled fleet; its numbers come from the seed.

``SITUATIONS`` has them by name, ``MIXES`` those that can happen beside others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import isfunction

from tests.simulation.beyond_lists import BEYOND_LISTS
from tests.simulation.clients import Process
from tests.simulation.clock import MINUTE, SECOND, Millis
from tests.simulation.fleets import NOTHING_RETRIED, Fleet, Hidden, Pod
from tests.simulation.servers import BROKER_EXPIRES_AFTER
from tests.simulation.world import RETRY

NOT_CONSUMING = "GROUP_NOT_CONSUMING"
#: What is so for this time is seen in three rounds or more, over ``persistence_seconds``.
_SURELY_SEEN = 6 * MINUTE

# ---------------------------------------------------------------- nothing is wrong


def healthy(fleet: Fleet) -> None:
    """Nothing happens."""


def scaled_in_order(fleet: Fleet) -> None:
    """A member comes now and then, another one goes."""
    times = list(_times(fleet, least=480, most=1200))
    if len(times) > 3:
        # An autoscaler: each time all queues are divided anew, which may well be told.
        fleet.faults.add("FLAPPING")
    for time in times:
        pod = fleet.new_pod()
        fleet.clock.at(time, partial(fleet.start, pod))
        leaves = time + fleet.between(60, 200)
        fleet.do(leaves, pod, Process.stop)


# ---------------------------------------------------------------- deploys


def rolling_deploy(fleet: Fleet) -> None:
    """Pods are replaced one after the other, in order."""
    fleet.replace_all("stop")


def rolling_kill(fleet: Fleet) -> None:
    """Pods are killed and replaced one after the other; their connections close."""
    fleet.replace_all("kill")


def rolling_silent(fleet: Fleet) -> None:
    """Pods vanish one after the other, and their connections stay until the brokers drop them."""
    fleet.replace_all("vanish")


def stateful_set(fleet: Fleet) -> None:
    """Pods with fixed ids restart one after the other; their connections close."""
    fleet.replace_all(fleet.random.choice(["stop", "kill"]), keeps_id=True)


def stateful_set_silent(fleet: Fleet) -> None:
    """Pods with fixed ids vanish and restart: an id is listed twice for a time, one process."""
    fleet.replace_all("vanish", keeps_id=True)


def rolling_deploy_in_wide_rounds(fleet: Fleet) -> None:
    """A deploy of many pods; the brokers are asked some seconds apart."""
    _wide_rounds(fleet)
    while len(fleet.pods) < 16:
        fleet.pods.append(fleet.new_pod())
    fleet.replace_all(fleet.random.choice(["stop", "kill"]))


def vm_rolling_restart(fleet: Fleet) -> None:
    """Processes with fixed ids on VMs restart one after the other, each away for a while.

    The brokers are asked some seconds apart, so that a member is back at one and not at another.
    """
    _vms(fleet)
    _restart_vms(fleet, fleet.between(200, 400))


def vm_and_broker_restarts(fleet: Fleet) -> None:
    """The same; then a broker restarts, and then one of the processes once more."""
    _vms(fleet)
    time = _restart_vms(fleet, fleet.between(100, 200))
    broker_restarted(fleet, time + fleet.between(100, 300))
    pod = fleet.random.choice(fleet.pods)
    _restart_vm(fleet, time + fleet.between(600, 900), pod)


# ---------------------------------------------------------------- members


def crash_loop(fleet: Fleet) -> None:
    """One member starts, lives for less than a minute and dies, again and again."""
    _churn(fleet, fleet.pods[-1], lives=(15, 60), waits=(5, 50))
    fleet.faults.add("FLAPPING")
    if fleet.id_style == "nano" or fleet.habits.running_infos:
        fleet.must.add("FLAPPING")
        return
    # Under a fixed id nothing but its start shows that it is another process each time.
    fleet.faults.add("RECONNECTING")
    fleet.must.add("FLAPPING|RECONNECTING")


def reconnecting(fleet: Fleet) -> None:
    """A NAT drops the connections of one process again and again, and nobody sees them close."""
    fleet.id_style = fleet.random.choice(["custom", "nano"])
    pod = _steady_pod(fleet)
    step = fleet.random.uniform(60, 120)
    time = fleet.between(60, 300)
    while time < fleet.until:
        fleet.do(time, pod, Process.reconnect)
        # Not in step with the polls: then every poll would see the same moment of each period.
        time += fleet.between(0.85 * step, 1.15 * step)
    fleet.faults.add("STALE_CHANNEL")
    fleet.plant("RECONNECTING", 0, pods=[pod])


def two_processes_with_one_id(fleet: Fleet) -> None:
    """Two live processes have one id, all the time."""
    pods = _share_an_id(fleet)
    fleet.plant("DUPLICATE_CLIENT_ID", -MINUTE, pods=pods, must=False)
    fleet.must_if_lasting["DUPLICATE_CLIENT_ID"] = ("T", "DUPLICATE")


def two_processes_in_a_busy_group(fleet: Fleet) -> None:
    """The same, while another member is replaced each minute."""
    two_processes_with_one_id(fleet)
    _churn(fleet, fleet.pods[-1], lives=(50, 60), waits=(1, 3))
    fleet.faults.add("FLAPPING")
    if fleet.id_style != "nano" and not fleet.habits.running_infos:
        # Under a fixed id it starts and stops so fast that it looks like one process.
        fleet.faults.add("RECONNECTING")


def one_member_blocked(fleet: Fleet) -> None:
    """A listener hangs: the member holds its queues and consumes nothing."""
    _one_member(fleet, Process.block)


def all_members_blocked(fleet: Fleet) -> None:
    """The listeners of all hang, at once or one after the other: a database that is gone."""
    fleet.habits.offsets = True
    began, step = fleet.between(200, 400), fleet.random.choice([0, 1, 30]) * SECOND
    for number, pod in enumerate(fleet.pods):
        fleet.do(began + number * step, pod, Process.block)
    fleet.plant(NOT_CONSUMING, began + (len(fleet.pods) - 1) * step)
    fleet.plant("FROZEN_PROCESS", began, pods=fleet.pods, must=False)


def consume_disabled(fleet: Fleet) -> None:
    """``consumeEnable=false``: the brokers refuse every pull of the group."""
    fleet.habits.offsets = True
    began = fleet.random.choice([-(10**9), fleet.between(200, 400)])
    fleet.clock.at(began, lambda: fleet.world.set_consume_enabled(False))
    fleet.plant(NOT_CONSUMING, began)


def tags_differ(fleet: Fleet) -> None:
    """Some filter by another tag: brokers have one subscription and refuse the others' pulls."""
    fleet.habits.offsets = True
    if not fleet.habits.running_infos:
        fleet.habits.heartbeats = True
    others = fleet.random.sample(fleet.pods, max(1, len(fleet.pods) // 2))
    for pod in fleet.pods:
        pod.expression = "TagB" if pod in others else "TagA"
    wins = fleet.random.choice(["TagA", "TagB"])
    turns = fleet.random.choice([fleet.until * 2, fleet.between(400, 900)])

    def refuse(tag: str) -> None:
        if tag not in {pod.expression for pod in fleet.pods}:
            return
        for pod in fleet.pods:
            pod.running.refused = pod.expression != tag
            fleet.world.reads_changed(pod.running)

    fleet.clock.at(0, partial(refuse, wins))
    fleet.clock.at(turns, partial(refuse, "TagB" if wins == "TagA" else "TagA"))
    fleet.plant("EXPRESSION_MISMATCH", -MINUTE)


def frozen_ghost(fleet: Fleet) -> None:
    """A process freezes for good, or for some minutes; the brokers drop it after 120 s."""
    pod = fleet.random.choice(fleet.pods[: fleet.random.choice([2, 9])])
    began = fleet.between(240, 600)
    fleet.do(began, pod, partial(Process.becomes, frozen=True))
    if fleet.random.random() < 0.5:
        fleet.do(began + fleet.between(60, 400), pod, partial(Process.becomes, frozen=False))
    fleet.faults |= {"FROZEN_PROCESS", "GHOST_MEMBER", "CLIENT_NOT_ANSWERING"}


def dead_one_of_two(fleet: Fleet) -> None:
    """A group of two; one vanishes, and is listed until the brokers drop it."""
    del fleet.pods[2:]
    pod = fleet.pods[1]
    fleet.do(fleet.between(240, 600), pod, lambda process: process.kill(connections_close=False))
    fleet.faults.add("GHOST_MEMBER")


def many_ghosts(fleet: Fleet) -> None:
    """Pods vanish and others come in their place for half of the time."""
    time = fleet.between(120, 240)
    while time < fleet.until * 3 // 4:
        pod = fleet.random.choice(fleet.pods)
        fleet.clock.at(time, partial(fleet.replace, pod, "vanish"))
        time += fleet.between(25, 70)
    fleet.faults |= {"GHOST_MEMBER", "FLAPPING"}
    fleet.hide_ghosts()


def scaled_to_zero_and_back(fleet: Fleet) -> None:
    """Nobody is there for a while, once or again and again."""
    rests, works = (200, 700), (150, 500)
    time = fleet.between(200, 400)
    while time < fleet.until - 5 * MINUTE:
        back = time + fleet.between(*rests)
        for pod in fleet.pods:
            fleet.do(time + fleet.between(0, 3), pod, Process.stop)
            fleet.clock.at(back + fleet.between(0, 5), partial(fleet.start, pod))
        time = back + fleet.between(*works)
    fleet.faults |= {"GROUP_OFFLINE", "FLAPPING"}
    fleet.must.add("GROUP_OFFLINE")


# ---------------------------------------------------------------- what members are configured to


def strategy_rolled_out(fleet: Fleet) -> None:
    """Another strategy comes pod by pod; for some minutes the group is mixed."""
    other = {"AVG": "AVG_BY_CIRCLE"}.get(fleet.pods[0].strategy, "AVG")
    if fleet.random.random() < 0.6:
        fleet.habits.running_infos = True
    step = fleet.between(40, 200)
    fleet.deploy(fleet.pods, fleet.between(200, 400), step, strategy=other)
    fleet.faults.add("STRATEGY_MISMATCH")
    if not fleet.habits.running_infos:
        fleet.hidden.append(Hidden("no running infos: nothing shows a client's strategy"))
    elif (len(fleet.pods) - 1) * step >= _SURELY_SEEN:
        fleet.must_if_lasting["STRATEGY_MISMATCH"] = ("T", "ORPHANED")


def subscriptions_differ(fleet: Fleet) -> None:
    """Some members do not subscribe to U; heartbeats or running infos show who."""
    if not fleet.habits.running_infos:
        fleet.habits.heartbeats = True
    without = _subscribe_some_to_u(fleet)
    fleet.plant("SUBSCRIPTION_MISMATCH", -MINUTE, pods=without, must=False)
    if "DUPLICATE_CLIENT_ID" not in fleet.faults:
        # Else the orphans of U may be those of the id.
        fleet.must_if_lasting["SUBSCRIPTION_MISMATCH"] = ("U", "ORPHANED")


def subscriptions_differ_lists_only(fleet: Fleet) -> None:
    """Some members do not subscribe to U, and the group's table alone can show it."""
    fleet.habits.heartbeats = fleet.habits.running_infos = False
    for pod in fleet.pods:
        pod.strategy = "AVG"
    _subscribe_some_to_u(fleet)
    fleet.faults.add("SUBSCRIPTION_MISMATCH")
    fleet.of_somebody.add("SUBSCRIPTION_MISMATCH")


def table_never_shows_topic(fleet: Fleet) -> None:
    """The member without U always heartbeats last, so that no list of a broker ever shows U."""
    fleet.habits.running_infos, fleet.habits.heartbeats = True, False
    fleet.habits.topics_of_lists = fleet.random.random() < 0.5
    fleet.habits.offsets = False
    fleet.give_u()
    # All start at a time, so that all their heartbeats come at a time, in this order.
    began = -2 * MINUTE - fleet.between(0, 30)
    for number, pod in enumerate(fleet.pods):
        pod.starts = began + number * 10
    last = fleet.pods[-1]
    last.subscriptions = frozenset({"T", RETRY})
    fleet.plant("SUBSCRIPTION_MISMATCH", -MINUTE, pods=[last])
    if fleet.habits.topics_of_lists:
        reason = "nobody asked for the route of the topic, which no list shows"
        fleet.hidden.append(Hidden(reason, topics=frozenset({"U"})))


def subscription_dropped_and_back(fleet: Fleet) -> None:
    """A member drops U for some minutes."""
    if not fleet.habits.running_infos:
        fleet.habits.heartbeats = True
        fleet.habits.heard = fleet.random.choice([None, tuple(fleet.broker_names[:1])])
    both = fleet.give_u()
    pod = fleet.random.choice(fleet.pods)
    began = fleet.between(240, 500)
    fleet.do(began, pod, lambda process: process.subscribe(frozenset({"T", RETRY})))
    fleet.do(began + fleet.between(300, 700), pod, lambda process: process.subscribe(both))
    fleet.faults.add("SUBSCRIPTION_MISMATCH")
    fleet.must_if_lasting["SUBSCRIPTION_MISMATCH"] = ("U", "ORPHANED")


# ---------------------------------------------------------------- the network and the servers


def unreachable_broker(fleet: Fleet) -> None:
    """One member does not reach one broker for a long time."""
    pod, name = _steady_pod(fleet), fleet.random.choice(fleet.broker_names)
    seen = fleet.random.random() < 0.5
    began = fleet.between(120, 400)
    lost = fleet.between(600, 1200)

    def find() -> None:
        if name in pod.running.unreachable:
            # The very process that lost it: it was not replaced in between.
            fleet.must.add("BROKER_VIEW_DIVERGENCE")
        pod.running.find(name)

    fleet.lose_broker(pod, name, began, seen=seen)
    fleet.clock.at(began + lost, find)
    fleet.plant(
        "BROKER_VIEW_DIVERGENCE", began, began + lost, pods=[pod], broker_names=[name], must=False
    )


def flapping_connection(fleet: Fleet) -> None:
    """One member loses a broker for a minute or three, again and again."""
    pod, name = _steady_pod(fleet), fleet.random.choice(fleet.broker_names)
    seen = fleet.random.random() < 0.5
    time = fleet.between(100, 250)
    while time < fleet.until:
        back = time + fleet.between(60, 180)
        fleet.lose_broker(pod, name, time, seen=seen)
        fleet.do(back, pod, lambda process: process.find(name))
        time = back + fleet.between(50, 120)
    fleet.faults |= {"BROKER_VIEW_DIVERGENCE", "RECONNECTING", "STALE_CHANNEL", "FLAPPING"}
    if seen:
        # Else the broker keeps the channel over most of the losses, and its list shows few.
        fleet.must.add("BROKER_VIEW_DIVERGENCE|RECONNECTING|FLAPPING")


def group_not_on_a_broker(fleet: Fleet) -> None:
    """A broker, perhaps a new one, does not know the group (autoCreateSubscriptionGroup=false)."""
    name = fleet.broker_names[-1]
    for broker in fleet.world.replicas(name):
        broker.knows_group = False
    queues = fleet.world.topics[name].pop("T")
    fleet.world.topics[name].pop(RETRY)
    fleet.world.register(name)

    def add() -> None:
        fleet.world.topics[name]["T"] = queues
        fleet.world.register(name)

    fleet.clock.at(fleet.random.choice([-(10**9), fleet.between(200, 500)]), add)
    fleet.faults |= {"GROUP_NOT_ON_BROKER", "BROKER_VIEW_DIVERGENCE"}
    fleet.must.add("GROUP_NOT_ON_BROKER")


def nameservers_differ(fleet: Fleet) -> None:
    """A broker registers with one of two nameservers only, for a long time."""
    name = fleet.random.choice(fleet.broker_names)
    for number, pod in enumerate(fleet.pods):
        pod.nameserver = fleet.world.nameservers[number % 2]
    _unregister(fleet, name)
    # Clients send heartbeats to the brokers of their routes alone, so that the lists differ too.
    fleet.faults.add("BROKER_VIEW_DIVERGENCE")


def one_nameserver_for_all(fleet: Fleet) -> None:
    """The same, and all clients use one of the two: mostly the one that has the broker."""
    name = fleet.random.choice(fleet.broker_names)
    used = 0 if fleet.random.random() < 0.7 else 1
    for pod in fleet.pods:
        pod.nameserver = fleet.world.nameservers[used]
    _unregister(fleet, name)
    if used:
        # Nobody sends heartbeats to the broker any more, as if it did not have the group.
        fleet.faults |= {"BROKER_VIEW_DIVERGENCE", "GROUP_NOT_ON_BROKER"}


def nameserver_restarted(fleet: Fleet) -> None:
    """A nameserver starts anew, and a broker takes its time to register there."""
    world = fleet.world
    began = fleet.between(200, 400)
    back = began + fleet.between(2, 60)
    name = fleet.random.choice(fleet.broker_names)
    late = fleet.random.choice([None, fleet.between(300, 900)])
    if late is not None:
        world.clock.at(began, lambda: world.registers_with.update({name: world.nameservers[:1]}))
        fleet.clock.at(back + late, lambda: _registers_again(fleet, name))
        fleet.plant("ROUTE_DIVERGENCE", back, back + late, must=late > _SURELY_SEEN)
    fleet.clock.at(began, lambda: world.stop_nameserver(world.nameservers[1]))
    fleet.clock.at(back, lambda: world.start_nameserver(world.nameservers[1]))
    # Who asks the second one sends no heartbeats to the broker meanwhile.
    fleet.faults |= {"BROKER_VIEW_DIVERGENCE", "ROUTE_DIVERGENCE"}


def master_away(fleet: Fleet) -> None:
    """The master of a broker is away for long; Java's clients read from its slave."""
    world = fleet.world
    name = fleet.broker_names[0]
    world.have_slave(name)
    world.slaves_act_as_master = fleet.random.random() < 0.4
    began = fleet.between(200, 400)
    ends = began + fleet.between(300, 900)
    fleet.clock.at(began, lambda: world.stop_master(name))
    fleet.clock.at(ends, lambda: world.start_broker(name))
    fleet.faults |= {"QUEUES_LEFT_ROUTE"}


def master_away_from_go(fleet: Fleet) -> None:
    """The same; Go's client reads from no slave, so that nobody reads the broker's queues."""
    for pod in fleet.pods:
        pod.reads_from_slaves, pod.language, pod.strategy = False, "GO", "AVG"
    master_away(fleet)
    # An acting master is a master to every client.
    fleet.world.slaves_act_as_master = False
    fleet.faults.add("MASTER_AWAY")
    fleet.must_if_lasting["MASTER_AWAY"] = ("T", "ORPHANED")


def broker_divides(fleet: Fleet) -> None:
    """``clientRebalance=false`` without POP: the broker divides, by the same rule; and an id that
    two processes share stacks all the same.
    """
    fleet.habits.running_infos = True
    for pod in fleet.pods:
        pod.divides, pod.version = False, 433
    fleet.id_style = "nano"
    if fleet.random.random() < 0.7:
        two_processes_with_one_id(fleet)
        for pod in fleet.pods:
            pod.version = 433


def pulls_beside_pop(fleet: Fleet) -> None:
    """The group's mode is POP, and one member divides the queues itself and pulls."""
    fleet.habits.running_infos = True
    for pod in fleet.pods:
        pod.version, pod.strategy = 433, "AVG"
    for pod in fleet.pods[1:]:
        pod.pops = True
    fleet.plant("MIXED_REQUEST_MODE", -MINUTE, pods=fleet.pods[:1])
    reason = "POP shares the queues by design"
    fleet.hidden.append(Hidden(reason, topics=frozenset({"T"}), kinds=("DUPLICATE",)))


def queue_count_changes(fleet: Fleet) -> None:
    """The topic gets more queues, and fewer again."""
    before = fleet.world.topics["broker-a"]["T"]
    began = fleet.between(200, 500)
    fleet.clock.at(began, lambda: fleet.world.set_queues("T", before + 4))
    if fleet.random.random() < 0.5:
        again = began + fleet.between(200, 500)
        fleet.clock.at(again, lambda: fleet.world.set_queues("T", max(before - 1, 1)))
    fleet.faults.add("QUEUES_LEFT_ROUTE")


def broker_restarted(fleet: Fleet, began: Millis | None = None) -> None:
    """A broker is away for a minute or two."""
    name = fleet.random.choice(fleet.broker_names)
    began = fleet.between(200, 600) if began is None else began
    fleet.clock.at(began, lambda: fleet.world.stop_broker(name))
    fleet.clock.at(began + fleet.between(20, 130), lambda: fleet.world.start_broker(name))
    fleet.faults |= {"QUEUES_LEFT_ROUTE"}


def new_route_ignored(fleet: Fleet) -> None:
    """Clients do not follow a new route until they restart (client-go before 2.1.2)."""
    ignoring = fleet.pods if fleet.random.random() < 0.6 else fleet.pods[:1]
    for pod in ignoring:
        pod.follows_routes = False
    more = fleet.world.topics["broker-a"]["T"] + fleet.random.choice([2, 4])
    began = fleet.between(200, 400)
    fleet.clock.at(began, lambda: fleet.world.set_queues("T", more))
    if fleet.random.random() < 0.5:
        again = fleet.until * 3 // 4
        for number, pod in enumerate(fleet.pods):
            restart = partial(fleet.replace, pod, "stop")
            fleet.clock.at(again + number * 5 * SECOND, restart)
    fleet.faults |= {"QUEUE_NOT_HELD", "ALLOCATES_OTHERWISE", "ROUTE_DIVERGENCE"}
    if fleet.habits.running_infos:
        if ignoring is fleet.pods:
            fleet.must.add("QUEUE_NOT_HELD")
    elif fleet.habits.offsets:
        reason = "offsets do not show who reads twice"
        fleet.hidden.append(Hidden(reason, kinds=("DUPLICATE",)))
    else:
        fleet.hidden.append(Hidden("neither running infos nor offsets: nothing shows what is held"))


# ---------------------------------------------------------------- collectors


def wide_rounds(fleet: Fleet) -> None:
    """The brokers are asked some seconds apart, while members come and go."""
    _wide_rounds(fleet)
    scaled_in_order(fleet)


def two_collectors(fleet: Fleet) -> None:
    """Two collectors, each with its own nameserver and its own rounds."""
    fleet.is_collected_twice = True


def missing_polls(fleet: Fleet) -> None:
    """A tenth to a fifth of all answers is missing."""
    fleet.habits.missing = fleet.random.uniform(0.08, 0.2)


# ---------------------------------------------------------------- masters, locks and offsets


def master_crashed(fleet: Fleet) -> None:
    """A broker's master dies; nameservers have it for two minutes more, perhaps no slave is there.

    Clients keep its address, and what they hold, for as long as their routes name it.
    """
    world, name = fleet.world, fleet.broker_names[0]
    if len(world.replicas(name)) == 1 and fleet.random.random() < 0.5:
        world.have_slave(name)
    began = fleet.between(200, 400)
    fleet.clock.at(began, lambda: world.stop_master(name, in_order=False))
    # Whether clients reach it meanwhile no list shows.
    fleet.unseen.append((began, began + BROKER_EXPIRES_AFTER + 10 * SECOND))
    ends = began + fleet.between(240, 900)
    fleet.clock.at(ends, lambda: world.start_broker(name))
    fleet.faults |= {"QUEUES_LEFT_ROUTE", "BROKER_VIEW_DIVERGENCE", "ROUTE_DIVERGENCE"}


def in_order(fleet: Fleet) -> None:
    """All consume in order: each queue is locked at its master; a deploy passes the locks on."""
    _in_order(fleet)
    fleet.replace_all(fleet.random.choice(["stop", "kill"]))


def in_order_without_master(fleet: Fleet) -> None:
    """The same, and a broker's master is away: what is locked there is nobody's, in Java too.

    Nothing comes to such a broker either.
    """
    _in_order(fleet)
    if fleet.random.random() < 0.6:
        master_away(fleet)
    else:
        master_crashed(fleet)
    if fleet.world.slaves_act_as_master:
        # An acting master gives locks as any other does.
        return
    fleet.faults.add("MASTER_AWAY")
    if not fleet.habits.running_infos:
        # Where messages wait offsets show that nobody reads them.
        reason = "no running infos: nothing shows that consumers lock their queues"
        topics = frozenset({RETRY}) if fleet.habits.offsets else None
        fleet.hidden.append(Hidden(reason, topics, kinds=("ORPHANED",)))


def offsets_back_at_restart(fleet: Fleet) -> None:
    """A broker restarts and has lost the group's offsets: it reads all of its queues again."""
    fleet.habits.offsets = True
    name, began = fleet.random.choice(fleet.broker_names), fleet.between(300, 600)
    back = began + fleet.between(60, 130)
    fleet.clock.at(began, lambda: fleet.world.stop_broker(name))
    fleet.clock.at(back, lambda: fleet.world.start_broker(name, loses_offsets=True))
    _plant_went_back(fleet, name, began, back)
    fleet.faults.add("QUEUES_LEFT_ROUTE")


def offsets_back_at_failover(fleet: Fleet) -> None:
    """A slave becomes the master, with offsets of some minutes ago."""
    fleet.habits.offsets = True
    world, name = fleet.world, fleet.broker_names[0]
    world.have_slave(name)
    began = fleet.between(300, 600)
    fleet.clock.at(began, lambda: world.fail_over(name, fleet.between(300, 1800)))
    fleet.clock.at(began + fleet.between(100, 300), lambda: world.start_broker(name))
    _plant_went_back(fleet, name, began, began)


def never_committed(fleet: Fleet) -> None:
    """A topic with messages of before; nothing comes, and the group has no offset of it."""
    fleet.habits.offsets = True
    fleet.give_u()
    fleet.habits.quiet = frozenset({"U"})


def one_member_suspended(fleet: Fleet) -> None:
    """It tries to pull and asks for nothing: its queues stall. It keeps them whoever comes."""
    _one_member(fleet, partial(Process.becomes, suspended=True))
    fleet.faults.add("ALLOCATES_OTHERWISE")
    fleet.hidden.append(NOTHING_RETRIED)


def all_members_suspended(fleet: Fleet) -> None:
    """The application suspends all of its consumers."""
    fleet.habits.offsets = True
    began = fleet.between(200, 500)
    for pod in fleet.pods:
        fleet.do(began, pod, partial(Process.becomes, suspended=True))
    fleet.plant(NOT_CONSUMING, began)
    fleet.plant("FROZEN_PROCESS", began, pods=fleet.pods, must=False)
    fleet.hidden.append(NOTHING_RETRIED)


def one_message_stuck(fleet: Fleet) -> None:
    """One message is not finished, and newer ones of its queue are: its offset does not move."""
    fleet.habits.offsets = True
    pod, began = fleet.random.choice(fleet.pods), fleet.between(200, 500)

    def stick(process: Process) -> None:
        mine = sorted(queue for queue in process.in_table if queue.topic != RETRY)
        if mine:
            process.stick(fleet.random.choice(mine))

    fleet.do(began, pod, stick)
    # The only queue of a client looks as its process does.
    fleet.faults.add("FROZEN_PROCESS")


def consumer_shut(fleet: Fleet) -> None:
    """The consumer of the group is shut; its process runs on, and other groups keep it listed."""
    fleet.habits.offsets = fleet.habits.running_infos = True
    pod, began = (
        fleet.random.choice(fleet.pods[: 2 * fleet.world.topics["broker-a"]["T"]]),
        fleet.between(200, 500),
    )
    fleet.do(began, pod, Process.shut_consumer)
    fleet.plant("QUEUE_NOT_HELD", began, pods=[pod], must=False)
    fleet.must_if_lasting["QUEUE_NOT_HELD"] = ("T", "ORPHANED")


def behind_proxy(fleet: Fleet) -> None:
    """No broker ever lists a member; for a time nobody is there, or one queue is stuck."""
    fleet.habits.behind_proxy = fleet.habits.offsets = True
    fleet.habits.heartbeats = fleet.habits.running_infos = False
    began = fleet.between(200, 500)
    ends = began + fleet.between(400, 800)
    if fleet.random.random() < 0.3:
        one_message_stuck(fleet)
    elif fleet.random.random() < 0.5:
        for pod in fleet.pods:
            fleet.do(began, pod, Process.stop)
            fleet.clock.at(ends, partial(fleet.start, pod))
        fleet.plant("GROUP_OFFLINE", began, ends)
    fleet.faults |= {"UNLISTED_CONSUMER", "GROUP_OFFLINE"}
    fleet.hidden.append(NOTHING_RETRIED)


def vm_deploys_in_coarse_rounds(fleet: Fleet) -> None:
    """VMs with fixed ids are deployed two or three times in an hour, polled each 300 s."""
    _vms(fleet)
    fleet.habits.interval, fleet.until = 300 * SECOND, 100 * MINUTE
    time = fleet.between(300, 900)
    for _ in range(fleet.random.choice([2, 3])):
        time = _restart_vms(fleet, time) + fleet.between(600, 1200)


# ---------------------------------------------------------------- one process or several


def deploys_while_broker_restarts(fleet: Fleet) -> None:
    """VMs with fixed ids are deployed twice, and a broker restarts while they are: all is well."""
    _vms(fleet)
    began = fleet.between(200, 400)
    broker_restarted(fleet, began + fleet.between(0, 120))
    ends = _restart_vms(fleet, began)
    again = ends + fleet.between(120, 900)
    broker_restarted(fleet, again + fleet.between(-20, 60))
    _restart_vms(fleet, again)
    fleet.faults.discard("FLAPPING")


def three_deploys(fleet: Fleet) -> None:
    """A group is deployed three times within 45 minutes."""
    fleet.until = max(fleet.until, 75 * MINUTE)
    keeps_id = fleet.random.random() < 0.5
    time = fleet.between(200, 500)
    for _ in range(3):
        fleet.replace_all("stop", keeps_id=keeps_id, began=time)
        time += fleet.between(600, 1200)
    fleet.faults.discard("FLAPPING")


def reconnecting_while_broker_restarts(fleet: Fleet) -> None:
    """One process connects anew again and again, and a broker restarts."""
    reconnecting(fleet)
    broker_restarted(fleet)


def reconnecting_faster(fleet: Fleet) -> None:
    """One process connects anew each 35 to 55 s: brokers list it three or four times."""
    _reconnects(fleet, _steady_pod(fleet), 35, 55)


def shared_id_that_reconnects(fleet: Fleet) -> None:
    """Two processes have one id, and one of them connects anew again and again."""
    pods = _share_an_id(fleet)
    _reconnects(fleet, pods[0], 35, 55)
    fleet.plant("DUPLICATE_CLIENT_ID", -MINUTE, pods=pods, must=False)
    fleet.must.discard("RECONNECTING")
    fleet.must.add("DUPLICATE_CLIENT_ID|RECONNECTING")


def shared_id_of_another_strategy(fleet: Fleet) -> None:
    """Two processes have one id, and nothing shows that the group does not divide by AVG."""
    fleet.habits.running_infos = False
    two_processes_with_one_id(fleet)
    strategy = fleet.random.choice(["AVG_BY_CIRCLE", "CONSISTENT_HASH"])
    for pod in fleet.pods:
        pod.strategy = strategy
    fleet.must_if_lasting.clear()
    fleet.must.add("DUPLICATE_CLIENT_ID")
    fleet.hidden.append(Hidden("no running infos: nothing shows a client's strategy"))


# ---------------------------------------------------------------- what they share


def _reconnects(fleet: Fleet, pod: Pod, least: float, most: float) -> None:
    """Its id is the same all the time, and no old connection is seen to close."""
    fleet.id_style = "custom"
    time = fleet.between(60, 300)
    while time < fleet.until:
        fleet.do(time, pod, Process.reconnect)
        time += fleet.between(least, most)
    fleet.faults.add("STALE_CHANNEL")
    fleet.plant("RECONNECTING", 0, pods=[pod])


def _one_member(fleet: Fleet, stands: Callable[[Process], object]) -> None:
    fleet.habits.offsets = True
    pod, began = fleet.random.choice(fleet.pods), fleet.between(200, 500)
    fleet.do(began, pod, stands)
    fleet.plant("FROZEN_PROCESS", began, pods=[pod], must=False)


def _steady_pod(fleet: Fleet) -> Pod:
    """Not the one that is replaced again and again (``crash_loop``)."""
    return fleet.random.choice(fleet.pods[:-1])


def _times(fleet: Fleet, least: float, most: float) -> Iterator[Millis]:
    time = fleet.between(100, 300)
    while time < fleet.until:
        yield time
        time += fleet.between(least, most)


def _unregister(fleet: Fleet, name: str) -> None:
    """The second nameserver does not have the broker for a long time."""
    world = fleet.world
    began = fleet.between(120, 400)
    ends = began + fleet.between(500, 1400)

    def leave() -> None:
        world.registers_with[name] = world.nameservers[:1]
        world.register(name)

    fleet.clock.at(began, leave)
    fleet.clock.at(ends, lambda: _registers_again(fleet, name))
    fleet.plant("ROUTE_DIVERGENCE", began, ends)


def _registers_again(fleet: Fleet, name: str) -> None:
    fleet.world.registers_with.pop(name, None)
    fleet.world.register(name)


def _plant_went_back(fleet: Fleet, name: str, left: Millis, back: Millis) -> None:
    """It is seen from the last poll before the broker left to the first after it came back."""
    since = left - fleet.habits.interval
    fleet.plant("OFFSETS_WENT_BACK", since, back + 4 * MINUTE, broker_names=[name])


def _in_order(fleet: Fleet) -> None:
    for pod in fleet.pods:
        pod.orderly = True


def _vms(fleet: Fleet) -> None:
    """Up to a dozen fixed ids, and a collector that asks broker after broker."""
    fleet.id_style = "custom"
    fleet.habits.pause = fleet.random.choice([100, 1000, 3000, 5000])
    fleet.habits.interval = MINUTE
    while len(fleet.pods) < fleet.random.choice([6, 9, 12]):
        fleet.pods.append(fleet.new_pod())
    for number, pod in enumerate(fleet.pods):
        pod.client_id = f"{pod.host}@g-{number}"


def _restart_vms(fleet: Fleet, time: Millis) -> Millis:
    """One after the other; gives when the last one is back."""
    step = fleet.random.choice([15, 25, 40]) * SECOND
    for pod in fleet.pods:
        _restart_vm(fleet, time, pod)
        time += step
    fleet.faults.add("FLAPPING")
    return time


def _restart_vm(fleet: Fleet, time: Millis, pod: Pod) -> None:
    """Away for a while, under the same id; with a clean end, or killed."""
    how = fleet.random.choice(["stop", "stop", "kill"])
    fleet.do(time, pod, lambda process: process.end(how))
    fleet.clock.at(time + fleet.between(15, 35), partial(fleet.restart, pod, pod.client_id))


def _wide_rounds(fleet: Fleet) -> None:
    fleet.habits.pause = fleet.between(2, 7)
    fleet.habits.info_pause = fleet.between(0.2, 1)
    fleet.habits.interval = MINUTE


def _churn(fleet: Fleet, pod: Pod, lives: tuple[float, float], waits: tuple[float, float]) -> None:
    how = fleet.random.choice(["stop", "kill"])
    time = fleet.between(10, 60)
    while time < fleet.until:
        fleet.do(time, pod, lambda process: process.end(how))
        time += fleet.between(*waits)
        fleet.clock.at(time, partial(fleet.restart, pod))
        time += fleet.between(*lives)


def _share_an_id(fleet: Fleet) -> list[Pod]:
    """The pods of processes that get one id.

    Old clients in containers (``172.17.0.1@1``), restored images, or a fixed instance name.
    """
    client_id = fleet.random.choice(["172.17.0.1@1", "10.2.0.10@app", "10.2.0.10@1#55555555555"])
    pods = fleet.pods[: fleet.random.choice([2, 2, 2, 3]) if len(fleet.pods) > 3 else 2]
    for pod in pods:
        pod.client_id = client_id
        if client_id == "172.17.0.1@1":
            pod.version = 373
    return pods


def _subscribe_some_to_u(fleet: Fleet) -> list[Pod]:
    """The pods of those that do not."""
    fleet.give_u()
    # Of processes with one id only one answers: they subscribe alike.
    candidates = [pod for pod in fleet.pods if pod.client_id is None] or fleet.pods[:1]
    most = min(len(candidates), len(fleet.pods) - 1)
    without = fleet.random.sample(candidates, fleet.random.randint(1, most))
    for pod in without:
        pod.subscriptions = frozenset({"T", RETRY})
    return without


#: By name, in the order in which they stand here: seeds count on it.
SITUATIONS: dict[str, Callable[[Fleet], None]] = {
    name: each
    for name, each in globals().items()
    if isfunction(each) and each.__module__ == __name__ and not name.startswith("_")
} | BEYOND_LISTS
#: Two or three of these can happen to one fleet. Not those that change the pods' ids or
#: subscriptions in ways that would undo each other.
MIXES = (
    ("crash_loop", "unreachable_broker"),
    ("crash_loop", "reconnecting"),
    ("rolling_deploy", "unreachable_broker"),
    ("rolling_deploy", "two_processes_with_one_id"),
    ("rolling_silent", "queue_count_changes"),
    ("reconnecting", "subscriptions_differ"),
    ("two_processes_with_one_id", "subscriptions_differ"),
    ("two_processes_with_one_id", "unreachable_broker"),
    ("subscriptions_differ", "unreachable_broker"),
    ("nameservers_differ", "two_collectors"),
    ("nameservers_differ", "rolling_deploy"),
    ("flapping_connection", "missing_polls"),
    ("unreachable_broker", "missing_polls"),
    ("scaled_to_zero_and_back", "missing_polls"),
    ("group_not_on_a_broker", "missing_polls"),
    ("many_ghosts", "two_collectors"),
    ("broker_restarted", "rolling_deploy"),
    ("broker_restarted", "unreachable_broker"),
    ("strategy_rolled_out", "wide_rounds"),
    ("reconnecting", "wide_rounds"),
    ("rolling_deploy_in_wide_rounds", "two_collectors"),
    ("subscription_dropped_and_back", "missing_polls"),
    ("new_route_ignored", "missing_polls"),
    ("frozen_ghost", "scaled_in_order"),
    ("stateful_set_silent", "missing_polls"),
    ("flapping_connection", "rolling_deploy", "wide_rounds"),
    ("reconnecting", "crash_loop", "missing_polls"),
    ("nameservers_differ", "crash_loop", "missing_polls"),
    ("subscriptions_differ", "scaled_in_order", "two_collectors"),
    ("unreachable_broker", "stateful_set", "missing_polls"),
    ("strategy_rolled_out", "crash_loop"),
    ("subscriptions_differ_lists_only", "crash_loop"),
    ("unreachable_broker", "wide_rounds"),
    ("nameservers_differ", "wide_rounds"),
    ("two_processes_with_one_id", "wide_rounds", "missing_polls"),
    ("reconnecting", "rolling_deploy"),
    ("scaled_to_zero_and_back", "wide_rounds"),
    ("group_not_on_a_broker", "crash_loop", "wide_rounds"),
    ("unreachable_broker", "two_collectors"),
    ("two_processes_in_a_busy_group", "two_collectors", "missing_polls"),
    ("one_nameserver_for_all", "rolling_deploy"),
    ("master_away", "rolling_deploy"),
    ("vm_rolling_restart", "master_away"),
    ("nameserver_restarted", "scaled_in_order"),
    ("all_members_blocked", "missing_polls"),
    ("in_order_without_master", "rolling_deploy"),
    ("offsets_back_at_restart", "missing_polls"),
    ("one_message_stuck", "rolling_deploy"),
    ("one_member_suspended", "scaled_in_order"),
    ("deploys_while_broker_restarts", "two_collectors"),
    ("three_deploys", "missing_polls"),
    ("reconnecting_faster", "missing_polls"),
    ("own_strategy_with_gap", "rolling_deploy"),
    ("own_strategy_with_overlap", "missing_polls"),
    ("assigned_with_gap_and_overlap", "missing_polls"),
    ("controller_fails_over", "rolling_deploy"),
    ("static_topic_blocked", "missing_polls"),
    ("go_filters_by_tag", "rolling_deploy"),
)
