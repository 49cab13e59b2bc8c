"""The tables: snapshot tables that the audit reads, report tables that it publishes.

Declared once, here; what is written is selected and cast to it. Every column says what it holds;
the comment travels with the schema. All times are UTC instants. Report tables are a public
contract: columns are added, never changed or removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import types as T


@dataclass(frozen=True)
class Table:
    """A table's name, its grain (one row per ...) and its schema."""

    name: str
    grain: str
    schema: T.StructType


def _column(name: str, type_: T.DataType, comment: str, *, nullable: bool = False) -> T.StructField:
    return T.StructField(name, type_, nullable, {"comment": comment})


def _array(element: T.DataType) -> T.ArrayType:
    return T.ArrayType(element)


def _struct(*fields: T.StructField) -> T.StructType:
    return T.StructType(list(fields))


STRING, LONG, INT, DOUBLE, BOOLEAN, TIMESTAMP = (
    T.StringType(),
    T.LongType(),
    T.IntegerType(),
    T.DoubleType(),
    T.BooleanType(),
    T.TimestampType(),
)

CLUSTER = _column("cluster", STRING, "the name that the collector gives the cluster")
SNAPSHOT_TIME = _column("snapshot_time", TIMESTAMP, "the round of polling that the row belongs to")
GROUP = _column("consumer_group", STRING, "the consumer group")
TOPIC = _column("topic", STRING, "the topic; %RETRY%group topics like any other")
BROKER_NAME = _column("broker_name", STRING, "the name of the broker's replica set")
BROKER_ID = _column("broker_id", LONG, "0 is the master, any other a slave")
QUEUE_ID = _column("queue_id", INT, "the queue's number on its broker")
FIRST_SEEN = _column("first_seen", TIMESTAMP, "the first snapshot of the run")
LAST_SEEN = _column("last_seen", TIMESTAMP, "the last snapshot of the run")
SNAPSHOTS = _column("snapshots", LONG, "the number of the group's snapshots in the run")
KNOWN_ISSUE = _column(
    "known_issue",
    STRING,
    "the reason of the known issue that it matches; null: none",
    nullable=True,
)

QUEUES = _array(
    _struct(
        T.StructField("broker_name", STRING),
        T.StructField("queue_id", INT),
    )
)
MOVES = _array(
    _struct(
        T.StructField("broker_name", STRING),
        T.StructField("queue_id", INT),
        T.StructField("before", T.ArrayType(STRING)),
        T.StructField("after", T.ArrayType(STRING)),
    )
)
SUBSCRIPTIONS = _array(
    _struct(
        T.StructField("topic", STRING),
        T.StructField("expression_type", STRING),
        T.StructField("expression", STRING),
    )
)

# ---------------------------------------------------------------- snapshot tables

HEARTBEATS = Table(
    "heartbeats",
    "cluster, snapshot_time, broker_name, broker_id, consumer_group, client_addr: "
    "one connection in one broker's list of a group",
    _struct(
        CLUSTER,
        SNAPSHOT_TIME,
        BROKER_NAME,
        BROKER_ID,
        GROUP,
        _column("client_id", STRING, "the client id, as often as the broker lists it"),
        _column("client_addr", STRING, "the connection's address, unique in one broker's list"),
        _column("language", STRING, "the client's language, as it says", nullable=True),
        _column("version", INT, "the ordinal of the client's MQVersion", nullable=True),
        _column("consume_type", STRING, "CONSUME_PASSIVELY or CONSUME_ACTIVELY", nullable=True),
        _column(
            "message_model",
            STRING,
            "CLUSTERING or BROADCASTING; null counts as CLUSTERING",
            nullable=True,
        ),
        _column("subscriptions", SUBSCRIPTIONS, "what the member subscribes to"),
        _column(
            "subscription_source",
            STRING,
            "HEARTBEAT (the last full one, its own if any), RUNNING_INFO, or GROUP_TABLE",
            nullable=True,
        ),
        _column("strategy", STRING, "the strategy's name as seen of the client", nullable=True),
        _column("strategy_source", STRING, "RUNNING_INFO or CLIENT_LOG", nullable=True),
        _column("client_rebalance", BOOLEAN, "false: the broker assigns its queues", nullable=True),
        _column("pull_consumer", BOOLEAN, "whether it is a DefaultMQPullConsumer", nullable=True),
        _column("last_heartbeat_at", TIMESTAMP, "its last heartbeat seen by then", nullable=True),
    ),
)

