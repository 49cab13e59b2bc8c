"""situations -> the core's verdict on each, once however often it was so.

Each situation is a ``Question``, which travels with the lists that it names, and its state is made
where it is answered. In one process ``answer`` is called; on Spark it is within the pandas UDF
``recompute_allocations``, which has a row for each question.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import rebalance_core as core
from rebalance_core import Member, State
from rebalance_core.state import CLUSTERING, SURE, ProcessCount
from rebalance_core.texts import Text

from ..declared.contents import MEMBER_FACTS
from ..engines.pieces import in_parts
from ..schemas import NO_ANSWER, NOT_ONLINE
from .allocations import AllocationRows, allocation_rows
from .core_verdict import FoundQueue, Verdict
from .dossier import Broker
from .failed import Failure
from .situations import TopicSituation

#: A member of a list: its facts, in the order of ``contents.MEMBER_FACTS``.
MemberFacts = tuple[Any, ...]

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

    def narrowed(
        self, topic: str, lists: Mapping[str, Sequence[MemberFacts]]
    ) -> dict[str, list[MemberFacts]]:
        """The lists, of whose members what concerns other topics is left out."""
        found: dict[tuple[int, int], tuple[Any, Any]] = {}

        def narrow(member: MemberFacts) -> MemberFacts:
            *facts, doubtful, subscriptions = member
            key = id(doubtful), id(subscriptions)
            if key not in found:
                expression = self._expression(topic, subscriptions)
                found[key] = (
                    tuple([each for each in doubtful or () if each[0] == topic]),
                    () if expression is None else ((topic, *expression),),
                )
            return (*facts, *found[key])

        return {list_id: list(map(narrow, of_list)) for list_id, of_list in lists.items()}

    def _expression(self, topic: str, subscriptions: Any) -> tuple[Any, ...] | None:
        if id(subscriptions) not in self._found:
            # The first of equal topics counts.
            by_topic = {each[0]: tuple(each[1:]) for each in reversed(subscriptions or ())}
            self._found[id(subscriptions)] = subscriptions, by_topic
        return self._found[id(subscriptions)][1].get(topic)


@dataclass(frozen=True)
class Question:
    """A situation that is to be evaluated; ``members`` has the lists that it names, and others.

    It travels with its own lists alone, and of what their members subscribe to with its topic: of a
    group with thousands of topics each question would else have all of them.
    """

    situation: TopicSituation
    #: The members of each list, by list id.
    members: Mapping[str, Sequence[MemberFacts]]
    #: The same for all questions about these members.
    subscribed: TopicSubscriptions = field(default_factory=TopicSubscriptions, compare=False)

    def lists(self) -> Mapping[str, Sequence[MemberFacts]]:
        """The lists that the situation names, by id."""
        return {part.list_id: self.members[part.list_id] for part in listed(self.situation)}

    def size(self) -> int:
        """The members of all these lists."""
        return sum(map(len, self.lists().values()))

    def __reduce__(self) -> tuple[Any, ...]:
        situation = self.situation
        return Question, (situation, self.subscribed.narrowed(situation.topic, self.lists()))

    def state(self) -> State:
        """The core's state of the situation."""
        situation, topic = self.situation, self.situation.topic
        lists: dict[Broker, list[Member]] = {}
        for part in listed(situation):
            chosen = [each for each in self.members[part.list_id] if part.has(each[_CLIENT_ID])]
            if chosen:
                found = _members_in(chosen, topic, self.subscribed)
                lists.setdefault(part.broker, []).extend(found)
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
            offline_brokers=tuple(each for each in answers if answers[each] == NOT_ONLINE),
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
    found: dict[tuple[str, Any], Member] = {}
    unaddressed: list[Member] = []
    for member in members:
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
    """The core's verdicts on some situations, in their order; and the groups on which it failed."""

    evaluated: list[tuple[str, Verdict]]
    allocations: AllocationRows
    failed: list[Failure]

    def by_id(self) -> dict[str, Verdict]:
        """The verdict of each situation, with its allocations."""
        of_each = zip(self.evaluated, self.allocations.loaders(), strict=True)
        return {id_: replace(each, allocations=rows) for (id_, each), rows in of_each}


def questions(
    situations: Iterable[TopicSituation], members: Mapping[str, Sequence[MemberFacts]]
) -> Iterator[Question]:
    """A question for each situation; ``members`` by list id."""
    subscribed = TopicSubscriptions()
    return (Question(each, members, subscribed) for each in situations)


#: The number of members, of however many situations, that are evaluated at a time: some 100 ms of
#: work, and no more than some megabytes of members and of what each of them takes.
_MEMBERS_AT_ONCE = 20_000


def at_once(asked: Iterable[Question]) -> Iterator[list[Question]]:
    """The questions in parts of about equal work."""
    return in_parts(asked, _MEMBERS_AT_ONCE, Question.size)


def answer(asked: Iterable[Question], rules: core.StrategyRules) -> Verdicts:
    """The core's verdicts on some situations; a group on which it fails is among the failures."""
    found: list[tuple[str, Verdict]] = []
    failed: list[Failure] = []
    places: list[Any] = []
    allocations = []
    for each in asked:
        situation_id, *subject = each.situation[:4]
        try:
            state = each.state()
            evaluation = core.evaluate(state, rules)
            evaluated = to_verdict(evaluation, core.Situation(state, rules))
        except Exception as error:
            failed.append(Failure.of(subject[0], subject[1], error))
            continue
        found.append((situation_id, evaluated))
        places.append((*subject, situation_id))
        allocations.append(evaluation.allocations)
    return Verdicts(found, allocation_rows(places, allocations), failed)


def to_verdict(evaluation: core.Evaluation, situation: core.Situation) -> Verdict:
    """The verdict without its allocations; only a state with findings pays for their causes."""
    causes = core.find_causes(situation, evaluation)
    return Verdict(
        verdict=replace(evaluation, findings=(), allocations=()),
        nameservers=len(situation.state.topic_routes),
        findings=tuple(_found_queue(each, causes.names(each)) for each in evaluation.findings),
        faults=core.find_faults(situation, evaluation, causes),
    )


def _found_queue(found: core.Finding, causes: tuple[str, ...]) -> FoundQueue:
    queue, likely = (found.queue.broker_name, found.queue.queue_id), found.probability
    return FoundQueue(found.kind, queue, found.certainty, likely, found.claimants, causes)
