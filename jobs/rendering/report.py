"""The report of a published run, as values: everything that the page shows, and no markup."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from jobs.incomplete import sentences_of
from jobs.kinds import QUEUE_FINDINGS, SEVERITIES, Kind, worst
from jobs.languages.rows import TEXTS, with_texts
from jobs.rendering.drawings import NARROW, Drawing, colour, draw_allocation, draw_timeline
from jobs.rendering.pictures import (
    AfterRepair,
    States,
    after_repair,
    client_of,
    named_taker,
    number_clients,
    timeline,
)
from jobs.reports.problems import Problem, ShownFault, find_problems
from jobs.reports.tables import Place, Tables, by_place, place_of
from jobs.schemas import GROUP_HEALTH
from jobs.storage import Published
from rebalance_core import MessageQueue
from rebalance_core.descriptions import queue_ranges
from rebalance_core.english import count, list_of, noun
from rebalance_core.texts import Text

#: How many rows the lists of the page have at most; the tables have them all.
MOST_LISTED = 50
#: How many groups the table of health has at most, worst first.
MOST_GROUPS = 1_000
_MOST_FINDING_LINES = 12
_MOST_OWNERS = 40


@dataclass(frozen=True)
class FindingLine:
    """Findings of a topic that differ in nothing but the queue.

    ``share_of_time``: for how much of its time it was there; below 1 where there are gaps.
    """

    kind: str
    severity: str
    queues: str
    first_seen: datetime
    last_seen: datetime
    share_of_time: float | None
    ongoing: bool
    persistence: str
    certainty: str
    status: str
    causes: tuple[str, ...]
    backlog: int | None
    known_issue: str | None


@dataclass(frozen=True)
class Owner:
    """An owner in the legend of a picture."""

    number: int
    css: str
    client_id: str


@dataclass(frozen=True)
class Moved:
    """Queues that the repair moves alike."""

    queues: str
    before: str
    after: str


@dataclass(frozen=True)
class Detail:
    """A problem with its findings and pictures; ``retry`` is that of the group's retry topic."""

    anchor: str
    problem: Problem
    findings: tuple[FindingLine, ...]
    findings_left_out: int
    timeline: Drawing | None
    narrow_timeline: Drawing | None
    lanes_left_out: int
    owners: tuple[Owner, ...]
    owners_left_out: int
    repair: AfterRepair | None
    allocations: tuple[Drawing, ...]
    moved: tuple[Moved, ...]
    retry: Detail | None = None

    @property
    def moved_queues(self) -> int:
        """How many queues the repair moves."""
        return self.repair.moved if self.repair else 0


@dataclass(frozen=True)
class OfKind:
    """The problems that have one main cause, worst first.

    ``remedies`` are the different ones, each with how many of the groups it is for.
    """

    kind: Kind
    problems: tuple[Problem, ...]
    remedies: tuple[tuple[str, int], ...]

    @property
    def anchor(self) -> str:
        """Where the page shows it."""
        return f"cause-{self.kind.name.lower()}"

    @property
    def severity(self) -> str:
        """The worst of its problems."""
        return worst(problem.severity for problem in self.problems)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len({problem.place[:2] for problem in self.problems})

    @property
    def ongoing(self) -> int:
        """How many of the problems are there at the end."""
        return sum(problem.ongoing for problem in self.problems)

    @property
    def remedy(self) -> str:
        """The remedy, where it is the same for all."""
        return self.remedies[0][0] if len(self.remedies) == 1 else ""


