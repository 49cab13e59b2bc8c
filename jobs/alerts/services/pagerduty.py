"""PagerDuty: incidents by the Events API, version 2.

https://developer.pagerduty.com/docs/events-api-v2/trigger-events: an event has a routing key (the
integration key of a service), an action, a ``dedup_key`` that makes events one incident, and a
summary of up to 1,024 characters; 202 is the answer to an event that was taken, 400 says that it
is not valid, 429 that there were too many.

An incident is a topic of a consumer group. It is triggered by its findings, and resolved when the
topic is audited and nothing that lasts is left of it. Groups beyond the setting ``groups_shown``
have one incident together (``OTHERS``); what was not read or not audited is another (``MISSING``).
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ...reports.tables import Place
from ...texts.shown import iso
from .service import NOT_ITS, Access, HttpRequest, Refusal, Reply, Service, inert, status_refusal
from .text_message import MISSING, OTHERS, Item, Message

_LONGEST_SUMMARY = 1024
#: RocketMQ takes no longer names; a dump may.
_LONGEST_NAME = 255
_MOST_FINDINGS = 100


def _requests(message: Message, access: Access, _now: datetime) -> Iterable[HttpRequest]:
    def event(action: str, place: Place, **details: Any) -> HttpRequest:
        event = {"routing_key": access.secret, "event_action": action}
        return HttpRequest(access.url, {**event, "dedup_key": incident_key(place), **details})

    client = {"client": "rebalance-audit"}
    for item in message.items:
        page = {"client_url": item.url} if item.url else {}
        yield event("trigger", item.place, **client, **page, payload=_payload(message, item))
    template = "{heading}: {number} of them have no incident each"
    others = message.language(template, heading=message.heading, number=message.left_out)
    for place, text in ((OTHERS, others if message.left_out else ""), (MISSING, message.missing)):
        if text:
            yield event("trigger", place, **client, payload=_payload_of_text(message, text))
    for place in message.resolved:
        yield event("resolve", place)


def incident_key(place: Place) -> str:
    """The key of the one incident of a group and topic; it does not show the names.

    >>> incident_key(Place("DefaultCluster", "G", "T"))
    'rebalance-audit-b23222ba4d89129b'
    """
    return f"rebalance-audit-{hashlib.sha256(json.dumps(place).encode()).hexdigest()[:16]}"


def _payload(message: Message, item: Item) -> dict[str, Any]:
    rows = [(finding, queue) for finding in item.findings for _, queue in finding.rows]
    cluster, group, topic = (name[:_LONGEST_NAME] for name in item.place)
    return {
        "summary": inert(item.summary)[:_LONGEST_SUMMARY],
        "source": cluster or "RocketMQ",
        "severity": item.severity.lower(),
        "timestamp": iso(max(finding.last_seen for finding in item.findings)),
        "component": topic,
        "group": group,
        "class": ", ".join(sorted({finding.kind for finding in item.findings})),
        "custom_details": {
            "date": message.date,
            "run_id": message.run_id,
            "explanations": [inert(explanation) for explanation in item.explanations],
            "findings": [
                {
                    "kind": finding.kind,
                    "topic": finding.place.topic[:_LONGEST_NAME],
                    "queue": queue and f"{queue[0]} {queue[1]}",
                    "severity": finding.severity,
                    "first_seen": iso(finding.first_seen),
                }
                for finding, queue in rows[:_MOST_FINDINGS]
            ],
            "number_of_findings": len(rows),
        },
    }


def _payload_of_text(message: Message, text: str) -> dict[str, Any]:
    return {
        "summary": inert(text)[:_LONGEST_SUMMARY],
        "source": "rebalance-audit",
        "severity": "warning",
        "custom_details": {"date": message.date, "run_id": message.run_id},
    }


def _refusal(answer: Reply) -> Refusal | None:
    if answer.status == 400:
        return Refusal("HTTP status 400: the event is not valid; check the routing key")
    refusal = status_refusal(answer)
    if refusal is None and answer.values.get("status") != "success":
        return NOT_ITS
    return refusal


PAGERDUTY = Service(
    ("events.pagerduty.com", "events.eu.pagerduty.com"),
    _requests,
    _refusal,
    url="https://events.pagerduty.com/v2/enqueue",
    needs_secret=True,
    has_incidents=True,
)
