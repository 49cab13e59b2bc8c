"""One round: what is asked of whom, and what follows from an answer.

Nothing waits for what it does not need. A nameserver's brokers are asked as soon as it has given
them, a group at all brokers as soon as one has named it, a topic's route as soon as a list has
named the topic: one server that hangs costs the round one time-out, whichever it is.

    nameserver: brokers (106) -> each broker: groups (201), request modes (402)
    each group on each broker: members (203) -> topics: routes (105) from every nameserver
    each group on each master: offsets (208), dead letters (202), topics (343) -> routes
    then, of the members that may be asked: running infos (307) -> routes

Each answer is one line of the dump, failed or not: a line that is missing is not evidence.

A running info is asked of a client while it works, which can stop it (docs/collect): a Java client
of 5.2.0 and later with one processor waits for itself, up to 5 s for each queue of which it has no
offset yet, and so nobody is asked whose queues may be new. Who is asked when is decided when all
lists and routes of the round are there: ``memory.GroupMemory.may_ask``, ``asked_clients``. A client
is asked one question at a time, whatever the number of its groups and brokers.

No server is trusted. What it names is bounded (``turns.Shares``, ``names.py``), what it sends is
read for a part of the round's time, and the round ends when its time is over; what is left out of
it is a line, too.
"""

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from rebalance_core.errors import near_names, nearest

from ..declared.instants import SECOND, Instant
from ..errors import AuditError, SettingsError
from . import questions
from .client import CLIENT_SILENT, NO_ANSWER, NOT_REACHED, OK, Answer, RemotingClient
from .collect_options import OFFSETS, REQUEST_MODES, ROUTES, RUNNING_INFOS
from .frames import ACCESS_KEY, SECRET_KEY
from .lines import RoundLines, Write
from .memory import GroupMembers, ListedBroker, Memory, retain
from .names import AnsweredNames, BrokerList, GroupList
from .questions import EARLY, LATER, Request, RequestCode
from .turns import NOT_SUPPORTED, Shares, Then, Turns

#: The most troubles of a round that are shown; the metrics count all.
MOST_TROUBLES = 5
#: The most unwanted names that are kept, for the error about a name that is not there.
_MOST_OTHERS = 1_000

#: A broker that lists nobody of the group.
_NOT_ONLINE = 206


class _Asking(NamedTuple):
    """A member that is asked at one of the brokers, or at each; the last one comes first."""

    members: GroupMembers
    brokers: deque[ListedBroker]
    asks_all: bool


class CollectError(AuditError):
    """A round brought nothing, or could not be written."""


class StoppedError(CollectError):
    """SIGTERM came in the midst of a single round, of which nothing was kept."""


class NoSuchGroupError(SettingsError):
    """All brokers answered, and none knows any of the groups that were named."""


#: A group in its cluster.
_AskedGroup = tuple[str, str]


