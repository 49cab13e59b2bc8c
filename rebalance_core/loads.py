"""How many queues each client takes, whichever view it draws."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from typing import Protocol


class Takes(Protocol):
    """What the processes of a client id take under one view: ``Allocation``, or a row of it."""

    @property
    def client_id(self) -> str:
        """The client id."""

    @property
    def processes(self) -> int:
        """How many processes use it, alike in what follows."""

    @property
    def view_brokers(self) -> tuple[str, ...]:
        """The brokers whose answer gives the view."""

    @property
    def view_weight(self) -> float:
        """How likely a process draws the view."""

    @property
    def queues(self) -> Collection[object]:
        """The queues that each of the processes takes."""


def queues_by_client(allocations: Sequence[Takes]) -> dict[str, float]:
    """By client id the queues that each of its processes takes of one topic.

    Where the views differ, their mean by weight; where processes of one id differ, the mean of
    them.

    >>> from rebalance_core.findings import Allocation
    >>> def takes(client_id, view, weight, *queues):
    ...     return Allocation(client_id, 1, True, "AVG", "assumed", (view,), weight, 4, 2, queues)
    >>> queues_by_client([
    ...     takes("a", "x", 0.5, 0, 1, 2, 3), takes("a", "y", 0.5, 0, 1), takes("b", "y", 0.5, 2, 3)
    ... ])
    {'a': 3.0, 'b': 1.0}
    """
    behind = _processes_behind(allocations)
    queues: dict[str, float] = defaultdict(float)
    for allocation in allocations:
        share = allocation.processes / behind[allocation.client_id, allocation.view_brokers]
        queues[allocation.client_id] += share * allocation.view_weight * len(allocation.queues)
    return {client_id: round(number, 9) for client_id, number in sorted(queues.items())}


def processes_by_client(allocations: Sequence[Takes]) -> dict[str, int]:
    """By client id how many processes use it, by the view that shows most of them."""
    processes: Counter[str] = Counter()
    for (client_id, _), number in _processes_behind(allocations).items():
        processes[client_id] = max(processes[client_id], number)
    return dict(processes)


def _processes_behind(allocations: Sequence[Takes]) -> Counter[tuple[str, tuple[str, ...]]]:
    """By client id and view how many processes use the id."""
    behind: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for allocation in allocations:
        behind[allocation.client_id, allocation.view_brokers] += allocation.processes
    return behind
