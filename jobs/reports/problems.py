"""The problems of a run, as its table ``problems`` has them, worst first.

All that says anything of a run (the page, the ticket, the console, the message) says it by these,
so that no two can disagree. ``judge/result/topic_problem.py`` has judged it; here are its words.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.english import MOST_NAMES, count, list_of, within
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.texts import Text

from ..declared import kinds
from ..declared.instants import FOLLOW_TIME
from ..languages.translated_rows import TEXTS, with_texts
from ..schemas import PROBLEMS
from ..texts.shown import day_and_time, visible
from ..texts.waiting import NOTHING, WaitingMessages
from .tables import Place, Tables, place_of
from .words import begin, in_general, names_of_slots

#: A remedy of several problems names so many of those whom it is for.
_MOST_NAMED = 3
#: The ways in which a problem counts: ``problems.standing``.
Standing = Literal["COUNTED", "KNOWN", "HARMLESS", "BEGUN", "PASSED"]


@dataclass(frozen=True, kw_only=True)
class ShownFault:
    """One fault of a problem: its worst run, and how many ``runs`` of it there were."""

    fault: str
    persistence: str
    ongoing: bool
    first_seen: datetime
    last_seen: datetime
    runs: int
    evidence: str
    remedy: str
    client_ids: tuple[str, ...] = ()
    broker_names: tuple[str, ...] = ()
    findings_cleared: int = 0
    findings_left: int = 0
    share_of_time: float | None = None
    known_issue: str | None = None

    @classmethod
    def of(cls, fault: Mapping[str, Any]) -> "ShownFault":
        """The fault of a struct of ``problems.faults``."""
        lists = {name: tuple(fault[name] or ()) for name in ("client_ids", "broker_names")}
        return cls(**{field.name: fault[field.name] for field in fields(cls)} | lists)

    @property
    def kind(self) -> kinds.Kind:
        """The fault in words."""
        return kinds.kind_of(self.fault)

    @property
    def lasts(self) -> bool:
        """True if it is more than a deploy or a restart."""
        return kinds.lasts(self.fault, self.persistence)

    @property
    def passed(self) -> bool:
        """True if it passed by itself."""
        return self.persistence != kinds.PERSISTENT and not self.ongoing


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem of one topic of one group: a row of ``problems``.

    ``lasting`` and ``passing``: the number of queues by kind. ``faults``: the one that explains
    most of it first. ``nights_open``: 0 for what passed.
    """

    place: Place
    standing: Standing
    severity: str
    worst_severity: str
    ongoing: bool
    certainty: str
    main_kind: kinds.Kind
    is_explained: bool
    what: str
    first_seen: datetime
    last_seen: datetime
    lasting: Mapping[str, int]
    passing: Mapping[str, int]
    client_ids: tuple[str, ...]
    remedy: str
    faults: tuple[ShownFault, ...]
    known_issues: tuple[str, ...]
    statuses: frozenset[str]
    open_since: datetime | None
    nights_open: int
    returned: datetime | None
    event_ids: frozenset[str]
    began_with: str | None
    unseen_since: datetime | None
    orphan_queue_minutes: float
    duplicate_queue_minutes: float
    waiting: WaitingMessages

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Problem":
        """The problem of a row."""
        queues = row["queues_by_kind"]
        values = {field.name: row[field.name] for field in fields(cls) if field.name in row}
        values |= {
            "place": place_of(row),
            "main_kind": kinds.kind_of(row["kind"]),
            "lasting": {queue["kind"]: queue["lasting"] for queue in queues if queue["lasting"]},
            "passing": {queue["kind"]: queue["passing"] for queue in queues if queue["passing"]},
            "faults": tuple(map(ShownFault.of, row["faults"])),
            "client_ids": tuple(row["client_ids"]),
            "known_issues": tuple(row["known_issues"]),
            "statuses": frozenset(row["statuses"]),
            "event_ids": frozenset(row["event_ids"]),
            "nights_open": row["nights_open"] or 0,
            "waiting": WaitingMessages.of_columns(row),
        }
        return cls(**values)

    @property
    def is_counted(self) -> bool:
        """True if it belongs in the verdict."""
        return self.standing == "COUNTED"

    @cached_property
    def rank(self) -> tuple[Any, ...]:
        """Sorts the worst first; known issues last."""
        badness = kinds.badness(
            self.severity,
            certain=self.certainty == "CERTAIN",
            ongoing=self.ongoing,
            backlog=self.waiting.messages or 0,
            queue_minutes=self.orphan_queue_minutes + self.duplicate_queue_minutes,
            queues=sum(self.lasting.values()),
        )
        return self.standing == "KNOWN", badness, self.place

    @property
    def now(self) -> Text:
        """The first words of whatever is said of it: still there, or over since when."""
        is_same_day = self.first_seen.date() == self.last_seen.date()
        if self.unseen_since is not None:
            return Text(_LAST_SEEN[is_same_day], at=self.unseen_since)
        return Text("still there") if self.ongoing else Text(_OVER[is_same_day], at=self.last_seen)

    @property
    def is_there(self) -> bool:
        """True if it is still there as far as anybody looked, and that was to the end."""
        return self.ongoing and self.unseen_since is None

    def times(self, shown: Callable[[datetime], str] = day_and_time) -> Text:
        """The time that it was there, what it began with, for how many nights, and if it came back.

        Worked example: "since 2026-11-20 10:00:00, open for 3 nights"; "2026-11-20 10:00:00 to
        2026-11-20 10:29:00"; ``shown``: how its times are.
        """
        time = Text("since {begins}", begins=shown(self.begins))
        if not self.ongoing:
            last = shown(self.last_seen)
            time = Text("from {begins} to {ends}", begins=shown(self.begins), ends=last)
        if self.began_with:
            time = Text("{time}, began with {event}", time=time, event=self.began_with)
        if self.nights_open > 1:
            nights = count(self.nights_open, "night")
            time = Text("{time}, open for {nights}", time=time, nights=nights)
        return Text("{time}, {returned}", time=time, returned=self.back) if self.back else time

    @property
    def status(self) -> str:
        """RETURNED, PERSISTING, NEW, or NONE for what passed by itself."""
        if self.returned is not None:
            return "RETURNED"
        return "PERSISTING" if "PERSISTING" in self.statuses else min(self.statuses, default="NONE")

    @property
    def back(self) -> str:
        """The words for one that returned; empty where it did not, as far as is known."""
        if self.returned is None:
            return ""
        return Text("returned: it was over since {at:day_minute}", at=self.returned)

    @property
    def headline(self) -> str:
        """The problem in a few words, and the messages that wait."""
        what, waiting = self.what, self.shown_waiting.text
        return Text("{what}; {waiting}", what=what, waiting=waiting) if waiting else what

    @property
    def shown_waiting(self) -> WaitingMessages:
        """Messages waiting; that there are none is worth a word where something lasts."""
        is_worth_it = self.standing in ("COUNTED", "KNOWN") or self.waiting.messages
        return self.waiting if is_worth_it else NOTHING

    @property
    def begins(self) -> datetime:
        """The time at which it began, in an earlier run where it is open over several."""
        opened = self.open_since if self.nights_open > 1 else None
        return opened or self.first_seen

    @property
    def cause(self) -> ShownFault | None:
        """The fault that explains most of it."""
        return self.why[0] if self.is_explained else None

    @cached_property
    def why(self) -> list[ShownFault]:
        """The faults that explain it: where something lasts none that passed by itself."""
        return self.there if self.lasting else self.there or [*self.faults]

    @cached_property
    def there(self) -> list[ShownFault]:
        """The faults that last, or are too new to count: what passed by itself asks for nothing."""
        return [fault for fault in self.faults if not fault.passed]

    @property
    def is_of_retry_topic(self) -> bool:
        """True if its topic is the one from which the group reads again what failed."""
        return is_own_retry_topic(self.place.topic, self.place.consumer_group)


