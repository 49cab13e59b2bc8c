"""dossier, situations -> events: what happened to the cluster, to a topic or to the group itself.

A master that leaves touches every group with queues on its broker, and each of them may have
findings of it. So each group has its own sighting of an event, a row of ``events`` with one group,
and names the event in the findings that began with it. ``merged`` puts the sightings of all groups
together, in any order and in as many steps as there are, to one row for each event.

An event is not a finding: it has no severity, and what it costs is in the findings.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise, zip_longest
from typing import NamedTuple

import numpy as np

from rebalance_core import repairs
from rebalance_core.causes import UNEXPLAINED
from rebalance_core.client_id import parse_client_id
from rebalance_core.english import agreeing, count, joined, list_of, named_broker, with_commas
from rebalance_core.findings import CERTAIN, DUPLICATE, MOST_INT, ORPHANED
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_retry_topic
from rebalance_core.state import RouteBroker
from rebalance_core.texts import Text, for_slots

from ...declared import kinds
from ...declared.dossier import ClientRun, Dossier, ListedIds
from ...declared.instants import FOLLOW_TIME, HEARTBEAT_INTERVAL, SECOND, Instant, together
from ...declared.kinds import event_id
from ...schemas import EVENTS, RUNNING_INFO
from ..arrow_tables import Row
from ..observe.brokers import address_changes, topics_by_broker
from ..observe.deployed import Replaced, changed_with
from ..observe.in_words import clock, fault_in_words, zoned_clock
from ..observe.routes import RouteChange, readable_queues
from ..observe.situations import Period
from ..rules.case import Case
from ..rules.stalls import spans
from ..times.intervals import ONE_IS_MISSING, usual_gap, usual_gap_but_for_one
from .statuses import BY_OFFSETS

#: Routes that differ are not an event before they last so long.
_LEAST_DIFFERENCE: Instant = 60 * SECOND
#: Members that come and go no further apart are one deploy or one scaling: each pod of a rolling
#: restart takes its time ...
_ONE_DEPLOY: Instant = 5 * 60 * SECOND
#: ... and so many usual rounds, where rounds come seldom.
_ROUNDS_OF_ONE = 2
#: The collector was away where so many usual gaps passed without a round, and so much time.
_MISSED_ROUNDS, _LEAST_AWAY = 2.5, 120 * SECOND
#: The least number of groups that lose all their members in one moment as one event. Processes of
#: one application may serve two or three groups, which stop with it: these have their own events.
_LEAST_GROUPS = 5
#: The time between two searches of a broker for members that are silent for too long
#: (``ClientHousekeepingService`` 4.9.4).
_HOUSEKEEPING: Instant = 10 * SECOND
#: The most groups that a headline names: those that lost their members, or did not recover.
_MOST_NAMED = 3
#: A row names so many groups and findings; how many there are it has in numbers.
MOST_GROUPS, MOST_FINDINGS = 1_000, 100

#: The causes and faults that each kind explains however long it lasts; the first kind that does is
#: the event of a finding.
_EXPLAINS: Mapping[str, set[str]] = {
    kinds.NAMESERVERS_DIFFER: {repairs.ROUTE_DIVERGENCE},
    kinds.MASTER_LEFT: {
        repairs.MASTER_AWAY,
        repairs.ROUTE_DIVERGENCE,
        kinds.ROUTE_CHANGED,
        kinds.QUEUES_LEFT_ROUTE,
        kinds.OFFSETS_GONE,
        repairs.BROKER_VIEW_DIVERGENCE,
    },
    kinds.BROKER_ADDRESS_CHANGED: {repairs.BROKER_VIEW_DIVERGENCE, repairs.GROUP_NOT_ON_BROKER},
}
_OF_BROKERS = (kinds.MASTER_LEFT, kinds.BROKER_ADDRESS_CHANGED)
#: The faults of members that come and go without end.
_RESTLESS = (kinds.FLAPPING, kinds.RECONNECTING)
_RANKS = list(kinds.EVENT_KINDS)
_EXPLAINING = tuple(dict.fromkeys((*_EXPLAINS, *kinds.EVENT_KINDS)))
#: The columns that say what an event cost, and the most that each of them holds.
_COSTS = {
    "queues_lost": MOST_INT,
    "messages_lost": 2**63 - 1,
    "queues_read_twice": MOST_INT,
    "groups_not_consuming": MOST_INT,
}


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


def find_events(case: Case, tables: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The group's rows of ``events``; sets ``event_id`` in its findings and faults.

    ``tables``: the group's rows, the findings among them.
    """
    dossier, group = case.dossier, case.dossier.consumer_group
    by_topic, snapshots = case.situations.by_topic, case.snapshots
    away = [*masters_that_left(case)]
    began = [*snapshots[:1], *[event.ends for event in away if event.ends is not None]]
    restless = (row for row in tables["group_faults"] if row["fault"] in _RESTLESS)
    unsteady = [(row["first_seen"], row["last_seen"]) for row in restless]
    members, restarted = case.members_in_time, restarts(dossier.clients)
    found = [*away, *nameservers_that_differ(by_topic), *addresses_that_changed(dossier)]
    for topic, changes in case.route_changes.items():
        if not is_retry_topic(topic):
            found += topic_resized(topic, changes)
    found += (
        _with_changes(each, members, restarted, dossier)
        for each in members_that_changed(group, members, snapshots, restarted, began, unsteady)
    )
    usual = usual_gap_but_for_one(np.diff(snapshots))
    seen = (_with_gap_before(each, snapshots, usual) for each in found)
    rows = merged(_row(dossier.cluster, each, [group]) for each in seen)
    _explain(rows, tables, snapshots)
    # Once more, for what they cost.
    events = merged(rows)
    return [
        bounded(row) if row["kind"] in kinds.OF_ONE_GROUP else _of_columns(row) for row in events
    ]


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


