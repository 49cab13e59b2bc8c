"""Facts about a member of a group, by its heartbeats, running infos and log lines.

A broker's list (ConsumerConnection) has the connections, but its subscription table is the
group's: the last heartbeat of any member overwrites it, so that in a mixed group it flips. What a
member subscribes to is therefore what it reported last itself: in a full heartbeat over that
connection, as long as heartbeats over it are heard; else in its running info or in a heartbeat to
another broker, whichever is later (a collector may hear one broker alone, or stop to hear it). The
group's table counts for a member that reported nothing at all. The row has the source.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from rebalance_core.state import GROUP_TABLE
from rebalance_core.strategy_factory import NEARBY

from ..declared.contents import HEARD_SECONDS, MEMBER_FACTS, chooses_queues
from ..declared.dossier import Broker
from ..declared.instants import SECOND, Instant
from ..dumps.statement import (
    Connection,
    Connections,
    HeartbeatOfGroup,
    LineSource,
    LogLine,
    RunningInfo,
    Subscriptions,
)
from ..schemas import CLIENT_LOG, RUNNING_INFO
from .group_tables import Doubt, ShownFacts

Value = TypeVar("Value")

#: Later than every moment.
NEVER: Instant = 1 << 62


class ValueHistory(Generic[Value]):
    """The values of one thing in time. Values are added in the order of time.

    Only changes are kept, so that a client that repeats itself all day costs nothing.

    >>> strategy = ValueHistory[str]()
    >>> strategy.add(10, "AVG"), strategy.add(20, "AVG"), strategy.add(30, "CONFIG")
    (None, None, None)
    >>> strategy.nearest(9), strategy.nearest(29), strategy.nearest(30)
    ('AVG', 'AVG', 'CONFIG')
    >>> strategy.next_change(10)
    30
    """

    __slots__ = ("_times", "_values")

    def __init__(self) -> None:
        self._times: list[Instant] = []
        self._values: list[Value] = []

    def add(self, time: Instant, value: Value) -> None:
        """Adds the value that holds from then on."""
        if not self._values or self._values[-1] != value:
            self._times.append(time)
            self._values.append(value)

    def nearest(self, time: Instant) -> Value | None:
        """The last value up to the time, else the first one after it; None where there is none.

        What a process is it has been since it started, and a collector may have begun to listen
        later. The later one added counts of two values of one instant.
        """
        return self._values[max(bisect_right(self._times, time) - 1, 0)] if self._values else None

    def begins(self, time: Instant) -> Instant:
        """The time from which on the nearest value was so."""
        return self._times[max(bisect_right(self._times, time) - 1, 0)]

    def next_change(self, time: Instant) -> Instant:
        """The time until which ``nearest`` stays what it is."""
        number = bisect_right(self._times, time)
        return self._times[number] if number < len(self._times) else NEVER


#: (broker name, broker id, client id, address): a connection, as long as it lives.
ConnectionKey = tuple[str | None, int | None, str, str | None]

#: The source of a subscription that the member itself reported in a heartbeat.
HEARTBEAT_SOURCE = "HEARTBEAT"


class Profile(NamedTuple):
    """The facts about a member that a running info shares with a heartbeat."""

    consume_type: str | None
    message_model: str | None
    subscriptions: Subscriptions | None


class MemberRow(NamedTuple):
    """A row of ``heartbeats`` but for its times: a connection, and what is true of its client."""

    broker_name: str
    broker_id: int
    client_id: str
    client_addr: str
    language: str | None
    version: int | None
    consume_type: str | None
    message_model: str | None
    subscriptions: Subscriptions
    subscription_source: str
    strategy: str | None
    strategy_source: str | None
    client_rebalance: bool | None
    pull_consumer: bool | None
    #: The topics to which only some members subscribe, where nothing shows which: see
    #: ``group_tables``.
    doubtful_topics: tuple[Doubt, ...] | None = None

    @property
    def chooses_queues(self) -> bool:
        """True if it takes its queues by itself: see ``contents``."""
        return chooses_queues(
            self.pull_consumer,
            self.consume_type,
            self.subscription_source,
            len(self.subscriptions),
        )

    def facts(self, *, is_expired: bool | None) -> tuple[Any, ...]:
        """The values of ``contents.MEMBER_FACTS``."""
        return tuple(
            is_expired if fact.name == "is_expired" else getattr(self, fact.name)
            for fact in MEMBER_FACTS
        )


class ConnectionHistory:
    """The reports about the group in the heartbeats over one connection."""

    __slots__ = ("full", "heartbeats")

    def __init__(self) -> None:
        #: The times of the heartbeats, ascending.
        self.heartbeats = array("q")
        #: Heartbeats with subscriptions, see ``HeartbeatOfGroup.is_full``.
        self.full = ValueHistory[HeartbeatOfGroup]()

    def heard(self, time: Instant) -> tuple[Instant, Instant]:
        """The times of the last heartbeat by then, else of the first one; and of the next, or
        NEVER.
        """
        number = bisect_right(self.heartbeats, time)
        after = self.heartbeats[number] if number < len(self.heartbeats) else NEVER
        return self.heartbeats[max(number - 1, 0)], after


class ClientHistory:
    """The reports of a client about itself, over whichever connection."""

    __slots__ = ("client_rebalance", "heartbeat", "info", "nearby", "pull_consumer", "strategy")

    def __init__(self) -> None:
        #: Its last full heartbeat that had anything new, over any connection. Several processes
        #: of one id repeat themselves without end: a repetition over the same connection is no
        #: news.
        self.heartbeat = ValueHistory[HeartbeatOfGroup]()
        #: Its running infos.
        self.info = ValueHistory[Profile]()
        #: (name, RUNNING_INFO or CLIENT_LOG).
        self.strategy = ValueHistory[tuple[str, str]]()
        #: MACHINE_ROOM_NEARBY with what it wraps: log lines have it, running infos do not.
        self.nearby = ValueHistory[str]()
        self.client_rebalance = ValueHistory[bool]()
        self.pull_consumer = ValueHistory[bool]()

    def next_change(self, time: Instant) -> Instant:
        """The time until which all of it stays as it is: the least of all its histories."""
        histories: Iterable[ValueHistory[Any]] = (getattr(self, name) for name in self.__slots__)
        return min(history.next_change(time) for history in histories)


class Members:
    """The reports of all clients of one group. Statements are added in order of time."""

    def __init__(self) -> None:
        #: The heartbeats over each connection, and what each client reports of itself.
        self.connections: dict[ConnectionKey, ConnectionHistory] = defaultdict(ConnectionHistory)
        self.clients: dict[str, ClientHistory] = defaultdict(ClientHistory)
        #: The time at which a broker's last heartbeat of any member was collected.
        self.last_heard: dict[tuple[str | None, int | None], Instant] = {}
        #: The times of heartbeats over any connection, ascending, by (broker name, broker id,
        #: client id).
        self.heartbeats: dict[tuple[str | None, int | None, str], array[int]] = defaultdict(
            lambda: array("q")
        )

    def add_heartbeat(self, time: Instant, source: LineSource, content: HeartbeatOfGroup) -> None:
        """A heartbeat that came over a connection."""
        broker = (source.broker_name, source.broker_id)
        connection = self.connections[*broker, content.client_id, source.client_addr]
        connection.heartbeats.append(time)
        self.last_heard[broker] = time
        self.heartbeats[*broker, content.client_id].append(time)
        if content.is_full and connection.full.nearest(time) != content:
            connection.full.add(time, content)
            self.clients[content.client_id].heartbeat.add(time, content)

    def add_running_info(self, time: Instant, client_id: str, info: RunningInfo) -> None:
        """An answer to getConsumerRunningInfo."""
        client = self.clients[client_id]
        client.info.add(time, Profile(info.consume_type, info.message_model, info.subscriptions))
        if info.client_rebalance is not None:
            client.client_rebalance.add(time, info.client_rebalance)
        if info.pull_consumer is not None:
            client.pull_consumer.add(time, info.pull_consumer)
        if info.strategy is not None:
            _add_strategy(client, time, info.strategy, RUNNING_INFO)

    def add_log_line(self, time: Instant, line: LogLine) -> None:
        """A rebalance line of a client's log."""
        client = self.clients[line.client_id]
        if line.by_broker:
            client.client_rebalance.add(time, False)
        _add_strategy(client, time, line.strategy, CLIENT_LOG)


