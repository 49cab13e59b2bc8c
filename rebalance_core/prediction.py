"""What-if: the effect of changes on a group and topic, when done and on the way.

    situation, changes -> before, after, moves, and the states in between

Two kinds of states lie in between, and only the first last:

- a **rollout** makes one step after the other, each client restarted in its turn: any subset of the
  steps is a state that the group may stay in for hours, and findings in it last as long;
- each step **settles**: for some seconds some clients work from the new lists and others still
  from the old ones, so that a queue which moves may be taken by both or by nobody.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import TypeAlias, TypeVar

from . import findings
from .changes import LIST_SECONDS, Change, Step, make_plan
from .division import Move, ProcessKey, find_moves, queues_of_processes, shown_id
from .errors import ChangeError
from .findings import DUPLICATE, ORPHANED, Evaluation, FindingKey, evaluate
from .grouping import grouped
from .message_queue import MessageQueue, is_retry_topic, sort_message_queues
from .repairs import Situation
from .strategy import copy_id
from .strategy_rules import as_held
from .views import readable_by_some

#: Dangers of a change, in the order in which they are shown. A state between the steps has a
#: finding that is not there before.
FINDINGS_BETWEEN = "FINDINGS_BETWEEN"
#: A finding is there when all is done, and not before.
FINDINGS_AFTER = "FINDINGS_AFTER"
#: Queues go in which messages lie that the group has not consumed.
MESSAGES_LEFT = "MESSAGES_LEFT"
#: Queues go of which nobody saw the offsets.
BACKLOG_NOT_KNOWN = "BACKLOG_NOT_KNOWN"
#: Owners cannot be computed before or after.
OWNERS_NOT_KNOWN = "OWNERS_NOT_KNOWN"
#: Somebody reads whom no list shows, and whose share nobody can compute.
READERS_NOT_LISTED = "READERS_NOT_LISTED"

#: The most states in between that are looked at; fewer in groups of thousands of members.
MOST_STATES = 512
_FEWEST_STATES = 16
_MEMBERS_IN_ALL = 100_000

_Item = TypeVar("_Item")
_Queues: TypeAlias = list[MessageQueue]


@dataclass(frozen=True, slots=True)
class StateBetween:
    """A state on the way: what is done by then, and the queues that are wrong in it.

    ``done`` are the steps done (of a rollout), or the clients that work from the new lists.
    """

    done: tuple[str, ...]
    duplicates: tuple[MessageQueue, ...]
    orphans: tuple[MessageQueue, ...]

    @property
    def queues_wrong(self) -> int:
        """The number of queues that several take or nobody takes."""
        return len({*self.duplicates, *self.orphans})


@dataclass(frozen=True, slots=True)
class Ways:
    """The states in between of one kind.

    There are ``states`` of them, ``looked_at`` of which were looked at; ``harmed`` have a
    duplicate or an orphan that is not there before the change. ``worst`` is the one with most
    queues wrong; None where no state that was looked at has any.
    """

    states: int
    looked_at: int
    harmed: int
    worst: StateBetween | None

    @property
    def exhaustive(self) -> bool:
        """True if all of the states were looked at."""
        return self.looked_at == self.states


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The effect of changes: before and after, the queues that move, and the states in between.

    ``situation`` is the one before. ``rollout`` has the subsets of ``steps``; ``settling`` the
    states in which each client works from the lists of before or from those of after, for
    ``seconds`` at most. ``queues_gone`` can be read before and not after. ``backlog`` has the
    messages that are not consumed, by queue; None where no offsets were collected.
    ``is_read_unlisted``: somebody reads whom no list shows.
    """

    changes: tuple[str, ...]
    steps: tuple[str, ...]
    before: Evaluation
    after: Evaluation
    situation: Situation
    situation_after: Situation
    moves: tuple[Move, ...]
    rollout: Ways
    settling: Ways
    seconds: int
    queues_gone: tuple[MessageQueue, ...] = ()
    backlog: Mapping[MessageQueue, int] | None = None
    is_read_unlisted: bool = False
    #: True if before it is what clients hold whose strategy cannot be recomputed.
    is_as_held: bool = False

    @property
    def dangers(self) -> tuple[str, ...]:
        """The reasons why it is not safe; empty where it is.

        Only as sure as ``rollout.exhaustive`` says. There are none for a topic whose queues are not
        divided among the clients before and after, such as a broadcasting group's.
        """
        if not self.steps:
            return ()
        divided = findings.AUDITED in (self.before.coverage, self.after.coverage)
        lost = self.before.coverage == findings.AUDITED and self.after.coverage != findings.AUDITED
        unknown = not (self.before.shows_owners and self.after.shows_owners) or lost
        backlog = self.backlog or {}
        reasons = {
            FINDINGS_BETWEEN: divided and self.rollout.harmed > 0,
            FINDINGS_AFTER: bool(self.new_findings),
            MESSAGES_LEFT: bool(self.messages_left),
            BACKLOG_NOT_KNOWN: any(queue not in backlog for queue in self.queues_gone),
            OWNERS_NOT_KNOWN: unknown,
            READERS_NOT_LISTED: self.is_read_unlisted,
        }
        return tuple(danger for danger, is_so in reasons.items() if is_so)

    @property
    def safe(self) -> bool:
        """True if there are no dangers."""
        return not self.dangers

    @property
    def messages_left(self) -> dict[MessageQueue, int]:
        """The queues that go and have messages that nobody reads until the queues are back."""
        backlog = self.backlog or {}
        return {queue: backlog[queue] for queue in self.queues_gone if backlog.get(queue)}

    @property
    def new_findings(self) -> frozenset[FindingKey]:
        """The findings after all is done that were not there before."""
        return self.after.finding_keys - self.before.finding_keys

    @property
    def findings_gone(self) -> frozenset[FindingKey]:
        """The findings from before that are not there when all is done."""
        return self.before.finding_keys - self.after.finding_keys

    @property
    def comparable(self) -> bool:
        """True if owners can be computed before and after."""
        return self.before.coverage == self.after.coverage == findings.AUDITED


