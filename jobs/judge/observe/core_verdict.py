"""The core's verdict on a situation, as the rules of time read it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from rebalance_core.faults import Fault
from rebalance_core.findings import Allocation, Claimant, Evaluation

#: (broker name, queue id).
QueueKey = tuple[str, int]

#: The queues that the processes of one client id take under one view.
QueueAllocation: TypeAlias = Allocation[QueueKey]


@dataclass(frozen=True)
class FoundQueue:
    """A queue that is ORPHANED or DUPLICATE."""

    kind: str
    queue: QueueKey
    certainty: str
    probability: float
    claimants: tuple[Claimant, ...]
    causes: tuple[str, ...]
    #: True if it rests on a strategy that is assumed: see the core's ``Finding``.
    is_assumed: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Verdict:
    """The evaluation of one situation.

    ``allocations`` makes them anew at each call: of a large group there are many, and only what
    compares neighbours in time looks at them.
    """

    #: The core's verdict on the situation, without what follows here in another form.
    verdict: Evaluation
    nameservers: int
    findings: tuple[FoundQueue, ...]
    faults: tuple[Fault, ...]
    allocations: Callable[[], tuple[QueueAllocation, ...]] = tuple
