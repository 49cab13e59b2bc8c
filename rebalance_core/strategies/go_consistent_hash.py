"""CONSISTENT_HASH of client-go: another ring, of CRC-32 hashes."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np

from rebalance_core.message_queue import MessageQueue
from rebalance_core.strategies.base import NOTHING, AllocationStrategy, Positions
from rebalance_core.strategies.consistent_hash import (
    DEFAULT_VIRTUAL_NODE_COUNT,
    positions_by_owner,
    utf8_of,
)
from rebalance_core.strategies.sdk import Sdk

__all__ = ["GoConsistentHash"]


class GoConsistentHash(AllocationStrategy):
    """Each client id has some points on a ring; a queue is owned by the next point's client.

    Not the ring of Java: the hash is CRC-32, a point is that of the replica's number before the
    client id, and a point on the very hash of a queue is passed by. A copy of an id has the same
    points again: all its processes take the same queues (duplicates), but no queue is orphaned.

    Go's constructor has no default for ``virtual_node_count``; Java's is taken where none is
    given. Where it is not positive nobody takes anything: at 0 Go divides by it and gives up.

    Source: ``AllocateByConsistentHash``, ``consumer/strategy.go``, rocketmq-client-go 2.1 (the
    first previews of 2.0.0 had AVG), over ``stathat.com/c/consistent`` 1.0.0.
    """

    def __init__(self, virtual_node_count: int = DEFAULT_VIRTUAL_NODE_COUNT) -> None:
        self._virtual_node_count = virtual_node_count

    @property
    def name(self) -> str:
        """``CONSISTENT_HASH``."""
        return "CONSISTENT_HASH"

    @property
    def variant(self) -> str:
        """``client-go``."""
        return Sdk.GO.value

    def _positions(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, Positions]:
        distinct_ids = list(dict.fromkeys(client_ids))
        if self._virtual_node_count <= 0:
            return dict.fromkeys(distinct_ids, NOTHING)
        owner_of = {
            _hash(f"{replica}{client_id}"): number  # a collision: the later id overwrites
            for number, client_id in enumerate(distinct_ids)
            for replica in range(self._virtual_node_count)
        }
        points = np.array(sorted(owner_of), dtype=np.int64)
        owners = np.array([owner_of[point] for point in points.tolist()], dtype=np.int64)
        hashes = np.array([_hash(str(queue)) for queue in queues], dtype=np.int64)
        # The first point behind the hash; past the last point the ring starts again.
        next_point = np.searchsorted(points, hashes, side="right") % len(points)
        return positions_by_owner(owners[next_point], distinct_ids)


def _hash(text: str) -> int:
    """The CRC-32 (IEEE) of the text in UTF-8.

    >>> _hash("123456789") == 0xCBF43926
    True
    """
    return crc32(utf8_of(text))
