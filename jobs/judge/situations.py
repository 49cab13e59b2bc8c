"""dossier -> situations: from when to when all that the members could see of a topic stayed so.

At each snapshot of the group: what every broker lists (``answers``), what their lists come to where
they differ (``membership``), how many processes use an id (``channels``), and the route that every
nameserver gave last, at most ``route_max_age_seconds`` before.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rebalance_core.state import ProcessCount, Unreachable
from rebalance_core.texts import Text
from rebalance_core.views import candidate_ids

from ..contents import value_text
from ..instants import SECOND, Instant
from ..schemas import ANSWERED, NO_ANSWER
from .answers import (
    NOTHING,
    Answers,
    Gone,
    Numbers,
    broker_answers,
    gone_clients,
    in_force,
    nameserver_answers,
    snapshots_of,
    times_of,
)
from .channels import Channel, ProcessCounts, channels_of
from .dossier import Broker, Dossier, RouteBrokerRow, RouteRun
from .membership import NOTHING_SHOWN, Lists, Patch, Shown, find_membership
from .terms import Terms

#: What every broker that was asked gives at one snapshot: the id of its list, or an outcome.
Given: TypeAlias = tuple[tuple[Broker, str], ...]
#: What every nameserver gives at one snapshot: the id of its route.
GivenRoutes: TypeAlias = tuple[tuple[str, str], ...]


class Situation(NamedTuple):
    """All that the members could see of a topic: what is evaluated, once however often it was so.

    ``situation_id`` is a hash of all of it. ``routes`` has the brokers by nameserver; none: the
    route was not found.
    """

    situation_id: str
    topic: str
    answers: Given
    #: Where a broker's list is not what it was when the round ended.
    patches: tuple[Patch, ...]
    process_counts: tuple[ProcessCount, ...]
    unreachable: tuple[Unreachable, ...]
    routes: tuple[tuple[str, tuple[RouteBrokerRow, ...]], ...]
    #: PULL or POP, as the brokers report; None: they were not asked, or have no mode for the group.
    request_mode: str | None = None


class Period(NamedTuple):
    """Snapshots that follow each other, in which one situation held.

    ``group_run`` counts the changes of what the group's lists come to, whatever the topic.
    """

    situation: Situation
    group_run: int
    first_seen: Instant
    last_seen: Instant
    snapshots: int


@dataclass(frozen=True)
class Situations:
    """The periods of every topic of a group, in time."""

    by_topic: Mapping[str, Sequence[Period]]
    #: By client id, of those with several: see ``channels_of``.
    channels: Mapping[str, Sequence[Channel]] = field(default_factory=dict)

    def distinct(self) -> dict[str, Situation]:
        """By id every situation."""
        return {
            period.situation.situation_id: period.situation
            for periods in self.by_topic.values()
            for period in periods
        }


def find_situations(dossier: Dossier, terms: Terms) -> Situations:
    """The situations of each topic of the group.

    A topic stays with its group for the whole window, also when no member subscribes any more.
    """
    group = _GroupInTime.of(dossier, terms.heartbeat_expiry_seconds)
    return Situations(
        {
            topic: _of_topic(dossier, topic, group, terms.route_max_age_seconds * SECOND)
            for topic in dossier.topics()
        },
        group.channels,
    )


class _OfLists(NamedTuple):
    """What the group's lists come to at a snapshot."""

    answers: Given
    process_counts: tuple[ProcessCount, ...]
    shown: Shown


