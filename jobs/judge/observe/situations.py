"""dossier -> situations: from when to when all that the members could see of a topic stayed so.

At each snapshot of the group: what every broker lists (``answers``), what their lists come to where
they differ (``membership``), how many processes use an id (``channels``), and the route that every
nameserver gave last, at most ``route_max_age_seconds`` before.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from rebalance_core.grouping import grouped
from rebalance_core.state import ProcessCount, RouteBroker, Unreachable
from rebalance_core.texts import Text
from rebalance_core.views import asked_brokers

from ...config.terms import Terms
from ...declared.contents import value_text
from ...declared.dossier import Broker, Dossier, RouteRun
from ...declared.instants import SECOND, Instant
from ...schemas import ANSWERED, NO_ANSWER
from . import answers
from .answers import NOTHING, Answers, DeadClient, Integers, Witness
from .channels import Channel, ProcessCounts, channels_of
from .membership import NO_OUTCOME, ListOutcome, Lists, Patch, find_membership

#: The answer of every broker that was asked at one snapshot: the id of its list, or an outcome.
BrokerAnswers: TypeAlias = tuple[tuple[Broker, str], ...]
#: The route of every nameserver at one snapshot, by its id.
GivenRoutes: TypeAlias = tuple[tuple[str, str], ...]


class TopicSituation(NamedTuple):
    """All that a group's members could see of a topic: evaluated once, however often it was so.

    ``situation_id`` is a hash of all of it. ``routes`` has the brokers by nameserver; none: the
    route was not found.
    """

    situation_id: str
    cluster: str
    consumer_group: str
    topic: str
    answers: BrokerAnswers
    #: The places where a broker's list is not what it was when the round ended.
    patches: tuple[Patch, ...]
    process_counts: tuple[ProcessCount, ...]
    unreachable: tuple[Unreachable, ...]
    routes: tuple[tuple[str, tuple[RouteBroker, ...]], ...]
    #: PULL or POP, as the brokers report; None: they were not asked, or have no mode for the group.
    request_mode: str | None = None
    #: The members consume in order, and the route has a broker without a master.
    locks_at_master: bool = False


class Period(NamedTuple):
    """Snapshots that follow each other, in which one situation held.

    ``group_run`` counts the changes of what the group's lists come to, whatever the topic.
    """

    situation: TopicSituation
    group_run: int
    first_seen: Instant
    last_seen: Instant
    snapshots: int


@dataclass(frozen=True)
class Situations:
    """The periods of every topic of a group, in time."""

    by_topic: Mapping[str, Sequence[Period]]
    #: The channels of each client id with several: see ``channels_of``.
    channels: Mapping[str, Sequence[Channel]] = field(default_factory=dict)

    def in_force(self, topic: str, times: Integers) -> list[str | None]:
        """The id of the topic's situation at each time; None before its first period.

        A situation holds until the snapshot that shows another: offsets have their polls at other
        times. There may be offsets of a topic that no member was seen to subscribe to.
        """
        periods = self.by_topic.get(topic, ())
        places = np.searchsorted([period.first_seen for period in periods], times, side="right") - 1
        # -1 finds the last place.
        found = [*[period.situation.situation_id for period in periods], None]
        return [found[place] for place in places.tolist()]

    def distinct(self) -> dict[str, TopicSituation]:
        """Every situation, by id."""
        every = (period.situation for period in chain.from_iterable(self.by_topic.values()))
        return {situation.situation_id: situation for situation in every}


def find_situations(dossier: Dossier, terms: Terms) -> Situations:
    """The situations of each topic of the group.

    A topic stays with its group for the whole window, also when no member subscribes any more.
    """
    group = _in_time(dossier, terms.heartbeat_expiry_seconds * SECOND)
    age, topics = terms.route_max_age_seconds * SECOND, dossier.topics()
    by_topic = {topic: _topic_periods(dossier, topic, group, age) for topic in topics}
    return Situations(by_topic, group.channels)


class _MergedLists(NamedTuple):
    """The group's lists at a snapshot, put together."""

    answers: BrokerAnswers
    process_counts: tuple[ProcessCount, ...]
    shown: ListOutcome


@dataclass(frozen=True)
class _GroupInTime:
    """The snapshots of a group: when each round ended, and its lists put together."""

    snapshots: Integers
    ends: Integers
    #: The lists from each snapshot on, by its number, at which they change; equal ones are one
    #: object.
    runs: Mapping[int, _MergedLists]
    channels: Mapping[str, Sequence[Channel]]


