"""English: counts, lists and ranges as a person writes them, once for every text.

What has words in it is a ``Text``, so that another language has its words and its order. What is
one name alone is that name. Times are not here, for the core has none: see ``jobs.texts.shown``.
"""

from collections.abc import Iterable, Sequence

from .grouping import grouped
from .texts import Text, TextValue, forms

#: More names than this in one sentence nobody reads; columns and tables have them all.
MOST_NAMES = 5


def count(number: int, singular: str, plural: str | None = None) -> Text:
    """A number with its noun; ``counted`` gives the template that another language has.

    >>> count(1, "queue"), count(1200, "queue"), count(0, "process", "processes")
    ('1 queue', '1,200 queues', '0 processes')
    """
    return agreeing(number, counted(singular, plural), number=number)


def counted(singular: str, plural: str | None = None) -> str:
    """The template of ``count``.

    >>> counted("queue"), counted("process", "processes")
    ('{number:,} [queue|queues]', '{number:,} [process|processes]')
    """
    return f"{{number:,}} [{singular}|{plural or singular + 's'}]"


def agreeing(number: int, template: str, /, **values: TextValue) -> Text:
    """The text of a template that has ``[one|many]`` wherever its words go with a number of things.

    The text has the template for that number alone; a catalogue of ``jobs.languages`` has both in
    one entry.

    >>> text = agreeing(1, "{clients} [takes|take] a slot", clients="a")
    >>> text, text.template
    ('a takes a slot', '{clients} takes a slot')
    """
    one, many = forms(template)
    return Text(one if number == 1 else many, **values)


def within(text: str) -> str:
    """The text as it goes on within a sentence: without its capital, which English alone has.

    >>> within(Text("After the repair"))
    'after the repair'
    """
    english = text[:1].lower() + text[1:]
    return Text.of(english, text.template, text.values) if isinstance(text, Text) else english


def joined(parts: Iterable[str], template: str = "{before}; {next}") -> str:
    """The parts one after the other, as the template joins two of them.

    They are joined in halves, so that a text of thousands of parts is not nested as deeply.

    >>> joined(["a takes 1", "b takes 2", "c takes 3"]), joined(["a"]), joined([])
    ('a takes 1; b takes 2; c takes 3', 'a', '')
    """
    every = list(parts)
    if len(every) < 2:
        return every[0] if every else ""
    half = len(every) // 2
    before, after = joined(every[:half], template), joined(every[half:], template)
    return Text(template, before=before, next=after)


def with_commas(parts: Iterable[str]) -> str:
    """The parts with a comma between two of them, where an "and" might be taken for one of them.

    >>> with_commas(["a", "b", "c"])
    'a, b, c'
    """
    return joined(parts, "{before}, {next}")


def list_of(
    parts: Iterable[str], most: int | None = None, more: tuple[str, str] = ("more", "more")
) -> str:
    """The parts as a person lists them: at most so many, then how many ``more`` there are.

    >>> list_of(["a"]), list_of(["a", "b", "c"]), list_of(["a", "b", "c"], most=1)
    ('a', 'a, b and c', 'a and 2 more')
    >>> list_of(["a", "b"], 1, ("more broker", "more brokers"))
    'a and 1 more broker'
    """
    every = list(parts)
    shown = every[:most]
    if shown and len(shown) < len(every):
        rest = count(len(every) - len(shown), *more)
        return Text("{before} and {rest}", before=with_commas(shown), rest=rest)
    if len(shown) < 2:
        return joined(shown)
    return Text("{before} and {last}", before=with_commas(shown[:-1]), last=shown[-1])


def names(parts: Sequence[str], most: int) -> str:
    """Names as they are, where an "and" might be taken for one of them.

    >>> names(["a", "b", "c"], 3), names(["a", "b", "c"], 2)
    ('a, b, c', 'a, b and 1 more')
    """
    return list_of(parts, most) if len(parts) > most else with_commas(parts)


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in ascending order, those that follow each other as a range.

    No ``Text``: it has no words, and there may be tens of thousands of ranges.

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


def queues_of(broker_name: str, numbers: Sequence[int]) -> Text:
    """Some queues of one broker, in ascending order.

    >>> queues_of("broker-a", [0, 1, 2, 3]), queues_of("broker-a", [2])
    ('queues 0-3 of broker-a', 'queue 2 of broker-a')
    """
    if len(numbers) == 1:
        return Text("queue {number} of {broker}", number=numbers[0], broker=broker_name)
    return Text("queues {numbers} of {broker}", numbers=ranges(numbers), broker=broker_name)


def queues_in_words(queues: Iterable[tuple[str, int]]) -> str:
    """The queues by broker, in the order in which they come; (broker name, queue id).

    >>> queues_in_words([("broker-a", 0), ("broker-a", 1), ("broker-b", 0)])
    'queues 0-1 of broker-a and queue 0 of broker-b'
    """
    in_words = [queues_of(name, numbers) for name, numbers in grouped(queues).items()]
    return list_of(in_words, MOST_NAMES, ("more broker", "more brokers"))


def named_broker(broker_name: str, broker_id: int) -> str:
    """A broker's name, with its id where it is not the master.

    >>> named_broker("broker-a", 0), named_broker("broker-a", 1)
    ('broker-a', 'broker-a (slave 1)')
    """
    if not broker_id:
        return broker_name
    return Text("{broker} (slave {id})", broker=broker_name, id=broker_id)
