"""Collectors: rounds of questions, each asked at its own time, as lines of a dump."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from rebalance_core.message_queue import MessageQueue
from tests.simulation.clients import OWN_STRATEGIES, Process
from tests.simulation.clock import MINUTE, SECOND, Millis, dice_of
from tests.simulation.servers import Broker, Nameserver
from tests.simulation.truth import FIRST_MESSAGE, length
from tests.simulation.world import GROUP, RETRY, World
from tests.support.bodies import members, subscriptions

ZERO = datetime(2026, 11, 20, 10, tzinfo=UTC)
Line = dict[str, Any]

_PACKAGE = "org.apache.rocketmq.client.consumer.rebalance."
_CLASSES = {
    "AVG": f"{_PACKAGE}AllocateMessageQueueAveragely",
    "AVG_BY_CIRCLE": f"{_PACKAGE}AllocateMessageQueueAveragelyByCircle",
    "CONSISTENT_HASH": f"{_PACKAGE}AllocateMessageQueueConsistentHash",
    **dict.fromkeys(OWN_STRATEGIES, "com.example.shop.LastQueueFirst"),
}
#: An ordinal of ``MQVersion`` that only 5.x has.
_FIRST_5 = 433
_NO_TOPIC, _NOT_ONLINE, _TIMEOUT, _NO_RESPONSE = 17, 206, 207, -1


def instant(time: Millis) -> str:
    """As dumps have it.

    >>> instant(1500)
    '2026-11-20T10:00:01.500Z'
    """
    return (ZERO + timedelta(milliseconds=time)).isoformat(timespec="milliseconds")[:23] + "Z"


def epoch_millis(time: Millis) -> int:
    return int(ZERO.timestamp() * 1000) + time


@dataclass
class Habits:
    """How a collector works.

    ``drift``: each round begins so much later than planned, as those of a loop that sleeps do;
    without, rounds and heartbeats keep step all the time. ``pause``: between the questions to two
    brokers. ``missing``: the share of answers that are lost; half of them leave no line at all.
    ``heard``: the brokers whose heartbeats are collected; None: of all.
    """

    interval: Millis = MINUTE
    drift: Millis = 0
    pause: Millis = 20
    missing: float = 0.0
    heartbeats: bool = False
    heard: tuple[str, ...] | None = None
    running_infos: bool = False
    #: Running infos are asked for in every so many rounds.
    infos_each: int = 1
    info_pause: Millis = 50
    info_of_every_broker: bool = False
    offsets: bool = False
    #: Asks for the routes of those topics alone that the brokers' lists show.
    topics_of_lists: bool = False
    #: So late in a round is this group asked: other groups of the cluster come first.
    comes_after: Millis = 0
    #: The group consumes by a proxy: no broker lists it.
    behind_proxy: bool = False
    #: What the group's members say about where to read from without an offset.
    consume_from: str = "CONSUME_FROM_LAST_OFFSET"
    #: Nameservers of 5.x say whether a slave may act as a master.
    is_of_5: bool = False
    #: The topics to which nothing comes, with messages of before and no committed offset.
    quiet: frozenset[str] = frozenset()


@dataclass(eq=False)
class Collector:
    """Asks everybody in each round; ``rounds`` are the times at which its rounds began."""

    world: World
    cluster: str
    habits: Habits
    nameservers: Sequence[Nameserver]
    #: By topic the messages that come in a second, into each of its queues.
    rates: dict[str, float]
    until: Millis
    lines: list[Line] = field(default_factory=list)
    rounds: list[Millis] = field(default_factory=list)
    #: What the group's subscription table had when it was polled.
    tables: list[tuple[Millis, frozenset[str]]] = field(default_factory=list)
    #: By queue how many messages waited when it was polled.
    waiting: dict[MessageQueue, list[tuple[Millis, int]]] = field(default_factory=dict)
    #: Dice of its own: what a collector does must not change what the clients do.
    dice: Random = field(default_factory=lambda: dice_of(0))

    def begin(self, first: Millis = 0) -> None:
        interval = self.habits.interval + self.habits.drift
        self.world.clock.every(interval, self._begin_round, first)
        if self.habits.heartbeats:
            self.world.heartbeat_listeners.append(self._hear)

    def _begin_round(self) -> bool:
        if self.world.clock.now >= self.until:
            return False
        self.rounds.append(self.world.clock.now)
        self.world.clock.follow(self._round(self.world.clock.now))
        return True

    def _round(self, began: Millis) -> Iterator[float]:
        yield self.habits.comes_after
        topics = sorted({topic for topics in self.world.topics.values() for topic in topics})
        if self.habits.topics_of_lists:
            seen = {topic for each in self.world.brokers for topic in each.subscriptions}
            topics = [topic for topic in topics if topic in seen]
        for nameserver in self.nameservers:
            for topic in topics:
                self._ask_route(began, nameserver, topic)
                yield self._latency()
        listed: dict[str, list[Broker]] = {}
        for broker in self.world.brokers:
            self._ask_members(began, broker)
            if broker.up and any(process.pops for process in self.world.processes):
                self._ask_modes(began, broker)
            self._ask_flags(began, broker)
            is_seen = broker.up and not self.habits.behind_proxy
            for client_id in broker.client_ids if is_seen else ():
                listed.setdefault(client_id, []).append(broker)
            yield self._latency() + self.habits.pause
        if self.habits.running_infos and len(self.rounds) % self.habits.infos_each == 0:
            for client_id, brokers in sorted(listed.items()):
                asked = dict.fromkeys(brokers if self.habits.info_of_every_broker else brokers[:1])
                for broker in asked:
                    answered = self._ask_info(began, broker, client_id)
                    yield self._latency() + (self.habits.info_pause if answered else 3 * SECOND)
        if self.habits.offsets:
            for broker in self.world.brokers:
                if broker is self._with_offsets(broker.name):
                    self._ask_offsets(began, broker)
                    yield self._latency()

    def _with_offsets(self, name: str) -> Broker | None:
        """The master of a name; its slave answers while it is away."""
        replicas = self.world.replicas(name)
        return next((each for each in replicas if each.up), replicas[0])

    def _latency(self) -> float:
        return self.dice.uniform(2, 20)

    # ------------------------------------------------------------------ lines

    def _write(self, kind: str, began: Millis | None, asked: Line, answer: Line) -> None:
        line: Line = {"kind": kind, "cluster": self.cluster}
        if began is not None:
            line["snapshot_time"] = instant(began)
            if self.dice.random() < self.habits.missing:
                if self.dice.random() < 0.5:
                    return
                answer = _error(_NO_RESPONSE, "wait response timeout")
        line["collected_at"] = instant(self.world.clock.now)
        self.lines.append(line | asked | answer)

    def _ask_route(self, began: Millis, nameserver: Nameserver, topic: str) -> None:
        asked = {"namesrv_addr": nameserver.address, "topic": topic}
        if not nameserver.up:
            self._write("topic_route", began, asked, _no_connection(nameserver))
            return
        route = nameserver.route(topic)
        if not route:
            message = f"No topic route info in name server for the topic: {topic}"
            self._write("topic_route", began, asked, _error(_NO_TOPIC, message))
            return
        brokers, queues = [], []
        for name, ids, number in route:
            addresses = {
                str(number): each.address
                for number in ids
                if (each := self.world.replica(name, number)) is not None
            }
            # An acting master lets nobody write (``enableSlaveActingMaster``).
            acts = any(each.acts_as_master for each in self.world.replicas(name))
            of_broker: Line = {"brokerAddrs": addresses, "brokerName": name, "cluster": "C"}
            if self.habits.is_of_5:
                of_broker["enableActingMaster"] = self.world.slaves_act_as_master
            brokers.append(of_broker)
            queues.append(
                {
                    "brokerName": name,
                    "perm": 4 if acts else 6,
                    "readQueueNums": number,
                    "topicSysFlag": 0,
                    "writeQueueNums": number,
                }
            )
        body: Line = {"brokerDatas": brokers, "filterServerTable": {}, "queueDatas": queues}
        if topic in self.world.logical_queues:
            body["topicQueueMappingByBroker"] = self._mapping(topic, [name for name, *_ in route])
        self._write("topic_route", began, asked, {"body": json.dumps(body)})

    def _mapping(self, topic: str, names: list[str]) -> Line:
        """By broker its logical queues with their numbers there (``TopicQueueMappingInfo``)."""
        logical = self.world.logical_queues[topic]
        same = {"dirty": False, "epoch": 1, "scope": "__global__", "topic": topic}
        return {
            name: same
            | {
                "bname": name,
                "currIdMap": {
                    str(number): own for number, (broker, own) in logical.items() if broker == name
                },
                "totalQueues": len(logical),
            }
            for name in names
        }

    def _ask_members(self, began: Millis, broker: Broker) -> None:
        asked = _asked(broker) | {"consumer_group": GROUP}
        if not broker.up:
            answer = _no_connection(broker)
        elif not broker.channels or self.habits.behind_proxy:
            answer = _error(_NOT_ONLINE, f"the consumer group[{GROUP}] not online")
        else:
            answer = {"body": json.dumps(_connections(broker, self.habits.consume_from))}
            self.tables.append((self.world.clock.now, broker.subscriptions))
        self._write("consumer_connection", began, asked, answer)

    def _ask_info(self, began: Millis, broker: Broker, client_id: str) -> bool:
        """The broker hands the question to the first channel with the id that it finds."""
        asked = _asked(broker) | {"consumer_group": GROUP, "client_id": client_id}
        found = [
            (address, channel.process)
            for address, channel in broker.channels.items()
            if channel.client_id == client_id
        ]
        if not found or not broker.up:
            answer = _error(1, f"The Consumer <{GROUP}> <{client_id}> not online")
            self._write("consumer_running_info", began, asked, answer)
            return True
        address, process = found[0]
        answers = process.addresses.get(broker.address) == address
        answers = answers and process.alive and not process.frozen
        if answers and not process.has_consumer:
            answer = _error(1, f"The Consumer Group <{GROUP}> not exist in this consumer")
        elif answers and broker.name not in process.unreachable:
            unfinished = {queue: self._offsets(queue) for queue in process.stuck}
            answer = {"body": _running_info(self.world, process, self.dice, unfinished)}
        else:
            answer = _error(_TIMEOUT, f"consumer <{GROUP}> <{client_id}> Timeout")
        self._write("consumer_running_info", began, asked, answer)
        return "body" in answer

    def _ask_modes(self, began: Millis, broker: Broker) -> None:
        mode = {"consumerGroup": GROUP, "mode": "POP", "popShareQueueNum": 0, "topic": "T"}
        body = {"messageRequestModeMap": {"T": {GROUP: mode}}}
        self._write("message_request_mode", began, _asked(broker), {"body": json.dumps(body)})

    def _ask_flags(self, began: Millis, broker: Broker) -> None:
        """A line of the group while it may not consume: of groups that may nothing is read."""
        if not broker.up or self.world.consume_enabled:
            return
        body = {"subscriptionGroupTable": {GROUP: {"consumeEnable": self.world.consume_enabled}}}
        self._write("subscription_group", began, _asked(broker), {"body": json.dumps(body)})

    def _ask_offsets(self, began: Millis, broker: Broker) -> None:
        asked = _asked(broker) | {"consumer_group": GROUP}
        if not broker.up:
            answer = _no_connection(broker)
        else:
            now, entries = self.world.clock.now, []
            for physical in self._with_stats(broker):
                queue = self.world.logical(physical)
                offsets = self._offsets(queue)
                waits = offsets["brokerOffset"] - offsets["consumerOffset"]
                self.waiting.setdefault(queue, []).append((now, waits))
                entries.append(f"{_key(physical)}:{json.dumps(offsets)}")
            answer = {"body": f'{{"consumeTps":0.0,"offsetTable":{{{",".join(entries)}}}}}'}
        self._write("consume_stats", began, asked, answer)

    def _with_stats(self, broker: Broker) -> list[MessageQueue]:
        """Of the topics of which the broker has offsets of the group, and that the group still
        subscribes to if it subscribes to any (``AdminBrokerProcessor.getConsumeStats``).
        """
        found = []
        for topic, number in sorted(self.world.topics[broker.name].items()):
            subscribed = broker.subscriptions if broker.channels else frozenset()
            if topic == RETRY or (subscribed and topic not in subscribed):
                continue
            own = [MessageQueue(topic, broker.name, each) for each in range(number)]
            gone = (self.world.logical(each) for each in own)
            if not all(self.world.progress.is_forgotten(q, self.world.clock.now) for q in gone):
                found += own
        return found

    def _offsets(self, queue: MessageQueue) -> Line:
        """``OffsetWrapper``: a queue that nobody ever read has consumer offset 0."""
        now = self.world.clock.now
        if queue.topic in self.habits.quiet:
            return {"brokerOffset": 500, "consumerOffset": 0, "lastTimestamp": 0}
        read_until = self.world.progress.committed(queue, now)
        if read_until is not None and queue.topic in self.world.last_match:
            read_until = self.world.last_match[queue.topic](read_until)
        written = self._messages(queue, now)
        # Of a static topic a broker says that it has none (``getConsumeStats`` 5.3.3).
        none = -1 if queue.topic in self.world.logical_queues else 0
        consumed = none if read_until is None else self._messages(queue, read_until)
        return {
            "brokerOffset": written,
            "consumerOffset": consumed,
            # Of the last message that is committed (``AdminBrokerProcessor.getConsumeStats``).
            "lastTimestamp": epoch_millis(read_until) if read_until is not None and consumed else 0,
        }

    def _messages(self, queue: MessageQueue, time: Millis) -> int:
        """How many have come by then: since the queue was made, or for an hour before zero.

        None comes to a broker without a master.
        """
        since = self.world.truth.exists[queue].times[1]
        since = since if since > 0 else FIRST_MESSAGE
        writable = self.world.writable[self.world.broker_of(queue)].spans(
            bool, since, max(time, since)
        )
        return int(self.rates[queue.topic] * length([*writable]) / SECOND)

    def _hear(self, broker: Broker, process: Process, client_addr: str) -> None:
        heard = self.habits.heard is None or broker.name in self.habits.heard
        if not heard or self.world.clock.now < -2 * MINUTE or not broker.knows_group:
            return
        data = {
            "consumeFromWhere": self.habits.consume_from,
            "consumeType": _consume_type(process),
            "groupName": GROUP,
            "messageModel": "CLUSTERING",
            "subscriptionDataSet": _subscription_data(process.subscriptions, process.expression),
            "unitMode": False,
        }
        body = {"clientID": process.client_id, "consumerDataSet": [data], "producerDataSet": []}
        asked = _asked(broker) | {
            "client_addr": client_addr,
            "language": process.language,
            "version": process.version,
        }
        self._write("heartbeat", None, asked, {"body": json.dumps(body)})


def _error(code: int, message: str) -> Line:
    return {"error_code": code, "error_message": message}


def _no_connection(server: Broker | Nameserver) -> Line:
    return _error(_NO_RESPONSE, f"connect to {server.address} failed")


def _asked(broker: Broker) -> Line:
    named = {"broker_name": broker.name, "broker_id": broker.shown_id}
    return named | {"broker_addr": broker.address}


def _subscription_data(topics: frozenset[str], expression: str) -> list[Line]:
    of_topic = {topic: "*" if topic == RETRY else expression for topic in sorted(topics)}
    return [each for topic, text in of_topic.items() for each in subscriptions([topic], text)]


def _consume_type(process: Process) -> str:
    return "CONSUME_PASSIVELY" if process.assigned is None else "CONSUME_ACTIVELY"


def _connections(broker: Broker, consume_from: str) -> Line:
    connections = [
        {
            "clientAddr": address,
            "clientId": channel.client_id,
            "language": channel.process.language,
            "version": channel.process.version,
        }
        for address, channel in broker.channels.items()
    ]
    subscribed = _subscription_data(broker.subscriptions, broker.expression)
    # Of the group, as its last heartbeat had it.
    newest = max(broker.channels.values(), key=lambda channel: channel.last_heartbeat)
    of_group = {"consumeFromWhere": consume_from, "consumeType": _consume_type(newest.process)}
    return members((), subscribed) | of_group | {"connectionSet": connections}


def _running_info(
    world: World, process: Process, dice: Random, unfinished: dict[MessageQueue, Line]
) -> str:
    """Queues are keys, as fastjson prints them, so that this is no JSON.

    ``unfinished``: the offsets of queues of which one message is not finished. Its cache has that
    one and those that came since its last pull (``ProcessQueue.fillProcessQueueInfo`` 4.9.4).
    """
    now, entries = world.clock.now, []
    for queue in sorted(process.in_table):
        # Set at each attempt to pull, whether it succeeds or not; one that failed is repeated 3 s
        # later (``DefaultMQPushConsumerImpl.pullMessage``), one that finds nothing waits 20 s.
        pulled = now - dice.randrange(3_000 if not process.can_read(queue) else 15_000)
        info = {
            "cachedMsgCount": 1000 if process.blocked else 0,
            # A full cache has a first and a last message.
            "cachedMsgMinOffset": 1 if process.blocked else 0,
            "cachedMsgMaxOffset": 1000 if process.blocked else 0,
            "commitOffset": 1,
            "droped": False,
            "lastConsumeTimestamp": epoch_millis(process.blocked_since or pulled),
            "lastLockTimestamp": epoch_millis(process.locked.get(queue, process.started)),
            "lastPullTimestamp": epoch_millis(pulled),
            # Who does not reach the master keeps the flag, and its time grows old.
            "locked": process.orderly and queue not in process.denied,
            "tryUnlockTimes": 0,
        }
        if queue in unfinished:
            first, last = (unfinished[queue][which] for which in ("consumerOffset", "brokerOffset"))
            info |= {"cachedMsgCount": 1, "cachedMsgMinOffset": first, "cachedMsgMaxOffset": first}
            if last > first + 1:
                info |= {"cachedMsgCount": 2, "cachedMsgMaxOffset": last - 1}
        entries.append(f"{_key(queue)}:{json.dumps(info)}")
    properties = {
        "PROP_CONSUMEORDERLY": "true" if process.orderly else "false",
        "PROP_CONSUMER_START_TIMESTAMP": str(epoch_millis(process.started)),
        "PROP_CONSUME_TYPE": _consume_type(process),
        "allocateMessageQueueStrategy": f"{_CLASSES[process.strategy]}@4926097b",
        "consumerGroup": GROUP,
        "messageModel": "CLUSTERING",
    }
    if process.version >= _FIRST_5:
        properties["clientRebalance"] = "true" if process.divides else "false"
    subscriptions = json.dumps(_subscription_data(process.subscriptions, process.expression))
    return (
        f'{{"mqTable":{{{",".join(entries)}}},"properties":{json.dumps(properties)},'
        f'"statusTable":{{}},"subscriptionSet":{subscriptions}}}'
    )


def _key(queue: MessageQueue) -> str:
    return (
        f'{{"brokerName":"{queue.broker_name}","queueId":{queue.queue_id},"topic":"{queue.topic}"}}'
    )
