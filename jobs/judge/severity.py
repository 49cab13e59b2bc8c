"""How bad it is: the one place that decides the severity of findings, stalls and faults.

INFO: it passed by itself. WARNING: it lasts. CRITICAL: it lasts, and messages are not read, or not
in their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from jobs.instants import Instant
from jobs.judge.dossier import ClientRun
from jobs.judge.episodes import FaultEpisode
from jobs.judge.tables import Row
from jobs.judge.terms import Terms
from jobs.judge.why import OTHER_FILTER
from jobs.kinds import (
    CRITICAL,
    FROZEN_PROCESS,
    GROUP_NOT_CONSUMING,
    INFO,
    PERSISTENT,
    QUEUES_LEFT_ROUTE,
    SEVERITIES,
    WARNING,
    lasts,
)
from rebalance_core.descriptions import EXPRESSION_MISMATCH
from rebalance_core.findings import DUPLICATE, ORPHANED

#: Messages that came and were not read pile up from this share on.
_PILED_UP_SHARE = 0.1


def finding_severity(
    kind: str,
    persistence: str,
    probability: float,
    unread_share: float | None,
    orderly: bool | None,
    terms: Terms,
    *,
    is_read_throughout: bool = False,
    is_doubtful: bool = False,
) -> str:
    """Of an orphaned or duplicate queue: by persistence, kind, probability and harm.

    A queue that nobody reads loses time until somebody does; one that two read is read twice but
    read: a lasting orphan is critical, a lasting duplicate a warning. Where messages pile up they
    are certainly not read, however improbable the orphan (a few are always on their way: a tenth of
    what came counts); and where messages are to be consumed in order, two that read a queue break
    the order. An orphan that is read throughout does no harm: a warning, however probable it is.
    So is what is doubtful: it depends on what clients draw, and nothing that they hold and no
    offset shows that it happens. Nobody is to be woken by lists alone that differ.
    """
    if persistence != PERSISTENT or probability < terms.warning_probability:
        return INFO
    most_likely = probability >= terms.critical_probability and not is_doubtful
    piles_up = unread_share is not None and unread_share >= _PILED_UP_SHARE
    harms = most_likely and not is_read_throughout
    if kind == ORPHANED and (harms or piles_up):
        return CRITICAL
    if kind == DUPLICATE and most_likely and orderly:
        return CRITICAL
    return WARNING


def stall_severity(persistence: str, backlog_growth: int) -> str:
    """Of a stalled queue: critical where it lasts and messages pile up."""
    if persistence != PERSISTENT:
        return INFO
    return CRITICAL if backlog_growth > 0 else WARNING


def consumes_in_order(clients: Iterable[ClientRun]) -> bool | None:
    """Whether a client of the group consumes in order; None: none reports it."""
    reported = {each.consume_orderly for each in clients} - {None}
    return any(reported) if reported else None


class FaultSeverity:
    """The severity of the group's faults, which follows from that of what they do.

    ``findings`` are rows of orphaned_queues and duplicate_queues, ``stalls`` of stalled_queues.
    """

    def __init__(self, findings: Sequence[Row], stalls: Iterable[Row]) -> None:
        harms: dict[_Culprit, set[_Harm]] = defaultdict(set)
        for row in findings:
            harm = (SEVERITIES.index(row["severity"]), row["first_seen"], row["last_seen"])
            for cause in row["causes"]:
                harms[row["topic"], cause].add(harm)
        for row in stalls:
            harm = (SEVERITIES.index(row["severity"]), row["first_seen"], row["last_seen"])
            for client_id in row["owners"]:
                harms[row["topic"], FROZEN_PROCESS, client_id].add(harm)
            if row.get("why") == OTHER_FILTER:
                harms[row["topic"], EXPRESSION_MISMATCH].add(harm)
        self._harms = {culprit: sorted(of_culprit) for culprit, of_culprit in harms.items()}
        self._doubtful = {
            (row["topic"], cause, row["first_seen"], row["last_seen"])
            for row in findings
            if row["is_doubtful"]
            for cause in row["causes"]
        }

    def is_doubtful(self, fault: FaultEpisode) -> bool:
        """Whether a lasting fault has findings of which nothing shows that they happen."""
        return fault.persistence == PERSISTENT and any(
            (topic, cause) == (fault.topic, fault.fault)
            and first_seen <= fault.last_seen
            and fault.first_seen <= last_seen
            for topic, cause, first_seen, last_seen in self._doubtful
        )

    def of(self, fault: FaultEpisode) -> str:
        """The worst severity of the findings that name the fault as a cause and overlap it in time.

        Of a frozen process, of the stalls of its queues; of filters that differ, of the stalls that
        a refusal explains. A fault that did not last is INFO. One
        that lasts and that shows on no queue is a WARNING all the same, unless it passes by itself:
        members that filter a topic differently lose messages, where no queue shows it.
        """
        if fault.persistence != PERSISTENT:
            return INFO
        if fault.fault == QUEUES_LEFT_ROUTE:
            # While they are gone nobody can read what lies there, and no row of a queue shows it;
            # once they are back the group reads it.
            return CRITICAL if fault.ongoing else INFO
        if fault.fault == GROUP_NOT_CONSUMING:
            # Messages pile up in all queues, and every one of them has its owner.
            return CRITICAL
        harms = [harm for culprit in _culprits(fault) for harm in self._harms.get(culprit, ())]
        overlapping = [
            severity
            for severity, first_seen, last_seen in harms
            if first_seen <= fault.last_seen and fault.first_seen <= last_seen
        ]
        if overlapping:
            return SEVERITIES[max(overlapping)]
        shows_on_no_queue = fault.queues_affected == 0 and lasts(fault.fault, fault.persistence)
        return WARNING if shows_on_no_queue else INFO


#: What findings name: (topic, fault), of stalls (topic, FROZEN_PROCESS, client id).
_Culprit = tuple[str, ...]
#: The index of its severity, and when it was.
_Harm = tuple[int, Instant, Instant]


def _culprits(fault: FaultEpisode) -> Sequence[_Culprit]:
    if fault.fault == FROZEN_PROCESS:
        return [(fault.topic, FROZEN_PROCESS, client_id) for client_id in fault.client_ids]
    return [(fault.topic, fault.fault)]