def _in_time(dossier: Dossier, expiry: Instant) -> _GroupInTime:
    brokers = answers.broker_answers(dossier.polls)
    snapshots = answers.snapshots_of(brokers)
    polls = {broker.witness: answers.in_force(broker, snapshots) for broker in brokers}
    ends = answers.times_of(brokers, polls, snapshots)
    shown = find_membership(Lists(dossier), brokers, polls, ends)
    channels = channels_of(dossier, brokers)
    counts = ProcessCounts(channels, dossier.clients, expiry)
    gone = answers.gone_clients(dossier, brokers, expiry)
    # The brokers' answers repeat themselves, and so do their channels: changes alone count. What is
    # shown of lists that differ is of its snapshot; a client that is gone, of its time.
    cuts: Iterable[int] = range(len(snapshots))
    if not gone:
        changes = _changes(brokers, polls.values(), len(snapshots))
        behind = {number + 1 for number in shown} - {len(snapshots)}
        cuts = sorted({*changes, *shown, *behind})
    contents: dict[_MergedLists, _MergedLists] = {}
    runs: dict[int, _MergedLists] = {}
    last: _MergedLists | None = None
    for number in cuts:
        held = _polls_at(brokers, polls.values(), number)
        given = ((broker.witness, broker.name_of(poll)) for broker, poll in held)
        counted = counts.at(
            {broker.witness: int(broker.collected_at[poll]) for broker, poll in held}
        )
        lists = tuple(answer for answer in given if answer[1] != ANSWERED)
        counted += _none_of(gone, int(snapshots[number]), int(ends[number]))
        content = _MergedLists(lists, counted, shown.get(number, NO_OUTCOME))
        if content != last:
            last = runs[number] = contents.setdefault(content, content)
    return _GroupInTime(snapshots, ends, runs, channels)


def _changes(
    witnesses: Iterable[Answers[Witness]], polls: Iterable[Integers], snapshots: int
) -> list[int]:
    """The numbers of the snapshots at which a witness gives something else, the first among them;
    ``polls``: of each witness by snapshot the poll that counts, or NOTHING.
    """
    changed = np.zeros(snapshots, np.bool_)
    changed[:1] = True
    for witness, row in zip(witnesses, polls, strict=True):
        contents = np.where(row >= 0, witness.contents[np.maximum(row, 0)], NOTHING)
        changed[1:] |= contents[1:] != contents[:-1]
    return np.flatnonzero(changed).tolist()


def _polls_at(
    witnesses: Iterable[Answers[Witness]], polls: Iterable[Integers], number: int
) -> list[tuple[Answers[Witness], int]]:
    """The polls that count at a snapshot, each with its witness."""
    found = zip(witnesses, (int(row[number]) for row in polls), strict=True)
    return [(witness, poll) for witness, poll in found if poll != NOTHING]


def _none_of(
    gone: Mapping[str, DeadClient], begins: Instant, ends: Instant
) -> tuple[ProcessCount, ...]:
    """The client ids behind which nobody is any more at a round between the two instants."""
    dead = (id_ for id_, of in sorted(gone.items()) if of.begins <= ends and begins <= of.last_seen)
    return tuple(ProcessCount(client_id, 0, _ANSWERS_NO_MORE) for client_id in dead)


#: The evidence that a client is dead.
_ANSWERS_NO_MORE = Text("it answers no question for its running info any more")


# ---------------------------------------------------------------- routes


def routes_in_force(
    routes: Sequence[RouteRun], snapshots: Integers, ends: Integers, max_age: Instant
) -> dict[int, GivenRoutes | None]:
    """The nameservers' routes, by the number of the snapshot from which on they hold.

    None where there is no route: the period stays in the history all the same (ROUTE_NOT_KNOWN).

    A nameserver's route holds until that nameserver gives another, at most ``max_age``. Where it
    was asked before the route changed, and another nameserver after it, the new one counts: its
    next answer shows it.
    """
    nameservers = answers.nameserver_answers(routes)
    rows = []
    for nameserver in nameservers:
        places = nameserver.at(snapshots)
        age = snapshots - nameserver.snapshots[np.maximum(places, 0)]
        rows.append(np.where((places >= 0) & (age < max_age), places, NOTHING))
    cuts = _changes(nameservers, rows, len(snapshots))
    found: dict[int, GivenRoutes | None] = {}
    last: GivenRoutes | None = None
    for cut, next_cut in pairwise([*cuts, len(snapshots)]):
        for number in range(cut, next_cut):
            held = _polls_at(nameservers, rows, number)
            names = {nameserver.witness: nameserver.name_of(poll) for nameserver, poll in held}
            agree = len(set(names.values())) <= 1
            if not agree:
                names |= _caught_up(held, int(ends[number]))
            given = tuple(names.items()) or None
            if not found or given != last:
                last = found[number] = given
            if agree:
                break
    return found


