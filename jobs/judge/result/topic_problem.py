"""rows of a group -> problems: all that is wrong with one of its topics, as one row.

A table has a row per queue and run, far too many for a person. A problem is all that the rows of a
topic show together: what, how bad, how sure, who, since when, why, and what to do. It is judged
here, once; the page, the ticket, the console, the message, the metrics and the gate read it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from rebalance_core.english import count, joined, list_of, within
from rebalance_core.grouping import grouped
from rebalance_core.texts import Text

from ...declared import kinds
from ...declared.dossier import QueueOffsets
from ...declared.instants import FOLLOW_TIME, Instant
from ...texts.waiting import NOTHING, WaitingMessages
from ..observe.arrow_tables import Row
from ..observe.backlog import backlog_over_time
from ..observe.in_words import fault_in_words
from .events import event_of, in_short
from .problem_faults import (
    FoundRows,
    explains,
    findings_of_queues,
    first_what_explains,
    is_latent,
    lasts,
    shown_faults,
)
from .rows import NEW, PERSISTING, is_finding, shown_on_queues

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


def problem_rows(
    tables: Mapping[str, Sequence[Row]],
    ended: Mapping[tuple[str, str], Instant],
    offsets: Mapping[str, Sequence[QueueOffsets]] = NO_OFFSETS,
) -> list[Row]:
    """The rows of ``problems`` of a group, but for its names, from its rows in the other tables.

    ``ended``: by topic and kind when a problem
    that was over in the run before was last seen. ``offsets``: those of the queues, by topic.
    """
    findings: dict[str, list[FoundRows]] = defaultdict(list)
    for table, kind in kinds.QUEUE_FINDINGS.items():
        for topic, found in findings_of_queues(kind, _in_order(tables[table])):
            findings[topic].append(found)
    shown = shown_on_queues(tables)
    faults = grouped((row["topic"], row) for row in _in_order(tables["group_faults"]))
    for topic, rows in faults.items():
        findings[topic] += [
            FoundRows(row["fault"], row, (row["fault"],), [row])
            for row in rows
            if is_finding(row, shown[topic])
        ]
    health = {row["topic"]: row for row in tables["group_health"]}
    rows = []
    for topic in dict.fromkeys((*findings, *faults)):
        given = first_what_explains(findings[topic], shown_faults(faults.get(topic, ())))
        problem = TopicProblem(topic, findings[topic], given)
        row = problem.row(ended, tables.get("events", ())) | _health_columns(health.get(topic))
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


def _health_columns(health: Row | None) -> Row:
    """The minutes and the waiting messages of a topic."""
    waiting = NOTHING if health is None else WaitingMessages.of_row(health)
    minutes = ("orphan_queue_minutes", "duplicate_queue_minutes")
    return waiting.columns | {name: health[name] if health else 0.0 for name in minutes}


@dataclass(frozen=True)
class TopicProblem:
    """A problem of one topic, as it is judged: its findings, and its faults, each once."""

    topic: str
    findings: Sequence[FoundRows]
    #: The one that explains most of it comes first.
    faults: Sequence[Row]

    # ------------------------------------------------------------------ how bad

    @cached_property
    def graded(self) -> list[FoundRows]:
        """The findings that decide how bad it is: of queues, and faults bad by themselves."""
        return [found for found in self.findings if found.is_of_queues or found.is_severe]

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
        passed = [found for found in severe if not found.shared["ongoing"]]
        there = {(found.kind, queue) for found in self.leading for queue in found.queues}
        worst = kinds.SEVERITIES.index(self.severity)
        return [
            found
            for found in (passed if len(passed) < len(severe) else ())
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
        rows = [found.shared for found in self.leading] or self.faults
        return any(row["ongoing"] for row in rows)

    @cached_property
    def standing(self) -> str:
        """The way in which it counts. It is harmless where nothing is there at the end but members
        that differ and cost no queue.
        """
        if self.graded and all(found.is_known for found in self.graded):
            return KNOWN
        if self.worst_severity != kinds.INFO:
            return COUNTED
        there = [fault for fault in self.faults if fault["ongoing"]]
        is_graded = any(found.shared["ongoing"] for found in self.graded)
        if there and not is_graded and all(map(is_latent, there)):
            return HARMLESS
        return BEGUN if self.ongoing else PASSED

    # ------------------------------------------------------------------ what

    @property
    def what(self) -> str:
        """The problem in a few words; at last what of it is over."""
        over = self.over
        now = self._what([found for found in self.findings if not any(found is it for it in over)])
        if not over:
            return now
        queues = _queues(over, lasting=True)
        was = _consumed(queues, over) if queues else titles(found.kind for found in over)
        named = [found for found in over if found.is_of_queues] if queues else over
        ends = max(found.shared["last_seen"] for found in named)
        return Text("{now}; over since {at:clock}: {was}", now=now, at=ends, was=was)

    def _what(self, now: Sequence[FoundRows]) -> str:
        if lasting := _queues(now, lasting=True):
            return _consumed(lasting, now)
        faults = [fault for fault in self.faults if lasts(fault)]
        if self.ongoing:
            faults = [fault for fault in faults if fault["ongoing"]] or faults
        passing = _queues(now, lasting=False)
        if passing and not faults:
            template = (
                "{queues}, not seen for long yet" if self.ongoing else "{queues}, for a moment"
            )
            return Text(template, queues=_consumed(passing, now))
        return titles([fault["fault"] for fault in faults or self.faults])

    # ------------------------------------------------------------------ since when, why, who

    @cached_property
    def _times(self) -> list[Row]:
        """The rows that its times are of: what it is graded by and what explains that; else all."""
        faults = [
            fault
            for fault in self.faults
            if fault["severity"] != kinds.INFO and any(explains(fault, of) for of in self.leading)
        ]
        leading_rows = [found.shared for found in self.leading if found.is_severe]
        every = [*(found.shared for found in self.findings), *self.faults]
        return [*leading_rows, *faults] or every

    @property
    def _last_seen(self) -> Instant:
        """The last snapshot of it. What it cost is over when that is, also where the fault that
        explains it goes on (members that differ, and take every queue once again).
        """
        severe = [found.shared for found in self.leading if found.is_severe]
        rows = severe if severe and not self.ongoing else self._times
        last_seen: Instant = max(row["last_seen"] for row in rows)
        return last_seen

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
        beside = (
            row
            for row in self.there
            if row["severity"] != kinds.INFO and row["ongoing"] >= first["ongoing"]
            if (row["fault"] == kinds.STALLED) != (first["fault"] == kinds.STALLED)
        )
        remedies = [
            Text(
                "{what:within}: {remedy}",
                what=fault_in_words(row["fault"], row["queues_affected"]),
                remedy=row["remedy"],
            )
            for row in (first, *islice(beside, 1))
        ]
        first_remedy: str = first["remedy"]
        return joined(remedies) if len(remedies) > 1 else first_remedy

    def _began_with(self, events: Sequence[Row]) -> Text | None:
        """The event with which it began, in words: that of what began first, or while clients
        followed it, of what its severity is of. What is open since an earlier run began with none
        of this one.
        """
        every = [*self._times, *(row for found in self.leading for row in found.rows)]
        worst = kinds.worst(row["severity"] for row in every)
        rows = [row for row in every if row["severity"] == worst]
        begins = min(row.get("open_since") or row["first_seen"] for row in rows)
        named = (row for row in rows if row["first_seen"] <= begins + FOLLOW_TIME)
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
        lasting, passing = (_queues(self.findings, lasting=it) for it in (True, False))
        why = self.there if lasting else self.there or self.faults
        kind = why[0]["fault"] if why else next(iter({**lasting, **passing}))
        is_counted = self.standing == COUNTED
        statuses = {found.shared["status"] for found in self.graded} - {None}
        is_new = is_counted and NEW in statuses and PERSISTING not in statuses
        as_severe = [found for found in self.leading if found.shared["severity"] == self.severity]
        every = [*(found.shared for found in self.findings), *self.faults]
        event_ids = {row["event_id"] for found in self.findings for row in found.rows}
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
            "certainty": "CERTAIN" if any(map(_is_certain, as_severe)) else "POSSIBLE",
            "kind": kind,
            "is_explained": bool(why),
            "what": self.what,
            "first_seen": min(row["first_seen"] for row in self._times),
            "last_seen": self._last_seen,
            "queues_by_kind": [
                {"kind": it, "lasting": lasting.get(it, 0), "passing": passing.get(it, 0)}
                for it in dict.fromkeys((*lasting, *passing))
            ],
            "worst_findings": len(worst),
            "client_ids": self._client_ids,
            "remedy": self.remedy,
            "faults": self.faults,
            "known_issues": sorted(
                {found.shared["known_issue"] for found in self.graded if found.is_known}
            ),
            "statuses": sorted(statuses),
            "open_since": min(
                (row["open_since"] for row in every if row["open_since"]), default=None
            ),
            "nights_open": max((row["nights_open"] or 0 for row in every), default=0) or None,
            "returned": ended.get((self.topic, kind)) if is_new else None,
            "event_ids": sorted(event_ids - {None}),
            "began_with": self._began_with(events),
        }


def _queues(findings: Iterable[FoundRows], *, lasting: bool) -> dict[str, int]:
    """The number of queues by kind, of the findings that last or that do not."""
    queues: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for found in findings:
        if found.is_of_queues and (found.shared["persistence"] == kinds.PERSISTENT) is lasting:
            queues[found.kind].update(found.queues)
    return {kind: len(queues_of_kind) for kind, queues_of_kind in queues.items()}


def _consumed(queues: Mapping[str, int], findings: Iterable[FoundRows]) -> str:
    """The numbers of queues by how they are consumed: of the first kind and up to two more."""
    by_kind = grouped((found.kind, found) for found in findings)
    how = {kind: _HOW[kind][_doubt(by_kind.get(kind, ()))] for kind in queues}
    (kind, number), *others = queues.items()
    first = Text("{queues} {how}", queues=count(number, "queue"), how=how[kind])
    rest = [Text("{number:,} {how}", number=n, how=how[kind]) for kind, n in others]
    if len(rest) == 2:
        second, third = rest
        return Text("{first}, {second} and {third}", first=first, second=second, third=third)
    return Text("{first} and {second}", first=first, second=rest[0]) if rest else first


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
