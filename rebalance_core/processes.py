"""From the members in the brokers' lists to the processes behind them.

A process has one connection per broker, with another port on each, so processes cannot be counted
by their addresses. Within one broker's list, though, every connection is one process, or a stale
channel of one that reconnected, which the broker closes within about 130 s. So time tells best how
many processes use a client id; where it does not, the id itself and what two lists confirm do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from rebalance_core.client_id import parse_client_id
from rebalance_core.message_queue import bytewise_order_differs
from rebalance_core.state import BROADCASTING, ClientList, Member, State
from rebalance_core.strategy_rules import KnownClient, ResolvedStrategy, StrategyRules


class Process(NamedTuple):
    """Processes of a group that are alike: the same client id, strategy and subscription.

    ``count`` of them stand behind the id, each of which draws its views on its own. Silent ones
    are in the lists and have sent no heartbeat for longer than a broker keeps a member; together
    with those that choose their queues themselves, and those that do not subscribe, they take a
    slot and claim nothing.
    """

    client_id: str
    count: int  # type: ignore[assignment]  # nobody counts the values of this tuple
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
    copies = [len(members) for _, members in lists]
    if max(copies) == 1:
        return 1, ""
    language = next((m.language for _, members in lists for m in members if m.language), None)
    return count_processes(client_id, copies, lasting, language)


def silent_members(state: State) -> frozenset[tuple[str, int, str]]:
    """(broker name, broker id, address) of the members whose heartbeats have stopped.

    Only of lists most of whose members are heard: else it is the collector that stopped listening.
    """
    silent: set[tuple[str, int, str]] = set()
    for entry in state.client_lists:
        expired = [member for member in entry.members if member.is_expired]
        if 2 * len(expired) < len(entry.members):
            silent.update((*entry.broker, m.client_addr) for m in expired)
    return frozenset(silent)


def _copies(state: State) -> dict[str, CopiesPerList]:
    """For each client id its members, a list for each broker's list that has it."""
    copies: dict[str, CopiesPerList] = defaultdict(list)
    for client_list in sorted(state.client_lists, key=attrgetter("broker")):
        of_list: dict[str, list[Member]] = defaultdict(list)
        for member in client_list.members:
            of_list[member.client_id].append(member)
        for client_id, members in of_list.items():
            copies[client_id].append((client_list.broker, members))
    return copies


def find_processes(state: State, rules: StrategyRules) -> tuple[Process, ...]:
    """The processes of the group, by client id; alike ones of one id as one entry.

    What a process subscribes to and which strategy it uses is told by its members: where an id has
    one process, by all of them together (one list may have had its heartbeat later than another);
    where it has several, by the list that shows most of them.
    """
    plain = _plain_members(state)
    return _look_closely(state, rules) if plain is None else _one_each(state, rules, plain)


#: All of a member that tells of its process: ``_look_closely`` asks for nothing else of it.
_TELLING = ("subscribed", "message_model", "chooses_queues", "strategy", "language", "version")
_what_tells = itemgetter(*map(Member._fields.index, _TELLING))


def _plain_members(state: State) -> dict[str, tuple[Any, ...]] | None:
    """By client id what its member tells, where there is nothing to weigh: no id stands twice in
    a list, no heartbeat is late, and every list tells the same of an id. So it is in nearly all
    states, and these cost a third of what a closer look costs. None: look closely.
    """
    telling: dict[str, tuple[Any, ...]] = {}
    for entry in state.client_lists:
        here = {member.client_id: _what_tells(member) for member in entry.members}
        telling = here | telling
        if len(here) < len(entry.members) or not here.items() <= telling.items():
            return None
        if any(member.is_expired for member in entry.members):
            return None
    return telling


def _one_each(
    state: State, rules: StrategyRules, telling: Mapping[str, tuple[Any, ...]]
) -> tuple[Process, ...]:
    """One process behind every id, as its member tells."""
    process_of = _processes_by(state, rules, (strategy for *_, strategy, _, _ in telling.values()))
    return tuple(
        process_of(
            client_id, subscribed, model == BROADCASTING, chooses, False, name, lang, version
        )
        for client_id, (subscribed, model, chooses, name, lang, version) in sorted(telling.items())
    )


