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
from typing import Any, NamedTuple

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
from .value_history import NEVER, ValueHistory

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

    def heard_before(self, time: Instant) -> Instant:
        """The time of the last heartbeat by then, else of the first one."""
        return self.heartbeats[max(bisect_right(self.heartbeats, time) - 1, 0)]

    def heard_after(self, time: Instant) -> Instant:
        """The time of the next heartbeat, or NEVER."""
        number = bisect_right(self.heartbeats, time)
        return self.heartbeats[number] if number < len(self.heartbeats) else NEVER

    def heard_nearest(self, time: Instant) -> Instant:
        """The time of the heartbeat nearest to it."""
        either = self.heard_before(time), self.heard_after(time)
        return min(either, key=lambda heard: abs(heard - time))


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
        self._connections: dict[ConnectionKey, ConnectionHistory] = defaultdict(ConnectionHistory)
        self._clients: dict[str, ClientHistory] = defaultdict(ClientHistory)
        self._heard: dict[tuple[str | None, int | None], Instant] = {}
        #: The times of heartbeats over any connection, by (broker name, broker id, client id).
        self._heartbeats: dict[tuple[str | None, int | None, str], array[int]] = defaultdict(
            lambda: array("q")
        )

    def add_heartbeat(self, time: Instant, source: LineSource, content: HeartbeatOfGroup) -> None:
        """A heartbeat that came over a connection."""
        broker = (source.broker_name, source.broker_id)
        connection = self._connections[*broker, content.client_id, source.client_addr]
        connection.heartbeats.append(time)
        self._heard[broker] = time
        self._heartbeats[*broker, content.client_id].append(time)
        if content.is_full and connection.full.nearest(time) != content:
            connection.full.add(time, content)
            self._clients[content.client_id].heartbeat.add(time, content)

    def add_running_info(self, time: Instant, client_id: str, info: RunningInfo) -> None:
        """An answer to getConsumerRunningInfo."""
        client = self._clients[client_id]
        client.info.add(time, Profile(info.consume_type, info.message_model, info.subscriptions))
        if info.client_rebalance is not None:
            client.client_rebalance.add(time, info.client_rebalance)
        if info.pull_consumer is not None:
            client.pull_consumer.add(time, info.pull_consumer)
        if info.strategy is not None:
            _add_strategy(client, time, info.strategy, RUNNING_INFO)

    def add_log_line(self, time: Instant, line: LogLine) -> None:
        """A rebalance line of a client's log."""
        client = self._clients[line.client_id]
        if line.by_broker:
            client.client_rebalance.add(time, False)
        _add_strategy(client, time, line.strategy, CLIENT_LOG)

    def of_connection(self, broker: Broker, connection: Connection) -> ConnectionHistory:
        """The heartbeats over a connection of a broker's list."""
        key = (*broker, connection.client_id, connection.client_addr)
        return self._connections.get(key, _SILENT_CONNECTION)

    def heartbeats_of(self, broker: Broker, client_id: str) -> array[int]:
        """The times of a client's heartbeats to a broker, over any connection, ascending."""
        return self._heartbeats.get((*broker, client_id), _NO_HEARTBEATS)

    def heard_until(self, broker: Broker) -> Instant | None:
        """The time at which a broker's last heartbeat of any member was collected."""
        return self._heard.get(broker)

    def of_client(self, client_id: str) -> ClientHistory:
        """The reports of a client about itself."""
        return self._clients.get(client_id, _SILENT_CLIENT)


_NO_HEARTBEATS: array[int] = array("q")
_SILENT_CONNECTION = ConnectionHistory()
_SILENT_CLIENT = ClientHistory()


def _add_strategy(client: ClientHistory, time: Instant, strategy: str, source: str) -> None:
    client.strategy.add(time, (strategy, source))
    if strategy.startswith(f"{NEARBY}-"):
        client.nearby.add(time, strategy)


class _Report(NamedTuple):
    """A report of a client about itself, with its source and beginning."""

    since: Instant
    source: str
    content: HeartbeatOfGroup | Profile


def _last_reports(
    time: Instant, connection: ConnectionHistory, client: ClientHistory
) -> tuple[list[_Report], Instant]:
    """The reports of a client over a connection and elsewhere, those that count first; until when.

    What comes over the connection counts while it is heard: several processes may have one id, and
    each has its own connections. Once it is heard no more, what the client reported last counts,
    wherever; what it reports first counts for the time before.
    """
    histories: tuple[tuple[str, ValueHistory[Any]], ...] = (
        (HEARTBEAT_SOURCE, connection.full),
        (RUNNING_INFO, client.info),
        (HEARTBEAT_SOURCE, client.heartbeat),
    )
    reports = []
    for source, history in histories:
        found = history.nearest_since(time)
        if found is not None:
            since = connection.heard_before(time) if history is connection.full else found[0]
            reports.append(_Report(since, source, found[1]))
    until = min(connection.full.next_change(time), client.next_change(time))
    if len({report.content.subscriptions for report in reports}) < 2:
        return reports, until

    def in_order(report: _Report) -> tuple[bool, bool, Instant]:
        return report.content.subscriptions is None, report.since > time, abs(time - report.since)

    last = min(reports, key=in_order).content.subscriptions
    heartbeat = connection.full.nearest(time)
    if heartbeat is not None and heartbeat.subscriptions != last:
        heard, reach = connection.heard_nearest(time), HEARD_SECONDS * SECOND
        if abs(time - heard) <= reach:
            return reports, min(until, heard + reach + 1)
        until = min(until, connection.heard_after(time) - reach)
    # The first witness of equal contents counts, so that a repetition does not change the row.
    return sorted(reports, key=lambda report: report.content.subscriptions != last), until


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
    client = members.of_client(connection.client_id)
    reports, until = _last_reports(time, members.of_connection(broker, connection), client)
    subscribed = [
        (content.subscriptions, source)
        for _, source, content in reports
        if content.subscriptions is not None
    ]
    subscriptions, subscription_source = (
        subscribed[0] if subscribed else (shown.subscriptions, GROUP_TABLE)
    )
    strategy, strategy_source = client.strategy.nearest(time) or (None, None)
    if strategy == NEARBY:
        strategy = client.nearby.nearest(time) or NEARBY
    member = MemberRow(
        *(*broker, *connection),
        _first(*[report.content.consume_type for report in reports], answer.consume_type),
        _first(*[report.content.message_model for report in reports], answer.message_model),
        subscriptions,
        subscription_source,
        strategy,
        strategy_source,
        client.client_rebalance.nearest(time),
        client.pull_consumer.nearest(time),
        None if subscribed else shown.doubtful_topics or None,
    )
    return member, until


def _first(*values: str | None) -> str | None:
    return next((value for value in values if value is not None), None)
