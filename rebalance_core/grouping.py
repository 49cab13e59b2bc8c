"""Values by key: how most that is computed is read."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key, keys and values in the order in which they come.

    >>> grouped([("b", 2), ("a", 1), ("b", 3)])
    {'b': [2, 3], 'a': [1]}
    """
    found: dict[Key, list[Value]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return dict(found)


def numbered(values: Iterable[Value]) -> Iterator[tuple[Value, int]]:
    """Each value with how many equal ones come before it.

    >>> list(numbered("aba"))
    [('a', 0), ('b', 0), ('a', 1)]
    """
    seen: Counter[Value] = Counter()
    for value in values:
        yield value, seen[value]
        seen[value] += 1