def _look_closely(state: State, rules: StrategyRules) -> tuple[Process, ...]:
    """The processes of any state."""
    silent = silent_members(state)
    process_of = _processes_by(state, rules, (member.strategy for member in state.members))
    processes: list[Process] = []
    for client_id, lists in sorted(_copies(state).items()):
        count, _ = _count(client_id, lists, state.lasting)
        told = [
            [_traits(m, bool(silent) and (*broker, m.client_addr) in silent) for m in members]
            for broker, members in lists
        ]
        if count == 1:
            processes.append(process_of(client_id, *_traits_of_one(tuple(chain(*told)))))
        else:
            alike = Counter(process_of(client_id, *t) for t in _traits_of_several(told, count))
            processes += [each._replace(count=number) for each, number in alike.items()]
    return tuple(processes)


def _processes_by(
    state: State, rules: StrategyRules, observed: Iterable[str | None]
) -> Callable[..., Process]:
    """What makes a process of its id and traits, by the strategies that were observed."""
    group, of_group = state.consumer_group, _of_group(observed)
    orders_differ = _orders_differ(state)

    def process(
        client_id: str,
        subscribed: bool,
        broadcasting: bool,
        chooses_queues: bool,
        silent: bool,
        strategy: str | None,
        language: str | None,
        version: int | None,
    ) -> Process:
        resolved = rules.resolve(
            KnownClient(group, client_id, strategy, of_group, language, version, orders_differ)
        )
        return Process(client_id, 1, subscribed, broadcasting, resolved, chooses_queues, silent)

    return process


def _of_group(observed: Iterable[str | None]) -> str | None:
    """The strategy that all members use of which one was observed."""
    distinct = set(observed) - {None, ""}
    return next(iter(distinct)) if len(distinct) == 1 else None


class _Traits(NamedTuple):
    """What a member tells of its process."""

    subscribed: bool
    broadcasting: bool
    chooses_queues: bool
    silent: bool
    strategy: str | None
    language: str | None
    version: int | None


def _traits(member: Member, silent: bool) -> _Traits:
    return _Traits(
        member.subscribed,
        member.message_model == BROADCASTING,
        member.chooses_queues,
        silent,
        member.strategy,
        member.language,
        member.version,
    )


# Nearly all members of all groups tell one of a few things.
@lru_cache(maxsize=1_024)
def _traits_of_one(every: tuple[_Traits, ...]) -> _Traits:
    """Those of the one process that all these members are."""
    # Language and version of one and the same member: of two they might be no SDK that there is.
    spoken = next((each for each in every if each.language), every[0])
    return _Traits(
        subscribed=any(each.subscribed for each in every),
        broadcasting=all(each.broadcasting for each in every),
        chooses_queues=all(each.chooses_queues for each in every),
        silent=all(each.silent for each in every),
        strategy=next((each.strategy for each in every if each.strategy), None),
        language=spoken.language,
        version=spoken.version,
    )


def _traits_of_several(told: list[list[_Traits]], count: int) -> list[_Traits]:
    """Those of so many processes, as the list tells that shows most of them; who claims first."""
    richest = max(range(len(told)), key=lambda number: len(told[number]))
    in_order = sorted(
        told[richest],
        key=lambda each: (
            not each.subscribed,
            each.chooses_queues,
            each.silent,
            each.broadcasting,
            each.strategy or "",
            each.language or "",
            each.version or 0,
        ),
    )
    return in_order[:count]


def _orders_differ(state: State) -> bool:
    """Whether clients that sort bytewise have the state's ids or brokers in another order."""
    client_ids = {member.client_id for member in state.members}
    broker_names = {b.broker_name for b in state.brokers}
    return bytewise_order_differs(client_ids) or bytewise_order_differs(broker_names)


def find_stacked_ids(state: State) -> tuple[StackedId, ...]:
    """The client ids that stand more than once in a list, other than of broadcasting members.

    A broadcasting client keeps the id ``ip@DEFAULT`` and reads every queue by intent: such copies
    harm only when the group has clustering members, whose slots they take.
    """
    models = {m.message_model for m in state.members}
    if models == {BROADCASTING} or not any(_has_copies(entry) for entry in state.client_lists):
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


def _has_copies(entry: ClientList) -> bool:
    return len({member.client_id for member in entry.members}) < len(entry.members)
