"""Problems of one topic of one group: the one reading of the published tables.

A table has a row per queue and run, far too many for a person. A problem is all that the rows of a
place show together: what, how bad, how sure, who, since when, why, and what to do. All that says
anything of a run (the page, the ticket, the message) says it by these problems, worst first, so
that no two can disagree.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import compress, zip_longest
from typing import Any, Literal, NamedTuple

import pyarrow.compute as pc

from rebalance_core.descriptions import EXPRESSION_MISMATCH, queue_ranges
from rebalance_core.english import agreeing, count, joined, list_of
from rebalance_core.grouping import grouped
from rebalance_core.latent import LATENT
from rebalance_core.message_queue import MessageQueue, is_own_retry_topic
from rebalance_core.texts import Text, for_slots

from ..declared import kinds
from ..languages.translated_rows import TEXTS, with_texts
from .tables import PLACE, TABLES, Place, Tables, by_place, place_of
from .waiting import COLUMNS, NOTHING, WaitingMessages
from .words import in_general, names_of_slots, titles

#: The ways in which a problem counts: it belongs in the verdict, for it lasts and is not a known
#: issue; known issues explain all of it; it is there at the end and too new, or too improbable, to
#: count; it passed by itself.
Standing = Literal["COUNTED", "KNOWN", "HARMLESS", "BEGUN", "PASSED"]

#: The words for how queues are consumed, by kind, always and at times.
_HOW = {
    "ORPHANED": (Text("consumed by nobody"), Text("at times consumed by nobody")),
    "DUPLICATE": (Text("consumed by several"), Text("at times consumed by several")),
    "STALLED": (Text("stalled"), Text("at times stalled")),
}


class PlaceQueue(NamedTuple):
    """A queue of a topic."""

    broker_name: str
    queue_id: int


@dataclass(frozen=True, kw_only=True)
class ShownEpisode:
    """An episode of a place as the tables show it: how bad it is, and from when to when.

    ``open_since`` and ``nights_open`` are over the runs before, None for what passed.
    """

    severity: str
    persistence: str
    ongoing: bool
    first_seen: datetime
    last_seen: datetime
    known_issue: str | None = None
    open_since: datetime | None = None
    nights_open: int | None = None


@dataclass(frozen=True, kw_only=True)
class PlaceFinding(ShownEpisode):
    """A finding of a place: rows of a table of queues that differ in nothing but the queue.

    Or a fault that no finding of a queue shows (``_is_finding``): it has no ``queues``. ``ids`` has
    one finding id for each row, and an id is the same from run to run. ``status``: NEW or
    PERSISTING against the published run before, None for what passed. ``share_of_time`` is that
    between ``first_seen`` and ``last_seen``. ``backlogs``: the messages of each of its queues, None
    where not known. ``event_ids``: the events with which its rows began. Stalls have ``owners`` and
    ``why``.
    """

    place: Place
    kind: str
    status: str | None = None
    certainty: str | None = None
    #: A stall is an unbroken run of offset polls, and has no share.
    share_of_time: float = 1.0
    causes: tuple[str, ...] = ()
    event_ids: frozenset[str | None] = frozenset()
    ids: tuple[str, ...] = ()
    queues: tuple[PlaceQueue, ...] = ()
    backlogs: tuple[int | None, ...] = ()
    owners: tuple[str, ...] = ()
    why: str | None = None

    @property
    def is_severe(self) -> bool:
        """True if it counts: it is there for long, and is likely."""
        return self.severity != kinds.INFO

    @property
    def waiting(self) -> WaitingMessages:
        """The messages of its queues."""
        known = [each for each in self.backlogs if each is not None]
        queues = len(self.queues)
        return WaitingMessages(
            sum(known) if known else None, queues=queues, without_offsets=queues - len(known)
        )

    @property
    def rows(self) -> list[tuple[str, PlaceQueue | None]]:
        """Its rows: the finding id, and the queue where it is of one."""
        return list(zip_longest(self.ids, self.queues))

    def without(self, ids: Iterable[str]) -> "PlaceFinding | None":
        """The finding without the rows of some finding ids; None where no row is left."""
        kept = [each not in ids for each in self.ids]
        if not any(kept):
            return None
        return replace(
            self,
            ids=tuple(compress(self.ids, kept)),
            queues=tuple(compress(self.queues, kept)),
            backlogs=tuple(compress(self.backlogs, kept)),
        )


@dataclass(frozen=True, kw_only=True)
class ShownFault(ShownEpisode):
    """One fault of a place: its worst run, and how many runs of it there were.

    One per client id for faults about one client id (``kinds.OF_ONE_CLIENT``), one for every other
    fault. ``share_of_time``: None where the run did not publish it.
    """

    fault: str
    runs: int
    evidence: str
    remedy: str
    queues_affected: int
    findings_cleared: int = 0
    findings_left: int = 0
    share_of_time: float | None = None
    client_ids: tuple[str, ...] = ()
    broker_names: tuple[str, ...] = ()
    event_id: str | None = None

    @property
    def kind(self) -> kinds.Kind:
        """The fault in words."""
        return kinds.kind_of(self.fault)

    @property
    def lasts(self) -> bool:
        """True if it is more than a deploy or a restart."""
        return kinds.lasts(self.fault, self.persistence)

    @property
    def is_latent(self) -> bool:
        """True if members differ, and no queue shows it as long as they are so many."""
        costs_nothing = self.severity == kinds.INFO and not self.queues_affected
        return self.fault in LATENT and self.lasts and costs_nothing

    @property
    def passed(self) -> bool:
        """True if it passed by itself."""
        return self.persistence != kinds.PERSISTENT and not self.ongoing

    @property
    def weight(self) -> tuple[bool, bool, float]:
        """The larger, the more it explains: whether it lasts and goes on, queues times seconds."""
        seconds = (self.last_seen - self.first_seen).total_seconds() + 1
        return self.lasts, self.ongoing, self.queues_affected * seconds

    def explains(self, found: PlaceFinding) -> bool:
        """True if it is the reason for the finding, at its time.

        A stall names no cause: what counts itself and is about an owner of the queue, or about no
        client, explains it; and filters that differ, of which the broker refuses any.
        """
        if self.last_seen < found.first_seen or found.last_seen < self.first_seen:
            return False
        if found.kind != kinds.STALLED or self.fault == EXPRESSION_MISMATCH:
            return self.fault in found.causes or found.kind == kinds.STALLED
        others = self.client_ids and set(self.client_ids).isdisjoint(found.owners)
        return self.severity != kinds.INFO and not others


@dataclass(frozen=True)
class Problem:
    """A problem of one topic of one group; ``faults``: the one that explains most of it first."""

    place: Place
    findings: tuple[PlaceFinding, ...] = ()
    faults: tuple[ShownFault, ...] = ()
    orphan_minutes: float = 0.0
    duplicate_minutes: float = 0.0
    waiting: WaitingMessages = NOTHING

    # ------------------------------------------------------------------ how bad

    @cached_property
    def graded(self) -> list[PlaceFinding]:
        """The findings that decide how bad it is: of queues, and faults bad by themselves."""
        return [each for each in self.findings if each.queues or each.is_severe]

    @cached_property
    def _counted(self) -> list[PlaceFinding]:
        """The findings that no known issue explains; all where there are no others."""
        return [each for each in self.graded if each.known_issue is None] or self.graded

    @cached_property
    def is_known(self) -> bool:
        """True if known issues explain all of it."""
        return bool(self.graded) and all(each.known_issue is not None for each in self.graded)

    @cached_property
    def known_issues(self) -> list[str]:
        """The reasons that its known issues give."""
        return sorted({each.known_issue for each in self.graded if each.known_issue is not None})

    @cached_property
    def severity(self) -> str:
        """The worst of what no known issue explains; where known issues explain all, of that."""
        return kinds.worst(each.severity for each in self._counted)

    @cached_property
    def ongoing(self) -> bool:
        """True if it is there at the end; where nothing of it is graded, if a fault is."""
        return any(each.ongoing for each in self._counted or self.faults)

    @cached_property
    def is_harmless(self) -> bool:
        """True if nothing is there at the end but members that differ and cost no queue."""
        there = [each for each in self.faults if each.ongoing]
        is_graded = any(each.ongoing for each in self.graded)
        return bool(there) and not is_graded and all(each.is_latent for each in there)

    @cached_property
    def standing(self) -> Standing:
        """The way in which it counts."""
        if self.is_known:
            return "KNOWN"
        if self.severity != kinds.INFO:
            return "COUNTED"
        if self.is_harmless:
            return "HARMLESS"
        return "BEGUN" if self.ongoing else "PASSED"

    @property
    def is_counted(self) -> bool:
        """True if it belongs in the verdict."""
        return self.standing == "COUNTED"

    @property
    def statuses(self) -> set[str]:
        """The statuses of its findings: NEW, PERSISTING."""
        return {each.status for each in self.graded if each.status is not None}

    @cached_property
    def rank(self) -> tuple[Any, ...]:
        """Sorts the worst first; known issues last."""
        badness = kinds.badness(
            self.severity,
            certain=self.certainty == "CERTAIN",
            ongoing=self.ongoing,
            backlog=self.waiting.messages or 0,
            queue_minutes=self.orphan_minutes + self.duplicate_minutes,
            queues=sum(self.lasting.values()),
        )
        return self.is_known, badness, self.place

    @cached_property
    def certainty(self) -> str:
        """The certainty of the worst of it: CERTAIN if it was seen, or is so under every view."""
        worst_ones = (each for each in self._counted if each.severity == self.severity)
        is_certain = any(each.certainty != "POSSIBLE" for each in worst_ones)
        return "CERTAIN" if is_certain else "POSSIBLE"

    # ------------------------------------------------------------------ what

    @cached_property
    def lasting(self) -> dict[str, int]:
        """The number of queues with findings that last, by kind."""
        return self._queues_of(lasting=True)

    @cached_property
    def passing(self) -> dict[str, int]:
        """The number of queues with findings that passed, or are too new to count, by kind."""
        return self._queues_of(lasting=False)

    def _queues_of(self, *, lasting: bool) -> dict[str, int]:
        queues: dict[str, set[PlaceQueue]] = defaultdict(set)
        for each in self.findings:
            if each.queues and (each.persistence == kinds.PERSISTENT) is lasting:
                queues[each.kind].update(each.queues)
        return {kind: len(of_kind) for kind, of_kind in queues.items()}

    @property
    def headline(self) -> str:
        """The problem in a few words, and the messages that wait."""
        what, waiting = self.what, self.shown_waiting.text
        return Text("{what}; {waiting}", what=what, waiting=waiting) if waiting else what

    @property
    def shown_waiting(self) -> WaitingMessages:
        """Messages waiting; that there are none is worth a word where something lasts."""
        lasts = self.standing in ("COUNTED", "KNOWN")
        return self.waiting if lasts or self.waiting.messages else NOTHING

    @property
    def what(self) -> str:
        """The problem in a few words."""
        if self.lasting:
            return self._consumed(self.lasting)
        lasting = [fault for fault in self.faults if fault.lasts]
        if self.passing and not lasting:
            template = (
                "{queues}, not seen for long yet" if self.ongoing else "{queues}, for a moment"
            )
            return Text(template, queues=self._consumed(self.passing))
        return titles(list(dict.fromkeys(fault.kind for fault in lasting or self.faults)))

    def _consumed(self, queues: Mapping[str, int]) -> str:
        """The numbers of queues by how they are consumed: of the first kind and up to two more."""
        certain = {each.kind for each in self.findings if each.certainty != "POSSIBLE"}
        how = {kind: _HOW[kind][kind not in certain] for kind in queues}
        (kind, number), *others = queues.items()
        first = Text("{queues} {how}", queues=count(number, "queue"), how=how[kind])
        rest = [Text("{number:,} {how}", number=n, how=how[kind]) for kind, n in others]
        if len(rest) == 2:
            second, third = rest
            return Text("{first}, {second} and {third}", first=first, second=second, third=third)
        return Text("{first} and {second}", first=first, second=rest[0]) if rest else first

    # ------------------------------------------------------------------ since when

    @property
    def _shown(self) -> list[ShownEpisode]:
        """All of it."""
        return [*self.findings, *self.faults]

    @cached_property
    def _times(self) -> list[ShownEpisode]:
        """The findings and faults that count, for its times; all where none counts."""
        counted = (*self._counted, *self.faults)
        return [each for each in counted if each.severity != kinds.INFO] or self._shown

    @property
    def first_seen(self) -> datetime:
        """Its beginning in this run."""
        return min(each.first_seen for each in self._times)

    @property
    def last_seen(self) -> datetime:
        """Its end in this run."""
        return max(each.last_seen for each in self._times)

    @cached_property
    def open_since(self) -> datetime | None:
        """The time since which it is open over the nights before; None where it passed."""
        every = (each.open_since for each in self._shown)
        return min((since for since in every if since is not None), default=None)

    @cached_property
    def nights_open(self) -> int:
        """The number of published dates in a row that have it open."""
        return max(each.nights_open or 0 for each in self._shown)

    # ------------------------------------------------------------------ why, who, what to do

    @property
    def cause(self) -> ShownFault | None:
        """The fault that explains most of it."""
        return self.why[0] if self.why else None

    @cached_property
    def why(self) -> list[ShownFault]:
        """The faults that explain it: where something lasts none that passed by itself."""
        return self.there if self.lasting else self.there or [*self.faults]

    @property
    def main_kind(self) -> kinds.Kind:
        """The kind that it is filed under: its main cause, else the kind of its findings."""
        shown = {**self.lasting, **self.passing}
        return self.cause.kind if self.cause else kinds.kind_of(next(iter(shown)))

    @property
    def client_ids(self) -> tuple[str, ...]:
        """The client ids of the first fault that names any, of those that did not pass, if any."""
        faults = self.there or self.faults
        return next((each.client_ids for each in faults if each.client_ids), ())

    @cached_property
    def there(self) -> list[ShownFault]:
        """The faults that last, or are too new to count: what passed by itself asks for nothing."""
        return [each for each in self.faults if not each.passed]

    @property
    def remedy(self) -> str:
        """The remedy of its main cause, unless it passed by itself."""
        return self.there[0].remedy if self.there else ""

    @property
    def event_ids(self) -> set[str | None]:
        """The events with which something of it began."""
        of_findings: set[str | None] = set().union(*(each.event_ids for each in self.findings))
        return of_findings | {each.event_id for each in self.faults}

    @property
    def is_of_retry_topic(self) -> bool:
        """True if its topic is the one from which the group reads again what failed."""
        return is_own_retry_topic(self.place.topic, self.place.consumer_group)


def find_problems(tables: Tables) -> list[Problem]:
    """Every place with findings or faults, worst first."""
    findings: dict[Place, list[PlaceFinding]] = defaultdict(list)
    faults: dict[Place, list[ShownFault]] = defaultdict(list)
    shown: dict[Place, set[str]] = defaultdict(set)
    for finding in _queue_findings(tables):
        findings[finding.place].append(finding)
        if finding.is_severe:
            is_stall = finding.kind == kinds.STALLED
            shown[finding.place].update(kinds.SHOWN_BY_STALLS if is_stall else finding.causes)
    columns = (*_FAULT_COLUMNS, "finding_id", "status", TEXTS)
    for place, every in by_place(tables, "group_faults", columns).items():
        rows = [with_texts(row) for row in every]
        findings[place] += [
            _finding(
                place,
                row["fault"],
                row,
                causes=(row["fault"],),
                event_ids=frozenset({row["event_id"]}),
                ids=(row["finding_id"],),
            )
            for row in rows
            if _is_finding(row, shown[place])
        ]
        faults[place] = _shown_faults(rows)
    minutes = ("orphan_queue_minutes", "duplicate_queue_minutes")
    lost = {
        place_of(row): (*(row[each] for each in minutes), WaitingMessages.of_row(row))
        for row in tables.read(
            "group_health", [*PLACE, *minutes, *COLUMNS, "last_seen"]
        ).to_pylist()
    }
    problems = [
        Problem(
            place,
            tuple(findings[place]),
            _first_what_explains(findings[place], faults[place]),
            *lost.get(place, ()),
        )
        for place in findings.keys() | faults.keys()
    ]
    return sorted(problems, key=lambda problem: problem.rank)


def heads_of(
    problems: Iterable[Problem], alike: Callable[[Problem], Any] = lambda each: each.place[:2]
) -> dict[Place, Problem]:
    """The problem that each one is shown with, by its place; the worst first.

    A group's retry topic has the faults of the group: it is shown with the worst of the others that
    are ``alike``, by default all of the group. Every other problem, and a retry topic without such
    a one, is shown by itself.
    """
    problems = list(problems)
    heads: dict[Any, Problem] = {}
    for each in problems:
        if not each.is_of_retry_topic:
            heads.setdefault(alike(each), each)
    return {
        each.place: heads.get(alike(each), each) if each.is_of_retry_topic else each
        for each in problems
    }


#: A remedy of several problems names so many of those whom it is for.
_MOST_NAMED = 3


def remedies_of(problems: Iterable[Problem]) -> list[tuple[str, int]]:
    """The different remedies of problems of one cause, each with its groups; the commonest first.

    Those that differ in names alone are one, for each of what they name.
    """
    alike = grouped((in_general(each.remedy), each) for each in problems if each.remedy)
    remedies = []
    for general, of_general in alike.items():
        first, *others = dict.fromkeys(problem.remedy for problem in of_general)
        groups = {problem.place[:2] for problem in of_general}
        remedies.append((_for_each(general, of_general) if others else first, len(groups)))
    return sorted(remedies, key=lambda each: -each[1])


def _for_each(remedy: str, problems: Sequence[Problem]) -> str:
    """The remedy of several problems, with the first thing in it that is another for some of them:
    clients, brokers, groups or topics.
    """
    every = [names_of_slots(each.remedy) for each in problems]
    differing = (slot for slot in every[0] if len({names.get(slot) for names in every}) > 1)
    slot = next(differing, None)

    def named(problem: Problem) -> Sequence[str]:
        fault, place = problem.there[0], problem.place
        of_place = {"this_group": place.consumer_group, "this_topic": place.topic}
        if slot in of_place:
            return [of_place[slot]]
        return fault.broker_names if slot == "these_brokers" else fault.client_ids

    names = dict.fromkeys(name for each in problems for name in named(each))
    if slot is None or not names:  # texts of another version
        return remedy
    for_each = list_of(names, _MOST_NAMED)
    return Text("for each of: {names}: {remedy}", names=for_each, remedy=remedy)


#: Columns that rows of one finding share; one that a table lacks is null.
_SHARED_COLUMNS = (
    *(*PLACE, "severity", "persistence", "ongoing", "status", "certainty", "known_issue"),
    *("first_seen", "last_seen", "share_of_time", "causes", "open_since", "nights_open"),
)
_OF_STALLS = ("owners", "why", TEXTS)
_LISTS = {"causes", "owners"}
#: Columns that they have each.
_EACH = ("finding_id", "broker_name", "queue_id", "backlog", "event_id")
_BETWEEN = "\n"
#: The most owners of stalled queues that are named.
_MOST_OWNERS = 3


def _queue_findings(tables: Tables) -> Iterator[PlaceFinding]:
    """The findings of queues, put together by Arrow: a run may have a million rows."""
    for table, kind in kinds.QUEUE_FINDINGS.items():
        alike = [*_SHARED_COLUMNS, *(_OF_STALLS if kind == kinds.STALLED else ())]
        rows = tables.read(table, [*alike, *_EACH])
        for name in _LISTS.intersection(TABLES[table].schema.names):
            lists: Any = pc.binary_join(rows[name], _BETWEEN)
            rows = rows.set_column(rows.column_names.index(name), name, lists)
        of_alike = rows.group_by(alike, use_threads=False).aggregate([(e, "list") for e in _EACH])
        for row in of_alike.to_pylist():
            row |= {name: row[f"{name}_list"] for name in _EACH}
            for name in _LISTS:
                row[name] = tuple(filter(None, (row.get(name) or "").split(_BETWEEN)))
            yield _finding(
                place_of(row),
                kind,
                row if TEXTS not in row else with_texts(row),
                event_ids=frozenset(row["event_id"]),
                ids=tuple(row["finding_id"]),
                queues=tuple(map(PlaceQueue, row["broker_name"], row["queue_id"])),
                backlogs=tuple(row["backlog"]),
            )


def _is_finding(fault: Mapping[str, Any], shown: Container[str]) -> bool:
    """True if a fault is a finding by itself; ``shown``: the faults that severe findings name.

    Nothing severe is left out: what affects queues and shows on none of them counts itself, as
    GROUP_NOT_CONSUMING does. A fault that is not severe is a finding if it affects no queue.
    """
    is_severe = fault["severity"] != kinds.INFO
    return not fault["queues_affected"] or (is_severe and fault["fault"] not in shown)


def _finding(place: Place, kind: str, row: Mapping[str, Any], **values: Any) -> PlaceFinding:
    there = [each.name for each in fields(PlaceFinding) if row.get(each.name) is not None]
    return PlaceFinding(place=place, kind=kind, **{each: row[each] for each in there}, **values)


#: The columns of ``group_faults`` that a ``ShownFault`` is made of.
_FAULT_COLUMNS = [each.name for each in fields(ShownFault) if each.name != "runs"]


def _shown_faults(rows: Iterable[Mapping[str, Any]]) -> list[ShownFault]:
    """The faults of a place, each with its worst run."""
    runs: dict[tuple[Any, ...], list[ShownFault]] = defaultdict(list)
    for row in rows:
        values = {name: row[name] for name in _FAULT_COLUMNS}
        values |= {name: tuple(row[name] or ()) for name in ("client_ids", "broker_names")}
        shown = ShownFault(**values, runs=1)
        of_client = shown.client_ids if shown.fault in kinds.OF_ONE_CLIENT else ()
        runs[shown.fault, of_client].append(shown)
    return list(map(_worst_run, runs.values()))


def _first_what_explains(
    findings: Iterable[PlaceFinding], faults: Sequence[ShownFault]
) -> tuple[ShownFault, ...]:
    """The faults of a place, what explains most of what counts first.

    Stalls that no fault explains are one themselves: their rows have who owns the queues, and why
    they do not move.
    """
    severe = [each for each in findings if each.is_severe]
    explaining = [each for each in faults if any(map(each.explains, severe))]
    stalls = grouped(
        (each.why, each)
        for each in severe
        if each.kind == kinds.STALLED and not any(fault.explains(each) for fault in explaining)
    )
    first = [*explaining, *(_stalled(why, of_why) for why, of_why in stalls.items())]
    others = [each for each in faults if each not in explaining]
    by_weight = partial(sorted, key=lambda each: each.weight, reverse=True)
    return (*by_weight(first), *by_weight(others))


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


def _stalled(why: str | None, stalls: Sequence[PlaceFinding]) -> ShownFault:
    """Stalls as a fault: the queues, who owns them, where that is known, and ``why`` they do not
    move.
    """
    longest = max(stalls, key=lambda each: each.last_seen - each.first_seen)
    queues = {MessageQueue(each.place.topic, *queue) for each in stalls for queue in each.queues}
    owners = tuple(sorted({client_id for each in stalls for client_id in each.owners}))
    remedy = _REMEDIES_OF_STALLS[bool(owners), bool(why)]
    values = {"these_clients": list_of(owners, _MOST_OWNERS), "why": why or ""}
    still = agreeing(len(queues), "{queues} [does|do] not move", queues=queue_ranges(queues))
    shared = {each.name: getattr(longest, each.name) for each in fields(ShownEpisode)}
    return ShownFault(
        **shared,
        fault=kinds.STALLED,
        runs=len(stalls),
        evidence=joined([still, why] if why else [still]),
        remedy=Text(remedy, **for_slots(remedy, values)),
        queues_affected=len(queues),
        client_ids=owners,
        broker_names=tuple(sorted({queue.broker_name for queue in queues})),
    )


def _worst_run(runs: list[ShownFault]) -> ShownFault:
    """The worst run of a fault; one run that nobody knows of makes the fault one that counts."""
    worst_one = max(runs, key=lambda each: (each.weight, each.last_seen))
    unknown = any(each.known_issue is None for each in runs)
    return replace(
        worst_one,
        runs=len(runs),
        known_issue=None if unknown else worst_one.known_issue,
        open_since=min((each.open_since for each in runs if each.open_since), default=None),
        nights_open=max(each.nights_open or 0 for each in runs),
    )
