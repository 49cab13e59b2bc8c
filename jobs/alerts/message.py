"""The message about a published run: a heading, then the problems, the worst first.

A problem is a topic of a consumer group. The text here is plain: one line is one line whatever a
name contains. How a name is kept from being a link, a mention or bold is the rule of each service.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import starmap
from typing import NamedTuple

from rebalance_core.english import agreeing, count, list_of, with_commas
from rebalance_core.grouping import grouped
from rebalance_core.message_queue import is_own_retry_topic
from rebalance_core.texts import Text

from ..config.settings import Alerts
from ..declared.coverage import is_complete
from ..declared.kinds import CRITICAL, NOT_AUDITED, PERSISTENT, SEVERITIES, WARNING, Kind, worst
from ..languages.language import Language
from ..reports.problems import Problem, cause_line, heads_of, read_problems, remedies_of
from ..reports.run_findings import LeadingEvent, PlaceFinding, leading_events, read_findings
from ..reports.tables import Place, PublishedTables, anchor_of, place_of
from ..reports.words import begin
from ..storage import PublishedRun
from ..texts.shown import share_in_words
from ..texts.waiting import WaitingMessages
from ..verdict.verdict import RunVerdict, read_verdict
from .delivered import Delivered, DeliveredFinding
from .services.text_message import (
    MISSING,
    OTHERS,
    PROBLEM,
    WHY,
    Cause,
    Item,
    Message,
    shown,
)

#: Nobody reads a screen of evidence in a chat; a remedy is whole, unless a stranger made it longer.
_LONGEST_TEXT = 400
_LONGEST_REMEDY = 2_000
_LONGEST_GAP = 250
_MOST_FAULTS = 3
_MOST_EVENTS = 3
_MOST_ENDED = 3
_LONGEST_SHORT_NAME = 40


@dataclass(frozen=True)
class Digest:
    """A published run as alerts see it.

    ``judged`` are the groups and topics that were audited as far as they can be. Of the findings
    that were open in the run before ``resolved`` has the ids of those that are over, ``left_open``
    the groups and topics of those that were not audited this time.
    """

    published: PublishedRun
    verdict: RunVerdict
    problems: tuple[Problem, ...]
    by_place: Mapping[Place, Sequence[PlaceFinding]]
    judged: frozenset[Place]
    resolved: frozenset[str]
    left_open: frozenset[Place]
    events: tuple[LeadingEvent, ...]

    def about(self, groups: str) -> "Digest":
        """The part about the groups that a pattern matches."""
        matches = re.compile(groups).fullmatch
        problems = tuple(
            problem for problem in self.problems if matches(problem.place.consumer_group)
        )
        return replace(self, verdict=self.verdict.about(matches), problems=problems)

    @property
    def findings(self) -> list[PlaceFinding]:
        """The findings, of the worst problem first."""
        return [finding for problem in self.problems for finding in self.by_place[problem.place]]

    def seen_by(self, delivered: Delivered, *, known_are_over: bool) -> dict[str, DeliveredFinding]:
        """The findings that a destination was sent, as this run shows them.

        Those of a run for which nothing is said of them stay as they are.
        """
        lasting = (finding for finding in self.findings if _lasts(finding))
        shown = grouped(
            (id_, finding) for finding in lasting for id_ in finding.ids if id_ in delivered
        )
        judged = self.judged - self.left_open
        return {
            id_: each.after(
                self.published.date,
                shown.get(id_, ()),
                is_judged=id_ in self.resolved or each.place in judged,
                known_are_over=known_are_over,
            )
            for id_, each in delivered.items()
        }


def read_digest(published: PublishedRun, tables: PublishedTables) -> Digest:
    """Reads the run; InputError where one of its tables is gone."""
    health = tables.read("group_health", [*Place._fields, "coverage"]).to_pylist()
    former = tables.read("former_findings", [*Place._fields, "status", "finding_id"]).to_pylist()
    found = read_findings(tables)
    problems = tuple(read_problems(tables))
    return Digest(
        published,
        read_verdict(tables),
        problems,
        {problem.place: tuple(found.get(problem.place, ())) for problem in problems},
        frozenset(place_of(row) for row in health if is_complete(row["coverage"])),
        frozenset(row["finding_id"] for row in former if row["status"] == "RESOLVED"),
        frozenset(place_of(row) for row in former if row["status"] == NOT_AUDITED),
        tuple(leading_events(tables, _MOST_EVENTS)[0]),
    )


#: The problems that a message is about, the worst first, each with the findings that it is for.
Chosen = Sequence[tuple[Problem, tuple[PlaceFinding, ...]]]


def problems_to_send(
    digest: Digest, alerts: Alerts, delivered: Delivered, severity: str | None = None
) -> Chosen:
    """The findings that are worth a message: lasting, severe enough, and no known issues.

    With ``send = "NEW"`` those that are not among the ``delivered``; else those that are not over.
    ``severity`` goes before that of the settings. A group's retry topic has the faults of the
    group: it goes with the worst of its other topics.
    """
    severe = SEVERITIES[SEVERITIES.index(severity or alerts.severity) :]
    date = digest.published.date

    def wanted(each: PlaceFinding) -> PlaceFinding | None:
        if each.persistence != PERSISTENT or each.known_issue or each.severity not in severe:
            return None
        if alerts.send == "NEW":
            sent = ((id_, delivered.get(id_)) for id_ in each.ids)
            return each.without({id_ for id_, of in sent if of is not None and of.has(each, date)})
        return each if each.ongoing else None

    found = [
        (problem, finding)
        for problem in digest.problems
        for finding in filter(None, map(wanted, digest.by_place[problem.place]))
    ]
    heads = heads_of(problem for problem, _ in found)
    by_head = grouped((heads[problem.place].place, finding) for problem, finding in found)
    return [(heads[place], tuple(findings)) for place, findings in by_head.items()]


def _lasts(finding: PlaceFinding) -> bool:
    """True if it lasts, in this run or with those before."""
    return finding.persistence == PERSISTENT or finding.status == "PERSISTING"


def ids_of(chosen: Chosen) -> set[str]:
    """The ids of the findings that a message is for."""
    return {id_ for _, findings in chosen for finding in findings for id_ in finding.ids}


def resolved_places(digest: Digest, places: Iterable[Place]) -> tuple[Place, ...]:
    """The places that were judged, and of which nothing lasting is left.

    A topic that was not judged is not resolved, nor is one of a group of whose retry topic
    something is left: it may be a part of the incident. ``OTHERS`` is resolved when all that is
    open is among the places.
    """
    places, judged = set(places), set(digest.judged)
    if digest.verdict.is_complete:
        judged.add(MISSING)
    still = _still_open(digest)
    retry_groups = {place[:2] for place in still if _is_of_retries(place)}
    held = {place for place in places if place[:2] in retry_groups}
    shown_with = {place[:2] for place in held}
    if all(
        place in places or (_is_of_retries(place) and place[:2] in shown_with) for place in still
    ):
        judged.add(OTHERS)
    return tuple(sorted(places & judged - still - held))


def _is_of_retries(place: Place) -> bool:
    return is_own_retry_topic(place.topic, place.consumer_group)


def _still_open(digest: Digest) -> set[Place]:
    """The places of what is open: lasting and no known issue, or not audited this time."""
    open_now = (
        finding for finding in digest.findings if finding.ongoing and not finding.known_issue
    )
    return {finding.place for finding in open_now if _lasts(finding)} | digest.left_open


def make_message(
    digest: Digest, chosen: Chosen, alerts: Alerts, language: Language, delivered: Delivered
) -> Message:
    """The message about these problems, the worst first. Events go before them.

    ``delivered``: what its reader was sent before, as this run shows it.
    """
    shown_alone = chosen[: alerts.groups_shown]
    message = Message(
        date=digest.published.date,
        run_id=digest.published.run_id,
        heading=language.of(_heading(digest, chosen, alerts, delivered)),
        left_out=len(chosen) - len(shown_alone),
        url=(alerts.report_url or "").replace("{date}", digest.published.date),
        language=language,
        events=_events(digest, language),
        ended=_ended(digest, delivered, language),
        missing=_missing(digest, language),
        state=digest.verdict.state,
    )
    several = len({place.cluster for place in digest.judged}) > 1
    writer = _Writer(message, alerts, several, delivered, digest.by_place)
    items = tuple(starmap(writer.item, chosen))
    by_kind = grouped(
        (problem.main_kind, (problem, item))
        for (problem, _), item in zip(chosen, items, strict=True)
    )
    alone = items[: len(shown_alone)]
    causes = tuple(writer.cause(kind, of, alone) for kind, of in by_kind.items())
    return replace(message, items=alone, causes=causes)


def _events(digest: Digest, language: Language) -> tuple[str, ...]:
    """The events that lead, a line each; beside one of several groups none of one alone."""
    shared = [event for event in digest.events if event.groups_touched > 1]
    leading = (language.of(event.headline) for event in shared or digest.events)
    return tuple(shown(headline, _LONGEST_TEXT) for headline in leading)


def _owner(group: str, alerts: Alerts) -> str:
    """The name of whom a group belongs to; empty: nobody is named.

    >>> _owner("ORDER_PAID", Alerts(owners={"ORDER_.*": "team orders", ".*": "ops"}))
    'team orders'
    """
    matching = (name for pattern, name in alerts.owners.items() if re.fullmatch(pattern, group))
    return next(matching, "")


def _ended(digest: Digest, delivered: Delivered, language: Language) -> str:
    """The groups with nothing left of what is over, and its reader does not know that yet."""
    still = {place.consumer_group for place in _still_open(digest)}
    still |= {sent.place.consumer_group for sent in delivered.values() if sent.over is None}
    ended = {sent.place.consumer_group for sent in _over(digest, delivered)} - still
    names = [shown(group, _LONGEST_SHORT_NAME) for group in sorted(ended)]
    if not names:
        return ""
    groups = list_of(names, _MOST_ENDED, ("more group", "more groups"))
    return language("Resolved: {groups}", groups=groups)


def _over(digest: Digest, delivered: Delivered) -> list[DeliveredFinding]:
    """The findings that are over, and not back, of which that is still to be said."""
    there = (finding for finding in digest.findings if finding.ongoing and _lasts(finding))
    is_back = {id_ for finding in there for id_ in finding.ids}
    return [
        sent
        for id_, sent in delivered.items()
        if sent.over is not None and not sent.end_is_sent and id_ not in is_back
    ]


def _missing(digest: Digest, language: Language) -> str:
    """The gaps of the run, and what was not audited, in one line."""
    verdict = digest.verdict
    if not verdict.missing:
        return ""
    first = shown(language.of(verdict.missing[0]), _LONGEST_GAP)
    if more := len(verdict.missing) - 1:
        gaps = count(more, "more gap")
        return language("Not complete: {first}; and {more}", first=first, more=gaps)
    return language("Not complete: {first}", first=first)


def missing_id(digest: Digest) -> str:
    """The id in a note of a message about what is missing of a run."""
    text = "\n".join(digest.verdict.missing)
    return f"missing-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def says_what_is_missing(
    digest: Digest, alerts: Alerts, delivered: Delivered, severity: str | None = None
) -> bool:
    """True if something was not read or not audited, and has to be said: as a WARNING is.

    With ``send = "NEW"`` once for a date.
    """
    if digest.verdict.is_complete or (severity or alerts.severity) == CRITICAL:
        return False
    sent = delivered.get(missing_id(digest))
    return alerts.send != "NEW" or sent is None or sent.date < digest.published.date


def sent_missing(digest: Digest) -> dict[str, DeliveredFinding]:
    """The entry of what is missing of the run, which was sent now."""
    return {missing_id(digest): DeliveredFinding(MISSING, WARNING, digest.published.date)}


def _heading(digest: Digest, chosen: Chosen, alerts: Alerts, delivered: Delivered) -> Text:
    """The first line. In every language it has "Rebalance audit", a keyword that robots ask for."""
    found = _found(digest, chosen, delivered, is_new=alerts.send == "NEW")
    if over := len(_over(digest, delivered)):
        found = Text("{found}; {findings} resolved", found=found, findings=count(over, "finding"))
    if not digest.verdict.is_complete:
        found = Text("{found}; not everything was read and audited", found=found)
    return Text("Rebalance audit of {date}: {found}", date=digest.published.date, found=found)


def _sent_before(
    findings: Iterable[PlaceFinding], delivered: Delivered, date: str
) -> list[DeliveredFinding]:
    """The deliveries of these findings, which go on since."""
    sent = ((delivered.get(id_), finding) for finding in findings for id_ in finding.ids)
    return [of for of, finding in sent if of is not None and of.is_of(finding, date)]


def _found(digest: Digest, chosen: Chosen, delivered: Delivered, *, is_new: bool) -> str:
    """The number of topics, as the page counts them: a retry topic is one."""
    if not chosen:
        return Text("no new findings") if is_new else Text("no open findings")
    every = [finding for _, findings in chosen for finding in findings]
    places = {finding.place for finding in every}
    counts = Counter(
        problem.worst_severity for problem in digest.problems if problem.place in places
    )
    severities = [
        f"{counts[severity]} {severity}" for severity in reversed(SEVERITIES) if counts[severity]
    ]
    template = "{topics} of {groups} [has|have] open findings ({severities})"
    if is_new:
        is_worse = _sent_before(every, delivered, digest.published.date)
        new_template = "{topics} of {groups} [has|have] new findings ({severities})"
        worse_template = "{topics} of {groups} [has|have] new or worse findings ({severities})"
        template = worse_template if is_worse else new_template
    found = agreeing(
        len(places),
        template,
        topics=count(len(places), "topic"),
        groups=count(len({place[:2] for place in places}), "group"),
        severities=with_commas(severities),
    )
    # The time of the oldest has its place in the lines: a subject of a mail is short.
    waiting = (problem.shown_waiting for problem in digest.problems if problem.place in places)
    return _with_waiting(found, (each._replace(first_seen=None) for each in waiting))


class _Writer(NamedTuple):
    """Writer of the items of a message; ``several`` clusters have their names there."""

    message: Message
    alerts: Alerts
    several: bool
    delivered: Delivered
    by_place: Mapping[Place, Sequence[PlaceFinding]]

    def item(self, problem: Problem, findings: tuple[PlaceFinding, ...]) -> Item:
        """The problem, with the findings that it is sent for."""
        language, url = self.message.language, self.message.url
        cluster, group, topic = map(shown, problem.place)
        severity = worst([problem.severity, *(finding.severity for finding in findings)])
        owner = _owner(problem.place.consumer_group, self.alerts)
        what = problem.what
        if any(finding.place != problem.place for finding in findings):
            what = Text("{found}, also on the retry topic", found=what)
        time, note = problem.times(_time), self._note(problem, findings)
        if share := share_in_words(min(finding.share_of_time for finding in findings)):
            time = Text("{time}, for at least {share}", time=time, share=share)
        found = Text(
            "{now}: {severity} {group} / {topic} ({cluster}): {found}, {time}",
            now=begin(problem.now),
            severity=problem.severity,
            group=group,
            topic=topic,
            cluster=cluster,
            found=what,
            time=time if note is None else Text("{text}, {note}", text=time, note=note),
        )
        waiting = problem.shown_waiting
        brief = Text(
            "{now}: {severity} {group} / {topic}: {found}",
            now=begin(problem.now),
            severity=problem.severity,
            group=f"{cluster} / {group}" if self.several else group,
            topic=topic,
            found=what,
        )
        if note is not None:
            brief = Text("{text}, {note}", text=brief, note=note)
        summary, brief_one = (
            language.of(text)
            for text in (
                _with_waiting(found, [waiting]),
                _with_waiting(brief, [waiting._replace(per_minute=0.0, first_seen=None)]),
            )
        )
        if owner:
            name = shown(owner, _LONGEST_SHORT_NAME)
            summary, brief_one = (
                language("{summary}; owner: {owner}", summary=each, owner=name)
                for each in (summary, brief_one)
            )
        return Item(
            place=problem.place,
            severity=severity,
            is_ongoing=problem.ongoing,
            summary=summary,
            explanations=tuple(language.of(text) for text in _explanations(problem, language)),
            findings=findings,
            url=url and f"{url}#{anchor_of(problem.place, several=self.several)}",
            owner=owner,
            brief=brief_one,
        )

    def _note(self, problem: Problem, findings: Sequence[PlaceFinding]) -> Text | None:
        """The words for what its reader was sent of it before, where there are any to be said."""
        date = self.message.date
        if before := _sent_before(findings, self.delivered, date):
            severity = worst(delivered.severity for delivered in before)
            if severity != worst(finding.severity for finding in findings):
                return Text("sent as {severity} before", severity=severity)
        elif problem.nights_open > 1 and not _sent_before(
            self.by_place[problem.place], self.delivered, date
        ):
            return Text("first sent now")
        return None

    def cause(
        self, kind: Kind, of: Sequence[tuple[Problem, Item]], alone: Container[Item]
    ) -> Cause:
        """The problems of one cause; those whose items are ``alone`` have a line each below the
        title, which names the groups of all.
        """
        if len(of) == 1:
            item = of[0][1]
            return Cause.of_one(item) if item in alone else Cause(item.summary, 1, ())
        language, problems = self.message.language, [problem for problem, _ in of]
        most = self.alerts.groups_shown
        title = cause_line(kind, problems, several=self.several, most=most, shown=shown)
        repairs = (language.of(_repair(each, language)) for each, _ in remedies_of(problems))
        lines = [(WHY, f"    {repair}") for repair in repairs]
        for each in (each for _, each in of if each in alone):
            lines += [(PROBLEM, f"    {each.brief}"), *each.link]
        return Cause(language.of(title), len(of), tuple(lines))


def _with_waiting(what: str, every: Iterable[WaitingMessages]) -> str:
    """The text, and the number of messages that wait there."""
    waiting = WaitingMessages.of_all(every).text_of_times(_time)
    return Text("{what}; {waiting}", what=what, waiting=waiting) if waiting else what


def _explanations(problem: Problem, language: Language) -> Iterable[Text]:
    """The reasons, by the faults that explain most of it."""
    lasting = [shown_fault for shown_fault in problem.faults if shown_fault.lasts]
    for fault in lasting[:_MOST_FAULTS]:
        evidence = shown(language.of(fault.evidence), _LONGEST_TEXT)
        yield Text("{code}: {text}", code=fault.fault, text=evidence)
        yield _repair(fault.remedy, language)


def _repair(remedy: str, language: Language) -> Text:
    return Text("Repair: {remedy}", remedy=shown(language.of(remedy), _LONGEST_REMEDY))


def _time(time: datetime) -> Text:
    return Text("{at:day_minuteZ}", at=time)