def what_if(
    situation: Situation,
    changes: Sequence[Change],
    backlog: Mapping[MessageQueue, int] | None = None,
    *,
    is_read_unlisted: bool = False,
    held: Mapping[str, Sequence[MessageQueue]] = MappingProxyType({}),
) -> WhatIf:
    """Predicts the effect of the changes, one after the other. ChangeError: one cannot be made.

    ``backlog``: messages that are not consumed, by queue; None where nobody collected offsets.
    ``is_read_unlisted``: offsets show that somebody reads whom no list shows. ``held``: what each
    client holds, where all reported it: where strategies alone change, who has one that cannot be
    recomputed has that until then.

    >>> from rebalance_core.changes import leave
    >>> from rebalance_core.state import ClientList, Member, RouteBroker, State, TopicRoute
    >>> from rebalance_core.strategy_rules import StrategyRules
    >>> members = (Member("a", "h:1"), Member("b", "h:2"), Member("c", "h:3"))
    >>> state = State(
    ...     "G", "T", (ClientList("x", 0, members),),
    ...     (TopicRoute("ns", (RouteBroker("x", read_queue_nums=3),)),),
    ... )
    >>> prediction = what_if(Situation(state, StrategyRules()), [leave("c")])
    >>> [(move.queue.queue_id, move.before, move.after) for move in prediction.moves]
    [(1, ('b',), ('a',)), (2, ('c',), ('b',))]
    >>> prediction.safe, prediction.settling.worst.queues_wrong
    (True, 2)

    (In the worst case, for 20 s at most, a knows that c has left and b does not: both take 1, and
    nobody 2.)
    """
    plan = make_plan(situation, changes)
    before = evaluate(situation.state, situation.rules)
    is_unknown = before.coverage == findings.STRATEGY_NOT_KNOWN
    is_as_held = bool(held) and is_unknown and plan.after.state == situation.state
    if is_as_held:
        situation = replace(situation, rules=as_held(situation.rules, held))
        plan, before = make_plan(situation, changes), evaluate(situation.state, situation.rules)
    steps = plan.steps
    after = evaluate(plan.after.state, plan.after.rules)
    comparable = before.coverage == after.coverage == findings.AUDITED
    gone = set[MessageQueue]()  # what some route lets consumers read before and no route after
    if findings.TOO_MANY_QUEUES not in (before.coverage, after.coverage):
        gone = readable_by_some(situation.state) - readable_by_some(plan.after.state)
    return WhatIf(
        changes=tuple(change.text for change in changes),
        steps=tuple(step.text for step in steps),
        before=before,
        after=after,
        situation=situation,
        situation_after=plan.after,
        moves=find_moves(before, after) if comparable else (),
        rollout=_rollout(situation, steps, before),
        settling=_settling(before, after) if comparable else Ways(0, 0, 0, None),
        seconds=max((change.seconds for change in changes), default=LIST_SECONDS),
        queues_gone=tuple(sort_message_queues(gone)),
        backlog=backlog,
        is_read_unlisted=is_read_unlisted,
        is_as_held=is_as_held,
    )


