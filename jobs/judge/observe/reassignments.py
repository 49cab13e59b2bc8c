"""timeline -> reassignments: when the queues changed hands, and between whom.

A client that joins, leaves or is dropped, a queue count that changes: for up to 20 s (50 s after a
change of the route) the clients still hold what they had before. What is found in that time is the
change, and no fault of it.
"""

from itertools import pairwise
from typing import NamedTuple

from ...declared.instants import Instant
from .core_verdict import QueueKey
from .timeline import Phase, Timeline


class _PhaseShares(NamedTuple):
    """The takers of each queue in a phase."""

    phase: Phase
    clients: frozenset[str]
    #: The takers of each queue, with their processes and how likely: doubt is a change too.
    takers: frozenset[tuple[QueueKey, str, int, float]]
    lists_agree: bool


class Reassignment(NamedTuple):
    """A row of ``reassignments``: one change of who takes which queue."""

    topic: str
    changed_at: Instant
    seen_before: Instant
    #: The first snapshot since in which the brokers' lists agree.
    settled_at: Instant | None
    state_id_before: str
    state_id: str
    clients_joined: list[str]
    clients_left: list[str]
    queues_before: int
    queues: int
    queues_moved: int
    lists_agree: bool


def find_reassignments(timeline: Timeline) -> list[Reassignment]:
    """One per phase that gives the queues to others.

    A phase that differs in addresses alone (a client reconnected) is not a reassignment, nor is one
    in which fewer lists came than before and after.
    """
    seen = [phase for phase in reversed(timeline.phases) if not phase.is_blind]
    found: list[Reassignment] = []
    settled_at: Instant | None = None
    for now, before in pairwise(map(_shares, seen)) if len(seen) > 1 else ():
        if now.lists_agree:
            settled_at = now.phase.first_seen
        if change := _reassignment(before, now, settled_at):
            found.append(change)
    return found[::-1]


def _shares(phase: Phase) -> _PhaseShares:
    allocations = phase.evaluated.allocations()
    return _PhaseShares(
        phase,
        frozenset(allocation.client_id for allocation in allocations),
        frozenset(
            (queue, allocation.client_id, allocation.processes, allocation.view_weight)
            for allocation in allocations
            for queue in allocation.queues
        ),
        len({allocation.view_brokers for allocation in allocations}) <= 1,
    )


def _reassignment(
    before: _PhaseShares, now: _PhaseShares, settled_at: Instant | None
) -> Reassignment | None:
    joined, left = now.clients - before.clients, before.clients - now.clients
    moved = {queue for queue, *_ in now.takers ^ before.takers}
    queues_before, queues = before.phase.verdict.queues, now.phase.verdict.queues
    if not (moved or joined or left or queues_before != queues):
        return None
    return Reassignment(
        now.phase.topic,
        now.phase.first_seen,
        before.phase.last_seen,
        settled_at,
        before.phase.situation_id,
        now.phase.situation_id,
        sorted(joined),
        sorted(left),
        queues_before,
        queues,
        len(moved),
        now.lists_agree,
    )