@dataclass(frozen=True)
class Verdict:
    """Whether anything is wrong: CRITICAL, WARNING, INFO (it passed) or OK, and in words."""

    level: str
    sentence: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Former:
    """Findings of the run before that are not there any more, of one place and kind."""

    place: Place
    status: str
    kind: str
    queues: str
    severity: str
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True)
class Unreadable:
    """Queues of a topic that are written and that no consumer can read."""

    place: Place
    queues: str
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True)
class GroupHealth:
    """A group over all its topics: sums of queues and minutes, and the worst of the rest."""

    cluster: str
    consumer_group: str
    severity: str
    topics: int
    audited: int
    members: int
    processes: int
    queues: int
    idle_clients: int
    imbalance: int
    orphan_minutes: float
    duplicate_minutes: float
    completeness: float

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts the worst first."""
        return (
            -("", *SEVERITIES).index(self.severity),
            self.audited == self.topics,
            -(self.orphan_minutes + self.duplicate_minutes),
            self.completeness,
            self.cluster,
            self.consumer_group,
        )


@dataclass(frozen=True)
class NotAudited:
    """A topic that was not recomputed at the end, and why."""

    place: Place
    coverage: str
    reason: str


@dataclass(frozen=True)
class Coverage:
    """What was audited, and how complete the dumps of it are."""

    audited: int
    not_audited: tuple[NotAudited, ...]
    by_coverage: tuple[tuple[str, int], ...]
    partly: int
    incomplete: tuple[tuple[Place, float], ...]
    assumed: int


@dataclass(frozen=True)
class Quarantine:
    """The lines that were not understood, by reason."""

    lines_in: int | None
    lines: int
    reasons: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True)
class Report:
    """All that the page shows."""

    published: Published
    verdict: Verdict
    problems: tuple[Problem, ...]
    retries: Mapping[Place, Problem]
    details: tuple[Detail, ...]
    former: tuple[Former, ...]
    unreadable: tuple[Unreadable, ...]
    drifting: int
    health: tuple[GroupHealth, ...]
    coverage: Coverage
    quarantine: Quarantine

    @property
    def counted(self) -> list[Problem]:
        """The problems that last and are no known issues."""
        return [problem for problem in self.problems if problem.counts]

    @property
    def known_issues(self) -> list[Problem]:
        """The problems that known issues explain."""
        return [problem for problem in self.problems if problem.is_known]

    @property
    def passed(self) -> list[Problem]:
        """The problems that passed by themselves."""
        return [problem for problem in self.problems if problem.has_passed]

    @property
    def begun(self) -> list[Problem]:
        """The problems that are there at the end and do not count: too new, or too improbable."""
        return [problem for problem in self.problems if problem.has_begun]

    def of_severity(self, severity: str) -> list[Problem]:
        """The problems that count, of one severity."""
        return [problem for problem in self.counted if problem.severity == severity]

    def with_status(self, status: str) -> list[Problem]:
        """The problems with findings that are NEW, or PERSISTING."""
        return [problem for problem in self.problems if status in problem.statuses]

    def detail_of(self, problem: Problem) -> Detail | None:
        """The details of a problem, where the page has room for them."""
        return next((each for each in self.details if each.problem is problem), None)

    def heads(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems without those of retry topics that are shown with another of their group."""
        with_another = {id(retry) for retry in self.retries.values()}
        return [problem for problem in problems if id(problem) not in with_another]

    def retry_of(self, problem: Problem) -> Problem | None:
        """What is wrong with the retry topic of the group, where it is shown with this problem."""
        return self.retries.get(problem.place)

    @property
    def causes(self) -> list[OfKind]:
        """The problems that count, by main cause; that of the worst problem first."""
        by_kind: dict[Kind, list[Problem]] = defaultdict(list)
        for problem in self.heads(self.counted):
            by_kind[problem.main_kind].append(problem)
        return [_of_kind(kind, problems) for kind, problems in by_kind.items()]

    @property
    def anchors(self) -> dict[tuple[str, str], str]:
        """By cluster and group where the page shows most of it: its worst card, else its health."""
        found = {
            (row.cluster, row.consumer_group): f"group-{number}"
            for number, row in enumerate(self.health[:MOST_GROUPS], 1)
        }
        found |= {each.problem.place[:2]: each.anchor for each in reversed(self.details)}
        return found

    @property
    def missing(self) -> list[Text]:
        """What is not in the input."""
        return sentences_of(self.published.summary)

    @property
    def assumptions(self) -> Mapping[str, int]:
        """How many groups rest on an assumption, and on which."""
        found: Mapping[str, int] = self.published.summary["assumptions"]
        return found

    @property
    def groups_too_wide(self) -> int:
        """The groups whose rounds of questions take too long to compare what brokers list."""
        number: int = self.published.summary["rounds"]["groups_too_wide"]
        return number

    @property
    def clusters(self) -> list[str]:
        """The clusters that it is about."""
        return sorted({row.cluster for row in self.health})

    @property
    def kinds(self) -> list[str]:
        """The kinds of findings and faults that occur."""
        found = {k for p in self.problems for k in (*p.lasting, *p.passing)}
        found |= {fault.fault for problem in self.problems for fault in problem.faults}
        found |= {"UNREADABLE"} if self.unreadable else set()
        return sorted(found)


