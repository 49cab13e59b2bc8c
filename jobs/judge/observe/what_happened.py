"""dossier, situations -> events: what happened to the cluster, to a topic or to the members.

A master that leaves touches every group with queues on its broker, and each of them may have
findings of it. So each group has its own sighting of an event; ``result.events`` makes rows of
them, and says what they explain. A deploy has what its members changed with it: another version,
another strategy, other topics. The fault that begins there has its reason there.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise, zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from rebalance_core.client_id import parse_client_id
from rebalance_core.english import joined, list_of, named_broker, with_commas
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_own_retry_topic, is_retry_topic
from rebalance_core.state import RouteBroker
from rebalance_core.texts import Text

from ...declared import kinds
from ...declared.contents import MEMBER_FACTS
from ...declared.dossier import ClientRun, Dossier, ListedIds
from ...declared.instants import FOLLOW_TIME, HEARTBEAT_INTERVAL, SECOND, Instant, together
from ...schemas import RUNNING_INFO
from ..times import ONE_IS_MISSING, usual_gap, usual_gap_but_for_one
from .brokers import Absence, address_changes, topics_by_broker
from .in_words import version_name, zoned_clock
from .routes import RouteChange, readable_queues
from .situations import Period

#: Routes that differ are not an event before they last so long.
_LEAST_DIFFERENCE: Instant = 60 * SECOND
#: Members that come and go no further apart are one deploy or one scaling: each pod of a rolling
#: restart takes its time ...
_ONE_DEPLOY: Instant = 5 * 60 * SECOND
#: ... and so many usual rounds, where rounds come seldom.
_ROUNDS_OF_ONE = 2


class Event(NamedTuple):
    """An event that happened once, as one group sees it.

    ``begins``: the first snapshot that shows it; ``last_seen``: the last one; ``ends``: the first
    that shows that it is over, None while it is not. ``what`` and ``evidence`` are sentences
    without the time. ``topics``: those of the group that it is about. ``without_members_since``:
    the first snapshot of it without any member, ``without_members_until`` the next one with one.
    ``changed``: what the members changed with it, in words.
    """

    kind: str
    subject: str
    begins: Instant
    last_seen: Instant
    ends: Instant | None
    what: str
    evidence: str
    broker_names: tuple[str, ...] = ()
    topics: frozenset[str] = frozenset()
    without_members_since: Instant | None = None
    without_members_until: Instant | None = None
    changed: str | None = None


def find_events(
    dossier: Dossier,
    by_topic: Mapping[str, Sequence[Period]],
    absences: Iterable[Absence],
    route_changes: Mapping[str, Sequence[RouteChange]],
    members: Sequence[ListedIds],
    snapshots: Sequence[Instant],
    unsteady: Sequence[tuple[Instant, Instant]],
) -> Iterator[Event]:
    """All events that the group saw; ``members``, ``unsteady``: see ``members_that_changed``."""
    topics = topics_by_broker(dossier)
    away = [*masters_that_left(absences, topics)]
    brokers_came = [*snapshots[:1], *[event.ends for event in away if event.ends is not None]]
    usual = usual_gap_but_for_one(np.diff(snapshots))
    for event in chain(
        away,
        nameservers_that_differ(by_topic),
        addresses_that_changed(dossier, topics),
        topics_resized(route_changes),
        members_that_changed(dossier, members, snapshots, brokers_came, unsteady),
    ):
        yield _with_gap_before(event, snapshots, usual)


def _with_gap_before(event: Event, snapshots: Sequence[Instant], usual: Instant) -> Event:
    """The event, with the time in which it happened where its first round came late.

    Worked example: rounds each 60 s up to 10:04:00, and then one at 10:09:00 that does not list a
    member. It left between the two, and not at 10:09:00.
    """
    place = bisect_left(snapshots, event.begins)
    # Nothing was collected before the first.
    earlier = snapshots[place - 1] if place else event.begins
    if event.begins - earlier <= ONE_IS_MISSING * usual:
        return event
    when = Text(
        "no round was collected between {earlier} and {later}: it happened at some time in between",
        earlier=zoned_clock(earlier),
        later=zoned_clock(event.begins),
    )
    return event._replace(evidence=joined([event.evidence, when] if event.evidence else [when]))


# ---------------------------------------------------------------- brokers and nameservers


def masters_that_left(
    absences: Iterable[Absence], topics: Mapping[str, Iterable[str]]
) -> Iterator[Event]:
    """The times in which a broker of the group had no master; ``topics``: by broker."""
    for name, begins, last_seen, ends, unrouted, silent, *_ in absences:
        what = Text("the master of {broker} left", broker=name)
        why = Text("no route names the master" if unrouted else "the master does not answer")
        if unrouted and silent:
            why = Text("the master does not answer, and no route names it")
        about = (name,), frozenset(topics[name])
        yield Event(kinds.MASTER_LEFT, name, begins, last_seen, ends, what, why, *about)


def nameservers_that_differ(by_topic: Mapping[str, Sequence[Period]]) -> Iterator[Event]:
    """The times in which a nameserver gave another route of a topic than the others gave.

    The route that counts is that of most of them, then the one with most queues: who lacks a broker
    has just been started, or its brokers do not reach it. The others follow within seconds.
    """
    for topic, periods in by_topic.items():
        differing = [_that_differ(period.situation.routes) for period in periods]
        for addr in sorted(set().union(*differing)):
            gave = [
                (addr in addrs, period) for addrs, period in zip(differing, periods, strict=True)
            ]
            by_gift = groupby(gave, key=itemgetter(0))
            runs = [(is_other, [period for _, period in run]) for is_other, run in by_gift]
            for (is_other, run), following in zip_longest(runs, runs[1:]):
                begins, last_seen = run[0].first_seen, run[-1].last_seen
                if not is_other or last_seen - begins < _LEAST_DIFFERENCE:
                    continue
                ends = following[1][0].first_seen if following else None
                routes = run[-1].situation.routes
                names = {of: {broker.broker_name for broker in brokers} for of, brokers in routes}
                lacks = sorted(set().union(*names.values()) - names[addr])
                template = "nameserver {namesrv} gave different routes from the others"
                why = Text("its routes have different queues")
                if lacks:
                    why = Text("its routes lack {brokers}", brokers=with_commas(lacks))
                happened = begins, last_seen, ends, Text(template, namesrv=addr), why
                about = tuple(lacks), frozenset({topic})
                yield Event(kinds.NAMESERVERS_DIFFER, addr, *happened, *about)


def _that_differ(routes: Sequence[tuple[str, Sequence[RouteBroker]]]) -> list[str]:
    """The nameservers whose routes have other readable queues than the one that counts."""
    if len({brokers for _, brokers in routes}) < 2:
        return []
    queues = {addr: readable_queues([(addr, brokers)]) for addr, brokers in routes}
    given = list(queues.values())
    counts = max(given, key=lambda of: (given.count(of), len(of), sorted(of)))
    return [addr for addr, readable in queues.items() if readable != counts]


def addresses_that_changed(
    dossier: Dossier, topics: Mapping[str, Iterable[str]]
) -> Iterator[Event]:
    """Each time that a broker was asked at another address from then on; ``topics``: by broker."""
    for (name, broker_id), begins, before, now, is_switch in address_changes(dossier):
        addresses = {"before": before, "now": now}
        what = Text("the address of {broker} changed", broker=named_broker(name, broker_id))
        why = Text(
            "its address was {before} and is now {now}: a client that holds the old address finds "
            "the new one with its next route, within 30 s",
            **addresses,
        )
        if is_switch:
            template = "the master of {broker} changed from {before} to {now}"
            what = Text(template, broker=name, **addresses)
            why = Text(
                "a slave became the master: a client finds it with its next route, within 30 s"
            )
        about = (name,), frozenset(topics[name])
        yield Event(kinds.BROKER_ADDRESS_CHANGED, name, begins, begins, begins, what, why, *about)


# ---------------------------------------------------------------- topics and members


_RESIZED = {
    1: "topic {topic} grew from {before:,} to {now:,} queues",
    0: "queues of topic {topic} went to other brokers",
    -1: "topic {topic} shrank from {before:,} to {now:,} queues",
}


def topics_resized(route_changes: Mapping[str, Sequence[RouteChange]]) -> Iterator[Event]:
    """The times at which a topic got another number of queues on some broker, or a new broker.

    A broker that leaves the route, or comes back as it was, is another event. The brokers are
    changed one after the other, so what follows within a minute is the same event.
    """
    for topic, changes in route_changes.items():
        if not is_retry_topic(topic):
            yield from _resized(topic, changes)


def _resized(topic: str, changes: Sequence[RouteChange]) -> Iterator[Event]:
    known: dict[str, int] = dict(changes[0].before) if changes else {}
    steps: list[tuple[Instant, dict[str, int], dict[str, int]]] = []
    for change in changes:
        now = known | dict(sorted({*change.now} - {*change.before}))
        if now != known:
            steps.append((change.first_seen, known, now))
        known = now
    for one_change in together(steps, lambda step: (step[0], step[0]), FOLLOW_TIME):
        (begins, before, _), (ends, _, now) = one_change[0], one_change[-1]
        if before == now:
            continue
        was, is_ = sum(before.values()), sum(now.values())
        what = Text(_RESIZED[(is_ > was) - (is_ < was)], topic=topic, before=was, now=is_)
        names = sorted({name for name, _ in before.items() ^ now.items()})
        template = "{broker} {before} to {now}"
        numbers = ((name, before.get(name, 0), now.get(name, 0)) for name in names)
        why = with_commas(
            [Text(template, broker=name, before=was, now=is_) for name, was, is_ in numbers]
        )
        about = tuple(names), frozenset({topic})
        yield Event(kinds.TOPIC_RESIZED, topic, begins, ends, ends, what, why, *about)


def restarts(clients: Iterable[ClientRun]) -> list[tuple[Instant, str]]:
    """Restarts: when a process that began later than the one before first reported a client id.

    Two processes that share an id are reported by turns, which is not a restart (``S2``).
    """
    shown = grouped(
        ((run.client_id, run.start_timestamp), snapshot)
        for run in clients
        if run.source == RUNNING_INFO and run.start_timestamp is not None
        for snapshot, _ in run.times
        if snapshot is not None
    )
    in_time = [(client_id, min(seen), max(seen)) for (client_id, _), seen in sorted(shown.items())]
    return [
        (first_seen, client_id)
        for (before, _, last_seen), (client_id, first_seen, _) in pairwise(in_time)
        if before == client_id and last_seen < first_seen
    ]


def members_that_changed(
    dossier: Dossier,
    in_time: Sequence[ListedIds],
    snapshots: Sequence[Instant],
    brokers_came: Sequence[Instant] = (),
    unsteady: Sequence[tuple[Instant, Instant]] = (),
) -> Iterator[Event]:
    """The deploys and the scalings of a group: what its lists show before and after.

    It was deployed where members were replaced, by others or, as they restart, by themselves; at
    least half of them where their number changed too. Otherwise it was scaled. A process that
    shared an id, and gets one of its own, was restarted. ``brokers_came``: when
    a broker came; it lists one member after the other, at their next heartbeats, which is no event
    of the group. ``unsteady``: the times in which members come and go without end, which is none.

    Worked example: a and b are listed; at 10:00 a is gone, at 10:01 c is there, at 10:02 b is gone,
    at 10:03 d is there. That is one deploy, from 10:00 to 10:03: 2 of 2 members were replaced.

    What one round alone lacks is no change: a broker drops a member whose heartbeats it does not
    get, and lists it again at the next one. An id that is of one process alone, and comes back, is
    that process; and members that the last round alone lacks may come back.
    ``cases/test_deploys`` has these.
    """
    if not in_time:
        return
    group, restarted = dossier.consumer_group, restarts(dossier.clients)
    left = [
        (later.first_seen, one.client_ids - later.client_ids)
        for one, later in pairwise(in_time)
        if not one.client_ids <= later.client_ids
        or not any(came <= later.first_seen <= came + FOLLOW_TIME for came in brokers_came)
    ]
    steps = [*left, *[(at, frozenset({client_id})) for at, client_id in restarted]]
    first_seen = [listed.first_seen for listed in in_time]
    apart = max(_ONE_DEPLOY, _ROUNDS_OF_ONE * usual_gap(np.diff(snapshots)))

    def until_next_round(step: tuple[Instant, frozenset[str]]) -> tuple[Instant, Instant]:
        """The time of a step; to the next round, where it was long in coming."""
        later = snapshots[bisect_right(snapshots, step[0]) :][:1]
        return step[0], later[0] if later and later[0] - step[0] > apart else step[0]

    for one_change in together(steps, until_next_round, apart):
        begins, ends = one_change[0][0], one_change[-1][0]
        listed_before = in_time[max(bisect_left(first_seen, begins) - 1, 0)]
        listed_now = in_time[max(bisect_right(first_seen, ends) - 1, 0)]
        before, now = listed_before.client_ids, listed_now.client_ids
        was, is_ = listed_before.processes, listed_now.processes
        came_back = frozenset().union(*[ids for _, ids in one_change]) & before & now
        again = came_back | {client_id for at, client_id in restarted if begins <= at <= ends}
        without = _without_members(in_time, snapshots, begins, ends)
        if without[0] is None:
            came_back = frozenset(id_ for id_ in came_back if parse_client_id(id_).can_collide)
        gone, new = len(before - now), len(now - before)
        replaced = min(gone, new) + len(came_back)
        if was == is_:  # As many processes with more ids than before, or fewer: some have others.
            replaced = max(replaced, gone, new)
        is_deploy = was == is_ or 2 * replaced >= min(len(before), len(now)) > 0
        is_restless = any(earliest <= ends and begins <= latest for earliest, latest in unsteady)
        is_of_one_round = not is_deploy and now < before and [ends] == [*snapshots[-1:]]
        if is_restless or is_of_one_round or (is_deploy and not replaced):
            continue
        kind, changed = kinds.GROUP_SCALED, None
        template = "group {group} was scaled from {before:,} to {now:,} members"
        if is_deploy:
            kind = kinds.GROUP_DEPLOYED
            template = "{replaced:,} of {before:,} members of {group} were replaced or restarted"
            old_ids, new_ids = (before - now) | again, (now - before) | again
            changed = with_commas(_changed_with(dossier, old_ids, new_ids, begins, ends)) or None
        what = Text(template, group=group, replaced=replaced, before=was, now=is_)
        changes = (
            (new, Text("{number:,} joined", number=new)),
            (gone, Text("{number:,} left", number=gone)),
            (len(came_back), Text("{number:,} came back", number=len(came_back))),
        )
        why = with_commas([text for number, text in changes if number])
        if changed:
            why = joined([why, Text("it changed {changes}", changes=changed)])
        times, about = (begins, ends, ends), ((), frozenset[str]())
        yield Event(kind, group, *times, what, why, *about, *without, changed)


def _without_members(
    in_time: Sequence[ListedIds], snapshots: Sequence[Instant], begins: Instant, ends: Instant
) -> tuple[Instant | None, Instant | None]:
    """The first time within these in which the group had no member: since when, and until when.

    Over snapshots that follow each other for more than 30 s: a broker that has just restarted knows
    no member until their next heartbeat.
    """
    for one, later in zip_longest(in_time, in_time[1:]):
        back_at = later.first_seen if later else None
        last_seen = (
            snapshots[-1] if back_at is None else snapshots[bisect_left(snapshots, back_at) - 1]
        )
        is_long = last_seen - one.first_seen > HEARTBEAT_INTERVAL
        if begins <= one.first_seen <= ends and not one.client_ids and is_long:
            return one.first_seen, back_at
    return None, None


# ---------------------------------------------------------------- what a deploy changed

#: The number of values of one fact that are named.
_MOST_VALUES = 3

#: The templates of what changed, by fact, in their order.
_CHANGED = {
    "language": "the client's language from {before} to {now}",
    "version": "the client's version from {before} to {now}",
    "consume_type": "its consume type from {before} to {now}",
    "chooses_queues": "who chooses its queues from {before} to {now}",
    "client_rebalance": "who divides the queues from {before} to {now}",
    "message_model": "its message model from {before} to {now}",
    "strategy": "its strategy from {before} to {now}",
    "consume_orderly": "whether it consumes in order from {before} to {now}",
    "subscriptions": "its subscription from {before} to {now}",
}
_WORDS: Mapping[tuple[str, Any], Text] = {
    ("chooses_queues", True): Text("the client itself (assign)"),
    ("chooses_queues", False): Text("the rebalance"),
    ("client_rebalance", True): Text("the clients"),
    ("client_rebalance", False): Text("the broker (POP)"),
    ("consume_orderly", True): Text("yes"),
    ("consume_orderly", False): Text("no"),
}
#: The values of facts that come without one: nearly all clients do so.
_USUAL = {"chooses_queues": False, "client_rebalance": True, "message_model": "CLUSTERING"}
_NAMES = [fact.name for fact in MEMBER_FACTS]
_client_id = itemgetter(_NAMES.index("client_id"))


def _changed_with(
    dossier: Dossier, old: Collection[str], new: Collection[str], begins: Instant, ends: Instant
) -> list[Text]:
    """The facts in which the members that came differ from those that a deploy replaced.

    A fact of which nothing is known on one side says nothing (``S14b``), nor does a subscription
    that one side has from another source.
    """
    before = _values(dossier, old, begins, is_before=True)
    now = _values(dossier, new, ends, is_before=False)
    found: list[Text] = []
    for fact, template in _CHANGED.items():
        was, is_ = before.get(fact, ()), now.get(fact, ())
        if was and is_ and not set(is_) <= set(was):
            found.append(Text(template, before=_in_words(fact, was), now=_in_words(fact, is_)))
    return found


def _values(
    dossier: Dossier, client_ids: Collection[str], moment: Instant, *, is_before: bool
) -> dict[str, list[Any]]:
    """The values of each fact that is known of these members, as the latest of each broker's last
    list before the moment, or first one from it on, has them, and their running infos of that time:
    a list that came before a running info has the strategy that was.
    """
    found: dict[str, set[Any]] = {}
    sources: set[str | None] = set()
    nearest = grouped(
        (run.broker, (run.times[place], run.answer))
        for run in dossier.polls
        if run.answer in dossier.list_records
        for place in [bisect_left(run.times, moment) - is_before]
        if 0 <= place < len(run.times)
    )
    lists = sorted(max(answers) if is_before else min(answers) for answers in nearest.values())
    latest = {_client_id(record): id_ for _, id_ in lists for record in dossier.list_records[id_]}
    for list_id in {*latest.values()}:
        for record in dossier.list_records[list_id]:
            if _client_id(record) in client_ids and latest[_client_id(record)] == list_id:
                facts = dict(zip(_NAMES, record, strict=True))
                sources.add(facts["subscription_source"])
                topics = _topics(facts["subscriptions"], dossier.consumer_group)
                facts |= {"subscriptions": (facts["subscription_source"], topics)}
                _add(found, facts)
    for run in dossier.clients:
        times = (time for time, _ in run.times if time is not None)
        is_asked = run.source == RUNNING_INFO and run.client_id in client_ids
        if is_asked and any((time < moment) is is_before for time in times):
            facts = {"consume_type": run.consume_type, "consume_orderly": run.consume_orderly}
            _add(found, facts)
    if len(sources) != 1:
        found.pop("subscriptions", None)
    return {fact: sorted(values, key=repr) for fact, values in found.items()}


def _add(found: dict[str, set[Any]], facts: Mapping[str, Any]) -> None:
    for fact, value in facts.items():
        known = _USUAL.get(fact) if value is None else value
        if fact in _CHANGED and known not in (None, -1):
            found.setdefault(fact, set()).add(known)


def _topics(subscriptions: Iterable[Any] | None, group: str) -> tuple[tuple[str, str], ...]:
    """The topics, each with its filter, but for the group's own retry topic."""
    every = ((topic, expression or "*") for topic, _, expression in subscriptions or ())
    return tuple(sorted(pair for pair in every if not is_own_retry_topic(pair[0], group)))


def _in_words(fact: str, values: Iterable[Any]) -> str:
    def in_words(value: Any) -> Any:
        if fact == "version":
            return version_name(value)
        if fact != "subscriptions":
            return _WORDS.get((fact, value), value)
        topics = [
            t if tags == "*" else Text("{t} ({tags})", t=t, tags=tags) for t, tags in value[1]
        ]
        # A member that has all its queues by assign() subscribes to none.
        return list_of(topics, _MOST_VALUES) or Text("no topic")

    return list_of(list(map(in_words, values)), _MOST_VALUES)
