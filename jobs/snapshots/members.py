"""What is true of a member of a group, by its own heartbeats, running infos and log lines.

A broker's list (ConsumerConnection) has the connections, but its subscription table is the
group's: the last heartbeat of any member overwrites it, so that in a mixed group it flips. What a
member subscribes to is therefore taken from its own last full heartbeat over that connection,
else from its running info, else from its heartbeats to other brokers (a collector may hear one
broker alone), else from the group's table; the row says which.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from jobs.contents import MEMBER_FACTS
from jobs.dumps.statement import (
    Connection,
    Connections,
    HeartbeatOfGroup,
    LogLine,
    RunningInfo,
    Source,
    Subscriptions,
)
from jobs.instants import SECOND, Instant
from jobs.judge.dossier import Broker
from jobs.snapshots.clients import CLIENT_LOG_SOURCE, RUNNING_INFO_SOURCE
from jobs.snapshots.history import History

#: A member's heartbeat overwrites the group's table every 30 s, an expired member is gone after
#: 120 s: within this time every member's subscription has shown in the table.
GROUP_TABLE_SECONDS = 120

#: A running info shows the class alone, a log line also what it wraps: MACHINE_ROOM_NEARBY-AVG.
NEARBY = "MACHINE_ROOM_NEARBY"

#: (broker name, broker id, client id, address): a connection, as long as it lives.
ConnectionKey = tuple[str | None, int | None, str, str | None]

#: The source of a subscription of which no word of the client itself is there.
GROUP_TABLE = "GROUP_TABLE"


class Profile(NamedTuple):
    """What a running info says of a member, as a heartbeat does too."""

    consume_type: str | None
    message_model: str | None
    subscriptions: Subscriptions | None


class Member(NamedTuple):
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

    @property
    def chooses_queues(self) -> bool:
        """Whether it takes its queues by itself, so that no strategy gives it any.

        A ``DefaultMQPullConsumer``, whose application pulls what it likes, or one that pulls and
        itself says that it subscribes to nothing: it takes its queues by ``assign()``
        (``DefaultLitePullConsumerImpl`` 5.3.3). What the group's table says does not count: the
        last heartbeat of any member wrote it.
        """
        assigns = (
            self.consume_type == "CONSUME_ACTIVELY"
            and not self.subscriptions
            and self.subscription_source != GROUP_TABLE
        )
        return bool(self.pull_consumer) or assigns

    def facts(self, *, is_expired: bool) -> tuple[Any, ...]:
        """The values of ``contents.MEMBER_FACTS``."""
        return tuple(
            is_expired if fact.name == "is_expired" else getattr(self, fact.name)
            for fact in MEMBER_FACTS
        )


class OfConnection:
    """What the heartbeats over one connection say of the group."""

    __slots__ = ("full", "heartbeats")

    def __init__(self) -> None:
        #: When each heartbeat came, ascending.
        self.heartbeats = array("q")
        #: Those with subscriptions, see ``HeartbeatOfGroup.is_full``.
        self.full = History[HeartbeatOfGroup]()


class OfClient:
    """What a client says of itself, over whichever connection."""

    __slots__ = ("client_rebalance", "heartbeat", "info", "nearby", "pull_consumer", "strategy")

    def __init__(self) -> None:
        #: Each distinct full heartbeat, from when it first came over any connection.
        self.heartbeat = History[HeartbeatOfGroup]()
        #: Of its running infos.
        self.info = History[Profile]()
        #: (name, RUNNING_INFO or CLIENT_LOG).
        self.strategy = History[tuple[str, str]]()
        #: MACHINE_ROOM_NEARBY with what it wraps.
        self.nearby = History[str]()
        self.client_rebalance = History[bool]()
        self.pull_consumer = History[bool]()

    def next_change(self, time: Instant) -> Instant:
        """Until when all of it stays as it is at the time: the least of all its histories."""
        histories: Iterable[History[Any]] = (getattr(self, name) for name in self.__slots__)
        return min(history.next_change(time) for history in histories)


class Members:
    """What all clients of one group say of themselves. Statements are added in order of time."""

    def __init__(self) -> None:
        self._connections: dict[ConnectionKey, OfConnection] = {}
        self._clients: dict[str, OfClient] = {}
        self._heard: set[HeartbeatOfGroup] = set()

    def add_heartbeat(self, time: Instant, source: Source, content: HeartbeatOfGroup) -> None:
        """A heartbeat that came over a connection."""
        key = (source.broker_name, source.broker_id, content.client_id, source.client_addr)
        connection = self._connections.get(key)
        if connection is None:
            connection = self._connections[key] = OfConnection()
        connection.heartbeats.append(time)
        if content.is_full:
            connection.full.add(time, content)
            if content not in self._heard:
                self._heard.add(content)
                self._client(content.client_id).heartbeat.add(time, content)

    def add_running_info(self, time: Instant, client_id: str, info: RunningInfo) -> None:
        """An answer to getConsumerRunningInfo."""
        client = self._client(client_id)
        client.info.add(time, Profile(info.consume_type, info.message_model, info.subscriptions))
        if info.client_rebalance is not None:
            client.client_rebalance.add(time, info.client_rebalance)
        if info.pull_consumer is not None:
            client.pull_consumer.add(time, info.pull_consumer)
        if info.strategy is not None:
            _add_strategy(client, time, info.strategy, RUNNING_INFO_SOURCE)

    def add_log_line(self, time: Instant, line: LogLine) -> None:
        """A rebalance line of a client's log."""
        client = self._client(line.client_id)
        if line.by_broker:
            client.client_rebalance.add(time, False)
        _add_strategy(client, time, line.strategy, CLIENT_LOG_SOURCE)

    def of_connection(self, broker: Broker, connection: Connection) -> OfConnection:
        """The heartbeats over a connection of a broker's list."""
        key = (*broker, connection.client_id, connection.client_addr)
        return self._connections.get(key, _SILENT_CONNECTION)

    def of_client(self, client_id: str) -> OfClient:
        """What a client says of itself."""
        return self._clients.get(client_id, _SILENT_CLIENT)

    def _client(self, client_id: str) -> OfClient:
        client = self._clients.get(client_id)
        if client is None:
            client = self._clients[client_id] = OfClient()
        return client


