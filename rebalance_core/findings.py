"""Findings of a state: the queues that nobody takes and those that several take."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from math import prod
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from .claims import Claims, compute_claims, count_owners
from .client_id import ClientIdFormat, parse_client_id
from .english import with_commas
from .errors import AllocationError
from .grouping import grouped, numbered
from .message_queue import MessageQueue, is_retry_topic, sort_message_queues
from .processes import Process, Processes, StackedId, find_processes, find_stacked_ids
from .state import NO_FILTER, POP, PULL, SUBSCRIPTION_SOURCES, State
from .strategies import Averagely, AveragelyByCircle
from .strategy import AllocationStrategy, ClientIds, Queues, Taken, copy_id
from .strategy_rules import STRATEGY_SOURCES, StrategyRules, StrategySource
from .texts import Text
from .views import Views, asked_brokers, possible_views, readable_by_some, unreadable_queues

FindingKind = Literal["ORPHANED", "DUPLICATE"]
FindingKey: TypeAlias = tuple[FindingKind, MessageQueue]
ORPHANED: FindingKind = "ORPHANED"
DUPLICATE: FindingKind = "DUPLICATE"

Certainty = Literal["CERTAIN", "POSSIBLE"]
CERTAIN: Certainty = "CERTAIN"
POSSIBLE: Certainty = "POSSIBLE"

#: A coverage, and the reason why it is not another.
_Refusal: TypeAlias = tuple[str, str]
_Source = TypeVar("_Source", bound=str)
AnyQueue = TypeVar("AnyQueue")

#: The group's queues of the topic were recomputed. Every other coverage is a reason why not.
AUDITED = "AUDITED"
BROADCASTING_GROUP = "BROADCASTING"
NOT_SUBSCRIBED = "NOT_SUBSCRIBED"
NO_BROKER_ANSWERED = "NO_BROKER_ANSWERED"
NO_READABLE_QUEUE = "NO_READABLE_QUEUE"
NO_TOPIC = "NO_TOPIC"
TOO_MANY_QUEUES = "TOO_MANY_QUEUES"
ROUTE_NOT_KNOWN = "ROUTE_NOT_KNOWN"
#: A strategy with unknown parameters is not audited: an answer that rests on a guess is a false
#: alarm.
STRATEGY_NOT_KNOWN = "STRATEGY_NOT_KNOWN"
#: Java's strategy throws: every client keeps what it has.
ALLOCATION_FAILS = "ALLOCATION_FAILS"
SHARED_BY_BROKER = "SHARED_BY_BROKER"
QUEUES_CHOSEN = "QUEUES_CHOSEN"

#: Coverages of members whose shares nobody can compute: what they hold shows who reads what.
SHOWN_BY_HOLDINGS = frozenset({STRATEGY_NOT_KNOWN, QUEUES_CHOSEN})

#: Coverages that do not show owners: no fault is found, and none is seen to end.
OWNERS_NOT_KNOWN = frozenset(
    {NO_BROKER_ANSWERED, ROUTE_NOT_KNOWN, STRATEGY_NOT_KNOWN, ALLOCATION_FAILS, TOO_MANY_QUEUES}
)


class Claimant(NamedTuple):
    """Processes of one client id that claim a queue, each with this probability."""

    client_id: str
    processes: int
    probability: float


@dataclass(frozen=True, slots=True)
class Finding:
    """A queue that has no owner (ORPHANED) or several (DUPLICATE) in a state.

    CERTAIN: under every view, so the probability is 1. POSSIBLE: the views differ, and it depends
    on which each process draws. ``claimants`` are those that claim the queue under some view.
    """

    kind: FindingKind
    queue: MessageQueue
    certainty: Certainty
    probability: float
    claimants: tuple[Claimant, ...]
    #: True if it rests on a strategy that is assumed: by another common one it is not certain.
    is_assumed: bool = False

    @property
    def key(self) -> FindingKey:
        """Its identity before and after a repair."""
        return self.kind, self.queue


class Allocation(NamedTuple, Generic[AnyQueue]):
    """The queues that the processes of one client id take under one view.

    ``view_queues`` and ``view_clients`` are the lengths of the view's two lists, which the client
    prints when its result changes. ``queues`` are ``MessageQueue``s, or what a reader of published
    allocations names a queue by.
    """

    client_id: str
    processes: int
    subscribed: bool
    strategy: str
    strategy_source: StrategySource
    view_brokers: tuple[str, ...]
    view_weight: float
    view_queues: int
    view_clients: int
    queues: tuple[AnyQueue, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The audit's verdict on one state.

    ``shows_owners``: whether the state shows who owns what. Where no broker answered, the route was
    not seen or the strategy cannot be recomputed, no fault was found and none was seen to end.
    """

    coverage: str
    reason: str
    completeness: float
    members: int
    processes: int
    queues: int
    idle_clients: int = 0
    most_queues: int = 0
    fewest_queues: int = 0
    strategy_source: StrategySource | None = None
    #: The processes that share the messages of the topic, whether or not their shares can be
    #: computed: they subscribe, or choose their queues, and do not broadcast.
    readers: int = 0
    #: True if none of them lets every message pass.
    is_filtered: bool = False
    #: The strategies of members that cannot be recomputed, by name.
    unknown_strategies: tuple[str, ...] = ()
    #: The source of the least sure subscription of a member; None where no member has one.
    subscription_source: str | None = None
    findings: tuple[Finding, ...] = ()
    allocations: tuple[Allocation[MessageQueue], ...] = ()
    stacked: tuple[StackedId, ...] = ()
    unreadable: tuple[MessageQueue, ...] = ()

    @property
    def shows_owners(self) -> bool:
        """True if the state shows who owns what; one that does not ends no episode."""
        return self.coverage not in OWNERS_NOT_KNOWN

    @property
    def finding_keys(self) -> frozenset[FindingKey]:
        """The identities of the findings."""
        return frozenset(finding.key for finding in self.findings)

    @property
    def seen_queues(self) -> set[MessageQueue]:
        """The queues that somebody takes under some view, or nobody under some."""
        taken = (queue for allocation in self.allocations for queue in allocation.queues)
        return {*taken, *(finding.queue for finding in self.findings)}


