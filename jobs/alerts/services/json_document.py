"""JSON for your programs, and for chats that read ``text``: Mattermost, Rocket.Chat.

All values are exact. ``text`` is the message as a chat shows it: what a stranger chose is between
``` marks, where neither Slack's markup nor Markdown counts.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ...texts.shown import iso
from ..delivery import Refusal
from ..message import Item, Message
from ..webhook import HttpRequest, Reply
from .service import Access, Service, code_refusal, inert, status_refusal

#: Rocket.Chat shows 5,000 characters, Mattermost 16,383.
_LONGEST = 4_800
_FENCE = "```"


def _requests(message: Message, access: Access, _now: datetime) -> Iterable[HttpRequest]:
    yield HttpRequest(access.url, document(message))


def document(message: Message) -> dict[str, Any]:
    """The message as a JSON object: its text, and each problem with its findings."""
    return {
        "text": message.fitted(_text, _LONGEST, len),
        "language": message.language.code,
        "heading": message.heading,
        "date": message.date,
        "run_id": message.run_id,
        "state": message.state,
        "missing": message.missing or None,
        "problems": [_problem(item) for item in message.items],
        "problems_left_out": message.left_out,
        "report_url": message.url or None,
    }


def _text(lines: Sequence[str]) -> str:
    heading, *others = lines
    if not others:
        return heading
    literal = [inert(line).replace(_FENCE, "`\u200b``") for line in others]
    return "\n".join([heading, _FENCE, *literal, _FENCE])


def _problem(item: Item) -> dict[str, Any]:
    return {
        **item.place._asdict(),
        "severity": item.severity,
        "ongoing": item.is_ongoing,
        "summary": item.summary,
        "explanations": list(item.explanations),
        "report_url": item.url or None,
        "owner": item.owner or None,
        "findings": [
            {
                "finding_id": finding_id,
                "kind": finding.kind,
                "topic": finding.place.topic,
                "broker_name": queue and queue[0],
                "queue_id": queue and queue[1],
                "severity": finding.severity,
                "status": finding.status,
                "ongoing": finding.ongoing,
                "causes": list(finding.causes),
                "first_seen": iso(finding.first_seen),
                "last_seen": iso(finding.last_seen),
                "share_of_time": finding.share_of_time,
                "open_since": finding.open_since and iso(finding.open_since),
                "nights_open": finding.nights_open,
            }
            for finding in item.findings
            for finding_id, queue in finding.rows
        ],
    }


def _refusal(answer: Reply) -> Refusal | None:
    """An error in a 200: a program may say it as the chats do."""
    values = answer.values
    if any(values.get(name) is False for name in ("ok", "success")):
        return Refusal("the answer says that it failed")
    if any(name in values for name in ("errcode", "StatusCode")):
        return code_refusal(("errcode", "StatusCode"), {}, (), answer)
    return status_refusal(answer)


JSON = Service((), _requests, _refusal)
