"""From the members in the brokers' lists to the processes behind them.

A process has one connection per broker, with another port on each, so processes cannot be counted
by their addresses. Within one broker's list, though, every connection is one process, or a stale
channel of one that reconnected: how many processes use a client id is therefore what two brokers'
lists confirm.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from rebalance_core.message_queue import bytewise_order_differs
from rebalance_core.state import BROADCASTING, Member, State
from rebalance_core.strategy_rules import ResolvedStrategy, StrategyRules


@dataclass(frozen=True, slots=True)
class Process:
    """Processes of a group that are alike: the same client id, strategy and subscription.

    ``count`` of them stand behind the id, each of which draws its views on its own.
    """

    client_id: str
    count: int
    subscribed: bool
    broadcasting: bool
    strategy: ResolvedStrategy


@dataclass(frozen=True, slots=True)
class StackedId:
    """A client id that stands more than once in some broker's list.

    ``copies`` is the most that one list has, ``processes`` how many the lists confirm: where that
    is 1, the other copies are stale channels of the one process.
    """

    client_id: str
    copies: int
    processes: int
    client_addrs: tuple[str, ...]


def confirmed_processes(copies_per_list: list[int]) -> int:
    """How many processes use an id that stands so many times in each list that has it.

    The highest multiplicity that two lists confirm, or the only list's; at least one.

    >>> confirmed_processes([2, 2, 2]), confirmed_processes([2, 1, 1]), confirmed_processes([2])
    (2, 1, 2)
    """
    copies = sorted(copies_per_list, reverse=True)
    return copies[0] if len(copies) == 1 else copies[1]


def _copies(state: State) -> dict[str, list[list[Member]]]:
    """For each client id its members, a list for each broker list that has it."""
    copies: dict[str, list[list[Member]]] = defaultdict(list)
    for client_list in sorted(state.client_lists, key=lambda e: (e.broker_name, e.broker_id)):
        of_list: dict[str, list[Member]] = defaultdict(list)
        for member in client_list.members:
            of_list[member.client_id].append(member)
        for client_id, members in of_list.items():
            copies[client_id].append(members)
    return copies


def find_processes(state: State, rules: StrategyRules) -> tuple[Process, ...]:
    """The processes of the group, by client id; alike ones of one id as one entry.

    What a process subscribes to and which strategy it uses is told by its members: where an id has
    one process, by all of them together (one list may have had its heartbeat later than another);
    where it has several, by the list that shows most of them.
    """
    observed = {
        member.strategy
        for client_list in state.client_lists
        for member in client_list.members
        if member.strategy
    }
    of_group = next(iter(observed)) if len(observed) == 1 else None
    orders_differ = _orders_differ(state)
    processes: list[Process] = []
    for client_id, lists in sorted(_copies(state).items()):
        count = confirmed_processes([len(members) for members in lists])
        traits = _traits_of_one(lists) if count == 1 else _traits_of_several(lists, count)
        alike = [
            (
                each.subscribed,
                each.broadcasting,
                rules.resolve(
                    state.consumer_group,
                    client_id,
                    each.strategy,
                    of_group,
                    language=each.language,
                    version=each.version,
                    orders_differ=orders_differ,
                ),
            )
            for each in traits
        ]
        processes += [Process(client_id, alike.count(each), *each) for each in dict.fromkeys(alike)]
    return tuple(processes)


class _Traits(NamedTuple):
    """What members tell of their process."""

    subscribed: bool
    broadcasting: bool
    strategy: str | None
    language: str | None
    version: int | None


def _traits_of_one(lists: list[list[Member]]) -> list[_Traits]:
    """Those of the one process that all these members are."""
    members = [member for of_list in lists for member in of_list]
    # Language and version of one and the same member: of two they might be no SDK that there is.
    spoken = next((member for member in members if member.language), members[0])
    return [
        _Traits(
            subscribed=any(member.subscribed for member in members),
            broadcasting=all(member.message_model == BROADCASTING for member in members),
            strategy=next((member.strategy for member in members if member.strategy), None),
            language=spoken.language,
            version=spoken.version,
        )
    ]


def _traits_of_several(lists: list[list[Member]], count: int) -> list[_Traits]:
    """Those of so many processes, as the list tells that shows most of them."""
    traits = [
        _Traits(
            member.subscribed,
            member.message_model == BROADCASTING,
            member.strategy,
            member.language,
            member.version,
        )
        for member in max(lists, key=len)
    ]
    traits.sort(
        key=lambda each: (
            not each.subscribed,
            each.broadcasting,
            each.strategy or "",
            each.language or "",
            each.version or 0,
        )
    )
    return traits[:count]


def _orders_differ(state: State) -> bool:
    """Whether clients that sort bytewise have the state's ids or brokers in another order."""
    client_ids = {member.client_id for entry in state.client_lists for member in entry.members}
    broker_names = {b.broker_name for route in state.topic_routes for b in route.brokers}
    return bytewise_order_differs(client_ids) or bytewise_order_differs(broker_names)


def find_stacked_ids(state: State) -> tuple[StackedId, ...]:
    """The client ids that stand more than once in a list, other than of broadcasting members.

    A broadcasting client keeps the id ``ip@DEFAULT`` and reads every queue by intent: such copies
    harm only when the group has clustering members, whose slots they take.
    """
    models = {m.message_model for entry in state.client_lists for m in entry.members}
    if models == {BROADCASTING}:
        return ()
    stacked = []
    for client_id, lists in sorted(_copies(state).items()):
        copies = max(len(members) for members in lists)
        if copies > 1:
            addresses = {m.client_addr for of_list in lists for m in of_list if len(of_list) > 1}
            stacked.append(
                StackedId(
                    client_id=client_id,
                    copies=copies,
                    processes=confirmed_processes([len(members) for members in lists]),
                    client_addrs=tuple(sorted(addresses)),
                )
            )
    return tuple(stacked)