#: Outcomes of a poll. ANSWERED: a list came. NOT_ONLINE: the broker knows no member of the group
#: (code 206), so the list is empty, and that is known. NO_ANSWER: the list is not known.
ANSWERED = "ANSWERED"
NOT_ONLINE = "NOT_ONLINE"
NO_ANSWER = "NO_ANSWER"

BROKER_POLLS = Table(
    "broker_polls",
    "cluster, snapshot_time, broker_name, broker_id, consumer_group: one broker asked for a list",
    _struct(
        CLUSTER,
        SNAPSHOT_TIME,
        BROKER_NAME,
        BROKER_ID,
        _column("broker_addr", STRING, "the address that was asked", nullable=True),
        GROUP,
        _column("outcome", STRING, "ANSWERED, NOT_ONLINE (no member there) or NO_ANSWER"),
        _column(
            "error_code", INT, "the broker's response code; -1 without response", nullable=True
        ),
        _column("error_message", STRING, "the error in words", nullable=True),
        _column("connections", INT, "the number of connections in the list"),
    ),
)

TOPIC_ROUTES = Table(
    "topic_routes",
    "cluster, snapshot_time, namesrv_addr, topic, broker_name: one broker in one route",
    _struct(
        CLUSTER,
        SNAPSHOT_TIME,
        _column("namesrv_addr", STRING, "the nameserver that was asked"),
        TOPIC,
        _column(
            "broker_name", STRING, "null: the nameserver knows no broker for it", nullable=True
        ),
        _column(
            "broker_ids", _array(LONG), "the ids with an address; null: not known", nullable=True
        ),
        _column("perm", INT, "permission bits: READ 4, WRITE 2"),
        _column("read_queue_nums", INT, "consumers see queues 0 to this - 1"),
        _column("write_queue_nums", INT, "producers write to queues 0 to this - 1"),
        _column("zone_name", STRING, "the zone that the broker is in", nullable=True),
    ),
)

CLIENT_STATES = Table(
    "client_states",
    "one answer of a client to getConsumerRunningInfo, or one rebalance line of its log",
    _struct(
        CLUSTER,
        _column("snapshot_time", TIMESTAMP, "the round; null for log lines", nullable=True),
        _column("observed_at", TIMESTAMP, "when the answer or the line was collected"),
        _column("logged_at", TIMESTAMP, "when the client wrote the line", nullable=True),
        _column("source", STRING, "RUNNING_INFO or CLIENT_LOG"),
        GROUP,
        _column("client_id", STRING, "the client id that was asked for, or that the line names"),
        _column("broker_name", STRING, "the broker that forwarded the question", nullable=True),
        _column("broker_id", LONG, "0 is the master", nullable=True),
        _column("process", STRING, "the log's host label", nullable=True),
        _column("error_code", INT, "where the client gave no answer", nullable=True),
        _column("error_message", STRING, "the error in words", nullable=True),
        _column(
            "start_timestamp", TIMESTAMP, "when the process started its consumer", nullable=True
        ),
        _column("strategy", STRING, "the strategy's name, or its class", nullable=True),
        _column("message_model", STRING, "CLUSTERING or BROADCASTING", nullable=True),
        _column("consume_type", STRING, "CONSUME_PASSIVELY or CONSUME_ACTIVELY", nullable=True),
        _column("pull_consumer", BOOLEAN, "whether it is a DefaultMQPullConsumer", nullable=True),
        _column("consume_orderly", BOOLEAN, "whether it consumes in order", nullable=True),
        _column("client_rebalance", BOOLEAN, "false: the broker assigns its queues", nullable=True),
        _column("subscriptions", SUBSCRIPTIONS, "what it subscribes to", nullable=True),
        _column("topic", STRING, "the topic of the log line; null: all topics", nullable=True),
        _column("queue_count", INT, "the length of the queue list it used", nullable=True),
        _column("client_count", INT, "the length of the client list it used", nullable=True),
        _column(
            "queues",
            _array(
                _struct(
                    T.StructField("topic", STRING),
                    T.StructField("broker_name", STRING),
                    T.StructField("queue_id", INT),
                    T.StructField("dropped", BOOLEAN),
                    T.StructField("last_pull_at", TIMESTAMP),
                )
            ),
            "the queues that it holds (dropped: being released), or that it computed",
            nullable=True,
        ),
    ),
)

