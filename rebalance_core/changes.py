"""Changes that an operator plans: what the state would be, step by step and when all is done.

A change is made of steps, each a pure function from a situation to another that returns the very
same situation where there is nothing (left) to do: one process that leaves, one client that gets
another strategy, one broker that gets more queues. A rollout makes them one after the other, so any
subset of them, in their order, is a state that a group may be in on the way (``prediction``).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple

from . import repairs
from .english import agreeing, named_broker
from .errors import ChangeError, MissingParameterError, near_names
from .processes import find_processes, processes_behind
from .repairs import REPAIRS, Repair, Situation, unify_lists, with_brokers, with_members, with_state
from .state import BROADCASTING, ClientList, Member, ProcessCount, RouteBroker, State
from .strategy import copy_id, original_id
from .strategy_factory import make_strategy
from .strategy_rules import StrategyRule, StrategyRules, prescribe
from .texts import Text, for_slots

#: A client rebalances every 20 s, and reads the route from a nameserver every 30 s before that.
LIST_SECONDS = 20
ROUTE_SECONDS = 50

#: More queues on one broker are a mistyped number.
_MOST_BROKER_QUEUES = 100_000


class Step(NamedTuple):
    """One step of a change: what is so when it is done, in words, and as a function.

    ``joins`` is the client id that joins by it.
    """

    text: str
    apply: Callable[..., Situation]
    joins: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A change in words, which does one thing to each of its targets.

    ``targets`` gives for each step the arguments of ``apply``, and raises ChangeError where the
    situation does not allow the change; those of them that have a slot in the template ``step`` are
    in its words too. ``joins``: a client joins by it. ``seconds`` is how long it
    takes at most until every client knows of a step. A client that joins later starts with the new
    settings: ``for_newcomer`` says by its id what the change does to it, ``separates_ids`` that it
    has a separate id. ``sets_queues``: it gives a number of queues, which is meant of topics that
    producers write to, not of a retry topic.
    """

    text: str
    step: str
    apply: Callable[..., Situation]
    targets: Callable[[Situation], Iterable[Mapping[str, Any]]]
    joins: bool = False
    seconds: int = LIST_SECONDS
    for_newcomer: Callable[[str], Repair] | None = None
    separates_ids: bool = False
    sets_queues: bool = False

    def steps(self, situation: Situation) -> tuple[Step, ...]:
        """The steps that it takes in a situation (none: it is so already)."""
        steps = []
        for target in self.targets(situation):
            values = for_slots(self.step, {"topic": situation.state.topic, **target})
            words = agreeing(values.get("number", 1), self.step, **values)
            joins = target["client"] if self.joins else None
            steps.append(Step(words, partial(self.apply, **target), joins))
        return tuple(steps)


class Plan(NamedTuple):
    """Changes as all their steps, and the situation when they are done."""

    steps: tuple[Step, ...]
    after: Situation


def make_plan(situation: Situation, changes: Iterable[Change]) -> Plan:
    """The steps of the changes, one change after the other; ChangeError where one is not allowed.

    A client that joins takes part in the changes before: it starts with the strategy that they
    prescribe to every client, and with a separate id where they give one to every process. So
    it is in every state on the way, also where those changes are not done yet.

    >>> from rebalance_core.state import ClientList, TopicRoute
    >>> members = (Member("a", "h:1"),)
    >>> state = State("G", "T", (ClientList("x", 0, members),), (TopicRoute("ns", ()),))
    >>> circle = use_strategy("AVG_BY_CIRCLE")
    >>> plan = make_plan(Situation(state, StrategyRules()), [circle, join("b")])
    >>> [step.text for step in plan.steps]
    ['a uses AVG_BY_CIRCLE', 'b has joined']
    >>> processes = find_processes(plan.after.state, plan.after.rules)
    >>> [process.strategy.strategy.name for process in processes]
    ['AVG_BY_CIRCLE', 'AVG_BY_CIRCLE']
    """
    steps: list[Step] = []
    made: list[Change] = []
    for change in changes:
        for one in change.steps(situation):
            apply = _joining(one, one.joins, made, situation) if one.joins else one.apply
            steps.append(one._replace(apply=apply))
            situation = apply(situation)
        made.append(change)
    return Plan(tuple(steps), situation)


def _joining(step: Step, client_id: str, made: Sequence[Change], situation: Situation) -> Repair:
    """The step by which a client joins, with the settings of the changes that were made before."""
    if any(change.separates_ids for change in made):
        ids = {member.client_id for member in situation.state.members}
        client_id = copy_id(client_id, sum(original_id(id_) == client_id for id_ in ids))
    joins = partial(step.apply, client=client_id)
    settings = [change.for_newcomer(client_id) for change in made if change.for_newcomer]
    return lambda there: reduce(lambda so_far, use: use(so_far), settings, joins(there))


