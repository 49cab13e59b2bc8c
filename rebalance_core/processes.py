"""Processes behind the members of the brokers' lists.

A process has one connection per broker, with another port on each, so processes cannot be counted
by their addresses. Within one broker's list, though, every connection is one process, or a stale
channel of one that reconnected, which the broker closes within about 130 s. So time shows best how
many processes use a client id; where it does not, the id itself and what most lists confirm do.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, TypeAlias

from .client_id import STALE_CHANNEL_REMEDY, parse_client_id, remedy_of
from .english import count, named_broker, with_commas
from .grouping import grouped
from .message_queue import bytewise_order_differs
from .state import BROADCASTING, SURE, Member, ProcessCount, State
from .strategy import AllocationStrategy
from .strategy_rules import KnownClient, ResolvedStrategy, StrategyRules
from .texts import Text
from .views import asked_brokers


class Process(NamedTuple):
    """Processes of a group that are alike: the same client id, strategy and subscription.

    ``count`` of them use the id, and each draws its views independently. Silent ones
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
    #: The names of the brokers that it does not reach: see ``State.unreachable``.
    unreachable: tuple[str, ...] = ()
    #: The likelihood that it subscribes: see ``Member.subscribed_percent``.
    share: float = 1.0
    #: True if it reads slaves where a route has no master. client-go reads none; who consumes in
    #: order asks the master alone for the lock of a queue (``RebalanceImpl.lock`` 4.2.0 to 5.3.3).
    reads_slaves: bool = True

    @property
    def reads(self) -> bool:
        """True if it may read the topic: who takes queues by ``assign()`` subscribes to nothing."""
        return self.subscribed or self.chooses_queues

    @property
    def takes_part(self) -> bool:
        """True if it takes part in the topic's rebalance."""
        return self.subscribed and not self.chooses_queues and not self.silent

    @property
    def divides(self) -> bool:
        """True if it takes a share of the queues by a strategy."""
        return self.takes_part and not self.broadcasting


Processes: TypeAlias = tuple[Process, ...]

#: The reason for an id that one list alone has several times, as long as time has not shown more.
NOT_YET_KNOWN = Text(
    "other brokers list it less often: one process has reconnected, or another one has just "
    "started; the lists show which once an old connection would be dropped, about 130 s later"
)

#: The reasons for several processes of an id where lists alone show them, and no time.
ONE_LIST_HAS_IT = Text("only one broker's list has it, and nothing shows a reconnection")
LISTS_CONFIRM_IT = Text(
    "the lists of several brokers confirm it; of one process that reconnected they drop the old "
    "connection within about 130 s, so a list after that makes it certain"
)

#: The members of one client id in each broker's list, with the broker's name and id.
CopiesPerList = list[tuple[tuple[str, int], list[Member]]]


class StackedId(NamedTuple):
    """A client id that is more than once in some broker's list, and what it does to the queues.

    ``evidence`` says what was seen, ``remedy`` what repairs it; ``copies`` are the most that one
    list has, of so many ``processes``: where that is 1, the other copies are stale channels of the
    one process. ``is_settled``: the lists of the next minutes would show no other number.
    ``client_addrs`` are those of the copies, ``versions`` and ``languages`` those of all members.

    ``slots_wasted`` are the slots of the later copies, which nobody takes; the queues in them are
    orphaned (``queues_orphaned``), those of the first copy are taken once per process
    (``queues_duplicated``). An evaluation has these three; 0: the queues were not looked at.
    """

    client_id: str
    id_format: str
    evidence: str
    remedy: str
    copies: int
    processes: int
    is_settled: bool
    client_addrs: tuple[str, ...]
    versions: tuple[int, ...]
    languages: tuple[str, ...]
    slots_wasted: int = 0
    queues_duplicated: int = 0
    queues_orphaned: int = 0


def _stacked_id(client_id: str, lists: CopiesPerList, processes: int, because: str) -> StackedId:
    every = [member for _, members in lists for member in members]
    addresses = {m.client_addr for _, members in lists for m in members if len(members) > 1}
    copies_per_list = tuple((broker, len(members)) for broker, members in lists)
    hosts = {address.rpartition(":")[0] for address in addresses}
    remedy = remedy_of(client_id, *_spoken(every))
    is_settled = because not in (NOT_YET_KNOWN, ONE_LIST_HAS_IT, LISTS_CONFIRM_IT)
    if processes == 1:
        template = "wait for the lists of the next minutes; if both are still there: {remedy}"
        remedy = STALE_CHANNEL_REMEDY if is_settled else Text(template, remedy=remedy)
    return StackedId(
        client_id=client_id,
        id_format=parse_client_id(client_id).format.name,
        evidence=_evidence(copies_per_list, len(hosts), processes, because),
        remedy=remedy,
        copies=max(copies for _, copies in copies_per_list),
        processes=processes,
        is_settled=is_settled,
        client_addrs=tuple(sorted(addresses)),
        versions=tuple(sorted({m.version for m in every if m.version is not None})),
        languages=tuple(sorted({m.language for m in every if m.language is not None})),
    )


