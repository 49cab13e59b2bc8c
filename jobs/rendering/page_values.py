"""The report of a published run, as values: everything that the page shows, and no markup.

It is built from the published tables alone: whoever has these can make the page again. What finds
the problems of a large fleet is put together in Arrow; rows are read for the topics alone that have
pictures. Problems are grouped by their main cause, for what repairs one group repairs the next.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

from rebalance_core.findings import AUDITED
from rebalance_core.grouping import grouped

from ..config.choices import INCOMPLETE
from ..declared.coverage import was_audited
from ..declared.kinds import INFO, NO_GROUP, NOT_AUDITED, SEVERITIES, Kind, worst
from ..languages.translated_rows import with_texts
from ..reports.problems import (
    PassedProblems,
    Problem,
    Standing,
    heads_of,
    passed_by_event,
    read_problems,
    remedies_of,
)
from ..reports.run_findings import (
    LeadingEvent,
    PlaceFinding,
    leading_events,
    place_of_finding,
    read_findings,
)
from ..reports.tables import PLACE, Place, PublishedTables, anchor_of, by_place, place_of
from ..reports.words import in_general
from ..schemas import GROUP_HEALTH
from ..storage import PublishedRun
from ..texts.waiting import WaitingMessages
from ..verdict.verdict import RunVerdict, read_verdict
from .night import NightPicture, read_night
from .pictures import DRAWN, Pictures, ShownRow, ShownRows, pictures_of, ranges

#: The most rows in the lists of the page; the tables have them all.
MOST_LISTED = 50
#: The most faulty topics with a card; what passed and the like has ``MOST_LISTED``.
_MOST_CARDS = 450
#: The most open cards, each the worst of its cause; the others open when they are asked for.
_MOST_OPEN = 2
#: The most events in the list of what happened, and in the picture of the night.
_MOST_EVENTS, _MOST_DRAWN = 5, 20
#: The most groups in the table of health, worst first: half a page of 1,280 pixels.
MOST_GROUPS = 100
#: The most characters of client ids that the filter of the page knows besides those in findings.
_MOST_OF_CLIENTS = 100_000


class Card(NamedTuple):
    """A problem as the page shows it; ``retry`` is that of the group's retry topic.

    ``pictures`` are None where others of its cause are worse. ``is_open``: it is shown whole.
    """

    anchor: str
    problem: Problem
    all_findings: tuple[PlaceFinding, ...] = ()
    pictures: Pictures | None = None
    retry: "Card | None" = None
    is_open: bool = False

    @property
    def findings(self) -> list[PlaceFinding]:
        """The findings of its queues, worst first; where something lasts only what lasts."""
        severities = SEVERITIES[self.problem.is_counted :]
        found = (each for each in self.all_findings if each.queues and each.severity in severities)
        return sorted(
            found, key=lambda of: (not of.ongoing, -SEVERITIES.index(of.severity), of.first_seen)
        )


@dataclass(frozen=True)
class KindSection:
    """The problems that have one main cause, worst first.

    ``remedies`` are the different ones, each with how many of the groups it is for. Those that
    differ in names alone are one, for each of these.
    """

    kind: Kind
    cards: tuple[Card, ...]

    @property
    def problems(self) -> list[Problem]:
        """The problems of this kind, worst first."""
        return [card.problem for card in self.cards]

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len({problem.place[:2] for problem in self.problems})

    @property
    def waiting(self) -> WaitingMessages:
        """The messages that wait in their topics, their retry topics among them."""
        retries = (card.retry.problem for card in self.cards if card.retry)
        return WaitingMessages.of_all(problem.waiting for problem in (*self.problems, *retries))

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Sorts causes as their topics are sorted; what waits is that of all of them."""
        worst_one = self.problems[0]
        waiting = self.waiting.messages or 0
        return not worst_one.ongoing, -SEVERITIES.index(worst_one.severity), -waiting

    @cached_property
    def remedies(self) -> list[tuple[str, int]]:
        """The different remedies, the commonest first."""
        return remedies_of(self.problems)

    @property
    def remedy(self) -> str:
        """The remedy, where it is the same for all."""
        return self.remedies[0][0] if len(self.remedies) == 1 else ""

    @property
    def shared_remedy(self) -> str:
        """The same without the names, which each card would say again; of one card nothing."""
        remedies = (problem.remedy for problem in self.problems if problem.remedy)
        return in_general(next(remedies)) if self.remedy and len(self.cards) > 1 else ""


