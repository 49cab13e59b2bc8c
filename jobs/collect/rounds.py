"""One round: what is asked of whom, and what follows from an answer.

Nothing waits for what it does not need. A nameserver's brokers are asked as soon as it has given
them, a group at all brokers as soon as one has named it, a topic's route as soon as a list has
named the topic: one server that hangs costs the round one time-out, whichever it is.

    nameserver: brokers (106) -> each broker: groups (201), request modes (402)
    each group on each broker: members (203) -> topics: routes (105) from every nameserver
                                             -> members: running infos (307)
    each group on each master: offsets (208), topics (343) -> routes

Each statement is one line of the dump, failed or not: a line that is missing is no evidence.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

from jobs.collect import questions
from jobs.collect.client import NO_ANSWER, NOT_REACHED, NOT_UNDERSTOOD, OK, Answer, RemotingClient
from jobs.collect.memory import Broker, GroupMemory, Memory
from jobs.collect.questions import Question
from jobs.dumps.parsing import parse_body
from jobs.instants import SECOND, Instant, to_datetime
from jobs.text import iso

#: What need not be asked, by the word that leaves it out.
ROUTES, RUNNING_INFOS, OFFSETS, REQUEST_MODES = (
    "routes",
    "running-infos",
    "offsets",
    "request-modes",
)
PARTS = (ROUTES, RUNNING_INFOS, OFFSETS, REQUEST_MODES)

#: The groups that RocketMQ keeps for itself (``MixAll.isSysConsumerGroup``, ``TopicValidator``).
_SYSTEM_GROUPS = re.compile(
    r"CID_RMQ_SYS_.*|CID_ONS.*|%SYS%.*|TOOLS_CONSUMER|FILTERSRV_CONSUMER|SELF_TEST_C_GROUP|"
    r"CID_DefaultHeartBeatSyncerTopic|__MONITOR_CONSUMER"
)
#: A pattern without anything special in it is a name.
_NAME = re.compile(r"[A-Za-z0-9_%-]+")

#: A server that does not have the request (``RequestCode`` of a later version).
_NOT_SUPPORTED = 3
#: A broker that lists nobody of the group.
_NOT_ONLINE = 206

#: The order in which an address is asked: lists and routes, then offsets, then running infos, which
#: may take the whole time-out each.
_FIRST, _SECOND, _LAST = 0, 1, 2


@dataclass(frozen=True)
class Target:
    """What is collected.

    ``name``: the cluster's name in the dump; empty: the one that RocketMQ gives it. The patterns
    are regular expressions over whole names. ``refresh``: running infos of a group whose lists do
    not change are asked so often; ``infos_of_each_broker``: of each that lists the member, and not
    of one. ``longest``: what was not asked so many seconds after the round began is not asked any
    more.
    """

    namesrvs: tuple[str, ...]
    name: str = ""
    clusters: str = ".*"
    groups: tuple[str, ...] = (".*",)
    topics: str = ".*"
    without: frozenset[str] = frozenset()
    refresh: Instant = 300 * SECOND
    infos_of_each_broker: bool = False
    longest: float = 300.0

    def takes_group(self, group: str) -> bool:
        """Whether the group is collected."""
        if any(group == each for each in self.groups):
            return True
        is_named = any(re.fullmatch(each, group) for each in self.groups)
        return is_named and not _SYSTEM_GROUPS.fullmatch(group)

    @property
    def named_groups(self) -> tuple[str, ...]:
        """The groups that are asked even where no broker names them."""
        return tuple(each for each in self.groups if _NAME.fullmatch(each))


@dataclass
class _Members:
    """What the brokers have reported of a group's members in this round."""

    memory: GroupMemory
    is_due: bool
    #: By client id: the brokers that list it.
    brokers: dict[str, list[Broker]] = field(default_factory=dict)
    #: The ids that a list has twice: different processes answer on different brokers.
    twice: set[str] = field(default_factory=set)
    asked: set[tuple[str, str]] = field(default_factory=set)
    #: Whether any broker has given a list.
    is_listed: bool = False


