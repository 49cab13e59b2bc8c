"""The queues that change hands when a fault is repaired, or a change is made."""

from collections import defaultdict
from typing import NamedTuple

from .findings import Evaluation
from .message_queue import MessageQueue, sort_message_queues
from .strategies.base import original_and_copy
from .texts import Text


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
    takers = _takers(before), _takers(after)
    queues = sort_message_queues(list({*takers[0], *takers[1]}))
    moves = (
        Move(q.topic, q.broker_name, q.queue_id, takers[0].get(q, ()), takers[1].get(q, ()))
        for q in queues
    )
    return tuple(move for move in moves if move.before != move.after)


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
            for (client_id, processes), share in sorted(of_queue.items())
            for _ in range(processes)
        )
        for queue, of_queue in shares.items()
    }


def shown_id(client_id: str) -> str:
    """A client id as a person reads it; the id that a process would get, by the process's number.

    >>> from rebalance_core.strategies.base import copy_id
    >>> shown_id("10.0.0.1@app"), shown_id(copy_id("10.0.0.1@app", 1))
    ('10.0.0.1@app', '10.0.0.1@app (process 2)')
    """
    original, copy = original_and_copy(client_id)
    if copy == 0:
        return original
    return Text("{client} (process {number})", client=original, number=copy + 1)
