"""Checks of the parameters of a strategy, as settings hold them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import InvalidParameterError

Params: TypeAlias = Mapping[str, Any]


def is_list(value: Any) -> bool:
    """True if it is a list or a tuple, not a text."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def is_whole(value: Any) -> bool:
    """True if it is a whole number, not a bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def wrong(name: str, where: str, expected: str, value: Any) -> InvalidParameterError:
    """The error of a parameter of the strategy ``name``: what was expected and what came."""
    return InvalidParameterError(
        f"{name}: {where}: expected {expected}, got {value!r} ({type(value).__name__})"
    )