def what_if_of_group(
    situations: Mapping[str, Situation],
    changes: Sequence[Change],
    backlogs: Mapping[str, Mapping[MessageQueue, int] | None] | None = None,
    unlisted: Collection[str] = (),
    held: Mapping[str, Mapping[str, Sequence[MessageQueue]]] = MappingProxyType({}),
) -> dict[str, WhatIf]:
    """Predicts the effect of the changes on every topic of a group at one time; somebody whom no
    list shows reads those of the topics that are ``unlisted``. ``held``: see ``what_if``.

    A change that one topic does not allow, such as a broker less that does not have it, leaves that
    topic as it is. A number of queues is not meant of a retry topic, whose number is a setting of
    the group (``retryQueueNums``). Raises ChangeError where no topic allows a change.
    """
    with_numbers = [topic for topic in situations if not is_retry_topic(topic)] or [*situations]
    possible: dict[str, list[Change]] = {topic: [] for topic in situations}
    for change in changes:
        refusals: list[ChangeError] = []
        topics = with_numbers if change.sets_queues else [*situations]
        for topic in topics:
            try:
                make_plan(situations[topic], [*possible[topic], change])
            except ChangeError as error:
                refusals.append(error)
            else:
                possible[topic].append(change)
        if len(refusals) == len(topics):
            raise refusals[0]
    return {
        topic: what_if(
            situation,
            possible[topic],
            (backlogs or {}).get(topic),
            is_read_unlisted=topic in unlisted,
            held=held.get(topic, {}),
        )
        for topic, situation in situations.items()
    }


def moves_by_client(moves: Sequence[Move]) -> dict[str, tuple[_Queues, _Queues]]:
    """The queues that each client id gives up and those that it takes.

    >>> moves = [Move("T", "x", 1, ("b",), ("a",))]
    >>> {client: ([q.queue_id for q in gives], [q.queue_id for q in takes])
    ...  for client, (gives, takes) in moves_by_client(moves).items()}
    {'a': ([], [1]), 'b': ([1], [])}
    """
    found: dict[str, tuple[_Queues, _Queues]] = defaultdict(lambda: ([], []))
    for move in moves:
        for client_id in dict.fromkeys((*move.before, *move.after)):
            gained = move.after.count(client_id) - move.before.count(client_id)
            if gained:
                found[client_id][gained > 0].append(move.queue)
    return dict(sorted(found.items()))


# ------------------------------------------------------------------ a rollout, step by step