def _caught_up(held: Sequence[tuple[Answers[str], int]], ends: Instant) -> dict[str, str]:
    """The nameservers that were asked too early to give the route that another one gives."""
    found: dict[str, str] = {}
    for one, poll in held:
        now, later = one.name_of(poll), one.name_of(min(poll + 1, len(one.contents) - 1))
        newer = (
            other.name_of(other_poll)
            for other, other_poll in held
            if one.collected_at[poll] < other.collected_at[other_poll] <= ends
        )
        if later != now and later in newer:
            found[one.witness] = later
    return found


# ---------------------------------------------------------------- both together


def _topic_periods(
    dossier: Dossier, topic: str, group: _GroupInTime, route_max_age: Instant
) -> list[Period]:
    routes = dossier.routes.get(topic, [])
    brokers = {(run.namesrv_addr, run.route_id): run.brokers for run in routes}
    given = routes_in_force(routes, group.snapshots, group.ends, route_max_age)
    mode = dossier.request_mode(topic)
    made: dict[tuple[int, GivenRoutes | None], TopicSituation] = {}
    periods: list[Period] = []
    run = -1
    for start, end in pairwise([*sorted({*group.runs, *given}), len(group.snapshots)]):
        # Both begin with the first snapshot.
        if start in group.runs:
            run, merged = run + 1, group.runs[start]
        if start in given:
            routes_given = given[start]
        key = (id(merged), routes_given)
        if key not in made:
            made[key] = _situation(dossier, topic, merged, routes_given, brokers, mode)
        first_seen, last_seen = group.snapshots[[start, end - 1]].tolist()
        periods.append(Period(made[key], run, first_seen, last_seen, end - start))
    return periods


def _situation(
    dossier: Dossier,
    topic: str,
    merged: _MergedLists,
    given: GivenRoutes | None,
    brokers: Mapping[tuple[str, str], tuple[RouteBroker, ...]],
    mode: str | None,
) -> TopicSituation:
    routes = tuple((name, brokers[name, route_id]) for name, route_id in given or ())
    given_lists, process_counts, (patches, _) = merged
    every = [*chain.from_iterable(route_brokers for _, route_brokers in routes)]
    unreachable = _unreachable(merged, every)
    subject = (dossier.cluster, dossier.consumer_group, topic)
    seen = (*subject, given_lists, patches, process_counts, unreachable)
    locks = bool(dossier.consumes_in_order)
    text = value_text((*seen, given, mode, *["locks"] * locks))
    id_ = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
    return TopicSituation(id_, *seen, routes, mode, locks)


def _unreachable(merged: _MergedLists, brokers: Iterable[RouteBroker]) -> tuple[Unreachable, ...]:
    """The broker names of the topic's route that a client does not reach: see the core's ``State``.

    The route decides whom clients ask, and read from: the master, or its slaves where there is none
    (``asked_brokers``). A client reaches a name if one of those lists it. Nobody reads anything
    from names without a queue of the topic.
    """
    asked = asked_brokers(brokers)
    answered = [broker for broker, answer in merged.answers if answer != NO_ANSWER]
    answers_by_name = Counter(broker[0] for broker in asked.intersection(answered))
    missing = Counter(pair for pair in merged.shown.unreachable if pair[1] in asked)
    fewest = grouped(((id_, broker[0]), number) for (id_, broker), number in missing.items())
    lacking = (pair for pair in fewest.items() if len(pair[1]) == answers_by_name[pair[0][1]])
    found = Counter({pair: min(numbers) for pair, numbers in lacking})
    return tuple(sorted(found.elements(), key=lambda pair: (pair[1], pair[0] or "")))
