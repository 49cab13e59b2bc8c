"""Shares of an evaluation: how many queues each client and process has, whichever view it draws,
and the queues that change hands when a fault is repaired or a change is made.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from .findings import Allocation, Evaluation
from .message_queue import MessageQueue, sort_message_queues
from .strategy import original_and_copy
from .texts import Text

#: A process: its client id before it got a separate one, and its number among the copies.
ProcessKey: TypeAlias = tuple[str, int]
#: A client id, and the brokers of a view.
_InView: TypeAlias = tuple[str, tuple[str, ...]]


class Division(NamedTuple):
    """The division of the queues of one topic or several among a group's processes.

    ``processes`` subscribe to one of the topics at least. ``idle`` of them get no queue, ``most``
    are the queues of the one that gets most.
    """

    queues: int
    processes: int
    idle: int
    most: int

    @property
    def working(self) -> int:
        """The number of processes that get queues."""
        return self.processes - self.idle


def divide(evaluations: Iterable[Evaluation]) -> Division:
    """The division of the queues of these topics; a queue that is taken at times counts as taken.

    >>> def takes(client_id, *queues):
    ...     return Allocation(client_id, 1, True, "AVG", "assumed", ("x",), 1.0, 3, 3, queues)
    >>> divide([Evaluation("AUDITED", "", 1.0, 3, 3, 3, allocations=(
    ...     takes("a", 0, 1), takes("b", 2), takes("c")))])
    Division(queues=3, processes=3, idle=1, most=2)
    """
    queues, taken = 0, defaultdict[ProcessKey, set[MessageQueue]](set)
    for evaluation in evaluations:
        queues += evaluation.queues
        for process, process_queues in queues_of_processes(evaluation).items():
            taken[process] |= process_queues
    numbers = [len(process_queues) for process_queues in taken.values()]
    return Division(queues, len(numbers), numbers.count(0), max(numbers, default=0))


def queues_of_processes(evaluation: Evaluation) -> dict[ProcessKey, frozenset[MessageQueue]]:
    """The queues that each process that subscribes takes, under some view at least."""
    taken: dict[ProcessKey, set[MessageQueue]] = defaultdict(set)
    numbered = Counter[_InView]()
    for allocation in evaluation.allocations:
        client_id, copy = original_and_copy(allocation.client_id)
        # Processes of one id that differ have a row each, in the same order under every view.
        in_view = (allocation.client_id, allocation.view_brokers)
        for _ in range(allocation.processes):
            if allocation.subscribed:
                taken[client_id, copy + numbered[in_view]].update(allocation.queues)
            numbered[in_view] += 1
    return {process: frozenset(queues) for process, queues in taken.items()}


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


def _processes_behind(allocations: Sequence[Allocation[Any]]) -> Counter[_InView]:
    """The number of processes that use each client id in each view."""
    behind = Counter[_InView]()
    for allocation in allocations:
        behind[allocation.client_id, allocation.view_brokers] += allocation.processes
    return behind


class Move(NamedTuple):
    """A queue whose takers change with a repair, by client id, once for each process.

    One that takes it under some views alone is followed by "(at times)".
    """

    topic: str
    broker_name: str
    queue_id: int
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def queue(self) -> MessageQueue:
        """The queue."""
        return MessageQueue(self.topic, self.broker_name, self.queue_id)


def find_moves(before: Evaluation, after: Evaluation) -> tuple[Move, ...]:
    """The queues whose takers are others after than before, in Java's order."""
    takers, now = _takers(before), _takers(after)
    return tuple(
        Move(queue.topic, queue.broker_name, queue.queue_id, gives, takes)
        for queue in sort_message_queues({*takers, *now})
        if (gives := takers.get(queue, ())) != (takes := now.get(queue, ()))
    )


def _takers(evaluation: Evaluation) -> dict[MessageQueue, tuple[str, ...]]:
    """The takers of each queue, one entry per process."""
    shares: dict[MessageQueue, dict[tuple[str, int], float]] = defaultdict(
        lambda: defaultdict(float)
    )
    for allocation in evaluation.allocations:
        taker = (shown_id(allocation.client_id), allocation.processes)
        for queue in set(allocation.queues):
            shares[queue][taker] += allocation.view_weight
    return {
        queue: tuple(
            client_id if share > 1 - 1e-9 else Text("{client} (at times)", client=client_id)
            for (client_id, processes), share in sorted(share_by_taker.items())
            for _ in range(processes)
        )
        for queue, share_by_taker in shares.items()
    }


def shown_id(client_id: str) -> str:
    """A client id as a person reads it; the id that a process would get, by the process's number.

    >>> from rebalance_core.strategy import copy_id
    >>> shown_id("10.0.0.1@app"), shown_id(copy_id("10.0.0.1@app", 1))
    ('10.0.0.1@app', '10.0.0.1@app (process 2)')
    """
    original, copy = original_and_copy(client_id)
    if copy == 0:
        return original
    return Text("{client} (process {number})", client=original, number=copy + 1)