@dataclass(frozen=True)
class _GroupInTime:
    """By snapshot of the group when its round ended, and by run what its lists come to."""

    snapshots: Numbers
    ends: Numbers
    #: The numbers of the snapshots at which another run begins, the first one among them.
    starts: Numbers
    #: By run; equal ones are one object.
    contents: Sequence[_OfLists]
    channels: Mapping[str, Sequence[Channel]]

    @classmethod
    def of(cls, dossier: Dossier, heartbeat_expiry_seconds: int) -> "_GroupInTime":
        answers = broker_answers(dossier.polls)
        snapshots = snapshots_of(answers)
        polls = {each.witness: in_force(each, snapshots) for each in answers}
        ends = times_of(answers, polls, snapshots)
        lists = Lists(dossier)
        shown = find_membership(lists, answers, polls, ends)
        channels = channels_of(dossier, answers)
        counts = ProcessCounts(channels, dossier.clients, heartbeat_expiry_seconds)
        expiry = heartbeat_expiry_seconds * SECOND
        gone = gone_clients(dossier.clients, answers, dossier.list_members, expiry)
        rows = [_contents(each, polls[each.witness]) for each in answers]
        # What the brokers gave repeats itself, and so do its channels: changes alone count. What is
        # shown of lists that differ is of its snapshot; a client that is gone, of its time.
        cuts = _changes(rows, len(snapshots))
        if gone:
            cuts = np.arange(len(snapshots))
        elif shown:
            alone = np.array(sorted(shown), np.int64)
            cuts = np.union1d(cuts, np.union1d(alone, alone + 1))
            cuts = cuts[cuts < len(snapshots)]
        contents: dict[_OfLists, _OfLists] = {}
        starts: dict[int, _OfLists] = {}
        last: _OfLists | None = None
        for number in cuts.tolist():
            content = _OfLists(
                _given(answers, [int(row[number]) for row in rows]),
                _process_counts(counts, answers, polls, number)
                + _none_of(gone, int(snapshots[number]), int(ends[number])),
                shown.get(number, NOTHING_SHOWN),
            )
            if content != last:
                last = starts[number] = contents.setdefault(content, content)
        numbers = np.array(list(starts), np.int64)
        return cls(snapshots, ends, numbers, list(starts.values()), channels)


def _contents(answers: Answers[Any], polls: Numbers) -> Numbers:
    """By snapshot the place of what the witness gave, or NOTHING."""
    contents: Numbers = np.where(polls >= 0, answers.contents[np.maximum(polls, 0)], NOTHING)
    return contents


def _changes(rows: Sequence[Numbers], snapshots: int) -> Numbers:
    """The numbers of the snapshots at which a row changes, the first one among them."""
    changed = np.zeros(snapshots, np.bool_)
    changed[:1] = True
    for row in rows:
        changed[1:] |= row[1:] != row[:-1]
    return np.flatnonzero(changed)


def _given(answers: Sequence[Answers[Broker]], contents: Sequence[int]) -> Given:
    return tuple(
        (each.witness, each.names[place])
        for each, place in zip(answers, contents, strict=True)
        if place != NOTHING and each.names[place] != ANSWERED
    )


def _process_counts(
    counts: ProcessCounts,
    answers: Sequence[Answers[Broker]],
    polls: Mapping[Broker, Numbers],
    number: int,
) -> tuple[ProcessCount, ...]:
    return counts.at(
        {
            each.witness: int(each.collected_at[polls[each.witness][number]])
            for each in answers
            if polls[each.witness][number] != NOTHING
        }
    )


def _none_of(gone: Mapping[str, Gone], since: Instant, until: Instant) -> tuple[ProcessCount, ...]:
    """The client ids behind which nobody is any more at a round between the two instants."""
    return tuple(
        ProcessCount(client_id, 0, _ANSWERS_NO_MORE)
        for client_id, each in sorted(gone.items())
        if each.since <= until and since <= each.listed_until
    )


#: What shows that a client is dead.
_ANSWERS_NO_MORE = Text("it answers no question for its running info any more")


# ---------------------------------------------------------------- routes


def routes_in_force(
    routes: Sequence[RouteRun], snapshots: Numbers, ends: Numbers, max_age: Instant
) -> tuple[Numbers, list[GivenRoutes | None]]:
    """What the nameservers gave, and the snapshots from which on they gave it, ascending.

    None where there is no route: the period stays in the history all the same (ROUTE_NOT_KNOWN).

    A nameserver's route holds until that nameserver gives another, at most ``max_age``. Where it
    was asked before the route changed, and another nameserver after it, the new one counts: its
    next answer shows it.
    """
    nameservers = nameserver_answers(routes)
    rows = []
    for each in nameservers:
        places = each.at(snapshots)
        polled = each.snapshots[np.maximum(places, 0)]
        is_held = (places >= 0) & (snapshots - polled < max_age)
        rows.append(np.where(is_held, places, NOTHING))
    contents = [_contents(each, row) for each, row in zip(nameservers, rows, strict=True)]
    cuts = _changes(contents, len(snapshots)).tolist()
    since: list[int] = []
    found: list[GivenRoutes | None] = []
    for cut, next_cut in pairwise([*cuts, len(snapshots)]):
        for number in range(cut, next_cut):
            held = [
                (each, int(row[number]))
                for each, row in zip(nameservers, rows, strict=True)
                if row[number] != NOTHING
            ]
            names = {each.witness: each.name_of(poll) for each, poll in held}
            agree = len(set(names.values())) <= 1
            if not agree:
                names |= _caught_up(held, int(ends[number]))
            since.append(number)
            found.append(tuple(names.items()) or None)
            if agree:
                break
    return np.array(since, np.int64), found