_SILENT_CONNECTION = OfConnection()
_SILENT_CLIENT = OfClient()


def _add_strategy(client: OfClient, time: Instant, strategy: str, source: str) -> None:
    client.strategy.add(time, (strategy, source))
    if strategy.startswith(f"{NEARBY}-"):
        client.nearby.add(time, strategy)


class GroupTables:
    """What the subscription tables of a group showed, over all brokers' lists, in time."""

    def __init__(self, polls: Sequence[tuple[Instant, Subscriptions]]) -> None:
        """``polls``: when a table was read, ascending, and what it showed."""
        numbers: dict[Subscriptions, int] = {}
        self._times = [time for time, _ in polls]
        self._shown = [numbers.setdefault(table, len(numbers)) for _, table in polls]
        self._tables = list(numbers)
        self._unions: dict[frozenset[int], Subscriptions] = {}

    def around(self, time: Instant) -> Subscriptions:
        """All that they showed within GROUP_TABLE_SECONDS of a time.

        One reading of a table that flips does not tell who subscribes to what: a member of which
        nothing else is known counts as subscribing to all that any broker's table showed.
        """
        reach = GROUP_TABLE_SECONDS * SECOND
        first, last = (
            bisect_left(self._times, time - reach),
            bisect_right(self._times, time + reach),
        )
        shown = frozenset(self._shown[first:last])
        union = self._unions.get(shown)
        if union is None:
            union = tuple(sorted({each for number in shown for each in self._tables[number]}))
            self._unions[shown] = union
        return union


def member_at(
    time: Instant,
    broker: Broker,
    connection: Connection,
    answer: Connections,
    members: Members,
    tables: GroupTables,
) -> tuple[Member, Instant]:
    """What is true of a connection of a broker's list at the time of a poll, and until when.

    Where the group's table had to serve (GROUP_TABLE) it holds only while ``around`` is the same.
    """
    own = members.of_connection(broker, connection)
    client = members.of_client(connection.client_id)
    witnesses = (
        ("HEARTBEAT", own.full.nearest(time)),
        ("RUNNING_INFO", client.info.nearest(time)),
        ("HEARTBEAT", client.heartbeat.nearest(time)),
    )
    heard = [(name, words) for name, words in witnesses if words is not None]
    subscribed = [
        (words.subscriptions, name) for name, words in heard if words.subscriptions is not None
    ]
    subscriptions, subscription_source = (
        subscribed[0] if subscribed else (tables.around(time), GROUP_TABLE)
    )
    strategy, strategy_source = client.strategy.nearest(time) or (None, None)
    if strategy == NEARBY:
        strategy = client.nearby.nearest(time) or NEARBY
    member = Member(
        *broker,
        connection.client_id,
        connection.client_addr,
        connection.language,
        connection.version,
        _first(*[words.consume_type for _, words in heard], answer.consume_type),
        _first(*[words.message_model for _, words in heard], answer.message_model),
        subscriptions,
        subscription_source,
        strategy,
        strategy_source,
        client.client_rebalance.nearest(time),
        client.pull_consumer.nearest(time),
    )
    return member, min(own.full.next_change(time), client.next_change(time))


def _first(*values: str | None) -> str | None:
    return next((value for value in values if value is not None), None)