def _add_strategy(client: ClientHistory, time: Instant, strategy: str, source: str) -> None:
    client.strategy.add(time, (strategy, source))
    if strategy.startswith(f"{NEARBY}-"):
        client.nearby.add(time, strategy)


#: A report of a client about itself, with its source and the time from which on it was so.
_Report: TypeAlias = tuple[HeartbeatOfGroup | Profile, str, Instant]


def _last_reports(
    time: Instant, connection: ConnectionHistory, client: ClientHistory
) -> tuple[list[_Report], Instant]:
    """The reports of a client over a connection and elsewhere, those that count first; until when.

    What comes over the connection counts while it is heard: several processes may have one id, and
    each has its own connections. Once it is heard no more, what the client reported last counts,
    wherever; what it reports first counts for the time before.
    """
    reports: list[_Report] = []
    ends = min(connection.full.next_change(time), client.next_change(time))
    if (heartbeat := connection.full.nearest(time)) is not None:
        before, after = connection.heard(time)
        reports.append((heartbeat, HEARTBEAT_SOURCE, before))
    if (info := client.info.nearest(time)) is not None:
        reports.append((info, RUNNING_INFO, client.info.begins(time)))
    if (latest := client.heartbeat.nearest(time)) is not None:
        reports.append((latest, HEARTBEAT_SOURCE, client.heartbeat.begins(time)))
    if len({content.subscriptions for content, *_ in reports}) < 2:
        return reports, ends

    def in_order(report: _Report) -> tuple[bool, bool, Instant]:
        content, _, begins = report
        return content.subscriptions is None, begins > time, abs(time - begins)

    last = min(reports, key=in_order)[0].subscriptions
    if heartbeat is not None and heartbeat.subscriptions != last:
        reach = HEARD_SECONDS * SECOND
        nearest = min(before, after, key=lambda heard: abs(heard - time))
        if abs(time - nearest) <= reach:
            return reports, min(ends, nearest + reach + 1)
        ends = min(ends, after - reach)
    # The first witness of equal contents counts, so that a repetition does not change the row.
    return sorted(reports, key=lambda report: report[0].subscriptions != last), ends


