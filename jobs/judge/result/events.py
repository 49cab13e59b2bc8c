"""events, findings -> rows of ``events``, and which event each finding began with.

A group's sighting of an event is a row of ``events`` with one group. ``merged`` puts the sightings
of all groups together, in any order and in as many steps as there are, to one row for each event.

An event is not a finding: it has no severity, and what it costs is in the findings.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, pairwise

import numpy as np

from rebalance_core import repairs
from rebalance_core.causes import UNEXPLAINED
from rebalance_core.english import agreeing, count, joined, list_of
from rebalance_core.findings import CERTAIN, DUPLICATE, MOST_INT, ORPHANED
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text, for_slots

from ...declared import kinds
from ...declared.instants import FOLLOW_TIME, HEARTBEAT_INTERVAL, SECOND, Instant, together
from ...declared.kinds import event_id
from ...schemas import EVENTS
from ..observe.arrow_tables import Row
from ..observe.in_words import clock, fault_in_words, zoned_clock
from ..observe.what_happened import Event, find_events
from ..rules.case import Case
from ..times import usual_gap_but_for_one
from .rows import BY_OFFSETS

#: The collector was away where so many usual gaps passed without a round, and so much time.
_MISSED_ROUNDS, _LEAST_AWAY = 2.5, 120 * SECOND
#: The least number of groups that lose all their members in one moment as one event. Processes of
#: one application may serve two or three groups, which stop with it: these have their own events
#: (``judge/test_events``).
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


def with_events(case: Case, tables: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """The group's rows with those of ``events``; each finding and fault names the first event that
    explains it, and the events have what they cost.
    """
    dossier, snapshots = case.dossier, case.snapshots
    restless = (row for row in tables["group_faults"] if row["fault"] in _RESTLESS)
    seen = find_events(
        dossier,
        case.situations.by_topic,
        case.masters_away,
        case.route_changes,
        case.members_in_time,
        snapshots,
        [(row["first_seen"], row["last_seen"]) for row in restless],
    )
    events = merged(_row(dossier.cluster, event, [dossier.consumer_group]) for event in seen)
    in_order = sorted(events, key=lambda event: _EXPLAINING.index(event["kind"]))
    consequences: dict[int, list[tuple[str, Row]]] = defaultdict(list)
    explained = dict(tables)
    for table in kinds.GRADED_TABLES:
        kind = kinds.QUEUE_FINDINGS.get(table)
        explained[table] = []
        for row in tables[table]:
            event = _event_that_explains(row, kind or row["fault"], in_order, snapshots)
            named = row | {"event_id": event and event["event_id"]}
            if event is not None:
                consequences[id(event)].append((kind or row["fault"], named))
                if kind is None and event["changed"] is not None:
                    template = "it began with {event}, which changed {changes}"
                    more = Text(template, event=in_short(event), changes=event["changed"])
                    named["evidence"] = joined([row["evidence"], more])
            explained[table].append(named)
    # Merged once more, for what they cost.
    rows = merged(_with_costs(event, consequences[id(event)], snapshots) for event in events)
    whole = kinds.OF_ONE_GROUP
    explained["events"] = [(bounded if row["kind"] in whole else _as_columns)(row) for row in rows]
    return explained


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

    def place(row: Row) -> tuple[Instant, str, int, str]:
        return row["begins"], row["cluster"], _RANKS.index(row["kind"]), row["subject"]

    def time_of(row: Row) -> tuple[Instant, Instant]:
        return row["begins"], max(row["last_seen"], row["ends"] or 0)

    by_subject = grouped(((row["cluster"], row["kind"], row["subject"]), row) for row in rows)
    events = chain.from_iterable(together(own, time_of) for own in by_subject.values())
    return sorted(map(_event, events), key=place)


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
    return _as_columns(published)


def _as_columns(row: Row) -> Row:
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
        begins = np.array([row["without_members_since"] for row in left], np.int64)
        ends = np.searchsorted(begins, begins + moment, side="right")
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
    earliest, latest = (edge(row["without_members_since"] for row in rows) for edge in (min, max))
    named = list_of(groups, _MOST_NAMED)
    every = count(len(groups), "group")
    event = {
        "event_id": event_id(cluster, kinds.MEMBERS_LEFT, cluster),
        "kind": kinds.MEMBERS_LEFT,
        "subject": cluster,
        "what": Text("{groups} lost all their members ({names})", groups=every, names=named),
        "evidence": Text(
            "brokers listed members of each of them at {earlier}, and of none at {later}",
            earlier=zoned_clock(rounds[max(bisect_left(rounds, earliest) - 1, 0)]),
            later=zoned_clock(latest),
        ),
    }
    seen = []
    for row in rows:
        begins, ends = row["without_members_since"], row["without_members_until"]
        last_seen = rounds[-1] if ends is None else rounds[bisect_left(rounds, ends) - 1]
        times = {"begins": begins, "last_seen": last_seen, "ends": ends}
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


def _event_that_explains(
    finding: Row, kind: str, events: Iterable[Row], snapshots: Sequence[Instant]
) -> Row | None:
    """The first event, as they explain, with which a finding or fault began.

    Two things that were both there in the first round did not begin together: what was there then
    is explained by an event of then only where the event brings its cause.
    """
    first_seen = finding_begins = finding["first_seen"]
    if kind == kinds.STALLED or kind in BY_OFFSETS:
        # Two polls show it together: it began after the first of them.
        finding_begins = next(
            iter(snapshots[bisect_right(snapshots, first_seen) :][:1]), first_seen
        )
    for event in events:
        may_begin = first_seen > snapshots[0] or event["begins"] > snapshots[0]
        if _explains(event, finding, finding_begins) and (may_begin or _brings(event, finding)):
            return event
    return None


def _with_costs(
    event: Row, consequences: Iterable[tuple[str, Row]], snapshots: Sequence[Instant]
) -> Row:
    """The event with what came of it; ``consequences``: the findings and faults that began with it,
    each with its kind.
    """
    lost: set[tuple[str, str, int]] = set()
    twice: set[tuple[str, str, int]] = set()
    lasting: list[tuple[str, Row]] = []
    messages, recovered, is_over = 0, [0], True
    for kind, row in consequences:
        if kind not in (ORPHANED, DUPLICATE, UNEXPLAINED) and _is_lasting(row):
            lasting.append((kind, row))
        if "certainty" in row and _is_sure(row):
            queues_of_kind = twice if kind == DUPLICATE else lost
            queues_of_kind.add((row["topic"], row["broker_name"], row["queue_id"]))
        elif row.get("unread_messages") is not None and _is_lasting(row):
            # No route or no member has them any more, and so no finding of a queue.
            numbers = range(row["queues_affected"])
            lost |= {(row["topic"], row["finding_id"], number) for number in numbers}
            messages += row["unread_messages"]
        is_over &= _passed(row)
        recovered += snapshots[bisect_right(snapshots, row["last_seen"]) :][:1]
    return event | {
        "finding_ids": [row["finding_id"] for _, row in consequences],
        "queues_lost": len(lost),
        "queues_read_twice": len(twice),
        "messages_lost": messages,
        "groups_lasting": [] if is_over else event["groups"],
        "recovered_at": (max(recovered) or None) if is_over else None,
        "came_of_it": _came_of(lasting),
        "groups_not_consuming": int(
            any(kind == kinds.GROUP_NOT_CONSUMING and row["ongoing"] for kind, row in lasting)
        ),
    }


def _came_of(lasting: Sequence[tuple[str, Row]]) -> Text | None:
    """The worst of the faults and stalls that began with an event and last, in words; None: none
    counts. Queues without an owner have their numbers, whatever explains them.

    >>> stall = {"severity": "CRITICAL", "ongoing": False, "last_seen": 60 * SECOND}
    >>> _came_of([("STALLED", stall), ("STALLED", stall)])
    'then 2 queues stalled until 00:01:00'
    """

    counted = [
        (
            kinds.SEVERITIES.index(row["severity"]),
            row["ongoing"],
            row.get("queues_affected", 0),
            kind,
        )
        for kind, row in lasting
        if row["severity"] != kinds.INFO
    ]
    if not counted:
        return None
    _, is_ongoing, _, kind = max(counted)
    queues_of_kind = [row for of, row in lasting if of == kind and row["severity"] != kinds.INFO]
    what = fault_in_words(kind, len(queues_of_kind))
    if is_ongoing:
        return Text("since then {what:within}", what=what)
    last_seen = max(row["last_seen"] for row in queues_of_kind)
    return Text("then {what:within} until {time}", what=what, time=clock(last_seen))


def _explains(event: Row, finding: Row, finding_begins: Instant) -> bool:
    """True if a finding began with the event: while clients followed it, at its beginning or its
    end; a lasting event explains at any time what has the causes that it brings.
    ``finding_begins``: the first snapshot by which the finding may have begun.
    """
    kind, begins, ends = event["kind"], event["begins"], event["ends"]
    first_seen = finding["first_seen"]
    if finding_begins < begins or _is_long_over(event, first_seen):
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
