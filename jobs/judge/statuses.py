"""findings, against the previous published run -> what is new, what goes on, what ended."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable

from jobs.judge.dossier import EarlierFinding
from jobs.judge.tables import Row
from jobs.kinds import PERSISTENT

NEW = "NEW"
PERSISTING = "PERSISTING"
RESOLVED = "RESOLVED"
NOT_AUDITED = "NOT_AUDITED"


def finding_id(
    cluster: str, consumer_group: str, topic: str, broker_name: str, queue_id: int, kind: str
) -> str:
    """The id of a finding, stable over runs and versions: users keep it in tickets and silences.

    >>> finding_id("c1", "G", "T", "broker-a", 0, "ORPHANED")
    '451f726011011044'
    """
    identity = (
        f'{{"cluster":{_quoted(cluster)},"consumer_group":{_quoted(consumer_group)},'
        f'"topic":{_quoted(topic)},"broker_name":{_quoted(broker_name)},'
        f'"queue_id":{queue_id},"kind":{_quoted(kind)}}}'
    )
    return hashlib.md5(identity.encode(), usedforsecurity=False).hexdigest()[:16]


# As Jackson writes a text, byte by byte: ``json`` has control characters in lower case.
_ESCAPES = {
    **{code: f"\\u{code:04X}" for code in range(32)},
    **{ord(raw): f"\\{letter}" for raw, letter in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)},
}


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def status(row: Row, open_before: Container[str]) -> str | None:
    """The status of a finding against the ids of those that were open in the previous run.

    PERSISTING where it was open then and lasts or is not over; NEW where it lasts; None for what
    passed by itself.
    """
    if row["finding_id"] in open_before and _is_there(row):
        return PERSISTING
    return NEW if row["persistence"] == PERSISTENT else None


def _is_there(row: Row) -> bool:
    return bool(row["persistence"] == PERSISTENT or row["ongoing"])


def former_findings(
    earlier: Iterable[EarlierFinding], findings: Iterable[Row], audited: Container[str]
) -> list[Row]:
    """The rows of ``former_findings``: what was open in the previous run and is not there any more.

    RESOLVED where the topic was recomputed in this window, that is, in ``audited``; NOT_AUDITED
    where nothing was known of it: then nobody can tell.
    """
    there = {row["finding_id"] for row in findings if _is_there(row)}
    return [
        {
            **each._asdict(),
            "status": RESOLVED if each.topic in audited else NOT_AUDITED,
        }
        for each in earlier
        if each.finding_id not in there
    ]
