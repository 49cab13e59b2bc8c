"""One round: what is asked of whom, and what follows from an answer.

Nothing waits for what it does not need. A nameserver's brokers are asked as soon as it has given
them, a group at all brokers as soon as one has named it, a topic's route as soon as a list has
named the topic: one server that hangs costs the round one time-out, whichever it is.

    nameserver: brokers (106) -> each broker: groups (201), request modes (402)
    each group on each broker: members (203) -> topics: routes (105) from every nameserver
                                             -> members: running infos (307) -> routes
    each group on each master: offsets (208), topics (343) -> routes
    a route that is another than in the round before -> running infos of its groups

Each answer is one line of the dump, failed or not: a line that is missing is no evidence.

No server is trusted. What it names is bounded (``shares.py``, ``reading.py``), what it sends is
read for a part of the round's time, and the round ends when its time is over; what is left out of
it is a line, too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from time import thread_time
from typing import Any

from jobs.collect import questions, reading
from jobs.collect.client import NO_ANSWER, NOT_REACHED, NOT_UNDERSTOOD, OK, Answer, RemotingClient
from jobs.collect.memory import Broker, GroupMemory, Memory
from jobs.collect.questions import Question, RequestCode
from jobs.collect.reading import Listed, Named
from jobs.collect.shares import Shares, Walk
from jobs.instants import SECOND, Instant, to_datetime
from jobs.text import iso
from rebalance_core.errors import nearest

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

#: Answers that are no trouble: no route, nobody of the group, a request that brokers of this
#: version do not have.
EXPECTED = {OK, 17, 206, 3}
#: A server that does not have the request (``RequestCode`` of a later version).
_NOT_SUPPORTED = 3
#: What brokers before 5.0 do not have.
_SINCE_5 = {RequestCode.QUERY_TOPICS_BY_CONSUMER, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE}
#: A broker that lists nobody of the group.
_NOT_ONLINE = 206

#: The order in which an address is asked: lists and routes, then offsets, then running infos, which
#: may take the whole time-out each.
_FIRST, _SECOND, _LAST = 0, 1, 2
#: After so many questions the others get each fourth turn: the groups may be made up.
_MANY = 500

#: What is under way when the round's time is over may take so many seconds more.
_GRACE = 2.0
#: So many lines say what was not asked in time, each of one question; for the rest there is one.
_MOST_NOT_ASKED = 30_000
#: A longer body is read in a thread; so many bytes of lines are written in one as well.
_LONG = 1 << 14
_BATCH = 1 << 20
_LINE_BYTES = 300
#: The bodies of one address are read for this part of the round's time; the others are written.
_SHARE_OF_READING = 1 / 20
#: So many troubles are kept; there may be as many as lines.
_MOST_TROUBLES = 1_000
#: What an answer without an account says (``AclException``; ACL 2.0: NO_PERMISSION).
_NO_PERMISSION, _ACL = 16, "AclException"


@dataclass(frozen=True)
class Target:
    """What is collected.

    ``name``: the cluster's name in the dump; empty: the one that RocketMQ gives it. The patterns
    are regular expressions over whole names. ``refresh``: running infos of a group whose lists do
    not change are asked so often; ``infos_of_each_broker``: of each that lists the member, and not
    of one. ``longest``: what was not asked so many seconds after the round began is not asked any
    more. ``most_...``: how many brokers, groups, topics and members a round asks of.
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
    most_brokers: int = 1_000
    most_groups: int = 10_000
    most_topics: int = 20_000
    most_members: int = 20_000

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


def _nothing(_: Answer) -> None:
    """What is read of an answer that shows nothing else to ask."""


@dataclass(order=True, slots=True)
class _Job:
    """A question that waits for its turn at an address.

    ``then`` gets the answer, and what ``read`` has found in it; None where it was not read.
    """

    urgency: tuple[int, Instant, int]
    question: Question = field(compare=False)
    then: Callable[[Answer, Any], None] = field(compare=False)
    read: Callable[[Answer], Any] = field(compare=False)


