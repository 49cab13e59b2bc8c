"""Brokers and nameservers, as far as consumers of one group see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clock import SECOND, Millis

if TYPE_CHECKING:
    from tests.simulation.clients import Process
    from tests.simulation.world import World

#: ``BrokerConfig.channelExpiredTimeout`` and ``ClientHousekeepingService``, 4.9.4 and 5.1.4.
CHANNEL_EXPIRES_AFTER = 120 * SECOND
#: A nameserver forgets a broker of which it heard nothing for so long
#: (``RouteInfoManager.BROKER_CHANNEL_EXPIRED_TIME`` 4.9.4, ``DEFAULT_BROKER_CHANNEL_EXPIRED_TIME``
#: 5.1.4). One that stops in order unregisters at once.
BROKER_EXPIRES_AFTER = 120 * SECOND
#: ``RebalanceLockManager.REBALANCE_LOCK_MAX_LIVE_TIME`` (4.9.4, 5.3.3): so long after a client last
#: locked a queue another one may.
LOCK_LIVES_AT_BROKER = 60 * SECOND
SCANNED_EACH = 10 * SECOND


@dataclass
class Channel:
    """One connection of a process, as the broker has it."""

    process: Process
    client_id: str
    last_heartbeat: Millis


class InRoute(NamedTuple):
    """One broker of a route: its replicas and how many queues it has."""

    broker_name: str
    broker_ids: tuple[int, ...]
    queues: int


Route = tuple[InRoute, ...]


@dataclass(eq=False)
class Broker:
    """A master (id 0) or a slave: its channels of the group, by client address."""

    world: World
    name: str
    broker_id: int
    address: str
    up: bool = True
    knows_group: bool = True
    #: Nameservers name this slave as the master while that is away (``enableSlaveActingMaster``).
    acts_as_master: bool = False
    channels: dict[str, Channel] = field(default_factory=dict)
    #: Who locked a queue, by its id alone, and when last. Only in memory.
    locks: dict[MessageQueue, tuple[str, Millis]] = field(default_factory=dict)
    #: The topics of the last heartbeat (``ConsumerGroupInfo.updateSubscription``).
    subscriptions: frozenset[str] = frozenset()
    expression: str = "*"

    @property
    def shown_id(self) -> int:
        """Its id in routes."""
        return 0 if self.acts_as_master else self.broker_id

    @property
    def client_ids(self) -> tuple[str, ...]:
        """One for each channel, copies kept; sorted, as clients sort them."""
        return tuple(sorted(channel.client_id for channel in self.channels.values()))

    def heartbeat(self, process: Process, client_addr: str) -> None:
        if not self.knows_group:
            return
        channel = self.channels.get(client_addr)
        is_new = channel is None or self.subscriptions != process.subscriptions
        self.channels[client_addr] = Channel(process, process.client_id, self.world.clock.now)
        self.subscriptions, self.expression = process.subscriptions, process.expression
        if is_new:
            self._notify()

    def remove(self, client_addr: str) -> None:
        """An orderly stop, or a connection that was seen to close."""
        if self.channels.pop(client_addr, None) is not None:
            self._notify()

    def lock(self, queue: MessageQueue, client_id: str) -> bool:
        """``RebalanceLockManager.tryLockBatch``: nobody else has it, or its time is over."""
        now = self.world.clock.now
        owner, locked = self.locks.get(queue, (client_id, now))
        if owner != client_id and now - locked <= LOCK_LIVES_AT_BROKER:
            return False
        self.locks[queue] = client_id, now
        return True

    def unlock(self, queue: MessageQueue, client_id: str) -> None:
        if self.locks.get(queue, ("", 0))[0] == client_id:
            del self.locks[queue]

    def scan(self) -> None:
        """Drops silent channels. That notifies nobody: clients see it at their next rebalance."""
        oldest = self.world.clock.now - CHANNEL_EXPIRES_AFTER
        silent = [addr for addr, each in self.channels.items() if each.last_heartbeat < oldest]
        for addr in silent:
            del self.channels[addr]

    def _notify(self) -> None:
        if self.world.notifies:
            for addr, channel in self.channels.items():
                if channel.process.addresses.get(self.address) == addr:
                    channel.process.notified(self.name)


@dataclass(eq=False)
class Nameserver:
    """What the brokers registered: topics with their numbers of queues."""

    address: str
    up: bool = True
    registered: dict[str, tuple[tuple[int, ...], Mapping[str, int]]] = field(default_factory=dict)

    def route(self, topic: str) -> Route:
        """The brokers that have the topic; none: it does not know the topic (code 17)."""
        return tuple(
            InRoute(name, ids, topics[topic])
            for name, (ids, topics) in sorted(self.registered.items())
            if topic in topics
        )
