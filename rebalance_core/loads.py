"""Queues per client, whichever view it draws."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from .findings import Allocation


def queues_by_client(allocations: Sequence[Allocation[Any]]) -> dict[str, float]:
    """The mean number of queues of one topic per process of each client id.

    If the views differ, it is their mean by weight; if processes of one id differ, the mean of
    them.

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
    return {client_id: round(number, 9) for client_id, number in queues.items()}


def processes_by_client(allocations: Sequence[Allocation[Any]]) -> dict[str, int]:
    """The number of processes that use each client id, by the view that shows most of them."""
    processes: Counter[str] = Counter()
    for (client_id, _), number in _processes_behind(allocations).items():
        processes[client_id] = max(processes[client_id], number)
    return dict(processes)


def _processes_behind(
    allocations: Sequence[Allocation[Any]],
) -> Counter[tuple[str, tuple[str, ...]]]:
    """The number of processes that use each client id in each view."""
    behind: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for allocation in allocations:
        behind[allocation.client_id, allocation.view_brokers] += allocation.processes
    return behind