def apply_change(situation: Situation, change: Change) -> Situation:
    """The situation when all steps of the change are done.

    >>> from rebalance_core.state import ClientList, TopicRoute
    >>> members = (Member("a", "h:1"), Member("b", "h:2"))
    >>> state = State("G", "T", (ClientList("x", 0, members),), (TopicRoute("ns", ()),))
    >>> after = apply_change(Situation(state, StrategyRules()), leave("b"))
    >>> [member.client_id for member in after.state.client_lists[0].members]
    ['a']
    """
    return make_plan(situation, [change]).after


def leave(client_id: str) -> Change:
    """A process with this client id leaves: of copies, the one that the lists have last.

    ``leave(client_id)`` is undone by ``join(client_id)``.
    """

    def targets(situation: Situation) -> list[dict[str, str]]:
        what = f"a client of {situation.state.consumer_group} to leave"
        _require(what, client_id, processes_behind(situation.state))
        return [{"client": client_id}]

    text = Text("{client} leaves", client=client_id)
    return Change(text, "{client} has left", _unlist, targets)


def join(client_id: str) -> Change:
    """One more process with this client id joins, on every broker that answered.

    It is like those that are there: like one of the same id, else like one that subscribes. It is
    one process more, whatever the id looks like: two processes with one id, which a client since
    4.9.0 makes of its process id and its start time, are what was asked about.
    """
    if not client_id:
        raise ChangeError("expected the id of the client that joins, came an empty one")

    def targets(situation: Situation) -> list[dict[str, Any]]:
        return [{"client": client_id, "model": _model(situation.state, client_id)}]

    text = Text("{client} joins", client=client_id)
    return Change(text, "{client} has joined", _list, targets, joins=True)


def separate_ids() -> Change:
    """Every process of the group gets a separate id.

    The new id sorts right behind the old one: another choice may move more queues.
    """

    def targets(situation: Situation) -> Iterator[dict[str, Any]]:
        for client_id, processes in processes_behind(situation.state).items():
            for number in range(processes, 1, -1):
                yield {"number": number, "client": client_id, "is_last": number == processes}

    text = Text("every process of the group has its own id")
    step = "process {number} of {client} has its own id"
    return Change(text, step, _part, targets, separates_ids=True)


def use_strategy(name: str, params: Mapping[str, Any] | None = None) -> Change:
    """Every client allocates by one strategy, as its SDK computes it.

    Without ``params`` those of the rules count, if they are for that strategy. Raises
    AllocationError where there is no such strategy, or its parameters are wrong or missing.
    """
    try:
        make_strategy(name, params)
    except MissingParameterError:
        if params:
            raise
    rule = StrategyRule("(?s:.*)", name, "(?s:.*)", dict(params)) if params else None
    given = StrategyRules([rule]) if rule else None

    def use(situation: Situation, client: str | None, strategy: str = name) -> Situation:
        return replace(situation, rules=prescribe(situation.rules, client, strategy, given))

    def targets(situation: Situation) -> Iterator[dict[str, str]]:
        before, after = _strategies(situation), _strategies(use(situation, client=None))
        for client_id in sorted(before):
            if before[client_id] != after[client_id]:
                yield {"client": client_id, "strategy": name}

    return Change(
        Text("every client uses {strategy}", strategy=name),
        "{client} uses {strategy}",
        use,
        targets,
        for_newcomer=lambda client_id: partial(use, client=client_id),
    )


def subscribe_all() -> Change:
    """Every member subscribes to the topic, by the filter that most have.

    But for those that choose their queues themselves, which subscribe to nothing.
    """

    def targets(situation: Situation) -> list[dict[str, str | None]]:
        members = [member for member in situation.state.members if not member.chooses_queues]
        users = Counter(m.expression for m in members if m.subscribed and m.expression)
        most_used = min(users, key=lambda filter_: (-users[filter_], filter_), default=None)
        filters = (None, most_used)
        others = {m.client_id for m in members if not m.subscribed or m.expression not in filters}
        return [{"client": client_id, "expression": most_used} for client_id in sorted(others)]

    text = Text("every member subscribes to the topic, by one filter")
    return Change(text, "{client} subscribes to {topic} as the others do", _subscribe, targets)