@dataclass(order=True)
class _Job:
    """A question that waits for its turn at an address."""

    urgency: tuple[int, Instant, int]
    question: Question = field(compare=False)
    then: Callable[[Answer], None] = field(compare=False)


class Round:
    """One round; ``run`` once."""

    def __init__(
        self,
        target: Target,
        client: RemotingClient,
        memory: Memory,
        snapshot_time: Instant,
        write: Callable[[dict[str, Any]], None],
    ) -> None:
        self._target, self._client, self._memory = target, client, memory
        self._snapshot_time, self._write_line = snapshot_time, write
        self._snapshot_text = iso(to_datetime(snapshot_time))
        self._began = 0.0
        self._order = count()
        self._jobs: defaultdict[str, list[_Job]] = defaultdict(list)
        self._lanes: Counter[str] = Counter()
        self._tasks: asyncio.TaskGroup | None = None
        self._namesrvs_left = len(target.namesrvs)
        self._brokers: defaultdict[str, list[Broker]] = defaultdict(list)
        self._groups: dict[tuple[str, str], _Members] = {}
        self._topics: set[tuple[str, str]] = set()
        #: By address: clients that did not answer, and running infos that are under way.
        self._silent: Counter[str] = Counter()
        self._infos: Counter[str] = Counter()

    async def run(self) -> None:
        """Asks everything; whatever fails is a line. Raises what ``write`` raises."""
        self._client.forget()
        self._memory.forget(self._snapshot_time)
        self._began = asyncio.get_running_loop().time()
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for namesrv in self._target.namesrvs:
                    self._put(namesrv, questions.brokers(), self._on_brokers)
                for (cluster, topic), seen_at in list(self._memory.topics.items()):
                    self._add_topic(cluster, topic, seen_at)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        self._keep()

    # Whose turn it is

    def _put(
        self,
        address: str,
        question: Question,
        then: Callable[[Answer], None],
        urgency: int = _FIRST,
        before: Instant = 0,
    ) -> None:
        """Has the question asked in its turn; what waits longest since ``before`` comes first."""
        assert self._tasks is not None  # noqa: S101 - run() has opened it
        heappush(self._jobs[address], _Job((urgency, before, next(self._order)), question, then))
        if self._lanes[address] < self._client.options.per_address:
            self._lanes[address] += 1
            self._tasks.create_task(self._lane(address))

    async def _lane(self, address: str) -> None:
        jobs = self._jobs[address]
        while jobs:
            job = heappop(jobs)
            job.then(await self._asked(address, job))
        self._lanes[address] -= 1

    async def _asked(self, address: str, job: _Job) -> Answer:
        if asyncio.get_running_loop().time() - self._began >= self._target.longest:
            reason = f"the round took longer than {self._target.longest:g} s"
        elif job.urgency[0] == _LAST and self._has_too_many_silent(address):
            reason = "too many clients did not answer this broker; they are asked in the next round"
        elif (address, job.question.code) in self._memory.refused:
            return Answer(address, _NOT_SUPPORTED, None, b"", self._snapshot_time)
        else:
            self._infos[address] += job.urgency[0] == _LAST
            try:
                return await self._client.ask(address, job.question)
            finally:
                self._infos[address] -= job.urgency[0] == _LAST
        return self._client.not_asked(address, reason)

    def _has_too_many_silent(self, address: str) -> bool:
        """Whether so many clients were silent, or are so far, that others would wait for them."""
        return self._silent[address] + self._infos[address] >= self._client.options.per_address

    # What follows from an answer

    def _on_brokers(self, answer: Answer) -> None:
        self._namesrvs_left -= 1
        given = list(_brokers(_value(answer), self._target))
        if given:
            self._memory.replace_brokers(given, self._snapshot_time)
        if given or not self._namesrvs_left:
            # Those that a nameserver has lost stay in the round; and all, where none answers.
            for broker in list(self._memory.brokers):
                self._add_broker(broker)

    def _add_broker(self, broker: Broker) -> None:
        brokers = self._brokers[broker.cluster]
        taken = {(each.broker_name, each.broker_id) for each in brokers}
        if broker[1:3] in taken or broker.address in {each.address for each in brokers}:
            return
        if broker.is_master:
            self._put(broker.address, questions.groups(), lambda it: self._on_groups(broker, it))
            if REQUEST_MODES not in self._target.without:
                self._put_if_supported(
                    broker, questions.request_modes(), lambda it: self._on_request_modes(broker, it)
                )
        for cluster, group in self._groups:
            if cluster == broker.cluster:
                self._ask_of_group(broker, group)
        brokers.append(broker)
        remembered = [group for cluster, group in self._memory.groups if cluster == broker.cluster]
        for group in (*remembered, *self._target.named_groups):
            self._add_group(broker.cluster, group)

    def _on_groups(self, broker: Broker, answer: Answer) -> None:
        for group in _dict(_value(answer), "subscriptionGroupTable"):
            if self._add_group(broker.cluster, group):
                self._groups[broker.cluster, group].memory.seen_at = self._snapshot_time

    def _add_group(self, cluster: str, group: str) -> bool:
        """Has the group asked on all brokers of the cluster; whether it is one to collect."""
        if not self._target.takes_group(group):
            return False
        if (cluster, group) not in self._groups:
            memory = self._memory.group(cluster, group)
            if group in self._target.named_groups:
                memory.seen_at = self._snapshot_time
            is_due = memory.is_due(self._snapshot_time, self._target.refresh)
            self._groups[cluster, group] = _Members(memory, is_due)
            for broker in self._brokers[cluster]:
                self._ask_of_group(broker, group)
        return True

    def _ask_of_group(self, broker: Broker, group: str) -> None:
        self._put(
            broker.address,
            questions.members(group),
            lambda it: self._on_members(broker, group, it),
        )
        if broker.is_master and OFFSETS not in self._target.without:
            self._put(
                broker.address,
                questions.offsets(group),
                lambda it: self._on_offsets(broker, group, it),
                _SECOND,
            )
        if broker.is_master and self._groups[broker.cluster, group].is_due:
            self._put_if_supported(
                broker, questions.topics_of(group), lambda it: self._on_topics_of(broker, it)
            )

    def _put_if_supported(
        self, broker: Broker, question: Question, then: Callable[[Answer], None]
    ) -> None:
        """Asks what brokers before 5.0 do not answer, unless this one has already refused it."""
        key = (broker.address, int(question.code))

        def remember(answer: Answer) -> None:
            if answer.code == _NOT_SUPPORTED:
                self._memory.refused.setdefault(key, self._snapshot_time)
            then(answer)

        self._put(broker.address, question, remember, _SECOND)

    def _on_request_modes(self, broker: Broker, answer: Answer) -> None:
        if answer.code != _NOT_SUPPORTED:
            self._write("message_request_mode", broker.cluster, answer, **_of(broker))

    def _on_members(self, broker: Broker, group: str, answer: Answer) -> None:
        self._write(
            "consumer_connection", broker.cluster, answer, **_of(broker), consumer_group=group
        )
        if answer.code not in (OK, _NOT_ONLINE):
            return
        value = _value(answer)
        for topic in _dict(value, "subscriptionTable"):
            self._add_topic(broker.cluster, topic)
        listed = sorted(_connections(value))
        members = self._groups[broker.cluster, group]
        members.is_listed = True
        if listed:
            members.memory.seen_at = self._snapshot_time
        place, digest = f"{broker.broker_name}/{broker.broker_id}", _digest(listed)
        before = members.memory.lists.get(place)
        if before != digest:
            members.memory.lists[place] = digest
            members.is_due = True
            if before is not None:
                members.memory.changed_at = self._snapshot_time
        ids = Counter(client_id for client_id, _ in listed)
        for client_id, times in ids.items():
            members.brokers.setdefault(client_id, []).append(broker)
            if times > 1:
                members.twice.add(client_id)
        if RUNNING_INFOS not in self._target.without:
            # A list that changed makes all members due, those that other brokers list too.
            for client_id in members.brokers if members.is_due else ids:
                self._ask_member(group, members, client_id)

    def _on_offsets(self, broker: Broker, group: str, answer: Answer) -> None:
        self._write("consume_stats", broker.cluster, answer, **_of(broker), consumer_group=group)
        for topic in _topics_of_offsets(answer):
            self._add_topic(broker.cluster, topic)

    def _on_topics_of(self, broker: Broker, answer: Answer) -> None:
        topics = _value(answer).get("topicList")
        for topic in topics if isinstance(topics, list) else ():
            if isinstance(topic, str):
                self._add_topic(broker.cluster, topic)

    def _add_topic(self, cluster: str, topic: str, seen_at: Instant | None = None) -> None:
        """Has the route asked of every nameserver, in this round and in those of an hour."""
        if ROUTES in self._target.without or not re.fullmatch(self._target.topics, topic):
            return
        if (cluster, topic) not in self._topics:
            self._topics.add((cluster, topic))
            for namesrv in self._target.namesrvs:
                self._put(
                    namesrv,
                    questions.route(topic),
                    lambda it: self._write(
                        "topic_route", cluster, it, namesrv_addr=it.address, topic=topic
                    ),
                )
        self._memory.topics[cluster, topic] = seen_at or self._snapshot_time

    # Running infos

    def _ask_member(self, group: str, members: _Members, client_id: str) -> None:
        """Has a member's running info asked, if it is wanted: of one broker that lists it, of an id
        that is listed twice of every one.
        """
        unanswered = members.memory.unanswered
        if not members.is_due and client_id not in unanswered:
            return
        brokers = members.brokers[client_id]
        is_of_each = client_id in members.twice or self._target.infos_of_each_broker
        for broker in brokers if is_of_each else brokers[:1]:
            self._ask_member_at(broker, group, members, client_id)

    def _ask_member_at(self, broker: Broker, group: str, members: _Members, client_id: str) -> None:
        if (client_id, broker.address) not in members.asked:
            members.asked.add((client_id, broker.address))
            self._put(
                broker.address,
                questions.running_info(group, client_id),
                lambda it: self._on_running_info(broker, group, members, client_id, it),
                _LAST,
                members.memory.unanswered.get(client_id, 0),
            )

    def _on_running_info(
        self, broker: Broker, group: str, members: _Members, client_id: str, answer: Answer
    ) -> None:
        unanswered = members.memory.unanswered
        if answer.code == NOT_REACHED:
            # Nobody asked the client: a line about it would be wrong.
            unanswered.setdefault(client_id, 0)
        else:
            self._write(
                "consumer_running_info",
                broker.cluster,
                answer,
                **_of(broker),
                consumer_group=group,
                client_id=client_id,
            )
            unanswered[client_id] = self._snapshot_time
        if answer.is_ok:
            del unanswered[client_id]
        elif answer.code == NO_ANSWER:
            self._silent[broker.address] += 1
        elif not self._has_too_many_silent(broker.address):
            # This broker may have lost the client; the next one that lists it may have not.
            for other in members.brokers[client_id]:
                if (client_id, other.address) not in members.asked:
                    self._ask_member_at(other, group, members, client_id)
                    break

    def _keep(self) -> None:
        """Leaves to the next round what was asked of the members."""
        for members in self._groups.values():
            memory = members.memory
            if members.is_due and members.is_listed:
                memory.infos_at = self._snapshot_time
            memory.unanswered = {
                client_id: asked_at
                for client_id, asked_at in memory.unanswered.items()
                if client_id in members.brokers or not members.is_listed
            }

    # Lines

    def _write(self, kind: str, cluster: str, answer: Answer, **who: Any) -> None:
        about = {"kind": kind, "cluster": cluster, "snapshot_time": self._snapshot_text, **who}
        self._write_line(answered_line(about, answer))


