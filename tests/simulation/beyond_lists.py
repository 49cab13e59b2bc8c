"""Situations that lists and routes alone do not decide, each beside one that looks like it.

Own strategies, ``assign()``, static topics, controllers, filters of old clients, offsets that are
gone: of 5.x, but for the filters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import isfunction

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clients import OWN, OWN_WITH_GAP, OWN_WITH_OVERLAP, Process
from tests.simulation.clock import MINUTE, SECOND, Millis
from tests.simulation.fleets import NOTHING_RETRIED, Fleet, Hidden
from tests.simulation.world import RETRY

#: An ordinal of ``MQVersion`` that 5.3.3 has.
_V5_3_3 = 479
#: What native Go clients say in every version.
_GO = 317
#: A queue that nobody holds, or several do, where the shares cannot be computed.
CHOSEN = ("MANUAL_ASSIGNMENT", "STRATEGY_MISMATCH", "QUEUE_NOT_HELD", "ALLOCATES_OTHERWISE")


# ---------------------------------------------------------------- who holds what


def own_strategy(fleet: Fleet) -> None:
    """All divide the queues by a strategy of their own, which is whole; a deploy in between."""
    _own_strategy(fleet, OWN)
    fleet.replace_all("stop")
    fleet.faults.clear()


def own_strategy_with_gap(fleet: Fleet) -> None:
    """Their own strategy forgets a queue."""
    _own_strategy(fleet, OWN_WITH_GAP)
    fleet.faults |= set(CHOSEN)
    fleet.hidden.append(NOTHING_RETRIED)


def own_strategy_with_overlap(fleet: Fleet) -> None:
    """Their own strategy gives everybody the first queue."""
    _own_strategy(fleet, OWN_WITH_OVERLAP)
    fleet.faults |= set(CHOSEN)


def assigned(fleet: Fleet) -> None:
    """Each was given its queues by ``assign()``: all of them, and none twice."""
    _assign(fleet)


def assigned_with_gap(fleet: Fleet) -> None:
    """The same, and nobody was given one of the queues."""
    _assign(fleet, forgotten=1)
    fleet.faults |= set(CHOSEN)


def assigned_with_overlap(fleet: Fleet) -> None:
    """The same, and two were given one queue."""
    _assign(fleet, shared=1)
    fleet.faults |= set(CHOSEN)


def assigned_with_gap_and_overlap(fleet: Fleet) -> None:
    """One queue is nobody's and another one has two readers."""
    _assign(fleet, forgotten=1, shared=1)
    fleet.faults |= set(CHOSEN)


# ---------------------------------------------------------------- masters and queues


def controller_fails_over(fleet: Fleet) -> None:
    """A master dies and its slave is the master within 26 s; the old one comes back as a slave."""
    world, name = fleet.world, fleet.broker_names[0]
    fleet.habits.is_of_5 = True
    world.have_slave(name)
    if fleet.random.random() < 0.5:
        for pod in fleet.pods:
            pod.orderly = True
    began = fleet.between(200, 500)
    fleet.clock.at(began, lambda: world.elect(name, fleet.between(10, 26)))
    fleet.clock.at(began + fleet.between(100, 900), lambda: world.start_broker(name))


def controller_elects_nobody(fleet: Fleet) -> None:
    """A master dies and no slave may follow it: who needs a master reads nothing of the broker."""
    world, name = fleet.world, fleet.broker_names[0]
    fleet.habits.is_of_5 = True
    world.have_slave(name)
    for pod in fleet.pods:
        pod.reads_from_slaves, pod.language, pod.strategy = False, "GO", "AVG"
    began = fleet.between(200, 400)
    fleet.clock.at(began, lambda: world.stop_master(name))
    fleet.clock.at(began + fleet.between(600, 900), lambda: world.start_broker(name))
    fleet.faults |= {"MASTER_AWAY", "QUEUES_LEFT_ROUTE"}
    fleet.must_if_lasting["MASTER_AWAY"] = ("T", "ORPHANED")


def static_topic(fleet: Fleet) -> None:
    """The topic is static: clients hold logical queues, and brokers count by physical ones."""
    _static(fleet)
    fleet.replace_all("stop")
    fleet.faults.clear()


def static_topic_blocked(fleet: Fleet) -> None:
    """The same, and a listener hangs: its logical queues stand."""
    _static(fleet)
    _one_hangs(fleet)


# ---------------------------------------------------------------- offsets


def go_filters_by_tag(fleet: Fleet) -> None:
    """Old Go clients filter by tag, and nothing with the tag comes any more, or seldom does.

    They commit nothing over what the broker leaves out: offsets stand, and all is well.
    """
    last = fleet.between(-600, 400)
    seldom = fleet.random.choice([None, 15 * MINUTE])
    _old_go(fleet, lambda time: time - time % seldom if seldom else min(time, last))


