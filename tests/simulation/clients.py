"""A consumer process: its timers, its connections and its process queue table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from rebalance_core.message_queue import MessageQueue
from rebalance_core.strategy_factory import make_strategy
from tests.simulation.clock import MINUTE, SECOND, Millis
from tests.simulation.servers import Broker, Nameserver, Route

if TYPE_CHECKING:
    from tests.simulation.world import World

#: ``ClientConfig`` and ``RebalanceService``, 4.9.4 and 5.1.4.
HEARTBEAT_EACH = 30 * SECOND
ROUTES_EACH = 30 * SECOND
REBALANCE_EACH = 20 * SECOND
#: Of who consumes in order (``ProcessQueue``, 4.9.4 and 5.3.3): it locks again so often, and
#: handles nothing of a queue whose lock it got so long ago.
LOCKS_EACH = 20 * SECOND
LOCK_LIVES = 30 * SECOND
#: ``DefaultMQPushConsumer.consumeTimeout``: a message that is not done by then is sent back
#: (``ProcessQueue.cleanExpiredMsg``), but for consumers in order.
CONSUME_TIMEOUT = 15 * MINUTE


#: Strategies of a group's own, which nobody else knows: the last queue first, by turns. The second
#: forgets the last queue; by the third everybody takes the first one as well.
OWN, OWN_WITH_GAP, OWN_WITH_OVERLAP = "OWN", "OWN_WITH_GAP", "OWN_WITH_OVERLAP"
OWN_STRATEGIES = (OWN, OWN_WITH_GAP, OWN_WITH_OVERLAP)
#: The broker of the queues of a static topic (``MixAll.LOGICAL_QUEUE_MOCK_BROKER_PREFIX`` 5.3.3
#: and the scope). Nobody can ask it.
MOCK_BROKER = "__syslo__global__"


@cache
def divided(
    strategy: str, topic: str, route: Route, client_ids: tuple[str, ...], logical: int | None = None
) -> dict[str, frozenset[MessageQueue]]:
    """By client id what a strategy gives it. ``logical``: so many queues a static topic has."""
    queues = [
        MessageQueue(topic, each.broker_name, number)
        for each in route
        for number in range(each.queues)
    ]
    if logical is not None:
        queues = [MessageQueue(topic, MOCK_BROKER, number) for number in range(logical)]
    if strategy in OWN_STRATEGIES:
        return _divided_otherwise(strategy, queues, sorted(set(client_ids)))
    taken = make_strategy(strategy).allocate_all("G", queues, client_ids)
    return {client_id: frozenset(own) for client_id, own in taken.items()}


def _divided_otherwise(
    strategy: str, queues: list[MessageQueue], client_ids: list[str]
) -> dict[str, frozenset[MessageQueue]]:
    """As a strategy of the group's own does.

    >>> queues = [MessageQueue("T", "broker-a", number) for number in range(3)]
    >>> for name in OWN_STRATEGIES:
    ...     taken = _divided_otherwise(name, queues, ["x", "y"])
    ...     print({each: sorted(own.queue_id for own in taken[each]) for each in taken})
    {'x': [0, 2], 'y': [1]}
    {'x': [1], 'y': [0]}
    {'x': [0, 2], 'y': [0, 1]}
    """
    given = queues[::-1][1:] if strategy == OWN_WITH_GAP else queues[::-1]
    of_all = queues[:1] if strategy == OWN_WITH_OVERLAP else []
    return {
        client_id: frozenset([*given[place :: len(client_ids)], *of_all])
        for place, client_id in enumerate(client_ids)
    }


@dataclass(eq=False, kw_only=True)
class Setup:
    """What a process of the group is set up to be."""

    host: str
    subscriptions: frozenset[str]
    nameserver: Nameserver
    strategy: str = "AVG"
    version: int = 401
    follows_routes: bool = True
    #: Go's client does not: where a route has no master, it reads nothing of that broker.
    reads_from_slaves: bool = True
    language: str = "JAVA"
    #: Its filter on the topics that it subscribes to.
    expression: str = "*"
    #: Whether it divides the queues itself; else its broker does, by the same rule, unless the
    #: group's mode is POP (``RebalancePushImpl.clientRebalance``).
    divides: bool = True
    #: It leaves the division to the broker and gets messages by POP, of every queue.
    pops: bool = False
    #: It consumes in order: only of queues that it has locked at their master.
    orderly: bool = False
    #: It was given these queues (``DefaultLitePullConsumer.assign``): it subscribes to nothing, and
    #: holds them whoever else is there.
    assigned: frozenset[MessageQueue] | None = None
    #: Native Go clients before 2.1.1 commit nothing over what the broker's filter leaves out.
    commits_what_is_left_out: bool = True


@dataclass(eq=False, kw_only=True)
class Process(Setup):
    """One process of the group. ``label`` is its name in the truth, which no dump has."""

    world: World
    label: str
    client_id: str
    alive: bool = False
    frozen: bool = False
    #: The brokers refuse its pulls: they have another subscription of the group (code 24).
    refused: bool = False
    #: It takes messages and its listener never returns.
    blocked_since: Millis | None = None
    #: ``DefaultMQPushConsumer.suspend``: it pulls nothing, and keeps what it holds.
    suspended: bool = False
    #: Its consumer of the group was shut; heartbeats of its other groups keep it listed.
    has_consumer: bool = True
    #: When it last got the lock of a queue, and the queues that another client had locked then.
    locked: dict[MessageQueue, Millis] = field(default_factory=dict)
    denied: set[MessageQueue] = field(default_factory=set)
    #: Queues of which one message is not finished, while newer ones are, and since when.
    stuck: dict[MessageQueue, Millis] = field(default_factory=dict)
    started: Millis = 0
    routes: dict[str, Route] = field(default_factory=dict)
    #: Its own address on its present connection, by the broker's address.
    addresses: dict[str, str] = field(default_factory=dict)
    #: By broker name since when it cannot be reached.
    unreachable: dict[str, Millis] = field(default_factory=dict)
    held: dict[str, frozenset[MessageQueue]] = field(default_factory=dict)
    _rebalances: int = 0
    _wakes_up: bool = False
    _asks_another: bool = False

    # ------------------------------------------------------------------ its life

    def start(self) -> None:
        self.alive, self.started = True, self.world.clock.now
        clock = self.world.clock
        self._poll_routes()
        self.heartbeat()
        self.rebalance()
        clock.every(ROUTES_EACH, self._if_alive(self._poll_routes), clock.now + ROUTES_EACH)
        clock.every(HEARTBEAT_EACH, self._if_alive(self.heartbeat), clock.now + SECOND)
        if self.orderly:
            clock.every(LOCKS_EACH, self._if_alive(self._lock_all), clock.now + SECOND)

    def stop(self) -> None:
        """In order: it says good-bye to every broker, and unlocks what it has."""
        for queue in self.in_table if self.orderly else ():
            self._unlock(queue)
        self._end(seen=True)

    def kill(self, *, connections_close: bool) -> None:
        """Killed: the system closes its connections, or the host is gone and nobody sees it."""
        self._end(seen=connections_close)

    def end(self, how: str) -> None:
        """``stop``, ``kill``, or ``vanish``: nobody sees its connections close."""
        if how == "stop":
            self.stop()
        else:
            self.kill(connections_close=how == "kill")

    def lost_nameserver(self, nameserver: Nameserver) -> None:
        """The connection failed: the next poll of routes goes to any that is up."""
        if self.nameserver is nameserver:
            self._asks_another = True

    def becomes(self, **states: bool) -> None:
        """Frozen or suspended, or no longer."""
        vars(self).update(states)
        self.world.reads_changed(self)

    def block(self) -> None:
        """Its listener hangs: it stays a member, holds its queues, and commits nothing more."""
        self.blocked_since = self.world.clock.now
        self.world.reads_changed(self)

    def stick(self, queue: MessageQueue) -> None:
        """The listener does not finish one message of the queue, and all newer ones it does."""
        if queue in self.in_table and not self.orderly:
            self.stuck[queue] = self.world.clock.now
            self.world.reads_changed(self)
            self.world.clock.after(CONSUME_TIMEOUT, lambda: self._sends_back(queue))

    def _sends_back(self, queue: MessageQueue) -> None:
        if self.stuck.pop(queue, None) is not None:
            self.world.reads_changed(self)

    def shut_consumer(self) -> None:
        """It holds nothing from now on, and is listed as before."""
        self.has_consumer, self.held = False, {}
        self.world.reads_changed(self)

    def reconnect(self) -> None:
        """Its connections are lost on the way; the next heartbeats go over new ones."""
        self.addresses.clear()

    def lose(self, broker_name: str, *, seen: bool) -> None:
        """From now on it does not reach a broker. ``seen``: the broker sees the channel close."""
        self.unreachable.setdefault(broker_name, self.world.clock.now)
        self._close(self.world.replicas(broker_name), seen=seen)
        self.world.reads_changed(self)

    def find(self, broker_name: str) -> None:
        """From now on it reaches the broker again."""
        self.unreachable.pop(broker_name, None)
        self.world.reads_changed(self)

    def subscribe(self, topics: frozenset[str]) -> None:
        self.subscriptions = topics
        self._poll_routes(force=True)
        self.heartbeat()
        self.rebalance()

    def _end(self, *, seen: bool) -> None:
        self.alive = False
        self.world.reads_changed(self)
        self._close(self.world.brokers, seen=seen)

    def _close(self, brokers: Sequence[Broker], *, seen: bool) -> None:
        for broker in brokers:
            address = self.addresses.pop(broker.address, None)
            if seen and address is not None:
                broker.remove(address)

    # ------------------------------------------------------------------ what it does by itself

    def _if_alive(self, action: Callable[[], object]) -> Callable[[], bool]:
        def once() -> bool:
            if self.alive and not self.frozen:
                action()
            return self.alive

        return once

    def _poll_routes(self, *, force: bool = False) -> None:
        """Of the one nameserver that it is connected to, for as long as that lasts.

        ``NettyRemotingClient.getAndCreateNameserverChannel``. ``TOPIC_NOT_EXIST`` leaves the route
        as it was.
        """
        if self._asks_another or not self.nameserver.up:
            others = [each for each in self.world.nameservers if each.up]
            self.nameserver = self.world.draws.choice(others or [self.nameserver])
            self._asks_another = False
        if not self.nameserver.up:
            return
        before = dict(self.routes)
        for topic in self.topics:
            if topic in self.routes and not (self.follows_routes or force):
                continue
            route = self.nameserver.route(topic)
            if route:
                self.routes[topic] = route
        if self.routes != before:
            # Where it reads follows from its routes: the master of a broker, or a slave.
            self.world.reads_changed(self)

    def heartbeat(self) -> None:
        """To every replica of every broker of its routes."""
        names = {each.broker_name for topic in self.topics for each in self.routes.get(topic, ())}
        for broker in self.world.brokers:
            if broker.name in names and self._reaches(broker):
                address = self.addresses.get(broker.address)
                if address is None:
                    address = self.addresses[broker.address] = self.world.new_address(self.host)
                broker.heartbeat(self, address)
                self.world.heartbeat_came(broker, self, address)

    def notified(self, broker_name: str) -> None:
        if not self._wakes_up and broker_name not in self.unreachable:
            self._wakes_up = True
            self.world.clock.after(self.world.draws.uniform(5, 150), self._wake_up)

    def _wake_up(self) -> None:
        self._wakes_up = False
        if self.alive and not self.frozen:
            self.rebalance()

    def rebalance(self) -> None:
        """Every topic; the next one comes 20 s after this one."""
        if not self.has_consumer:
            return
        self._rebalances += 1
        number = self._rebalances

        def again() -> None:
            if self.alive and number == self._rebalances:
                if self.frozen:
                    self.world.clock.after(SECOND, again)
                else:
                    self.rebalance()

        self.world.clock.after(REBALANCE_EACH, again)
        # ``DefaultMQPushConsumerImpl.tryRebalance`` 5.3.3.
        taken = self.held.get if self.suspended else self._taken
        held = {topic: taken(topic) or frozenset() for topic in sorted(self.topics)}
        if held != self.held:
            gone = self.in_table - frozenset().union(*held.values())
            self.held = held
            for queue in gone:
                self.stuck.pop(queue, None)
                self._unlock(queue)
            self.world.reads_changed(self)
            self.heartbeat()

    def _taken(self, topic: str) -> frozenset[MessageQueue]:
        """What it holds of a topic from now on (``RebalanceImpl.rebalanceByTopic``)."""
        held = self.held.get(topic, frozenset())
        route = self.routes.get(topic)
        if not route:
            return held
        if self.assigned is not None:
            return frozenset(queue for queue in self.assigned if queue.topic == topic)
        if self.pops and not topic.startswith("%RETRY%"):
            every = divided("AVG", topic, route, ("any",))["any"]
            return frozenset(queue for queue in every if self.can_read(queue))
        broker = self._drawn(route)
        client_ids = broker.client_ids if broker is not None and self._reaches(broker) else ()
        if not client_ids:
            return held
        if self.client_id not in client_ids:
            return frozenset()
        logical = self.world.logical_queues.get(topic)
        number = len(logical) if logical is not None else None
        mine = divided(self.strategy, topic, route, client_ids, number)[self.client_id]
        if mine <= held:
            return mine
        # Each attempt to pull counts as a pull (``lastPullTimestamp``), also one that fails: a
        # queue of a broker out of reach is kept for ever. A new one is not added without its
        # offset, which the broker has.
        return frozenset(
            queue
            for queue in mine
            if queue in held or (self.can_read(queue) and (not self.orderly or self._lock(queue)))
        )

    def _lock_all(self) -> None:
        """``ConsumeMessageOrderlyService.lockMQPeriodically``."""
        for queue in sorted(self.in_table):
            if not self._lock(queue) and self._has_lock(queue):
                ends = self.locked[queue] + LOCK_LIVES + 1
                self.world.clock.at(ends, lambda: self.world.reads_changed(self))
        self.world.reads_changed(self)

    def _lock(self, queue: MessageQueue) -> bool:
        """At the master alone (``RebalanceImpl.lock``, ``lockAll``: ``onlyThisBroker``). Where that
        is away, or gives no answer, all is as it was.
        """
        master = self._master_of(queue)
        if master is None:
            return False
        if master.lock(queue, self.client_id):
            self.locked[queue] = self.world.clock.now
            self.denied.discard(queue)
            return True
        self.denied.add(queue)
        self.locked.pop(queue, None)
        return False

    def _unlock(self, queue: MessageQueue) -> None:
        self.locked.pop(queue, None)
        self.denied.discard(queue)
        if self.orderly and (master := self._master_of(queue)) is not None:
            master.unlock(queue, self.client_id)

    def _master_of(self, queue: MessageQueue) -> Broker | None:
        """The master of its routes, if it reaches that."""
        routes, name = self.routes.get(queue.topic, ()), self.world.broker_of(queue)
        if not any(each.broker_name == name and 0 in each.broker_ids for each in routes):
            return None
        master = self.world.replica(name, 0)
        return master if master is not None and self._reaches(master) else None

    def _has_lock(self, queue: MessageQueue) -> bool:
        """``ProcessQueue.isLocked`` and not ``isLockExpired``; who shares a queue needs none."""
        locked = self.locked.get(queue)
        return not self.orderly or (
            locked is not None and self.world.clock.now - locked <= LOCK_LIVES
        )

    def _drawn(self, route: Route) -> Broker | None:
        """A random broker of the route; its master, else a random slave."""
        drawn = self.world.draws.choice(route)
        if not drawn.broker_ids:
            return None
        broker_id = 0 if 0 in drawn.broker_ids else self.world.draws.choice(drawn.broker_ids)
        return self.world.replica(drawn.broker_name, broker_id)

    def _reaches(self, broker: Broker) -> bool:
        return broker.up and broker.name not in self.unreachable

    # ------------------------------------------------------------------ what is true of it

    @property
    def topics(self) -> frozenset[str]:
        """What it subscribes to, or was given queues of."""
        return self.subscriptions | {queue.topic for queue in self.assigned or ()}

    def can_read(self, queue: MessageQueue) -> bool:
        """Whether a pull of the queue would bring messages."""
        runs = self.alive and not self.frozen
        return runs and any(
            broker.knows_group and self._reaches(broker) for broker in self._read_from(queue)
        )

    def _read_from(self, queue: MessageQueue) -> list[Broker]:
        """The master, or the slaves of a route without one (``findBrokerAddressInSubscribe``)."""
        name = self.world.broker_of(queue)
        for each in self.routes.get(queue.topic, ()):
            if each.broker_name == name and each.broker_ids:
                ids = each.broker_ids
                if 0 in ids:
                    ids = (0,)
                elif not self.reads_from_slaves:
                    ids = ()
                found = [self.world.replica(name, number) for number in ids]
                return [broker for broker in found if broker is not None]
        return []

    @property
    def blocked(self) -> bool:
        """Whether its listener hangs."""
        return self.blocked_since is not None

    @property
    def reads(self) -> frozenset[MessageQueue]:
        """What it holds and can read, with the lock of it where it needs one."""
        return frozenset(
            queue
            for queues in self.held.values()
            for queue in queues
            if self.can_read(queue) and self._has_lock(queue) and not self.suspended
        )

    @property
    def consumes(self) -> frozenset[MessageQueue]:
        """What it reads and handles, by offsets: beside one that pulls POP moves none."""
        is_kept = self.blocked or self.refused or not self.world.consume_enabled
        return frozenset() if is_kept else (self.reads & self.in_table) - self.stuck.keys()

    @property
    def in_table(self) -> frozenset[MessageQueue]:
        """What its table of queues has: nothing of what it gets by POP."""
        return frozenset(
            queue
            for topic, queues in self.held.items()
            if not self.pops or topic.startswith("%RETRY%")
            for queue in queues
        )

    @property
    def works(self) -> bool:
        """Whether it runs, is not frozen, blocked or suspended, and gets on with some queue."""
        holds = {queue for queue in self.in_table if not queue.topic.startswith("%RETRY%")}
        stands = bool(holds) and holds <= self.stuck.keys()
        return self.alive and not (self.frozen or self.blocked or self.suspended or stands)