#: The words for one that is over, by a flag: it began on the same day.
_LAST_SEEN = {
    True: "there when last seen at {at:clock}",
    False: "there when last seen at {at:day}",
}
_OVER = {True: "over since {at:clock}", False: "over since {at:day}"}


def read_problems(tables: Tables, places: Collection[Place] | None = None) -> list[Problem]:
    """The problems of a run, or those of some places, worst first."""
    wanted = None if places is None else set(places)
    rows = tables.read(PROBLEMS.name, PROBLEMS.schema.names, wanted).to_pylist()
    shown = (row for row in rows if wanted is None or place_of(row) in wanted)
    return sorted((Problem.of(with_texts(row)) for row in shown), key=lambda problem: problem.rank)


def heads_of(
    problems: Iterable[Problem], alike: Callable[[Problem], Any] = lambda problem: problem.place[:2]
) -> dict[Place, Problem]:
    """The problem that each one is shown with, by its place; the worst first.

    A group's retry topic has the faults of the group: it is shown with the worst of the others that
    are ``alike``, by default all of the group. Every other problem, and a retry topic without such
    a one, is shown by itself.
    """
    problems = list(problems)
    heads: dict[Any, Problem] = {}
    for problem in problems:
        if not problem.is_of_retry_topic:
            heads.setdefault(alike(problem), problem)
    return {
        problem.place: heads.get(alike(problem), problem) if problem.is_of_retry_topic else problem
        for problem in problems
    }


