"""The message about a published run: a heading, then the problems, the worst first.

A problem is a topic of a consumer group. The text here is plain: one line is one line whatever a
name contains. How a name is kept from being a link, a mention or bold is the rule of each service.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import starmap
from typing import NamedTuple, TypeVar

from rebalance_core.english import count, joined, list_of
from rebalance_core.findings import AUDITED
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_retry_topic
from rebalance_core.texts import Text

from ..kinds import PERSISTENT, SEVERITIES, worst
from ..languages.language import ENGLISH, Language
from ..leading_events import leading_events
from ..reports.problems import Finding, Problem, find_problems, heads_of
from ..reports.tables import Place, PublishedTables, anchor_of, place_of
from ..settings import Alerts
from ..storage import Published
from ..text import in_utc, of_the_time, visible
from ..verdict.verdict import WELL, Verdict, make_verdict

#: In place of a group and topic: all that a message leaves out.
OTHERS = Place("", "", "")
#: In place of a group and topic: all that was not read or not audited.
MISSING = Place("", "", "?")

#: Nobody reads a screen of evidence in a chat.
_LONGEST_NAME = 120
_LONGEST_TEXT = 400
_MOST_FAULTS = 3
_MOST_EVENTS = 3
_MOST_ENDED = 3
#: More problems than these have a line for what is wrong, and one for who and why, and the page has
#: the rest. Six of them take 1,200 characters with all that is beside them, each other one 200.
_FEW, _MANY, _LONGEST_ITEM = 2, 6, 200
_MOST_EVENTS_BESIDE_MANY = 2
_LONGEST_SHORT_NAME, _LONGEST_SHORT_EVENT = 40, 100
_SHORTEST_WHAT, _SHORTEST_WHO = 80, 40
_Made = TypeVar("_Made")


class Link(str):
    """A line of ours with an address, which may become a link: no stranger's name is in it."""

    __slots__ = ()


@dataclass(frozen=True)
class Digest:
    """A published run as alerts see it.

    ``judged`` are the groups and topics that were audited; ``resolved`` has of each finding of the
    run before that is not there any more the group.
    """

    published: Published
    verdict: Verdict
    problems: tuple[Problem, ...]
    judged: frozenset[Place]
    resolved: tuple[str, ...]

    def about(self, groups: str) -> "Digest":
        """What concerns the groups that a pattern matches."""
        matches = re.compile(groups).fullmatch
        problems = tuple(each for each in self.problems if matches(each.place.consumer_group))
        resolved = tuple(filter(matches, self.resolved))
        verdict = self.verdict.about(matches)
        return replace(self, verdict=verdict, problems=problems, resolved=resolved)

    @property
    def findings(self) -> list[Finding]:
        """What was found, of the worst problem first."""
        return [each for problem in self.problems for each in problem.findings]


def read_digest(published: Published, tables: PublishedTables) -> Digest:
    """Reads the run; InputError where one of its tables is gone."""
    health = tables.read("group_health", [*Place._fields, "coverage"]).to_pylist()
    former = tables.read("former_findings", ["status", "consumer_group"]).to_pylist()
    problems = tuple(find_problems(tables))
    return Digest(
        published,
        make_verdict(published.summary, tables, problems),
        problems,
        frozenset(place_of(row) for row in health if row["coverage"] == AUDITED),
        tuple(row["consumer_group"] for row in former if row["status"] == "RESOLVED"),
    )


