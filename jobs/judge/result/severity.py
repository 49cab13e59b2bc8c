"""Severity of findings, stalls and faults: the one place that decides it.

INFO: it passed by itself. WARNING: it lasts. CRITICAL: it lasts, and messages are not read, or not
in their order. Page, gate, alerts and summary read the column.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from rebalance_core.causes import GROUP_OFFLINE
from rebalance_core.descriptions import EXPRESSION_MISMATCH
from rebalance_core.english import joined
from rebalance_core.findings import ORPHANED
from rebalance_core.repairs import ROUTE_DIVERGENCE
from rebalance_core.texts import Text

from ...config.terms import Terms
from ...declared import kinds
from ...declared.instants import Instant
from ...declared.kinds import CRITICAL, INFO, SEVERITIES, WARNING
from ..rules.case import Case
from ..rules.found import FaultEpisode, GroupFindings, QueueFinding, Stall
from ..rules.why import OTHER_FILTER
from ..times import Timed

#: Messages that came and were not read pile up from this share on.
_PILED_UP_SHARE = 0.1

_DOUBTFUL = Text(
    "only lists and routes show this: the running infos of the group's clients would make it "
    "certain"
)


def graded(case: Case, found: GroupFindings) -> GroupFindings:
    """All of it with its severity: that of a fault follows from those of what it does.

    Where nothing shows whether a fault does harm, its remedy ends with what would show that, unless
    all clients answered then.
    """
    terms, orderly = case.terms, case.dossier.consumes_in_order
    queues = [
        replace(one, severity=_milder(finding_severity(one, terms, orderly), at_most))
        for one in found.queues
        for at_most in [_at_most(one, case) if one.causes == (GROUP_OFFLINE,) else CRITICAL]
    ]
    stalls = [replace(stall, severity=stall_severity(stall)) for stall in found.stalls]
    harms = Harms(queues, stalls, terms.critical_probability)

    def graded_fault(fault: FaultEpisode) -> FaultEpisode:
        answered = (it.is_complete for it in case.holdings[fault.topic].within(fault.extent))
        is_unasked = harms.are_doubtful(fault) and not any(answered)
        remedy = joined([fault.remedy, _DOUBTFUL]) if is_unasked else fault.remedy
        # Of a group that is left over no client starts with the other nameserver.
        is_of_start = fault.fault == ROUTE_DIVERGENCE and fault.queues_affected == 0
        at_most = _at_most(fault, case) if is_of_start else CRITICAL
        return replace(fault, severity=_milder(harms.severity_of(fault), at_most), remedy=remedy)

    faults = tuple(map(graded_fault, found.faults))
    return replace(found, queues=tuple(queues), stalls=tuple(stalls), faults=faults)


def _at_most(found: Timed, case: Case) -> str:
    """The worst severity of what harms no group that was deleted: INFO where it is seen to be,
    WARNING where it may have been before.
    """
    config = case.no_config
    if config and config.is_left_over and config.begins <= found.last_seen:
        return WARNING if config.last_seen is None else INFO
    return CRITICAL


def finding_severity(finding: QueueFinding, terms: Terms, orderly: bool | None) -> str:
    """The severity of an orphaned or duplicate queue: by persistence, kind, probability and harm.

    A queue that nobody reads loses time until somebody does; one that two read is read twice but
    read: a lasting orphan is critical, a lasting duplicate a warning. Where messages pile up they
    are certainly not read, however improbable the orphan (a few are always on their way: a tenth of
    what came counts); and where messages are to be consumed in order, two that read a queue break
    the order: processes of one id, or two that hold it, for of two ids one has the lock. An orphan
    that is read throughout does no harm: a warning, however probable it is. So is what is doubtful:
    it depends on what clients draw, and nothing that they hold and no offset shows that it happens.
    Nobody is to be woken by lists alone that differ. A queue that nobody holds, by a strategy that
    is not known, harms nothing while no message waits there.
    Messages that pile up outweigh the last three. ``graded`` caps it where the group was deleted.
    ``orderly``: a client consumes in order.
    """
    if not finding.extent.lasts or finding.share < terms.warning_probability:
        return INFO
    most_likely = finding.share >= terms.critical_probability and not finding.is_doubtful
    is_held_by_nobody = finding.causes == (kinds.QUEUE_NOT_HELD,) and not finding.strategy_source
    if is_held_by_nobody and finding.left.messages == 0:
        return INFO
    unread = finding.left.unread_share
    piles_up = unread is not None and unread >= _PILED_UP_SHARE
    harms = most_likely and not finding.is_read_throughout
    if finding.kind == ORPHANED:
        return CRITICAL if harms or piles_up else WARNING
    return CRITICAL if most_likely and orderly and not finding.is_locked else WARNING


def stall_severity(stall: Stall) -> str:
    """The severity of a stalled queue: critical where it lasts and messages pile up that are surely
    for the group.
    """
    if not stall.extent.lasts:
        return INFO
    return _milder(CRITICAL if stall.backlog_growth > 0 else WARNING, stall.at_most)


def _milder(one: str, other: str) -> str:
    return min(one, other, key=SEVERITIES.index)


class _Harm(NamedTuple):
    """The index of its severity, when it was, whether nothing shows that it happens, and whether
    what is held or the offsets show it.
    """

    severity: int
    first_seen: Instant
    last_seen: Instant
    is_doubtful: bool = False
    is_shown: bool = False


#: The culprit that findings name: (topic, fault, client id); the id for FROZEN_PROCESS alone.
_Culprit = tuple[str, str, str]


class Harms:
    """The harms of a group's faults: orphaned and duplicate queues, and stalls."""

    def __init__(
        self, queues: Iterable[QueueFinding], stalls: Iterable[Stall], critical: float
    ) -> None:
        # Many queues of one fault have one time and severity.
        self._harms: dict[_Culprit, set[_Harm]] = defaultdict(set)
        for queue in queues:
            is_doubtful = queue.is_doubtful and queue.share >= critical
            is_shown = True in (queue.held, queue.moved)
            grade = SEVERITIES.index(queue.severity), queue.first_seen, queue.last_seen
            for cause in queue.causes:
                self._harms[queue.topic, cause, ""].add(_Harm(*grade, is_doubtful, is_shown))
        for stall in stalls:
            harm = _Harm(SEVERITIES.index(stall.severity), stall.first_seen, stall.last_seen)
            for client_id in stall.owners:
                self._harms[stall.topic, kinds.FROZEN_PROCESS, client_id].add(harm)
            if stall.why == OTHER_FILTER:
                self._harms[stall.topic, EXPRESSION_MISMATCH, ""].add(harm)

    def _of(self, fault: FaultEpisode) -> list[_Harm]:
        """The harms that name the fault as a cause and overlap it in time."""
        client_ids = fault.client_ids if fault.fault == kinds.FROZEN_PROCESS else ("",)
        culprits = [(fault.topic, fault.fault, client_id) for client_id in client_ids]
        harms = chain.from_iterable(self._harms.get(culprit, ()) for culprit in culprits)
        return [harm for harm in harms if fault.overlaps(harm)]

    def are_doubtful(self, fault: FaultEpisode) -> bool:
        """True if a lasting fault has findings of which nothing shows that they happen, and none
        of which something does.
        """
        harms = self._of(fault) if fault.extent.lasts else []
        return any(harm.is_doubtful for harm in harms) and not any(harm.is_shown for harm in harms)

    def severity_of(self, fault: FaultEpisode) -> str:
        """The worst severity of the findings that name the fault as a cause and overlap it in time.

        Of a frozen process, of the stalls of its queues; of filters that differ, of the stalls that
        a refusal explains. A fault that did not last is INFO. One
        that lasts and that shows on no queue is a WARNING all the same, unless it passes by itself:
        members that filter a topic differently lose messages, where no queue shows it. Nobody is to
        be woken by a fault that the collector may have caused: its queues have their own severity.
        """
        if not fault.extent.lasts or fault.is_latent:
            return INFO
        if fault.fault == kinds.QUEUES_LEFT_ROUTE:
            # While they are gone nobody can read what lies there, and no row of a queue shows it;
            # once they are back the group reads it.
            return CRITICAL if fault.extent.ongoing else INFO
        if fault.fault in (kinds.GROUP_NOT_CONSUMING, kinds.MESSAGES_FAIL):
            # Messages pile up in all queues, or are lost, and every queue has its owner. Of a topic
            # that was given up while all was read nothing shows that messages wait.
            return _milder(WARNING if fault.unread_messages == 0 else CRITICAL, fault.at_most)
        harms = self._of(fault)
        if harms:
            worst = SEVERITIES[max(harms).severity]
            return WARNING if fault.may_be_ours and worst == CRITICAL else worst
        if fault.may_be_ours:
            return INFO
        lasts = kinds.lasts(fault.fault, fault.extent.persistence)
        return WARNING if lasts and fault.queues_affected == 0 else INFO