QUEUE_OFFSETS = Table(
    "queue_offsets",
    "cluster, snapshot_time, consumer_group, topic, broker_name, queue_id: one queue's offsets",
    _struct(
        CLUSTER,
        SNAPSHOT_TIME,
        GROUP,
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        _column("broker_offset", LONG, "where the next message goes"),
        _column("consumer_offset", LONG, "what the group has committed"),
        _column(
            "last_timestamp",
            TIMESTAMP,
            "the store time of the last consumed message",
            nullable=True,
        ),
    ),
)

QUARANTINE = Table(
    "quarantine",
    "file, line: one input line that was not understood, as it came",
    _struct(
        _column("file", STRING, "the file that it stands in"),
        _column("line_number", LONG, "counted from 1; 0: the file as a whole"),
        _column("reason", STRING, "what was expected and what came"),
        _column("line", STRING, "the line; bytes that are no UTF-8 are shown as U+FFFD"),
        _column(
            "line_bytes", T.BinaryType(), "the exact bytes where they are no UTF-8", nullable=True
        ),
    ),
)

SNAPSHOT_TABLES = (
    HEARTBEATS,
    BROKER_POLLS,
    TOPIC_ROUTES,
    CLIENT_STATES,
    QUEUE_OFFSETS,
    QUARANTINE,
)

# ---------------------------------------------------------------- report tables

CLAIMANTS = _array(
    _struct(
        T.StructField("client_id", STRING),
        T.StructField("processes", INT),
        T.StructField("probability", DOUBLE),
    )
)


def _queue_findings(name: str, what: str) -> Table:
    return Table(
        name,
        f"cluster, consumer_group, topic, broker_name, queue_id, first_seen: one unbroken run of "
        f"snapshots in which the queue {what}, with one certainty",
        _struct(
            CLUSTER,
            GROUP,
            TOPIC,
            BROKER_NAME,
            QUEUE_ID,
            FIRST_SEEN,
            LAST_SEEN,
            SNAPSHOTS,
            _column("persistence", STRING, "PERSISTENT, or TRANSIENT: a deploy, a restart"),
            _column("ongoing", BOOLEAN, "whether it is there in the group's last snapshot"),
            _column("certainty", STRING, "CERTAIN: under every view; POSSIBLE: the views differ"),
            _column("probability", DOUBLE, "the highest in the run; 1.0 where certain"),
            _column(
                "completeness",
                DOUBLE,
                "the lowest share of the route's brokers whose list is known",
            ),
            _column("claimants", CLAIMANTS, "who claims the queue, with which probability each"),
            _column("causes", _array(STRING), "what, mended, would clear it"),
            _column("severity", STRING, "INFO, WARNING or CRITICAL"),
            _column("status", STRING, "against the previous published run", nullable=True),
            _column(
                "strategy_source",
                STRING,
                "where the weakest-known strategy comes from",
                nullable=True,
            ),
            _column(
                "backlog",
                LONG,
                "messages not consumed at the last offsets seen in the run",
                nullable=True,
            ),
            _column("finding_id", STRING, "stable over runs: cluster, group, topic, queue, kind"),
            _column("episode_first_seen", TIMESTAMP, "since when, whatever the certainty"),
            _column("episode_last_seen", TIMESTAMP, "until when, whatever the certainty"),
            _column(
                "backlog_growth",
                LONG,
                "the backlog less that at the last offsets seen by first_seen, else the first in "
                "the run",
                nullable=True,
            ),
            _column(
                "orderly",
                BOOLEAN,
                "whether a client of the group consumes in order; null: none was asked",
                nullable=True,
            ),
            _column(
                "confirmed",
                BOOLEAN,
                "whether what the processes held shows it; null: not enough of them told",
                nullable=True,
            ),
            KNOWN_ISSUE,
        ),
    )