@dataclass(frozen=True)
class Item:
    """A problem as a message has it, with those of its findings that it is sent for.

    ``findings`` are those of the group's retry topic, too: what is wrong is the group's.
    ``place`` has the exact names; ``summary`` and ``explanations`` are text of one line each;
    ``url`` is where the page has it, "" where nothing is known of a page; ``owner`` may be "", too.
    ``short`` are its lines where it is one of many.
    """

    place: Place
    severity: str
    is_ongoing: bool
    summary: str
    explanations: tuple[str, ...]
    findings: tuple[Finding, ...]
    url: str = ""
    owner: str = ""
    short: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What a text says of it: what is wrong, then why."""
        return self.short or (self.summary, *self.explanations)


@dataclass(frozen=True)
class Message:
    """What is sent: ``items`` are the worst of all, ``left_out`` is the number of the others.

    ``heading`` has no name that a stranger chose. ``resolved`` are the groups and topics whose
    incident is over, for a service that has incidents; ``url`` is the address of the page. All text
    is in the ``language``.
    """

    date: str
    run_id: str
    heading: str
    items: tuple[Item, ...]
    left_out: int
    resolved: tuple[Place, ...] = ()
    url: str = ""
    language: Language = ENGLISH
    #: What happened in the cluster, a line each.
    events: tuple[str, ...] = ()
    #: Whom a service calls, by its ids.
    mentions: tuple[str, ...] = ()
    #: Which groups have nothing any more that the run before had, in a line; may be empty.
    ended: str = ""
    #: What was not read or not audited, in a line; empty: nothing.
    missing: str = ""
    #: One of the states of a run.
    state: str = WELL

    @property
    def lines(self) -> list[str]:
        """The whole message as text."""
        return self.shortened(self._length)

    def fitted(
        self, made: Callable[[list[str]], _Made], longest: int, size: Callable[[_Made], int]
    ) -> _Made:
        """What is made of the most lines with which it is no longer; of the heading always.

        Lines are whole, and the last one is how many problems are left out. It is better to know of
        all groups than why the first one is wrong: explanations go first.

        >>> item = Item(Place("C", "G", "T"), "WARNING", True, "G / T", ("why",), ())
        >>> message = Message("2026-11-20", "run", "Audit", (item, item), 0)
        >>> message.fitted(list, 4, len)
        ['Audit', '• G / T', '    why', '• G / T']
        >>> message.fitted(list, 2, len)
        ['Audit', 'and 2 more groups and topics']
        """
        kept = self._length
        while size(body := made(self.shortened(kept))) > longest and kept:
            kept -= 1
        return body

    def shortened(self, kept: int) -> list[str]:
        """The heading, so many lines of the problems, and how many problems are left out.

        Events come first, as long as there is room for any problem.
        """
        lines = [self.heading, *([self.missing] if self.missing else ())]
        lines += [f"• {each}" for each in self.events if kept]
        explanations = max(0, kept - len(self.items))
        for each in self.items[:kept]:
            summary, *explained = each.lines[: 1 + explanations]
            explanations -= len(explained)
            lines += [f"• {summary}", *(f"    {why}" for why in explained)]
        if left_out := self.left_out + len(self.items[kept:]):
            others = count(left_out, "more group and topic", "more groups and topics")
            lines.append(self.language("and {others}", others=others))
        if self.ended and (kept or not self.items):
            lines.append(self.ended)
        if self.url:
            lines.append(Link(self.language("The page: {url}", url=self.url)))
        return lines

    @property
    def _length(self) -> int:
        return sum(len(each.lines) for each in self.items)


#: The problems that a message is about, the worst first, each with the findings that it is for.
Chosen = Sequence[tuple[Problem, tuple[Finding, ...]]]


def problems_to_send(
    digest: Digest, alerts: Alerts, delivered: Collection[str], severity: str | None = None
) -> Chosen:
    """The findings that are worth a message: lasting, severe enough, and no known issues.

    With ``send = "NEW"`` those that are new against the published run before, and whose ids are
    not in ``delivered``, those of runs of this date; else those that are not over.
    ``severity`` goes before that of the settings. A group's retry topic has the faults of the
    group: it goes with the worst of its other topics.
    """
    severe = SEVERITIES[SEVERITIES.index(severity or alerts.severity) :]

    def wanted(each: Finding) -> Finding | None:
        if not _is_open(each) or each.severity not in severe:
            return None
        if alerts.send == "NEW":
            return each.without(delivered) if each.status == "NEW" else None
        return each if each.ongoing else None

    found = [
        (problem, each)
        for problem in digest.problems
        for each in filter(None, map(wanted, problem.findings))
    ]
    heads = heads_of(problem for problem, _ in found)
    by_head = grouped((heads[problem.place].place, each) for problem, each in found)
    return [(heads[place], tuple(findings)) for place, findings in by_head.items()]


def _is_open(finding: Finding) -> bool:
    return finding.persistence == PERSISTENT and finding.known_issue is None


def ids_of(chosen: Chosen) -> set[str]:
    """The ids of the findings that a message is for."""
    return {each for _, findings in chosen for finding in findings for each in finding.ids}


def resolved_places(digest: Digest, places: Iterable[Place]) -> tuple[Place, ...]:
    """Those of the groups and topics that were judged, and of which nothing lasting is left.

    A topic that was not judged is not resolved, nor is one of a group of whose retry topic
    something is left: it may be a part of the incident. ``OTHERS`` are when whatever is open is
    among the places.
    """
    places, judged = set(places), set(digest.judged)
    if digest.verdict.is_complete:
        judged.add(MISSING)
    still = _still_open(digest)
    of_retries = {each[:2] for each in still if is_retry_topic(each.topic)}
    held = {each for each in places if each[:2] in of_retries}
    shown_with = {each[:2] for each in held}
    if all(
        each in places or (is_retry_topic(each.topic) and each[:2] in shown_with) for each in still
    ):
        judged.add(OTHERS)
    return tuple(sorted(places & judged - still - held))


def _still_open(digest: Digest) -> set[Place]:
    return {each.place for each in digest.findings if each.ongoing and _is_open(each)}


def make_message(
    digest: Digest, chosen: Chosen, alerts: Alerts, language: Language = ENGLISH
) -> Message:
    """The message about these problems, the worst first. Events go before them."""
    first = chosen[: alerts.groups_shown]
    are_many = len(first) > _FEW
    message = Message(
        date=digest.published.date,
        run_id=digest.published.run_id,
        heading=language.of(_heading(digest, chosen, alerts)),
        items=(),
        left_out=len(chosen) - len(first),
        url=(alerts.report_url or "").replace("{date}", digest.published.date),
        language=language,
        events=_events(digest, language, are_many=are_many),
        ended=_ended(digest, language),
        missing=_missing(digest, language, _LONGEST_ITEM if are_many else _LONGEST_TEXT),
        state=digest.verdict.state,
    )
    room = None
    if are_many:
        others = [*message.lines, *(f"• {each}" for each in message.events)]
        beside = sum(len(each) + 1 for each in others)
        room = (max(len(first), _MANY) * _LONGEST_ITEM - beside) // len(first)
    several = len({place.cluster for place in digest.judged}) > 1
    writer = _Writer(message, alerts, several, room)
    return replace(message, items=tuple(starmap(writer.item, first)))


def _owner(group: str, alerts: Alerts) -> str:
    """The name of whom a group belongs to; empty: nobody is named.

    >>> _owner("ORDER_PAID", Alerts(owners={"ORDER_.*": "team orders", ".*": "ops"}))
    'team orders'
    """
    matching = (name for pattern, name in alerts.owners.items() if re.fullmatch(pattern, group))
    return next(matching, "")


def _events(digest: Digest, language: Language, *, are_many: bool) -> tuple[str, ...]:
    """The events that lead, a line each."""
    most, longest = _MOST_EVENTS, _LONGEST_TEXT
    if are_many:
        most, longest = _MOST_EVENTS_BESIDE_MANY, _LONGEST_SHORT_EVENT
    leading, _ = leading_events(digest.published.summary, most)
    return tuple(shown(language.of(each.headline), longest) for each in leading)


def _ended(digest: Digest, language: Language) -> str:
    """The groups that have nothing any more of what the run before had."""
    still = {each.consumer_group for each in _still_open(digest)}
    names = [shown(each, _LONGEST_SHORT_NAME) for each in sorted({*digest.resolved} - still)]
    if not names:
        return ""
    groups = list_of(names, _MOST_ENDED, ("more group", "more groups"))
    return language.of(Text("Resolved: {groups}", groups=groups))


def _missing(digest: Digest, language: Language, longest: int) -> str:
    """What was not read or not audited, and what has no severity, in one line of that length."""
    verdict = digest.verdict
    if not verdict.missing:
        return ""
    first = shown(language.of(verdict.missing[0]), longest)
    if more := len(verdict.missing) - 1:
        return language.of(
            Text("Not complete: {first}; and {more}", first=first, more=count(more, "more gap"))
        )
    return language.of(Text("Not complete: {first}", first=first))


def missing_id(digest: Digest) -> str:
    """What a note has of it where a message said what is missing of a run."""
    text = "\n".join(digest.verdict.missing)
    return f"missing-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _heading(digest: Digest, chosen: Chosen, alerts: Alerts) -> Text:
    """The first line. In every language it has "Rebalance audit", a keyword that robots ask for."""
    found = _found(chosen, is_new=alerts.send == "NEW")
    if digest.resolved:
        of_before = count(len(digest.resolved), "finding")
        found = Text(
            "{found}; {findings} of the run before resolved", found=found, findings=of_before
        )
    if not digest.verdict.is_complete:
        found = Text("{found}; not all was read and audited", found=found)
    return Text("Rebalance audit of {date}: {found}", date=digest.published.date, found=found)


def _found(chosen: Chosen, *, is_new: bool) -> Text:
    if not chosen:
        return Text("no new findings") if is_new else Text("no open findings")
    findings = (each for _, of_problem in chosen for each in of_problem)
    # A queue that was so again after a time has several rows, and is one finding.
    worst_last = sorted(findings, key=lambda each: SEVERITIES.index(each.severity))
    severity_of = {each: finding.severity for finding in worst_last for each in finding.ids}
    counts = Counter(severity_of.values())
    severities = [f"{counts[each]} {each}" for each in reversed(SEVERITIES) if counts[each]]
    number = len(severity_of)
    return Text(
        "{findings} ({severities}) in {pairs}",
        findings=count(number, "new finding") if is_new else count(number, "open finding"),
        severities=joined(severities, "{before}, {next}"),
        pairs=count(len(chosen), "group and topic", "groups and topics"),
    )


class _Writer(NamedTuple):
    """What writes the items of a message; ``several`` clusters have their names there.

    ``room``: the characters of an item that is one of many; None where they are few.
    """

    message: Message
    alerts: Alerts
    several: bool
    room: int | None

    def item(self, problem: Problem, findings: tuple[Finding, ...]) -> Item:
        """The problem, with the findings that it is sent for."""
        language, url = self.message.language, self.message.url
        cluster, group, topic = map(shown, problem.place)
        severity = worst([problem.severity, *(each.severity for each in findings)])
        owner = _owner(problem.place.consumer_group, self.alerts)
        found = _what(problem, findings)
        summary = Text(
            "{severity} {group} / {topic} ({cluster}): {found}, since {first_seen}, {until}",
            severity=severity,
            group=group,
            topic=topic,
            cluster=cluster,
            found=found,
            first_seen=_time(problem.first_seen),
            until=_until(problem, findings),
        )
        return Item(
            place=problem.place,
            severity=severity,
            is_ongoing=problem.ongoing,
            summary=self._with_owner(language.of(summary), owner),
            explanations=tuple(language.of(text) for text in _explanations(problem, language)),
            findings=findings,
            url=url and f"{url}#{anchor_of(problem.place, several=self.several)}",
            owner=owner,
            short=self._short(problem, severity, found, owner),
        )

    def _short(self, problem: Problem, severity: str, found: str, owner: str) -> tuple[str, ...]:
        """The lines of one of many, within the room: what, since when; who, why, what to do.

        A time of the message's date has no date.
        """
        if self.room is None:
            return ()
        language = self.message.language
        cluster, group, topic = (shown(name, _LONGEST_SHORT_NAME) for name in problem.place)
        start, end = (
            f"{time:%H:%M}" if f"{time:%F}" == self.message.date else f"{time:%F}"
            for time in map(in_utc, (problem.open_since or problem.first_seen, problem.last_seen))
        )
        over = Text("{start} to {end}", start=start, end=end)
        summary = Text(
            "{severity} {group} / {topic}: {found}, {time}",
            severity=severity,
            group=f"{cluster} / {group}" if self.several else group,
            topic=topic,
            found=found,
            time=Text("since {start}", start=start) if problem.ongoing else over,
        )
        room = self.room - len("• \n    \n")
        longest = max(room - len(self._with_owner("", owner)), 1)
        if longest > _SHORTEST_WHAT + _SHORTEST_WHO:
            longest -= _SHORTEST_WHO
        what = self._with_owner(shown(language.of(summary), longest), owner)
        fault = next((each for each in problem.faults if each.lasts), None)
        if fault is None or len(what) >= room:
            return (what,)
        why = Text("{code}: {text}", code=fault.fault, text=fault.evidence)
        if fault.client_ids:
            why = Text("{code}: {text}", code=fault.fault, text=fault.remedy)
            why = Text("{code}: {text}", code=list_of(fault.client_ids, 1), text=why)
        return what, shown(language.of(why), room - len(what))

    def _with_owner(self, summary: str, owner: str) -> str:
        if not owner:
            return summary
        name = shown(owner, _LONGEST_SHORT_NAME)
        return self.message.language("{summary}, owner: {owner}", summary=summary, owner=name)


def _what(problem: Problem, findings: Iterable[Finding]) -> str:
    if all(each.place == problem.place for each in findings):
        return problem.headline
    return Text("{found}, retry topic too", found=problem.headline)


def _until(problem: Problem, findings: Sequence[Finding]) -> Text:
    """Until when it was so, for how much of the time, and since when over the runs before."""
    until = Text("ongoing")
    if not problem.ongoing:
        until = Text("until {time}", time=_time(problem.last_seen))
    if share := of_the_time(min(each.share_of_time for each in findings)):
        until = Text("{until}, for {share} at least", until=until, share=share)
    if problem.open_since is not None and problem.nights_open > 1:
        until = Text(
            "{until}, open since {time} ({nights} nights)",
            until=until,
            time=_time(problem.open_since),
            nights=problem.nights_open,
        )
    return until


def _explanations(problem: Problem, language: Language) -> Iterable[Text]:
    """Why it is, by the faults that explain most of it."""
    lasting = [each for each in problem.faults if each.lasts]
    for fault in lasting[:_MOST_FAULTS]:
        evidence, remedy = (
            shown(language.of(text), _LONGEST_TEXT) for text in (fault.evidence, fault.remedy)
        )
        yield Text("{code}: {text}", code=fault.fault, text=evidence)
        yield Text("Repair: {remedy}", remedy=remedy)


def _time(time: datetime) -> str:
    return f"{in_utc(time):%Y-%m-%d %H:%M} UTC"


def shown(text: str, longest: int = _LONGEST_NAME) -> str:
    r"""A stranger's text on one line, no longer than this; what cannot be printed is spelt out.

    >>> shown("a\nb"), shown("0123456789", 4)
    ('a\\nb', '012…')
    """
    text = visible(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
