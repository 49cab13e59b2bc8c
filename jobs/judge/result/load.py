"""evaluated situations -> group_load: how many queues each client has over all topics of a group.

Each topic is divided for itself, and its first clients get what is left over: of 6 topics with 5
queues and 2 clients the first has 18 queues and the second 12. Nothing is wrong with any topic, so
this is never a finding: ``group_health`` has it.

The retry topic does not count: it has one queue a broker, which the first clients have, and few
messages. It does not show who has much to do.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from rebalance_core import MessageQueue, make_strategy
from rebalance_core.division import processes_by_client, queues_by_client, shown_id
from rebalance_core.english import agreeing, count, joined, names
from rebalance_core.findings import AUDITED
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.repairs import GHOST_MEMBER, MANUAL_ASSIGNMENT, MIXED_MESSAGE_MODEL
from rebalance_core.strategy_factory import STRATEGIES
from rebalance_core.strategy_rules import NEED_PARAMETERS
from rebalance_core.texts import Text

from ..observe.arrow_tables import Row
from ..observe.core_verdict import QueueAllocation, Verdict
from ..rules.case import Case

#: The members that these faults name do not share the queues with the others.
_NO_PART = frozenset((GHOST_MEMBER, MANUAL_ASSIGNMENT, MIXED_MESSAGE_MODEL))

#: Strategies that need no parameters: any group can use them.
_FREE_STRATEGIES = tuple(name for name in STRATEGIES if name not in NEED_PARAMETERS)
#: Strategies that divide each topic as evenly as it can be.
_EVEN_BUT_FOR_REMAINDERS = frozenset(("AVG", "AVG_BY_CIRCLE"))
#: The load is uneven from so many queues between the fullest and the emptiest client on (within one
#: topic a remainder of one is as even as it gets), if the fullest has a tenth more than the mean.
_UNEVEN_QUEUES = 2
_UNEVEN_SHARE = 1.1
#: Another strategy is clearly fairer if the fullest and the emptiest client then differ by at most
#: two thirds of what they differ by now.
_CLEARLY_FAIRER = 2 / 3
#: Other strategies are tried up to so many clients times topics: a ring takes a while.
_MOST_TRIED = 10_000


@dataclass(frozen=True)
class ClientLoad:
    """The load of each process of a client id: topics, queues, and queues of the retry topic."""

    client_id: str
    processes: int
    topics: int
    queues: float
    retry_queues: float

    @property
    def idle(self) -> bool:
        """True if it subscribes and gets no queue of any topic."""
        return self.topics > 0 and self.queues == 0


@dataclass(frozen=True)
class GroupLoad:
    """The clients of a group at the end of the window, over all topics that were recomputed then.

    ``queues`` has by topic how many there are, without the retry topic. ``uneven_by``: the
    strategies by which one client has clearly more to do than another; none where no client has, or
    where some queue is wrong, for then it does not come from the strategy alone. ``fairer`` is a
    strategy that would be clearly fairer, with the queues of the fullest and of the emptiest client
    then.
    """

    clients: tuple[ClientLoad, ...]
    queues: Mapping[str, int]
    uneven_by: frozenset[str] = frozenset()
    fairer: tuple[str, int, int] | None = None

    @cached_property
    def sharing(self) -> tuple[ClientLoad, ...]:
        """The clients that subscribe to a topic beside the retry topic, fullest first."""
        with_topics = (client for client in self.clients if client.topics)
        return tuple(sorted(with_topics, key=lambda load: (-load.queues, load.client_id)))

    @property
    def idle(self) -> tuple[ClientLoad, ...]:
        """The clients that get no queue of any topic."""
        return tuple(load for load in self.sharing if load.idle)

    @property
    def processes(self) -> int:
        """The number of processes that share the queues."""
        return sum(load.processes for load in self.sharing)

    @property
    def is_uneven(self) -> bool:
        """True if one client has clearly more to do than another, for whatever reason."""
        if len(self.sharing) < 2:
            return False
        most, fewest = self.sharing[0].queues, self.sharing[-1].queues
        mean = sum(load.queues * load.processes for load in self.sharing) / max(self.processes, 1)
        return most - fewest >= _UNEVEN_QUEUES and most > _UNEVEN_SHARE * mean

    @property
    def most_clients(self) -> int:
        """The most clients that can get a queue: one queue has one client."""
        return max(self.queues.values(), default=0)

    def rows(self) -> list[Row]:
        """The rows of ``group_load``."""
        # Without a queue each has none of one.
        in_all = sum(self.queues.values()) or 1
        return [
            vars(one) | {"share": one.queues / in_all, "idle": one.idle} for one in self.clients
        ]

    def columns(self) -> Row:
        """The columns of ``group_health`` that are about the whole group."""
        sharing = self.sharing
        return {
            "group_most_queues": round(sharing[0].queues) if sharing else None,
            "group_fewest_queues": round(sharing[-1].queues) if sharing else None,
            "group_idle_clients": len(self.idle) if sharing else None,
            "group_most_clients": self.most_clients if sharing else None,
            "fairer_strategy": self.fairer[0] if self.fairer else None,
        }

    def text(self) -> str:
        """The load in words; empty where it is even."""
        return joined([*self._idle_sentences(), *self._uneven_sentences()])

    def _idle_sentences(self) -> Iterator[Text]:
        if not self.idle:
            return
        yield agreeing(
            len(self.idle),
            "{idle} of {clients} [has|have] no queue of any topic ({names})",
            idle=len(self.idle),
            clients=count(len(self.sharing), "client"),
            names=names([shown_id(load.client_id) for load in self.idle], 3),
        )
        if self.most_clients <= self.processes:
            yield Text(
                "more clients would not help, because the largest topic has {queues}: more "
                "queues would",
                queues=count(self.most_clients, "queue"),
            )

    def _uneven_sentences(self) -> Iterator[Text]:
        few_queues = bool(self.idle) and self.most_clients <= len(self.sharing)
        if not self.uneven_by or few_queues:
            return
        most, fewest = self.sharing[0], self.sharing[-1]
        shares = Text(
            "{fullest} has {most} and {emptiest} has {fewest}",
            fullest=shown_id(most.client_id),
            most=_number(most.queues),
            emptiest=shown_id(fewest.client_id),
            fewest=_number(fewest.queues),
        )
        if len(self.queues) > 1:
            template = "over the {topics} topics of the group {shares}"
            shares = Text(template, topics=len(self.queues), shares=shares)
        yield shares
        if self.fairer is not None:
            strategy, then_most, then_fewest = self.fairer
            then = count(then_most, "queue")
            if then_fewest < then_most:
                then = Text("{fewest:,} to {queues}", fewest=then_fewest, queues=then)
            yield Text("with {strategy} each would have {then}", strategy=strategy, then=then)
        if self.uneven_by <= _EVEN_BUT_FOR_REMAINDERS:
            yield Text(
                "the remainder of each topic goes to the first clients: queue numbers that are "
                "multiples of {processes:,} would be even",
                processes=self.processes,
            )


def _number(queues: float) -> Text:
    whole = count(round(queues), "queue")
    return whole if abs(queues - round(queues)) < 1e-9 else Text("about {queues}", queues=whole)


def group_load(case: Case) -> GroupLoad:
    """The load at the end of the window: of each topic, its last situation that was recomputed.

    Only that one is looked at: of a giant group there are many, with many allocations each.
    """
    at_end: dict[str, Verdict] = {}
    for topic, periods in case.situations.by_topic.items():
        found = (case.evaluated[period.situation.situation_id] for period in reversed(periods))
        last = next((verdict for verdict in found if verdict.verdict.shows_owners), None)
        if last is not None and last.verdict.coverage == AUDITED:
            at_end[topic] = last
    allocations = {topic: verdict.allocations() for topic, verdict in at_end.items()}
    faults = chain.from_iterable(verdict.faults for verdict in at_end.values())
    no_part = chain.from_iterable(fault.client_ids for fault in faults if fault.fault in _NO_PART)
    group = case.dossier.consumer_group
    counted = {of: them for of, them in allocations.items() if not is_own_retry_topic(of, group)}
    queues = {topic: at_end[topic].verdict.queues for topic, shares in counted.items() if shares}
    load = GroupLoad(_clients(group, allocations, set(no_part)), queues)
    if any(verdict.findings for verdict in at_end.values()) or not load.is_uneven:
        return load
    every = chain.from_iterable(counted.values())
    load = replace(load, uneven_by=frozenset(share.strategy for share in every if share.subscribed))
    return replace(load, fairer=_fairer(group, load, counted))


def _clients(
    group: str, allocations: Mapping[str, Sequence[QueueAllocation]], no_part: set[str]
) -> tuple[ClientLoad, ...]:
    queues: dict[str, float] = defaultdict(float)
    retry_queues: dict[str, float] = defaultdict(float)
    topics, processes = Counter[str](), Counter[str]()
    for topic, shares in allocations.items():
        is_retry = is_own_retry_topic(topic, group)
        processes |= Counter(processes_by_client(shares))  # the larger of the two
        for client_id, taken in queues_by_client(shares).items():
            (retry_queues if is_retry else queues)[client_id] += taken
        if not is_retry:
            topics.update({share.client_id for share in shares if share.subscribed} - no_part)
    return tuple(
        ClientLoad(id_, number, topics[id_], round(queues[id_], 9), round(retry_queues[id_], 9))
        for id_, number in sorted(processes.items())
    )


def _fairer(
    group: str, load: GroupLoad, allocations: Mapping[str, Sequence[QueueAllocation]]
) -> tuple[str, int, int] | None:
    """The strategy with the smallest largest load, if it is clearly fairer; as Java computes it.

    Only where one strategy that needs no parameters is used: who chose rooms or lists has a reason.
    """
    most, fewest = load.sharing[0].queues, load.sharing[-1].queues
    if (
        len(load.uneven_by) != 1
        or not load.uneven_by.issubset(_FREE_STRATEGIES)
        or len(load.sharing) * len(allocations) > _MOST_TRIED
        or any(share.view_weight < 1 for shares in allocations.values() for share in shares)
    ):
        return None
    tried: list[tuple[int, int, str]] = []
    for name in _FREE_STRATEGIES:
        strategy, loads = make_strategy(name), Counter({one.client_id: 0 for one in load.sharing})
        for topic, shares in allocations.items():
            queues = [MessageQueue(topic, *queue) for share in shares for queue in share.queues]
            client_ids = [share.client_id for share in shares]
            for client_id, taken in strategy.allocate_all(group, queues, client_ids).items():
                loads[client_id] += len(taken)
        tried.append((max(loads.values()), -min(loads.values()), name))
    then_most, then_fewest, name = min(tried)
    is_fairer = then_most + then_fewest <= _CLEARLY_FAIRER * (most - fewest) + 1e-9
    return (name, then_most, -then_fewest) if is_fairer else None


def with_load(health: Row, load: GroupLoad, group: str) -> Row:
    """The row of ``group_health`` of the group's topic with what is about the whole group.

    Only a topic that was recomputed has it, and not the group's retry topic.
    """
    is_own = is_own_retry_topic(health["topic"], group)
    if health["coverage"] != AUDITED or is_own:
        return {**health, **GroupLoad((), {}).columns()}
    reason = joined(part for part in (health["reason"], load.text()) if part)
    return {**health, **load.columns(), "reason": reason}
