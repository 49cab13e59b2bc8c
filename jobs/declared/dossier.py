"""A dossier: all runs of all witnesses about one group and its topics. Small: it grows with the
changes, not with the rounds.

``fold.dossiers`` makes them of what all slices of the input have of a group.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rebalance_core.state import PULL, RouteBroker

from .contents import NOT_ONLINE, PULLS, RUNNING_INFO
from .instants import SECOND, Instant

#: (name, id) of a broker; 0 is the master.
Broker: TypeAlias = tuple[str, int]


class PollRun(NamedTuple):
    """One answer of a broker about the group, with the snapshots that have it (ascending)."""

    broker: Broker
    #: The id of the list; NOT_ONLINE or NO_ANSWER where there is none; ANSWERED where the list is
    #: no evidence, or comes in another run, and this one has the times of the answers.
    answer: str
    times: tuple[Instant, ...]
    #: The times of the broker's answers, in the same order; where they were not collected, the
    #: snapshots.
    answered_at: tuple[Instant, ...]
    #: The address that was asked; None where that was not collected.
    broker_addr: str | None = None


class ListedMembers(NamedTuple):
    """The connections of a list: client ids and addresses, in the same order."""

    client_ids: tuple[str, ...]
    client_addrs: tuple[str, ...]


class ListedIds(NamedTuple):
    """The client ids that brokers list, from a snapshot on.

    ``shared``: the processes beyond the first of each id, where several share one.
    """

    first_seen: Instant
    client_ids: frozenset[str]
    shared: int = 0

    @property
    def processes(self) -> int:
        """The number of processes, as far as time shows it."""
        return len(self.client_ids) + self.shared


class RoutedAddress(NamedTuple):
    """The address of a broker in a route.

    ``may_act``: it is given as id 0 and may be a slave's, that acts for its master: the brokers
    let a slave act (``enableActingMaster``), and nobody may write. A nameserver gives the slave
    with the lowest id so (``RouteInfoManager.pickupTopicRouteData`` 5.0.0 to 5.3.3).
    """

    broker: Broker
    addr: str
    may_act: bool = False


class RouteRun(NamedTuple):
    """One route of a topic from a nameserver, with the snapshots that have it (ascending)."""

    namesrv_addr: str
    route_id: str
    brokers: tuple[RouteBroker, ...]
    times: tuple[Instant, ...]
    #: The times of the nameserver's answers, in the same order; where they were not collected, the
    #: snapshots.
    answered_at: tuple[Instant, ...]
    #: None of them where they were not collected.
    addresses: tuple[RoutedAddress, ...] = ()


class ReportedQueue(NamedTuple):
    """A queue that a client holds or computed; dropped: it is being released.

    ``activity``: what the process does not do with it, as in ``client_states.activities``.
    """

    topic: str
    broker_name: str
    queue_id: int
    dropped: bool
    activity: str | None = None


class ClientRun(NamedTuple):
    """One report of a client process about itself, the same each time."""

    source: str
    client_id: str
    process: str | None
    start_timestamp: Instant | None
    error_code: int | None
    language: str | None
    version: int | None
    message_model: str | None
    consume_type: str | None
    pull_consumer: bool | None
    consume_orderly: bool | None
    client_rebalance: bool | None
    #: The topic of a log line; a running info is about all topics.
    topic: str | None
    queue_count: int | None
    client_count: int | None
    #: The version that the client itself says it is.
    client_version: str | None
    #: The places in ``queues`` of those of which it has a lower offset than one that was committed
    #: before.
    behind: tuple[int, ...] | None
    queues: tuple[ReportedQueue, ...] | None
    #: (its snapshot, or when the line was written, when it was collected), ascending; None: the
    #: time at which the line was written cannot be found out.
    times: tuple[tuple[Instant | None, Instant], ...]

    @property
    def has_no_consumer(self) -> bool:
        """True if the client answered that it has no consumer of the group any more.

        It stays listed by the heartbeats of its other groups: where one heartbeat brought several
        groups, they share the time of the last one (``ClientManageProcessor.heartBeat``,
        ``ConsumerGroupInfo.updateChannel`` 4.9.4). A consumer gives the time of its start.
        """
        is_answer = self.source == RUNNING_INFO and self.error_code is None
        is_empty = self.queues == () and self.start_timestamp is None and self.consume_type is None
        return is_answer and is_empty


class QueueOffsets(NamedTuple):
    """The offsets of one queue, poll by poll, in time."""

    topic: str
    broker_name: str
    queue_id: int
    times: NDArray[np.int64]
    broker_offsets: NDArray[np.int64]
    consumer_offsets: NDArray[np.int64]
    #: The number of messages that the broker gave the group in 1,000 seconds, of all queues
    #: together; below 0: not known.
    given: NDArray[np.int64] = np.empty(0, np.int64)

    @property
    def waiting(self) -> NDArray[np.int64]:
        """The messages that wait for the group, by poll.

        A broker gives 0 for a queue of which the group never committed an offset
        (``AdminBrokerProcessor.getConsumeStats`` 4.9.4 to 5.3.3), and nothing shows where a client
        begins: with CONSUME_FROM_LAST_OFFSET at the end (``RebalancePushImpl.computePullFromWhere``
        5.3.3). So what lay there at the first poll waits for nobody until more comes, and that is
        not committed either. A client commits what it has consumed within 5 s.

        An offset beyond the broker's leaves nothing: the two are read one after the other, or the
        broker has lost what it had.

        >>> polls, written = np.arange(4), np.array([500, 500, 507, 509])
        >>> QueueOffsets("T", "b", 0, polls, written, np.array([0, 0, 0, 510])).waiting.tolist()
        [0, 0, 507, 0]
        >>> QueueOffsets("T", "b", 0, polls, written, np.array([490, 0, 0, 0])).waiting.tolist()
        [10, 500, 507, 509]
        """
        waiting = np.maximum(self.broker_offsets - self.consumer_offsets, 0)
        return np.where(self.is_untouched, 0, waiting)

    @property
    def unmoved(self) -> NDArray[np.bool_]:
        """True, by poll but the first, where messages wait as at the poll before, and the offset is
        the same.
        """
        waits = self.waiting > 0
        return np.asarray(waits[1:] & waits[:-1] & (np.diff(self.consumer_offsets) == 0))

    @property
    def is_untouched(self) -> NDArray[np.bool_]:
        """True, by poll, while the group has committed no offset and nothing has come since the
        first poll: see ``waiting``.
        """
        is_new = np.maximum.accumulate(self.consumer_offsets) <= 0
        return np.asarray(is_new & (self.broker_offsets <= self.broker_offsets[:1]))


class EarlierFinding(NamedTuple):
    """A finding that was open in the run before, or in the last one that audited it.

    ``kind`` is that of a queue, or the name of a fault: then ``broker_name`` is empty and
    ``queue_id`` -1.
    """

    finding_id: str
    kind: str
    topic: str
    broker_name: str
    queue_id: int
    first_seen: Instant
    last_seen: Instant
    severity: str
    causes: tuple[str, ...]
    open_since: Instant
    nights_open: int


class AddressSeen(NamedTuple):
    """An address at which a broker was given or asked, and the rounds that show it (ascending)."""

    addr: str
    rounds: Sequence[Instant]


class Namesakes(NamedTuple):
    """Several servers with one name and id, which come in turn; two addresses or more."""

    broker: Broker
    addresses: tuple[AddressSeen, ...]


class LastList(NamedTuple):
    """The last list of a group: how many members it has, and its snapshot."""

    members: int
    time: Instant


@dataclass
class Dossier:
    """All runs about one group and its topics, in one cluster."""

    cluster: str
    consumer_group: str
    polls: list[PollRun] = field(default_factory=list)
    #: The topics that some member of each list subscribes to, by list id.
    list_topics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: The connections of each list, by list id. Made when they are asked for: most groups have one
    #: list that all brokers give, and nothing to compare.
    list_members: dict[str, Callable[[], ListedMembers]] = field(default_factory=dict)
    #: The members of each list with all that is true of them (``MEMBER_FACTS``), by list id.
    list_records: dict[str, Sequence[tuple[Any, ...]]] = field(default_factory=dict)
    #: The routes of each topic, those that no member subscribes to among them.
    routes: dict[str, list[RouteRun]] = field(default_factory=dict)
    clients: list[ClientRun] = field(default_factory=list)
    #: The mode in which brokers let the group consume each topic, POP or PULL.
    request_modes: dict[str, str] = field(default_factory=dict)
    #: The snapshots, ascending, in which each broker did not let the group consume
    #: (``consumeEnable`` false). What it said in the others nobody keeps: true, or nothing.
    consume_disabled: dict[str, tuple[Instant, ...]] = field(default_factory=dict)
    #: The snapshots in which each broker answered, and had no offset of the group any more, each
    #: with where the members begin then (``ConsumeFromWhere``).
    without_offsets: dict[str, dict[Instant, str | None]] = field(default_factory=dict)
    #: The answers of each broker whether it had a configuration of the group (a subscription
    #: group), by snapshot; empty where some broker had one always, and to the end, or none was
    #: asked.
    configured: dict[str, dict[Instant, bool]] = field(default_factory=dict)
    #: The offsets of each topic.
    offsets: dict[str, list[QueueOffsets]] = field(default_factory=dict)
    #: The offsets of the group's own %DLQ%, which it does not consume.
    dead_letters: list[QueueOffsets] = field(default_factory=list)
    #: The snapshots in which a slave acted for the master of each broker name.
    acting: Mapping[str, Set[Instant]] = field(default_factory=dict)
    #: The brokers that share a name; ``polls`` has one answer of all of them in each round.
    namesakes: Sequence[Namesakes] = ()
    earlier: list[EarlierFinding] = field(default_factory=list)
    #: The last times of problems that were over in the run before, by topic and kind.
    ended: Mapping[tuple[str, str], Instant] = field(default_factory=dict)
    #: The last lists of the group's members in other clusters of the same nameservers.
    elsewhere: dict[str, "LastList"] = field(default_factory=dict)

    def lists_between(self, first_seen: Instant, last_seen: Instant) -> Sequence[str]:
        """The ids of the lists with members that brokers gave from one round to another."""
        return [
            run.answer
            for run in self.polls
            if run.answer in self.list_members
            and bisect_left(run.times, first_seen) < bisect_right(run.times, last_seen)
        ]

    @property
    def nameservers(self) -> set[str]:
        """The addresses of those that gave the routes of its topics."""
        return {run.namesrv_addr for runs in self.routes.values() for run in runs}

    @property
    def last_listed(self) -> "LastList | None":
        """The last list with a member that a broker gave; None: none ever listed a member."""
        listed = ((run.times[-1], run.answer) for run in self.polls)
        last = max((poll for poll in listed if poll[1] in self.list_members), default=None)
        return last and LastList(len(set(self.list_members[last[1]]().client_ids)), last[0])

    @property
    def is_offline(self) -> bool:
        """True if brokers answered that they know no member, after the last list."""
        offline = [run.times[-1] for run in self.polls if run.answer == NOT_ONLINE]
        last = self.last_listed
        return bool(offline) and (last is None or last.time < max(offline))

    @property
    def consumes_in_order(self) -> bool | None:
        """True if a client of the group consumes in order; None: none reports it."""
        reported = {client.consume_orderly for client in self.clients} - {None}
        return any(reported) if reported else None

    @property
    def languages(self) -> dict[str, str]:
        """The language of each client's SDK, where a list has it."""
        return {run.client_id: run.language for run in self.clients if run.language is not None}

    def request_mode(self, topic: str) -> str | None:
        """POP or PULL as the brokers report it; PULL as well where a client that leaves the
        division to the broker holds queues of the topic: with POP its table has none.
        """
        holds = any(
            queue.topic == topic and queue.queue_id >= 0
            for run in self.clients
            if run.client_rebalance is False and run.source == RUNNING_INFO
            for queue in run.queues or ()
        )
        return self.request_modes.get(topic) or (PULL if holds else None)

    @property
    def subscribed(self) -> set[str]:
        """The topics that some member subscribed to at some time."""
        return {topic for topics in self.list_topics.values() for topic in topics}

    def topics(self) -> list[str]:
        """The topics that some member subscribed to at some time, sorted; one empty text where
        there is none: a group must not disappear.

        A topic stays with its group in the snapshots in which the group has no member: that is
        when all its queues have no owner. Of a group to whose topics no list ever had a subscriber
        its offsets count: the topics in which messages wait that nobody reads, in one queue at
        least. Of members that choose their queues all do, and the topics of what they took.
        """
        subscribed = self.subscribed
        if self.polls and not subscribed:
            every = self.offsets.items()
            answers = (run for run in self.clients if run.source == RUNNING_INFO)
            choosing = [run for run in answers if run.consume_type == PULLS]
            subscribed = {topic for topic, of in every if choosing or _waits_for_a_reader(of)}
            subscribed.update(queue.topic for run in choosing for queue in run.queues or ())
        return sorted(subscribed or {""} if self.polls else subscribed)


def _waits_for_a_reader(queues: Sequence[QueueOffsets]) -> bool:
    """True if messages wait in a queue of the topic from poll to poll, and nobody reads it.

    A group that nobody needs any more has nothing waiting; of one whose members no broker lists, as
    behind a proxy, queues move, and one that does not has to wait for longer than a message takes.
    """
    moves = any(np.diff(queue.consumer_offsets).any() for queue in queues)
    return max(map(_longest_wait, queues), default=0) >= (_TAKES_ITS_TIME if moves else 1)


#: The default time after which something lasts.
_TAKES_ITS_TIME: Instant = 180 * SECOND


def _longest_wait(queue: QueueOffsets) -> Instant:
    """The longest time in which messages waited and the offset stayed the same; it may be over."""
    ends, last = np.flatnonzero(~queue.unmoved), len(queue.times) - 1
    return int((queue.times[np.append(ends, last)] - queue.times[np.append(0, ends + 1)]).max())