def evaluate(state: State, rules: StrategyRules) -> Evaluation:
    """Recompute a state: allocations under every view, findings, stacked ids.

    Never raises for what a cluster may hold: a state that cannot be recomputed has a coverage
    other than AUDITED, and the reason in words.

    >>> from rebalance_core.state import ClientList, Member, RouteBroker, TopicRoute
    >>> members = (Member("a", "h:1"), Member("a", "h:2"), Member("b", "h:3"))
    >>> state = State(
    ...     "G", "T", (ClientList("x", 0, members),),
    ...     (TopicRoute("ns", (RouteBroker("x", read_queue_nums=6, write_queue_nums=6),)),),
    ... )
    >>> [(f.kind, f.queue.queue_id) for f in evaluate(state, StrategyRules()).findings]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('DUPLICATE', 0), ('DUPLICATE', 1), ('ORPHANED', 2), ('ORPHANED', 3)]
    """
    processes = find_processes(state, rules)
    sources = {member.subscription_source for member in state.members}
    verdict = partial(
        Evaluation,
        members=max((len(entry.members) for entry in state.client_lists), default=0),
        processes=sum(process.count for process in processes),
        readers=sum(one.count for one in processes if one.reads and not one.broadcasting),
        is_filtered=_is_filtered(state),
        unknown_strategies=tuple(sorted({one.strategy.name for one in _not_computed(processes)})),
        subscription_source=_weakest(SUBSCRIPTION_SOURCES, sources),
    )
    queues = most_queues(state)
    if queues > rules.most_queues:
        # Anybody who can write a route chooses its numbers, and a lake's tables came through no
        # ingest: of so many queues none is made.
        reason = Text(
            "a route of the topic has {queues:,} queues, and at most {most:,} are recomputed "
            "(bounds.topic_queues in the settings)",
            queues=queues,
            most=rules.most_queues,
        )
        queues = min(queues, MOST_INT)
        return verdict(coverage=TOO_MANY_QUEUES, reason=reason, completeness=0.0, queues=queues)
    views = possible_views(state)
    verdict = partial(verdict, completeness=views.completeness, unreadable=_unreadable(state))
    refusal = _why_not_audited(state, processes, bool(views.views))
    claims: Claims | None = None
    if views.views and (refusal is None or refusal[0] == BROADCASTING_GROUP):
        try:
            claims = compute_claims(views.views, processes, state)
        except AllocationError as error:
            keeps = Text("{error}; a client that fails keeps the queues it has", error=error.text)
            refusal = (ALLOCATION_FAILS, keeps)
    if claims is None:
        if refusal is not None and refusal[0] == SHARED_BY_BROKER and views.views:
            verdict = partial(verdict, findings=tuple(_pulled_and_popped(state, processes, views)))
        return _without_claims(verdict, state, refusal)
    by_process = np.bincount(claims.row, claims.share, minlength=len(processes)).tolist()
    sharing = [process.divides for process in processes]
    shares = list(compress(by_process, sharing))
    strategy_sources = {process.strategy.source for process in compress(processes, sharing)}
    coverage, why = refusal or (AUDITED, _zones(state))
    found = tuple(_findings(claims)) if refusal is None else ()
    if "assumed" in strategy_sources:
        found = tuple(_as_far_as_assumed(found, claims, state))
    return verdict(
        coverage=coverage,
        reason=why,
        queues=len(claims.queues),
        idle_clients=shares.count(0),
        most_queues=_whole(max(shares, default=0.0)),
        fewest_queues=_whole(min(shares, default=0.0)),
        strategy_source=_weakest(STRATEGY_SOURCES, strategy_sources),
        findings=found,
        allocations=_allocations(claims),
        stacked=_effects(find_stacked_ids(state), claims) if refusal is None else (),
    )


