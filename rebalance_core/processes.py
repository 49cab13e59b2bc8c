"""From the members in the brokers' lists to the processes behind them.

A process has one connection per broker, with another port on each, so processes cannot be counted
by their addresses. Within one broker's list, though, every connection is one process, or a stale
channel of one that reconnected, which the broker closes within about 130 s. So time tells best how
many processes use a client id; where it does not, the id itself and what two lists confirm do.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from rebalance_core.client_id import parse_client_id
from rebalance_core.state import BROADCASTING, Member, State
from rebalance_core.strategy_rules import ResolvedStrategy, StrategyRules


@dataclass(frozen=True, slots=True)
class Process:
    """Processes of a group that are alike: the same client id, strategy and subscription.

    ``count`` of them stand behind the id, each of which draws its views on its own. Silent ones
    are in the lists and have sent no heartbeat for longer than a broker keeps a member; together
    with those that choose their queues themselves, and those that do not subscribe, they take a
    slot and claim nothing.
    """

    client_id: str
    count: int
    subscribed: bool
    broadcasting: bool
    strategy: ResolvedStrategy
    chooses_queues: bool = False
    silent: bool = False

    @property
    def claims(self) -> bool:
        """Whether it takes part in the topic's rebalance."""
        return self.subscribed and not self.chooses_queues and not self.silent


#: By broker name and id the members of one client id in that broker's list.
CopiesPerList = list[tuple[tuple[str, int], list[Member]]]


@dataclass(frozen=True, slots=True)
class StackedId:
    """A client id that stands more than once in some broker's list.

    ``copies_per_list`` is how often each list has it, by broker name and id; ``processes`` how many
    there are: where that is 1, the other copies are stale channels of the one process.
    ``because`` says in words what tells.
    """

    client_id: str
    copies_per_list: tuple[tuple[tuple[str, int], int], ...]
    processes: int
    client_addrs: tuple[str, ...]
    because: str

    @property
    def copies(self) -> int:
        """The most that one list has."""
        return max(copies for _, copies in self.copies_per_list)


def confirmed_processes(copies_per_list: list[int]) -> int:
    """How many processes use an id that stands so many times in each list that has it.

    The highest multiplicity that two lists confirm, or the only list's; at least one.

    >>> confirmed_processes([2, 2, 2]), confirmed_processes([2, 1, 1]), confirmed_processes([2])
    (2, 1, 2)
    """
    copies = sorted(copies_per_list, reverse=True)
    return copies[0] if len(copies) == 1 else copies[1]


def count_processes(
    client_id: str, copies_per_list: list[int], lasting: bool, language: str | None = None
) -> tuple[int, str]:
    """How many processes use a client id, and in words what tells.

    From the surest to the least sure: lists that stayed so for longer than a stale channel lives;
    an id that holds a time or a random part, which no two processes have; what two lists confirm.

    >>> count_processes("10.0.0.1@app", [2, 1], lasting=False)[0]
    1
    >>> count_processes("10.0.0.1@app", [2, 1], lasting=True)[0]
    2
    >>> count_processes("10.0.0.1@1#123456789012345", [2, 2], lasting=False)[0]
    1
    """
    most = max(copies_per_list)
    if most == 1:
        return 1, ""
    if lasting:
        return most, "all its connections stayed for longer than a broker keeps a silent one"
    if not parse_client_id(client_id, language).can_collide:
        return 1, "no two processes make the same id of this kind, so one has reconnected"
    processes = confirmed_processes(copies_per_list)
    if len(copies_per_list) == 1:
        return processes, "only one broker's list has it, and nothing tells of a reconnection"
    if processes == most:
        return processes, "the lists of several brokers confirm it"
    return processes, "no second broker's list has it as often: one process has reconnected there"


def processes_behind(state: State) -> dict[str, int]:
    """By client id how many processes use it."""
    return {
        client_id: _count(client_id, lists, state.lasting)[0]
        for client_id, lists in _copies(state).items()
    }


def _count(client_id: str, lists: CopiesPerList, lasting: bool) -> tuple[int, str]:
    language = next((m.language for _, members in lists for m in members if m.language), None)
    return count_processes(client_id, [len(members) for _, members in lists], lasting, language)


def silent_members(state: State) -> frozenset[tuple[str, int, str]]:
    """(broker name, broker id, address) of the members whose heartbeats have stopped.

    Only of lists most of whose members are heard: else it is the collector that stopped listening.
    """
    silent: set[tuple[str, int, str]] = set()
    for entry in state.client_lists:
        expired = [member for member in entry.members if member.is_expired]
        if 2 * len(expired) < len(entry.members):
            silent.update((entry.broker_name, entry.broker_id, m.client_addr) for m in expired)
    return frozenset(silent)


def _copies(state: State) -> dict[str, CopiesPerList]:
    """For each client id its members, a list for each broker's list that has it."""
    copies: dict[str, CopiesPerList] = defaultdict(list)
    for client_list in sorted(state.client_lists, key=lambda e: (e.broker_name, e.broker_id)):
        of_list: dict[str, list[Member]] = defaultdict(list)
        for member in client_list.members:
            of_list[member.client_id].append(member)
        for client_id, members in of_list.items():
            copies[client_id].append(((client_list.broker_name, client_list.broker_id), members))
    return copies


@dataclass(frozen=True, slots=True, order=True)
class _Traits:
    """What alike processes of one id have in common; those that claim queues sort first."""

    not_subscribed: bool
    broadcasting: bool
    chooses_queues: bool
    silent: bool
    strategy: str


def _traits(member: Member, silent: bool) -> _Traits:
    return _Traits(
        not_subscribed=not member.subscribed,
        broadcasting=member.message_model == BROADCASTING,
        chooses_queues=member.chooses_queues,
        silent=silent,
        strategy=member.strategy or "",
    )


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
    silent = silent_members(state)
    processes: list[Process] = []
    for client_id, lists in sorted(_copies(state).items()):
        count, _ = _count(client_id, lists, state.lasting)
        told = [
            [_traits(member, (*broker, member.client_addr) in silent) for member in members]
            for broker, members in lists
        ]
        if count == 1:
            every = [traits for of_list in told for traits in of_list]
            of_process = [
                _Traits(
                    not_subscribed=all(each.not_subscribed for each in every),
                    broadcasting=all(each.broadcasting for each in every),
                    chooses_queues=all(each.chooses_queues for each in every),
                    silent=all(each.silent for each in every),
                    strategy=next((each.strategy for each in every if each.strategy), ""),
                )
            ]
        else:
            richest = max(range(len(told)), key=lambda number: len(told[number]))
            of_process = sorted(told[richest])[:count]
        for traits in dict.fromkeys(of_process):
            processes.append(
                Process(
                    client_id=client_id,
                    count=of_process.count(traits),
                    subscribed=not traits.not_subscribed,
                    broadcasting=traits.broadcasting,
                    chooses_queues=traits.chooses_queues,
                    silent=traits.silent,
                    strategy=rules.resolve(
                        state.consumer_group, client_id, traits.strategy or None, of_group
                    ),
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
        if any(len(members) > 1 for _, members in lists):
            processes, because = _count(client_id, lists, state.lasting)
            addresses = {m.client_addr for _, members in lists for m in members if len(members) > 1}
            stacked.append(
                StackedId(
                    client_id=client_id,
                    copies_per_list=tuple((broker, len(members)) for broker, members in lists),
                    processes=processes,
                    client_addrs=tuple(sorted(addresses)),
                    because=because,
                )
            )
    return tuple(stacked)
