"""AVG: equal blocks of consecutive queues; AVG_BY_CIRCLE: the clients take turns."""

import numpy as np

from .base import AllocationStrategy, ClientIds, Positions, Queues


class Averagely(AllocationStrategy):
    """Blocks of consecutive queues; the first clients take one more where it does not divide.

    With 8 queues and the clients a, b, c: a takes 0 to 2, b 3 to 5, c 6 and 7.
    With 8 queues and the clients a, a, b: both processes of a take 0 to 2, the queues 3 to 5 are
    orphaned, for the second a's slot is nobody's, and b takes 6 and 7.
    With 2 queues and the clients a, b, c: c takes nothing.

    Source: ``AllocateMessageQueueAveragely``, RocketMQ 5.3.3.
    """

    name = "AVG"
    java_class = "AllocateMessageQueueAveragely"

    def _positions(self, queues: Queues, client_ids: ClientIds) -> dict[str, Positions]:
        size, longer_blocks = divmod(len(queues), len(client_ids))
        all_positions = np.arange(len(queues), dtype=np.int64)
        cut = longer_blocks * (size + 1)
        longer = all_positions[:cut].reshape(longer_blocks, size + 1)
        others = all_positions[cut:].reshape(len(client_ids) - longer_blocks, size)
        return self._by_first_slot(client_ids, [*longer, *others])


class AveragelyByCircle(AllocationStrategy):
    """The i-th of k clients takes the queues i, i + k, i + 2k and so on.

    With 5 queues and the clients a, b: a takes 0, 2, 4 and b takes 1, 3.
    With 5 queues and the clients a, a, b: both processes of a take 0 and 3, the queues 1 and 4
    are orphaned, and b takes 2.

    Source: ``AllocateMessageQueueAveragelyByCircle``, RocketMQ 5.3.3.
    """

    name = "AVG_BY_CIRCLE"
    java_class = "AllocateMessageQueueAveragelyByCircle"

    def _positions(self, queues: Queues, client_ids: ClientIds) -> dict[str, Positions]:
        size, longer_turns = divmod(len(queues), len(client_ids))
        # A column for each client; the first ones have an entry in the last row too.
        positions = np.arange((size + 1) * len(client_ids), dtype=np.int64)
        rounds = positions.reshape(size + 1, len(client_ids))
        turns = [*rounds.T[:longer_turns], *rounds[:size].T[longer_turns:]]
        return self._by_first_slot(client_ids, turns)