FORMER_FINDINGS = Table(
    "former_findings",
    "finding_id: what was open in the previous published run and is not there any more",
    _struct(
        CLUSTER,
        GROUP,
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        _column("kind", STRING, "ORPHANED or DUPLICATE"),
        _column("status", STRING, "RESOLVED, or NOT_AUDITED: nothing was known of the group"),
        FIRST_SEEN,
        _column("last_seen", TIMESTAMP, "the last snapshot of the previous run that shows it"),
        _column("severity", STRING, "in the previous run"),
        _column("causes", _array(STRING), "in the previous run"),
        _column("finding_id", STRING, "as in the tables of faulty queues"),
    ),
)

DUPLICATE_QUEUES = _queue_findings("duplicate_queues", "had several owners")
ORPHANED_QUEUES = _queue_findings("orphaned_queues", "had no owner")

STALLED_QUEUES = Table(
    "stalled_queues",
    "cluster, consumer_group, topic, broker_name, queue_id, first_seen: one unbroken run of offset "
    "polls in which the queue had an owner and messages and its consumer offset stood still, "
    "while another queue of the group and topic kept up",
    _struct(
        CLUSTER,
        GROUP,
        TOPIC,
        BROKER_NAME,
        QUEUE_ID,
        _column("first_seen", TIMESTAMP, "the first offset poll of the run"),
        _column("last_seen", TIMESTAMP, "the last offset poll of the run"),
        _column("polls", LONG, "the number of the queue's offset polls in the run, at least 2"),
        _column("persistence", STRING, "PERSISTENT or TRANSIENT"),
        _column("ongoing", BOOLEAN, "whether it is there in the last poll of group and topic"),
        _column("severity", STRING, "INFO, WARNING or CRITICAL"),
        _column("backlog", LONG, "messages not consumed at the end of the run"),
        _column("backlog_growth", LONG, "messages that came in the run, from its first poll on"),
        _column(
            "owners",
            _array(STRING),
            "the client ids that it was computed for at the run's last poll but one: who had it "
            "and did not move it; none: not known",
        ),
        KNOWN_ISSUE,
    ),
)

STACKED_CLIENT_IDS = Table(
    "stacked_client_ids",
    "cluster, consumer_group, client_id, first_seen: one unbroken run of snapshots in which "
    "the id stood more than once in a broker's list",
    _struct(
        CLUSTER,
        GROUP,
        _column("topics", _array(STRING), "the topics of the group whose queues it concerns"),
        _column("client_id", STRING, "the client id"),
        _column("id_format", STRING, "the class of its format"),
        _column("processes", INT, "how many processes the brokers' lists confirm behind it"),
        _column("client_addrs", _array(STRING), "the addresses of its connections"),
        _column("versions", _array(INT), "the client versions, as MQVersion ordinals"),
        _column("languages", _array(STRING), "the client languages"),
        FIRST_SEEN,
        LAST_SEEN,
        SNAPSHOTS,
        _column("persistence", STRING, "PERSISTENT or TRANSIENT"),
        _column("ongoing", BOOLEAN, "whether it is there in the group's last snapshot"),
        _column("verdict", STRING, "STACKED, or STALE_CHANNEL of one process that reconnected"),
        _column("evidence", STRING, "which list has it how often, and what tells the verdict"),
        _column("slots_wasted", INT, "slots of the later copies, which nobody takes"),
        _column(
            "queues_duplicated", INT, "queues of all topics that several of its processes take"
        ),
        _column("queues_orphaned", INT, "queues of all topics in the slots of its later copies"),
        _column("remedy", STRING, "what repairs it"),
        KNOWN_ISSUE,
    ),
)