def _is_filtered(state: State) -> bool:
    subscribed = (member for member in state.members if member.subscribed)
    return all(member.expression not in (None, NO_FILTER) for member in subscribed)


def most_queues(state: State) -> int:
    """The queues of the largest route, read or only written, without making any of them."""
    route_queues = (
        sum(max(broker.read_queue_nums, broker.write_queue_nums, 0) for broker in route.brokers)
        for route in state.topic_routes
    )
    return max(route_queues, default=0)


def _whole(queues: float) -> int:
    """An average as a whole number, the same whatever the rounding errors of its sum."""
    return round(round(queues, 9))


def _unreadable(state: State) -> tuple[MessageQueue, ...]:
    """Written and unreadable by every nameserver's route."""
    route_queues = [set(unreadable_queues(state.topic, route)) for route in state.topic_routes]
    return tuple(sort_message_queues(set.intersection(*route_queues))) if route_queues else ()


def _why_not_audited(state: State, processes: Processes, has_view: bool) -> _Refusal | None:
    if not state.topic:
        return _why_no_topic(state, processes)
    if (no_queue := _why_no_queue(state)) is not None:
        return no_queue
    # Every broker of its topics lists a member, unless the member cannot reach that broker.
    if not processes and offline_share(state) <= 0.5:
        return NO_BROKER_ANSWERED, _who_did_not_answer(state)
    subscribed = [process for process in processes if process.subscribed]
    # Who takes queues by assign() subscribes to nothing.
    readers = subscribed or [process for process in processes if process.chooses_queues]
    if processes and not readers:
        return NOT_SUBSCRIBED, Text("no member subscribes to the topic")
    if readers and all(process.broadcasting for process in readers):
        return BROADCASTING_GROUP, Text("every member reads every queue, as intended")
    if readers and all(process.chooses_queues for process in readers):
        return QUEUES_CHOSEN, Text(
            "every member chooses its queues itself, and nothing is computed: running infos show "
            "what it took by assign(), and not what a pull consumer reads"
        )
    if (shared := _shared_by_broker(state)) is not None:
        return SHARED_BY_BROKER, shared
    if processes and not has_view:
        return NO_BROKER_ANSWERED, Text("no broker of the route gave a list of the group's members")
    for process in _not_computed(processes):
        return STRATEGY_NOT_KNOWN, Text(
            "{client}: {why}. Nothing is computed for the topic: it is judged by what the "
            "members hold, which running infos show",
            client=process.client_id,
            why=process.strategy.unknown or "",
        )
    return None