def masters_that_left(case: Case) -> Iterator[Event]:
    """The times in which a broker of the group had no master."""
    topics = topics_by_broker(case.dossier)
    for name, begins, last_seen, ends, unrouted, silent, *_ in case.masters_away:
        what = Text("the master of {broker} left", broker=name)
        why = Text("no route names the master" if unrouted else "the master does not answer")
        if unrouted and silent:
            why = Text("the master does not answer, and no route names it")
        about = (name,), frozenset(topics[name])
        yield Event(kinds.MASTER_LEFT, name, begins, last_seen, ends, what, why, *about)


def nameservers_that_differ(by_topic: Mapping[str, Sequence[Period]]) -> Iterator[Event]:
    """The times in which a nameserver gave another route of a topic than the others gave.

    The route that counts is that of most of them, then the one with most queues: who lacks a broker
    has just been started, or its brokers do not reach it.
    """
    for topic, periods in by_topic.items():
        others = [_that_differ(period.situation.routes) for period in periods]
        for addr in sorted(set().union(*others)):
            for start, end in spans(np.array([addr in other for other in others])):
                ends = periods[end].first_seen if end < len(periods) else None
                yield from _differed(topic, addr, periods[start:end], ends)


def _that_differ(routes: Sequence[tuple[str, Sequence[RouteBroker]]]) -> list[str]:
    """The nameservers whose routes have other readable queues than the one that counts."""
    if len({brokers for _, brokers in routes}) < 2:
        return []
    queues = {addr: readable_queues([(addr, brokers)]) for addr, brokers in routes}
    given = list(queues.values())
    counts = max(given, key=lambda each: (given.count(each), len(each), sorted(each)))
    return [addr for addr, of_addr in queues.items() if of_addr != counts]


def _differed(
    topic: str, addr: str, periods: Sequence[Period], ends: Instant | None
) -> Iterator[Event]:
    begins, last_seen = periods[0].first_seen, periods[-1].last_seen
    if last_seen - begins < _LEAST_DIFFERENCE:
        return  # the others follow within seconds
    routes = periods[-1].situation.routes
    names = {each: {broker.broker_name for broker in brokers} for each, brokers in routes}
    lacks = sorted(set().union(*names.values()) - names[addr])
    what = Text("nameserver {namesrv} gave different routes from the others", namesrv=addr)
    why = Text("its routes have different queues")
    if lacks:
        why = Text("its routes lack {brokers}", brokers=with_commas(lacks))
    about = tuple(lacks), frozenset({topic})
    yield Event(kinds.NAMESERVERS_DIFFER, addr, begins, last_seen, ends, what, why, *about)


