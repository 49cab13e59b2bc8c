"""situations -> the core's verdict on each, once however often it was so.

Each situation becomes a state of the core, with the lists that it names. In one process it is
evaluated as it is; on Spark it is a row (``situation_rows``) of the pandas UDF
``recompute_allocations``.
"""

import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import rebalance_core as core
from rebalance_core import Member, MessageQueue, State
from rebalance_core.findings import Allocation
from rebalance_core.state import CLUSTERING, SURE, ProcessCount
from rebalance_core.texts import Text

from ...declared.contents import MEMBER_FACTS
from ...declared.dossier import Broker
from ...engines.pieces import in_parts
from ...schemas import NO_ANSWER, NOT_ONLINE
from ...texts.failures import is_of_the_machine, sentence_of
from .allocations import AllocationRows, allocation_rows
from .core_verdict import FoundQueue, Verdict
from .situations import TopicSituation

#: A member of a list: its facts, in the order of ``contents.MEMBER_FACTS``.
MemberFacts = tuple[Any, ...]


class Failure(NamedTuple):
    """The error of a group in one sentence, and its stack."""

    cluster: str
    consumer_group: str
    sentence: str
    stack: str

    @classmethod
    def of(cls, cluster: str, consumer_group: str, error: Exception) -> "Failure":
        """The failure, while the error is handled; what is the machine's is raised again."""
        if is_of_the_machine(error):
            raise error
        return cls(cluster, consumer_group, sentence_of(error), traceback.format_exc())


# ---------------------------------------------------------------- situations to states


class ListPart(NamedTuple):
    """A part of a broker's list: the members of ``only`` these clients, or all but these."""

    broker: Broker
    list_id: str
    client_ids: tuple[str, ...] = ()
    only: bool = False

    def has(self, client_id: str) -> bool:
        """True if the members of the client belong to the part."""
        return (client_id in self.client_ids) == self.only


def listed(situation: TopicSituation) -> list[ListPart]:
    """The lists that the brokers gave, part by part: see ``membership.Patch``."""
    parts: list[ListPart] = []
    for broker, answer in situation.answers:
        patches = [patch for patch in situation.patches if patch.broker == broker]
        if any(patch.later == NOT_ONLINE for patch in patches):
            continue
        if answer not in (NOT_ONLINE, NO_ANSWER):
            replaced = chain.from_iterable(patch.client_ids for patch in patches)
            parts.append(ListPart(broker, answer, tuple(replaced)))
        parts += [ListPart(broker, patch.later, patch.client_ids, only=True) for patch in patches]
    return parts


class TopicSubscriptions:
    """The subscriptions of members, by topic: a member with 20,000 of them is asked for each."""

    def __init__(self) -> None:
        #: Entries by identity, with what has it, which nothing else has for as long.
        self._found: dict[int, tuple[Any, dict[str, tuple[Any, ...]]]] = {}

    def of(self, topic: str, subscriptions: Any, doubtful: Any) -> tuple[bool, int, str | None]:
        """True if the member subscribes to the topic; the percentage of polls; the filter."""
        expression = self._expression(topic, subscriptions)
        if expression is None:
            return False, SURE, None
        return True, dict(doubtful or ()).get(topic, SURE), core.normalise_expression(*expression)

    def _expression(self, topic: str, subscriptions: Any) -> tuple[Any, ...] | None:
        if id(subscriptions) not in self._found:
            # The first of equal topics counts.
            by_topic = {
                subscription[0]: tuple(subscription[1:])
                for subscription in reversed(subscriptions or ())
            }
            self._found[id(subscriptions)] = subscriptions, by_topic
        return self._found[id(subscriptions)][1].get(topic)


