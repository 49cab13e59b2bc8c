"""Repairs: what the state would be if one fault were mended.

Each is a small pure function from a situation (a state, and the rules that give its strategies) to
another, and returns the very same situation where there is nothing of its kind to mend. The same
functions prove a finding's cause (it goes away), preview the remedy, and answer "what if".
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, TypeVar

from .grouping import numbered
from .message_queue import MessageQueue, sort_client_ids, sort_message_queues
from .processes import find_processes, processes_behind, silent_members
from .state import (
    BROADCASTING,
    CLUSTERING,
    MASTER_ID,
    PULL,
    SURE,
    ClientList,
    Member,
    RouteBroker,
    State,
)
from .strategies import ByConfig, ByMachineRoom
from .strategy import AllocationStrategy, copy_id
from .strategy_rules import Override, StrategyRules, overridden
from .views import BrokerId, asked_brokers, readable_by_some, readable_queues

DUPLICATE_CLIENT_ID = "DUPLICATE_CLIENT_ID"
STALE_CHANNEL = "STALE_CHANNEL"
GHOST_MEMBER = "GHOST_MEMBER"
SUBSCRIPTION_MISMATCH = "SUBSCRIPTION_MISMATCH"
MANUAL_ASSIGNMENT = "MANUAL_ASSIGNMENT"
MIXED_MESSAGE_MODEL = "MIXED_MESSAGE_MODEL"
MIXED_REQUEST_MODE = "MIXED_REQUEST_MODE"
STRATEGY_MISMATCH = "STRATEGY_MISMATCH"
BROKER_VIEW_DIVERGENCE = "BROKER_VIEW_DIVERGENCE"
GROUP_NOT_ON_BROKER = "GROUP_NOT_ON_BROKER"
ROUTE_DIVERGENCE = "ROUTE_DIVERGENCE"
MASTER_AWAY = "MASTER_AWAY"
ROOM_NOT_SERVED = "ROOM_NOT_SERVED"
CONFIG_OVERLAP = "CONFIG_OVERLAP"
CONFIG_GAP = "CONFIG_GAP"


@dataclass(frozen=True, slots=True)
class Situation:
    """A state, and the rules that give the strategies of its members."""

    state: State
    rules: StrategyRules


Repair = Callable[[Situation], Situation]


def with_state(situation: Situation, **changed: Any) -> Situation:
    """The situation with these fields of its state; the very same where they are the same."""
    state = replace(situation.state, **changed)
    return situation if state == situation.state else replace(situation, state=state)


def with_members(
    situation: Situation, members: Callable[[ClientList], Iterable[Member]]
) -> Situation:
    """The situation with other members in each list; the very same where they are the same."""
    lists = situation.state.client_lists
    changed = tuple(replace(entry, members=tuple(members(entry))) for entry in lists)
    return with_state(situation, client_lists=changed)


def _without(situation: Situation, leaves: Callable[[ClientList, Member], bool]) -> Situation:
    """The situation without the members that leave their list."""
    return with_members(situation, lambda entry: (m for m in entry.members if not leaves(entry, m)))


def with_brokers(
    situation: Situation,
    brokers: Callable[[Iterable[RouteBroker]], Iterable[RouteBroker]],
    namesrv_addr: str | None = None,
) -> Situation:
    """The situation with other brokers in one nameserver's route, or in every route."""
    routes = tuple(
        replace(route, brokers=tuple(brokers(route.brokers)))
        if namesrv_addr in (None, route.namesrv_addr)
        else route
        for route in situation.state.topic_routes
    )
    return with_state(situation, topic_routes=routes)


def _rename_copies(situation: Situation, copy_of: Callable[[str, int], int]) -> Situation:
    """Each member gets an id of its own by its number, by address, among the copies of its id.

    ``copy_of`` gives the number of the copy that the new id is of.
    """

    def renamed(entry: ClientList) -> Iterator[Member]:
        members = sorted(entry.members, key=attrgetter("client_id", "client_addr"))
        ids = numbered(member.client_id for member in members)
        for member, (client_id, number) in zip(members, ids, strict=True):
            yield member._replace(client_id=copy_id(client_id, copy_of(client_id, number)))

    return with_members(situation, renamed)


def give_separate_ids(situation: Situation) -> Situation:
    """Every process has a separate client id; stale channels keep that of their process.

    A new id sorts right behind the old one: a repair must not change who comes before whom.
    """
    processes = processes_behind(situation.state)
    if all(count == 1 for count in processes.values()):
        return situation
    renamed = _rename_copies(situation, lambda client_id, copy: min(copy, processes[client_id] - 1))
    # The stale channels among them stay stale.
    counts = (
        counted._replace(
            client_id=copy_id(counted.client_id, copy), processes=min(counted.processes, 1)
        )
        for counted in situation.state.process_counts
        for copy in range(max(counted.processes, 1))
    )
    return with_state(renamed, process_counts=tuple(counts))