def addresses_that_changed(dossier: Dossier) -> Iterator[Event]:
    """Each time that a broker was asked at another address from then on."""
    topics = topics_by_broker(dossier)
    for (name, broker_id), since, before, now, is_switch in address_changes(dossier):
        what = Text("the address of {broker} changed", broker=named_broker(name, broker_id))
        why = Text(
            "its address was {before} and is now {now}: a client that holds the old address finds "
            "the new one with its next route, within 30 s",
            before=before,
            now=now,
        )
        if is_switch:
            what = Text(
                "the master of {broker} changed from {before} to {now}",
                broker=name,
                before=before,
                now=now,
            )
            why = Text(
                "a slave became the master: a client finds it with its next route, within 30 s"
            )
        about = (name,), frozenset(topics[name])
        yield Event(kinds.BROKER_ADDRESS_CHANGED, name, since, since, since, what, why, *about)


# ---------------------------------------------------------------- topics and members


_RESIZED = {
    1: "topic {topic} grew from {before:,} to {now:,} queues",
    0: "queues of topic {topic} went to other brokers",
    -1: "topic {topic} shrank from {before:,} to {now:,} queues",
}


def topic_resized(topic: str, changes: Sequence[RouteChange]) -> Iterator[Event]:
    """The times at which the topic got another number of queues on some broker, or a new broker.

    A broker that leaves the route, or comes back as it was, is another event. The brokers are
    changed one after the other, so what follows within a minute is the same event.
    """
    known: dict[str, int] = dict(changes[0].before) if changes else {}
    steps: list[tuple[Instant, dict[str, int], dict[str, int]]] = []
    for change in changes:
        now = known | dict(sorted({*change.now} - {*change.before}))
        if now != known:
            steps.append((change.first_seen, known, now))
        known = now
    for of_one in together(steps, _time, FOLLOW_TIME):
        (begins, before, _), (ends, _, now) = of_one[0], of_one[-1]
        if before == now:
            continue
        was, is_ = sum(before.values()), sum(now.values())
        what = Text(_RESIZED[(is_ > was) - (is_ < was)], topic=topic, before=was, now=is_)
        names = sorted({name for name, _ in before.items() ^ now.items()})
        numbers = {each: {"before": before.get(each, 0), "now": now.get(each, 0)} for each in names}
        why = with_commas(
            [Text("{broker} {before} to {now}", broker=each, **numbers[each]) for each in names]
        )
        about = tuple(names), frozenset({topic})
        yield Event(kinds.TOPIC_RESIZED, topic, begins, ends, ends, what, why, *about)


def restarts(clients: Iterable[ClientRun]) -> list[tuple[Instant, str]]:
    """Restarts: when a process that began later than the one before first reported a client id.

    Two processes that share an id are reported by turns, which is not a restart.
    """
    shown = grouped(
        ((run.client_id, run.start_timestamp), each)
        for run in clients
        if run.source == RUNNING_INFO and run.start_timestamp is not None
        for each, _ in run.times
        if each is not None
    )
    in_time = [(client_id, min(each), max(each)) for (client_id, _), each in sorted(shown.items())]
    return [
        (since, client_id)
        for (before, _, until), (client_id, since, _) in pairwise(in_time)
        if before == client_id and until < since
    ]