class NamedGroups(NamedTuple):
    """Groups of which the page has the names alone, and what they have in common.

    ``state`` is UNWELL for those beyond ``MOST_GROUPS``, RECOVERED (from the event with that
    headline, if from one), NOT_COUNTED or FINE.
    """

    state: str
    headline: str
    rows: tuple[ShownRow, ...]


@dataclass(frozen=True)
class PageValues:
    """All that the page shows.

    ``cards`` has every problem that did not pass, but those of retry topics that are in the card of
    their group; ``passed`` has the others, those of the event that touched most groups first.
    ``health`` has a row a group, ``former`` and ``unreadable`` one for the queues of a place.
    ``clients`` has the client ids of each group, by cluster and group. ``events`` are those that
    lead, ``more_events`` is the number of the others.
    """

    published: PublishedRun
    verdict: RunVerdict
    problems: tuple[Problem, ...]
    cards: tuple[Card, ...]
    passed: tuple[PassedProblems, ...]
    former: tuple[ShownRow, ...]
    unreadable: tuple[ShownRow, ...]
    health: tuple[ShownRow, ...]
    clients: Mapping[tuple[str, ...], str]
    coverage: ShownRow
    quarantine: ShownRow
    night: NightPicture | None
    events: tuple[LeadingEvent, ...]
    more_events: int

    def standing(self, standing: Standing) -> list[Problem]:
        """The problems of which this becomes."""
        return [problem for problem in self.problems if problem.standing == standing]

    @property
    def counted(self) -> list[Problem]:
        """The problems that last and are not known issues."""
        return self.standing("COUNTED")

    @property
    def left_out(self) -> int:
        """The number of problems that did not pass and have no card."""
        shown = sum(2 if card.retry else 1 for card in self.cards)
        return len(self.problems) - len(self.standing("PASSED")) - shown

    def with_status(self, status: str) -> list[Problem]:
        """The problems with findings that are NEW, or PERSISTING."""
        return [problem for problem in self.problems if status in problem.statuses]

    @property
    def left_open(self) -> set[Place]:
        """The places in which something severe was open and was not looked for, of those of which
        nothing counts.
        """
        counted = {problem.place for problem in self.counted}
        return {
            row["place"]
            for row in self.former
            if row["status"] == NOT_AUDITED and row["severity"] != INFO
        } - counted

    @cached_property
    def anchors(self) -> dict[Place, str]:
        """The anchor of each place on the page."""
        cards = [*self.cards, *(card.retry for card in self.cards if card.retry)]
        several = len(self.clusters) > 1
        passed = (problem for of in self.passed for problem in of.problems[:MOST_LISTED])
        found = {card.problem.place: card.anchor for card in cards}
        return found | {of.place: anchor_of(of.place, several=several) for of in passed}

    @cached_property
    def causes(self) -> list[KindSection]:
        """The problems that count, by main cause: the worst first, of those what waits most."""
        by_kind = grouped(
            (card.problem.main_kind, card) for card in self.cards if card.problem.is_counted
        )
        sections = [KindSection(kind, tuple(cards)) for kind, cards in by_kind.items()]
        return sorted(sections, key=lambda kind_section: kind_section.rank)

    @cached_property
    def unwell(self) -> tuple[ShownRow, ...]:
        """The groups whose numbers are shown: WARNING or worse, or not audited whole."""
        return tuple(filter(_is_unwell, self.health))

    @cached_property
    def named(self) -> list[NamedGroups]:
        """The other groups; those that recovered from one thing that happened are together."""
        happened = {
            problem.place[:2]: event.headline
            for event in reversed(self.passed)
            for problem in event.problems
        }
        there = {problem.place[:2] for problem in self.problems if problem.standing != "PASSED"}
        shown = {id(row) for row in self.unwell[:MOST_GROUPS]}

        def state(row: ShownRow) -> tuple[str, str]:
            group = row["group"]
            if _is_unwell(row):
                return "UNWELL", ""
            if group in there:
                return "NOT_COUNTED", ""
            return ("RECOVERED", happened[group]) if group in happened else ("FINE", "")

        alike = grouped((state(row), row) for row in self.health if id(row) not in shown)
        named = [NamedGroups(*of, tuple(rows)) for of, rows in alike.items()]
        return sorted(named, key=lambda groups: -len(groups.rows))

    @cached_property
    def numbers_of_groups(self) -> dict[tuple[str, ...], int]:
        """The number of each group, by which the page finds its cards and its client ids."""
        return {row["group"]: number for number, row in enumerate(self.health, 1)}

    @cached_property
    def levels_of_groups(self) -> dict[tuple[str, ...], str]:
        """The level that a verdict on the group alone had; none where all is well."""
        passing = [*self.standing("PASSED"), *self.standing("BEGUN")]
        found: dict[tuple[str, ...], str] = {problem.place[:2]: INFO for problem in passing}
        counted = grouped((problem.place[:2], problem.worst_severity) for problem in self.counted)
        found |= {group: worst(severities) for group, severities in counted.items()}
        left_out = (row["group"] for row in self.health if row["left_out"])
        return found | {each: INCOMPLETE for each in left_out if found.get(each, INFO) == INFO}

    @property
    def anchors_of_groups(self) -> Mapping[tuple[str, ...], str]:
        """The anchor of each group: its worst card, else its row, else what passed of it."""
        found = {place[:2]: anchor for place, anchor in self.anchors.items()}
        shown = enumerate(self.unwell[:MOST_GROUPS], 1)
        found |= {row["group"]: f"group-{number}" for number, row in shown}
        return found | {card.problem.place[:2]: card.anchor for card in reversed(self.cards)}

    @property
    def clients_left_out(self) -> bool:
        """True if the page has not all client ids."""
        return len(self.clients) < len(self.health)

    @property
    def clusters(self) -> list[str]:
        """The clusters that it is about."""
        return sorted({row["cluster"] for row in self.health})

    @property
    def kinds(self) -> list[str]:
        """The kinds of findings and faults that occur."""
        found = {k for p in self.problems for k in (*p.lasting, *p.passing)}
        found |= {fault.fault for problem in self.problems for fault in problem.faults}
        found |= {"UNREADABLE"} if self.unreadable else set()
        return sorted(found)