def part_copies(situation: Situation) -> Situation:
    """Every copy of a client id in a list has a separate id, stale channels as well.

    No repair: it shows in whose slot a queue is.
    """
    return _rename_copies(situation, lambda _, copy: copy)


def close_stale_channels(situation: Situation) -> Situation:
    """No list has more copies of an id than there are processes behind it."""
    processes = processes_behind(situation.state)

    def shortened(entry: ClientList) -> Iterator[Member]:
        ids = numbered(member.client_id for member in entry.members)
        for member, (client_id, number) in zip(entry.members, ids, strict=True):
            if number < processes[client_id]:
                yield member

    return with_members(situation, shortened)


def expire_ghosts(situation: Situation) -> Situation:
    """Members whose last heartbeat is older than a broker keeps them have left the lists."""
    silent = silent_members(situation.state)
    return _without(situation, lambda entry, m: (*entry.broker, m.client_addr) in silent)


def is_stranger(member: Member) -> bool:
    """True if a member should subscribe to the topic and does not.

    Excepted are one that chooses its queues itself, and a broadcasting one, which has no retry
    topic (``DefaultMQPushConsumerImpl.copySubscription`` 5.3.3): each of them is another fault.
    """
    return not (member.subscribed or member.chooses_queues or member.message_model == BROADCASTING)


def unlist_non_subscribers(situation: Situation) -> Situation:
    """Members that do not subscribe to the topic take no slot; the others subscribe for sure."""

    def subscribing(entry: ClientList) -> Iterator[Member]:
        for member in entry.members:
            if not is_stranger(member):
                is_sure = member.subscribed_percent == SURE
                yield member if is_sure else member._replace(subscribed_percent=SURE)

    return with_members(situation, subscribing)


def unlist_clients(situation: Situation, client_ids: Collection[str]) -> Situation:
    """All members of these clients have left; a broker without members answers so.

    No repair: it shows what others hide.
    """
    return without_empty_lists(_without(situation, lambda _, m: m.client_id in client_ids))


def without_empty_lists(situation: Situation) -> Situation:
    """The situation in which a broker whose list has no members answers so."""
    state, lists = situation.state, situation.state.client_lists
    empty = (entry.broker for entry in lists if not entry.members)
    return with_state(
        situation,
        client_lists=tuple(entry for entry in lists if entry.members),
        offline_brokers=(*state.offline_brokers, *empty),
    )


def unlist_choosers(situation: Situation) -> Situation:
    """Members that choose their queues themselves are in a separate group, where others are left:
    of those that do nothing can be computed.
    """
    if all(member.chooses_queues for member in situation.state.members):
        return situation
    return _without(situation, lambda _, member: member.chooses_queues)


def let_all_pull(situation: Situation) -> Situation:
    """The group pulls: all members get their queues by the division that some make themselves."""
    rebalancing = {m.client_rebalance for m in situation.state.members if m.subscribed}
    return with_state(situation, request_mode=PULL) if {True, False} <= rebalancing else situation


def unlist_broadcasters(situation: Situation) -> Situation:
    """Broadcasting members are in a separate group."""
    if {m.message_model for m in situation.state.members} != {BROADCASTING, CLUSTERING}:
        return situation
    return _without(situation, lambda _, member: member.message_model == BROADCASTING)


def lists_of_topic(state: State) -> list[ClientList]:
    """The lists that clients of the topic ask for, and of the others the members that subscribe.

    A member that does not heartbeats to the brokers of its topics, and is missing nowhere.
    """
    asked = asked_brokers(state.brokers)
    return [
        entry
        if entry.broker in asked
        else replace(entry, members=tuple(member for member in entry.members if member.subscribed))
        for entry in state.client_lists
    ]


def most_copies(lists: Iterable[ClientList]) -> dict[str, list[Member]]:
    """The members of each client id in the list that has most of them; in the first of several
    such.
    """
    most: dict[str, list[Member]] = {}
    for entry in lists:
        for client_id, members in entry.by_id.items():
            if len(members) > len(most.get(client_id, ())):
                most[client_id] = members
    return most


def unify_lists(situation: Situation, only: Collection[BrokerId]) -> Situation:
    """Each of these brokers gives the union of all lists: each id as often as the longest has it.

    So every client reaches those of them that have the group. Copies stay, for this must not mend a
    stale channel as well.
    """
    most = most_copies(lists_of_topic(situation.state))
    names = {name for name, _ in only}

    def completed(entry: ClientList) -> Iterable[Member]:
        if entry.broker not in only:
            return entry.members
        here = entry.copies
        missing = (member for id_, members in most.items() for member in members[here[id_] :])
        return (*entry.members, *map(_elsewhere, missing))

    unreachable = (
        (client_id, name)
        for client_id, name in situation.state.unreachable
        if client_id is None or name not in names
    )
    return with_state(with_members(situation, completed), unreachable=tuple(unreachable))


