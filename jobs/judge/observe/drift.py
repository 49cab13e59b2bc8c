"""holdings -> drift: what clients held, or computed, against what was computed for them.

A client computes its share and then has to get it: a broker that it cannot reach, a lock that it
is not given, an offset that cannot be read, and it holds less than its share. Just after a change
it holds what it had before. A log shows more: what the client itself computed, and from lists of
which lengths. A result that no view gives comes from lists that no broker has, or not at all.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from ...declared.dossier import ClientRun
from ...declared.instants import Instant
from ...declared.kinds import COMPUTED_NOT_HELD, HELD_NOT_COMPUTED, PERSISTENT
from ..arrow_tables import Row
from ..times.extents import persistence
from .brokers import Absence
from .core_verdict import QueueKey
from .holdings import Holding, ReportingProcess

SHARE_KEPT = "SHARE_KEPT"


class Drift(NamedTuple):
    """A row of ``allocation_drift``: a process, a queue and a time in which it drifted so."""

    topic: str
    process: ReportingProcess
    queue: QueueKey
    drift: str
    #: The largest share of the views under which the queue was computed for the process.
    probability: float
    first_seen: Instant
    last_seen: Instant
    observations: int
    persistence: str
    attributed_to: str | None
    #: The report of the process when it drifted last.
    run: ClientRun

    @property
    def client_id(self) -> str:
        """The client whose queues drift."""
        return self.process.client_id

    @property
    def is_extra(self) -> bool:
        """True if the queue is held and not computed; else it is computed and not held."""
        return self.drift == HELD_NOT_COMPUTED

    def is_within(self, absence: Absence) -> bool:
        """True where the queue's broker had no master in all of its time."""
        is_before = absence.ends is None or self.last_seen < absence.ends
        is_same = self.queue[0] == absence.broker_name
        return is_same and absence.begins <= self.first_seen and is_before

    @property
    def lasts(self) -> bool:
        """True if it lasts for more than a moment."""
        return self.persistence == PERSISTENT

    def row(self) -> Row:
        """The row, but for its group."""
        broker_name, queue_id = self.queue
        values = self._asdict()
        del values["queue"], values["run"]
        return {
            **values,
            **self.process._asdict(),
            "broker_name": broker_name,
            "queue_id": queue_id,
            "queue_count": self.run.queue_count,
            "client_count": self.run.client_count,
        }


#: A holding that shows a queue drift, and what explains it.
_Shown: TypeAlias = tuple[Holding, str | None]


def find_drift(holdings: Iterable[Holding], persistence_seconds: int) -> list[Drift]:
    """One per process, queue, drift and unbroken run of its holdings that show it.

    ``probability`` is the share of the views under which the queue was computed for the process:
    where the brokers' lists differ, one that is computed at times may well not be held. A log line
    drifts where it equals the result of no view, and then by what all views have in common.
    ``attributed_to`` says what explains it when it was last seen: what lasts longer than a change
    explains is not explained by it. A process that broadcasts reads every queue, whatever is
    computed. ``holdings`` are those of ``find_holdings``, in its order.
    """
    compared = (
        holding for holding in holdings if holding.phase.is_computed and not holding.broadcasts
    )
    return [
        _drift(drift, queue, shown, persistence_seconds)
        for _, of_process in groupby(compared, key=attrgetter("process", "topic"))
        for drift, queue, shown in _unbroken(of_process)
    ]


def _unbroken(in_time: Iterable[Holding]) -> list[tuple[str, QueueKey, list[_Shown]]]:
    """The drifts of one process and topic, each with the consecutive holdings that show it."""
    runs: list[tuple[str, QueueKey, list[_Shown]]] = []
    open_: dict[tuple[str, QueueKey], list[_Shown]] = {}
    share: frozenset[QueueKey] | None = None
    for holding in in_time:
        held = frozenset(holding.activities)
        follows = any(view.queues == held for view in holding.computed)
        attributed_to = holding.explained_by
        if follows and not holding.process.is_log:
            share = held
        elif attributed_to is None and held == share:
            # Still what it last had by the computation: it is suspended, or its rebalance fails.
            attributed_to = SHARE_KEPT
        before, open_ = open_, {}
        for drift, queue in _drifts(holding, held):
            shown = before.get((drift, queue))
            if shown is None:
                shown = []
                runs.append((drift, queue, shown))
            shown.append((holding, attributed_to))
            open_[drift, queue] = shown
    return runs


def _drifts(holding: Holding, held: frozenset[QueueKey]) -> Iterator[tuple[str, QueueKey]]:
    """Each queue that is held and not computed, or the other way round.

    A log's result that equals that of one view has nothing beyond it, and all that the views have
    in common: it has no drift.
    """
    views = [view.queues for view in holding.computed]
    if holding.has_lengths_of_phase:
        lengths = holding.run.queue_count, holding.run.client_count
        views = [
            computed_share.queues
            for computed_share in holding.computed
            if computed_share.lengths == lengths
        ] or views
    possible = frozenset[QueueKey]().union(*views)
    due = possible.intersection(*views) if holding.process.is_log else possible
    for queue in sorted(held - possible):
        yield HELD_NOT_COMPUTED, queue
    for queue in sorted(due - held):
        yield COMPUTED_NOT_HELD, queue


def _drift(drift: str, queue: QueueKey, shown: list[_Shown], persistence_seconds: int) -> Drift:
    (first, _), (last, attributed_to) = shown[0], shown[-1]
    probabilities = (
        sum((share.view_weight for share in holding.computed if queue in share.queues), start=0.0)
        for holding, _ in shown
    )
    return Drift(
        last.topic,
        last.process,
        queue,
        drift,
        min(1.0, max(probabilities)),
        first.first_seen,
        last.last_seen,
        # A log's period is one.
        sum(len(holding.answered) or 1 for holding, _ in shown),
        persistence(first.first_seen, last.last_seen, persistence_seconds),
        attributed_to,
        last.run,
    )
