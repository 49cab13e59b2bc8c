"""Moments, queues and clients in words, as an operator reads them."""

from collections.abc import Iterable, Mapping

from rebalance_core import english
from rebalance_core.english import MOST_NAMES, agreeing, list_of
from rebalance_core.texts import Text

from ...declared.instants import Instant
from ...declared.kinds import STALLED, kind_of
from .core_verdict import QueueKey

#: ``MQVersion.V4_0_0``; from there on each version has a number for its snapshot and one for its
#: release, ten patches a minor and ten minors a major version (4.0.0 to 5.9.9, in 5.3.3).
_VERSION_4_0_0, _OF_A_MINOR, _OF_A_MAJOR = 213, 20, 200


def between(first_seen: Instant, last_seen: Instant) -> Text:
    """The period as text, by the time of day.

    >>> between(0, 60_000_000)
    'from 00:00:00 to 00:01:00 UTC'
    """
    times = {"first_seen": clock(first_seen), "last_seen": zoned_clock(last_seen)}
    return Text("from {first_seen} to {last_seen}", **times)


def clock(moment: Instant) -> Text:
    """The time of day."""
    return Text("{at:clock}", at=moment)


def zoned_clock(moment: Instant) -> Text:
    """The time of day with its offset from UTC.

    >>> zoned_clock(60_000_000)
    '00:01:00 UTC'
    """
    return Text("{at:clockZ}", at=moment)


_DATED = {"{at:clock}": "{at:day}", "{at:clockZ}": "{at:dayZ}"}


def dated(text: str) -> str:
    """The text with the date of each time of day in it, for whoever reads of several days.

    >>> dated(Text("{time} it began", time=clock(60_000_000)))
    '1970-01-01 00:01:00 it began'
    """
    if not isinstance(text, Text):
        return text
    values = {name: dated(value) for name, value in text.values.items()}
    return Text(_DATED.get(text.template, text.template), **values)


def queues_in_words(queues: Iterable[QueueKey]) -> str:
    """The queues by broker.

    >>> queues_in_words([("broker-b", 0), ("broker-a", 1), ("broker-a", 0)])
    'queues 0-1 of broker-a and queue 0 of broker-b'
    """
    return english.queues_in_words(sorted(queues))


def clients_in_words(client_ids: Iterable[str], languages: Mapping[str, str]) -> str:
    """The client ids, each with the language of its SDK where a list has it.

    >>> clients_in_words(["b", "a"], {"a": "GO"})
    'a (GO) and b'
    """
    named = (
        Text("{client} ({language})", client=client_id, language=languages[client_id])
        if client_id in languages
        else client_id
        for client_id in sorted(client_ids)
    )
    return list_of(named, MOST_NAMES)


def waiting_in_words(messages: int) -> Text:
    """The number of waiting messages as text.

    >>> waiting_in_words(1), waiting_in_words(1200)
    ('1 message waits', '1,200 messages wait')
    """
    return agreeing(messages, "{messages:,} [message waits|messages wait]", messages=messages)


def fault_in_words(kind: str, queues: int) -> str:
    """A kind of fault, or of stalled queues, as a clause.

    >>> fault_in_words("GROUP_NOT_CONSUMING", 8), fault_in_words("STALLED", 2)
    ('The group consumes nothing', '2 queues stalled')
    """
    if kind == STALLED:
        return Text("{queues} stalled", queues=english.count(queues, "queue"))
    return kind_of(kind).title


def version_name(ordinal: int) -> str:
    """The version of an ordinal of ``MQVersion``; the number where that has none.

    >>> version_name(401), version_name(479), version_name(402), version_name(4)
    ('4.9.4', '5.3.3', '4.9.5-SNAPSHOT', '4')
    """
    number = ordinal - _VERSION_4_0_0
    if not 0 <= number < 2 * _OF_A_MAJOR:
        return str(ordinal)
    # The snapshot of a version comes before its release.
    is_snapshot, number = number % 2, number + number % 2
    major, minor = 4 + number // _OF_A_MAJOR, number % _OF_A_MAJOR // _OF_A_MINOR
    name = f"{major}.{minor}.{number % _OF_A_MINOR // 2}"
    return f"{name}-SNAPSHOT" if is_snapshot else name