def _caught_up(held: Sequence[tuple[Answers[str], int]], end: Instant) -> dict[str, str]:
    """The nameservers that were asked too early to give the route that another one gives."""
    found: dict[str, str] = {}
    for one, poll in held:
        if poll + 1 >= len(one.contents):
            continue
        later, at = one.name_of(poll + 1), int(one.collected_at[poll])
        if later == one.name_of(poll):
            continue
        for other, other_poll in held:
            if (
                other is not one
                and at < int(other.collected_at[other_poll]) <= end
                and other.name_of(other_poll) == later
            ):
                found[one.witness] = later
    return found


# ---------------------------------------------------------------- both together


def _of_topic(
    dossier: Dossier, topic: str, group: _GroupInTime, route_max_age: Instant
) -> list[Period]:
    routes = dossier.routes.get(topic, [])
    brokers = {(run.namesrv_addr, run.route_id): run.brokers for run in routes}
    by_id = {run.route_id: run.brokers for run in routes}
    since, given = routes_in_force(routes, group.snapshots, group.ends, route_max_age)
    cuts = np.union1d(group.starts, since)
    mode = dossier.request_mode(topic)
    made: dict[tuple[int, GivenRoutes | None], Situation] = {}
    periods: list[Period] = []
    for start, end in pairwise([*cuts.tolist(), len(group.snapshots)]):
        run = int(np.searchsorted(group.starts, start, side="right")) - 1
        of_nameservers = given[int(np.searchsorted(since, start, side="right")) - 1]
        of_lists = group.contents[run]
        key = (id(of_lists), of_nameservers)
        if key not in made:
            of_routes = {
                (name, route_id): brokers.get((name, route_id), by_id[route_id])
                for name, route_id in of_nameservers or ()
            }
            made[key] = _situation(dossier, topic, of_lists, of_nameservers, of_routes, mode)
        last_seen = int(group.snapshots[end - 1])
        last = periods[-1] if periods else None
        if last is not None and last.situation is made[key] and last.group_run == run:
            more = last.snapshots + end - start
            periods[-1] = last._replace(last_seen=last_seen, snapshots=more)
        else:
            first_seen = int(group.snapshots[start])
            periods.append(Period(made[key], run, first_seen, last_seen, end - start))
    return periods


def _situation(
    dossier: Dossier,
    topic: str,
    of_lists: _OfLists,
    given: GivenRoutes | None,
    brokers: Mapping[tuple[str, str], tuple[RouteBrokerRow, ...]],
    request_mode: str | None,
) -> Situation:
    routes = tuple((name, brokers[name, route_id]) for name, route_id in given or ())
    unreachable = _unreachable(of_lists, (each for _, of_route in routes for each in of_route))
    patches = of_lists.shown.patches
    text = value_text(
        (
            dossier.cluster,
            dossier.consumer_group,
            topic,
            of_lists.answers,
            tuple(map(tuple, patches)),
            tuple(map(tuple, of_lists.process_counts)),
            unreachable,
            given,
            request_mode,
        )
    )
    return Situation(
        hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
        topic,
        of_lists.answers,
        patches,
        of_lists.process_counts,
        unreachable,
        routes,
        request_mode,
    )


def _unreachable(of_lists: _OfLists, brokers: Iterable[RouteBrokerRow]) -> tuple[Unreachable, ...]:
    """Who does not reach which broker name of the topic's route: see the core's ``State``.

    The route decides whom clients ask, and read from: the master, or its slaves where there is none
    (``candidate_ids``). A client reaches a name if one of those lists it. Of names without a queue
    of the topic nobody reads anything.
    """
    asked = {
        (each.broker_name, broker_id)
        for each in brokers
        for broker_id in candidate_ids(each.broker_ids)
    }
    answered = [broker for broker, answer in of_lists.answers if answer != NO_ANSWER]
    of_names = Counter(broker[0] for broker in asked.intersection(answered))
    missing = Counter(each for each in of_lists.shown.unreachable if each[1] in asked)
    fewest: dict[Unreachable, list[int]] = defaultdict(list)
    for (client_id, broker), processes in missing.items():
        fewest[client_id, broker[0]].append(processes)
    found = [
        each
        for each, processes in fewest.items()
        if len(processes) == of_names[each[1]]
        for _ in range(min(processes))
    ]
    return tuple(sorted(found, key=lambda each: (each[1], each[0] or "")))
