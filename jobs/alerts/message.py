"""The message about a published run: a heading, then the problems, the worst first.

A problem is a topic of a consumer group. The text here is plain: one line is one line whatever a
name contains. How a name is kept from being a link, a mention or bold is the rule of each service.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.alerts.digest import Digest, Finding, Row
from jobs.kinds import (
    FROZEN_PROCESS,
    PERSISTENT,
    QUEUE_FINDINGS,
    SEVERITIES,
    STALLED,
    badness,
    worst,
)
from jobs.languages.language import ENGLISH, Language
from jobs.leading_events import leading_events
from jobs.settings import Alerts
from jobs.text import in_utc, of_the_time, visible
from rebalance_core.english import count, joined
from rebalance_core.texts import Text

#: Cluster, consumer group and topic.
Pair = tuple[str, str, str]
#: In place of a group and topic: all that a message leaves out.
OTHERS: Pair = ("", "", "")

#: Nobody reads a screen of evidence in a chat.
_LONGEST_NAME = 120
_LONGEST_TEXT = 400
_MOST_FAULTS = 3
_MOST_EVENTS = 3
#: What queues of a kind are called in a count.
QUEUES_OF = {
    "DUPLICATE": "duplicate queue",
    "ORPHANED": "orphaned queue",
    STALLED: "stalled queue",
}
#: In ``group_health``: the topic was judged, so that what is not found is not there.
_AUDITED = "AUDITED"


@dataclass(frozen=True)
class Problem:
    """The findings of one consumer group and topic.

    ``pair`` has the exact names; ``summary`` and ``explanations`` are text of one line each.
    """

    pair: Pair
    severity: str
    is_ongoing: bool
    summary: str
    explanations: tuple[str, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Message:
    """What is sent: ``problems`` are the worst of all, ``left_out`` is the number of the others.

    ``heading`` has no name that a stranger chose. ``resolved`` are the groups and topics whose
    incident is over, for a service that has incidents. All text is in the ``language``.
    """

    date: str
    run_id: str
    heading: str
    problems: tuple[Problem, ...]
    left_out: int
    resolved: tuple[Pair, ...] = ()
    language: Language = ENGLISH
    #: What happened in the cluster, a line each.
    events: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The whole message as text."""
        return self.shortened(self._length)

    def fitted(self, fits: Callable[[list[str]], bool]) -> list[str]:
        """The most lines that fit, whole, and how many problems are left out; the heading always.

        It is better to know of all groups than why the first one is wrong: explanations go first.

        >>> findings = Problem(("C", "G", "T"), "WARNING", True, "G / T", ("why",), ())
        >>> message = Message("2026-11-20", "run", "Audit", (findings, findings), 0)
        >>> message.fitted(lambda lines: len(lines) <= 4)
        ['Audit', '• G / T', '    why', '• G / T']
        >>> message.fitted(lambda lines: len(lines) <= 2)
        ['Audit', 'and 2 more groups and topics']
        """
        kept = self._length
        while kept and not fits(self.shortened(kept)):
            kept -= 1
        return self.shortened(kept)

    def shortened(self, kept: int) -> list[str]:
        """The heading, so many lines of the problems, and how many problems are left out.

        Events come first, as long as there is room for any problem.
        """
        lines = [self.heading, *(f"• {each}" for each in self.events if kept)]
        explanations = max(0, kept - len(self.problems))
        for each in self.problems[:kept]:
            explained = each.explanations[:explanations]
            explanations -= len(explained)
            lines += [f"• {each.summary}", *(f"    {why}" for why in explained)]
        if left_out := self.left_out + len(self.problems[kept:]):
            others = count(left_out, "more group and topic", "more groups and topics")
            lines.append(self.language("and {others}", others=others))
        return lines

    @property
    def _length(self) -> int:
        return sum(1 + len(each.explanations) for each in self.problems)


