"""What the allocator raises.

ValueError
├── ChangeError                a what-if that this state does not allow
└── AllocationError            Java's IllegalArgumentException, with Java's text
    ├── MissingParameterError  where Java would throw a NullPointerException
    ├── UnknownStrategyError   a name that no strategy has
    └── InvalidParameterError  a parameter that no Java strategy could have been given
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from rebalance_core.english import names


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


class ChangeError(ValueError):
    """Raised where a change cannot be made: the client, the broker or the fault is not there."""


#: More names than this nobody reads in an error.
_MOST_NAMES = 5


def near_names(name: str, known: Collection[str]) -> str:
    """What to say to whoever asked for a name that is not there: the nearest, else some.

    >>> near_names("G_ORDR", ["G_ORDER", "G_PAY"])
    "did you mean 'G_ORDER'?"
    >>> near_names("x", ["G_PAY", "G_ORDER"])
    "there are 'G_ORDER', 'G_PAY'"
    >>> near_names("x", [])
    'there is none'
    """
    near = get_close_matches(name, sorted(known), n=3, cutoff=0.7)
    if near:
        return f"did you mean {', '.join(map(repr, near))}?"
    if not known:
        return "there is none"
    return f"there are {names([repr(each) for each in sorted(known)], _MOST_NAMES)}"