GROUP_FAULTS = Table(
    "group_faults",
    "cluster, consumer_group, topic, fault, first_seen, and of FROZEN_PROCESS the client: one "
    "unbroken run of snapshots (of FROZEN_PROCESS: of offset polls) in which the fault was there",
    _struct(
        CLUSTER,
        GROUP,
        TOPIC,
        _column("fault", STRING, "the cause of findings, or what is wrong without any"),
        FIRST_SEEN,
        LAST_SEEN,
        SNAPSHOTS,
        _column("persistence", STRING, "PERSISTENT or TRANSIENT"),
        _column("ongoing", BOOLEAN, "whether it is there in the group's last snapshot"),
        _column("evidence", STRING, "what was seen, in words, in the last state that shows it"),
        _column("remedy", STRING, "what repairs it"),
        _column("client_ids", _array(STRING), "the client ids that it concerns"),
        _column("client_addrs", _array(STRING), "the addresses of their connections"),
        _column("broker_names", _array(STRING), "the brokers that it concerns"),
        _column("queues_affected", INT, "the most queues whose findings it causes at a time"),
        _column("findings_cleared", INT, "findings that go away with the repair"),
        _column("findings_left", INT, "findings that are left after the repair"),
        _column("moves", MOVES, "the queues that change hands with the repair, before and after"),
        KNOWN_ISSUE,
    ),
)

UNREADABLE_QUEUES = Table(
    "unreadable_queues",
    "cluster, consumer_group, topic, broker_name, queue_id, first_seen: a queue that is written "
    "and that no consumer can read",
    _struct(CLUSTER, GROUP, TOPIC, BROKER_NAME, QUEUE_ID, FIRST_SEEN, LAST_SEEN, SNAPSHOTS),
)

STATE_ID = _column("state_id", STRING, "the state's fingerprint, over all the members could see")

ALLOCATIONS = Table(
    "allocations",
    "state_id, client_id, strategy, view: what the processes of an id take under one view",
    _struct(
        CLUSTER,
        GROUP,
        TOPIC,
        STATE_ID,
        _column("client_id", STRING, "the client id"),
        _column("processes", INT, "how many processes stand behind it, alike in what follows"),
        _column("subscribed", BOOLEAN, "false: it takes a slot and claims nothing"),
        _column("strategy", STRING, "the strategy's name"),
        _column("strategy_source", STRING, "observed, configured, group or assumed"),
        _column("view_brokers", _array(STRING), "the brokers whose answer gives the view"),
        _column("view_weight", DOUBLE, "how likely a process draws it; 1.0 where all agree"),
        _column("view_queues", INT, "the length of the view's queue list"),
        _column("view_clients", INT, "the length of the view's client list, copies counted"),
        _column("queues", QUEUES, "the queues that each of the processes takes"),
    ),
)

STATE_RUNS = Table(
    "state_runs",
    "state_id, first_seen: one unbroken run of snapshots in which a state held",
    _struct(CLUSTER, GROUP, TOPIC, STATE_ID, FIRST_SEEN, LAST_SEEN, SNAPSHOTS),
)

REASSIGNMENTS = Table(
    "reassignments",
    "cluster, consumer_group, topic, changed_at: one change of who takes which queue",
    _struct(
        CLUSTER,
        GROUP,
        TOPIC,
        _column("changed_at", TIMESTAMP, "the first snapshot that shows it"),
        _column("seen_before", TIMESTAMP, "the last snapshot that shows what was before"),
        _column(
            "settled_at",
            TIMESTAMP,
            "the first snapshot since in which the brokers' lists agree; null: not yet",
            nullable=True,
        ),
        _column("state_id_before", STRING, "the state before; its takers are in allocations"),
        STATE_ID,
        _column("clients_joined", _array(STRING), "client ids that are new in the lists"),
        _column("clients_left", _array(STRING), "client ids that are in no list any more"),
        _column("queues_before", INT, "readable queues before"),
        _column("queues", INT, "readable queues since"),
        _column("queues_moved", INT, "queues that go to others, or to others at times"),
        _column("lists_agree", BOOLEAN, "false: while it goes on, some lists have it and some not"),
    ),
)

