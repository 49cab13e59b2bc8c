"""AVG_BY_CIRCLE: the clients take turns, queue by queue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rebalance_core.message_queue import MessageQueue
from rebalance_core.strategies.base import AllocationStrategy, Positions, by_first_slot

__all__ = ["AveragelyByCircle"]


class AveragelyByCircle(AllocationStrategy):
    """Of k clients, the i-th takes the queues i, i + k, i + 2k and so on.

    With 5 queues and the clients a, b: a takes 0, 2, 4 and b takes 1, 3.
    With 5 queues and the clients a, a, b: both processes of a take 0 and 3, the queues 1 and 4
    are orphaned, and b takes 2.

    Source: ``AllocateMessageQueueAveragelyByCircle``, RocketMQ 5.3.3.
    """

    @property
    def name(self) -> str:
        """``AVG_BY_CIRCLE``."""
        return "AVG_BY_CIRCLE"

    def _positions(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, Positions]:
        size, longer_turns = divmod(len(queues), len(client_ids))
        # A column for each client; the first ones have an entry in the last row too.
        positions = np.arange((size + 1) * len(client_ids), dtype=np.int64)
        rounds = positions.reshape(size + 1, len(client_ids))
        turns = [*rounds.T[:longer_turns], *rounds[:size].T[longer_turns:]]
        return by_first_slot(client_ids, turns)