# Each repair of a state is evaluated, and most leave an id as it is.
@lru_cache(maxsize=4_096)
def _evidence(
    copies_per_list: tuple[tuple[tuple[str, int], int], ...],
    hosts: int,
    processes: int,
    because: str,
) -> Text:
    listed = (
        Text("{times} by {broker}", times=count(copies, "time"), broker=named_broker(*broker))
        for broker, copies in copies_per_list
    )
    return Text(
        "listed {times}, from {hosts}; counted as {processes}: {because}",
        times=with_commas(listed),
        hosts=count(hosts, "host"),
        processes=count(processes, "process", "processes"),
        because=because,
    )


def confirmed_processes(copies_per_list: list[int]) -> int:
    """The number of processes that use an id, from its copies in each list that has it.

    The highest multiplicity that most of the lists confirm; at least one. Half of them do not: one
    process that reconnects to a master and its slave is twice in two lists, and others show it
    once. A list without the id neither confirms nor refutes it: a process heartbeats to brokers of
    its topics.

    >>> confirmed_processes([2, 2, 1]), confirmed_processes([2, 2, 1, 1]), confirmed_processes([2])
    (2, 1, 2)
    """
    return sorted(copies_per_list, reverse=True)[len(copies_per_list) // 2]


def count_processes(
    client_id: str,
    copies_per_list: list[int],
    shown: ProcessCount | None,
    language: str | None,
) -> tuple[int, str]:
    """The number of processes that use an id that some list has twice, and in words the evidence.

    From the surest to the least sure: what its connections showed in time (``shown``); an id that
    holds a time or a random part, which no two processes have; what most lists confirm. What the
    rest of the group does is no evidence.

    >>> count_processes("10.0.0.1@app", [2, 1], None, None)[0]
    1
    >>> shown = ProcessCount("10.0.0.1@app", 2, "both stay")
    >>> count_processes("10.0.0.1@app", [2, 1], shown, None)[0]
    2
    >>> count_processes("10.0.0.1@1#123456789012345", [2, 2], None, None)[0]
    1
    """
    most = max(copies_per_list)
    if shown is not None:
        return min(shown.processes, most), shown.because
    if not parse_client_id(client_id, language).can_collide:
        return 1, Text("no two processes make the same id of this kind, so one has reconnected")
    processes = confirmed_processes(copies_per_list)
    if len(copies_per_list) == 1:
        return processes, ONE_LIST_HAS_IT
    if processes == most:
        return processes, LISTS_CONFIRM_IT
    return processes, NOT_YET_KNOWN


def processes_behind(state: State) -> dict[str, int]:
    """The number of processes that use each client id."""
    return {client_id: count for client_id, _, count, _ in _counted_ids(state)}


def _counted_ids(state: State) -> Iterator[tuple[str, CopiesPerList, int, str]]:
    """Every client id, in order, with its members by list, and how many processes use it, with
    what shows that in words.
    """
    copies = grouped(
        (client_id, (entry.broker, members))
        for entry in sorted(state.client_lists, key=attrgetter("broker"))
        for client_id, members in entry.by_id.items()
    )
    shown = {counted.client_id: counted for counted in state.process_counts if counted.processes}
    for client_id, lists in sorted(copies.items()):
        times = [len(members) for _, members in lists]
        counted = 1, ""
        if max(times) > 1:
            language, _ = _spoken([member for _, members in lists for member in members])
            counted = count_processes(client_id, times, shown.get(client_id), language)
        yield client_id, lists, *counted


def silent_members(state: State) -> frozenset[tuple[str, int, str]]:
    """(broker name, broker id, address) of the members whose heartbeats have stopped.

    A broker drops a channel on which nothing came for 120 s, at its next scan 10 s later
    (``ClientChannelInfo``, ``ConsumerManager.scanNotActiveChannel``): until then, or for longer
    where it does not, a client that stopped without a word is a ghost. One death is over before it
    lasts. Only of lists of which
    another member was heard lately: else it is the collector that stopped listening. A client
    that is silent at one broker and heard at none is silent at all: heartbeats of the others may
    not be collected. A client id behind which there is no process any more (``process_counts``)
    is silent whoever is heard.
    """
    silent: set[tuple[str, int, str]] = set()
    silent_ids: set[str] = set()
    heard_ids: set[str] = set()
    for entry in state.client_lists:
        heard = {member.client_id for member in entry.members if member.is_expired is False}
        heard_ids |= heard
        if heard:
            # An old connection of a client that is heard over another one is a stale channel.
            expired = [m for m in entry.members if m.is_expired and m.client_id not in heard]
            silent.update((*entry.broker, member.client_addr) for member in expired)
            silent_ids.update(member.client_id for member in expired)
    gone = (silent_ids - heard_ids) | state.ids_of_nobody
    for entry in state.client_lists if gone else ():
        addrs = (member.client_addr for member in entry.members if member.client_id in gone)
        silent.update((*entry.broker, addr) for addr in addrs)
    return frozenset(silent)


def find_processes(state: State, rules: StrategyRules) -> Processes:
    """The processes of the group, by client id; alike ones of one id as one entry.

    Its members show what a process subscribes to and which strategy it uses: where an id has one
    process, by all of them together (one list may have had its heartbeat later than another); where
    it has several, by the list that shows most of them.
    """
    plain = _plain_members(state)
    if plain is None:
        processes = _look_closely(state, rules)
    else:
        process_of = _processes_by(state, rules, (shown[_STRATEGY] for shown in plain.values()))
        every = sorted(plain.items())
        processes = tuple(process_of(client_id, _Traits(*shown)) for client_id, shown in every)
    return _with_unreachable(state, processes) if state.unreachable else processes


class _Traits(NamedTuple):
    """The traits of a process that a member shows: ``_look_closely`` uses nothing else of it."""

    subscribed: bool
    message_model: str
    chooses_queues: bool
    strategy: str | None
    language: str | None
    version: int | None
    subscribed_percent: int
    silent: bool = False


#: The traits of a member but for the last, which other members show.
_facts_of = itemgetter(*map(Member._fields.index, _Traits._fields[:-1]))
_STRATEGY = _Traits._fields.index("strategy")


def _plain_members(state: State) -> dict[str, tuple[Any, ...]] | None:
    """The facts of each client id's member where there is nothing to weigh: no id is twice in a
    list, no member is silent, and every list shows the same of an id. So it is in nearly all
    states, and these cost a third of what a closer look costs. None: look closely.
    """
    facts: dict[str, tuple[Any, ...]] = {}
    if state.ids_of_nobody:
        return None
    for entry in state.client_lists:
        here = {member.client_id: _facts_of(member) for member in entry.members}
        facts = here | facts
        if len(here) < len(entry.members) or not here.items() <= facts.items():
            return None
        if any(member.is_expired for member in entry.members):
            return None
    return facts


def _look_closely(state: State, rules: StrategyRules) -> Processes:
    """The processes of any state."""
    silent = silent_members(state)
    process_of = _processes_by(state, rules, (member.strategy for member in state.members))
    processes: list[Process] = []
    for client_id, lists, behind, _ in _counted_ids(state):
        traits = [
            [_Traits._make((*_facts_of(m), (*broker, m.client_addr) in silent)) for m in members]
            for broker, members in lists
        ]
        if behind == 1:
            processes.append(process_of(client_id, _traits_of_one(tuple(chain(*traits)))))
        else:
            alike = Counter(process_of(client_id, t) for t in _traits_of_several(traits, behind))
            processes += [process._replace(count=number) for process, number in alike.items()]
    return tuple(processes)


def _with_unreachable(state: State, processes: Processes) -> Processes:
    """The processes with the brokers that they do not reach: see ``State.unreachable``.

    As many processes of an id do not reach a broker as it does not list. Which ones that are
    nothing shows; that it is the same ones for every broker is likeliest. A slave that lists a
    client shows nothing while the client asks the master.
    """
    missing = {id_: Counter(names) for id_, names in grouped(state.unreachable).items()}
    by_everybody = missing.pop(None, Counter[str]())
    listed: Counter[tuple[str, str]] = Counter()
    asked = asked_brokers(state.brokers)
    for entry in state.client_lists:
        if entry.broker in asked:
            ids = (m.client_id for m in entry.members if m.client_id in missing)
            # The union of two counters has the larger of their counts.
            listed |= Counter((id_, entry.broker_name) for id_ in ids)
    every = [process._replace(count=1) for process in processes for _ in range(process.count)]
    processes_by_id = Counter(process.client_id for process in every)
    behind = processes_by_id.copy()
    found: Counter[Process] = Counter()
    for process in every:
        client_id = process.client_id
        behind[client_id] -= 1  # so many of the id come after it
        names = (
            name
            for name, copies in missing.get(client_id, {}).items()
            if behind[client_id] < min(copies, processes_by_id[client_id] - listed[client_id, name])
        )
        found[process._replace(unreachable=tuple(sorted({*by_everybody, *names})))] += 1
    return tuple(process._replace(count=count) for process, count in found.items())


def _processes_by(
    state: State, rules: StrategyRules, observed: Iterable[str | None]
) -> Callable[[str, _Traits], Process]:
    """A function that makes a process of an id and traits, by the strategies that were observed."""
    resolved = _resolver(state, rules, observed)

    def process(client_id: str, traits: _Traits) -> Process:
        subscribed, model, chooses, strategy, language, version, percent, silent = traits
        client_strategy = resolved(client_id, strategy, language, version)
        share = percent / SURE if subscribed else 1.0
        shown = subscribed, model == BROADCASTING, client_strategy, chooses, silent
        reads_slaves = language != "GO" and not state.locks_at_master
        return Process(client_id, 1, *shown, share=share, reads_slaves=reads_slaves)

    return process


def _resolver(
    state: State, rules: StrategyRules, observed: Iterable[str | None]
) -> Callable[[str, str | None, str | None, int | None], ResolvedStrategy]:
    """A function of a client id, the strategy that was observed of it, its language and version."""
    distinct = set(observed) - {None, ""}
    group_strategy = distinct.pop() if len(distinct) == 1 else None
    orders_differ = _orders_differ(state)

    def resolved(
        client_id: str, strategy: str | None, language: str | None, version: int | None
    ) -> ResolvedStrategy:
        known = state.consumer_group, client_id, strategy, group_strategy, language, version
        return rules.resolve(KnownClient(*known, orders_differ))

    return resolved


def strategies_of(state: State, rules: StrategyRules) -> dict[AllocationStrategy, set[str]]:
    """The strategies with the client ids that use them; none at all where that of one client is not
    known, or its members show several.
    """
    resolved = _resolver(state, rules, (member.strategy for member in state.members))
    looks_at_ids = rules.looks_at_ids(state.consumer_group)
    alike = grouped(
        ((looks_at_ids and m.client_id, m.strategy, m.language, m.version), m.client_id)
        for m in state.members
    )
    found: dict[AllocationStrategy, set[str]] = defaultdict(set)
    for (_, observed, language, version), client_ids in alike.items():
        strategy = resolved(client_ids[0], observed, language, version).strategy
        if strategy is None:
            return {}
        found[strategy].update(client_ids)
    several = len(found) > 1 and len(set().union(*found.values())) < sum(map(len, found.values()))
    return {} if several else dict(found)


# Nearly all members of all groups show one of a few things.
@lru_cache(maxsize=1_024)
def _traits_of_one(every: tuple[_Traits, ...]) -> _Traits:
    """The traits of the one process that all these members are."""
    language, version = _spoken(every)
    models = (shown.message_model for shown in every)
    percents = (shown.subscribed_percent for shown in every if shown.subscribed)
    return _Traits(
        subscribed=any(shown.subscribed for shown in every),
        message_model=next((model for model in models if model != BROADCASTING), BROADCASTING),
        chooses_queues=all(shown.chooses_queues for shown in every),
        strategy=next((shown.strategy for shown in every if shown.strategy), None),
        language=language,
        version=version,
        subscribed_percent=max(percents, default=SURE),
        silent=all(shown.silent for shown in every),
    )


def _traits_of_several(traits: list[list[_Traits]], count: int) -> list[_Traits]:
    """The traits of ``count`` processes, by the list that shows most of them; those that claim come
    first.
    """
    richest = max(range(len(traits)), key=lambda number: len(traits[number]))
    in_order = sorted(
        traits[richest],
        key=lambda shown: (
            not shown.subscribed,
            -shown.subscribed_percent,
            shown.chooses_queues,
            shown.silent,
            shown.message_model == BROADCASTING,
            shown.strategy or "",
            shown.language or "",
            shown.version or 0,
        ),
    )
    return in_order[:count]


def _orders_differ(state: State) -> bool:
    """True if clients that sort bytewise have the state's ids or brokers in another order."""
    client_ids = {member.client_id for member in state.members}
    broker_names = {b.broker_name for b in state.brokers}
    return bytewise_order_differs(client_ids) or bytewise_order_differs(broker_names)


def find_stacked_ids(state: State) -> tuple[StackedId, ...]:
    """The client ids that are more than once in a list, other than of broadcasting members.

    A broadcasting client keeps the id ``ip@DEFAULT`` and reads every queue by intent: such copies
    harm only when the group has clustering members, whose slots they take.
    """
    lists = [entry.members for entry in state.client_lists]
    is_any = any(len({m.client_id for m in members}) < len(members) for members in lists)
    if not is_any or all(member.message_model == BROADCASTING for member in state.members):
        return ()
    return tuple(
        _stacked_id(client_id, lists, processes, because)
        for client_id, lists, processes, because in _counted_ids(state)
        if any(len(members) > 1 for _, members in lists)
    )


def _spoken(members: Sequence[Member | _Traits]) -> tuple[str | None, int | None]:
    """Language and version of one and the same member, of one that gives them if any does.

    Those of two members might be no SDK that there is.
    """
    spoken = next((member for member in members if member.language), members[0])
    return spoken.language, spoken.version
