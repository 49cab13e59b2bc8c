"""situations -> the core's verdict on each, once however often it was so.

On Spark a pandas UDF does it, on any core; in one process the same function is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from jobs.contents import MEMBER_FACTS, ROUTE_FACTS
from jobs.judge.allocations import AllocationRows
from jobs.judge.dossier import Broker
from jobs.judge.evaluated import (
    Claimant,
    Evaluated,
    FoundFault,
    FoundQueue,
    FoundStacked,
    Move,
    QueueKey,
)
from jobs.judge.situations import Situation
from jobs.schemas import NO_ANSWER, NOT_ONLINE
from rebalance_core import (
    ClientList,
    Evaluation,
    Fault,
    Member,
    MessageQueue,
    RouteBroker,
    StackedEffect,
    State,
    StrategyRules,
    TopicRoute,
    evaluate,
    find_causes,
    find_faults,
    normalise_expression,
    parse_client_id,
)
from rebalance_core import Situation as CoreSituation
from rebalance_core.findings import Finding
from rebalance_core.state import CLUSTERING, SURE, ProcessCount
from rebalance_core.texts import Text

#: A member of a list: its facts, in the order of ``contents.MEMBER_FACTS``.
MemberFacts = tuple[Any, ...]

#: The facts of a member whatever the topic; what it subscribes to is narrowed to the state's topic.
ANY_TOPIC_FIELDS = tuple(
    fact.name for fact in MEMBER_FACTS if fact.name not in ("doubtful_topics", "subscriptions")
)

#: The fields of a state's members, of its brokers at which the group is not online, and of its
#: route. A version of -1: the list has none.
MEMBER_FIELDS = (
    "broker_name",
    "broker_id",
    *ANY_TOPIC_FIELDS,
    "subscribed",
    "subscribed_percent",
    "expression_type",
    "expression",
)
_ADDR, _VERSION, _MODEL, _SUBSCRIBED, _TYPE, _EXPRESSION = map(
    MEMBER_FIELDS.index,
    ("client_addr", "version", "message_model", "subscribed", "expression_type", "expression"),
)


def _place(record: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*record[:3], record[_ADDR] or str(record))


#: The fields of ``Member`` out of a record: by place, for there are millions of them.
_in_order = itemgetter(*map(MEMBER_FIELDS.index, Member._fields))

OFFLINE_FIELDS = ("broker_name", "broker_id")
#: Where broker_name is null, the nameserver does not know the topic.
ROUTE_FIELDS = ("namesrv_addr", *[fact.name for fact in ROUTE_FACTS])


# ---------------------------------------------------------------- situations to states


class ListPart(NamedTuple):
    """Of a broker's list the members of ``only`` these clients, or all ``without`` these."""

    broker: Broker
    list_id: str
    only: tuple[str, ...] | None = None
    without: tuple[str, ...] | None = None

    def has(self, client_id: str) -> bool:
        """Whether the members of the client belong to the part."""
        if self.only is not None:
            return client_id in self.only
        return self.without is None or client_id not in self.without


def listed(situation: Situation) -> list[ListPart]:
    """The lists that the brokers gave, part by part: see ``membership.Patch``."""
    parts: list[ListPart] = []
    for broker, answer in situation.answers:
        patches = [patch for patch in situation.patches if patch.broker == broker]
        if any(patch.later == NOT_ONLINE for patch in patches):
            continue
        if answer not in (NOT_ONLINE, NO_ANSWER):
            replaced = [client_id for patch in patches for client_id in patch.client_ids]
            parts.append(ListPart(broker, answer, None, tuple(replaced) or None))
        parts += [ListPart(broker, patch.later, patch.client_ids) for patch in patches]
    return parts


def offline(situation: Situation) -> list[tuple[str, int]]:
    """The brokers that answered that the group has no member there."""
    later = {patch.broker: patch.later for patch in situation.patches}
    return [
        broker for broker, answer in situation.answers if later.get(broker, answer) == NOT_ONLINE
    ]


class Subscribed:
    """What members subscribe to, by topic: who has 20,000 of them is asked for each."""

    def __init__(self) -> None:
        #: By identity, with what has it, which nothing else has for as long.
        self._found: dict[int, tuple[Any, dict[str, tuple[Any, ...]]]] = {}

    def expression(self, member: MemberFacts, topic: str) -> tuple[Any, ...] | None:
        """Type and text of the expression; None where the member does not subscribe."""
        subscriptions = member[-1] or ()
        if id(subscriptions) not in self._found:
            by_topic = {each[0]: tuple(each[1:]) for each in reversed(subscriptions)}
            self._found[id(subscriptions)] = subscriptions, by_topic
        return self._found[id(subscriptions)][1].get(topic)