def add_broker(broker_name: str, queues: int) -> Change:
    """A master with so many queues of the topic; every member heartbeats to it as well."""
    _check_queues(queues, 1)

    def targets(situation: Situation) -> list[dict[str, Any]]:
        state = situation.state
        if any(broker.broker_name == broker_name for broker in state.brokers):
            raise ChangeError(f"expected the name of a new broker, came {broker_name!r}")
        if not state.topic_routes:
            topic = state.topic
            raise ChangeError(f"expected a route of {topic} to change, and none was collected")
        added = {"broker": broker_name, "number": queues}
        return [{"nameserver": route.namesrv_addr, **added} for route in state.topic_routes]

    template = "{broker} is added with {number:,} [queue|queues]"
    text = agreeing(queues, template, broker=broker_name, number=queues)
    step = "{nameserver} gives {broker} with {number:,} [queue|queues]"
    return Change(text, step, _add_broker, targets, seconds=ROUTE_SECONDS, sets_queues=True)


def remove_broker(broker_name: str) -> Change:
    """A broker leaves the topic's route, and with it its queues."""

    def targets(situation: Situation) -> list[dict[str, str]]:
        _require_broker(situation.state, broker_name)
        routes = situation.state.topic_routes
        having = (r for r in routes if any(b.broker_name == broker_name for b in r.brokers))
        return [{"nameserver": r.namesrv_addr, "broker": broker_name} for r in having]

    text = Text("{broker} is removed", broker=broker_name)
    step = "{nameserver} gives no {broker}"
    return Change(text, step, _remove_broker, targets, seconds=ROUTE_SECONDS)


def resize(queues: int, broker_name: str | None = None) -> Change:
    """The topic has so many queues (to read and to write) on one broker, or on each that has any.

    Nobody reads the messages in queues that go until they come back.
    """
    _check_queues(queues, 0)

    def targets(situation: Situation) -> list[dict[str, Any]]:
        if broker_name is not None:
            _require_broker(situation.state, broker_name)
        brokers = {
            broker.broker_name
            for broker in situation.state.brokers
            if broker.broker_name == broker_name
            or (broker_name is None and (broker.read_queue_nums or broker.write_queue_nums))
            if {broker.read_queue_nums, broker.write_queue_nums} != {queues}
        }
        return [{"broker": name, "number": queues} for name in sorted(brokers)]

    template = "{broker} has {number:,} [queue|queues] of the topic"
    broker = broker_name or Text("every broker")
    text = agreeing(queues, template, broker=broker, number=queues)
    step = "{broker} has {number:,} [queue|queues]"
    return Change(text, step, _resize, targets, seconds=ROUTE_SECONDS, sets_queues=True)


def unify_list(broker_name: str) -> Change:
    """A broker's list has all members that any broker's has."""

    def targets(situation: Situation) -> Iterator[dict[str, Any]]:
        brokers = {entry.broker for entry in situation.state.client_lists}
        names = {name for name, _ in brokers}
        _require("a broker that gave a list of the group", broker_name, names)
        for broker in sorted(brokers):
            if broker[0] == broker_name and unify_lists(situation, [broker]) is not situation:
                yield {"broker": named_broker(*broker), "only": [broker]}

    step = "{broker} lists every member"
    text = Text(step, broker=broker_name)
    return Change(text, step, lambda there, only, **_: unify_lists(there, only), targets)


def mend(fault: str) -> Change:
    """A fault is mended at one stroke, as its remedy preview has it (``REPAIRS``)."""
    _require("a fault that has a repair", fault, REPAIRS)
    repair = REPAIRS[fault]

    def targets(situation: Situation) -> list[dict[str, str]]:
        return [] if repair(situation) is situation else [{"fault": fault}]

    step = "{fault} is mended"
    text = Text(step, fault=fault)
    return Change(text, step, lambda there, fault: REPAIRS[fault](there), targets)


# ------------------------------------------------------------------ the steps


def _unlist(situation: Situation, client: str) -> Situation:
    """Every list lacks the last entry of the id; a broker without members answers so.

    With the last process behind an id its stale channels go as well.
    """
    is_last = processes_behind(situation.state).get(client) == 1

    def left(entry: ClientList) -> Iterator[Member]:
        at = [n for n, member in enumerate(entry.members) if member.client_id == client]
        gone = at if is_last else at[-1:]
        return (member for n, member in enumerate(entry.members) if n not in gone)

    counted = with_state(situation, process_counts=_counted(situation.state, client, -1))
    return repairs.without_empty_lists(with_members(counted, left))


def _list(situation: Situation, client: str, model: Member) -> Situation:
    """Every broker that answered lists one more member of the client, like the model."""
    state = situation.state
    lists = (*state.client_lists, *(ClientList(*broker, ()) for broker in state.offline_brokers))

    def joined(entry: ClientList) -> Iterable[Member]:
        addr = f"(joins as number {len(entry.members) + 1})"
        return (*entry.members, model._replace(client_id=client, client_addr=addr))

    # The connections of what is only planned show nothing: the count itself is given.
    counts = _counted(state, client, 1, Text("one more process joins"))
    listed = with_state(situation, client_lists=lists, offline_brokers=(), process_counts=counts)
    return with_members(listed, joined)


