"""State: all that the members of one group could see of one topic at one moment.

A state is the input of everything the audit computes. It holds what was collected, not what
follows from it: views, processes, claims and findings are all derived from it, and a repair
(what if this fault were mended?) is a function from state to state.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeAlias

from .grouping import grouped
from .message_queue import is_mock_broker

PERM_READ = 4
PERM_WRITE = 2
MASTER_ID = 0

#: The percentage at which the member subscribes for sure.
SURE = 100

#: Sources of what a member subscribes to, the surest first. GROUP_TABLE: it is that of its group's
#: table, for the member reported none itself.
GROUP_TABLE = "GROUP_TABLE"
SUBSCRIPTION_SOURCES = ("HEARTBEAT", "RUNNING_INFO", GROUP_TABLE)

#: ``MessageRequestMode``: each queue has one client; many clients share a queue.
PULL = "PULL"
POP = "POP"

#: The filter that lets every message pass: see ``normalise_expression``.
NO_FILTER = "TAG *"

CLUSTERING = "CLUSTERING"
BROADCASTING = "BROADCASTING"


class Member(NamedTuple):
    """One connection in one broker's list of a group: a tuple, for there are millions of them.

    One process has one connection, and so one member, per broker address it talks to; the ports
    differ, so a process cannot be followed from one broker's list to the next by its address.
    """

    client_id: str
    #: ``host:port`` as the broker saw it; unique within one broker's list.
    client_addr: str
    #: True if the member subscribes to the topic of the state.
    subscribed: bool = True
    #: ``CLUSTERING`` or ``BROADCASTING``.
    message_model: str = CLUSTERING
    #: The strategy's RocketMQ name as it was seen of this client, or None where nobody saw it.
    strategy: str | None = None
    #: False where the broker assigns the queues (POP); None where nothing shows it.
    client_rebalance: bool | None = None
    language: str | None = None
    version: int | None = None
    #: Its filter on the topic, as ``normalise_expression`` gives it; None where nothing shows it.
    expression: str | None = None
    #: True if its last heartbeat is older than a broker keeps a silent member; None where no
    #: heartbeat of it was collected.
    is_expired: bool | None = None
    #: True if it chooses its queues itself (``assign()`` of the lite pull consumer, or the pull
    #: consumer): it takes a slot, and what it reads nobody can compute.
    chooses_queues: bool = False
    #: HEARTBEAT, RUNNING_INFO or GROUP_TABLE: where it was seen what it subscribes to.
    subscription_source: str | None = None
    #: The likelihood that it subscribes, in percent: the share of polls with the topic, where only
    #: the group's subscription table shows it, and not in all polls.
    subscribed_percent: int = SURE


@dataclass(frozen=True, slots=True)
class ClientList:
    """The answer of one broker address that is asked for the members of the group.

    RocketMQ: ``ConsumerGroupInfo.getAllClientId``, one entry per channel, so an id that several
    processes use is in it several times. That is kept.
    """

    broker_name: str
    #: 0 is the master of the broker name, any other a slave.
    broker_id: int
    members: tuple[Member, ...]

    @property
    def broker(self) -> tuple[str, int]:
        """The broker's name and id."""
        return self.broker_name, self.broker_id

    @property
    def copies(self) -> Counter[str]:
        """The number of times that it has each client id."""
        return Counter(member.client_id for member in self.members)

    @property
    def by_id(self) -> dict[str, list[Member]]:
        """Its members by client id."""
        return grouped((member.client_id, member) for member in self.members)


@dataclass(frozen=True, slots=True)
class RouteBroker:
    """One broker name in a topic's route: its queue data and its addresses."""

    broker_name: str
    #: The ids that have an address: 0 is the master. None where the route does not say (then a
    #: master is taken to be there); empty where the name has queues but no address to ask.
    broker_ids: tuple[int, ...] | None = (MASTER_ID,)
    perm: int = PERM_READ | PERM_WRITE
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    #: The zone that the broker is in; clients in zone mode see the brokers of their zone alone.
    zone_name: str | None = None

    @property
    def has_master(self) -> bool:
        """True if the route has the master's address, or does not say which addresses it has."""
        return MASTER_ID in (self.broker_ids or (MASTER_ID,))

    @property
    def is_mock(self) -> bool:
        """True if no server has the name: see ``is_mock_broker``."""
        return is_mock_broker(self.broker_name)

    @property
    def has_address(self) -> bool:
        """True if a client can ask the broker for the members of a group."""
        return self.broker_ids is None or len(self.broker_ids) > 0

    @property
    def is_readable(self) -> bool:
        """True if consumers see queues of this broker (``PermName.isReadable``)."""
        return bool(self.perm & PERM_READ)

    @property
    def is_writable(self) -> bool:
        """True if producers write to queues of this broker (``PermName.isWriteable``)."""
        return bool(self.perm & PERM_WRITE)


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """The route of the topic as one nameserver gives it; no brokers where it knows no such topic.

    RocketMQ: ``TopicRouteData``.
    """

    namesrv_addr: str
    brokers: tuple[RouteBroker, ...]


class ProcessCount(NamedTuple):
    """The number of processes that use a client id, and in words the evidence."""

    client_id: str
    processes: int
    because: str


#: (client id, broker name): see ``State``.
Unreachable: TypeAlias = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class State:
    """All that decides what the members of a group take of a topic, at one moment.

    ``client_lists`` has the brokers that answered with a list, ``offline_brokers`` the
    ``(broker_name, broker_id)`` that answered that the group has no member there (code 206). A
    broker that is in neither did not answer.

    Two things only time can show. ``process_counts`` has by client id how many processes use an id
    that a list has more than once, where its connections show that; 0: the process is dead, and
    the brokers have not dropped it yet. ``unreachable`` has
    (client id, broker name) where the broker did not list the client for longer than a heartbeat
    takes to list it again: the client does not reach the broker, so it does not get the list of
    members from it and does not read its queues, whatever it computes. It is there once for each
    process of the id that does not. A client id of None means every client: the broker does
    not have the group.

    ``request_mode`` is how the brokers let the group consume the topic, PULL or POP; None where no
    broker was asked, or the brokers' default counts (``MessageRequestModeManager`` 5.1.4).

    ``locks_at_master``: the members consume in order, and read a queue of which the master gave
    them the lock.

    ``rerouted`` are the brokers that a change, not a collector, added to a route or took from it.
    """

    consumer_group: str
    topic: str
    client_lists: tuple[ClientList, ...]
    topic_routes: tuple[TopicRoute, ...]
    offline_brokers: tuple[tuple[str, int], ...] = ()
    process_counts: tuple[ProcessCount, ...] = ()
    unreachable: tuple[Unreachable, ...] = ()
    request_mode: str | None = None
    locks_at_master: bool = False
    rerouted: frozenset[str] = frozenset()

    @property
    def ids_of_nobody(self) -> frozenset[str]:
        """The client ids behind which there is no process any more."""
        return frozenset(count.client_id for count in self.process_counts if not count.processes)

    @property
    def without_master(self) -> frozenset[str]:
        """The brokers of which every route that has them gives slaves alone."""
        with_master = {b.broker_name for b in self.brokers if b.has_master}
        return frozenset(b.broker_name for b in self.brokers) - with_master

    @property
    def members(self) -> Iterator[Member]:
        """Every member of every list."""
        return chain.from_iterable(entry.members for entry in self.client_lists)

    @property
    def brokers(self) -> Iterator[RouteBroker]:
        """Every broker of every nameserver's route."""
        return chain.from_iterable(route.brokers for route in self.topic_routes)