def _is_unwell(group: ShownRow) -> bool:
    return group["severity"] not in ("", INFO) or group["left_out"] > 0


def build_report(published: PublishedRun, tables: PublishedTables, top: int) -> PageValues:
    """The report of a run; so many problems at least have pictures (``_with_pictures``)."""
    problems = tuple(read_problems(tables))
    read = tables.read(GROUP_HEALTH.name, GROUP_HEALTH.schema.names)
    rows = list(map(with_texts, read.to_pylist()))
    health = _health(rows, problems)
    there = [problem for problem in problems if problem.standing != "PASSED"]
    events, more_events = leading_events(tables, _MOST_DRAWN)
    return PageValues(
        published=published,
        verdict=read_verdict(tables),
        problems=problems,
        cards=_cards(tables, there, top, {row["cluster"] for row in health}),
        passed=passed_by_event(
            tables, [problem for problem in problems if problem.standing == "PASSED"]
        ),
        former=_rows_of_places(tables, "former_findings", ("status", "kind", "severity")),
        unreadable=_rows_of_places(tables, "unreadable_queues", ()),
        health=health,
        clients=_clients(tables, health),
        coverage=_coverage(rows),
        quarantine=_quarantine(published, tables),
        night=read_night(tables, published.summary, events),
        events=tuple(events[:_MOST_EVENTS]),
        more_events=more_events + len(events[_MOST_EVENTS:]),
    )


