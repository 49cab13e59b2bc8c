"""Memory that a round leaves for the next one: who is there, and what was asked when.

A broker that hangs leaves the nameservers' answers, and a group that lost its last member names its
topics nowhere: both are asked for another hour. It is kept beside the dumps, so that single rounds
(cron) remember as well as a loop does.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from ..declared.client_intervals import FOLLOW_TIME
from ..declared.instants import SECOND, Instant

#: The time after which what was not seen is forgotten.
KEPT: Instant = 3600 * SECOND


class ListedBroker(NamedTuple):
    """A broker as a nameserver gives it. ``is_master``: it has the least id of its name."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    is_master: bool

    @property
    def place(self) -> str:
        """Its name and id: it may move to another address."""
        return f"{self.broker_name}/{self.broker_id}"


def retain(remembered: dict[Any, Any], is_wanted: Callable[[Any, Any], bool]) -> None:
    """Forgets what is not wanted any more, by its name and its value."""
    for name in [name for name, value in remembered.items() if not is_wanted(name, value)]:
        del remembered[name]


@dataclass
class GroupMemory:
    """The memory of a group.

    ``lists``: by broker name and id a digest of the last list. ``infos_at``: when its running infos
    were asked last. ``changed_at``: when a list of it changed last. ``unanswered``: the members
    whose running info is still to be had, with when they were asked last. ``giver``: the address of
    the broker that named it first.
    """

    seen_at: Instant = 0
    lists: dict[str, str] = field(default_factory=dict)
    infos_at: Instant | None = None
    changed_at: Instant | None = None
    unanswered: dict[str, Instant] = field(default_factory=dict)
    giver: str = ""

    def is_due(self, now: Instant, refresh: Instant) -> bool:
        """True if the running infos of all members are asked in the round that begins now.

        They are asked in each round while the clients follow a change of the list.
        """
        if self.infos_at is None or now - self.infos_at >= refresh:
            return True
        return self.changed_at is not None and now - self.changed_at < FOLLOW_TIME


@dataclass
class Memory:
    """The memory of all that one list of nameservers gives.

    The keys of ``groups`` and ``topics`` are (cluster, name). ``brokers``: with when a nameserver
    gave them last. ``refused``: by address and request code what a broker does not know (3), with
    when it was asked. ``answered``: by address when it answered last. ``routes``: by cluster, topic
    and nameserver a digest of the last route.
    """

    brokers: dict[ListedBroker, Instant] = field(default_factory=dict)
    groups: dict[tuple[str, str], GroupMemory] = field(default_factory=dict)
    topics: dict[tuple[str, str], Instant] = field(default_factory=dict)
    refused: dict[tuple[str, int], Instant] = field(default_factory=dict)
    answered: dict[str, Instant] = field(default_factory=dict)
    routes: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def group(self, cluster: str, name: str) -> GroupMemory:
        """The memory of the group, which is remembered from now on."""
        return self.groups.setdefault((cluster, name), GroupMemory())

    def replace_brokers(self, given: Iterable[ListedBroker], now: Instant) -> None:
        """Remembers what a nameserver gives; an old address or role of one of them is forgotten.

        >>> memory = Memory()
        >>> memory.replace_brokers([ListedBroker("C", "a", 0, "10.0.0.1:10911", True)], 1)
        >>> memory.replace_brokers([ListedBroker("C", "a", 0, "10.0.0.2:10911", True)], 2)
        >>> [broker.address for broker in memory.brokers]
        ['10.0.0.2:10911']
        """
        # A broker that claims the address of a known one comes after it, and is not asked.
        brokers = sorted(given, key=lambda each: each not in self.brokers)
        given_now = {each[:3] for each in brokers} | {each.address for each in brokers}
        retain(self.brokers, lambda each, _: given_now.isdisjoint((each[:3], each.address)))
        self.brokers |= dict.fromkeys(brokers, now)

    def forget(self, now: Instant) -> None:
        """Drops what was not seen for an hour, and lists of brokers that are not there any more."""
        since = now - KEPT
        for times in (self.brokers, self.topics, self.refused, self.answered):
            retain(times, lambda _, seen_at: seen_at >= since)
        retain(self.groups, lambda _, group: group.seen_at >= since)
        places = {each.place for each in self.brokers}
        for group in self.groups.values():
            retain(group.lists, lambda place, _: place in places)

    def to_json(self) -> str:
        """The memory as one line of JSON; ``from_json`` reads it."""
        pairs = {name: [*values.items()] for name, values in vars(self).items()}
        return json.dumps(pairs, default=vars, ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> "Memory":
        """Reads what ``to_json`` wrote; ValueError for anything else."""
        try:
            values = {
                name: {tuple(key) if isinstance(key, list) else key: value for key, value in pairs}
                for name, pairs in json.loads(text).items()
            }
        except (TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"no memory of a collector: {error}") from error
        return _MEMORY.validate_python(values)


_MEMORY = TypeAdapter(Memory)