def go_filters_and_hangs(fleet: Fleet) -> None:
    """Old Go clients filter by tag, what they want comes all the time, and a listener hangs."""
    _old_go(fleet, lambda time: time)
    _one_hangs(fleet)


def offsets_gone_while_away(fleet: Fleet) -> None:
    """A broker restarts without the offsets of a group that is away; then the group comes back."""
    began, back = _away_while_a_broker_restarts(fleet, keeps_offsets=False)
    fleet.plant("OFFSETS_GONE", began, back + 4 * MINUTE)
    # What it reads again from the first message on.
    fleet.faults.add("OFFSETS_WENT_BACK")


def broker_restarts_while_away(fleet: Fleet) -> None:
    """The same, and the broker has the offsets."""
    _away_while_a_broker_restarts(fleet, keeps_offsets=True)


# ---------------------------------------------------------------- what they share


def _own_strategy(fleet: Fleet, name: str) -> None:
    for pod in fleet.pods:
        pod.strategy = name
    _shows_who_holds(fleet)


def _shows_who_holds(fleet: Fleet) -> None:
    """Mostly: by running infos, and by what waits."""
    fleet.habits.running_infos = fleet.random.random() < 0.8
    fleet.habits.offsets = fleet.random.random() < 0.8
    if not fleet.habits.running_infos:
        fleet.hidden.append(Hidden("no running infos: nothing shows who holds a queue"))


def _assign(fleet: Fleet, *, forgotten: int = 0, shared: int = 0) -> None:
    """Who assigns has no retry topic."""
    world = fleet.world
    _shows_who_holds(fleet)
    for name in fleet.broker_names:
        world.topics[name].pop(RETRY)
        world.register(name)
    queues = [
        MessageQueue("T", name, number)
        for name in fleet.broker_names
        for number in range(world.topics[name]["T"])
    ]
    fleet.random.shuffle(queues)
    given, first = queues[forgotten:], queues[forgotten : forgotten + shared]
    # Who was given nothing sends no heartbeats: it knows no broker.
    del fleet.pods[len(given) :]
    for number, pod in enumerate(fleet.pods):
        pod.version, pod.strategy, pod.subscriptions = _V5_3_3, "AVG", frozenset()
        also = first if number == 1 else []
        pod.assigned = frozenset([*given[number :: len(fleet.pods)], *also])


def _static(fleet: Fleet) -> None:
    fleet.habits.is_of_5 = True
    fleet.habits.offsets = True
    fleet.world.make_static("T")
    for pod in fleet.pods:
        pod.version = _V5_3_3


def _one_hangs(fleet: Fleet) -> None:
    """One of those that hold queues of T."""
    fleet.habits.offsets = True
    queues = sum(topics["T"] for topics in fleet.world.topics.values())
    pod, began = fleet.random.choice(fleet.pods[:queues]), fleet.between(200, 500)
    fleet.do(began, pod, Process.block)
    fleet.plant("FROZEN_PROCESS", began, pods=[pod], must=False)


def _old_go(fleet: Fleet, last_match: Callable[[Millis], Millis]) -> None:
    fleet.habits.offsets = True
    fleet.world.last_match["T"] = last_match
    for pod in fleet.pods:
        pod.language, pod.version, pod.expression = "GO", _GO, "TagA"
        pod.strategy, pod.reads_from_slaves = "AVG", False


def _away_while_a_broker_restarts(fleet: Fleet, *, keeps_offsets: bool) -> tuple[Millis, Millis]:
    """When the broker is back, and when the group is."""
    world, name = fleet.world, fleet.random.choice(fleet.broker_names)
    fleet.habits.offsets = True
    from_first = fleet.random.random() < 0.5
    if from_first:
        fleet.habits.consume_from = "CONSUME_FROM_FIRST_OFFSET"
    stops = fleet.between(200, 400)
    leaves = stops + fleet.between(30, 90)
    is_back = leaves + fleet.between(20, 60)
    starts = is_back + fleet.between(300, 600)
    for pod in fleet.pods:
        fleet.do(stops + fleet.between(0, 3), pod, Process.stop)
        fleet.clock.at(starts + fleet.between(0, 5), partial(fleet.start, pod))
    fleet.clock.at(leaves, lambda: world.stop_broker(name))
    fleet.clock.at(is_back, lambda: world.start_broker(name))
    if not keeps_offsets:
        fleet.clock.at(
            is_back + SECOND, lambda: world.forget_offsets(name, reads_from_first=from_first)
        )
    fleet.faults |= {"GROUP_OFFLINE", "QUEUES_LEFT_ROUTE"}
    return is_back, starts


#: By name, in the order in which they stand here.
BEYOND_LISTS: dict[str, Callable[[Fleet], None]] = {
    name: each
    for name, each in globals().items()
    if isfunction(each) and each.__module__ == __name__ and not name.startswith("_")
}
