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

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from jobs.collect import questions, reading
from jobs.collect.client import NO_ANSWER, NOT_REACHED, OK, Answer, RemotingClient
from jobs.collect.lines import Lines
from jobs.collect.memory import Broker, GroupMemory, Memory
from jobs.collect.reading import Listed, Named
from jobs.collect.shares import Shares, Walk
from jobs.collect.turns import EARLY, LAST, LATER, NOT_SUPPORTED, Turns
from jobs.instants import SECOND, Instant
from rebalance_core.errors import near_names, nearest

#: What need not be asked, by the word that leaves it out.
PARTS = ("routes", "running-infos", "offsets", "request-modes")
ROUTES, RUNNING_INFOS, OFFSETS, REQUEST_MODES = PARTS

#: The groups that RocketMQ keeps for itself (``MixAll.isSysConsumerGroup``, ``TopicValidator``).
_SYSTEM_GROUPS = re.compile(
    r"CID_RMQ_SYS_.*|CID_ONS.*|%SYS%.*|TOOLS_CONSUMER|FILTERSRV_CONSUMER|SELF_TEST_C_GROUP|"
    r"CID_DefaultHeartBeatSyncerTopic|__MONITOR_CONSUMER"
)
#: A pattern without anything special in it is a name.
_NAME = re.compile(r"[A-Za-z0-9_%-]+")

#: So many names that are not wanted are kept, for the error about one that is not there.
_MOST_OTHERS = 1_000