def card_of(tables: PublishedTables, finding_id: str) -> Card:
    """The card of the group and topic that a finding is of, with its pictures.

    InputError where the run has no such finding.
    """
    place = place_of_finding(tables, finding_id)
    return _cards(tables, read_problems(tables, [place]), 1, {place.cluster})[0]


# ---------------------------------------------------------------- cards


def _cards(
    tables: PublishedTables, problems: Sequence[Problem], top: int, clusters: set[str]
) -> tuple[Card, ...]:
    # Problems that count are not hidden behind those that passed: each has its list on the page.
    shown_with = heads_of(problems, lambda each: (*each.place[:2], each.standing))
    retries = {
        head.place: each for each in problems if (head := shown_with[each.place]) is not each
    }
    heads = list(_bounded(each for each in problems if shown_with[each.place] is each))
    drawn = _with_pictures(heads, top)
    places = [*drawn, *(retries[place].place for place in drawn if place in retries)]
    rows = [by_place(tables, name, of.split(), places) for name, of in DRAWN.items()]
    with_cards = [*(each.place for each in heads), *(each.place for each in retries.values())]
    findings = read_findings(tables, with_cards)

    def card(problem: Problem) -> Card:
        place, pictures = problem.place, None
        retry = card(retries[place]) if place in retries else None
        if place in places:
            found = findings.get(place, ())
            pictures = pictures_of(problem, found, [table_rows[place] for table_rows in rows])
        anchor = anchor_of(place, several=len(clusters) > 1)
        own_findings, is_open = tuple(findings.get(place, ())), place in drawn[:_MOST_OPEN]
        return Card(anchor, problem, own_findings, pictures, retry, is_open=is_open)

    return tuple(map(card, heads))


def _bounded(heads: Iterable[Problem]) -> Iterator[Problem]:
    """The worst that have room on the page."""
    found: Counter[Standing] = Counter()
    for head in heads:
        found[head.standing] += 1
        if found[head.standing] <= (_MOST_CARDS if head.is_counted else MOST_LISTED):
            yield head


def _with_pictures(heads: Sequence[Problem], top: int) -> list[Place]:
    """The worst problem of each cause, then the worst of all, until there are ``top``."""
    first = {head.main_kind: head.place for head in reversed(heads) if head.is_counted}.values()
    in_order = sorted((head.place for head in heads), key=lambda place: place not in first)
    return in_order[: max(top, len(first))] if top else []


# ---------------------------------------------------------------- the other sections


def _rows_of_places(
    tables: PublishedTables, name: str, columns: Sequence[str]
) -> tuple[ShownRow, ...]:
    """The queues of a table by place and some columns, a row each."""
    read = [*PLACE, *columns, "broker_name", "queue_id", "first_seen", "last_seen"]
    found = tables.read(name, read).to_pylist()
    alike = grouped(((place_of(row), *(row[column] for column in columns)), row) for row in found)
    return tuple(
        {
            "place": place,
            **dict(zip(columns, values, strict=True)),
            # A fault has no queue.
            "queues": ranges(
                place.topic, [(r["broker_name"], r["queue_id"]) for r in rows if r["queue_id"] >= 0]
            ),
            "first_seen": min(row["first_seen"] for row in rows),
            "last_seen": max(row["last_seen"] for row in rows),
        }
        for (place, *values), rows in sorted(alike.items(), key=itemgetter(0))
    )