ALLOCATION_DRIFT = Table(
    "allocation_drift",
    "cluster, consumer_group, topic, client_id, source, start_timestamp, process, queue, drift, "
    "first_seen: one unbroken run of a process's running infos, or of its log, that shows it",
    _struct(
        CLUSTER,
        GROUP,
        TOPIC,
        _column("client_id", STRING, "the client id"),
        _column("source", STRING, "RUNNING_INFO: what it held; CLIENT_LOG: what it computed"),
        _column("start_timestamp", TIMESTAMP, "tells running infos of one id apart", nullable=True),
        _column("process", STRING, "the log's host label: tells logs apart", nullable=True),
        BROKER_NAME,
        QUEUE_ID,
        _column("drift", STRING, "HELD_NOT_COMPUTED or COMPUTED_NOT_HELD"),
        _column("probability", DOUBLE, "the share of the views that give it the queue"),
        FIRST_SEEN,
        LAST_SEEN,
        _column("observations", LONG, "the running infos, or the stretches of a log, that show it"),
        _column("persistence", STRING, "PERSISTENT or TRANSIENT"),
        _column(
            "attributed_to",
            STRING,
            "ROUTE_CHANGED or STATE_CHANGED: what had just changed; OTHER_LIST: the log names "
            "lists that the dumps do not have; SHARE_KEPT: it holds what it had before the last "
            "change, suspended or failing to rebalance; null: none of these",
            nullable=True,
        ),
        _column("queue_count", INT, "the length of the queue list it used", nullable=True),
        _column("client_count", INT, "the length of the client list it used", nullable=True),
    ),
)

GROUP_HEALTH = Table(
    "group_health",
    "cluster, consumer_group, topic",
    _struct(
        CLUSTER,
        GROUP,
        TOPIC,
        _column(
            "coverage",
            STRING,
            "AUDITED, or why not, at the group's last snapshot that tells; NO_GROUP: a route alone",
        ),
        _column("reason", STRING, "the coverage in words"),
        SNAPSHOTS,
        _column("audited_snapshots", LONG, "the snapshots that were recomputed"),
        FIRST_SEEN,
        LAST_SEEN,
        _column(
            "completeness", DOUBLE, "the lowest share of the route's brokers whose list is known"
        ),
        _column("members", INT, "connections in the longest broker list, at the end"),
        _column("processes", INT, "processes behind them, at the end"),
        _column("queues", INT, "readable queues, at the end"),
        _column("idle_clients", INT, "subscribed clients without a queue, at the end"),
        _column(
            "imbalance", INT, "queues of the fullest less those of the emptiest client, at the end"
        ),
        _column(
            "strategy_source", STRING, "where the weakest-known strategy comes from", nullable=True
        ),
        _column("orphan_queue_minutes", DOUBLE, "minutes without owner, summed over the queues"),
        _column(
            "duplicate_queue_minutes", DOUBLE, "minutes with several owners, summed over the queues"
        ),
        _column(
            "worst_severity",
            STRING,
            "of its findings, stalls among them; null: none",
            nullable=True,
        ),
    ),
)

REPORT_TABLES = (
    DUPLICATE_QUEUES,
    ORPHANED_QUEUES,
    FORMER_FINDINGS,
    STALLED_QUEUES,
    STACKED_CLIENT_IDS,
    GROUP_FAULTS,
    UNREADABLE_QUEUES,
    ALLOCATIONS,
    STATE_RUNS,
    REASSIGNMENTS,
    ALLOCATION_DRIFT,
    GROUP_HEALTH,
    QUARANTINE,
)
