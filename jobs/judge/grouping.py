"""Values by key: how most rules read what they are about."""

from rebalance_core.grouping import grouped

__all__ = ["grouped"]