#: A group in its cluster.
_Group = tuple[str, str]


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
        self._ends = 0.0
        self._order = count()
        self._jobs: defaultdict[tuple[str, int], list[_Job]] = defaultdict(list)
        self._turns: Counter[str] = Counter()
        #: By address: the names that it is still to be asked of, and how that becomes jobs.
        self._walks: defaultdict[str, list[tuple[int, Walk[_Group], Callable[[_Group], None]]]]
        self._walks = defaultdict(list)
        self._lanes: Counter[str] = Counter()
        self._tasks: asyncio.TaskGroup | None = None
        self._namesrvs_left = len(target.namesrvs)
        self._brokers: dict[str, Broker] = {}
        self._taken: set[tuple[str, str, int]] = set()
        self._too_many: set[Broker] = set()
        self._groups: Shares[_Group] = Shares(target.most_groups)
        self._topics: Shares[tuple[str, str]] = Shares(target.most_topics)
        self._ids: Shares[tuple[str, str, str]] = Shares(target.most_members)
        self._members: dict[_Group, _Members] = {}
        #: By topic in its cluster: its groups; and the topics whose route is not what it was.
        self._groups_of: defaultdict[tuple[str, str], set[_Group]] = defaultdict(set)
        self._rerouted: set[tuple[str, str]] = set()
        #: By address: clients that did not answer, and running infos that are under way.
        self._silent: Counter[str] = Counter()
        self._infos: Counter[str] = Counter()
        self._lines: list[dict[str, Any]] = []
        self._unwritten = 0
        self._worker: ThreadPoolExecutor | None = None
        self._writing, self._reading = asyncio.Lock(), asyncio.Lock()
        self._read_seconds: Counter[str] = Counter()
        self._not_asked = 0
        #: By cluster, address and reason: how much of what it gave was left out.
        self._left_out: Counter[tuple[str, str, str]] = Counter()
        #: What went wrong, by whom and of whom.
        self.troubles: list[str] = []
        #: By address: the brokers that refuse to answer without an account, or with this one.
        self.refusing: dict[str, str] = {}
        #: The nameservers that are none.
        self.no_namesrvs: list[str] = []
        #: Whether any broker has said of a group who its members are, or that it has none.
        self.has_lists = self._has_asked_groups = False
        self._known: set[str] = set()
        self._is_doubtful = False

    async def run(self) -> None:
        """Asks everything; whatever fails is a line. Raises what ``write`` raises."""
        self._client.forget()
        self._memory.forget(self._snapshot_time)
        self._ends = asyncio.get_running_loop().time() + self._target.longest
        for key, of_group in self._memory.groups.items():
            self._add_group(key, of_group.giver)
        # One thread: each has its own room that it does not give back.
        with ThreadPoolExecutor(1) as self._worker:
            await self._ask_all()
        self._keep()

    async def _ask_all(self) -> None:
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for namesrv in self._target.namesrvs:
                    walk = Walk(self._topics, lambda _: True)
                    self._walks[namesrv].append((_FIRST, walk, partial(self._put_route, namesrv)))
                    self._put(namesrv, questions.brokers(), self._on_brokers, reading.brokers_in)
                # Those that have a route come first: others may be made up.
                routed = {key[:2] for key, of in self._memory.routes.items() if of != _NO_ROUTE}
                remembered = sorted(self._memory.topics.items(), key=lambda it: it[0] not in routed)
                for (cluster, topic), seen_at in remembered:
                    self._add_topics(cluster, Named([topic]), "", None, seen_at)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        self._say_what_was_left_out()
        await self._flush()

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it has a line about a group: a broker that refuses all others has none."""
        return self._has_asked_groups and (self.has_lists or not self.refusing)

    def given_up(self) -> list[str]:
        """The servers that were given up, and why."""
        return [
            reason.replace(address, self._name_of(address), 1)
            for address, reason in self._client.given_up.items()
        ]

    def unknown_groups(self) -> dict[str, list[str]]:
        """The groups that were named in vain, with the names that may have been meant.

        Empty where a broker did not answer: it may know them.
        """
        if self._is_doubtful or not self.has_lists:
            return {}
        named = [each for each in self._target.named_groups if each not in self._known]
        return {each: nearest(each, self._known) for each in named}

    # Whose turn it is

    def _put(
        self,
        address: str,
        question: Question,
        then: Callable[[Answer, Any], None],
        read: Callable[[Answer], Any] = _nothing,
        urgency: int = _FIRST,
        before: Instant = 0,
    ) -> None:
        """Has the question asked in its turn; what waits longest since ``before`` comes first."""
        job = _Job((urgency, before, next(self._order)), question, then, read)
        heappush(self._jobs[address, urgency], job)
        self._wake(address, 1)

    def _wake(self, address: str, lanes: int) -> None:
        """Has the address asked by so many lanes more, if it may be."""
        assert self._tasks is not None  # noqa: S101 - run() has opened it
        for _ in range(min(lanes, self._client.options.per_address - self._lanes[address])):
            self._lanes[address] += 1
            self._tasks.create_task(self._lane(address))

    def _wake_all(self, addresses: Iterable[str]) -> None:
        for address in addresses:
            self._wake(address, self._client.options.per_address)

    async def _lane(self, address: str) -> None:
        while (job := self._next(address)) is not None:
            answer = await self._asked(address, job)
            self._not_asked += answer.code == NOT_REACHED
            try:
                if answer.code == _NOT_SUPPORTED and job.question.code in _SINCE_5:
                    refused = (address, int(job.question.code))
                    self._memory.refused.setdefault(refused, self._snapshot_time)
                else:
                    job.then(answer, await self._read(job, answer))
                if self._unwritten > _BATCH:
                    await self._flush()
            finally:
                self._client.handled(answer)
        self._lanes[address] -= 1

    def _next(self, address: str) -> _Job | None:
        """The question that is next; None where there is none now."""
        is_failing = address in self._client.given_up or self._is_over()
        if is_failing and self._not_asked >= _MOST_NOT_ASKED:
            return None
        self._turns[address] += 1
        turns = (_FIRST, _SECOND, _LAST)
        if self._turns[address] > _MANY and self._turns[address] % 4 == 0:
            turns = (_SECOND, _FIRST, _LAST) if self._infos[address] else turns[::-1]
        for urgency in turns:
            jobs = self._jobs[address, urgency]
            for _, walk, put in (each for each in self._walks[address] if each[0] == urgency):
                while not jobs and (name := walk.next()) is not None:
                    put(name)
            if jobs:
                return heappop(jobs)
        return None

    async def _asked(self, address: str, job: _Job) -> Answer:
        if self._is_over():
            return self._asked_too_late(address)
        if job.urgency[0] == _LAST and self._has_too_many_silent(address):
            reason = "too many clients did not answer this broker; they are asked in the next round"
            return self._client.not_asked(address, reason)
        if (address, job.question.code) in self._memory.refused:
            return Answer(address, _NOT_SUPPORTED, None, b"", self._snapshot_time)
        self._infos[address] += job.urgency[0] == _LAST
        try:
            async with asyncio.timeout_at(self._ends + _GRACE):
                answer = await self._client.ask(address, job.question)
        except TimeoutError:
            return self._asked_too_late(address)
        finally:
            self._infos[address] -= job.urgency[0] == _LAST
        if answer.code >= OK:
            self._memory.answered[address] = self._snapshot_time
        return answer

    def _is_over(self) -> bool:
        return asyncio.get_running_loop().time() >= self._ends

    def _asked_too_late(self, address: str) -> Answer:
        return self._client.not_asked(
            address, f"the round took longer than {self._target.longest:g} s"
        )

    def _has_too_many_silent(self, address: str) -> bool:
        """Whether so many clients were silent, or are so far, that others would wait for them."""
        return self._silent[address] + self._infos[address] >= self._client.options.per_address

    async def _read(self, job: _Job, answer: Answer) -> Any:
        """What the answer shows; None where its server has taken too much time with others."""
        if job.read is _nothing:
            return None
        if len(answer.body) <= _LONG:
            return self._timed(job, answer)
        # One at a time: what a body becomes takes many times its room.
        async with self._reading:
            return await self._in_thread(partial(self._timed, job, answer))

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def _timed(self, job: _Job, answer: Answer) -> Any:
        address, began = answer.address, thread_time()
        most = self._target.longest * _SHARE_OF_READING
        if self._read_seconds[address] > most:
            self._leave_out(address, f"answers that were not read within {most:g} s")
            return None
        found = job.read(answer)
        self._read_seconds[address] += thread_time() - began  # type: ignore[assignment]
        return found

    # What follows from an answer

    def _on_brokers(self, answer: Answer, found: list[Broker] | None) -> None:
        self._namesrvs_left -= 1
        if answer.code == _NOT_SUPPORTED:
            self.no_namesrvs.append(answer.address)
        name = self._target.name
        given = [
            each._replace(cluster=name or each.cluster)
            for each in found or ()
            if re.fullmatch(self._target.clusters, each.cluster)
        ]
        if given:
            self._memory.replace_brokers(given, self._snapshot_time)
        for cluster in sorted({each.cluster for each in given}) or [name] * bool(name):
            self._write("cluster_info", cluster, answer, namesrv_addr=answer.address)
        if given or not self._namesrvs_left:
            # Those that a nameserver has lost stay in the round; and all, where none answers. Those
            # that have answered before come first, for one that is silent takes a place.
            of = self._memory
            for broker in sorted(of.brokers, key=lambda each: each.address not in of.answered):
                self._add_broker(broker)

    def _add_broker(self, broker: Broker) -> None:
        # An address belongs to one broker, in one cluster.
        if broker.address in self._brokers or broker[:3] in self._taken:
            return
        if len(self._brokers) >= self._target.most_brokers:
            self._too_many.add(broker)
            self._memory.brokers.pop(broker, None)
            return
        self._brokers[broker.address] = broker
        self._taken.add(broker[:3])
        walks = self._walks[broker.address]
        walks.append((_FIRST, self._walk(broker), partial(self._put_members, broker)))
        if broker.is_master:
            walks.append((_SECOND, self._walk(broker), partial(self._put_rest, broker)))
            then = partial(self._on_groups, broker)
            self._put(broker.address, questions.groups(), then, reading.groups_in)
            if REQUEST_MODES not in self._target.without:
                modes = partial(self._on_request_modes, broker)
                self._put(broker.address, questions.request_modes(), modes, urgency=_SECOND)
        for group in self._target.named_groups:
            self._add_group((broker.cluster, group), "")
        # Groups that are named anew wake the others, too.
        self._wake(broker.address, self._client.options.per_address)

    def _walk(self, broker: Broker) -> Walk[_Group]:
        return Walk(self._groups, lambda giver: giver[0] == broker.cluster)

    def _on_groups(self, broker: Broker, answer: Answer, found: Named | None) -> None:
        self._write("subscription_group", broker.cluster, answer, **_of(broker))
        self._is_doubtful |= not answer.is_ok
        if found and found.too_long:
            self._leave_out(broker.address, "groups with names that are too long", found.too_long)
        for group in self._groups.within(found.names) if found else ():
            key = broker.cluster, group
            if len(self._known) < self._target.most_groups:
                self._known.add(group)
            if self._add_group(key, broker.address):
                memory = self._memory.group(*key)
                memory.seen_at, memory.giver = self._snapshot_time, memory.giver or broker.address
        self._wake_all(each.address for each in self._brokers.values() if each[0] == broker[0])

    def _add_group(self, key: _Group, giver: str) -> bool:
        """Takes the group in, to be asked of all brokers of its cluster; whether it is taken."""
        cluster, group = key
        return self._target.takes_group(group) and self._groups.add(key, (cluster, giver))

    def _of_group(self, key: _Group) -> _Members:
        if key not in self._members:
            memory = self._memory.group(*key)
            if key[1] in self._target.named_groups:
                memory.seen_at = self._snapshot_time
            is_due = memory.is_due(self._snapshot_time, self._target.refresh)
            self._members[key] = _Members(memory, is_due)
        return self._members[key]

    def _put_members(self, broker: Broker, key: _Group) -> None:
        if key in self._groups:
            then = partial(self._on_members, broker, key)
            self._put(broker.address, questions.members(key[1]), then, reading.listed_in)

    def _put_rest(self, broker: Broker, key: _Group) -> None:
        if key not in self._groups:
            return
        if OFFSETS not in self._target.without:
            self._put_offsets(broker, key)
        if self._of_group(key).is_due:
            then = partial(self._on_topics, "consumer_topics", broker, key)
            question = questions.topics_of(key[1])
            self._put(broker.address, question, then, reading.topics_in_list, _SECOND)

    def _put_offsets(self, broker: Broker, key: _Group) -> None:
        then = partial(self._on_offsets, broker, key)
        self._put(broker.address, questions.offsets(key[1]), then, reading.topics_in, _SECOND)

    def _on_request_modes(self, broker: Broker, answer: Answer, _: None) -> None:
        self._write("message_request_mode", broker.cluster, answer, **_of(broker))

    def _on_members(
        self, broker: Broker, key: _Group, answer: Answer, found: Listed | None
    ) -> None:
        cluster, group = key
        self._write("consumer_connection", cluster, answer, **_of(broker), consumer_group=group)
        self._has_asked_groups = True
        self._is_doubtful |= answer.code not in (OK, _NOT_ONLINE)
        if answer.code not in (OK, _NOT_ONLINE) or found is None or key not in self._groups:
            return
        self.has_lists = True
        self._add_topics(cluster, found.topics, broker.address, key)
        members = self._of_group(key)
        members.is_listed = True
        if answer.is_ok:
            self._known.add(group)
        if found.ids:
            members.memory.seen_at = self._snapshot_time
        place = f"{broker.broker_name}/{broker.broker_id}"
        before = members.memory.lists.get(place)
        if before != found.digest:
            members.memory.lists[place] = found.digest
            members.is_due = True
            if before is not None:
                members.memory.changed_at = self._snapshot_time
        for client_id in self._ids.within([*found.ids]):
            if self._ids.add((cluster, group, client_id), (cluster, broker.address)):
                members.brokers.setdefault(client_id, []).append(broker)
                if found.ids[client_id] > 1:
                    members.twice.add(client_id)
        if found.too_long:
            self._leave_out(broker.address, "client ids that are too long", found.too_long)
        # A list that changed makes all members due, those that other brokers list too.
        self._ask_members(group, members, members.brokers if members.is_due else found.ids)

    def _on_topics(
        self, kind: str, broker: Broker, key: _Group, answer: Answer, found: Named | None
    ) -> None:
        cluster, group = key
        self._write(kind, cluster, answer, **_of(broker), consumer_group=group)
        self._add_topics(cluster, found, broker.address, key)

    def _on_offsets(self, broker: Broker, key: _Group, answer: Answer, found: Named | None) -> None:
        _, group = key
        self._on_topics("consume_stats", broker, key, answer, found)
        if found and found.names:
            self._known.add(group)
        if answer.code < OK:
            # A slave has the offsets, too.
            others = [
                each
                for each in self._brokers.values()
                if each[:2] == broker[:2] and each.broker_id > broker.broker_id
            ]
            if others and not (other := min(others, key=lambda each: each.broker_id)).is_master:
                self._put_offsets(other, key)

    def _add_topics(
        self,
        cluster: str,
        found: Named | None,
        giver: str,
        group: _Group | None,
        seen_at: Instant | None = None,
    ) -> None:
        """Has the routes asked of every nameserver, in this round and in those of an hour."""
        if ROUTES in self._target.without or found is None:
            return
        if found.too_long:
            self._leave_out(giver, "topics with names that are too long", found.too_long)
        for topic in self._topics.within(found.names):
            key = cluster, topic
            if re.fullmatch(self._target.topics, topic) and self._topics.add(key, (cluster, giver)):
                self._memory.topics[key] = seen_at or self._snapshot_time
                if group is not None and group not in self._groups_of[key]:
                    self._groups_of[key].add(group)
                    if key in self._rerouted:
                        self._make_due(group)
        self._wake_all(self._target.namesrvs)

    def _put_route(self, namesrv: str, key: tuple[str, str]) -> None:
        if key in self._topics:
            then = partial(self._on_route, key)
            self._put(namesrv, questions.route(key[1]), then, reading.clusters_in)

    def _on_route(self, key: tuple[str, str], answer: Answer, found: set[str] | None) -> None:
        cluster, topic = key
        # Clients send heartbeats to all brokers that they know: those of a cluster list groups
        # whose topics are another's, behind the same nameserver.
        if not found or self._target.name or cluster in found:
            self._write("topic_route", cluster, answer, namesrv_addr=answer.address, topic=topic)
        if answer.code < OK:
            return
        digest = _digest(answer.body)
        place = cluster, topic, answer.address
        before = self._memory.routes.get(place)
        self._memory.routes[place] = digest
        if before not in (None, digest):
            self._rerouted.add(key)
            for group in self._groups_of[key]:
                self._make_due(group)

    # Running infos

    def _make_due(self, group: _Group) -> None:
        """Has all members of the group asked, in this round and for as long as they divide anew."""
        members = self._of_group(group)
        members.memory.changed_at = self._snapshot_time
        members.is_due = True
        self._ask_members(group[1], members, members.brokers)

    def _ask_members(self, group: str, members: _Members, client_ids: Iterable[str]) -> None:
        """Has the running infos asked that are wanted: each of one broker that lists the member, of
        an id that is listed twice of every one.
        """
        if RUNNING_INFOS in self._target.without:
            return
        for client_id in client_ids:
            if members.is_due or client_id in members.memory.unanswered:
                brokers = members.brokers.get(client_id, [])
                is_of_each = client_id in members.twice or self._target.infos_of_each_broker
                for broker in brokers if is_of_each else brokers[:1]:
                    self._ask_member_at(broker, group, members, client_id)

    def _ask_member_at(self, broker: Broker, group: str, members: _Members, client_id: str) -> None:
        if (client_id, broker.address) not in members.asked:
            members.asked.add((client_id, broker.address))
            self._put(
                broker.address,
                questions.running_info(group, client_id),
                partial(self._on_running_info, broker, group, members, client_id),
                reading.topics_in,
                _LAST,
                members.memory.unanswered.get(client_id, 0),
            )

    def _on_running_info(
        self,
        broker: Broker,
        group: str,
        members: _Members,
        client_id: str,
        answer: Answer,
        found: Named | None,
    ) -> None:
        self._add_topics(broker.cluster, found, broker.address, (broker.cluster, group))
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
        """Leaves to the next round what was asked of the members, and nothing without bounds."""
        self._memory.keep(
            lambda key: key in self._groups or not self._target.takes_group(key[1]),
            lambda key: key in self._topics,
        )
        for members in self._members.values():
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
        self._take_line(answered_line(about, answer))
        if answer.code not in EXPECTED:
            self._note_trouble(answer, who)

    def _take_line(self, line: dict[str, Any]) -> None:
        self._lines.append(line)
        self._unwritten += _LINE_BYTES + len(line.get("body", ""))

    async def _flush(self) -> None:
        """Writes the lines that were taken, in a thread: to pack them takes time."""
        async with self._writing:
            lines, self._lines, self._unwritten = self._lines, [], 0
            await self._in_thread(partial(self._write_all, lines))

    def _write_all(self, lines: list[dict[str, Any]]) -> None:
        for line in lines:
            self._write_line(line)

    def _note_trouble(self, answer: Answer, who: Mapping[str, Any]) -> None:
        """Keeps who did not answer, of whom; of an address that was given up that alone."""
        broker = who.get("broker_name")
        server = f"{broker} ({answer.address})" if broker else answer.address
        remark = answer.remark or "no remark"
        if answer.code == _NO_PERMISSION or _ACL in remark:
            self.refusing.setdefault(answer.address, f"{server} answers: {remark}")
        elif answer.address in self._client.given_up or len(self.troubles) >= _MOST_TROUBLES:
            return
        else:
            names = {"group": "consumer_group", "member": "client_id", "topic": "topic"}
            whom = [f"{word} {who[name]}" for word, name in names.items() if name in who]
            error = remark if answer.code < OK else f"error {answer.code}: {remark}"
            self.troubles.append(": ".join([server, *([", ".join(whom)] if whom else []), error]))

    def _name_of(self, address: str) -> str:
        broker = self._brokers.get(address)
        return f"{broker.broker_name} ({address})" if broker else address

    def _leave_out(self, address: str, what: str, number: int = 1) -> None:
        broker = self._brokers.get(address)
        cluster = broker.cluster if broker else self._target.name
        self._left_out[cluster, address, what] += number

    def _say_what_was_left_out(self) -> None:
        """A line and a trouble for each reason."""
        left_out = {
            "brokers": len(self._too_many),
            "groups": self._groups.left_out,
            "topics": self._topics.left_out,
            "members": self._ids.left_out,
        }
        for name, number in left_out.items():
            if number:
                self._leave_out("", f"{name} (most_{name})", number)
        if self._not_asked >= _MOST_NOT_ASKED:
            self._leave_out("", "questions to servers that did not answer, or not in time")
        now = iso(to_datetime(self._client.now()))
        for (cluster, address, what), number in sorted(self._left_out.items()):
            self._take_line(
                {
                    "kind": "left_out",
                    "cluster": cluster or next((it[0] for it in self._brokers.values()), "unknown"),
                    "snapshot_time": self._snapshot_text,
                    "collected_at": now,
                    "address": address,
                    "body": json.dumps({"what": what, "number": number}),
                }
            )
            of = f" of {self._name_of(address)}" if address else ""
            self.troubles.insert(0, f"left out: {number:,} {what}{of}")


def _digest(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()[:8]


_NO_ROUTE = _digest(b"")


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
