"""holdings -> drift: what clients held, or computed, against what was computed for them.

A client computes its share and then has to get it: a broker that it cannot reach, a lock that it
is not given, an offset that cannot be read, and it holds less than its share. Just after a change
it holds what it had before. A log shows more: what the client itself computed, and from lists of
which lengths. A result that no view gives comes from lists that no broker has, or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from jobs.instants import Instant
from jobs.judge.episodes import persistence
from jobs.judge.evaluated import QueueKey
from jobs.judge.holdings import Holding, Process
from jobs.judge.tables import Row
from jobs.kinds import COMPUTED_NOT_HELD, HELD_NOT_COMPUTED

SHARE_KEPT = "SHARE_KEPT"


def find_drift(holdings: Iterable[Holding], persistence_seconds: int) -> list[Row]:
    """The rows of ``allocation_drift``: one per process, queue, drift and unbroken run of its
    holdings that show it.

    ``probability`` is the share of the views under which the queue was computed for the process:
    where the brokers' lists differ, one that is computed at times may well not be held. A log line
    drifts where it equals the result of no view, and then by what all views have in common.
    ``attributed_to`` says what explains it when it was last seen: what lasts longer than a change
    explains is not explained by it. A process that broadcasts reads every queue, whatever is
    computed. ``holdings`` are those of ``find_holdings``, in its order.
    """
    rows: list[Row] = []
    compared = (each for each in holdings if each.is_computed and not each.broadcasts)
    for (process, topic), of_process in groupby(compared, key=_process_and_topic):
        for episode in _episodes(of_process):
            rows.append(_row(process, topic, episode, persistence_seconds))
    return rows


def _process_and_topic(holding: Holding) -> tuple[Process, str]:
    return holding.process, holding.topic


@dataclass
class _Episode:
    """A queue that drifts, over holdings that follow each other."""

    queue: QueueKey
    drift: str
    first_seen: Instant
    probability: float
    observations: int
    #: The last holding that shows it, its number among the process's, and what explains it.
    last: Holding
    number: int
    attributed_to: str | None


def _episodes(in_time: Iterable[Holding]) -> list[_Episode]:
    """The episodes of one process and topic."""
    episodes: list[_Episode] = []
    open_: dict[tuple[str, QueueKey], _Episode] = {}
    share: frozenset[QueueKey] | None = None
    for number, holding in enumerate(in_time):
        held = frozenset(holding.held)
        follows = any(view.queues == held for view in holding.computed)
        attributed_to = holding.explained_by
        if not holding.process.is_log:
            if follows:
                share = held
            elif attributed_to is None and held == share:
                # Still what it last had by the computation: it is suspended, or its rebalance
                # fails.
                attributed_to = SHARE_KEPT
        for drift, queue in _drifts(holding, held):
            probability = _probability(holding, queue)
            episode = open_.get((drift, queue))
            if episode is None or episode.number < number - 1:
                episode = _Episode(
                    queue, drift, holding.since, probability, 0, holding, number, attributed_to
                )
                open_[drift, queue] = episode
                episodes.append(episode)
            episode.probability = max(episode.probability, probability)
            episode.observations += holding.observations
            episode.last, episode.number = holding, number
            episode.attributed_to = attributed_to
    return episodes


def _drifts(holding: Holding, held: frozenset[QueueKey]) -> Iterator[tuple[str, QueueKey]]:
    """Each queue that is held and not computed, or the other way round.

    A log's result that equals that of one view has nothing beyond it, and all that the views have
    in common: it has no drift.
    """
    views = [view.queues for view in holding.computed]
    if holding.has_lengths_of_phase:
        lengths = holding.queue_count, holding.client_count
        fitting = [
            view.queues
            for view in holding.computed
            if (view.view_queues, view.view_clients) == lengths
        ]
        views = fitting or views
    possible = frozenset[QueueKey]().union(*views)
    due = possible
    if holding.process.is_log:
        due = possible.intersection(*views)
    for queue in sorted(held - possible):
        yield HELD_NOT_COMPUTED, queue
    for queue in sorted(due - held):
        yield COMPUTED_NOT_HELD, queue


def _probability(holding: Holding, queue: QueueKey) -> float:
    weights = (view.view_weight for view in holding.computed if queue in view.queues)
    return min(1.0, sum(weights, start=0.0))


def _row(process: Process, topic: str, episode: _Episode, persistence_seconds: int) -> Row:
    first_seen, last_seen = episode.first_seen, episode.last.until
    broker_name, queue_id = episode.queue
    return {
        "topic": topic,
        "client_id": process.client_id,
        "source": process.source,
        "start_timestamp": process.start_timestamp,
        "process": process.process,
        "broker_name": broker_name,
        "queue_id": queue_id,
        "drift": episode.drift,
        "probability": episode.probability,
        "first_seen": first_seen,
        "last_seen": last_seen,
        "observations": episode.observations,
        "persistence": persistence(first_seen, last_seen, persistence_seconds),
        "attributed_to": episode.attributed_to,
        "queue_count": episode.last.queue_count,
        "client_count": episode.last.client_count,
    }
