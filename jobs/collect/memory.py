"""Memory that a round leaves for the next one: who is there, and what was asked when.

A broker that hangs leaves the nameservers' answers, and a group that lost its last member names its
topics nowhere: both are asked for another hour. It is kept beside the dumps, so that single rounds
(cron) remember as well as a loop does.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zlib import crc32

from pydantic import TypeAdapter

from ..declared.instants import SECOND, Instant

#: The time after which what was not seen is forgotten.
KEPT: Instant = 3600 * SECOND
#: The time after which a member's running info is asked though others come and go: by then it has
#: had its first answer about each queue that stayed with it.
_PATIENCE: Instant = 300 * SECOND


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


class ConnectionsOfId(NamedTuple):
    """The connections that a list has of one id: how many, and a digest of their addresses."""

    number: int
    digest: int


def connections_of(addresses: Sequence[str]) -> ConnectionsOfId:
    """The connections with these addresses, in whatever order.

    >>> connections_of(["10.0.0.1:1", "10.0.0.2:1"]) == connections_of(["10.0.0.2:1", "10.0.0.1:1"])
    True
    """
    return ConnectionsOfId(len(addresses), crc32(repr(sorted(addresses)).encode()))


@dataclass
class GroupMemory:
    """The memory of a group.

    ``lists``: by broker name and id the connections of the last list. ``first_seen``: the members,
    with when each was seen first over the connections that it has. ``changed_at``: when the
    members, or the route of a topic, changed last. ``wanted``: whose running info is to be had,
    with since when. ``refreshed_at``: when the running infos of all were wanted last without a
    change. ``giver``: the address of the broker that named the group first.
    """

    seen_at: Instant = 0
    lists: dict[str, dict[str, ConnectionsOfId]] = field(default_factory=dict)
    first_seen: dict[str, Instant] = field(default_factory=dict)
    changed_at: Instant | None = None
    wanted: dict[str, Instant] = field(default_factory=dict)
    refreshed_at: Instant | None = None
    giver: str = ""

    def take_list(self, place: str, listed: dict[str, ConnectionsOfId], now: Instant) -> bool:
        """Takes in the list of a broker; whether the members are others than before.

        Who has another connection may be another process: its time begins anew. By itself that is
        not a change: nobody divides anew for it.

        >>> group, one = GroupMemory(), connections_of(["10.0.0.1:1"])
        >>> group.take_list("a/0", {"c": one}, 5), group.take_list("a/0", {"c": one}, 6)
        (True, False)
        >>> group.take_list("a/0", {"c": connections_of(["10.0.0.1:2"])}, 7), group.first_seen
        (False, {'c': 7})
        """
        before = self.lists.get(place)
        self.lists[place] = listed
        has_changed = before is not None and before.keys() != listed.keys()
        for client_id, connections in listed.items():
            known = self.first_seen.setdefault(client_id, now) < now
            was = (before or {}).get(client_id)
            has_changed |= not known or (was is not None and was.number != connections.number)
            if was not in (None, connections):
                self.first_seen[client_id] = now
        return has_changed

    def may_ask(self, client_id: str, now: Instant, settle: Instant) -> bool:
        """True if the member is long enough there to be asked, and what it holds has settled.

        A group that changes again and again never settles: who is wanted for long is asked there.
        """
        if abs(now - self.first_seen[client_id]) < settle:
            return False
        is_settled = self.changed_at is None or abs(now - self.changed_at) >= settle
        return is_settled or now - self.wanted[client_id] >= _PATIENCE


@dataclass
class GroupMembers:
    """The members of a group, as the brokers have reported them in this round."""

    group: str
    memory: GroupMemory
    is_due: bool
    #: The brokers that list each client id.
    brokers: dict[str, list[ListedBroker]] = field(default_factory=dict)
    #: The ids that a list has twice: different processes answer on different brokers.
    twice: set[str] = field(default_factory=set)
    has_changed: bool = False
    #: True if any broker has given a list.
    is_listed: bool = False


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
        brokers = sorted(given, key=lambda broker: broker not in self.brokers)
        given_now = {broker[:3] for broker in brokers} | {broker.address for broker in brokers}
        retain(self.brokers, lambda known, _: given_now.isdisjoint((known[:3], known.address)))
        self.brokers |= dict.fromkeys(brokers, now)

    def forget(self, now: Instant) -> None:
        """Drops what was not seen for an hour, and lists of brokers that are not there any more."""
        least = now - KEPT
        for remembered in (self.brokers, self.topics, self.refused, self.answered):
            retain(remembered, lambda _, seen_at: seen_at >= least)
        retain(self.groups, lambda _, group: group.seen_at >= least)
        places = {broker.place for broker in self.brokers}
        for group in self.groups.values():
            retain(group.lists, lambda place, _: place in places)
            listed = set().union(*group.lists.values())
            for times in (group.first_seen, group.wanted):
                for client_id in times.keys() - listed:
                    del times[client_id]

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
