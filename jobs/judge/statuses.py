"""findings, against the previous published run -> what is new, what goes on, what ended."""

from __future__ import annotations

from collections.abc import Container, Iterable

from jobs.judge.dossier import EarlierFinding
from jobs.judge.tables import Row
from jobs.kinds import PERSISTENT, QUEUE_FINDINGS, STALLED

NEW = "NEW"
PERSISTING = "PERSISTING"
RESOLVED = "RESOLVED"
NOT_AUDITED = "NOT_AUDITED"

_OF_QUEUES = frozenset(QUEUE_FINDINGS.values())


def status(row: Row, open_before: Container[str]) -> str | None:
    """The status of a finding against the ids of those that were open in the previous run.

    PERSISTING where it was open then and lasts or is not over; NEW where it lasts; None for what
    passed by itself.
    """
    if row["finding_id"] in open_before and _is_there(row):
        return PERSISTING
    return NEW if row["persistence"] == PERSISTENT else None


def mark_open(rows: Iterable[Row], earlier: Iterable[EarlierFinding]) -> None:
    """Gives every row with a ``finding_id`` its ``status``, ``open_since`` and ``nights_open``.

    What goes on takes them over from the run before, so that no run has to read more than that
    one. A night that was not audited is not counted, and does not end what was open before it.
    """
    before = {each.finding_id: each for each in earlier}
    for row in rows:
        found = status(row, before)
        since, nights = row["first_seen"], 1
        if found == PERSISTING:
            former = before[row["finding_id"]]
            since, nights = min(since, former.open_since), former.nights_open + 1
        row["status"] = found
        row["open_since"] = None if found is None else since
        row["nights_open"] = None if found is None else nights


def _is_there(row: Row) -> bool:
    return bool(row["persistence"] == PERSISTENT or row["ongoing"])


def former_findings(
    earlier: Iterable[EarlierFinding],
    findings: Iterable[Row],
    audited: Container[str],
    polled: Container[str] = (),
) -> list[Row]:
    """The rows of ``former_findings``: what was open in the previous run and is not there any more.

    RESOLVED where this window decides: the topic was recomputed, that is, in ``audited``, or of a
    stalled queue its offsets were asked for, ``polled``. NOT_AUDITED where it does not: then
    nothing shows it. Faults are not among them: the table is one of queues.
    """
    there = {row["finding_id"] for row in findings if _is_there(row)}
    return [
        {
            **each._asdict(),
            "status": RESOLVED
            if each.topic in (polled if each.kind == STALLED else audited)
            else NOT_AUDITED,
        }
        for each in earlier
        if each.kind in _OF_QUEUES and each.finding_id not in there
    ]