def build_report(published: Published, tables: Tables, top: int) -> Report:
    """The report of a run; the first ``top`` problems with their findings and pictures."""
    problems = tuple(find_problems(tables))
    retries = _retries(problems)
    joined = {id(retry) for retry in retries.values()}
    shown = [problem for problem in problems if id(problem) not in joined][:top]
    columns = list(dict.fromkeys([*GROUP_HEALTH.schema.names, TEXTS]))
    rows = [with_texts(row) for row in tables.read("group_health", columns).to_pylist()]
    coverage = _coverage(rows)
    unreadable = _unreadable(tables)
    return Report(
        published=published,
        verdict=_verdict(problems, coverage, unreadable),
        problems=problems,
        retries=retries,
        details=_details(tables, shown, retries),
        former=_former(tables),
        unreadable=unreadable,
        drifting=_drifting(tables),
        health=_health(rows),
        coverage=coverage,
        quarantine=_quarantine(published, tables),
    )


def _retries(problems: Sequence[Problem]) -> dict[Place, Problem]:
    """By place the problem of the group's retry topic, which is shown with the worst of the group.

    Only with one that is as much of a problem: what counts is not hidden behind what passed.
    """
    heads: dict[tuple[Any, ...], Place] = {}
    for problem in problems:
        if not problem.is_of_retry_topic:
            heads.setdefault(_standing(problem), problem.place)
    return {
        heads[_standing(problem)]: problem
        for problem in problems
        if problem.is_of_retry_topic and _standing(problem) in heads
    }


def _standing(problem: Problem) -> tuple[Any, ...]:
    """The group of a problem, and the list of the page that it belongs to."""
    begun = problem.ongoing and not problem.counts
    return *problem.place[:2], problem.is_known, problem.counts, begun


def _of_kind(kind: Kind, problems: Sequence[Problem]) -> OfKind:
    remedies: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for problem in problems:
        if problem.remedy:
            remedies[problem.remedy].add((problem.place.cluster, problem.place.consumer_group))
    commonest_first = sorted(remedies.items(), key=lambda each: -len(each[1]))
    counted = tuple((remedy, len(groups)) for remedy, groups in commonest_first)
    return OfKind(kind, tuple(problems), counted)


