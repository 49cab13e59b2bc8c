"""Statements: the typed meaning of a dump's lines, in which ``dumps`` and ``snapshots`` meet.

A statement is what a witness (a broker, a nameserver, a client) reported of a subject at
``collected_at``. Times are whole microseconds since 1970 UTC. All of it is made of plain tuples,
texts, numbers and None, and travels from the task that reads a line to that of its group.
"""

import re
from typing import NamedTuple, TypeAlias

HEARTBEAT = "heartbeat"
CONSUMER_CONNECTION = "consumer_connection"
TOPIC_ROUTE = "topic_route"
CONSUMER_RUNNING_INFO = "consumer_running_info"
CONSUME_STATS = "consume_stats"
TOPIC_STATS = "topic_stats"
MESSAGE_REQUEST_MODE = "message_request_mode"
SUBSCRIPTION_GROUP = "subscription_group"
CLIENT_LOG = "client_log"
#: The kinds that make statements.
KINDS = (
    *(HEARTBEAT, CONSUMER_CONNECTION, TOPIC_ROUTE, CONSUMER_RUNNING_INFO),
    *(CONSUME_STATS, MESSAGE_REQUEST_MODE, SUBSCRIPTION_GROUP, CLIENT_LOG, TOPIC_STATS),
)
#: The word of a collector on what it left out: a statement of no group or topic, which is counted
#: where it is read.
LEFT_OUT = "left_out"
#: The brokers that a nameserver knows: what it has in several clusters is counted, too.
CLUSTER_INFO = "cluster_info"
#: The topics of which a broker has offsets: the collector asks by them. Understood too, but no
#: statement, for no rule asks for them.
CONSUMER_TOPICS = "consumer_topics"

#: (topic, expression type, expression), as ``contents.SUBSCRIPTION_FIELDS``; a member's are sorted
#: and each there once.
Subscription: TypeAlias = tuple[str, str, str]
Subscriptions: TypeAlias = tuple[Subscription, ...]


class HeartbeatOfGroup(NamedTuple):
    """The part of a heartbeat about one consumer group (HeartbeatData.consumerDataSet).

    ``is_full``: it has the subscriptions. Heartbeat V2 leaves them out of most heartbeats: an
    empty set with ``withoutSub`` has no meaning, without it the member subscribes to nothing.
    """

    client_id: str
    is_full: bool
    consume_type: str | None
    message_model: str | None
    subscriptions: Subscriptions


class Connection(NamedTuple):
    """One connection in a broker's list of a group; the address is empty where it has none."""

    client_id: str
    client_addr: str
    language: str | None
    version: int | None


class Connections(NamedTuple):
    """A broker's list of a group (ConsumerConnection), with the group's table."""

    connections: tuple[Connection, ...]
    consume_type: str | None
    message_model: str | None
    #: The place where the members begin without a committed offset.
    consume_from_where: str | None
    subscriptions: Subscriptions


class RouteEntry(NamedTuple):
    """One broker of a route, in the order of ``contents.ROUTE_FACTS``; ids ascend."""

    broker_name: str
    broker_ids: tuple[int, ...]
    perm: int
    read_queue_nums: int
    write_queue_nums: int
    zone_name: str | None
    #: The addresses of the ids, in their order.
    broker_addrs: tuple[str, ...] | None = None
    #: True: where there is no master, the nameserver gives a slave as id 0.
    enable_acting_master: bool | None = None


class LogicalQueue(NamedTuple):
    """A queue of a static topic as clients see it, and where it is written
    (TopicQueueMappingInfo.currIdMap).
    """

    mock_broker: str
    queue_id: int
    broker_name: str
    physical_id: int


class Route(NamedTuple):
    """A topic's route as clients read it: static topics have their logical queues.

    ``logical``: these, each with the epoch of its mapping; of two the higher one counts.
    """

    brokers: tuple[RouteEntry, ...]
    logical: tuple[tuple[LogicalQueue, int], ...] = ()


#: The first round that has each logical queue of a topic with this mapping and epoch.
FirstMapped: TypeAlias = dict[tuple[LogicalQueue, int], int]


class InfoQueue(NamedTuple):
    """A queue that a process holds (``mqTable``), from its ``ProcessQueueInfo``."""

    topic: str | None
    broker_name: str | None
    queue_id: int | None
    dropped: bool
    last_pull_at: int | None
    last_consume_at: int | None = None
    #: Messages that the process has pulled and not consumed, those at its listener among them.
    cached_messages: int | None = None
    #: The broker gave it the queue's lock; only who consumes in order asks for one.
    locked: bool | None = None
    #: The offset of the first of these messages.
    first_cached: int | None = None
    #: The time at which the broker gave it the lock last.
    locked_at: int | None = None
    #: The offset of the last of these messages.
    last_cached: int | None = None
    #: The offset up to which the process itself has consumed.
    commit_offset: int | None = None