def state_of(
    consumer_group: str,
    situation: Situation,
    members: Mapping[str, Sequence[MemberFacts]],
    subscribed: Subscribed | None = None,
) -> State:
    """The core's state of a situation; ``members`` by list id.

    ``subscribed``: the same for all situations of these members.
    """
    topic = situation.topic
    by_topic = subscribed or Subscribed()
    return make_state(
        consumer_group,
        topic,
        members=(
            (*part.broker, *_of_topic(member, topic, by_topic))
            for part in listed(situation)
            for member in members[part.list_id]
            if part.has(member[_CLIENT_ID])
        ),
        offline=offline(situation),
        counts=situation.process_counts,
        unreachable=situation.unreachable,
        request_mode=situation.request_mode,
        routes=(
            (namesrv_addr, *broker)
            for namesrv_addr, brokers in situation.routes
            for broker in brokers or [_NO_BROKER]
        ),
    )


#: What a nameserver gives that does not know the topic.
_NO_BROKER = (None, None, 0, 0, 0, None)
_LISTED_VERSION = ANY_TOPIC_FIELDS.index("version")
_CLIENT_ID = ANY_TOPIC_FIELDS.index("client_id")


def _of_topic(member: MemberFacts, topic: str, subscribed: Subscribed) -> tuple[Any, ...]:
    """The facts as ``evaluation.MEMBER_FIELDS`` has them, but for the broker."""
    *any_topic, doubtful_topics, _ = member
    if any_topic[_LISTED_VERSION] is None:
        any_topic[_LISTED_VERSION] = -1
    expression = subscribed.expression(member, topic)
    if expression is None:
        return (*any_topic, False, SURE, None, None)
    percent = dict(doubtful_topics).get(topic, SURE) if doubtful_topics else SURE
    return (*any_topic, True, percent, *expression)


#: What _of_topic relies on.
assert [each.name for each in MEMBER_FACTS[-2:]] == ["doubtful_topics", "subscriptions"]  # noqa: S101


def make_state(
    consumer_group: str,
    topic: str,
    *,
    members: Iterable[tuple[Any, ...]],
    offline: Iterable[tuple[Any, ...]],
    routes: Iterable[tuple[Any, ...]],
    counts: Iterable[tuple[Any, ...]] = (),
    unreachable: Iterable[tuple[Any, ...]] = (),
    request_mode: str | None = None,
) -> State:
    """The core's state from records of ``MEMBER_FIELDS``, ``OFFLINE_FIELDS``, ``ROUTE_FIELDS``.

    A connection is once in one broker's list: a row that repeats one (a poll that was
    collected twice) is dropped. Copies of an id have different addresses, and stay.
    """
    lists: dict[tuple[str, int], dict[tuple[str, str], Member]] = {}
    # Sorted, for the order in which rows come, or a broker prints a set, has no meaning.
    for number, record in enumerate(sorted(members, key=_place)):
        values = list(record)
        # Without an address a repeated row looks like a copy of the id: it counts.
        values[_ADDR] = values[_ADDR] or Text("(address {number} not known)", number=number)
        values[_MODEL] = values[_MODEL] or CLUSTERING
        values[_VERSION] = None if values[_VERSION] < 0 else values[_VERSION]
        if values[_SUBSCRIBED]:
            values[_EXPRESSION] = normalise_expression(values[_TYPE], values[_EXPRESSION])
        member = Member._make(_in_order(values))
        of_broker = lists.setdefault((values[0], values[1]), {})
        key = (member.client_id, member.client_addr)
        of_broker[key] = min(of_broker[key], member, key=str) if key in of_broker else member
    brokers: dict[str, dict[str, RouteBroker]] = {}
    for (
        namesrv_addr,
        broker_name,
        ids,
        perm,
        read_queue_nums,
        write_queue_nums,
        zone_name,
    ) in routes:
        of_nameserver = brokers.setdefault(namesrv_addr, {})
        if broker_name is not None:
            of_nameserver[broker_name] = RouteBroker(
                broker_name=broker_name,
                broker_ids=None if ids is None else tuple(sorted(int(id_) for id_ in ids)),
                perm=perm,
                read_queue_nums=read_queue_nums,
                write_queue_nums=write_queue_nums,
                zone_name=zone_name,
            )
    return State(
        consumer_group=consumer_group,
        topic=topic,
        client_lists=tuple(
            ClientList(name, broker_id, tuple(of_list.values()))
            for (name, broker_id), of_list in lists.items()
        ),
        topic_routes=tuple(
            TopicRoute(namesrv_addr, tuple(of_nameserver.values()))
            for namesrv_addr, of_nameserver in sorted(brokers.items())
        ),
        offline_brokers=tuple((name, broker_id) for name, broker_id in offline),
        process_counts=tuple(
            # Every reason is a template without slots, so that a column needs no more than it.
            ProcessCount(client_id, int(processes), Text(because))
            for client_id, processes, because in counts
        ),
        unreachable=tuple((client_id, broker_name) for client_id, broker_name in unreachable),
        request_mode=request_mode,
    )


# ---------------------------------------------------------------- states to verdicts


class Question(NamedTuple):
    """Situations of a group that are to be evaluated, with the lists that they name."""

    cluster: str
    consumer_group: str
    situations: tuple[Situation, ...]
    #: By list id.
    members: Mapping[str, Sequence[MemberFacts]]


