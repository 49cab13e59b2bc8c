"""What a message says of a published run: a heading, then the problems, the worst first.

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
from jobs.settings import Alerts
from jobs.text import in_utc, of_the_time, visible
from rebalance_core.english import count

#: Cluster, consumer group and topic.
Pair = tuple[str, str, str]
#: In place of a group and topic: all that a message leaves out.
OTHERS: Pair = ("", "", "")

#: Nobody reads a screen of evidence in a chat.
_LONGEST_NAME = 120
_LONGEST_TEXT = 400
_MOST_FAULTS = 3
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
    incident is over, for a service that has incidents.
    """

    date: str
    run_id: str
    heading: str
    problems: tuple[Problem, ...]
    left_out: int
    resolved: tuple[Pair, ...] = ()

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
        """The heading, so many lines of the problems, and how many problems are left out."""
        lines, explanations = [self.heading], max(0, kept - len(self.problems))
        for each in self.problems[:kept]:
            explained = each.explanations[:explanations]
            explanations -= len(explained)
            lines += [f"• {each.summary}", *(f"    {why}" for why in explained)]
        if left_out := self.left_out + len(self.problems[kept:]):
            lines.append(f"and {count(left_out, 'more group and topic', 'more groups and topics')}")
        return lines

    @property
    def _length(self) -> int:
        return sum(1 + len(each.explanations) for each in self.problems)


def findings_to_tell(
    digest: Digest, alerts: Alerts, delivered: Collection[str], severity: str | None = None
) -> list[Finding]:
    """The findings that are worth a message: lasting, severe enough, and no known issues.

    With ``tell = "NEW"`` those that are new against the published run before, and whose ids are
    not in ``delivered``, those of runs of this date; else those that are not over.
    ``severity`` goes before that of the settings.
    """
    severe = SEVERITIES[SEVERITIES.index(severity or alerts.severity) :]
    lasting = [
        each
        for each in digest.findings
        if each.persistence == PERSISTENT and each.severity in severe and not each.is_known
    ]
    if alerts.tell == "NEW":
        new = [each for each in lasting if each.status == "NEW"]
        return [each for each in new if each.finding_id not in delivered]
    return [each for each in lasting if each.ongoing]


def resolved_pairs(digest: Digest, pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Those of the groups and topics that were judged, and of which nothing lasting is left.

    Of a topic that was not judged nothing can be said: it is not resolved. ``OTHERS`` are when
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


def make_message(digest: Digest, findings: Sequence[Finding], alerts: Alerts) -> Message:
    """The message about these findings, by group and topic, the worst first."""
    by_pair: dict[Pair, list[Finding]] = defaultdict(list)
    for each in findings:
        by_pair[each.pair].append(each)
    minutes = {_pair_of(row): _queue_minutes(row) for row in digest.health}
    worst_first = sorted(
        by_pair, key=lambda pair: (_badness(by_pair[pair], minutes.get(pair, 0.0)), pair)
    )
    shown = worst_first[: alerts.groups_told]
    return Message(
        date=digest.published.date,
        run_id=digest.published.run_id,
        heading=_heading(digest, findings, len(by_pair), alerts),
        problems=tuple(_problem(digest, pair, by_pair[pair]) for pair in shown),
        left_out=len(by_pair) - len(shown),
    )


def _badness(findings: Sequence[Finding], queue_minutes: float) -> tuple[int, bool, float, int]:
    return badness(
        worst(each.severity for each in findings),
        ongoing=any(each.ongoing for each in findings),
        queue_minutes=queue_minutes,
        queues=len({(each.kind, each.queue) for each in findings if each.queue is not None}),
    )


def _queue_minutes(row: Row) -> float:
    """The minutes of queues with no owner or with several, of a row of ``group_health``."""
    return sum(row.get(f"{of}_queue_minutes") or 0.0 for of in ("orphan", "duplicate"))


def _heading(digest: Digest, findings: Sequence[Finding], pairs: int, alerts: Alerts) -> str:
    date = digest.published.date
    new = "new" if alerts.tell == "NEW" else "open"
    resolved = sum(row["status"] == "RESOLVED" for row in digest.former)
    since = f"; {count(resolved, 'finding')} of the run before resolved" if resolved else ""
    if not findings:
        return f"Rebalance audit of {date}: no {new} findings{since}"
    # A queue that was so again after a time has several rows, and is one finding.
    worst_last = sorted(findings, key=lambda each: SEVERITIES.index(each.severity))
    severity_of = {each.finding_id: each.severity for each in worst_last}
    counts = Counter(severity_of.values())
    severities = ", ".join(f"{counts[s]} {s}" for s in reversed(SEVERITIES) if counts[s])
    found = f"{count(len(severity_of), f'{new} finding')} ({severities})"
    of_pairs = count(pairs, "group and topic", "groups and topics")
    return f"Rebalance audit of {date}: {found} in {of_pairs}{since}"


def _problem(digest: Digest, pair: Pair, findings: Sequence[Finding]) -> Problem:
    cluster, group, topic = pair
    queues = {
        kind: {e.queue for e in findings if e.kind == kind} for kind in QUEUE_FINDINGS.values()
    }
    found = [
        count(len(of_kind), f"{kind.lower()} queue") for kind, of_kind in queues.items() if of_kind
    ] or ["no queue shows it"]
    severity = worst(each.severity for each in findings)
    first, last = (
        min(each.first_seen for each in findings),
        max(each.last_seen for each in findings),
    )
    is_ongoing = any(each.ongoing for each in findings)
    until = "ongoing" if is_ongoing else f"until {_time(last)}"
    if share := of_the_time(min(each.share_of_time for each in findings)):
        until += f", for {share} at least"
    if (nights := max(each.nights_open or 0 for each in findings)) > 1:
        since = min(each.open_since for each in findings if each.open_since is not None)
        until += f", open since {_time(since)} ({nights} nights)"
    names = f"{shown(group)} / {shown(topic)} ({shown(cluster)})"
    return Problem(
        pair=pair,
        severity=severity,
        is_ongoing=is_ongoing,
        summary=f"{severity} {names}: {', '.join(found)}, since {_time(first)}, {until}",
        explanations=tuple(_explanations(digest, pair, findings)),
        findings=tuple(findings),
    )


def _explanations(digest: Digest, pair: Pair, findings: Sequence[Finding]) -> Iterable[str]:
    causes = {cause for each in findings for cause in each.causes}
    if any(each.kind == STALLED for each in findings):
        causes.add(FROZEN_PROCESS)  # a stall has no causes of its own; this one would explain it
    faults = [row for row in digest.faults if _pair_of(row) == pair and row["fault"] in causes]
    last_of_each = {row["fault"]: row for row in sorted(faults, key=lambda row: row["last_seen"])}
    for fault, row in sorted(last_of_each.items())[:_MOST_FAULTS]:
        yield f"{fault}: {shown(row['evidence'], _LONGEST_TEXT)}"
        yield f"Repair: {shown(row['remedy'], _LONGEST_TEXT)}"


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