def _not_computed(processes: Iterable[Process]) -> Iterator[Process]:
    """The processes that share queues by a strategy that cannot be recomputed."""
    return (process for process in processes if process.divides and process.strategy.unknown)


def _why_no_topic(state: State, processes: Processes) -> _Refusal:
    """The coverage of a group without a known topic, and the reason."""
    if processes and all(process.chooses_queues for process in processes):
        return QUEUES_CHOSEN, Text("no member subscribes to a topic: they take queues by assign()")
    if processes:
        return NO_TOPIC, Text("the dumps do not show to which topics the members subscribe")
    if not state.offline_brokers:
        return NO_BROKER_ANSWERED, Text("no broker said who the members of the group are")
    return NO_TOPIC, Text(
        "no broker knows a member or a topic of the group: it is offline, or its members are "
        "behind a proxy in cluster mode"
    )


def _why_no_queue(state: State) -> _Refusal | None:
    if not state.topic_routes:
        return ROUTE_NOT_KNOWN, Text("the dumps have no route of the topic at that time")
    if not any(route.brokers for route in state.topic_routes):
        return ROUTE_NOT_KNOWN, Text("no nameserver knows the topic")
    if not any(broker.is_readable and broker.read_queue_nums > 0 for broker in state.brokers):
        return NO_READABLE_QUEUE, Text("no broker of the route lets consumers read the topic")
    return None


def _zones(state: State) -> str:
    """The caveat of a zone route, in words; empty where the brokers are in one zone.

    No dump shows which clients are in zone mode.
    """
    zones = {broker.zone_name for broker in state.brokers if broker.zone_name}
    if len(zones) < 2:
        return ""
    return Text(
        "the brokers are in the zones {zones}: recomputed for clients that see all of them; a "
        "client in zone mode sees only the brokers of its zone",
        zones=with_commas(sorted(zones)),
    )


def _shared_by_broker(state: State) -> str | None:
    """Members whose queues the broker or the proxy deals out: they share queues by design.

    A client that leaves the assignment to the broker (``RebalancePushImpl.clientRebalance``) shares
    the queues of a topic whose mode is POP. With PULL, which is the mode of every retry topic and
    of what a client has in its table, the broker divides them as the client would
    (``QueryAssignmentProcessor.doLoadBalance`` 5.1.4). A client that assigns for itself asks no
    broker, so the mode is nothing to it.
    """
    is_pull = state.request_mode == PULL or is_retry_topic(state.topic)
    is_pop = state.request_mode == POP and not is_pull
    for member in state.members:
        client_id = member.client_id
        if member.client_rebalance is False and not is_pull:
            return Text("{client} leaves the assignment to the broker (POP)", client=client_id)
        if parse_client_id(client_id).format is ClientIdFormat.GRPC:
            return Text("{client} is a gRPC client, which shares queues by POP", client=client_id)
        if is_pop and member.client_rebalance is None and member.subscribed:
            return Text("the brokers let the group consume {topic} by POP", topic=state.topic)
    return None


def offline_share(state: State) -> float:
    """The share of the brokers that a client may ask at which the group has no member.

    A group that no list has a member of lost its last one where it is more than half: the very
    broker that is down must not hide that. Then all of its queues are orphaned.
    """
    asked = asked_brokers(state.brokers)
    return len(asked & set(state.offline_brokers)) / len(asked) if asked else 0.0


def _who_did_not_answer(state: State) -> str:
    """The brokers of the route that might have a member, of a group that no list has one of."""
    asked, offline = asked_brokers(state.brokers), set(state.offline_brokers)
    if not asked & offline:
        return Text("no broker of the route listed the members of the group")
    silent = sorted({name for name, _ in asked - offline})
    return Text(
        "the other brokers of the route know no member of the group; no list came from {brokers}",
        brokers=with_commas(silent),
    )


