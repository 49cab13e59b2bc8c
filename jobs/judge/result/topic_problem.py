"""rows of a group -> problems: all that is wrong with one of its topics, as one row.

A table has a row per queue and run, far too many for a person. A problem is all that the rows of a
topic show together: what, how bad, how sure, who, since when, why, and what to do. It is judged
here, once; the page, the ticket, the console, the message, the metrics and the gate read it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import Any, NamedTuple

from rebalance_core.descriptions import EXPRESSION_MISMATCH, queue_ranges
from rebalance_core.english import agreeing, count, joined, list_of, within
from rebalance_core.grouping import grouped
from rebalance_core.latent import LATENT
from rebalance_core.message_queue import MessageQueue
from rebalance_core.repairs import GHOST_MEMBER, MASTER_AWAY
from rebalance_core.texts import Text, for_slots

from ...declared import kinds
from ...declared.client_intervals import FOLLOW_TIME
from ...declared.dossier import QueueOffsets
from ...declared.instants import SECOND, Instant
from ...schemas import FAULT_FIELDS
from ...texts.waiting import NOTHING, WaitingMessages
from ..arrow_tables import Row
from ..observe.backlog import backlog_over_time
from ..observe.in_words import fault_in_words
from ..rules.why import CUT_OFF, NOBODY_HOLDS_IT, OTHER_FILTER, OUTAGES
from .events import event_of, in_short
from .statuses import NEW, PERSISTING

#: The ways in which a problem counts: it belongs in the verdict, for it lasts and is not a known
#: issue; known issues explain all of it; nothing is there but what is harmless today; it is there
#: at the end and too new, or too improbable, to count; it passed by itself.
COUNTED, KNOWN, HARMLESS, BEGUN, PASSED = "COUNTED", "KNOWN", "HARMLESS", "BEGUN", "PASSED"

#: The words for how queues are consumed, by kind: for certain, perhaps, and at times.
_HOW = {
    "ORPHANED": (
        Text("consumed by nobody"),
        Text("perhaps consumed by nobody"),
        Text("at times consumed by nobody"),
    ),
    "DUPLICATE": (
        Text("consumed by several"),
        Text("perhaps consumed by several"),
        Text("at times consumed by several"),
    ),
    "STALLED": (Text("stalled"), Text("stalled"), Text("at times stalled")),
}
#: No offsets were polled.
NO_OFFSETS: Mapping[str, Sequence[QueueOffsets]] = {}
_GRADES = ("severity", "persistence", "ongoing", "status", "known_issue")
_TIMES = ("first_seen", "last_seen", "open_since", "nights_open")
#: Columns that rows of one finding share; a table has not all of them.
_ALIKE = (*_GRADES, *_TIMES, "certainty", "causes", "owners", "why")
#: The columns of a fault's episode that are those of a problem's fault.
_OF_EPISODE = ("severity", "persistence", "ongoing", "known_issue", *_TIMES, "share_of_time")


class FoundRows(NamedTuple):
    """Rows of a table of queues that differ in nothing but the queue; or a fault that no queue
    shows, as one row.

    ``shared`` are the columns in which they do not differ.
    """

    kind: str
    shared: Row
    causes: Sequence[str]
    rows: Sequence[Row]

    @property
    def is_severe(self) -> bool:
        """True if it counts: it is there for long, and is likely."""
        return bool(self.shared["severity"] != kinds.INFO)

    @property
    def is_known(self) -> bool:
        """True if a known issue explains it."""
        return self.shared["known_issue"] is not None

    @property
    def is_of_queues(self) -> bool:
        """True if its rows are of queues."""
        return self.kind in _HOW

    @property
    def queues(self) -> list[tuple[str, int]]:
        """Its queues: broker and number."""
        return [(row["broker_name"], row["queue_id"]) for row in self.rows if self.is_of_queues]


def problem_rows(
    tables: Mapping[str, Sequence[Row]],
    ended: Mapping[tuple[str, str], Instant],
    offsets: Mapping[str, Sequence[QueueOffsets]] = NO_OFFSETS,
) -> list[Row]:
    """The rows of ``problems`` of a group, but for its names, from its rows in the other tables.

    Sets ``is_finding`` in those of ``group_faults``. ``ended``: by topic and kind when a problem
    that was over in the run before was last seen. ``offsets``: those of the queues, by topic.
    """
    findings: dict[str, list[FoundRows]] = defaultdict(list)
    shown: dict[str, set[str]] = defaultdict(set)
    for table, kind in kinds.QUEUE_FINDINGS.items():
        for topic, each in _findings(kind, _in_order(tables[table])):
            findings[topic].append(each)
            if each.is_severe:
                is_stall = kind == kinds.STALLED
                shown[topic].update(kinds.SHOWN_BY_STALLS if is_stall else each.causes)
    faults = grouped((row["topic"], row) for row in _in_order(tables["group_faults"]))
    for topic, rows in faults.items():
        for row in rows:
            # Nothing severe is left out: what affects queues and shows on none of them counts
            # itself, as GROUP_NOT_CONSUMING does.
            is_severe = row["severity"] != kinds.INFO and row["fault"] not in shown[topic]
            row["is_finding"] = is_severe or not row["queues_affected"]
            if row["is_finding"]:
                findings[topic].append(FoundRows(row["fault"], row, (row["fault"],), [row]))
    health = {row["topic"]: row for row in tables["group_health"]}
    rows = []
    for topic in dict.fromkeys((*findings, *faults)):
        problem = TopicProblem(topic, findings[topic], shown_faults(faults.get(topic, ())))
        row = problem.row(ended, tables.get("events", ())) | _of_health(health.get(topic))
        rows.append(row | {"backlog_over_time": _over_time(row, offsets.get(topic, ()))})
    return rows


def _over_time(problem: Row, offsets: Iterable[QueueOffsets]) -> list[Row]:
    """The column ``backlog_over_time``."""
    if problem["standing"] != COUNTED or problem["backlog"] is None:
        return []
    points = [{"at": at, "messages": messages} for at, messages in backlog_over_time(offsets)]
    # Of queues whose last offsets are old it is not known what waits at the end.
    return [*points[:-1], points[-1] | {"messages": problem["backlog"]}] if points else []


def _in_order(rows: Iterable[Row]) -> list[Row]:
    """The rows in one order, whatever process made them: of two alike the first leads."""
    return sorted(rows, key=lambda row: (row["first_seen"], row["finding_id"], row["last_seen"]))


def _of_health(health: Row | None) -> Row:
    """The minutes and the waiting messages of a topic."""
    waiting = NOTHING if health is None else WaitingMessages.of_row(health)
    minutes = ("orphan_queue_minutes", "duplicate_queue_minutes")
    return waiting.columns | {name: health[name] if health else 0.0 for name in minutes}


def _findings(kind: str, rows: Iterable[Row]) -> Iterator[tuple[str, FoundRows]]:
    """The findings of a table of queues, each with its topic."""

    def shared(row: Row) -> tuple[Any, ...]:
        values = (row.get(name) for name in _ALIKE)
        return row["topic"], *(
            tuple(value) if isinstance(value, list) else value for value in values
        )

    for (topic, *values), alike in grouped((shared(row), row) for row in rows).items():
        of_all = dict(zip(_ALIKE, values, strict=True))
        yield topic, FoundRows(kind, of_all, of_all["causes"] or (), alike)


def shown_faults(rows: Iterable[Row]) -> list[Row]:
    """The faults of a topic, each with its worst run: ``problems.faults``.

    One per client id for faults about one client id (``kinds.OF_ONE_CLIENT``), one for every other
    fault. One run that nobody knows of makes the fault one that counts.
    """

    def key(row: Row) -> tuple[str, tuple[str, ...]]:
        fault = row["fault"]
        return fault, tuple(row["client_ids"]) if fault in kinds.OF_ONE_CLIENT else ()

    shown = []
    for runs in grouped((key(row), row) for row in rows).values():
        worst = max(runs, key=lambda each: (_weight(each), each["last_seen"]))
        unknown = any(run["known_issue"] is None for run in runs)
        opened = [run["open_since"] for run in runs if run["open_since"] is not None]
        fault = {name: worst[name] for name in FAULT_FIELDS if name in worst}
        shown.append(
            fault
            | {
                "runs": len(runs),
                "known_issue": None if unknown else worst["known_issue"],
                "open_since": min(opened, default=None),
                "nights_open": max(run["nights_open"] or 0 for run in runs) or None,
            }
        )
    return shown


def _weight(fault: Row) -> tuple[bool, bool, int, int]:
    """The larger, the more it explains: whether it lasts and goes on, its severity, queues times
    seconds.
    """
    seconds = (fault["last_seen"] - fault["first_seen"]) // SECOND + 1
    badness = kinds.SEVERITIES.index(fault["severity"])
    return _lasts(fault), fault["ongoing"], badness, fault["queues_affected"] * seconds


def _lasts(fault: Row) -> bool:
    return kinds.lasts(fault["fault"], fault["persistence"])


def _is_latent(fault: Row) -> bool:
    """True if members differ, and no queue shows it as long as they are so many."""
    costs_nothing = fault["severity"] == kinds.INFO and not fault["queues_affected"]
    return fault["fault"] in LATENT and _lasts(fault) and costs_nothing


#: The faults that hold queues up. What the stall itself says (``why``) shows that it is by some of
#: them; None: that it is about the owner, or of MASTER_AWAY the broker, of the queue. Any other one
#: is beside the stall: who keeps reconnecting reads its queues all the same.
_HOLDS_UP: Mapping[str, str | None] = {
    **dict.fromkeys((kinds.FROZEN_PROCESS, kinds.CLIENT_NOT_ANSWERING, GHOST_MEMBER, MASTER_AWAY)),
    EXPRESSION_MISMATCH: OTHER_FILTER,
    kinds.QUEUE_NOT_HELD: NOBODY_HOLDS_IT,
    **dict.fromkeys(OUTAGES, CUT_OFF),
}


def explains(fault: Row, found: FoundRows) -> bool:
    """True if the fault is the reason for the finding, at its time; a stall names no cause."""
    kind, of = fault["fault"], found.shared
    if fault["last_seen"] < of["first_seen"] or of["last_seen"] < fault["first_seen"]:
        return False
    if found.kind != kinds.STALLED:
        return kind in found.causes
    if kind not in _HOLDS_UP or fault["severity"] == kinds.INFO:
        return False
    if why := _HOLDS_UP[kind]:
        return bool(of["why"] == why)
    if kind == MASTER_AWAY:
        return {name for name, _ in found.queues} <= {*fault["broker_names"]}
    return not {*of["owners"]}.isdisjoint(fault["client_ids"])


def first_what_explains(findings: Iterable[FoundRows], faults: Sequence[Row]) -> list[Row]:
    """The faults of a topic, what explains most of what counts first.

    Stalls that no fault explains are one themselves: their rows have who owns the queues, and why
    they do not move.
    """
    severe = [finding for finding in findings if finding.is_severe]
    explaining = [row for row in faults if any(explains(row, found) for found in severe)]
    ids = set(map(id, explaining))
    stalls = grouped(
        (each.shared["why"], each)
        for each in severe
        if each.kind == kinds.STALLED and not any(explains(fault, each) for fault in explaining)
    )
    first = [*explaining, *(_stalled(why, of_why) for why, of_why in stalls.items())]
    others = [row for row in faults if id(row) not in ids]
    by_weight = partial(sorted, key=_weight, reverse=True)
    return [*by_weight(first), *by_weight(others)]


#: Remedies, by two flags: the owners of the queues are known, and so is what holds them up.
_REMEDIES_OF_STALLS = {
    (True, True): "fix what holds up these queues at {these_clients}: {why}",
    (True, False): "take a thread dump of {these_clients} (jstack), and find out why these queues "
    "do not move",
    (False, True): "find in the clients' logs which of them had messages of these queues last, and "
    "fix what holds them up: {why}",
    (False, False): "find in the clients' logs which of them should read these queues, and why "
    "they do not move",
}
#: The most owners of stalled queues that are named.
_MOST_OWNERS = 3


def _stalled(why: str | None, stalls: Sequence[FoundRows]) -> Row:
    """Stalls as a fault: the queues, who owns them, where that is known, and ``why`` they do not
    move.
    """
    longest = max(
        (stall.shared for stall in stalls), key=lambda each: each["last_seen"] - each["first_seen"]
    )
    queues = {
        MessageQueue(row["topic"], row["broker_name"], row["queue_id"])
        for stall in stalls
        for row in stall.rows
    }
    owners = sorted({client_id for stall in stalls for client_id in stall.shared["owners"]})
    event_ids = {row["event_id"] for stall in stalls for row in stall.rows}
    is_held_up = bool(why) and why != NOBODY_HOLDS_IT
    remedy = _REMEDIES_OF_STALLS[bool(owners), is_held_up]
    values = {"these_clients": list_of(owners, _MOST_OWNERS), "why": why or ""}
    still = agreeing(len(queues), "{queues} [does|do] not move", queues=queue_ranges(queues))
    return {
        **dict.fromkeys(FAULT_FIELDS),
        **{name: longest.get(name) for name in _OF_EPISODE},
        "fault": kinds.STALLED,
        "runs": len(stalls),
        "evidence": joined([still, why] if why else [still]),
        "remedy": Text(remedy, **for_slots(remedy, values)),
        "queues_affected": len(queues),
        "findings_cleared": 0,
        "findings_left": 0,
        "client_ids": owners,
        "broker_names": sorted({queue.broker_name for queue in queues}),
        "event_id": event_ids.pop() if len(event_ids) == 1 else None,
    }


@dataclass(frozen=True)
class TopicProblem:
    """A problem of one topic, as it is judged: its findings, and its faults, each once."""

    topic: str
    findings: Sequence[FoundRows]
    given: Sequence[Row] = field(repr=False)

    @cached_property
    def faults(self) -> list[Row]:
        """The faults; the one that explains most of it first."""
        return first_what_explains(self.findings, self.given)

    # ------------------------------------------------------------------ how bad

    @cached_property
    def graded(self) -> list[FoundRows]:
        """The findings that decide how bad it is: of queues, and faults bad by themselves."""
        return [finding for finding in self.findings if finding.is_of_queues or finding.is_severe]

    @cached_property
    def counted(self) -> list[FoundRows]:
        """The findings that no known issue explains; all where there are no others."""
        return [found for found in self.graded if not found.is_known] or self.graded

    @cached_property
    def leading(self) -> list[FoundRows]:
        """The findings that it is graded and dated by: of what is severe what is still there, else
        the worst of what is over; where nothing is severe, all.
        """
        severe = [found for found in self.counted if found.is_severe]
        if there := [found for found in severe if found.shared["ongoing"]]:
            return there
        worst = kinds.worst(found.shared["severity"] for found in severe)
        return [found for found in severe if found.shared["severity"] == worst] or self.counted

    @cached_property
    def over(self) -> list[FoundRows]:
        """The severe findings that are over beside others, but for queues that are back."""
        severe = [found for found in self.counted if found.is_severe]
        ended = [found for found in severe if not found.shared["ongoing"]]
        if len(ended) == len(severe):
            return []
        there = {(found.kind, queue) for found in self.leading for queue in found.queues}
        worst = kinds.SEVERITIES.index(self.severity)
        return [
            found
            for found in ended
            if kinds.SEVERITIES.index(found.shared["severity"]) > worst
            or not found.queues
            or not there.issuperset((found.kind, queue) for queue in found.queues)
        ]

    @cached_property
    def severity(self) -> str:
        """The severity of what is still there, else of the worst that ended."""
        return kinds.worst(found.shared["severity"] for found in self.leading)

    @cached_property
    def worst_severity(self) -> str:
        """The worst of all of it."""
        return kinds.worst(found.shared["severity"] for found in self.counted)

    @cached_property
    def ongoing(self) -> bool:
        """True if it is there at the end; where nothing of it is graded, if a fault is."""
        if self.leading:
            return any(found.shared["ongoing"] for found in self.leading)
        return any(fault["ongoing"] for fault in self.faults)

    @cached_property
    def standing(self) -> str:
        """The way in which it counts."""
        if self.graded and all(found.is_known for found in self.graded):
            return KNOWN
        if self.worst_severity != kinds.INFO:
            return COUNTED
        if self._is_harmless:
            return HARMLESS
        return BEGUN if self.ongoing else PASSED

    @property
    def _is_harmless(self) -> bool:
        """True if nothing is there at the end but members that differ and cost no queue."""
        there = [fault for fault in self.faults if fault["ongoing"]]
        is_graded = any(found.shared["ongoing"] for found in self.graded)
        return bool(there) and not is_graded and all(map(_is_latent, there))

    @cached_property
    def certainty(self) -> str:
        """The certainty of what it is graded by, the worst of it."""
        worst = [found for found in self.leading if found.shared["severity"] == self.severity]
        return "CERTAIN" if any(map(_is_certain, worst)) else "POSSIBLE"

    # ------------------------------------------------------------------ what

    def _queues(self, findings: Iterable[FoundRows], *, lasting: bool) -> dict[str, int]:
        """The number of queues by kind, of the findings that last or that do not."""
        queues: dict[str, set[tuple[str, int]]] = defaultdict(set)
        for finding in findings:
            is_lasting = finding.shared["persistence"] == kinds.PERSISTENT
            if finding.is_of_queues and is_lasting is lasting:
                queues[finding.kind].update(finding.queues)
        return {kind: len(of_kind) for kind, of_kind in queues.items()}

    @cached_property
    def _now(self) -> Sequence[FoundRows]:
        """The findings that the words are about: without what is over, where more is there."""
        ids = set(map(id, self.over))
        return [finding for finding in self.findings if id(finding) not in ids]

    @property
    def what(self) -> str:
        """The problem in a few words; at last what of it is over."""
        if not self.over:
            return self._what
        queues = self._queues(self.over, lasting=True)
        was = self._consumed(queues, self.over) if queues else titles(e.kind for e in self.over)
        named = [found for found in self.over if found.is_of_queues] if queues else self.over
        ends = max(found.shared["last_seen"] for found in named)
        return Text("{now}; over since {at:clock}: {was}", now=self._what, at=ends, was=was)

    @property
    def _what(self) -> str:
        if lasting := self._queues(self._now, lasting=True):
            return self._consumed(lasting, self._now)
        faults = [fault for fault in self.faults if _lasts(fault)]
        if self.ongoing:
            faults = [fault for fault in faults if fault["ongoing"]] or faults
        passing = self._queues(self._now, lasting=False)
        if passing and not faults:
            template = (
                "{queues}, not seen for long yet" if self.ongoing else "{queues}, for a moment"
            )
            return Text(template, queues=self._consumed(passing, self._now))
        return titles([fault["fault"] for fault in faults or self.faults])

    def _consumed(self, queues: Mapping[str, int], findings: Iterable[FoundRows]) -> str:
        """The numbers of queues by how they are consumed: of the first kind and up to two more."""
        of_kinds = grouped((finding.kind, finding) for finding in findings)
        how = {kind: _HOW[kind][_doubt(of_kinds.get(kind, ()))] for kind in queues}
        (kind, number), *others = queues.items()
        first = Text("{queues} {how}", queues=count(number, "queue"), how=how[kind])
        rest = [Text("{number:,} {how}", number=n, how=how[kind]) for kind, n in others]
        if len(rest) == 2:
            second, third = rest
            return Text("{first}, {second} and {third}", first=first, second=second, third=third)
        return Text("{first} and {second}", first=first, second=rest[0]) if rest else first

    # ------------------------------------------------------------------ since when, why, who

    @cached_property
    def _times(self) -> list[Row]:
        """The rows that its times are of: what it is graded by, and what explains that."""
        faults = [
            fault
            for fault in self.faults
            if fault["severity"] != kinds.INFO and any(explains(fault, of) for of in self.leading)
        ]
        of_leading = [found.shared for found in self.leading if found.is_severe]
        return [*of_leading, *faults] or self._shown

    @property
    def _shown(self) -> list[Row]:
        """All of it."""
        return [*(finding.shared for finding in self.findings), *self.faults]

    @cached_property
    def there(self) -> list[Row]:
        """The faults that last, or are too new to count: what passed by itself asks for nothing."""
        lasting = kinds.PERSISTENT
        return [
            fault for fault in self.faults if fault["persistence"] == lasting or fault["ongoing"]
        ]

    @property
    def remedy(self) -> str:
        """The remedy of its main cause, unless it passed by itself; where stalls count, and another
        fault that is beside them, that of both, each for what it mends.
        """
        if not self.there:
            return ""
        first = self.there[0]
        counted = (
            row
            for row in self.there
            if row["severity"] != kinds.INFO and row["ongoing"] >= first["ongoing"]
        )
        is_stall = first["fault"] == kinds.STALLED
        beside = (row for row in counted if (row["fault"] == kinds.STALLED) != is_stall)
        of_both = [
            Text(
                "{what:within}: {remedy}",
                what=fault_in_words(row["fault"], row["queues_affected"]),
                remedy=row["remedy"],
            )
            for row in (first, *islice(beside, 1))
        ]
        of_first: str = first["remedy"]
        return joined(of_both) if len(of_both) > 1 else of_first

    def _began_with(self, events: Sequence[Row]) -> Text | None:
        """The event with which it began, in words: that of what began first, or while clients
        followed it, of what its severity is of. What is open since an earlier run began with none
        of this one.
        """
        every = [*self._times, *(row for each in self.leading for row in each.rows)]
        worst = max(kinds.SEVERITIES.index(row["severity"]) for row in every)
        rows = [row for row in every if kinds.SEVERITIES.index(row["severity"]) == worst]
        first = min(row.get("open_since") or row["first_seen"] for row in rows)
        named = (row for row in rows if row["first_seen"] <= first + FOLLOW_TIME)
        found = (event_of(events, row) for row in named if row.get("event_id") is not None)
        event = next(filter(None, found), None)
        return None if event is None else in_short(event)

    @property
    def _client_ids(self) -> list[str]:
        """The client ids that it is about: where it is still there, of a fault that is, too."""
        faults = self.there or self.faults
        if self.ongoing:
            faults = [fault for fault in faults if fault["ongoing"]]
        return next((fault["client_ids"] for fault in faults if fault["client_ids"]), [])

    def row(self, ended: Mapping[tuple[str, str], Instant], events: Sequence[Row]) -> Row:
        """The row of ``problems``, but for what it has of ``group_health``."""
        lasting, passing = (self._queues(self.findings, lasting=each) for each in (True, False))
        why = self.there if lasting else self.there or self.faults
        kind = why[0]["fault"] if why else next(iter({**lasting, **passing}))
        is_counted = self.standing == COUNTED
        statuses = {found.shared["status"] for found in self.graded} - {None}
        opened = [each["open_since"] for each in self._shown if each["open_since"] is not None]
        event_ids = {row["event_id"] for finding in self.findings for row in finding.rows}
        event_ids |= {fault["event_id"] for fault in self.faults}
        worst = {
            row["finding_id"]
            for found in self.counted
            if is_counted and found.shared["severity"] == self.worst_severity
            for row in found.rows
        }
        return {
            "topic": self.topic,
            "standing": self.standing,
            "severity": self.severity,
            "worst_severity": self.worst_severity,
            "ongoing": self.ongoing,
            "certainty": self.certainty,
            "kind": kind,
            "is_explained": bool(why),
            "what": self.what,
            "first_seen": min(time["first_seen"] for time in self._times),
            "last_seen": max(time["last_seen"] for time in self._times),
            "queues_by_kind": [
                {"kind": each, "lasting": lasting.get(each, 0), "passing": passing.get(each, 0)}
                for each in dict.fromkeys((*lasting, *passing))
            ],
            "worst_findings": len(worst),
            "client_ids": self._client_ids,
            "remedy": self.remedy,
            "faults": self.faults,
            "known_issues": sorted(
                {found.shared["known_issue"] for found in self.graded if found.is_known}
            ),
            "statuses": sorted(statuses),
            "open_since": min(opened, default=None),
            "nights_open": max((each["nights_open"] or 0 for each in self._shown), default=0)
            or None,
            "returned": ended.get((self.topic, kind))
            if is_counted and NEW in statuses and PERSISTING not in statuses
            else None,
            "event_ids": sorted(event_ids - {None}),
            "began_with": self._began_with(events),
        }


def _is_certain(finding: FoundRows) -> bool:
    """True if it was seen, as a stall is, or is so under every view."""
    return bool(finding.shared.get("certainty") != "POSSIBLE")


def _doubt(findings: Collection[FoundRows]) -> int:
    """0: one of them is certain, or it is only by an assumed strategy in doubt which queue it is;
    1: each may be so all the time; 2: each is so at times.
    """
    rows = [row for finding in findings for row in finding.rows]
    always = [row["strategy_source"] for row in rows if row.get("probability") == 1.0]
    if any(map(_is_certain, findings)) or "assumed" in always:
        return 0
    return 1 if rows and len(always) == len(rows) else 2


def titles(faults: Iterable[str]) -> str:
    """The titles of some kinds, in one sentence.

    >>> titles(["CONFIG_GAP", "STACKED"])
    'A queue is in no CONFIG list and shared client id'
    """
    first, *others = (kinds.kind_of(fault).title for fault in dict.fromkeys(faults))
    return list_of([first, *map(within, others)])