class SeenState(NamedTuple):
    """A situation as the core has it; a failure where it cannot be made."""

    cluster: str
    consumer_group: str
    topic: str
    state_id: str
    state: State | Failure

    @classmethod
    def failed(cls, place: tuple[str, str, str, str], error: Exception) -> "SeenState":
        """The situation of a place, while the error is handled."""
        return cls(*place, Failure.of(place[0], place[1], error))

    def size(self) -> int:
        """The members of all its lists."""
        return 0 if isinstance(self.state, Failure) else sum(1 for _ in self.state.members)


def seen_states(
    situations: Iterable[TopicSituation], members: Mapping[str, Sequence[MemberFacts]]
) -> Iterator[SeenState]:
    """The state of each situation; ``members`` by list id."""
    subscribed = TopicSubscriptions()
    for situation in situations:
        place = situation.cluster, situation.consumer_group, situation.topic, situation.situation_id
        try:
            yield SeenState(*place, state_of(situation, members, subscribed))
        except Exception as error:
            yield SeenState.failed(place, error)


def state_of(
    situation: TopicSituation,
    members: Mapping[str, Sequence[MemberFacts]],
    subscribed: TopicSubscriptions | None = None,
) -> State:
    """The core's state of a situation; ``members`` has the lists that it names, by id, and others.

    ``subscribed``: the same for all situations of these members.
    """
    subscribed, topic = subscribed or TopicSubscriptions(), situation.topic
    lists: dict[Broker, list[Member]] = {}
    for part in listed(situation):
        chosen = [each for each in members[part.list_id] if part.has(each[_CLIENT_ID])]
        if chosen:
            lists.setdefault(part.broker, []).extend(_members_in(chosen, topic, subscribed))
    patched = {patch.broker: patch.later for patch in situation.patches}
    answers = dict(situation.answers) | patched
    return State(
        consumer_group=situation.consumer_group,
        topic=topic,
        # In order, for the order in which rows come, or a broker prints a set, has no meaning.
        client_lists=tuple(
            core.ClientList(*broker, _each_once(of_list))
            for broker, of_list in sorted(lists.items())
        ),
        topic_routes=tuple(
            # Each name once.
            core.TopicRoute(addr, tuple({each.broker_name: each for each in brokers}.values()))
            for addr, brokers in sorted(situation.routes, key=itemgetter(0))
        ),
        offline_brokers=tuple(answer for answer in answers if answers[answer] == NOT_ONLINE),
        process_counts=tuple(
            # Every reason is a template without slots, so that a column needs no more than it.
            ProcessCount(client_id, processes, Text(because))
            for client_id, processes, because in situation.process_counts
        ),
        unreachable=situation.unreachable,
        request_mode=situation.request_mode,
        locks_at_master=situation.locks_at_master,
    )


_CLIENT_ID = [fact.name for fact in MEMBER_FACTS].index("client_id")


def _members_in(
    records: Iterable[MemberFacts], topic: str, subscribed: TopicSubscriptions
) -> Iterator[Member]:
    """The members, with what they subscribe to narrowed to the topic.

    There are millions of them, and equal subscriptions are one object as a rule.
    """
    found: dict[tuple[int, int], tuple[bool, int, str | None]] = {}
    for record in records:
        client_id, addr, language, version, message_model, strategy, rebalances = record[:7]
        is_expired, chooses_queues, source, doubtful_topics, subscriptions = record[7:]
        key = id(subscriptions), id(doubtful_topics)
        if key not in found:
            found[key] = subscribed.of(topic, subscriptions, doubtful_topics)
        is_subscribed, percent, expression = found[key]
        yield Member(
            client_id,
            addr,
            is_subscribed,
            message_model or CLUSTERING,
            strategy,
            rebalances,
            language,
            # -1: the list has none.
            None if version is None or version < 0 else version,
            expression,
            is_expired,
            chooses_queues,
            source,
            percent,
        )