def members_that_changed(
    group: str,
    in_time: Sequence[ListedIds],
    snapshots: Sequence[Instant],
    restarted: Iterable[tuple[Instant, str]] = (),
    began: Sequence[Instant] = (),
    unsteady: Sequence[tuple[Instant, Instant]] = (),
) -> Iterator[Event]:
    """The deploys and the scalings of a group: what its lists show before and after.

    It was deployed where members were replaced, by others or, as they restart, by themselves; at
    least half of them where their number changed too. Otherwise it was scaled. A process that
    shared an id, and gets one of its own, was restarted. ``began``: when
    a broker came; it lists one member after the other, at their next heartbeats, which is no event
    of the group. ``unsteady``: the times in which members come and go without end, which is none.

    Worked example: a and b are listed; at 10:00 a is gone, at 10:01 c is there, at 10:02 b is gone,
    at 10:03 d is there. That is one deploy, from 10:00 to 10:03: 2 of 2 members were replaced.

    What one round alone lacks is no change: a broker drops a member whose heartbeats it does not
    get, and lists it again at the next one. An id that is of one process alone, and comes back, is
    that process; and members that the last round alone lacks may come back.
    """
    if not in_time:
        return
    round_ = usual_gap(np.diff(snapshots))
    left = [
        (later.since, one.client_ids - later.client_ids)
        for one, later in pairwise(in_time)
        if not one.client_ids <= later.client_ids
        or not any(each <= later.since <= each + FOLLOW_TIME for each in began)
    ]
    steps = [*left, *[(since, frozenset({each})) for since, each in restarted]]
    since = [listed.since for listed in in_time]
    apart = max(_ONE_DEPLOY, _ROUNDS_OF_ONE * round_)

    def until_next_round(step: tuple[Instant, frozenset[str]]) -> tuple[Instant, Instant]:
        """The time of a step; to the next round, where it was long in coming."""
        later = snapshots[bisect_right(snapshots, step[0]) :][:1]
        return step[0], later[0] if later and later[0] - step[0] > apart else step[0]

    for of_one in together(steps, until_next_round, apart):
        begins, ends = of_one[0][0], of_one[-1][0]
        listed_before = in_time[max(bisect_left(since, begins) - 1, 0)]
        listed_now = in_time[bisect_right(since, ends) - 1]
        before, now = listed_before.client_ids, listed_now.client_ids
        was, is_ = listed_before.processes, listed_now.processes
        came_back = frozenset().union(*[each for _, each in of_one]) & before & now
        without = without_members(in_time, snapshots, begins, ends)
        if not without:
            came_back = frozenset(each for each in came_back if parse_client_id(each).can_collide)
        gone, new = len(before - now), len(now - before)
        replaced = min(gone, new) + len(came_back)
        if was == is_:  # As many processes with more ids than before, or fewer: some have others.
            replaced = max(replaced, gone, new)
        is_deploy = was == is_ or 2 * replaced >= min(len(before), len(now)) > 0
        is_restless = any(first <= ends and begins <= last for first, last in unsteady)
        is_of_one_round = (
            not is_deploy and now < before and bool(snapshots) and ends == snapshots[-1]
        )
        if is_restless or is_of_one_round or (is_deploy and not replaced):
            continue
        kind = kinds.GROUP_SCALED
        template = "group {group} was scaled from {before:,} to {now:,} members"
        if is_deploy:
            kind = kinds.GROUP_DEPLOYED
            template = "{replaced:,} of {before:,} members of {group} were replaced or restarted"
        what = Text(template, group=group, replaced=replaced, before=was, now=is_)
        changes = (
            (len(now - before), Text("{number:,} joined", number=len(now - before))),
            (len(before - now), Text("{number:,} left", number=len(before - now))),
            (len(came_back), Text("{number:,} came back", number=len(came_back))),
        )
        why = with_commas([text for number, text in changes if number])
        yield Event(kind, group, begins, ends, ends, what, why, (), frozenset(), *without)


def _with_changes(
    event: Event,
    in_time: Sequence[ListedIds],
    restarted: Iterable[tuple[Instant, str]],
    dossier: Dossier,
) -> Event:
    """The event, with what the members changed where it is a deploy."""
    if event.kind != kinds.GROUP_DEPLOYED:
        return event
    since = [listed.since for listed in in_time]
    first, last = bisect_left(since, event.begins), bisect_right(since, event.last_seen)
    before = in_time[max(first - 1, 0)].client_ids
    during = [listed.client_ids for listed in in_time[first:last]]
    now = during[-1] if during else before
    again = {each for at, each in restarted if event.begins <= at <= event.last_seen}
    again |= {each for each in before & now if any(each not in ids for ids in during)}
    deploy = Replaced((before - now) | again, (now - before) | again, event.begins, event.last_seen)
    changes = changed_with(dossier, deploy)
    if not changes:
        return event
    changed = with_commas(changes)
    why = joined([event.evidence, Text("it changed {changes}", changes=changed)])
    return event._replace(evidence=why, changed=changed)


def without_members(
    in_time: Sequence[ListedIds], snapshots: Sequence[Instant], begins: Instant, ends: Instant
) -> tuple[Instant, Instant | None] | tuple[()]:
    """The first time within these in which the group had no member: since when, and until when.

    Over snapshots that follow each other for more than 30 s: a broker that has just restarted knows
    no member until their next heartbeat.
    """
    for one, later in zip_longest(in_time, in_time[1:]):
        until = later.since if later else None
        last = snapshots[-1] if until is None else snapshots[bisect_left(snapshots, until) - 1]
        is_long = last - one.since > HEARTBEAT_INTERVAL
        if begins <= one.since <= ends and not one.client_ids and is_long:
            return one.since, until
    return ()


