"""RocketMQ's allocation strategies, bit for bit (checked against the Java classes of 5.3.x).

Every consumer of a group sorts the queues of a topic and the client ids of the group and asks
its strategy which queues it takes. Nothing else decides who consumes what. What other SDKs and
older clients compute under the same names are separate strategies (``Sdk``).
"""

from rebalance_core.strategies.base import (
    AllocationStrategy,
    copy_id,
    original_and_copy,
    original_id,
)
from rebalance_core.strategies.factory import JAVA_CLASSES, make_strategy
from rebalance_core.strategies.sdk import Sdk, sdk_of

__all__ = [
    "JAVA_CLASSES",
    "AllocationStrategy",
    "Sdk",
    "copy_id",
    "make_strategy",
    "original_and_copy",
    "original_id",
    "sdk_of",
]
