"""RocketMQ's allocation strategies, bit for bit (checked against the Java classes of 5.3.x).

Every consumer of a group sorts the queues of a topic and the client ids of the group and asks
its strategy which queues are its own. Nothing else decides who consumes what.
"""

from __future__ import annotations

from rebalance_core.strategies.base import AllocationStrategy, original_id, own_id
from rebalance_core.strategies.factory import make_strategy

__all__ = ["AllocationStrategy", "make_strategy", "original_id", "own_id"]