def _time(step: tuple[Instant, *tuple[object, ...]]) -> tuple[Instant, Instant]:
    return step[0], step[0]


def collector_away(cluster: str, rounds: Iterable[Instant], groups: Sequence[str]) -> Iterator[Row]:
    """The rows of the times in which nobody asked the cluster, from the rounds that there are.

    Worked example: rounds each minute, but none from 10:10 to 10:30. The collector was away from
    10:10 to 10:30. With one round missing it was late.

    >>> minute = 60 * SECOND
    >>> rounds = [n * minute for n in (*range(11), *range(30, 40), 41)]
    >>> [str(row["headline"]) for row in merged(collector_away("c", rounds, ["G"]))]
    ['00:10:00 the collector was away until 00:30:00: 1 group touched']
    """
    in_time = sorted(rounds)
    usual = usual_gap_but_for_one(np.diff(in_time))
    for one, later in pairwise(in_time):
        if later - one >= max(_MISSED_ROUNDS * usual, _LEAST_AWAY):
            template = "a round comes every {seconds:,.0f} s, and none came meanwhile"
            why = Text(template, seconds=usual / SECOND)
            what = Text("the collector was away")
            away = Event(kinds.COLLECTOR_AWAY, cluster, one, one, later, what, why)
            yield _row(cluster, away, groups)


# ---------------------------------------------------------------- rows


def _row(cluster: str, event: Event, groups: Sequence[str]) -> Row:
    return {
        "event_id": event_id(cluster, event.kind, event.subject),
        "cluster": cluster,
        **event._asdict(),
        "groups": sorted(groups),
        **dict.fromkeys(("groups_left_out", *_COSTS), 0),
        "finding_ids": [],
        "groups_lasting": [],
        "recovered_at": None,
        "merged_event_ids": [],
    }


def merged(rows: Iterable[Row]) -> list[Row]:
    """The sightings of all groups as events, in time: the same whatever is merged before what.

    Sightings of one kind and subject are one event where their times touch each other.
    """
    by_subject = grouped(((row["cluster"], row["kind"], row["subject"]), row) for row in rows)
    events = [_event(same) for each in by_subject.values() for same in together(each, _span)]
    return sorted(events, key=_place)


def _place(row: Row) -> tuple[Instant, str, int, str]:
    return row["begins"], row["cluster"], _RANKS.index(row["kind"]), row["subject"]


def _span(row: Row) -> tuple[Instant, Instant]:
    return row["begins"], max(row["last_seen"], row["ends"] or 0)


def _event(rows: Sequence[Row]) -> Row:
    """Merges the rows of one event. A group that was not looked at any more ends nothing, so it is
    over where another group saw it end after the last snapshot that shows it.
    """
    last_seen = max(row["last_seen"] for row in rows)
    ends = max(row["ends"] or 0 for row in rows)
    # The one that saw most, of those that saw it first.
    event = min(
        rows,
        key=lambda row: (row["begins"], -len(row["evidence"]), str(row["evidence"]), row["what"]),
    )
    event = event | {"last_seen": last_seen, "ends": None if ends < last_seen else ends}
    for column, most in _COSTS.items():
        event[column] = min(sum(row[column] for row in rows), most)
    for column in ("groups", "groups_lasting", "broker_names", "finding_ids", "merged_event_ids"):
        event[column] = sorted({name for row in rows for name in row[column]})
    event["topics"] = frozenset().union(*[row.get("topics", ()) for row in rows])
    event["groups_touched"], event["findings"] = len(event["groups"]), len(event["finding_ids"])
    is_over = event["ends"] is not None and event["kind"] != kinds.COLLECTOR_AWAY
    recovered = len(event["groups"]) - len(event["groups_lasting"])
    event["groups_recovered"] = recovered if is_over else 0
    event["recovered_at"] = max(row["recovered_at"] or 0 for row in rows) or None
    return event | {"headline": headline(event)}


def bounded(row: Row) -> Row:
    """The row as it is published: its columns in their order, with the first groups and findings
    by name, and all counts.
    """
    published = row | {
        **{name: row[name][:MOST_GROUPS] for name in ("groups", "groups_lasting")},
        "groups_left_out": len(row["groups"][MOST_GROUPS:]),
        "finding_ids": row["finding_ids"][:MOST_FINDINGS],
    }
    return _of_columns(published)


