"""English: counts, lists, ranges and verbs as a person writes them, once for every text.

Times are not here, for the core knows none: see ``jobs.text``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def noun(number: int, singular: str, plural: str | None = None) -> str:
    """The noun as it goes with a number; a verb too, where both its forms are given.

    >>> noun(1, "queue"), noun(0, "queue"), noun(2, "process", "processes"), noun(1, "is", "are")
    ('queue', 'queues', 'processes', 'is')
    """
    if number == 1:
        return singular
    return singular + "s" if plural is None else plural


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> count(1, "queue"), count(1200, "queue"), count(2, "is", "are")
    ('1 queue', '1,200 queues', '2 are')
    """
    return f"{number:,} {noun(number, singular, plural)}"


def verb(infinitive: str, number: int) -> str:
    """The verb as it goes with one, or with several.

    >>> verb("take", 1), verb("do", 1), verb("take", 2)
    ('takes', 'does', 'take')
    """
    if number != 1:
        return infinitive
    return infinitive + ("es" if infinitive.endswith("o") else "s")


def list_of(parts: Iterable[str], most: int | None = None, more: str = "more") -> str:
    """The parts as a person lists them: at most so many, then how many ``more`` there are.

    >>> list_of(["a"]), list_of(["a", "b", "c"]), list_of(["a", "b", "c"], most=1)
    ('a', 'a, b and c', 'a and 2 more')
    """
    every = list(parts)
    shown = every[:most]
    if len(shown) < len(every):
        shown.append(f"{len(every) - len(shown)} {more}")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def names(parts: Sequence[str], most: int) -> str:
    """Names that stand for themselves, where an "and" might be taken for one of them.

    >>> names(["a", "b", "c"], 3), names(["a", "b", "c"], 2)
    ('a, b, c', 'a, b and 1 more')
    """
    shown = ", ".join(parts[:most])
    return f"{shown} and {len(parts) - most} more" if len(parts) > most else shown


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in ascending order, those that follow each other as a range.

    >>> ranges([0, 1, 3, 4, 5, 9])
    '0-1, 3-5, 9'
    """
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def queues_of(broker_name: str, numbers: Sequence[int]) -> str:
    """Some queues of one broker, in ascending order.

    >>> queues_of("broker-a", [0, 1, 2, 3]), queues_of("broker-a", [2])
    ('queues 0-3 of broker-a', 'queue 2 of broker-a')
    """
    return f"{noun(len(numbers), 'queue')} {ranges(numbers)} of {broker_name}"


def named_broker(broker_name: str, broker_id: int) -> str:
    """A broker's name, with its id where it is not the master.

    >>> named_broker("broker-a", 0), named_broker("broker-a", 1)
    ('broker-a', 'broker-a (slave 1)')
    """
    return f"{broker_name} (slave {broker_id})" if broker_id else broker_name
