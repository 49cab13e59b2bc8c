"""What operators do: the remedies of a report, applied to the fleet that it is about.

At the end of its window the fleet goes on for ten minutes. What lasts then, and is named with a
remedy, is repaired as the remedy says; in the last three minutes every queue is to have one reader
who handles it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from tests.simulation.clock import MINUTE, Millis
from tests.simulation.fleets import Fleet, Pod
from tests.simulation.scoring import FaultRow
from tests.simulation.truth import common

#: How long it takes until channels that were left behind are gone, and what is looked at then.
SETTLES: Millis = 10 * MINUTE
_LOOKED_AT: Millis = 3 * MINUTE
_Remedy = Callable[[Fleet, FaultRow], None]


def worth_repairing(faults: Iterable[FaultRow]) -> list[FaultRow]:
    """What an operator would read and repair: it lasts, and is there at the end."""
    return [each for each in faults if each.lasts and each.ongoing and each.severity != "INFO"]


def apply_at_the_end(faults: Sequence[FaultRow]) -> Callable[[Fleet], None]:
    """A situation: at the end of the window all remedies are done."""

    def plan(fleet: Fleet) -> None:
        fleet.goes_on_for = SETTLES

        def repair() -> None:
            for each in faults:
                REMEDIES.get(each.fault, _nothing)(fleet, each)

        fleet.clock.at(fleet.until, repair)

    return plan


def is_healthy(fleet: Fleet, end: Millis) -> bool:
    """Whether in the minutes before each queue had one reader, who handled it."""
    start = end - _LOOKED_AT
    for queue, exists in fleet.truth.exists.items():
        there = list(exists.spans(bool, start, end))
        wrong = [
            *fleet.truth.unconsumed(queue, start, end),
            *fleet.truth.duplicated(queue, start, end),
        ]
        if common(there, wrong):
            return False
    return True


def _named(fleet: Fleet, client_ids: Collection[str]) -> list[Pod]:
    """The pods whose processes have these ids; of none all."""
    running = [pod for pod in fleet.pods if pod.process is not None]
    return [pod for pod in running if not client_ids or pod.running.client_id in client_ids]


def _restart(fleet: Fleet, pods: Iterable[Pod]) -> None:
    for pod in pods:
        fleet.replace(pod, "stop")


def _change(name: str, value: Callable[[Fleet, list[Pod]], object]) -> _Remedy:
    """The named members are deployed with another value."""

    def remedy(fleet: Fleet, fault: FaultRow) -> None:
        pods = _named(fleet, fault.client_ids)
        others = [pod for pod in fleet.pods if pod not in pods]
        chosen = value(fleet, others or fleet.pods)
        for pod in pods:
            setattr(pod, name, chosen)
        _restart(fleet, pods)

    return remedy


def _nothing(fleet: Fleet, fault: FaultRow) -> None:
    """It passes by itself, or what comes again and again was made to end with the window."""


def _own_ids(fleet: Fleet, fault: FaultRow) -> None:
    fleet.id_style = "nano"
    pods = _named(fleet, fault.client_ids)
    for pod in pods:
        pod.client_id = None
    _restart(fleet, pods)


def _restart_named(fleet: Fleet, fault: FaultRow) -> None:
    for pod in (pods := _named(fleet, fault.client_ids)):
        # A client that is updated follows new routes.
        pod.follows_routes = True
    _restart(fleet, pods)


def _reach(fleet: Fleet, fault: FaultRow) -> None:
    for pod in _named(fleet, fault.client_ids):
        for name in fault.broker_names:
            pod.running.find(name)


def _register(fleet: Fleet, _: FaultRow) -> None:
    fleet.world.registers_with.clear()
    for name in fleet.broker_names:
        fleet.world.register(name)


def _masters(fleet: Fleet, fault: FaultRow) -> None:
    for name in fault.broker_names:
        fleet.world.start_broker(name)


def _have_group(fleet: Fleet, fault: FaultRow) -> None:
    if "bring the master" in fault.remedy:
        _masters(fleet, fault)
    elif "updateSubGroup" in fault.remedy:
        for broker in fleet.world.brokers:
            broker.knows_group = broker.knows_group or broker.name in fault.broker_names
    else:
        _restart(fleet, fleet.pods)


def _let_consume(fleet: Fleet, fault: FaultRow) -> None:
    # That one is to see whether the group may consume is no repair yet.
    if "updateSubGroup -n" in fault.remedy:
        fleet.world.set_consume_enabled(True)
    if "suspended" in fault.remedy:
        for pod in fleet.pods:
            pod.running.becomes(suspended=False)
    if "restart" in fault.remedy:
        _restart(fleet, fleet.pods)


def _start_all(fleet: Fleet, _: FaultRow) -> None:
    for pod in fleet.pods:
        if not pod.running.alive:
            fleet.start(pod)


def _one_filter(fleet: Fleet, _: FaultRow) -> None:
    for pod in fleet.pods:
        pod.expression = fleet.pods[0].expression
    _restart(fleet, fleet.pods)


REMEDIES: Mapping[str, _Remedy] = {
    "DUPLICATE_CLIENT_ID": _own_ids,
    "STRATEGY_MISMATCH": _change("strategy", lambda _, others: others[0].strategy),
    "SUBSCRIPTION_MISMATCH": _change(
        "subscriptions",
        lambda fleet, _: frozenset(t for pod in fleet.pods for t in pod.subscriptions),
    ),
    "MIXED_REQUEST_MODE": _change("pops", lambda *_: True),
    "FROZEN_PROCESS": _restart_named,
    "GHOST_MEMBER": _restart_named,
    "QUEUE_NOT_HELD": _restart_named,
    "ALLOCATES_OTHERWISE": _restart_named,
    "EXPRESSION_MISMATCH": _one_filter,
    "BROKER_VIEW_DIVERGENCE": _reach,
    "ROUTE_DIVERGENCE": _register,
    "MASTER_AWAY": _masters,
    "GROUP_NOT_ON_BROKER": _have_group,
    "GROUP_NOT_CONSUMING": _let_consume,
    "GROUP_OFFLINE": _start_all,
}
