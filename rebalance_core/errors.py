"""Errors of the allocator.

ValueError
├── ChangeError                a what-if that this state does not allow
└── AllocationError            Java's IllegalArgumentException, with Java's text
    ├── MissingParameterError  where Java would throw a NullPointerException
    ├── UnknownStrategyError   a name that no strategy has
    └── InvalidParameterError  a parameter that no Java strategy could have been given
"""

from collections.abc import Collection
from difflib import get_close_matches

from .english import MOST_NAMES, names
from .grouping import grouped


class AllocationError(ValueError):
    """Raised where Java's strategy throws; the text of an IllegalArgumentException is Java's own.

    A client whose strategy throws keeps the queues that it holds (RocketMQ 5.3.3, RebalanceImpl).
    """

    @property
    def text(self) -> str:
        """The message; what is not Java's own text is a ``Text``, for other languages."""
        return self.args[0] if self.args and isinstance(self.args[0], str) else str(self)


class MissingParameterError(AllocationError):
    """Raised where a parameter is not set that Java would dereference (NullPointerException)."""


class UnknownStrategyError(AllocationError):
    """Raised when a strategy is asked for by a name that none has."""


class InvalidParameterError(AllocationError):
    """Raised when a parameter of a strategy is unknown, of a wrong type, or a bad expression."""


class ChangeError(ValueError):
    """Raised where a change cannot be made: the client, the broker or the fault is not there."""


#: The fewest letters of a name that are taken for its beginning.
_SHORTEST_BEGINNING = 3


def nearest(name: str, there: Collection[str]) -> list[str]:
    """The names that whoever wrote this one may have meant, in upper or lower case.

    Those alone that differ by case only, where there are any.

    >>> nearest("g_ordr", ["G_ORDER", "G_PAY"]), nearest("g_s2", ["G_S1", "G_S2"])
    (['G_ORDER'], ['G_S2'])
    >>> nearest("orphaned", ["orphaned_queues", "events"])
    ['orphaned_queues']
    """
    by_case = grouped((name_there.casefold(), name_there) for name_there in sorted(there))
    folded_name = name.casefold()
    if folded_name in by_case:
        return by_case[folded_name][:3]
    near = get_close_matches(folded_name, list(by_case), n=3, cutoff=0.7)
    if not near and len(folded_name) >= _SHORTEST_BEGINNING:
        near = [folded for folded in by_case if folded.startswith(folded_name)]
    return [near_name for folded in near for near_name in by_case[folded]][:3]


def near_names(name: str, there: Collection[str]) -> str:
    """The end of an error about a name that is not there: the nearest names, else some.

    >>> near_names("G_ORDR", ["G_ORDER", "G_PAY"])
    "did you mean 'G_ORDER'?"
    >>> near_names("x", ["G_PAY", "G_ORDER"])
    "there are 'G_ORDER', 'G_PAY'"
    >>> near_names("x", ["G_PAY"])
    "there is only 'G_PAY'"
    >>> near_names("x", [])
    'there is none'
    """
    near = nearest(name, there)
    if near:
        return f"did you mean {', '.join(map(repr, near))}?"
    if not there:
        return "there is none"
    if len(there) == 1:
        return f"there is only {next(iter(there))!r}"
    return f"there are {names(list(map(repr, sorted(there))), MOST_NAMES)}"