def member_at(
    time: Instant,
    broker: Broker,
    connection: Connection,
    answer: Connections,
    members: Members,
    shown: ShownFacts,
) -> tuple[MemberRow, Instant]:
    """The facts about a connection of a broker's list at the time of a poll, and their end.

    ``shown`` is what the group's tables show then. Where they had to serve (GROUP_TABLE) it holds
    only while they show the same.
    """
    client_id, client_addr, *_ = connection
    client, heard = members.clients[client_id], members.connections[*broker, client_id, client_addr]
    reports, ends = _last_reports(time, heard, client)
    subscribed = (
        (content.subscriptions, source)
        for content, source, _ in reports
        if content.subscriptions is not None
    )
    group_table = shown.subscriptions, GROUP_TABLE
    subscriptions, subscription_source = next(subscribed, group_table)
    strategy, strategy_source = client.strategy.nearest(time) or (None, None)
    if strategy == NEARBY:
        strategy = client.nearby.nearest(time) or NEARBY
    member = MemberRow(
        *(*broker, *connection),
        _first(*[content.consume_type for content, *_ in reports], answer.consume_type),
        _first(*[content.message_model for content, *_ in reports], answer.message_model),
        subscriptions,
        subscription_source,
        strategy,
        strategy_source,
        client.client_rebalance.nearest(time),
        client.pull_consumer.nearest(time),
        (shown.doubtful_topics or None) if subscription_source == GROUP_TABLE else None,
    )
    return member, ends


def _first(*values: str | None) -> str | None:
    return next((value for value in values if value is not None), None)