def _health(rows: ShownRows, problems: Sequence[Problem]) -> tuple[ShownRow, ...]:
    """A group over all its topics, in the order of the problems; then those without any."""
    ranks = {problem.place[:2]: rank for rank, problem in reversed([*enumerate(problems)])}
    by_group = grouped((place_of(row)[:2], row) for row in rows if row["coverage"] != NO_GROUP)
    # No row of a topic has the severity of a fault that no queue shows.
    graded = [(place_of(row)[:2], row["worst_severity"]) for row in rows if row["worst_severity"]]
    severities = grouped([*graded, *((p.place[:2], p.worst_severity) for p in problems)])
    most = ("members", "processes", "idle_clients", "imbalance")
    health = [
        {
            "group": group,
            "cluster": group[0],
            "consumer_group": group[1],
            "severity": worst(severities.get(group, ()), ""),
            "topics": len(topics),
            "audited": sum(row["coverage"] == AUDITED for row in topics),
            "left_out": sum(not was_audited(row) for row in topics),
            **{name: max(row[name] for row in topics) for name in most},
            "waiting": WaitingMessages.of_all(map(WaitingMessages.of_row, topics)).number,
            "queues": sum(row["queues"] for row in topics),
            "orphan_minutes": sum(row["orphan_queue_minutes"] for row in topics),
            "duplicate_minutes": sum(row["duplicate_queue_minutes"] for row in topics),
            "completeness": min(row["completeness"] for row in topics),
        }
        for group, topics in by_group.items()
    ]

    def rank(row: ShownRow) -> tuple[Any, ...]:
        return (
            ranks.get(row["group"], len(problems)),
            -("", *SEVERITIES).index(row["severity"]),
            -row["left_out"],
            -(row["orphan_minutes"] + row["duplicate_minutes"]),
            row["completeness"],
            row["group"],
        )

    return tuple(sorted(health, key=rank))


def _clients(tables: PublishedTables, health: ShownRows) -> dict[tuple[str, ...], str]:
    """The client ids that each group ever had, the worst group first, as far as there is room."""
    columns = ["cluster", "consumer_group", "client_id"]
    rows = tables.read("allocations", columns).group_by(columns).aggregate([]).to_pylist()
    ids = grouped(((row["cluster"], row["consumer_group"]), row["client_id"]) for row in rows)
    found: dict[tuple[str, ...], str] = {}
    room = _MOST_OF_CLIENTS
    for row in health:
        text = " ".join(sorted(ids.get(row["group"], ())))
        room -= len(text)
        if room < 0:
            break
        found[row["group"]] = text
    return found


def _coverage(rows: ShownRows) -> ShownRow:
    """Coverage of the audit, and how complete its dumps are."""
    audited = [row for row in rows if row["coverage"] == AUDITED]
    others = [{**row, "place": place_of(row)} for row in rows if row["coverage"] != AUDITED]
    incomplete = [(place_of(row), row["completeness"]) for row in audited]
    return {
        "audited": len(audited),
        "not_audited": sorted(others, key=itemgetter("coverage", "place")),
        "by_coverage": sorted(Counter(other["coverage"] for other in others).items()),
        "partly": sum(row["audited_snapshots"] < row["snapshots"] for row in audited),
        "incomplete": sorted((each for each in incomplete if each[1] < 1), key=itemgetter(1, 0)),
        "assumed": sum(row["strategy_source"] == "assumed" for row in audited),
    }


def _quarantine(published: PublishedRun, tables: PublishedTables) -> ShownRow:
    """The lines that were not understood, by reason; a file is named without its folders."""
    rows = tables.read("quarantine", ["reason", "file"])
    ingested = published.summary["inputs"]["ingested"]
    reasons: list[tuple[str, int, str]] = []
    if rows.num_rows:
        totals = rows.group_by("reason").aggregate([("reason", "count"), ("file", "min")])
        reasons = [
            (row["reason"], row["reason_count"], row["file_min"].rpartition("/")[2])
            for row in totals.to_pylist()
        ]
    return {
        "lines_in": ingested["lines"] if ingested else None,
        "lines": ingested["quarantined"] if ingested else rows.num_rows,
        "reasons": sorted(reasons, key=lambda each: (-each[1], each[0]))[:20],
    }
