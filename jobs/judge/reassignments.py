"""timeline -> reassignments: when the queues changed hands, and between whom.

A client that joins, leaves or is dropped, a queue count that changes: for up to 20 s (50 s after a
change of the route) the clients still hold what they had before. What is found in that time is the
change, and no fault of it.
"""

from __future__ import annotations

from typing import NamedTuple

from jobs.instants import Instant
from jobs.judge.evaluated import QueueKey
from jobs.judge.tables import Row
from jobs.judge.timeline import Phase, Timeline


class _Taker(NamedTuple):
    """Who takes a queue, and how likely: doubt counts as a change too."""

    queue: QueueKey
    client_id: str
    processes: int
    view_weight: float


class _Shares(NamedTuple):
    """Who takes what in a phase."""

    phase: Phase
    clients: frozenset[str]
    takers: frozenset[_Taker]
    lists_agree: bool


def find_reassignments(timeline: Timeline) -> list[Row]:
    """The rows of ``reassignments`` of a topic: one per phase that gives the queues to others.

    A phase that differs in addresses alone (a client reconnected) is no reassignment, nor is one in
    which fewer lists came than before and after.
    """
    seen = [phase for phase in timeline.phases if not phase.is_blind]
    if len(seen) < 2:
        return []
    rows: list[Row] = []
    unsettled: list[Row] = []
    before = _shares(seen[0])
    for phase in seen[1:]:
        is_other = phase.situation_id != before.phase.situation_id
        now = _shares(phase) if is_other else before._replace(phase=phase)
        if is_other and (row := _reassignment(before, now)) is not None:
            rows.append(row)
            unsettled.append(row)
        if now.lists_agree:
            _settle(unsettled, phase.first_seen)
        before = now
    return rows


def _settle(unsettled: list[Row], settled_at: Instant) -> None:
    for row in unsettled:
        row["settled_at"] = settled_at
    unsettled.clear()


def _shares(phase: Phase) -> _Shares:
    allocations = phase.evaluated.allocations()
    return _Shares(
        phase,
        frozenset(each.client_id for each in allocations),
        frozenset(
            _Taker(queue, each.client_id, each.processes, each.view_weight)
            for each in allocations
            for queue in each.queues
        ),
        len({each.view_brokers for each in allocations}) <= 1,
    )


def _reassignment(before: _Shares, now: _Shares) -> Row | None:
    joined, left = now.clients - before.clients, before.clients - now.clients
    moved = {taker.queue for taker in now.takers ^ before.takers}
    queues_before, queues = before.phase.evaluated.queues, now.phase.evaluated.queues
    if not (moved or joined or left or queues_before != queues):
        return None
    return {
        "topic": now.phase.topic,
        "changed_at": now.phase.first_seen,
        "seen_before": before.phase.last_seen,
        "settled_at": None,
        "state_id_before": before.phase.situation_id,
        "state_id": now.phase.situation_id,
        "clients_joined": sorted(joined),
        "clients_left": sorted(left),
        "queues_before": queues_before,
        "queues": queues,
        "queues_moved": len(moved),
        "lists_agree": now.lists_agree,
    }