def _each_once(members: Iterable[Member]) -> tuple[Member, ...]:
    """The members of one list, in order. A connection is once in a broker's list: a row that
    repeats one is dropped. Copies of an id have different addresses, and stay.
    """
    every = list(members)
    if len({each[:2] for each in every if each.client_addr}) == len(every):
        return tuple(sorted(every))  # as it nearly always is: these two decide
    found: dict[tuple[str, Any], Member] = {}
    unaddressed: list[Member] = []
    for member in every:
        if not member.client_addr:
            unaddressed.append(member)
            continue
        key = (member.client_id, member.client_addr)
        found[key] = min(found[key], member, key=str) if key in found else member
    for number, member in enumerate(sorted(unaddressed, key=str)):
        # Without an address a repeated row looks like a copy of the id: it counts.
        addr = Text("(address {number} not known)", number=number)
        found[member.client_id, addr] = member._replace(client_addr=addr)
    return tuple([found[key] for key in sorted(found)])


# ---------------------------------------------------------------- states to verdicts


class Verdicts(NamedTuple):
    """The core's verdicts on some situations, in their order, or its failures."""

    state_ids: Sequence[str]
    verdicts: Sequence[Verdict | Failure]
    allocations: AllocationRows

    def by_id(self) -> dict[str, Verdict]:
        """The verdict of each situation, with its allocations."""
        every = zip(self.state_ids, self.verdicts, self.allocations.loaders(), strict=True)
        return {
            state_id: replace(verdict, allocations=rows)
            for state_id, verdict, rows in every
            if not isinstance(verdict, Failure)
        }

    def failed(self) -> Iterator[Failure]:
        """The groups on which it failed."""
        return (verdict for verdict in self.verdicts if isinstance(verdict, Failure))


#: The number of members, of however many situations, that are evaluated at a time: some 100 ms of
#: work, and no more than some megabytes of members and of what each of them takes.
MEMBERS_AT_ONCE = 20_000


def at_once(states: Iterable[SeenState]) -> Iterator[list[SeenState]]:
    """The states in parts of about equal work."""
    return in_parts(states, MEMBERS_AT_ONCE, SeenState.size)


def evaluate(states: Iterable[SeenState], rules: core.StrategyRules) -> Verdicts:
    """The core's verdicts on some situations."""
    some = list(states)
    verdicts, allocations = zip(
        *(evaluate_one(seen_state, rules) for seen_state in some), strict=True
    )
    return Verdicts(
        [seen_state.state_id for seen_state in some],
        verdicts,
        allocation_rows([seen_state[:4] for seen_state in some], allocations),
    )


def evaluate_one(
    seen: SeenState, rules: core.StrategyRules
) -> tuple[Verdict | Failure, Sequence[Allocation[MessageQueue]]]:
    """The core's verdict on a situation, or its failure, and who takes what under which view."""
    if isinstance(seen.state, Failure):
        return seen.state, ()
    try:
        evaluation = core.evaluate(seen.state, rules)
        verdict = to_verdict(evaluation, core.Situation(seen.state, rules))
    except Exception as error:
        return Failure.of(seen.cluster, seen.consumer_group, error), ()
    return verdict, evaluation.allocations


def to_verdict(evaluation: core.Evaluation, situation: core.Situation) -> Verdict:
    """The verdict without its allocations; only a state with findings pays for their causes."""
    causes = core.find_causes(situation, evaluation)
    return Verdict(
        verdict=replace(evaluation, findings=(), allocations=()),
        nameservers=len(situation.state.topic_routes),
        findings=tuple(
            _found_queue(finding, causes.names(finding)) for finding in evaluation.findings
        ),
        faults=core.find_faults(situation, evaluation, causes),
    )


def _found_queue(found: core.Finding, causes: tuple[str, ...]) -> FoundQueue:
    queue, likely = (found.queue.broker_name, found.queue.queue_id), found.probability
    return FoundQueue(
        *(found.kind, queue, found.certainty, likely, found.claimants, causes),
        is_assumed=found.is_assumed,
    )