class Round:
    """One round; ``run`` once."""

    def __init__(
        self, client: RemotingClient, memory: Memory, snapshot_time: Instant, write: Write
    ) -> None:
        self._client, self._memory = client, memory
        self._options, self._target = options, target = client.options, client.cluster
        self._snapshot_time = snapshot_time
        self._namesrvs_left = len(target.namesrv)
        self._brokers: dict[str, ListedBroker] = {}
        self._taken: set[tuple[str, str, int]] = set()
        self._too_many: set[ListedBroker] = set()
        self._groups: Shares[_AskedGroup] = Shares(options.most_groups)
        self._topics: Shares[tuple[str, str]] = Shares(options.most_topics)
        self._ids: Shares[tuple[str, str, str]] = Shares(options.most_members)
        self._members: dict[_AskedGroup, GroupMembers] = {}
        #: The groups of each topic in its cluster; and the topics whose route is not what it was,
        #: with when that was seen.
        self._groups_of: defaultdict[tuple[str, str], set[_AskedGroup]] = defaultdict(set)
        self._rerouted: dict[tuple[str, str], Instant] = {}
        #: The nameservers that are none.
        self._no_namesrvs: list[str] = []
        #: True if any broker has said of a group who its members are, or that it has none.
        self._has_lists = self._has_asked_groups = False
        self._known: set[str] = set()
        #: Names that are there and not wanted, for whoever wrote a name that is not.
        self._other_clusters: set[str] = set()
        self._other_topics: set[str] = set()
        self._is_doubtful = False
        #: The number of running infos that are not asked for yet.
        self.waiting = 0
        # One thread: each has its own room that it does not give back.
        self._worker = ThreadPoolExecutor(1)
        self._lines = RoundLines(snapshot_time, write, client, self._brokers, self._worker)
        self._turns = Turns(client, memory, self._lines)

    async def run(self) -> None:
        """Asks everything; whatever fails is a line. Raises what ``write`` raises."""
        self._client.forget()
        self._memory.forget(self._snapshot_time)
        for key, known in self._memory.groups.items():
            self._add_group(key, known.giver)
        with self._worker:
            await self._turns.run(self._begin, self._ask_members)
            for name, number in (
                ("brokers", len(self._too_many)),
                ("groups", self._groups.left_out),
                ("topics", self._topics.left_out),
                ("members", self._ids.left_out),
            ):
                self._lines.leave_out("", f"{name} (most_{name})", number)
            self._lines.end(self._target.name)
            await self._lines.flush()
        self._keep()

    def _begin(self) -> None:
        for namesrv in self._target.namesrv:
            put = partial(self._put_route, namesrv)
            self._turns.put_each(namesrv, EARLY, self._topics.walk(), put)
            self._turns.put(namesrv, questions.brokers(), self._on_brokers)
        # Topics with a route come first: others may be made up.
        routed = {key[:2] for key, digest in self._memory.routes.items() if digest != _NO_ROUTE}
        remembered = sorted(self._memory.topics.items(), key=lambda each: each[0] not in routed)
        for (cluster, topic), seen_at in remembered:
            self._add_topics((cluster, ""), AnsweredNames([topic]), "", seen_at)

    def check(self) -> None:
        """CollectError where it has no list of a group, and can have none; SettingsError where
        nothing is there of what was named.
        """
        others, groups = self.unknown()
        if others or (groups and len(groups) == len(set(self._target.groups))):
            # A nameserver that is silent may know other brokers.
            is_sure = not others and not self._client.given_up
            raise (NoSuchGroupError if is_sure else SettingsError)("; ".join([*others, *groups]))
        # A broker that refuses to answer about groups has no line about one.
        if self._has_asked_groups and (self._has_lists or not self._lines.refusing):
            return
        namesrvs = set(self._target.namesrv) - set(self._no_namesrvs)
        if not namesrvs:
            raise SettingsError(_no_namesrv(self._no_namesrvs))
        if namesrvs <= self._client.given_up.keys():
            raise CollectError(
                f"no nameserver answers: {'; '.join(self.troubles())}; check the "
                "address and the network: mqadmin clusterList -n HOST:PORT asks as this does"
            )
        troubles = "; ".join(self.troubles()[:MOST_TROUBLES])
        if self._lines.refusing:
            raise CollectError(troubles)
        raise CollectError(
            "nothing to collect: no broker names a group that is wanted"
            + (f" ({troubles})" if troubles else "")
        )

    def troubles(self) -> tuple[str, ...]:
        """The troubles of the round, a sentence each; first those of whole servers."""
        refusing, given_up = self._lines.refusing.values(), self._client.given_up.items()
        return (
            *([_WITHOUT_ACCOUNT.format(first=next(iter(refusing)))] if refusing else []),
            *([_no_namesrv(self._no_namesrvs)] if self._no_namesrvs else []),
            *(reason.replace(at, self._lines.name_of(at), 1) for at, reason in given_up),
            *self._lines.troubles,
        )

    def unknown(self) -> tuple[list[str], list[str]]:
        """The names that were given in vain, a sentence each, with those that may have been meant:
        a cluster and topics, and groups. None where a server did not answer, for it may know them.
        """
        target, others = self._target, []
        if self._other_clusters and not self._brokers:
            there = near_names(target.clusters, self._other_clusters)
            what = f"no such cluster: nameservers know none that is {target.clusters}"
            others.append(f"{what}; {there}")
        if self._other_topics and not self._topics and not self._is_doubtful:
            there = near_names(target.topics, self._other_topics)
            others.append(f"no such topic: no group has one that is {target.topics}; {there}")
        not_known = []
        if self._has_lists and not self._is_doubtful:
            for group in sorted(set(target.named_groups) - self._known):
                near = nearest(group, self._known)
                meant = f"; did you mean {' or '.join(near)}?" if near else ""
                not_known.append(f"no such group: no broker knows {group}{meant}")
        return others, not_known

    # What follows from an answer

    def _on_brokers(self, answer: Answer, found: BrokerList | None) -> None:
        self._namesrvs_left -= 1
        if answer.code == NOT_SUPPORTED:
            self._no_namesrvs.append(answer.address)
        found = found or BrokerList([])
        what = "addresses of a broker name that has too many"
        self._lines.leave_out(answer.address, what, found.left_out)
        name = self._target.name
        given = []
        for broker in found.brokers:
            if re.fullmatch(self._target.clusters, broker.cluster):
                given.append(broker._replace(cluster=name or broker.cluster))
            elif len(self._other_clusters) < _MOST_OTHERS:
                self._other_clusters.add(broker.cluster)
        if given:
            self._memory.replace_brokers(given, self._snapshot_time)
        for cluster in sorted({broker.cluster for broker in given}) or [name] * bool(name):
            self._lines.add(questions.brokers(), cluster, answer, namesrv_addr=answer.address)
        if given or not self._namesrvs_left:
            # Brokers that a nameserver has lost stay in the round; and all, where none answers.
            # Brokers that have answered before come first, for one that is silent takes a place.
            known, answered = self._memory.brokers, self._memory.answered
            for broker in sorted(known, key=lambda each: each.address not in answered):
                self._add_broker(broker)

    def _add_broker(self, broker: ListedBroker) -> None:
        # An address belongs to one broker, in one cluster.
        if broker.address in self._brokers or broker[:3] in self._taken:
            return
        if len(self._brokers) >= self._options.most_brokers:
            self._too_many.add(broker)
            self._memory.brokers.pop(broker, None)
            return
        self._brokers[broker.address] = broker
        self._taken.add(broker[:3])

        def put_members(key: _AskedGroup) -> None:
            self._ask(broker, questions.members(key[1]), partial(self._on_members, broker, key))

        turns, walk = self._turns, self._groups.walk
        turns.put_each(broker.address, EARLY, walk(broker.cluster), put_members)
        if broker.is_master:
            put_rest = partial(self._put_rest, broker)
            turns.put_each(broker.address, LATER, walk(broker.cluster), put_rest)
            self._ask(broker, questions.groups(), partial(self._on_groups, broker))
            if REQUEST_MODES not in self._target.without:
                self._ask(broker, questions.request_modes())
        for group in self._target.named_groups:
            self._add_group((broker.cluster, group), "")
        # Groups that are named anew wake the others, too.
        turns.wake([broker.address])

    def _ask(
        self, broker: ListedBroker, question: Request, then: Then | None = None, begins: Instant = 0
    ) -> None:
        on_answer = partial(self._on_answer, broker, question, then)
        self._turns.put(broker.address, question, on_answer, begins)

    def _on_answer(
        self, broker: ListedBroker, question: Request, then: Then | None, answer: Answer, found: Any
    ) -> None:
        """Adds the line of what a broker answers, and the topics that it names of a group."""
        if question.code != RequestCode.GET_CONSUMER_RUNNING_INFO or answer.code != NOT_REACHED:
            # Else nobody asked the client: a line about it would be wrong.
            cluster, name, broker_id, address, _ = broker
            server = {"broker_name": name, "broker_id": broker_id, "broker_addr": address}
            self._lines.add(question, cluster, answer, **server)
        group = question.who.get("consumer_group")
        if group is not None and isinstance(found, AnsweredNames):
            self._add_topics((broker.cluster, group), found, broker.address)
        if then is not None:
            then(answer, found)

    def _on_groups(self, broker: ListedBroker, answer: Answer, found: AnsweredNames | None) -> None:
        self._is_doubtful |= not answer.is_ok
        found = found or AnsweredNames([])
        self._lines.leave_out(broker.address, "groups with names that are too long", found.too_long)
        for group in self._groups.within(found.names):
            key = broker.cluster, group
            if len(self._known) < self._options.most_groups:
                self._known.add(group)
            if self._add_group(key, broker.address):
                memory = self._memory.group(*key)
                memory.seen_at, memory.giver = self._snapshot_time, memory.giver or broker.address
        cluster_brokers = (other for other in self._brokers.values() if other[0] == broker[0])
        self._turns.wake(other.address for other in cluster_brokers)

    def _add_group(self, key: _AskedGroup, giver: str) -> bool:
        """Takes the group in, to be asked of all brokers of its cluster; whether it is taken."""
        cluster, group = key
        return self._target.takes_group(group) and self._groups.add(key, (cluster, giver))

    def _members_of(self, key: _AskedGroup) -> GroupMembers:
        if key not in self._members:
            memory = self._memory.group(*key)
            if key[1] in self._target.named_groups:
                memory.seen_at = self._snapshot_time
            refresh, before = self._options.running_infos_seconds * SECOND, memory.refreshed_at
            is_due = before is None or self._snapshot_time - before >= refresh
            self._members[key] = GroupMembers(key[1], memory, is_due)
        return self._members[key]

    def _put_rest(self, broker: ListedBroker, key: _AskedGroup) -> None:
        is_due = self._members_of(key).is_due
        if OFFSETS not in self._target.without:
            self._put_offsets(broker, key)
            if is_due:
                self._ask(broker, questions.dead_letters(key[1]))
        if is_due:
            self._ask(broker, questions.topics_of(key[1]))

    def _put_offsets(self, broker: ListedBroker, key: _AskedGroup) -> None:
        self._ask(broker, questions.offsets(key[1]), partial(self._on_offsets, broker, key))

    def _on_members(
        self, broker: ListedBroker, key: _AskedGroup, answer: Answer, found: GroupList | None
    ) -> None:
        cluster, group = key
        self._has_asked_groups = True
        self._is_doubtful |= answer.code not in (OK, _NOT_ONLINE)
        if answer.code not in (OK, _NOT_ONLINE) or found is None or key not in self._groups:
            return
        self._has_lists = True
        self._add_topics(key, found.topics, broker.address)
        members = self._members_of(key)
        members.is_listed = True
        if answer.is_ok:
            self._known.add(group)
        if found.connections:
            members.memory.seen_at = self._snapshot_time
        listed = {}
        for client_id in self._ids.within([*found.connections]):
            if self._ids.add((cluster, group, client_id), (cluster, broker.address)):
                listed[client_id] = connections = found.connections[client_id]
                members.brokers.setdefault(client_id, []).append(broker)
                if connections.number > 1:
                    members.twice.add(client_id)
        self._lines.leave_out(broker.address, "client ids that are too long", found.too_long)
        if members.memory.take_list(broker.place, listed, answer.collected_at):
            self._note_change(key, answer.collected_at)

    def _on_offsets(
        self, broker: ListedBroker, key: _AskedGroup, answer: Answer, found: AnsweredNames | None
    ) -> None:
        if found and found.names:
            self._known.add(key[1])
        if answer.code < OK:
            # A slave has the offsets, too.
            same_name = (other for other in self._brokers.values() if other[:2] == broker[:2])
            slave = min((other for other in same_name if other[2] > broker.broker_id), default=None)
            if slave is not None and not slave.is_master:
                self._put_offsets(slave, key)

    def _add_topics(
        self, group: _AskedGroup, found: AnsweredNames, giver: str, seen_at: Instant | None = None
    ) -> None:
        """Has the routes asked of every nameserver, in this round and in those of an hour.

        ``group`` has no name where it is not known whose topics they are.
        """
        if ROUTES in self._target.without:
            return
        cluster, name = group
        self._lines.leave_out(giver, "topics with names that are too long", found.too_long)
        for topic in self._topics.within(found.names):
            key = cluster, topic
            if not re.fullmatch(self._target.topics, topic):
                if len(self._other_topics) < _MOST_OTHERS and not topic.startswith("%"):
                    self._other_topics.add(topic)
            elif self._topics.add(key, (cluster, giver)):
                self._memory.topics[key] = seen_at or self._snapshot_time
                if name and group not in self._groups_of[key]:
                    self._groups_of[key].add(group)
                    if key in self._rerouted:
                        self._note_change(group, self._rerouted[key])
        self._turns.wake(self._target.namesrv)

    def _put_route(self, namesrv: str, key: tuple[str, str]) -> None:
        self._turns.put(namesrv, questions.route(key[1]), partial(self._on_route, key))

    def _on_route(self, key: tuple[str, str], answer: Answer, found: set[str] | None) -> None:
        cluster, topic = key
        # Clients send heartbeats to all brokers that they know: those of a cluster list groups
        # whose topics are another's, behind the same nameserver.
        if not found or self._target.name or cluster in found:
            self._lines.add(questions.route(topic), cluster, answer, namesrv_addr=answer.address)
        if answer.code < OK:
            return
        digest = _digest(answer.body)
        place = cluster, topic, answer.address
        before = self._memory.routes.get(place)
        self._memory.routes[place] = digest
        if before != digest:
            self._rerouted[key] = answer.collected_at
            for group in self._groups_of[key]:
                self._note_change(group, answer.collected_at)

    # Running infos

    def _note_change(self, group: _AskedGroup, time: Instant) -> None:
        """Has all members of the group asked once they have divided its queues anew."""
        members = self._members_of(group)
        members.memory.changed_at = max(time, members.memory.changed_at or time)
        members.has_changed = True

    def _ask_members(self) -> None:
        """Has the running infos asked that are wanted, of whom may be asked."""
        if RUNNING_INFOS in self._target.without:
            return
        now, options, asked = self._client.now(), self._options, self._client.asked_clients
        settle = options.running_infos_after_seconds * SECOND
        questions_of: defaultdict[str, list[_Asking]] = defaultdict(list)
        for members in self._members.values():
            memory = members.memory
            if members.is_due or members.has_changed:
                for client_id in members.brokers:
                    memory.wanted.setdefault(client_id, now)
            for client_id in members.brokers.keys() & memory.wanted.keys():
                if not memory.may_ask(client_id, now, settle):
                    self.waiting += 1
                elif not asked.waits(client_id, now):
                    # Where the last question had no answer another broker passes on the next one.
                    brokers = deque(sorted(members.brokers[client_id], reverse=True))
                    brokers.rotate(asked.times(client_id))
                    # Of an id that is listed twice each may ask another process.
                    asks_all = options.running_infos_of_each_broker or client_id in members.twice
                    questions_of[client_id].append(_Asking(members, brokers, asks_all))
        for client_id, askings in questions_of.items():
            askings.sort(key=lambda asking: -asking.members.memory.wanted[client_id])
            self._ask_next(client_id, askings)

    def _ask_next(self, client_id: str, askings: list[_Asking]) -> None:
        """Has the client asked the next question: of the last group, at the last broker of it."""
        while askings and not askings[-1].brokers:
            askings.pop()
        if askings:
            members, brokers, _ = askings[-1]
            broker = brokers.pop()
            then = partial(self._on_running_info, broker, client_id, askings)
            question = questions.running_info(members.group, client_id)
            self._ask(broker, question, then, members.memory.wanted.get(client_id, 0))

    def _on_running_info(
        self, broker: ListedBroker, client_id: str, askings: list[_Asking], answer: Answer, _: Any
    ) -> None:
        members, brokers, asks_all = askings[-1]
        if answer.is_ok:
            members.memory.wanted.pop(client_id, None)
            if not asks_all:
                brokers.clear()
            if not brokers:
                self._client.asked_clients.answered(client_id)
        elif answer.code in (NO_ANSWER, CLIENT_SILENT) or self._turns.has_too_many_silent(
            broker.address
        ):
            # Its other questions would wait behind this one.
            return
        # A broker may have lost the client; the next one that lists it may have not.
        self._ask_next(client_id, askings)

    def _keep(self) -> None:
        """Leaves to the next round what was asked of the members, and nothing without bounds."""
        memory, takes = self._memory, self._target.takes_group
        retain(memory.groups, lambda key, _: key in self._groups or not takes(key[1]))
        retain(memory.topics, lambda key, _: key in self._topics)
        retain(memory.routes, lambda key, _: key[:2] in memory.topics)
        for members in self._members.values():
            if members.is_listed and members.is_due:
                members.memory.refreshed_at = self._snapshot_time


_WITHOUT_ACCOUNT = (
    "refused for want of an account that may ask: {first}; "
    f"{ACCESS_KEY} and {SECRET_KEY}, or --account FILE, name one"
)


def _no_namesrv(addresses: Sequence[str]) -> str:
    return (
        f"{', '.join(addresses)}: no nameserver, for it does not know the brokers (request 106); "
        "--namesrv is not the address of a broker or of a proxy: nameservers mostly have port 9876"
    )


def _digest(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()[:8]


_NO_ROUTE = _digest(b"")