def _pulled_and_popped(state: State, processes: Processes, views: Views) -> Iterator[Finding]:
    """The queues that members pull while others get messages of all queues by POP.

    Who pulls divides the queues among all members of the list. POP serves every queue
    (``PopMessageProcessor`` 5.1.4), so that those are read a second time.
    """
    pops = {m.client_id for m in state.members if m.subscribed and m.client_rebalance is False}
    pulls = {m.client_id for m in state.members if m.client_rebalance} - pops
    if not pops or not pulls:
        return

    def taking(process: Process) -> Process:
        is_it = process.client_id in pulls and process.strategy.strategy is not None
        return process._replace(chooses_queues=not is_it)

    try:
        claims = compute_claims(views.views, [*map(taking, processes)], state)
    except AllocationError:
        return
    entries = zip(claims.row.tolist(), claims.column.tolist(), claims.share.tolist(), strict=True)
    by_column = grouped((column, _claimant(processes[row], p)) for row, column, p in entries)
    for column, claimants in sorted(by_column.items()):
        likely = 1.0 - prod((1.0 - one.probability) ** one.processes for one in claimants)
        certainty = CERTAIN if any(one.probability == 1.0 for one in claimants) else POSSIBLE
        yield Finding(DUPLICATE, claims.queues[column], certainty, likely, tuple(claimants))


def _claimant(process: Process, share: float) -> Claimant:
    return Claimant(process.client_id, process.count, share)


def _without_claims(
    verdict: Callable[..., Evaluation], state: State, refusal: _Refusal | None
) -> Evaluation:
    """A state that was not recomputed, or one in which the group has no member at all."""
    queues = sort_message_queues(readable_by_some(state))
    if refusal is not None:
        coverage, reason = refusal
        return verdict(coverage=coverage, reason=reason, queues=len(queues))
    share = offline_share(state)
    return verdict(
        coverage=AUDITED,
        reason=Text("the group has no member") if share == 1.0 else _who_did_not_answer(state),
        # That a broker knows no member is all there is to know of it.
        completeness=share,
        queues=len(queues),
        findings=tuple(Finding(ORPHANED, queue, CERTAIN, 1.0, ()) for queue in queues),
    )


def _weakest(ranked: Sequence[_Source], there: Collection[str | None]) -> _Source | None:
    """The weakest source that is there; ``ranked`` is from the best to the weakest."""
    return next((source for source in reversed(ranked) if source in there), None)


#: The greatest value of a column of type int.
MOST_INT = 2**31 - 1

#: The number of queues looked at together where they are not all right: bounds the memory.
_QUEUES_AT_ONCE = 256


def _findings(claims: Claims) -> Iterator[Finding]:
    doubtful = claims.doubtful_columns()
    for start in range(0, len(doubtful), _QUEUES_AT_ONCE):
        columns = doubtful[start : start + _QUEUES_AT_ONCE]
        rows, shares = claims.shares_of(columns)
        claiming = [claims.processes[row] for row in rows.tolist()]
        owners = count_owners(shares, [process.count for process in claiming])
        none = ORPHANED, owners.none, owners.surely_none
        kinds = none, (DUPLICATE, owners.several, owners.surely_several)
        for number in ((owners.none > 0) | (owners.several > 0)).nonzero()[0].tolist():
            claimants = tuple(
                _claimant(claiming[row], float(shares[row, number]))
                for row in shares[:, number].nonzero()[0].tolist()
            )
            queue = claims.queues[columns[number]]
            for kind, probability, surely in kinds:
                if (likely := float(probability[number])) > 0:
                    certainty = CERTAIN if surely[number] else POSSIBLE
                    yield Finding(kind, queue, certainty, likely, claimants)


#: The strategies that nearly all clients use whose strategy nobody saw: every SDK has the first as
#: its default.
_COMMON = (Averagely(), AveragelyByCircle())