def _verdict(
    problems: Sequence[Problem], coverage: Coverage, unreadable: Sequence[Unreadable]
) -> Verdict:
    counted = [problem for problem in problems if problem.counts]
    passed = [problem for problem in problems if problem.has_passed]
    begun = [problem for problem in problems if problem.has_begun]
    remarks = []
    if counted:
        level = worst(problem.severity for problem in counted)
        groups = len({problem.place[:2] for problem in counted})
        ongoing = sum(problem.ongoing for problem in counted)
        critical = sum(problem.severity == "CRITICAL" for problem in counted)
        faults = Text(
            "{topics} of {groups} {have} lasting faults",
            topics=_topics(counted),
            groups=count(groups, "group"),
            have=noun(len(counted), "has", "have"),
        )
        if critical == len(counted) > 1:
            sentence = Text("{faults}, all critical.", faults=faults)
        elif critical:
            sentence = Text("{faults}, {critical:,} critical.", faults=faults, critical=critical)
        else:
            sentence = Text("{faults}.", faults=faults)
        are = noun(ongoing, "is", "are")
        remarks.append(
            Text("{number:,} {are} still there in the last snapshot.", number=ongoing, are=are)
            if ongoing
            else Text("None of them is there in the last snapshot any more.")
        )
    elif passed or begun:
        level, sentence = "INFO", Text("Nothing lasting was found.")
    else:
        level, sentence = "OK", Text("Nothing was found.")
    if passed:
        topics = _topics(passed)
        remarks.append(
            Text("In {topics} something passed by itself (a deploy, a restart).", topics=topics)
        )
    if begun:
        remarks.append(
            Text(
                "In {topics} something is there at the end that is too new or too improbable to "
                "count: the next run will show.",
                topics=_topics(begun),
            )
        )
    if marked := [problem for problem in problems if problem.is_known]:
        remarks.append(Text("{topics} with a known issue: not counted.", topics=_topics(marked)))
    if unreadable:
        topics = _topics(unreadable)
        remarks.append(
            Text("{topics} with queues that are written and cannot be read.", topics=topics)
        )
    if coverage.not_audited:
        remarks.append(
            Text(
                "{topics} {were} not audited: the coverage says why.",
                topics=_topics(coverage.not_audited),
                were=noun(len(coverage.not_audited), "was", "were"),
            )
        )
    return Verdict(level, sentence, tuple(remarks))


def _topics(every: Sequence[Any]) -> Text:
    return count(len(every), "topic")


# ---------------------------------------------------------------- details

_FINDING = (
    "broker_name",
    "queue_id",
    "first_seen",
    "last_seen",
    "severity",
    "persistence",
    "ongoing",
    "status",
    "certainty",
    "causes",
    "backlog",
    "known_issue",
    "share_of_time",
)
_FAULT = (
    "fault",
    "first_seen",
    "last_seen",
    "evidence",
    "moves",
    "findings_cleared",
    "findings_left",
)
_STATE_RUN = ("state_id", "first_seen", "last_seen", "snapshots")
_ALLOCATION = ("state_id", "client_id", "strategy", "processes", "view_weight", "queues")
_REASSIGNMENT = (
    "changed_at",
    "clients_joined",
    "clients_left",
    "queues_before",
    "queues",
    "queues_moved",
)


def _details(
    tables: Tables, problems: Sequence[Problem], retries: Mapping[Place, Problem]
) -> tuple[Detail, ...]:
    shown = [*problems, *(retries[each.place] for each in problems if each.place in retries)]
    places = [problem.place for problem in shown]
    findings = {k: by_place(tables, name, _FINDING, places) for name, k in QUEUE_FINDINGS.items()}
    faults = by_place(tables, "group_faults", _FAULT, places)
    runs = by_place(tables, "state_runs", _STATE_RUN, places)
    allocations = by_place(tables, "allocations", _ALLOCATION, places)
    reassignments = by_place(tables, "reassignments", _REASSIGNMENT, places)

    def detail(problem: Problem, anchor: str) -> Detail:
        return _detail(
            anchor,
            problem,
            {kind: rows[problem.place] for kind, rows in findings.items()},
            faults[problem.place],
            States(runs[problem.place], allocations[problem.place]),
            reassignments[problem.place],
        )

    details = []
    for number, problem in enumerate(problems, 1):
        of_topic = detail(problem, f"problem-{number}")
        retry = retries.get(problem.place)
        if retry is not None:
            of_topic = replace(of_topic, retry=detail(retry, f"problem-{number}-retry"))
        details.append(of_topic)
    return tuple(details)


