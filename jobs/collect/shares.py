"""Names that servers give, at most so many in all: the server that gives most loses its last ones.

One server that names hundreds of thousands of groups must not keep the others' from being asked.
The names are walked through by turns, one of each giver: those of a server that names few come
early, however many another one names.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Name = TypeVar("Name", bound=Hashable)
#: The giver of a name: its cluster, and its address.
Giver = tuple[str, str]


class Shares(Generic[Name]):
    """The names that were taken, each under who gave it first.

    >>> shares: Shares[str] = Shares(3)
    >>> loud, quiet = ("C", "a:1"), ("C", "b:1")
    >>> [shares.add(name, loud) for name in ("x", "y", "z", "u")], shares.add("G", quiet)
    ([True, True, True, False], True)
    >>> ["x" in shares, "z" in shares, "G" in shares, shares.left_out]
    [True, False, True, 2]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[Name] = set()
        #: The names by who gave them first, in the order in which they came.
        self.given: dict[Giver, list[Name]] = {}
        self.left_out = 0
        #: The givers of as many as any when there was no room left: no share grows from then on.
        self._refused: set[Giver] = set()

    def __contains__(self, name: Name) -> bool:
        return name in self._names

    def __len__(self) -> int:
        return len(self._names)

    def within(self, names: list[str]) -> list[str]:
        """The names of an answer, cut to as many as could be taken at all."""
        self.left_out += max(0, len(names) - self._most)
        return names[: self._most]

    def add(self, name: Name, giver: Giver) -> bool:
        """Takes the name, where there is room or can be made; whether it is among those taken."""
        if name in self._names:
            return True
        if len(self._names) >= self._most:
            self.left_out += 1
            if giver in self._refused:
                return False
            largest = max(self.given.values(), key=len)
            if len(self.given.get(giver, ())) + 1 >= len(largest):
                self._refused.add(giver)
                return False
            self._names.remove(largest.pop())
        self._names.add(name)
        self.given.setdefault(giver, []).append(name)
        return True

    def walk(self, cluster: str | None = None) -> Iterator[Name | None]:
        """All names that were given in a cluster (None: in any), one of each giver by turns.

        None where there is none now: those that come later are given then.

        >>> shares: Shares[str] = Shares(9)
        >>> [shares.add(name, ("C", "a:1")) for name in "xy"], shares.add("G", ("C", "b:1"))
        ([True, True], True)
        >>> walk = shares.walk("C")
        >>> next(walk), next(walk), next(walk), next(walk)
        ('x', 'G', 'y', None)
        """
        places: Counter[Giver] = Counter()
        while True:
            left = [
                giver
                for giver, names in self.given.items()
                if places[giver] < len(names) and cluster in (None, giver[0])
            ]
            if not left:
                yield None
                continue
            giver = min(left, key=places.__getitem__)
            places[giver] += 1
            yield self.given[giver][places[giver] - 1]
