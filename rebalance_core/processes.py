"""From the members in the brokers' lists to the processes behind them.

A process has one connection per broker, with another port on each, so processes cannot be counted
by their addresses. Within one broker's list, though, every connection is one process, or a stale
channel of one that reconnected: how many processes use a client id is therefore what two brokers'
lists confirm.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

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
    processes: list[Process] = []
    for client_id, lists in sorted(_copies(state).items()):
        count = confirmed_processes([len(members) for members in lists])
        if count == 1:
            members = [member for of_list in lists for member in of_list]
            strategy = next((member.strategy for member in members if member.strategy), None)
            traits = [
                (
                    any(member.subscribed for member in members),
                    all(member.message_model == BROADCASTING for member in members),
                    strategy,
                )
            ]
        else:
            richest = max(lists, key=len)
            traits = [
                (member.subscribed, member.message_model == BROADCASTING, member.strategy)
                for member in richest
            ]
            traits = sorted(traits, key=lambda trait: (not trait[0], trait[1], trait[2] or ""))
            traits = traits[:count]
        for trait in dict.fromkeys(traits):
            subscribed, broadcasting, strategy = trait
            processes.append(
                Process(
                    client_id=client_id,
                    count=traits.count(trait),
                    subscribed=subscribed,
                    broadcasting=broadcasting,
                    strategy=rules.resolve(state.consumer_group, client_id, strategy, of_group),
                )
            )
    return tuple(processes)


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