def _detail(
    anchor: str,
    problem: Problem,
    findings: dict[str, list[dict[str, Any]]],
    faults: list[dict[str, Any]],
    states: States,
    reassignments: list[dict[str, Any]],
) -> Detail:
    lines = _finding_lines(problem.place.topic, findings)
    seen = timeline(states, findings, faults, reassignments)
    repair = _best_repair(states, problem.faults, faults)
    numbers = number_clients(
        {*(seen.client_ids if seen else ()), *(repair.takers if repair else ())} & states.client_ids
    )
    owners = [Owner(number, colour(number), name) for name, number in numbers.items()]
    return Detail(
        anchor=anchor,
        problem=problem,
        findings=tuple(lines[:_MOST_FINDING_LINES]),
        findings_left_out=max(len(lines) - _MOST_FINDING_LINES, 0),
        timeline=draw_timeline(seen, numbers) if seen and seen.lanes else None,
        narrow_timeline=draw_timeline(seen, numbers, NARROW) if seen and seen.lanes else None,
        lanes_left_out=seen.lanes_left_out if seen else 0,
        owners=tuple(owners[:_MOST_OWNERS]),
        owners_left_out=max(len(owners) - _MOST_OWNERS, 0),
        repair=repair,
        allocations=(
            draw_allocation(repair, numbers, repaired=False),
            draw_allocation(repair, numbers, repaired=True),
        )
        if repair
        else (),
        moved=_moved(problem.place.topic, repair) if repair else (),
    )


def _best_repair(
    states: States, shown: Sequence[ShownFault], faults: Sequence[dict[str, Any]]
) -> AfterRepair | None:
    """The repair of the fault that explains most, of those that move anything."""
    for fault in shown:
        for row in faults:
            if (row["fault"], row["last_seen"]) == (fault.fault, fault.last_seen):
                repair = after_repair(states, row)
                if repair is not None:
                    return repair
    return None


def _ranges(topic: str, rows: Sequence[dict[str, Any]]) -> str:
    return queue_ranges(MessageQueue(topic, row["broker_name"], row["queue_id"]) for row in rows)


def _finding_lines(topic: str, findings: dict[str, list[dict[str, Any]]]) -> list[FindingLine]:
    alike: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for kind, rows in findings.items():
        for row in rows:
            shown = (name for name in _FINDING[2:] if name not in ("causes", "backlog"))
            key = (kind, tuple(row["causes"] or ()), *(row[name] for name in shown))
            alike[key].append(row)

    def rank(rows: list[dict[str, Any]]) -> tuple[Any, ...]:
        return -SEVERITIES.index(rows[0]["severity"]), not rows[0]["ongoing"], rows[0]["first_seen"]

    lines = []
    for key, rows in sorted(alike.items(), key=lambda each: rank(each[1])):
        row = rows[0]
        backlogs = [each["backlog"] for each in rows if each["backlog"] is not None]
        lines.append(
            FindingLine(
                kind=key[0],
                severity=row["severity"],
                queues=_ranges(topic, rows),
                first_seen=row["first_seen"],
                last_seen=row["last_seen"],
                share_of_time=row["share_of_time"],
                ongoing=row["ongoing"],
                persistence=row["persistence"],
                certainty=row["certainty"] or "",
                status=row["status"] or "",
                causes=key[1],
                backlog=sum(backlogs) if backlogs else None,
                known_issue=row["known_issue"],
            )
        )
    return lines


def _moved(topic: str, repair: AfterRepair) -> tuple[Moved, ...]:
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[MessageQueue]] = defaultdict(list)
    for queue, before in repair.now.items():
        if before != repair.then[queue]:
            alike[before, repair.then[queue]].append(MessageQueue(topic, *queue))
    return tuple(
        Moved(queue_ranges(queues), _names(before), _names(after))
        for (before, after), queues in sorted(alike.items(), key=lambda each: min(each[1]))
    )


def _names(takers: Sequence[str]) -> str:
    if not takers:
        return Text("nobody")
    named = [(named_taker(each, client_of(each)), n) for each, n in Counter(takers).items()]
    return list_of(
        [Text("{client} x {number}", client=name, number=n) if n > 1 else name for name, n in named]
    )


# ---------------------------------------------------------------- the other sections


def _former(tables: Tables) -> tuple[Former, ...]:
    columns = ("broker_name", "queue_id", "kind", "status", "first_seen", "last_seen", "severity")
    alike: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for place, rows in by_place(tables, "former_findings", columns).items():
        for row in rows:
            alike[place, row["status"], row["kind"], row["severity"]].append(row)
    return tuple(
        Former(place, status, kind, _ranges(place.topic, rows), severity, *_extent(rows))
        for (place, status, kind, severity), rows in sorted(alike.items())
    )