#: A broker that lists nobody of the group.
_NOT_ONLINE = 206


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
        self._snapshot_time = snapshot_time
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
        #: The nameservers that are none.
        self.no_namesrvs: list[str] = []
        #: Whether any broker has said of a group who its members are, or that it has none.
        self.has_lists = self._has_asked_groups = False
        self._known: set[str] = set()
        #: Names that are there and not wanted, for whoever wrote a name that is not.
        self._other_clusters: set[str] = set()
        self._other_topics: set[str] = set()
        self._is_doubtful = False
        # One thread: each has its own room that it does not give back.
        self._worker = ThreadPoolExecutor(1)
        self._lines = Lines(snapshot_time, write, client, self._brokers, self._worker)
        self._turns = Turns(
            client, memory, snapshot_time, target.longest, self._lines, self._worker
        )

    async def run(self) -> None:
        """Asks everything; whatever fails is a line. Raises what ``write`` raises."""
        self._client.forget()
        self._memory.forget(self._snapshot_time)
        for key, of_group in self._memory.groups.items():
            self._add_group(key, of_group.giver)
        with self._worker:
            await self._turns.run(self._begin)
            left_out = {
                "brokers": len(self._too_many),
                "groups": self._groups.left_out,
                "topics": self._topics.left_out,
                "members": self._ids.left_out,
            }
            for name, number in left_out.items():
                self._lines.leave_out("", f"{name} (most_{name})", number)
            self._lines.end(self._target.name)
            await self._lines.flush()
        self._keep()

    def _begin(self) -> None:
        for namesrv in self._target.namesrvs:
            walk = Walk(self._topics, lambda _: True)
            self._turns.put_each(namesrv, EARLY, walk, partial(self._put_route, namesrv))
            self._turns.put(namesrv, questions.brokers(), self._on_brokers, reading.brokers_in)
        # Those that have a route come first: others may be made up.
        routed = {key[:2] for key, of in self._memory.routes.items() if of != _NO_ROUTE}
        remembered = sorted(self._memory.topics.items(), key=lambda it: it[0] not in routed)
        for (cluster, topic), seen_at in remembered:
            self._add_topics(cluster, Named([topic]), "", None, seen_at)

    @property
    def troubles(self) -> list[str]:
        """What went wrong, by whom and of whom."""
        return self._lines.troubles

    @property
    def refusing(self) -> dict[str, str]:
        """By address: the brokers that refuse to answer without an account, or with this one."""
        return self._lines.refusing

    @property
    def is_worth_keeping(self) -> bool:
        """Whether it has a line about a group: a broker that refuses all others has none."""
        return self._has_asked_groups and (self.has_lists or not self.refusing)

    def given_up(self) -> list[str]:
        """The servers that were given up, and why."""
        return [
            reason.replace(address, self._lines.name_of(address), 1)
            for address, reason in self._client.given_up.items()
        ]

    @property
    def wants_nothing_that_is_there(self) -> bool:
        """Whether no cluster, no topic, or none of the groups, is there that was named."""
        groups = self._unknown_groups()
        return bool(
            (self._other_clusters and not self._brokers)
            or (self._other_topics and not self._topics)
            or (groups and set(groups) == set(self._target.groups))
        )

    def unknown(self) -> list[str]:
        """Of the names that were given in vain, each with those that may have been meant.

        None where a server did not answer: it may know them.
        """
        unknown = []
        if self._other_clusters and not self._brokers:
            there = near_names(self._target.clusters, self._other_clusters)
            unknown.append(
                f"no such cluster: nameservers know none that is {self._target.clusters}; {there}"
            )
        for group in self._unknown_groups():
            near = nearest(group, self._known)
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            unknown.append(f"no such group: no broker knows {group}{meant}")
        if self._other_topics and not self._topics and not self._is_doubtful:
            there = near_names(self._target.topics, self._other_topics)
            unknown.append(
                f"no such topic: no group has one that is {self._target.topics}; {there}"
            )
        return unknown

    def _unknown_groups(self) -> list[str]:
        if self._is_doubtful or not self.has_lists:
            return []
        return [each for each in self._target.named_groups if each not in self._known]

    # What follows from an answer

    def _on_brokers(self, answer: Answer, found: list[Broker] | None) -> None:
        self._namesrvs_left -= 1
        if answer.code == NOT_SUPPORTED:
            self.no_namesrvs.append(answer.address)
        name = self._target.name
        given = []
        for each in found or ():
            if re.fullmatch(self._target.clusters, each.cluster):
                given.append(each._replace(cluster=name or each.cluster))
            elif len(self._other_clusters) < _MOST_OTHERS:
                self._other_clusters.add(each.cluster)
        if given:
            self._memory.replace_brokers(given, self._snapshot_time)
        for cluster in sorted({each.cluster for each in given}) or [name] * bool(name):
            self._lines.add("cluster_info", cluster, answer, namesrv_addr=answer.address)
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
        put_each = partial(self._turns.put_each, broker.address)
        put_each(EARLY, self._walk(broker), partial(self._put_members, broker))
        if broker.is_master:
            put_each(LATER, self._walk(broker), partial(self._put_rest, broker))
            then = partial(self._on_groups, broker)
            self._turns.put(broker.address, questions.groups(), then, reading.groups_in)
            if REQUEST_MODES not in self._target.without:
                self._turns.put(
                    broker.address,
                    questions.request_modes(),
                    lambda answer, _: self._lines.add_of(broker, "message_request_mode", answer),
                    urgency=LATER,
                )
        for group in self._target.named_groups:
            self._add_group((broker.cluster, group), "")
        # Groups that are named anew wake the others, too.
        self._turns.wake([broker.address])

    def _walk(self, broker: Broker) -> Walk[_Group]:
        return Walk(self._groups, lambda giver: giver[0] == broker.cluster)

    def _on_groups(self, broker: Broker, answer: Answer, found: Named | None) -> None:
        self._lines.add_of(broker, "subscription_group", answer)
        self._is_doubtful |= not answer.is_ok
        found = found or Named([])
        self._lines.leave_out(broker.address, "groups with names that are too long", found.too_long)
        for group in self._groups.within(found.names):
            key = broker.cluster, group
            if len(self._known) < self._target.most_groups:
                self._known.add(group)
            if self._add_group(key, broker.address):
                memory = self._memory.group(*key)
                memory.seen_at, memory.giver = self._snapshot_time, memory.giver or broker.address
        self._turns.wake(each.address for each in self._brokers.values() if each[0] == broker[0])

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
            self._turns.put(broker.address, questions.members(key[1]), then, reading.listed_in)

    def _put_rest(self, broker: Broker, key: _Group) -> None:
        if key not in self._groups:
            return
        if OFFSETS not in self._target.without:
            self._put_offsets(broker, key)
        if self._of_group(key).is_due:
            then = partial(self._on_topics, "consumer_topics", broker, key)
            question = questions.topics_of(key[1])
            self._turns.put(broker.address, question, then, reading.topics_in_list, LATER)

    def _put_offsets(self, broker: Broker, key: _Group) -> None:
        then = partial(self._on_offsets, broker, key)
        self._turns.put(broker.address, questions.offsets(key[1]), then, reading.topics_in, LATER)

    def _on_members(
        self, broker: Broker, key: _Group, answer: Answer, found: Listed | None
    ) -> None:
        cluster, group = key
        self._lines.add_of(broker, "consumer_connection", answer, consumer_group=group)
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
        before = members.memory.lists.get(broker.place)
        if before != found.digest:
            members.memory.lists[broker.place] = found.digest
            members.is_due = True
            if before is not None:
                members.memory.changed_at = self._snapshot_time
        for client_id in self._ids.within([*found.ids]):
            if self._ids.add((cluster, group, client_id), (cluster, broker.address)):
                members.brokers.setdefault(client_id, []).append(broker)
                if found.ids[client_id] > 1:
                    members.twice.add(client_id)
        self._lines.leave_out(broker.address, "client ids that are too long", found.too_long)
        # A list that changed makes all members due, those that other brokers list too.
        self._ask_members(group, members, members.brokers if members.is_due else found.ids)

    def _on_topics(
        self, kind: str, broker: Broker, key: _Group, answer: Answer, found: Named | None
    ) -> None:
        self._lines.add_of(broker, kind, answer, consumer_group=key[1])
        self._add_topics(broker.cluster, found, broker.address, key)

    def _on_offsets(self, broker: Broker, key: _Group, answer: Answer, found: Named | None) -> None:
        self._on_topics("consume_stats", broker, key, answer, found)
        if found and found.names:
            self._known.add(key[1])
        if answer.code < OK:
            # A slave has the offsets, too.
            of_name = [each for each in self._brokers.values() if each[:2] == broker[:2]]
            slaves = [each for each in of_name if each.broker_id > broker.broker_id]
            if slaves and not min(slaves).is_master:
                self._put_offsets(min(slaves), key)

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
        self._lines.leave_out(giver, "topics with names that are too long", found.too_long)
        for topic in self._topics.within(found.names):
            key = cluster, topic
            if not re.fullmatch(self._target.topics, topic):
                if len(self._other_topics) < _MOST_OTHERS and not topic.startswith("%"):
                    self._other_topics.add(topic)
            elif self._topics.add(key, (cluster, giver)):
                self._memory.topics[key] = seen_at or self._snapshot_time
                if group is not None and group not in self._groups_of[key]:
                    self._groups_of[key].add(group)
                    if key in self._rerouted:
                        self._make_due(group)
        self._turns.wake(self._target.namesrvs)

    def _put_route(self, namesrv: str, key: tuple[str, str]) -> None:
        if key in self._topics:
            then = partial(self._on_route, key)
            self._turns.put(namesrv, questions.route(key[1]), then, reading.clusters_in)

    def _on_route(self, key: tuple[str, str], answer: Answer, found: set[str] | None) -> None:
        cluster, topic = key
        # Clients send heartbeats to all brokers that they know: those of a cluster list groups
        # whose topics are another's, behind the same nameserver.
        if not found or self._target.name or cluster in found:
            self._lines.add(
                "topic_route", cluster, answer, namesrv_addr=answer.address, topic=topic
            )
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
            self._turns.put(
                broker.address,
                questions.running_info(group, client_id),
                partial(self._on_running_info, broker, group, members, client_id),
                reading.topics_in,
                LAST,
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
            who = {"consumer_group": group, "client_id": client_id}
            self._lines.add_of(broker, "consumer_running_info", answer, **who)
            unanswered[client_id] = self._snapshot_time
        if answer.is_ok:
            del unanswered[client_id]
        elif answer.code != NO_ANSWER and not self._turns.has_too_many_silent(broker.address):
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


def _digest(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()[:8]


_NO_ROUTE = _digest(b"")