def _of_columns(row: Row) -> Row:
    """The row without what is no column: the topics of an event, and what came of it."""
    return {name: row[name] for name in EVENTS.schema.names if name in row}


def left_at_once(rows: Iterable[Row], rounds: Sequence[Instant]) -> Iterator[list[Row]]:
    """The groups' own events of one cluster with which so many lost all their members in one moment
    that it is one event; where most did comes first.

    ``rounds``: of the cluster, ascending. A silent member is dropped within 40 s of the first that
    is, and a round asks one group after the other: so a moment is that and a usual round.

    Worked example: rounds each minute. A network is cut at 10:03:50, and of 20 groups 13 have no
    member at 10:04 and the others from 10:05 on: one event. Five groups that end at 10:04, 10:06,
    10:08 and so on are none.
    """
    moment = HEARTBEAT_INTERVAL + _HOUSEKEEPING + usual_gap_but_for_one(np.diff(rounds))
    emptied = (row for row in rows if row["without_members_since"] is not None)
    left = sorted(emptied, key=lambda row: (row["without_members_since"], row["subject"]))
    while len(left) >= _LEAST_GROUPS:
        since = np.array([row["without_members_since"] for row in left], np.int64)
        ends = np.searchsorted(since, since + moment, side="right")
        first = int(np.argmax(ends - np.arange(len(left))))
        at_once = slice(first, int(ends[first]))
        if len({row["subject"] for row in left[at_once]}) < _LEAST_GROUPS:
            return
        yield left[at_once]
        del left[at_once]


def members_left(rows: Sequence[Row], rounds: Sequence[Instant]) -> Row:
    """The event that the groups' own ones are (``left_at_once``)."""
    cluster = rows[0]["cluster"]
    groups = sorted({row["subject"] for row in rows})
    begins, latest = (each(row["without_members_since"] for row in rows) for each in (min, max))
    named = list_of(groups, _MOST_NAMED)
    every = count(len(groups), "group")
    event = {
        "event_id": event_id(cluster, kinds.MEMBERS_LEFT, cluster),
        "kind": kinds.MEMBERS_LEFT,
        "subject": cluster,
        "what": Text("{groups} lost all their members ({names})", groups=every, names=named),
        "evidence": Text(
            "brokers listed members of each of them at {earlier}, and of none at {later}",
            earlier=zoned_clock(rounds[max(bisect_left(rounds, begins) - 1, 0)]),
            later=zoned_clock(latest),
        ),
    }
    seen = []
    for row in rows:
        since, until = row["without_members_since"], row["without_members_until"]
        last = rounds[-1] if until is None else rounds[bisect_left(rounds, until) - 1]
        times = {"begins": since, "last_seen": last, "ends": until}
        seen.append(row | event | times | {"merged_event_ids": [row["event_id"]]})
    return _event(seen) | {"findings": sum(row["findings"] for row in rows)}


_UNTIL = {
    kinds.MEMBERS_LEFT: "{what}, back at {time}",
    kinds.MASTER_LEFT: "{what}, back at {time}",
    kinds.NAMESERVERS_DIFFER: "{what} until {time}",
    kinds.COLLECTOR_AWAY: "{what} until {time}",
}


def headline(row: Row) -> Text:
    """The event in one line: its time, its kind, its cost, and what came of it."""
    what, kind = row["what"], row["kind"]
    if kind in _UNTIL and row["ends"] is not None:
        what = Text(_UNTIL[kind], what=what, time=clock(row["ends"]))
    cost: list[str] = []
    # How many groups lost their members is what happened.
    if kind not in (*kinds.OF_ONE_GROUP, kinds.MEMBERS_LEFT):
        cost.append(count(row["groups_touched"], "group touched", "groups touched"))
    if kind not in kinds.OF_ONE_GROUP and (recovered := row["groups_recovered"]):
        by = clock(max(row["recovered_at"] or 0, row["ends"]))
        cost.append(Text("{number:,} recovered by {time}", number=recovered, time=by))
        if 0 < len(lasting := row["groups_lasting"]) <= _MOST_NAMED:
            cost.append(Text("not {groups}", groups=list_of(lasting)))
    came_of_it = row.get("came_of_it") if kind in kinds.OF_ONE_GROUP else None
    if kind not in kinds.OF_ONE_GROUP and (number := row["groups_not_consuming"]):
        template = "since then {groups} [consumes|consume] nothing"
        came_of_it = agreeing(number, template, groups=count(number, "group"))
    if lost := row["queues_lost"]:
        cost.append(count(lost, "queue lost", "queues lost"))
    elif kind != kinds.COLLECTOR_AWAY and not came_of_it:
        cost.append(Text("no queue lost"))
    if unread := row["messages_lost"]:
        cost.append(count(unread, "message left unread", "messages left unread"))
    if twice := row["queues_read_twice"]:
        cost.append(count(twice, "queue read twice", "queues read twice"))
    if came_of_it:
        cost.append(came_of_it)
    every = reduce(lambda one, more: Text("{cost}, {further}", cost=one, further=more), cost)
    return Text("{time} {what}: {cost}", time=clock(row["begins"]), what=what, cost=every)