def findings_to_send(
    digest: Digest, alerts: Alerts, delivered: Collection[str], severity: str | None = None
) -> list[Finding]:
    """The findings that are worth a message: lasting, severe enough, and no known issues.

    With ``send = "NEW"`` those that are new against the published run before, and whose ids are
    not in ``delivered``, those of runs of this date; else those that are not over.
    ``severity`` goes before that of the settings.
    """
    severe = SEVERITIES[SEVERITIES.index(severity or alerts.severity) :]
    lasting = [
        each
        for each in digest.findings
        if each.persistence == PERSISTENT and each.severity in severe and not each.is_known
    ]
    if alerts.send == "NEW":
        new = [each for each in lasting if each.status == "NEW"]
        return [each for each in new if each.finding_id not in delivered]
    return [each for each in lasting if each.ongoing]


def resolved_pairs(digest: Digest, pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Those of the groups and topics that were judged, and of which nothing lasting is left.

    A topic that was not judged is not resolved. ``OTHERS`` are when
    whatever is open is among the pairs.
    """
    pairs = set(pairs)
    judged = {_pair_of(row) for row in digest.health if row["coverage"] == _AUDITED}
    still = {
        each.pair
        for each in digest.findings
        if each.ongoing and each.persistence == PERSISTENT and not each.is_known
    }
    if still <= pairs:
        judged.add(OTHERS)
    return tuple(sorted(pairs & judged - still))


def make_message(
    digest: Digest, findings: Sequence[Finding], alerts: Alerts, language: Language = ENGLISH
) -> Message:
    """The message about these findings, by group and topic, the worst first."""
    by_pair: dict[Pair, list[Finding]] = defaultdict(list)
    for each in findings:
        by_pair[each.pair].append(each)
    minutes = {_pair_of(row): _queue_minutes(row) for row in digest.health}
    worst_first = sorted(
        by_pair, key=lambda pair: (_badness(by_pair[pair], minutes.get(pair, 0.0)), pair)
    )
    shown = worst_first[: alerts.groups_shown]
    return Message(
        date=digest.published.date,
        run_id=digest.published.run_id,
        heading=language.of(_heading(digest, findings, len(by_pair), alerts)),
        problems=tuple(_problem(digest, pair, by_pair[pair], language) for pair in shown),
        left_out=len(by_pair) - len(shown),
        language=language,
        events=_events(digest, language),
    )


def _events(digest: Digest, language: Language) -> tuple[str, ...]:
    """The events that lead, a line each."""
    leading, _ = leading_events(digest.published.summary, _MOST_EVENTS)
    return tuple(shown(language.of(each.headline), _LONGEST_TEXT) for each in leading)


def _badness(findings: Sequence[Finding], queue_minutes: float) -> tuple[int, bool, float, int]:
    return badness(
        worst(each.severity for each in findings),
        ongoing=any(each.ongoing for each in findings),
        queue_minutes=queue_minutes,
        queues=len({(each.kind, each.queue) for each in findings if each.queue is not None}),
    )


def _queue_minutes(row: Row) -> float:
    """The minutes of queues with no owner or with several, of a row of ``group_health``."""
    return float(row["orphan_queue_minutes"] + row["duplicate_queue_minutes"])


def _heading(digest: Digest, findings: Sequence[Finding], pairs: int, alerts: Alerts) -> Text:
    """The first line. In every language it has "Rebalance audit", a keyword that robots ask for."""
    found = _found(findings, pairs, is_new=alerts.send == "NEW")
    resolved = sum(row["status"] == "RESOLVED" for row in digest.former)
    if resolved:
        of_before = count(resolved, "finding")
        found = Text(
            "{found}; {findings} of the run before resolved", found=found, findings=of_before
        )
    return Text("Rebalance audit of {date}: {found}", date=digest.published.date, found=found)


def _found(findings: Sequence[Finding], pairs: int, *, is_new: bool) -> Text:
    if not findings:
        return Text("no new findings") if is_new else Text("no open findings")
    # A queue that was so again after a time has several rows, and is one finding.
    worst_last = sorted(findings, key=lambda each: SEVERITIES.index(each.severity))
    severity_of = {each.finding_id: each.severity for each in worst_last}
    counts = Counter(severity_of.values())
    severities = [f"{counts[each]} {each}" for each in reversed(SEVERITIES) if counts[each]]
    number = len(severity_of)
    return Text(
        "{findings} ({severities}) in {pairs}",
        findings=count(number, "new finding") if is_new else count(number, "open finding"),
        severities=joined(severities, "{before}, {next}"),
        pairs=count(pairs, "group and topic", "groups and topics"),
    )


def _problem(
    digest: Digest, pair: Pair, findings: Sequence[Finding], language: Language
) -> Problem:
    cluster, group, topic = pair
    queues = {
        kind: {e.queue for e in findings if e.kind == kind} for kind in QUEUE_FINDINGS.values()
    }
    found = [count(len(of_kind), QUEUES_OF[kind]) for kind, of_kind in queues.items() if of_kind]
    severity = worst(each.severity for each in findings)
    is_ongoing = any(each.ongoing for each in findings)
    summary = Text(
        "{severity} {group} / {topic} ({cluster}): {found}, since {first_seen}, {until}",
        severity=severity,
        group=shown(group),
        topic=shown(topic),
        cluster=shown(cluster),
        found=joined(found, "{before}, {next}") or Text("no queue shows it"),
        first_seen=_time(min(each.first_seen for each in findings)),
        until=_until(findings, is_ongoing=is_ongoing),
    )
    return Problem(
        pair=pair,
        severity=severity,
        is_ongoing=is_ongoing,
        summary=language.of(summary),
        explanations=tuple(map(language.of, _explanations(digest, pair, findings, language))),
        findings=tuple(findings),
    )


def _until(findings: Sequence[Finding], *, is_ongoing: bool) -> Text:
    """Until when it was so, for how much of the time, and since when over the runs before."""
    until = Text("ongoing")
    if not is_ongoing:
        until = Text("until {time}", time=_time(max(each.last_seen for each in findings)))
    if share := of_the_time(min(each.share_of_time for each in findings)):
        until = Text("{until}, for {share} at least", until=until, share=share)
    if (nights := max(each.nights_open or 0 for each in findings)) > 1:
        since = min(each.open_since for each in findings if each.open_since is not None)
        until = Text(
            "{until}, open since {time} ({nights} nights)",
            until=until,
            time=_time(since),
            nights=nights,
        )
    return until


def _explanations(
    digest: Digest, pair: Pair, findings: Sequence[Finding], language: Language
) -> Iterable[Text]:
    causes = {cause for each in findings for cause in each.causes}
    if any(each.kind == STALLED for each in findings):
        causes.add(FROZEN_PROCESS)  # a stall names no causes; this one would explain it
    faults = [row for row in digest.faults if _pair_of(row) == pair and row["fault"] in causes]
    last_of_each = {row["fault"]: row for row in sorted(faults, key=lambda row: row["last_seen"])}
    for fault, row in sorted(last_of_each.items())[:_MOST_FAULTS]:
        evidence, remedy = (
            shown(language.of(row[name]), _LONGEST_TEXT) for name in ("evidence", "remedy")
        )
        yield Text("{code}: {text}", code=fault, text=evidence)
        yield Text("Repair: {remedy}", remedy=remedy)


def _pair_of(row: Row) -> Pair:
    return row["cluster"], row["consumer_group"], row["topic"]


def _time(time: datetime) -> str:
    return f"{in_utc(time):%Y-%m-%d %H:%M} UTC"


def shown(text: str, longest: int = _LONGEST_NAME) -> str:
    r"""A stranger's text on one line, no longer than this; what cannot be printed is spelt out.

    >>> shown("a\nb"), shown("0123456789", 4)
    ('a\\nb', '012…')
    """
    text = visible(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
