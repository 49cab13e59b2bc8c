"""The core's verdict on a situation, as the rules of time read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from rebalance_core.findings import Evaluation

#: (broker name, queue id).
QueueKey = tuple[str, int]


class Claimant(NamedTuple):
    """Who claims a queue."""

    client_id: str
    processes: int
    probability: float


class FoundQueue(NamedTuple):
    """A queue that is ORPHANED or DUPLICATE in the situation."""

    kind: str
    queue: QueueKey
    certainty: str
    probability: float
    claimants: tuple[Claimant, ...]
    causes: tuple[str, ...]


class Move(NamedTuple):
    """A queue that changes hands with a repair."""

    broker_name: str
    queue_id: int
    before: list[str]
    after: list[str]


class FoundFault(NamedTuple):
    """A fault of the situation."""

    fault: str
    evidence: str
    remedy: str
    client_ids: tuple[str, ...]
    client_addrs: tuple[str, ...]
    broker_names: tuple[str, ...]
    queues_affected: int
    findings_cleared: int
    findings_left: int
    moves: tuple[Move, ...]


class FoundStacked(NamedTuple):
    """A client id that is more than once in a broker's list."""

    client_id: str
    id_format: str
    evidence: str
    remedy: str
    copies: int
    processes: int
    client_addrs: tuple[str, ...]
    versions: tuple[int, ...]
    languages: tuple[str, ...]
    slots_wasted: int
    queues_duplicated: int
    queues_orphaned: int


class Allocated(NamedTuple):
    """What the processes of one client id take under one view."""

    client_id: str
    processes: int
    subscribed: bool
    strategy: str
    strategy_source: str
    view_brokers: tuple[str, ...]
    view_weight: float
    view_queues: int
    view_clients: int
    queues: tuple[QueueKey, ...]


@dataclass(frozen=True)
class Evaluated:
    """The evaluation of one situation.

    ``allocations`` makes them anew at each call: of a large group there are many, and only what
    compares neighbours in time looks at them.
    """

    #: What the core says of the situation, without what follows here in another form.
    verdict: Evaluation
    nameservers: int
    findings: tuple[FoundQueue, ...]
    faults: tuple[FoundFault, ...]
    stacked: tuple[FoundStacked, ...]
    unreadable: tuple[QueueKey, ...]
    allocations: Callable[[], tuple[Allocated, ...]] = tuple

    def with_allocations(self, allocations: Callable[[], tuple[Allocated, ...]]) -> Evaluated:
        """The same, with what makes its allocations."""
        return replace(self, allocations=allocations)