#: The words of an event for what began with it; with COLLECTOR_AWAY nothing begins.
IN_SHORT = {
    kinds.MEMBERS_LEFT: "the loss of all members of {groups} at {time}",
    kinds.MASTER_LEFT: "the loss of the master of {subject} at {time}",
    kinds.NAMESERVERS_DIFFER: "the different routes of nameserver {subject} at {time}",
    kinds.BROKER_ADDRESS_CHANGED: "the new address of {subject} at {time}",
    kinds.TOPIC_RESIZED: "the other number of queues of {subject} at {time}",
    kinds.GROUP_SCALED: "the scaling of {subject} at {time}",
    kinds.GROUP_DEPLOYED: "the deploy of {subject} at {time}",
}


def in_short(row: Row) -> Text:
    """The event as what began with it names it.

    >>> in_short({"kind": "GROUP_DEPLOYED", "subject": "G", "begins": 0, "groups": ["G"]})
    'the deploy of G at 00:00:00'
    """
    template = IN_SHORT[row["kind"]]
    groups = count(len(row["groups"]), "group")
    values = {"subject": row["subject"], "groups": groups, "time": clock(row["begins"])}
    return Text(template, **for_slots(template, values))


def event_of(events: Iterable[Row], finding: Row) -> Row | None:
    """The event, of the group's in time, that a finding or fault names: of those that happened to
    one subject the first that was not long over.
    """
    named = (event for event in events if event["event_id"] == finding["event_id"])
    return next((row for row in named if not _is_long_over(row, finding["first_seen"])), None)


def _is_long_over(event: Row, at: Instant) -> bool:
    return event["ends"] is not None and at > event["ends"] + FOLLOW_TIME


# ---------------------------------------------------------------- what it explains


def _explain(
    events: Sequence[Row], tables: Mapping[str, Sequence[Row]], snapshots: Sequence[Instant]
) -> None:
    """Names in each finding the first event that explains it, and counts there what it cost.

    Two things that were both there in the first round did not begin together: what was there then
    is explained by an event of then only where the event brings its cause.
    """
    in_order = sorted(events, key=lambda event: _EXPLAINING.index(event["kind"]))
    lasting: dict[int, list[tuple[str, Row]]] = defaultdict(list)
    queues: dict[tuple[int, str], set[tuple[str, str, int]]] = defaultdict(set)
    for table in kinds.GRADED_TABLES:
        for row in tables[table]:
            kind = row.get("fault") or kinds.QUEUE_FINDINGS[table]
            since = row["first_seen"]
            if kind == kinds.STALLED or kind in BY_OFFSETS:
                # Two polls show it together: it began after the first of them.
                since = next(iter(snapshots[bisect_right(snapshots, since) :][:1]), since)
            were_there = row["first_seen"] <= snapshots[0]
            event = next(
                (
                    each
                    for each in in_order
                    if _explains(each, row, since)
                    and (_brings(each, row) or not were_there or each["begins"] > snapshots[0])
                ),
                None,
            )
            row["event_id"] = event and event["event_id"]
            if event is None:
                continue
            event["finding_ids"].append(row["finding_id"])
            if table == "group_faults" and event["changed"] is not None:
                began = Text(
                    "it began with {event}, which changed {changes}",
                    event=in_short(event),
                    changes=event["changed"],
                )
                row["evidence"] = joined([row["evidence"], began])
            if kind not in (ORPHANED, DUPLICATE, UNEXPLAINED) and _is_lasting(row):
                lasting[id(event)].append((kind, row))
            column = "queues_read_twice" if table == "duplicate_queues" else "queues_lost"
            of_event = queues[id(event), column]
            if "certainty" in row and _is_sure(row):
                of_event.add((row["topic"], row["broker_name"], row["queue_id"]))
            elif row.get("unread_messages") is not None and _is_lasting(row):
                # No route or no member has them any more, and so no finding of a queue.
                numbers = range(row["queues_affected"])
                of_event |= {(row["topic"], row["finding_id"], number) for number in numbers}
                event["messages_lost"] += row["unread_messages"]
            event[column] = len(of_event)
            if not _passed(row):
                event["groups_lasting"] = event["groups"]
            elif later := snapshots[bisect_right(snapshots, row["last_seen"]) :]:
                event["recovered_at"] = max(event["recovered_at"] or 0, later[0])
    for event in events:
        if event["groups_lasting"]:
            event["recovered_at"] = None
        faults = lasting[id(event)]
        event["came_of_it"] = _came_of(faults)
        event["groups_not_consuming"] = int(
            any(kind == kinds.GROUP_NOT_CONSUMING and row["ongoing"] for kind, row in faults)
        )


