"""What a fleet is made of: servers, processes, the clock, the dice, the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clients import MOCK_BROKER, Process
from tests.simulation.clock import Clock, Millis
from tests.simulation.servers import BROKER_EXPIRES_AFTER, SCANNED_EACH, Broker, Nameserver
from tests.simulation.truth import Progress, Steps, Truth

GROUP = "G"
RETRY = f"%RETRY%{GROUP}"


@dataclass(eq=False)
class World:
    """One cluster with one group.

    ``random``: of what happens. ``draws``: of the clients: which broker they ask, how fast they
    wake up. Other draws make another course of the same events.
    ``topics``: by broker name the topics that it has, with their numbers of queues.
    ``registers_with``: by broker name the nameservers that know it; else all.
    """

    random: Random
    draws: Random
    clock: Clock
    brokers: list[Broker] = field(default_factory=list)
    nameservers: list[Nameserver] = field(default_factory=list)
    topics: dict[str, dict[str, int]] = field(default_factory=dict)
    registers_with: dict[str, list[Nameserver]] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    truth: Truth = field(default_factory=Truth)
    notifies: bool = True
    #: ``SubscriptionGroupConfig.consumeEnable``: without it the brokers refuse every pull.
    consume_enabled: bool = True
    #: Whether a slave becomes the master that is away.
    slaves_act_as_master: bool = False
    #: By broker name whether it has a master: producers write to no other one.
    writable: dict[str, Steps[bool]] = field(default_factory=dict)
    #: Of a static topic, by the number of a logical queue, its broker and its number there.
    logical_queues: dict[str, dict[int, tuple[str, int]]] = field(default_factory=dict)
    #: Of a topic: the last message that the group's filter lets pass, by the time until when.
    last_match: dict[str, Callable[[Millis], Millis]] = field(default_factory=dict)
    heartbeat_listeners: list[Callable[[Broker, Process, str], None]] = field(default_factory=list)
    _ports: count[int] = field(default_factory=lambda: count(20000))

    def __post_init__(self) -> None:
        # The brokers have one offset of a queue, whoever asks.
        self.progress = Progress(self.truth)

    def add_broker(self, name: str, topics: dict[str, int], *, slaves: int = 0) -> None:
        number = len({broker.name for broker in self.brokers})
        self.topics[name] = topics
        self.writable[name] = Steps(True)
        for broker_id in range(1 + slaves):
            address = f"10.1.{number}.{broker_id + 1}:10911"
            broker = Broker(self, name, broker_id, address)
            self.brokers.append(broker)
            scanned = self.clock.now + self.random.randrange(SCANNED_EACH)
            self.clock.every(SCANNED_EACH, broker.scan, scanned)
        self.register(name)

    def replica(self, name: str, broker_id: int) -> Broker | None:
        """The broker that routes have under this id."""
        found = [each for each in self.replicas(name) if each.shown_id == broker_id]
        return max(found, key=lambda each: each.acts_as_master, default=None)

    def replicas(self, name: str) -> list[Broker]:
        """The master first."""
        found = [broker for broker in self.brokers if broker.name == name]
        return sorted(found, key=lambda broker: broker.broker_id)

    def broker_of(self, queue: MessageQueue) -> str:
        """The broker that has the queue; of a logical one that of its physical queue."""
        logical = self.logical_queues.get(queue.topic)
        return logical[queue.queue_id][0] if logical is not None else queue.broker_name

    def logical(self, physical: MessageQueue) -> MessageQueue:
        """The queue that clients have for it: of a static topic another one."""
        numbers = self.logical_queues.get(physical.topic)
        if numbers is None:
            return physical
        place = physical.broker_name, physical.queue_id
        (number,) = [each for each, where in numbers.items() if where == place]
        return MessageQueue(physical.topic, MOCK_BROKER, number)

    # ------------------------------------------------------------------ changes of the cluster

    def make_static(self, topic: str) -> None:
        """Its queues are logical ones from now on, dealt to the brokers by turns; the last two
        change places, as after a remapping (``TopicQueueMappingUtils``).
        """
        physical = [
            (name, number)
            for number in range(max(topics.get(topic, 0) for topics in self.topics.values()))
            for name, topics in self.topics.items()
            if number < topics.get(topic, 0)
        ]
        physical[-2:] = reversed(physical[-2:])
        self.logical_queues[topic] = dict(enumerate(physical))
        for name, number in physical:
            del self.truth.exists[MessageQueue(topic, name, number)]
        self._queues_changed()

    def register(self, name: str) -> None:
        """A broker tells its nameservers what it has; those that it does not tell forget it."""
        ids = tuple(broker.shown_id for broker in self.replicas(name) if broker.up)
        told = self.registers_with.get(name, self.nameservers)
        for nameserver in self.nameservers:
            if not nameserver.up:
                continue
            if nameserver in told and ids:
                nameserver.registered[name] = (ids, dict(self.topics[name]))
            else:
                nameserver.registered.pop(name, None)
        self._queues_changed()

    def set_queues(self, topic: str, queues: int, names: list[str] | None = None) -> None:
        """Changes how many queues a topic has on (some) brokers (``updateTopic``)."""
        for name, topics in self.topics.items():
            if names is None or name in names:
                topics[topic] = queues
                self.register(name)

    def stop_broker(self, name: str, *, in_order: bool = True) -> None:
        """All connections close. In order: the nameservers forget it at once."""
        for broker in self.replicas(name):
            self._stop(broker)
        self._left(name, in_order=in_order)

    def start_broker(self, name: str, *, loses_offsets: bool = False) -> None:
        """``loses_offsets``: it comes without ``consumerOffset.json``, as from a lost volume."""
        for broker in self.replicas(name):
            broker.up, broker.acts_as_master = True, False
        self.writable[name].put(self.clock.now, True)
        if loses_offsets:
            for queue in self._queues_of(name):
                self.progress.go_back(queue, self.clock.now, None)
        self.register(name)
        self._everybody_changed()

    def stop_master(self, name: str, *, in_order: bool = True) -> None:
        """Its slaves stay; ``start_broker`` brings it back."""
        for broker in self.replicas(name):
            if broker.broker_id == 0:
                self._stop(broker)
        self._left(name, in_order=in_order)

    def fail_over(self, name: str, back_by: Millis) -> None:
        """A slave is the master from now on (DLedger, controller), with offsets of a while ago."""
        master, slave = self.replicas(name)[:2]
        self._stop(master)
        master.broker_id, slave.broker_id = slave.broker_id, master.broker_id
        for queue in self._queues_of(name):
            self.progress.go_back(queue, self.clock.now, back_by)
        self.register(name)
        self._everybody_changed()

    def elect(self, name: str, after: Millis) -> None:
        """The master dies, and a while later a controller (5.x) makes a slave the master.

        Its id is 0 from then on, at the address that was the slave's. No offset is lost.
        """
        self.stop_master(name, in_order=False)

        def elected() -> None:
            self.fail_over(name, 0)
            self.writable[name].put(self.clock.now, True)

        self.clock.after(after, elected)

    def forget_offsets(self, name: str, *, reads_from_first: bool) -> None:
        """The broker has no offset of the group any more, which is away.

        ``reads_from_first``: where the group reads from at its next start (``consumeFromWhere``).
        """
        for queue in self._queues_of(name):
            self.progress.forget(queue, self.clock.now, from_first=reads_from_first)

    def _queues_of(self, name: str) -> list[MessageQueue]:
        return [queue for queue in self.truth.exists if self.broker_of(queue) == name]

    def _left(self, name: str, *, in_order: bool) -> None:
        """Its master stopped, and a nameserver learns of it now, or by its silence."""
        self.writable[name].put(self.clock.now, False)

        def forget() -> None:
            for broker in self.replicas(name):
                is_only = broker.broker_id and not self.replicas(name)[0].up
                broker.acts_as_master = bool(is_only) and self.slaves_act_as_master
            self.register(name)

        if in_order:
            forget()
        else:
            self.clock.after(BROKER_EXPIRES_AFTER + self.random.uniform(0, 5_000), forget)
        self._queues_changed()
        self._everybody_changed()

    def have_slave(self, name: str) -> None:
        """A replica of a broker that is there, unless it has one."""
        if len(self.replicas(name)) > 1:
            return
        last = self.replicas(name)[-1]
        number = last.broker_id + 1
        host = last.address.rpartition(".")[0]
        slave = Broker(self, name, number, f"{host}.{number + 1}:10911")
        slave.knows_group = last.knows_group
        self.brokers.insert(self.brokers.index(last) + 1, slave)
        self.clock.every(SCANNED_EACH, slave.scan, self.clock.now + SCANNED_EACH)
        self.register(name)

    def stop_nameserver(self, nameserver: Nameserver) -> None:
        """It loses what it knew; its clients go to another one."""
        nameserver.up = False
        nameserver.registered.clear()
        for process in self.processes:
            process.lost_nameserver(nameserver)

    def start_nameserver(self, nameserver: Nameserver) -> None:
        """Each broker registers within its 30 s."""
        nameserver.up = True
        for name in dict.fromkeys(broker.name for broker in self.brokers):
            self.clock.after(self.random.uniform(0, 30_000), partial(self.register, name))

    def set_consume_enabled(self, value: bool) -> None:
        self.consume_enabled = value
        self._everybody_changed()

    def _stop(self, broker: Broker) -> None:
        broker.up = False
        broker.channels.clear()
        broker.locks.clear()
        for process in self.processes:
            process.addresses.pop(broker.address, None)

    # ------------------------------------------------------------------ what processes call

    def new_address(self, host: str) -> str:
        return f"{host}:{next(self._ports)}"

    def heartbeat_came(self, broker: Broker, process: Process, client_addr: str) -> None:
        for listener in self.heartbeat_listeners:
            listener(broker, process, client_addr)

    def reads_changed(self, process: Process) -> None:
        now, label = self.clock.now, process.label
        self.truth.reads(now, label, process.reads, process.consumes)
        self.truth.is_behind(
            now, process.client_id, label, alive=process.alive, works=process.works
        )

    def _everybody_changed(self) -> None:
        for process in self.processes:
            self.reads_changed(process)

    def _queues_changed(self) -> None:
        up = {broker.name for broker in self.brokers if broker.up}
        queues = {
            self.logical(MessageQueue(topic, name, number))
            for name in up
            for topic, numbers in self.topics[name].items()
            for number in range(numbers)
        }
        self.truth.queues_are(self.clock.now, queues)