def _elsewhere(member: Member) -> Member:
    return member._replace(client_addr=f"{member.client_addr} (elsewhere)")


def lost_brokers(state: State) -> frozenset[str]:
    """The brokers that a nameserver's route has and another one's lacks.

    Clients of the other one forget such a broker (``MQClientInstance.cleanOfflineBroker`` 4.9.4 to
    5.3.3, each 30 s), send it no heartbeat, and are in its list no more: what that list lacks has
    its root in the route. Clients of a nameserver that gives no route keep what they have.
    """
    names = (frozenset(b.broker_name for b in route.brokers) for route in state.topic_routes)
    given = [*filter(None, names)] or [frozenset()]
    return frozenset[str]().union(*given).difference(frozenset.intersection(*given))


def reach_brokers(situation: Situation) -> Situation:
    """Every broker that no nameserver has lost gives the union of all lists: ``unify_lists``."""
    lost = lost_brokers(situation.state)
    listing = {entry.broker for entry in situation.state.client_lists}
    unreached = {(name, MASTER_ID) for _, name in situation.state.unreachable}
    return unify_lists(situation, {one for one in listing | unreached if one[0] not in lost})


def brokers_without_group(state: State) -> tuple[BrokerId, ...]:
    """(name, id) of the brokers that do not have the group while others list its members."""
    names = {broker for client_id, broker in state.unreachable if client_id is None}
    return tuple(sorted(broker for broker in state.offline_brokers if broker[0] in names))


def add_group_to_brokers(situation: Situation, only: Collection[str] | None = None) -> Situation:
    """The brokers that do not have the group have it, and list the members that the others list;
    with ``only``, those of these names.
    """
    state = situation.state
    without = [one for one in brokers_without_group(state) if only is None or one[0] in only]
    if not without:
        return situation
    longest = max(lists_of_topic(state), key=lambda entry: len(entry.members), default=None)
    members = tuple(map(_elsewhere, longest.members if longest else ()))
    added = (ClientList(name, broker_id, members) for name, broker_id in without)
    return with_state(
        situation,
        client_lists=(*state.client_lists, *added),
        offline_brokers=tuple(one for one in state.offline_brokers if one not in without),
        unreachable=tuple(
            (client_id, name)
            for client_id, name in state.unreachable
            if client_id is not None or (only is not None and name not in only)
        ),
    )


def unify_routes(situation: Situation) -> Situation:
    """Every nameserver gives the route that most give, of several such that with most queues, and
    then with most masters. A master, or a broker, that some route lacked lists whom the others
    list: see ``lost_brokers``.
    """
    state = situation.state
    distinct = Counter(frozenset(route.brokers) for route in state.topic_routes)
    if len(distinct) < 2:
        return situation
    chosen = max(
        state.topic_routes,
        key=lambda route: (
            distinct[frozenset(route.brokers)],
            len(readable_queues(state.topic, route)),
            sum(broker.has_master for broker in route.brokers),
            route.namesrv_addr,
        ),
    )
    routes = tuple(replace(route, brokers=chosen.brokers) for route in state.topic_routes)
    without = {broker.broker_name for broker in state.brokers if not broker.has_master}
    found = {broker.broker_name for broker in chosen.brokers if broker.has_master} & without
    lost = lost_brokers(state).intersection(broker.broker_name for broker in chosen.brokers)
    unified = add_group_to_brokers(with_state(situation, topic_routes=routes), lost)
    listing = {entry.broker for entry in state.client_lists if entry.broker_name in lost}
    return unify_lists(unified, listing.union((name, MASTER_ID) for name in found))


def bring_masters_back(situation: Situation) -> Situation:
    """Routes that have slaves alone have the master too, which lists whom they list."""
    state = situation.state
    away = state.without_master
    if not away or all(process.reads_slaves for process in find_processes(state, situation.rules)):
        return situation

    def with_masters(brokers: Iterable[RouteBroker]) -> Iterator[RouteBroker]:
        for broker in brokers:
            ids = broker.broker_ids if broker.broker_name in away else None
            yield replace(broker, broker_ids=(MASTER_ID, *ids)) if ids else broker

    slaves = {entry.broker_name: entry for entry in state.client_lists if entry.broker_name in away}
    lists = [replace(entry, broker_id=MASTER_ID) for entry in slaves.values()]
    kept = [entry for entry in state.client_lists if entry not in lists]
    return with_state(with_brokers(situation, with_masters), client_lists=(*kept, *lists))


