"""What the allocator raises.

ValueError
└── AllocationError            Java's IllegalArgumentException, with Java's text
    ├── MissingParameterError  where Java would throw a NullPointerException
    ├── UnknownStrategyError   a name that no strategy has
    └── InvalidParameterError  a parameter that no Java strategy could have been given
"""

from __future__ import annotations

__all__ = [
    "AllocationError",
    "InvalidParameterError",
    "MissingParameterError",
    "UnknownStrategyError",
]


class AllocationError(ValueError):
    """Raised where Java's strategy throws; the text of an IllegalArgumentException is Java's own.

    A client whose strategy throws keeps the queues that it holds (RocketMQ 5.3.3, RebalanceImpl).
    """


class MissingParameterError(AllocationError):
    """Raised where a parameter is not set that Java would dereference (NullPointerException)."""


class UnknownStrategyError(AllocationError):
    """Raised when a strategy is asked for by a name that none has."""


class InvalidParameterError(AllocationError):
    """Raised when a parameter of a strategy is unknown, of a wrong type, or a bad expression."""