class Verdicts(NamedTuple):
    """The core's verdicts on the situations of a question, in their order."""

    evaluated: list[tuple[str, Evaluated]]
    allocations: AllocationRows

    def by_id(self) -> dict[str, Evaluated]:
        """By situation, each with its allocations."""
        return {
            situation_id: each.with_allocations(self.allocations.of(place))
            for place, (situation_id, each) in enumerate(self.evaluated)
        }


#: So many members of so many situations are evaluated at a time: some 10 ms of work at least, and
#: no more than some megabytes of members and of what each of them takes.
_MEMBERS_AT_ONCE = 20_000


def questions(
    cluster: str,
    consumer_group: str,
    situations: Iterable[Situation],
    members: Mapping[str, Sequence[MemberFacts]],
) -> Iterable[Question]:
    """The situations of a group in questions of about equal work."""
    chosen: list[Situation] = []
    lists: dict[str, Sequence[MemberFacts]] = {}
    work = 0
    for situation in situations:
        of_situation = {part.list_id: members[part.list_id] for part in listed(situation)}
        chosen.append(situation)
        lists |= of_situation
        work += sum(map(len, of_situation.values()))
        if work >= _MEMBERS_AT_ONCE:
            yield Question(cluster, consumer_group, tuple(chosen), lists)
            chosen, lists, work = [], {}, 0
    if chosen:
        yield Question(cluster, consumer_group, tuple(chosen), lists)


def answer(question: Question, rules: StrategyRules) -> Verdicts:
    """The core's verdicts on the situations of a question."""
    found: list[tuple[str, Evaluated]] = []
    allocations = AllocationRows.builder(question.cluster, question.consumer_group)
    subscribed = Subscribed()
    for situation in question.situations:
        state = state_of(question.consumer_group, situation, question.members, subscribed)
        evaluation = evaluate(state, rules)
        found.append(
            (situation.situation_id, to_evaluated(evaluation, CoreSituation(state, rules)))
        )
        allocations.add(situation.topic, situation.situation_id, evaluation.allocations)
    return Verdicts(found, allocations.rows())


def to_evaluated(evaluation: Evaluation, situation: CoreSituation) -> Evaluated:
    """The verdict without its allocations; only a state with findings pays for their causes."""
    causes = find_causes(situation, evaluation)
    return Evaluated(
        coverage=evaluation.coverage,
        reason=evaluation.reason,
        shows_owners=evaluation.shows_owners,
        completeness=evaluation.completeness,
        nameservers=len(situation.state.topic_routes),
        members=evaluation.members,
        processes=evaluation.processes,
        queues=evaluation.queues,
        idle_clients=evaluation.idle_clients,
        imbalance=evaluation.most_queues - evaluation.fewest_queues,
        strategy_source=evaluation.strategy_source,
        subscription_source=evaluation.subscription_source,
        findings=tuple(_finding(each, causes.names(each)) for each in evaluation.findings),
        faults=tuple(map(_fault, find_faults(situation, evaluation, causes))),
        stacked=_stacked(evaluation.stacked, situation.state),
        unreadable=tuple(map(_key, evaluation.unreadable)),
    )


def _key(queue: MessageQueue) -> QueueKey:
    return queue.broker_name, queue.queue_id


def _finding(finding: Finding, causes: Iterable[str]) -> FoundQueue:
    return FoundQueue(
        finding.kind,
        _key(finding.queue),
        finding.certainty,
        finding.probability,
        tuple(
            Claimant(each.client_id, each.processes, each.probability) for each in finding.claimants
        ),
        tuple(causes),
    )


def _fault(fault: Fault) -> FoundFault:
    return FoundFault(
        fault.fault,
        fault.evidence,
        fault.remedy,
        tuple(fault.client_ids),
        tuple(fault.client_addrs),
        tuple(fault.broker_names),
        fault.queues_affected,
        fault.cleared,
        fault.left,
        tuple(Move(*_key(each.queue), list(each.before), list(each.after)) for each in fault.moves),
    )


def _stacked(effects: tuple[StackedEffect, ...], state: State) -> tuple[FoundStacked, ...]:
    copies: dict[str, list[Member]] = {effect.stacked.client_id: [] for effect in effects}
    if copies:
        for entry in state.client_lists:
            for member in entry.members:
                if member.client_id in copies:
                    copies[member.client_id].append(member)
    return tuple(_stacked_id(effect, copies[effect.stacked.client_id]) for effect in effects)


def _stacked_id(effect: StackedEffect, copies: list[Member]) -> FoundStacked:
    stacked = effect.stacked
    return FoundStacked(
        stacked.client_id,
        parse_client_id(stacked.client_id).format.name,
        effect.evidence,
        effect.remedy,
        stacked.copies,
        stacked.processes,
        tuple(stacked.client_addrs),
        tuple(sorted({each.version for each in copies if each.version is not None})),
        tuple(sorted({each.language for each in copies if each.language is not None})),
        effect.slots_wasted,
        effect.queues_duplicated,
        effect.queues_orphaned,
    )