def answered_line(about: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """The line of a dump: what was asked, and the body as it came, or why there is none.

    >>> answered_line({"kind": "topic_route", "topic": "T"}, Answer("ns:1", 17, "No route", b"", 0))
    {'kind': 'topic_route', 'topic': 'T', 'collected_at': '1970-01-01T00:00:00.000Z', \
'error_code': 17, 'error_message': 'No route'}
    """
    line = {**about, "collected_at": iso(to_datetime(answer.collected_at))}
    code, remark = answer.code, answer.remark
    if answer.is_ok:
        try:
            return {**line, "body": answer.body.decode()}
        except UnicodeDecodeError as error:
            code, remark = NOT_UNDERSTOOD, f"{answer.address}: the body is no UTF-8: {error}"
    return {**line, "error_code": code, "error_message": remark or "no remark"}


def _of(broker: Broker) -> dict[str, Any]:
    return {
        "broker_name": broker.broker_name,
        "broker_id": broker.broker_id,
        "broker_addr": broker.address,
    }


def _brokers(value: dict[str, Any], target: Target) -> Iterator[Broker]:
    """The brokers of the target's clusters in a ``ClusterInfo``.

    >>> table = {"a": {"cluster": "C", "brokerAddrs": {"0": "10.0.0.1:1", "2": "10.0.0.2:1"}}}
    >>> [each[1:] for each in _brokers({"brokerAddrTable": table}, Target(("ns:1",)))]
    [('a', 0, '10.0.0.1:1', True), ('a', 2, '10.0.0.2:1', False)]
    """
    for broker_name, data in _dict(value, "brokerAddrTable").items():
        cluster = data.get("cluster") if isinstance(data, dict) else None
        if not isinstance(cluster, str) or not re.fullmatch(target.clusters, cluster):
            continue
        addresses = {
            int(broker_id): address
            for broker_id, address in _dict(data, "brokerAddrs").items()
            if broker_id.isdecimal() and isinstance(address, str)
        }
        for broker_id, address in sorted(addresses.items()):
            is_master = broker_id == min(addresses)
            yield Broker(target.name or cluster, broker_name, broker_id, address, is_master)


def _connections(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(client id, address) of each connection of a ``ConsumerConnection``."""
    connections = value.get("connectionSet")
    for each in connections if isinstance(connections, list) else ():
        if isinstance(each, dict) and isinstance(each.get("clientId"), str):
            yield each["clientId"], str(each.get("clientAddr"))


#: Of a message queue; nothing else in a ``ConsumeStats`` is named so. Its keys are objects, and it
#: is long: to find the topics costs a tenth of parsing it.
_TOPIC_OF_QUEUE = re.compile(rb'"topic":("(?:[^"\\]|\\.)*")')


def _topics_of_offsets(answer: Answer) -> Iterator[str]:
    """The topics of a ``ConsumeStats``.

    >>> body = b'{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"T"}:{"brokerOffset":1}}}'
    >>> list(_topics_of_offsets(Answer("a:1", OK, None, body, 0)))
    ['T']
    """
    for quoted in set(_TOPIC_OF_QUEUE.findall(answer.body)) if answer.is_ok else ():
        try:
            topic = parse_body(quoted.decode())
        except ValueError:
            continue
        yield topic


def _digest(listed: list[tuple[str, str]]) -> str:
    return hashlib.md5(repr(listed).encode(), usedforsecurity=False).hexdigest()[:16]


def _value(answer: Answer) -> dict[str, Any]:
    """The object of a body; an empty one where there is none that can be read."""
    try:
        value = parse_body(answer.body.decode()) if answer.is_ok else None
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}


def _dict(value: dict[str, Any], name: str) -> dict[str, Any]:
    """The object under a name; an empty one where there is none."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}