class RunningInfo(NamedTuple):
    """The report of a client process about itself (ConsumerRunningInfo)."""

    start_timestamp: int | None
    strategy: str | None
    message_model: str | None
    consume_type: str | None
    pull_consumer: bool | None
    consume_orderly: bool | None
    client_rebalance: bool | None
    subscriptions: Subscriptions | None
    queues: tuple[InfoQueue, ...] | None
    client_version: str | None = None


class Offset(NamedTuple):
    """The offsets of one queue (ConsumeStats.offsetTable).

    ``given_per_1000_seconds``: of all queues of the answer together (ConsumeStats.consumeTps).
    """

    topic: str
    broker_name: str
    queue_id: int
    broker_offset: int
    consumer_offset: int
    last_timestamp: int | None
    given_per_1000_seconds: int | None = None


class Stats(NamedTuple):
    """The offsets up to which a group has consumed (ConsumeStats), or its dead letters are written
    (TopicStatsTable).
    """

    offsets: tuple[Offset, ...]


class RequestMode(NamedTuple):
    """The request mode of a group on a topic (MessageRequestModeSerializeWrapper).

    ``mode``: PULL, each queue has one client, or POP, many clients share a queue.
    """

    topic: str
    mode: str


class GroupFlags(NamedTuple):
    """The flags by which a broker's configuration restricts a group (SubscriptionGroupConfig).

    ``consume_enable``: false: the broker refuses every pull (``PullMessageProcessor`` 4.9.4). A
    group for which it is true, as it is by default, makes no statement.
    """

    consume_enable: bool


#: The names of groups, sorted: a set of so many names takes ten times as much.
GroupNames: TypeAlias = tuple[str, ...]


class ConfiguredGroups(NamedTuple):
    """The groups of which a broker has a configuration (SubscriptionGroupWrapper)."""

    groups: GroupNames


#: The answers of masters, by cluster and by the groups of which they have a configuration: of each,
#: by master and round, the time.
Configured: TypeAlias = dict[tuple[str, GroupNames], dict[tuple[str, int], int]]


class LeftOut(NamedTuple):
    """One thing that a collector left out of a round, in its words, and the number of them."""

    what: str
    number: int


class SharedName(NamedTuple):
    """A broker name that a nameserver has in several clusters (ClusterInfo.clusterAddrTable)."""

    broker_name: str
    clusters: tuple[str, ...]


class LogLine(NamedTuple):
    """A rebalance line of a client's log; ``printed`` is its time as if it were UTC."""

    strategy: str
    topic: str
    client_id: str
    queue_count: int | None
    client_count: int | None
    by_broker: bool
    printed: int | None
    queues: tuple[tuple[str, str, int], ...]


Content: TypeAlias = (
    HeartbeatOfGroup
    | Connections
    | Route
    | RunningInfo
    | Stats
    | RequestMode
    | GroupFlags
    | ConfiguredGroups
    | LeftOut
    | SharedName
    | LogLine
    | None
)


class LineSource(NamedTuple):
    """The server that was asked and the one that reported; None where the kind has none.

    Its fields have the names of the tables' columns. ``error_code`` and ``error_message`` are the
    error that came in place of a content: the envelope's, or what the dashboard's status has; a
    code of 0 is none.
    """

    broker_name: str | None = None
    broker_id: int | None = None
    broker_addr: str | None = None
    client_id: str | None = None
    client_addr: str | None = None
    namesrv_addr: str | None = None
    process: str | None = None
    error_code: int | None = None
    error_message: str | None = None

    def says(self, code: int, words: str) -> bool:
        """True if it answered with this error; the dashboard has a code within its message alone.

        >>> LineSource(error_code=-1, error_message="CODE: 17").says(17, "No topic route info")
        True
        """
        found = re.search(rf"CODE: *{code}\b|{words}", self.error_message or "", re.ASCII)
        return self.error_code == code or found is not None


class Statement(NamedTuple):
    """One thing that a witness reported.

    ``subject``: the topic of a route, the consumer group of all else. A heartbeat makes a statement
    for each of its groups. ``content`` is None where an error came in its place. ``order``: of two
    statements collected at the same time the higher one came later.
    """

    kind: str
    cluster: str
    subject: str
    snapshot_time: int | None
    collected_at: int
    order: int
    source: LineSource
    content: Content


#: (cluster, process or else client id): a log of a client.
Log: TypeAlias = tuple[str, str]


def log_of(statement: Statement, line: LogLine) -> Log:
    """The log that a line is of: that of its process, where the collector names one."""
    return statement.cluster, statement.source.process or line.client_id
