"""What a chat is told of a run: JSON as Slack's incoming webhooks take it, and others like them.

Names come from anybody who can reach a broker: they cannot mention a channel, make a link or begin
a line of their own.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from jobs.alerts.digest import Digest, Finding
from jobs.kinds import FROZEN_PROCESS, PERSISTENT, QUEUE_FINDINGS, SEVERITIES, STALLED, worst
from jobs.settings import Alerts
from jobs.text import in_utc, of_the_time, visible
from rebalance_core.english import count

#: Slack cuts a message off at 40,000 characters, and nobody reads a screen of evidence.
_LONGEST_NAME = 120
_LONGEST_TEXT = 400
_MOST_FAULTS = 3
#: What some chats take for a call to everybody even in plain text.
_CALL = re.compile(r"@(?=(?:all|channel|everyone|here)\b)", re.IGNORECASE)


def findings_to_tell(digest: Digest, alerts: Alerts, told: Collection[str]) -> list[Finding]:
    """The findings that are worth a message: lasting, severe enough, and no known issues.

    With ``tell = "NEW"`` those that are new against the published run before, and whose ids are
    not in ``told``, what was told already of runs of this date; else those that are not over.
    """
    severe = SEVERITIES[SEVERITIES.index(alerts.severity) :]
    lasting = [
        each
        for each in digest.findings
        if each.persistence == PERSISTENT and each.severity in severe and not each.is_known
    ]
    if alerts.tell == "NEW":
        return [each for each in lasting if each.status == "NEW" and each.finding_id not in told]
    return [each for each in lasting if each.ongoing]


def make_message(digest: Digest, findings: Sequence[Finding], alerts: Alerts) -> dict[str, Any]:
    """The message about these findings, by group and topic, the worst first."""
    by_pair: dict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for each in findings:
        by_pair[each.pair].append(each)
    worst_first = sorted(by_pair, key=lambda pair: (_rank(by_pair[pair]), pair))
    lines = [_heading(digest, findings, len(by_pair), alerts)]
    for pair in worst_first[: alerts.groups_told]:
        lines += _of_pair(digest, pair, by_pair[pair])
    if (more := len(by_pair) - alerts.groups_told) > 0:
        lines.append(f"and {count(more, 'more group and topic', 'more groups and topics')}")
    return {"text": "\n".join(lines), "unfurl_links": False, "unfurl_media": False}


def _rank(findings: Iterable[Finding]) -> list[int]:
    counts = Counter(each.severity for each in findings)
    return [-counts[severity] for severity in reversed(SEVERITIES)]


def _heading(digest: Digest, findings: Sequence[Finding], pairs: int, alerts: Alerts) -> str:
    date = digest.published.date
    new = "new" if alerts.tell == "NEW" else "open"
    resolved = sum(row["status"] == "RESOLVED" for row in digest.former)
    since = f"; {count(resolved, 'finding')} of the run before resolved" if resolved else ""
    if not findings:
        return f"*Rebalance audit of {date}*: no {new} findings{since}"
    # A queue that was so again after a time has several rows, and is one finding.
    worst_last = sorted(findings, key=lambda each: SEVERITIES.index(each.severity))
    severity_of = {each.finding_id: each.severity for each in worst_last}
    counts = Counter(severity_of.values())
    severities = ", ".join(f"{counts[s]} {s}" for s in reversed(SEVERITIES) if counts[s])
    told = f"{count(len(severity_of), f'{new} finding')} ({severities})"
    of_pairs = count(pairs, "group and topic", "groups and topics")
    return f"*Rebalance audit of {date}*: {told} in {of_pairs}{since}"


def _of_pair(digest: Digest, pair: tuple[str, str, str], findings: Sequence[Finding]) -> list[str]:
    cluster, group, topic = pair
    queues = {
        kind: {e.queue for e in findings if e.kind == kind} for kind in QUEUE_FINDINGS.values()
    }
    told = [
        count(len(of_kind), f"{kind.lower()} queue") for kind, of_kind in queues.items() if of_kind
    ] or ["no queue shows it"]
    severity = worst(each.severity for each in findings)
    first, last = (
        min(each.first_seen for each in findings),
        max(each.last_seen for each in findings),
    )
    until = "ongoing" if any(each.ongoing for each in findings) else f"until {_time(last)}"
    if share := of_the_time(min(each.share_of_time for each in findings)):
        until += f", for {share} at least"
    lines = [
        f"• *{severity}* {escape(group, _LONGEST_NAME)} / {escape(topic, _LONGEST_NAME)} "
        f"({escape(cluster, _LONGEST_NAME)}): {', '.join(told)}, since {_time(first)}, {until}"
    ]
    causes = {cause for each in findings for cause in each.causes}
    if any(each.kind == STALLED for each in findings):
        causes.add(FROZEN_PROCESS)  # a stall has no causes of its own; this one would explain it
    faults = [
        row
        for row in digest.faults
        if (row["cluster"], row["consumer_group"], row["topic"]) == pair and row["fault"] in causes
    ]
    last_of_each = {row["fault"]: row for row in sorted(faults, key=lambda row: row["last_seen"])}
    for fault, row in sorted(last_of_each.items())[:_MOST_FAULTS]:
        lines.append(f"    {fault}: {escape(row['evidence'], _LONGEST_TEXT)}")
        lines.append(f"    Repair: {escape(row['remedy'], _LONGEST_TEXT)}")
    return lines


def _time(time: datetime) -> str:
    return f"{in_utc(time):%Y-%m-%d %H:%M} UTC"


def escape(text: str, longest: int) -> str:
    """A stranger's text as Slack shows it literally, on one line, no longer than this.

    >>> escape("10.0.0.1@<!channel>&co", 99)
    '10.0.0.1@&lt;!channel&gt;&amp;co'
    """
    shown = visible(text if len(text) <= longest else text[: longest - 1] + "…")
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _CALL.sub("@\u200b", shown)