def _as_far_as_assumed(found: Sequence[Finding], claims: Claims, state: State) -> Iterator[Finding]:
    """The findings, with those marked that clients whose strategy is assumed decide: they are not
    certain where these use another common one.

    Worked example: two of three processes share an id, and there are eight queues. By AVG queues 0
    to 2 are read twice and 3 to 5 by nobody; by AVG_BY_CIRCLE 0, 3 and 6, and 1, 4 and 7. So 0 is
    read twice by both, and 4 by nobody.
    """

    def certain_keys(findings: Iterable[Finding]) -> set[FindingKey]:
        return {finding.key for finding in findings if finding.certainty == CERTAIN}

    def using(other: AllocationStrategy, process: Process) -> Process:
        resolved = process.strategy
        if resolved.source != "assumed" or not resolved.strategy:
            return process
        return process._replace(strategy=replace(resolved, strategy=other))

    certain = certain_keys(found)
    by_all = set(certain)
    for other in _COMMON if certain else ():
        processes = [using(other, process) for process in claims.processes]
        by_all &= certain_keys(_findings(compute_claims(claims.views, processes, state)))
    for finding in found:
        yield replace(finding, is_assumed=finding.key in certain - by_all)


def _allocations(claims: Claims) -> tuple[Allocation[MessageQueue], ...]:
    return tuple(
        Allocation(
            client_id=process.client_id,
            processes=process.count,
            subscribed=process.subscribed,
            strategy=process.strategy.strategy.name if process.strategy.strategy else "",
            strategy_source=process.strategy.source,
            view_brokers=view.brokers,
            view_weight=float(claims.weights[number, row]),
            view_queues=len(view.queues),
            view_clients=len(view.client_ids),
            queues=tuple(claims.taken(number, row)),
        )
        for number, view in enumerate(claims.views)
        for row, process in enumerate(claims.processes)
        if claims.weights[number, row] > 0
    )


def _effects(stacked_ids: tuple[StackedId, ...], claims: Claims) -> tuple[StackedId, ...]:
    """The ids with the most that each does under any view: its processes may draw whichever."""
    if not stacked_ids:
        return ()
    behind = Counter({stacked_id.client_id: 0 for stacked_id in stacked_ids})
    users: dict[AllocationStrategy, set[str]] = defaultdict(set)
    for process in claims.processes:
        if process.client_id in behind and process.takes_part:
            behind[process.client_id] += process.count
            if process.divides and process.strategy.strategy is not None:
                users[process.strategy.strategy].add(process.client_id)
    wasted, duplicated, orphaned = Counter[str](), Counter[str](), Counter[str]()
    for view in claims.views:
        # The union of two counters has the larger of their counts.
        wasted |= Counter(view.client_ids) - Counter(behind.keys())
        for strategy, client_ids in users.items():
            taken = strategy.claims(view.queues, view.client_ids)
            several = (client_id for client_id in client_ids if behind[client_id] > 1)
            duplicated |= Counter({id_: len(taken.get(id_, ())) for id_ in several})
            later = _in_later_slots(strategy, view.queues, view.client_ids, taken)
            orphaned |= Counter({client_id: later[client_id] for client_id in client_ids})
    return tuple(
        stacked._replace(
            slots_wasted=wasted[stacked.client_id],
            queues_duplicated=duplicated[stacked.client_id],
            queues_orphaned=orphaned[stacked.client_id],
        )
        for stacked in stacked_ids
    )


def _in_later_slots(
    strategy: AllocationStrategy, queues: Queues, client_ids: ClientIds, taken: Taken
) -> Counter[str]:
    """The orphaned queues, counted, that each id's later copies would take with separate ids.

    All copies are parted at once. Where slots decide, that moves no other's; on a ring it does,
    but there every queue is somebody's as it is.
    """
    orphaned = np.ones(len(queues), dtype=np.bool_)
    for positions in taken.values():
        orphaned[positions] = False
    orphans_of_later = Counter[str]()
    if not orphaned.any():
        return orphans_of_later
    parted = [(client_id, copy_id(client_id, copy)) for client_id, copy in numbered(client_ids)]
    apart = strategy.claims(queues, [separate for _, separate in parted])
    for client_id, separate in parted:
        if separate != client_id:
            orphans_of_later[client_id] += int(orphaned[apart[separate]].sum())
    return orphans_of_later
