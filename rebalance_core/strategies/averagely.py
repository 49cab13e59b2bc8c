"""AVG: every client takes one block of consecutive queues."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rebalance_core.message_queue import MessageQueue
from rebalance_core.strategies.base import AllocationStrategy, Positions, by_first_slot

__all__ = ["Averagely"]


class Averagely(AllocationStrategy):
    """Blocks of consecutive queues; the first clients take one more where it does not divide.

    With 8 queues and the clients a, b, c: a takes 0 to 2, b 3 to 5, c 6 and 7.
    With 8 queues and the clients a, a, b: both processes of a take 0 to 2, the queues 3 to 5 are
    orphaned, for the second a's slot is nobody's, and b takes 6 and 7.
    With 2 queues and the clients a, b, c: c takes nothing.

    Source: ``AllocateMessageQueueAveragely``, RocketMQ 5.3.3.
    """

    @property
    def name(self) -> str:
        """``AVG``."""
        return "AVG"

    def _positions(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, Positions]:
        size, longer_blocks = divmod(len(queues), len(client_ids))
        all_positions = np.arange(len(queues), dtype=np.int64)
        cut = longer_blocks * (size + 1)
        longer = all_positions[:cut].reshape(longer_blocks, size + 1)
        others = all_positions[cut:].reshape(len(client_ids) - longer_blocks, size)
        return by_first_slot(client_ids, [*longer, *others])