def _rollout(situation: Situation, steps: Sequence[Step], before: Evaluation) -> Ways:
    """The parts of the steps (``_parts``), each made in the order of the steps."""
    keys_before = before.finding_keys
    most = max(_FEWEST_STATES, min(MOST_STATES, _MEMBERS_IN_ALL // max(before.members, 1)))
    looked_at = _parts(steps, most)
    harmed: list[StateBetween] = []
    for done in looked_at:
        on_the_way = situation
        for step in done:
            on_the_way = step.apply(on_the_way)
        evaluation = evaluate(on_the_way.state, on_the_way.rules)
        if evaluation.finding_keys - keys_before:
            by_kind = grouped((finding.kind, finding.queue) for finding in evaluation.findings)
            wrong = (tuple(by_kind.get(kind, ())) for kind in (DUPLICATE, ORPHANED))
            harmed.append(StateBetween(tuple(step.text for step in done), *wrong))
    worst = max(harmed, key=lambda state: state.queues_wrong, default=None)
    return Ways(max(2 ** len(steps) - 2, 0), len(looked_at), len(harmed), worst)


def _parts(every: Sequence[_Item], most: int, fewest: int = 1) -> list[tuple[_Item, ...]]:
    """The ways to have done some of these and not all, smallest first; ``fewest`` is 0 or 1.

    Where there are more than ``most``: the first of them in the given order, and of these too only
    so many, evenly thinned out.

    >>> _parts("ab", 2), _parts("abcd", 3), len(_parts("abcd", 14))
    ([('a',), ('b',)], [('a',), ('a', 'b'), ('a', 'b', 'c')], 14)
    """
    sizes = range(fewest, len(every))
    if 2 ** len(every) - 1 - fewest <= most:
        return [part for size in sizes for part in combinations(every, size)]
    thinned = max(1, len(sizes) / most)
    return [tuple(every[: sizes[int(n * thinned)]]) for n in range(min(most, len(sizes)))]


# ------------------------------------------------------------------ settling, client by client


def _settling(before: Evaluation, after: Evaluation) -> Ways:
    """Each process claims what it did or what it will; one that leaves is gone from the start.

    Only those that give up or take a queue count: the others do the same either way.
    """
    old, new = queues_of_processes(before), queues_of_processes(after)
    changing = sorted(p for p in new if old.get(p, frozenset()) != new[p])
    leaves = any(old[process] for process in old.keys() - new.keys())
    queues = set[MessageQueue]().union(*[old.get(p, frozenset()) | new[p] for p in changing])
    queues.update(queue for process in old.keys() - new.keys() for queue in old[process])
    staying = Counter(q for p in new.keys() - set(changing) for q in new[p] if q in queues)
    # A queue that comes or goes has no owner as long as nobody knows of it.
    gone = before.seen_queues ^ after.seen_queues
    keys_before = before.finding_keys

    def between(moved: frozenset[ProcessKey]) -> StateBetween:
        owners = staying.copy()
        for process in changing:
            owners.update(new[process] if process in moved else old.get(process, ()))
        several = (q for q in queues if owners[q] > 1 and (DUPLICATE, q) not in keys_before)
        none = (q for q in queues - gone if owners[q] == 0 and (ORPHANED, q) not in keys_before)
        done = tuple(shown_id(copy_id(*process)) for process in changing if process in moved)
        wrong = (tuple(sort_message_queues(found)) for found in (several, none))
        return StateBetween(done, *wrong)

    # All that know the new lists are the state after; none, with nobody gone, the state before.
    fewest = 0 if leaves else 1
    # A queue moves mostly from one process to the next: it is wrong where every other one knows.
    in_order = (*changing[::2], *changing[1::2])
    looked_at = [between(frozenset(moved)) for moved in _parts(in_order, MOST_STATES, fewest)]
    harmed = [between for between in looked_at if between.queues_wrong]
    worst = min(harmed, key=lambda at: (-at.queues_wrong, len(at.done), at.done), default=None)
    return Ways(max(2 ** len(changing) - 1 - fewest, 0), len(looked_at), len(harmed), worst)