def _came_of(lasting: Sequence[tuple[str, Row]]) -> Text | None:
    """The worst of the faults and stalls that began with an event and last, in words; None: none
    counts. Queues without an owner have their numbers, whatever explains them.

    >>> stall = {"severity": "CRITICAL", "ongoing": False, "last_seen": 60 * SECOND}
    >>> _came_of([("STALLED", stall), ("STALLED", stall)])
    'then 2 queues stalled until 00:01:00'
    """

    def badness(each: tuple[str, Row]) -> tuple[int, bool, int, str]:
        kind, row = each
        severity = kinds.SEVERITIES.index(row["severity"])
        return severity, row["ongoing"], row.get("queues_affected", 0), kind

    counted = [each for each in lasting if each[1]["severity"] != kinds.INFO]
    if not counted:
        return None
    kind, worst = max(counted, key=badness)
    of_kind = [row for each, row in counted if each == kind]
    what = fault_in_words(kind, len(of_kind))
    if worst["ongoing"]:
        return Text("since then {what:within}", what=what)
    until = max(row["last_seen"] for row in of_kind)
    return Text("then {what:within} until {time}", what=what, time=clock(until))


def _explains(event: Row, finding: Row, since: Instant) -> bool:
    """True if a finding began with the event: while clients followed it, at its beginning or its
    end; a lasting event explains at any time what has the causes that it brings. ``since``: the
    first snapshot by which the finding may have begun.
    """
    kind, begins, ends = event["kind"], event["begins"], event["ends"]
    first_seen = finding["first_seen"]
    if since < begins or _is_long_over(event, first_seen):
        return False
    if kind in kinds.OF_ONE_GROUP:
        return True
    if _brings(event, finding):
        return finding["topic"] in event["topics"]
    if kind in _OF_BROKERS:
        brokers = {finding.get("broker_name"), *finding.get("broker_names", ())}
        is_stall = "owners" in finding
        followed = first_seen <= begins + FOLLOW_TIME or (ends is not None and first_seen >= ends)
        # Each time the queues of all brokers are divided anew.
        is_passing = followed and _passed(finding) and finding["topic"] in event["topics"]
        return is_passing or (event["subject"] in brokers and (is_stall or followed))
    return kind == kinds.TOPIC_RESIZED and finding["topic"] in event["topics"]


def _brings(event: Row, finding: Row) -> bool:
    """True if the finding has a cause, or is a fault, that an event of this kind brings."""
    causes = {*finding.get("causes", ()), finding.get("fault")}
    return not _EXPLAINS.get(event["kind"], set()).isdisjoint(causes)


def _is_lasting(finding: Row) -> bool:
    return bool(finding["persistence"] == kinds.PERSISTENT)


def _passed(finding: Row) -> bool:
    return not _is_lasting(finding) and not finding["ongoing"]


def _is_sure(finding: Row) -> bool:
    """True if the queue was without an owner, or had several, for longer than a change takes; not
    if what was held or what moved refutes it, nor if it is only possible.
    """
    seen = (finding["confirmed"], finding["moved"])
    is_shown = True in seen or (finding["certainty"] == CERTAIN and False not in seen)
    return is_shown and _is_lasting(finding)