def unify_strategies(situation: Situation) -> Situation:
    """Every process uses the strategy that most of those that subscribe use, whatever its SDK.

    If several are used by equally many, it is Java's, as it is now, before any variant of its name.
    """
    used: Counter[AllocationStrategy] = Counter()
    for process in find_processes(situation.state, situation.rules):
        if process.divides and process.strategy.strategy:
            used[process.strategy.strategy] += process.count
    if len(used) < 2:
        return situation
    chosen = min(used, key=lambda strategy: (-used[strategy], strategy.name, strategy.variant))
    return _with_strategies(situation, lambda *_: chosen)


def serve_all_rooms(situation: Situation) -> Situation:
    """The rooms that no member's MACHINE_ROOM serves are served by all of them."""
    in_use = users_of(situation, ByMachineRoom)
    strategies = set(in_use.values())
    brokers = {b.broker_name for b in situation.state.brokers}
    unserved = {name for name in brokers if not any(one.serves(name) for one in strategies)}
    if not in_use or not unserved:
        return situation
    serving = {strategy: strategy.also_serving(unserved) for strategy in strategies}
    changed = {client_id: serving[strategy] for client_id, strategy in in_use.items()}
    return _with_strategies(situation, changed.get)


def part_config_lists(situation: Situation) -> Situation:
    """A queue that several CONFIG lists have stays in that of the first client alone."""
    in_use = users_of(situation, ByConfig)
    taken: set[MessageQueue] = set()
    parted: dict[str, AllocationStrategy] = {}
    for client_id in sort_client_ids(in_use):
        left = [queue for queue in in_use[client_id].config_queues or () if queue not in taken]
        taken.update(left)
        parted[client_id] = ByConfig(left)
    listed = sum(len(set(by_config.config_queues or ())) for by_config in in_use.values())
    return situation if listed == len(taken) else _with_strategies(situation, parted.get)


def fill_config_lists(situation: Situation) -> Situation:
    """The queues that are in no CONFIG list are dealt out to the clients in turn."""
    in_use = users_of(situation, ByConfig)
    listed = {queue for by_config in in_use.values() for queue in by_config.config_queues or ()}
    gap = sort_message_queues(readable_by_some(situation.state) - listed)
    if not in_use or not gap:
        return situation
    clients = sort_client_ids(in_use)
    filled: dict[str, AllocationStrategy] = {
        client_id: ByConfig([*(in_use[client_id].config_queues or ()), *gap[n :: len(clients)]])
        for n, client_id in enumerate(clients)
    }
    return _with_strategies(situation, filled.get)


def strategies_in_use(situation: Situation) -> list[tuple[str, AllocationStrategy]]:
    """Client id and strategy of every process that takes part."""
    return [
        (process.client_id, strategy)
        for process in find_processes(situation.state, situation.rules)
        if process.takes_part and (strategy := process.strategy.strategy)
    ]


_Kind = TypeVar("_Kind", bound=AllocationStrategy)


def users_of(situation: Situation, kind: type[_Kind]) -> dict[str, _Kind]:
    """The strategies of one class that subscribed members use, by client id."""
    in_use = strategies_in_use(situation)
    return {client_id: strategy for client_id, strategy in in_use if isinstance(strategy, kind)}


def _with_strategies(situation: Situation, override: Override) -> Situation:
    """The situation in which clients use other strategies, by their id and what they use now."""
    return replace(situation, rules=overridden(situation.rules, override))


#: Repairs in the order in which they are tried and shown: the plainest explanation first.
REPAIRS: Mapping[str, Repair] = {
    DUPLICATE_CLIENT_ID: give_separate_ids,
    STALE_CHANNEL: close_stale_channels,
    GHOST_MEMBER: expire_ghosts,
    STRATEGY_MISMATCH: unify_strategies,
    SUBSCRIPTION_MISMATCH: unlist_non_subscribers,
    MANUAL_ASSIGNMENT: unlist_choosers,
    MIXED_MESSAGE_MODEL: unlist_broadcasters,
    MIXED_REQUEST_MODE: let_all_pull,
    BROKER_VIEW_DIVERGENCE: reach_brokers,
    GROUP_NOT_ON_BROKER: add_group_to_brokers,
    ROUTE_DIVERGENCE: unify_routes,
    MASTER_AWAY: bring_masters_back,
    ROOM_NOT_SERVED: serve_all_rooms,
    CONFIG_OVERLAP: part_config_lists,
    CONFIG_GAP: fill_config_lists,
}


def apply_repairs(situation: Situation, faults: Iterable[str]) -> Situation:
    """The situation after the named repairs, one after the other in the order of ``REPAIRS``."""
    wanted = set(faults)
    for fault, repair in REPAIRS.items():
        if fault in wanted:
            situation = repair(situation)
    return situation