def _counted(
    state: State, client_id: str, more: int, because: str = ""
) -> tuple[ProcessCount, ...]:
    """The counts of processes with so many more of this id: where it has one, or with a reason."""
    processes = processes_behind(state).get(client_id, 0) + more
    counts = {counted.client_id: counted for counted in state.process_counts}
    former = counts.pop(client_id, None)
    why = because or (former.because if former else "")
    if processes > 1 and (because or former):
        counts[client_id] = ProcessCount(client_id, processes, why)
    return tuple(counts.values())


def _part(situation: Situation, client: str, number: int, is_last: bool) -> Situation:
    """The copy with this number (by address, from 1) gets another id, the last with stale ones."""
    copy = number - 1

    def parted(entry: ClientList) -> Iterator[Member]:
        copies = sorted(m.client_addr for m in entry.members if m.client_id == client)
        chosen = set(copies[copy:] if is_last else copies[copy:number])
        for member in entry.members:
            is_it = member.client_id == client and member.client_addr in chosen
            yield member._replace(client_id=copy_id(client, copy)) if is_it else member

    counts = _counted(situation.state, client, -1)
    return with_members(with_state(situation, process_counts=counts), parted)


def _subscribe(situation: Situation, client: str, expression: str | None) -> Situation:
    def subscribed(member: Member) -> Member:
        is_it = member.client_id == client and not member.chooses_queues
        return member._replace(subscribed=True, expression=expression) if is_it else member

    return with_members(situation, lambda entry: map(subscribed, entry.members))


def _add_broker(situation: Situation, nameserver: str, broker: str, number: int) -> Situation:
    added = RouteBroker(broker, read_queue_nums=number, write_queue_nums=number)
    routed = with_brokers(situation, lambda brokers: [*brokers, added], nameserver)
    changed = _rerouted(routed, broker)
    lists, new = situation.state.client_lists, ClientList(broker, 0, ())
    if not lists or new.broker in {entry.broker for entry in lists}:
        return changed
    return unify_lists(with_state(changed, client_lists=(*lists, new)), [new.broker])


def _remove_broker(situation: Situation, nameserver: str, broker: str) -> Situation:
    def left(brokers: Iterable[RouteBroker]) -> Iterator[RouteBroker]:
        return (there for there in brokers if there.broker_name != broker)

    return _rerouted(with_brokers(situation, left, nameserver), broker)


def _rerouted(situation: Situation, broker_name: str) -> Situation:
    """Its list is that of before, or made up: it shows nobody's route."""
    return with_state(situation, rerouted=situation.state.rerouted | {broker_name})


def _resize(situation: Situation, broker: str, number: int) -> Situation:
    size: dict[str, Any] = {"read_queue_nums": number, "write_queue_nums": number}

    def resized(old: RouteBroker) -> RouteBroker:
        return replace(old, **size) if old.broker_name == broker else old

    return with_brokers(situation, lambda brokers: map(resized, brokers))


# ------------------------------------------------------------------ what steps are made from


def _model(state: State, client_id: str) -> Member:
    """A member to take after: one with the id, else one that subscribes, else a plain one."""
    members = list(state.members)
    candidates = (
        [member for member in members if member.client_id == client_id]
        or [m for m in members if m.subscribed and m.message_model != BROADCASTING]
        or [Member(client_id, "")]
    )
    chosen = min(candidates, key=lambda member: (not member.subscribed, member.client_id))
    return chosen._replace(is_expired=None)


def _strategies(situation: Situation) -> dict[str, list[object]]:
    """The strategies of each client id's processes that take part; or why one was not found."""
    found: dict[str, list[object]] = {}
    for process in find_processes(situation.state, situation.rules):
        if process.divides:
            resolved = process.strategy
            found.setdefault(process.client_id, []).append(resolved.strategy or resolved.unknown)
    return found


def _require_broker(state: State, broker_name: str) -> None:
    _require(f"a broker of {state.topic}", broker_name, {b.broker_name for b in state.brokers})


def _require(what: str, came: str, there: Collection[str]) -> None:
    if came not in there:
        raise ChangeError(f"expected {what}, came {came!r}: {near_names(came, there)}")


def _check_queues(came: int, least: int) -> None:
    if not least <= came <= _MOST_BROKER_QUEUES:
        raise ChangeError(f"expected {least} to {_MOST_BROKER_QUEUES} queues, came {came}")