def _unreadable(tables: Tables) -> tuple[Unreadable, ...]:
    columns = ("broker_name", "queue_id", "first_seen", "last_seen")
    return tuple(
        Unreadable(place, _ranges(place.topic, rows), *_extent(rows))
        for place, rows in sorted(by_place(tables, "unreadable_queues", columns).items())
    )


def _extent(rows: Sequence[dict[str, Any]]) -> tuple[datetime, datetime]:
    return min(row["first_seen"] for row in rows), max(row["last_seen"] for row in rows)


def _drifting(tables: Tables) -> int:
    """How many topics have lasting drift that no change of route or state explains."""
    places = by_place(tables, "allocation_drift", ("persistence", "attributed_to"))
    return sum(
        any(
            row["persistence"] == "PERSISTENT"
            and row["attributed_to"] not in ("ROUTE_CHANGED", "STATE_CHANGED")
            for row in rows
        )
        for rows in places.values()
    )


_AUDITED = "AUDITED"
_NO_GROUP = "NO_GROUP"


def _health(rows: Sequence[dict[str, Any]]) -> tuple[GroupHealth, ...]:
    by_group: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["coverage"] != _NO_GROUP:
            by_group[row["cluster"], row["consumer_group"]].append(row)
    health = (
        GroupHealth(
            cluster=cluster,
            consumer_group=group,
            severity=worst((row["worst_severity"] for row in topics if row["worst_severity"]), ""),
            topics=len(topics),
            audited=sum(row["coverage"] == _AUDITED for row in topics),
            members=max(row["members"] for row in topics),
            processes=max(row["processes"] for row in topics),
            queues=sum(row["queues"] for row in topics),
            idle_clients=max(row["idle_clients"] for row in topics),
            imbalance=max(row["imbalance"] for row in topics),
            orphan_minutes=sum(row["orphan_queue_minutes"] for row in topics),
            duplicate_minutes=sum(row["duplicate_queue_minutes"] for row in topics),
            completeness=min(row["completeness"] for row in topics),
        )
        for (cluster, group), topics in by_group.items()
    )
    return tuple(sorted(health, key=lambda each: each.rank))


def _coverage(rows: Sequence[dict[str, Any]]) -> Coverage:
    audited = [row for row in rows if row["coverage"] == _AUDITED]
    others = [
        NotAudited(place_of(row), row["coverage"], row["reason"])
        for row in rows
        if row["coverage"] != _AUDITED
    ]
    incomplete = [
        (place_of(row), row["completeness"]) for row in audited if row["completeness"] < 1
    ]
    return Coverage(
        audited=len(audited),
        not_audited=tuple(sorted(others, key=lambda each: (each.coverage, each.place))),
        by_coverage=tuple(sorted(Counter(each.coverage for each in others).items())),
        partly=sum(row["audited_snapshots"] < row["snapshots"] for row in audited),
        incomplete=tuple(sorted(incomplete, key=lambda each: (each[1], each[0]))),
        assumed=sum(row["strategy_source"] == "assumed" for row in audited),
    )


def _quarantine(published: Published, tables: Tables) -> Quarantine:
    rows = tables.read("quarantine", ["reason", "file"])
    ingested = published.summary["inputs"]["ingested"]
    reasons: list[tuple[str, int, str]] = []
    if rows.num_rows:
        by_reason = rows.append_column("lines", pa.array([1] * rows.num_rows)).group_by("reason")
        totals = by_reason.aggregate([("lines", "sum"), ("file", "min")]).to_pylist()
        reasons = [(row["reason"], row["lines_sum"], row["file_min"]) for row in totals]
    return Quarantine(
        lines_in=ingested["lines"] if ingested else None,
        lines=ingested["quarantined"] if ingested else rows.num_rows,
        reasons=tuple(sorted(reasons, key=lambda each: (-each[1], each[0]))[:20]),
    )