def cause_line(
    kind: kinds.Kind,
    problems: Sequence[Problem],
    *,
    several: bool,
    most: int = MOST_NAMES,
    shown: Callable[[str], str] = visible,
) -> Text:
    """The problems of one cause in one line: how many are still there, how bad they are, in which
    groups, since when, and what waits there; ``several`` clusters have their names in it.

    At most so many groups have their names in it, as ``shown``.
    """
    there = [problem for problem in problems if problem.is_there]
    groups = dict.fromkeys(problem.place[:2] for problem in problems)
    names = [" / ".join(map(shown, group[not several :])) for group in groups]
    now: str = min(there or problems, key=lambda problem: problem.first_seen).now
    if 0 < len(there) < len(problems):
        template = "still there in {there:,} of {topics}"
        now = Text(template, there=len(there), topics=count(len(problems), "topic"))
    elif not there:
        now = max(problems, key=lambda problem: problem.last_seen).now
    line = Text(
        "{now}: {severity} {groups}: {cause}, since {at:day_minuteZ}: {names}",
        now=begin(now),
        severity=kinds.worst(problem.severity for problem in there or problems),
        groups=count(len(groups), "group"),
        cause=within(kind.title),
        at=min(problem.begins for problem in problems),
        names=list_of(names, most, ("more group", "more groups")),
    )
    waiting = WaitingMessages.of_all(problem.shown_waiting for problem in problems)
    text = waiting._replace(first_seen=None).text
    return Text("{what}; {waiting}", what=line, waiting=text) if text else line


def remedies_of(problems: Iterable[Problem]) -> list[tuple[str, int]]:
    """The different remedies of problems of one cause, each with its groups; the commonest first.

    Those that differ in names alone are one, for each of what they name.
    """
    alike = grouped((in_general(problem.remedy), problem) for problem in problems if problem.remedy)
    remedies = []
    for general, alike_problems in alike.items():
        first, *others = dict.fromkeys(problem.remedy for problem in alike_problems)
        groups = {problem.place[:2] for problem in alike_problems}
        remedies.append((_for_each(general, alike_problems) if others else first, len(groups)))
    return sorted(remedies, key=lambda remedy: -remedy[1])


def _for_each(remedy: str, problems: Sequence[Problem]) -> str:
    """The remedy of several problems, with the first thing in it that is another for some of them:
    clients, brokers, groups or topics.
    """
    every = [names_of_slots(problem.remedy) for problem in problems]
    differing = (slot for slot in every[0] if len({names.get(slot) for names in every}) > 1)
    slot = next(differing, None)

    def named(problem: Problem) -> Sequence[str]:
        fault, place = problem.there[0], problem.place
        place_names = {"this_group": place.consumer_group, "this_topic": place.topic}
        if slot in place_names:
            return [place_names[slot]]
        return fault.broker_names if slot == "these_brokers" else fault.client_ids

    names = dict.fromkeys(name for problem in problems for name in named(problem))
    if slot is None or not names:  # texts of another version
        return remedy
    return Text("for each of: {names}: {remedy}", names=list_of(names, _MOST_NAMED), remedy=remedy)


# ---------------------------------------------------------------- what passed

#: An event explains what begins so soon after it.
_FOLLOWED = timedelta(microseconds=FOLLOW_TIME)
_EVENT = ("event_id", "begins", "ends", "last_seen", "headline", "groups_touched", TEXTS)


class PassedProblems(NamedTuple):
    """Problems that passed by themselves with one event; ``headline`` "" where there is none."""

    headline: str
    problems: tuple[Problem, ...]


def passed_by_event(tables: Tables, problems: Iterable[Problem]) -> tuple[PassedProblems, ...]:
    """The problems that passed, by the event that touched most groups of those that began them."""
    problems = [problem for problem in problems if problem.standing == "PASSED"]
    ids: set[str | None] = set().union(*(each.event_ids for each in problems))
    rows = tables.read("events", _EVENT)
    rows = rows.filter(pc.is_in(rows["event_id"], pa.array(ids, pa.string())))
    events = sorted(rows.to_pylist(), key=lambda row: (-row["groups_touched"], row["begins"]))

    def number(problem: Problem) -> int:
        # An event that happens to a subject again has its id again.
        found = (
            number
            for number, row in enumerate(events)
            if row["event_id"] in problem.event_ids
            and row["begins"] <= problem.last_seen
            and problem.first_seen <= (row["ends"] or row["last_seen"]) + _FOLLOWED
        )
        return next(found, len(events))

    heads = heads_of(problems)
    by_event = grouped((number(each), each) for each in problems if heads[each.place] is each)
    headlines = [*(with_texts(row)["headline"] for row in events), ""]
    return tuple(PassedProblems(headlines[of], tuple(by_event[of])) for of in sorted(by_event))
