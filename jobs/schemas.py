"""The tables: snapshot tables that the audit reads, report tables that it publishes.

Declared once, here; what is written is selected and cast to it. Every column says what it holds;
the comment travels with the schema. All times are UTC instants. Report tables are a public
contract: columns are added, never changed or removed.

Declarations are blocks with a blank line between. In the first line is the table's name and its
grain, and then its columns follow: ``name type values: what it holds``, where ``?`` after the type
is a column that may be null. A name alone is a column of ``_SHARED``. What is indented goes on with
the line before.

The values are those of a snapshot table, which the fold holds its rows to (``contract.Values``):
``filled`` is a text that is not empty, ``A|B`` one of these, ``0..7`` a number of this range,
``null`` one that may be null though the column must be there. An offset is at most 2^45, which a
queue reaches after eleven years of 100,000 messages a second: so a sum over 2^17 queues is a long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .declared.contents import (
    ANSWERS_ABOUT_CLIENTS,
    DOUBTFUL_TOPICS,
    MEMBER_FACTS,
    OUTCOMES,
    ROUTE_FACTS,
    SUBSCRIPTIONS,
)


@dataclass(frozen=True)
class Table:
    """A table's name, its grain (one row per ...) and its schema."""

    name: str
    grain: str
    schema: pa.Schema


def comment_of(column: pa.Field[Any]) -> str:
    """The content of the column, in words."""
    return (column.metadata or {}).get(b"comment", b"").decode()


def words_of(column: pa.Field[Any]) -> str:
    """The contract of its values, in the words of its declaration."""
    return (column.metadata or {}).get(b"values", b"").decode()


def _structs(**fields: pa.DataType) -> pa.ListType[Any]:
    return pa.list_(pa.struct([pa.field(name, type_) for name, type_ in fields.items()]))


STRING, LONG, INT, DOUBLE, BOOLEAN = pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.bool_()
TIMESTAMP = pa.timestamp("us", "UTC")
_STRINGS = pa.list_(STRING)

QUEUES = _structs(broker_name=STRING, queue_id=INT)
_TOPIC_QUEUES = _structs(topic=STRING, broker_name=STRING, queue_id=INT)
#: A member of a broker's list, without the broker and the time.
MEMBERS = _structs(**dict(MEMBER_FACTS))
#: A fault of a problem: its worst run, and how many runs of it there were.
FAULTS_OF_A_PROBLEM = _structs(
    fault=STRING,
    severity=STRING,
    persistence=STRING,
    ongoing=BOOLEAN,
    first_seen=TIMESTAMP,
    last_seen=TIMESTAMP,
    share_of_time=DOUBLE,
    runs=INT,
    evidence=STRING,
    remedy=STRING,
    client_ids=_STRINGS,
    broker_names=_STRINGS,
    queues_affected=INT,
    findings_cleared=INT,
    findings_left=INT,
    known_issue=STRING,
    open_since=TIMESTAMP,
    nights_open=INT,
    event_id=STRING,
)
FAULT_FIELDS = tuple(each.name for each in FAULTS_OF_A_PROBLEM.value_type)

_TYPES = {
    "string": STRING,
    "strings": _STRINGS,
    "long": LONG,
    "longs": pa.list_(LONG),
    "int": INT,
    "ints": pa.list_(INT),
    "double": DOUBLE,
    "boolean": BOOLEAN,
    "timestamp": TIMESTAMP,
    "date": pa.date32(),
    "binary": pa.binary(),
    "QUEUES": QUEUES,
    "HELD_QUEUES": _structs(
        topic=STRING, broker_name=STRING, queue_id=INT, dropped=BOOLEAN, last_pull_at=TIMESTAMP
    ),
    "MOVES": _structs(broker_name=STRING, queue_id=INT, before=_STRINGS, after=_STRINGS),
    "FAULTS": FAULTS_OF_A_PROBLEM,
    "BACKLOGS": _structs(at=TIMESTAMP, messages=LONG),
    "KINDS": _structs(kind=STRING, lasting=INT, passing=INT),
    "TOPICS_OF_KINDS": _structs(kind=STRING, topics=INT),
    "PLACES": _structs(cluster=STRING, consumer_group=STRING, topic=STRING),
    "ROWS_OF_TABLES": _structs(name=STRING, rows=LONG),
    "SECONDS_OF_CLUSTERS": _structs(cluster=STRING, seconds=DOUBLE),
    "CLAIMANTS": _structs(client_id=STRING, processes=INT, probability=DOUBLE),
    "MEMBERS": MEMBERS,
    # A broker of a route, without the nameserver and the time.
    "ROUTE_BROKERS": _structs(**dict(ROUTE_FACTS)),
    "TOPIC_QUEUES": _TOPIC_QUEUES,
    "OTHER_STRATEGIES": _structs(strategy=STRING, parameters=STRING, client_ids=_STRINGS),
    "OTHER_ROUTES": _structs(namesrv_addr=STRING, queues=_TOPIC_QUEUES),
    "OTHER_LISTS": _structs(broker_name=STRING, broker_id=LONG, client_ids=_STRINGS),
    "SUBSCRIPTIONS": SUBSCRIPTIONS,
    "DOUBTFUL_TOPICS": DOUBTFUL_TOPICS,
}


def _columns(lines: list[str], shared: Mapping[str, pa.Field[Any]]) -> Iterator[pa.Field[Any]]:
    for line in lines:
        declared, colon, comment = line.partition(": ")
        if colon:
            name, type_, *values = declared.split()
            column = _TYPES[type_.removesuffix("?")]
            metadata = {"comment": comment, "values": " ".join(values)}
            yield pa.field(name, column, type_.endswith("?"), metadata)
        else:
            yield from (shared[name] for name in line.split(", "))


def _lines(declaration: str) -> list[str]:
    return re.sub(r"\n +", " ", declaration).strip().splitlines()


_SHARED_COLUMNS = _lines("""
cluster string filled: the cluster, as the collector names it
snapshot_time timestamp: the round of polling, one time for all that a cluster was asked in it; of
    heartbeats with times of their own audit makes rounds (round_seconds)
consumer_group string filled: the consumer group
topic string filled: the topic; %RETRY% topics too
broker_name string filled: the name of the broker's replica set
broker_id long 0..: 0 is the master, any other a slave
queue_id int 0..: the queue's number on its broker
client_id string filled: the client id
namesrv_addr string filled: the nameserver that was asked
state_id string: the state's fingerprint, over all the members could see
first_seen timestamp: the first snapshot that shows it
last_seen timestamp: the last snapshot that shows it
snapshots long: the number of the group's snapshots that show it
share_of_time double: of the snapshots from first_seen to last_seen the share that shows it
persistence string: PERSISTENT, or TRANSIENT: a deploy, a restart
ongoing boolean: whether it is there at the end, or gone for no longer than usual
severity string: INFO, WARNING or CRITICAL
status string?: NEW, or PERSISTING: open in the previous published run; null: it passed by itself
open_since timestamp?: since when every published run that audited it has it; null: it passed by
    itself
nights_open int?: published dates that have it open, with this one; null: it passed by itself
completeness double: the lowest share of the route's brokers that gave a list
strategy_source string?: where the least certain strategy of a member comes from
remedy string: what repairs it
known_issue string?: the reason of the known issue that it matches; null: none
texts string?: the row's texts as JSON, templates and values, which --language translates; null:
    none
consume_type string? CONSUME_PASSIVELY|CONSUME_ACTIVELY|CONSUME_POP: how the client consumes
client_rebalance boolean?: false: the broker assigns its queues
pull_consumer boolean?: whether it is a DefaultMQPullConsumer
language string?: the client's language
version int?: the ordinal of the client's MQVersion
collected_at timestamp?: when the answer came
error_message string?: the error in words
event_id string?: the event in whose time it began, as in events or merged_event_ids there; null:
    none
processes int: how many processes use it; each has what follows
queue_count int? 0..: the length of the queue list it used
client_count int? 0..: the length of the client list it used
""")
_SHARED = {column.name: column for column in _columns(_SHARED_COLUMNS, {})}


def _tables(declarations: str) -> tuple[Table, ...]:
    """The tables, in the order of their declarations."""
    tables = []
    for title, *columns in map(_lines, declarations.split("\n\n")):
        name, _, grain = title.partition(": ")
        tables.append(Table(name, grain, pa.schema(_columns(columns, _SHARED))))
    return tuple(tables)


ANSWERED, NOT_ONLINE, NO_ANSWER = OUTCOMES
#: The error code, in place of a broker's, of a list that came (ANSWERED) and is no evidence: it
#: cannot be read, or a connection of it has no client id.
LIST_REFUSED = -4

#: Activities that a process lacks for a queue that it holds: it has messages and consumes none; it
#: waits for the queue's lock; it does not ask for messages.
NOT_CONSUMING, NOT_LOCKED, NOT_PULLING = "NOT_CONSUMING", "NOT_LOCKED", "NOT_PULLING"
NOT_COUNTING, NOT_FINISHING = "NOT_COUNTING", "NOT_FINISHING"

#: The sources of rows of ``client_states``: a running info, a rebalance line of a client's log,
#: what a broker says of how a group consumes a topic, that it does not let the group consume, and
#: whether it has a configuration of the group.
RUNNING_INFO, CLIENT_LOG, REQUEST_MODE = ANSWERS_ABOUT_CLIENTS
CONSUME_DISABLED = "CONSUME_DISABLED"
NO_OFFSETS = "NO_OFFSETS"
CONFIGURED, NOT_CONFIGURED = "CONFIGURED", "NOT_CONFIGURED"

SNAPSHOT_TABLES = _tables("""
heartbeats: cluster, snapshot_time, broker_name, broker_id, consumer_group, client_addr: one
    connection in one broker's list of a group
cluster, snapshot_time, broker_name, broker_id, consumer_group
client_id string filled: the client id, as often as the broker lists it
client_addr string null: the connection's address, unique in one broker's list
language, version, consume_type
message_model string? CLUSTERING|BROADCASTING: CLUSTERING or BROADCASTING; null counts as CLUSTERING
subscriptions SUBSCRIPTIONS: what the member subscribes to
subscription_source string? HEARTBEAT|RUNNING_INFO|GROUP_TABLE: HEARTBEAT (the member's last full
    one, to any broker), RUNNING_INFO, or GROUP_TABLE
strategy string?: the strategy's name
strategy_source string? RUNNING_INFO|CLIENT_LOG: RUNNING_INFO or CLIENT_LOG
client_rebalance, pull_consumer
last_heartbeat_at timestamp?: its last heartbeat seen by then
is_silent boolean?: whether it has stopped sending heartbeats
doubtful_topics DOUBTFUL_TOPICS?: the topics that the GROUP_TABLE has in some polls only, and in how
    many percent; null: none

broker_polls: cluster, snapshot_time, broker_name, broker_id, consumer_group: one broker asked for a
    list
cluster, snapshot_time, broker_name, broker_id
broker_addr string?: the address that was asked
consumer_group
outcome string ANSWERED|NOT_ONLINE|NO_ANSWER: ANSWERED, NOT_ONLINE (no member there) or NO_ANSWER
error_code int?: the broker's response code; -1 without response; -4: its list is no evidence
error_message
connections int 0..: connections in the list
collected_at
first_collected_at timestamp?: when the first answer of the round came, of a broker that was asked
    again in it; null: asked once
list_id string? filled: the id of the list, as in member_lists

member_lists: cluster, consumer_group, list_id: the content of a broker's list, once however often
    polled
cluster, consumer_group
list_id string filled: the id of the content, as in broker_polls
members MEMBERS: the list's connections, with what is true of each

topic_routes: cluster, snapshot_time, namesrv_addr, topic, broker_name: one broker in one route
cluster, snapshot_time, namesrv_addr, topic
broker_name string? filled: null: the nameserver knows no broker for it
broker_ids longs?: the ids with an address; null: the dump does not have them
perm int 0..15: permission bits: READ 4, WRITE 2
read_queue_nums int 0..: consumers see queues 0 to this - 1
write_queue_nums int 0..: producers write to queues 0 to this - 1
zone_name string?: the zone that the broker is in
broker_addrs strings?: the addresses of broker_ids, in their order; null: the dump does not have
    them
enable_acting_master boolean?: whether the nameserver gives a slave as id 0 where there is no
    master; null: the dump does not have it

route_polls: cluster, snapshot_time, namesrv_addr, topic: one nameserver asked for a route
cluster, snapshot_time, namesrv_addr, topic
collected_at
route_id string filled: the id of the route, as in route_contents

route_contents: cluster, topic, route_id: the content of a route, once however often polled
cluster, topic
route_id string filled: the id of the content, as in route_polls
brokers ROUTE_BROKERS: none: the nameserver does not know the topic

client_states: one running info of a client, one rebalance line of its log, or what one broker says
    of how, or whether, a group consumes
cluster
snapshot_time timestamp?: the round; null for log lines
observed_at timestamp: when the answer or the line was collected
logged_at timestamp?: when the client wrote the line
source string RUNNING_INFO|CLIENT_LOG|REQUEST_MODE|CONSUME_DISABLED|NO_OFFSETS\
|CONFIGURED|NOT_CONFIGURED:
    RUNNING_INFO, CLIENT_LOG, REQUEST_MODE, CONSUME_DISABLED: the broker refuses every pull of the
    group, NO_OFFSETS: it answers, and has none of the offsets of the group that it gave before, or
    CONFIGURED and NOT_CONFIGURED: the broker has a subscription group of this name, or none; of a
    group that some broker always has, and up to the last rounds, there is neither
consumer_group
client_id string: the client id that was asked for, or that the line names; empty where a broker
    says it
broker_name string?: the broker that forwarded the question, or that says it
broker_id long? 0..: 0 is the master
process string?: the log's host label
error_code int?: where the client gave no answer
error_message
start_timestamp timestamp?: when the process started its consumer
strategy string?: the strategy's name, or its class
message_model string? CLUSTERING|BROADCASTING: CLUSTERING or BROADCASTING
consume_type, pull_consumer
consume_orderly boolean?: whether it consumes in order
client_rebalance boolean?: false: the broker assigns its queues; of REQUEST_MODE: false is POP, true
    is PULL
subscriptions SUBSCRIPTIONS?: what it subscribes to
topic string?: the topic of the log line or of the mode; null: all topics
queue_count, client_count
queues HELD_QUEUES?: the queues that it holds (dropped: being released), or that it computed
activities strings?: for each of these queues what the process does not do: NOT_CONSUMING,
    NOT_COUNTING, NOT_FINISHING, NOT_LOCKED or NOT_PULLING; null: none of these
language, version
client_version string?: what the client itself says of its version
behind longs?: the places, in queues, of those of which the client has a lower offset than one that
    was committed before; null: none
consume_from_where string?: of NO_OFFSETS: where the group's members begin without an offset

queue_offsets: cluster, snapshot_time, consumer_group, topic, broker_name, queue_id: one queue's
    offsets, of a static topic those of its logical queues
cluster, snapshot_time, consumer_group, topic, broker_name, queue_id
broker_offset long -1..35184372088832: where the next message goes
consumer_offset long -1..35184372088832: what the group has committed; -1: nothing
last_timestamp timestamp?: the store time of the last consumed message
given_per_1000_seconds long? 0..1000000000000000: messages that the broker gave the group in 1,000
    seconds, at the rate of the minute before (consumeTps); all queues of its answer together

quarantine: file, line: one input line that was not understood, or one row of a snapshot table that
    breaks its contract
file string: the file that has the line, or the row
line_number long: counted from 1; 0: the file as a whole, or a row
reason string: what was expected and what came
line string: the line, or the plain columns of the row as JSON; bytes that are not UTF-8 are shown
    as U+FFFD
line_bytes binary?: the exact bytes where they are not UTF-8
""")

#: Contracts of the values within a column, by its name: of the fields of structs, or of plain
#: elements, whose name is empty. An element is never null, and a field only where it says so.
NESTED_VALUES: Mapping[str, Mapping[str, str]] = {
    "subscriptions": {"topic": ""},
    "doubtful_topics": {"topic": "", "percent": "0..100"},
    "broker_ids": {"": ""},
    "broker_addrs": {"": ""},
    "behind": {"": "0.."},
    "queues": {"topic": "", "broker_name": "", "queue_id": "-1.."},
    "activities": {
        "": f"null {NOT_CONSUMING}|{NOT_COUNTING}|{NOT_FINISHING}|{NOT_LOCKED}|{NOT_PULLING}"
    },
    "members": {
        "client_id": "filled",
        "message_model": "null CLUSTERING|BROADCASTING",
        "subscriptions": "",
    },
    "brokers": {
        "broker_name": "filled",
        "perm": "0..15",
        "read_queue_nums": "0..",
        "write_queue_nums": "0..",
    },
}

HEARTBEATS, BROKER_POLLS, MEMBER_LISTS, *_others = SNAPSHOT_TABLES
TOPIC_ROUTES, ROUTE_POLLS, ROUTE_CONTENTS, CLIENT_STATES, QUEUE_OFFSETS, QUARANTINE = _others

#: The columns of duplicate and of orphaned queues.
_QUEUE_FINDINGS = """\
cluster, consumer_group, topic, broker_name, queue_id, first_seen, last_seen, snapshots
persistence, ongoing
certainty string: CERTAIN: under every view, in half of its snapshots or more, with a probability of
    0.9 or more; POSSIBLE: the views differ, a strategy that nobody saw decides it, one answer
    alone shows it, or few coarse rounds interrupt it
probability double: the mean over the snapshots that show it; 1.0: certain in all of them
completeness
claimants CLAIMANTS: who claims the queue, and how probably
causes strings: the faults that, repaired, make it go away
severity, status
strategy_source
backlog long?: messages not consumed at the last offsets of the run
finding_id string: stable over runs: cluster, group, topic, queue, kind
episode_first_seen timestamp: the same as first_seen
episode_last_seen timestamp: the same as last_seen
backlog_growth long?: its growth since the last offsets by first_seen, else since the first of the
    run
orderly boolean?: whether a client of the group consumes in order; null: none reported
confirmed boolean?: true: what the processes held shows it; false: every process reported, and none
    shows it; null: too few of them reported
computed boolean: true: lists and routes show it; false: only what the processes hold shows it
held boolean?: the same as confirmed
moved boolean?: true: the offsets do not advance while messages wait; false: they advance; null:
    they do not decide it
known_issue
share_of_time, open_since, nights_open, event_id"""

_REPORT_TABLES = _tables(f"""
problems: cluster, consumer_group, topic: all that is wrong with one topic of a group, put together
cluster, consumer_group, topic
standing string: COUNTED: it lasts and is not a known issue; KNOWN: known issues explain all of it;
    HARMLESS: members differ and no queue is wrong today; BEGUN: too new or too improbable to count,
    or it harms nobody; PASSED: it passed by itself
severity string: of what is still there, else the worst of what is over
worst_severity string: the worst of all of it, which the verdict counts
ongoing boolean: whether what severity is of is still there at the end
certainty string: CERTAIN or POSSIBLE, of what severity is of
kind string: its main cause, else the kind of its findings
is_explained boolean: whether kind is a cause
what string: what is wrong, in words, and what of it is over
first_seen timestamp: the first snapshot of what severity is of
last_seen timestamp: the last snapshot of what severity is of
queues_by_kind KINDS: how many queues are wrong, by kind: lastingly, or in passing
worst_findings int: findings of worst_severity, where it is COUNTED
client_ids strings: the client ids that it is about
remedy
faults FAULTS: the faults, each once with its worst run; what explains most comes first
known_issues strings: the reasons of the known issues that it matches
statuses strings: of its findings: NEW, PERSISTING
open_since, nights_open
returned timestamp?: it is new, and was COUNTED in an earlier night and then over: the last snapshot
    that showed it then; null: not in the last 7 published nights
event_ids strings: the events in whose time something of it began
began_with string?: the event with which what severity is of began, in words; null: none
orphan_queue_minutes double: as in group_health
duplicate_queue_minutes double: as in group_health
queues int: readable queues of the topic; 0: not known
backlog long?: as in group_health
backlog_per_minute double: as in group_health
waiting_since timestamp?: as in group_health; null where all is as new as the last offsets
queues_without_offsets int: as in group_health; of a retry topic without any offsets 0
backlog_over_time BACKLOGS: where it is COUNTED and backlog is known: the messages not consumed at
    up to 60 polls of the run, of each queue at its last offsets up to then; the last is backlog
unseen_since timestamp?: it is there in this snapshot, the last with an answer about the group, and
    its cluster was polled for longer; null: it was looked for to the end, or is over
texts

verdict: the run: one row
run_id string: the run
state string: WRONG: something lasts that is not a known issue; INCOMPLETE: nothing is, and not all
    was read and audited; WELL
level string: CRITICAL, WARNING, INCOMPLETE, INFO (something passed) or OK
sentence string: the first sentence on the run
critical int: topics of groups with lasting faults of which the worst is CRITICAL
warning int: those of which the worst is WARNING
groups int: the groups of both
ongoing int: those of both that are still there at the end
unseen int: those of both that were there when their group was last asked about, before the end
ongoing_critical int: those of ongoing of which what is still there is CRITICAL
new int: those of both with new findings, without those that returned
returned int: those of both with new findings that were over before
resolved int: findings of the previous run that are over
left_open int: findings of the previous run that nobody looked for
missing int: rows of gaps
rows_critical long: findings of this severity that are not known issues
rows_warning long: findings of this severity that are not known issues
rows_info long: findings of this severity that are not known issues
kinds TOPICS_OF_KINDS: topics with lasting faults, by main cause
others TOPICS_OF_KINDS: topics with what does not count, by standing or by kind
queues int: readable queues of the topics with lasting faults
backlog long?: messages that wait there
backlog_per_minute double: their growth a minute
waiting_since timestamp?: by when the oldest of them had come
queues_without_offsets int: queues there of which nothing is known
slow_rounds SECONDS_OF_CLUSTERS: clusters with long times between two rounds
texts

gaps: a thing that was not read or not audited: a kind of gap, or a coverage
kind string: the kind of gap; NOT_AUDITED: topics of one coverage; LEFT_OPEN: findings of the
    previous run
text string: what is missing, where, and what to do
coverage string?: of NOT_AUDITED, as in group_health
places PLACES: of NOT_AUDITED the topics of groups
reason string?: of NOT_AUDITED, of the first of them
unaudited_since timestamp?: of topics that were not audited for a time, of the first of them
unaudited_until timestamp?: the same
texts

duplicate_queues: cluster, consumer_group, topic, broker_name, queue_id, first_seen: one episode in
    which the queue had several owners, for at least half of its snapshots
{_QUEUE_FINDINGS}

orphaned_queues: cluster, consumer_group, topic, broker_name, queue_id, first_seen: one episode in
    which the queue had no owner, for at least half of its snapshots
{_QUEUE_FINDINGS}

former_findings: finding_id: findings that were open in an earlier published run and are gone
cluster, consumer_group, topic, broker_name, queue_id
kind string: ORPHANED, DUPLICATE or STALLED; or a fault that no queue shows, not audited this time:
    broker_name is empty, queue_id -1
status string: RESOLVED, or NOT_AUDITED this time
first_seen
last_seen timestamp: the last snapshot that shows it, in the last run that audited it
severity string: as in that run
causes strings: as in that run
finding_id string: as in the tables of faulty queues
open_since timestamp?: as in that run
nights_open int?: as in that run

stalled_queues: cluster, consumer_group, topic, broker_name, queue_id, first_seen: one unbroken run
    of offset polls in which the queue had an owner and messages and did not move, while another
    queue of the topic kept up
cluster, consumer_group, topic, broker_name, queue_id
first_seen timestamp: the first offset poll of the run
last_seen timestamp: the last offset poll of the run
polls long: offset polls in the run, at least 2
persistence
ongoing boolean: whether it is there in the last poll of group and topic
severity
backlog long: messages not consumed at the end of the run
backlog_growth long: messages that came in the run, from its first poll on
owners strings: the client ids that had it, as computed, at the run's last poll but one; none: not
    computed
known_issue
held boolean?: true: a process reported that it held the queue; false: every process reported, and
    none held it; null: too few of them reported
why string?: what its process does not do, by its running info; null: no running info shows it
finding_id string: stable over runs: cluster, group, topic, queue
status, open_since, nights_open, texts, event_id

stacked_client_ids: cluster, consumer_group, client_id, first_seen: one episode in which the id was
    more than once in a broker's list, for at least half of its snapshots
cluster, consumer_group
topics strings: the topics that it concerns
client_id
id_format string: the class of its format
processes int: the processes that the brokers' lists confirm
client_addrs strings: the addresses of its connections
versions ints: the client versions, as MQVersion ordinals
languages strings: the client languages
first_seen, last_seen, snapshots, persistence, ongoing
verdict string: STACKED, or STALE_CHANNEL of one process that reconnected
evidence string: which list has it how often, and what the verdict follows from
slots_wasted int: slots of the later copies, which nobody takes
queues_duplicated int: queues of all topics that several of its processes take
queues_orphaned int: queues of all topics in the slots of its later copies
remedy, known_issue, share_of_time, texts

group_faults: cluster, consumer_group, topic, fault, first_seen, and of what is about one client id
    that id: one episode in which the fault was there, for at least half of its snapshots (of
    FROZEN_PROCESS: an unbroken run of offset polls)
cluster, consumer_group, topic
fault string: the cause of findings, or what is wrong without any
first_seen, last_seen, snapshots, persistence, ongoing
evidence string: what was seen, in words, in the last state that shows it
remedy
client_ids strings: the client ids that it concerns
client_addrs strings: the addresses of their connections
broker_names strings: the brokers that it concerns
queues_affected int: the most queues whose findings it causes at a time
unread_messages long?: of QUEUES_LEFT_ROUTE, and of a topic without subscribers since a release, the
    messages not read when they left
findings_cleared int: findings that go away with the repair
findings_left int: findings that stay after the repair
moves MOVES: the queues that change hands with the repair
known_issue
severity string: the worst of the findings that it causes
share_of_time
finding_id string: stable over runs: cluster, group, topic, fault; of what is about one client id
    that id too
status, open_since, nights_open, texts, event_id
is_finding boolean: whether it is a finding by itself; false: findings of queues show it

unreadable_queues: cluster, consumer_group, topic, broker_name, queue_id, first_seen: a queue that
    is written and nobody can read
cluster, consumer_group, topic, broker_name, queue_id, first_seen, last_seen, snapshots

allocations: state_id, client_id, strategy, view: what the processes of an id take under one view
cluster, consumer_group, topic, state_id, client_id
processes
subscribed boolean: false: it takes a slot and claims nothing
strategy string: the strategy's name
strategy_source string: observed, configured, group or assumed
view_brokers strings: the brokers whose answer gives the view
view_weight double: how likely a process draws it; 1.0 where all agree
view_queues int: the length of the view's queue list
view_clients int: the length of the view's client list, copies counted
queues QUEUES: the queues that each of the processes takes

state_runs: state_id, first_seen: one unbroken run of snapshots in which a state held
cluster, consumer_group, topic, state_id, first_seen, last_seen, snapshots

reassignments: cluster, consumer_group, topic, changed_at: one change of who takes which queue
cluster, consumer_group, topic
changed_at timestamp: the first snapshot that shows it
seen_before timestamp: the last snapshot that shows what was before
settled_at timestamp?: the first snapshot since in which the brokers' lists agree; null: not yet
state_id_before string: the state before; its takers are in allocations
state_id
clients_joined strings: client ids that are new in the lists
clients_left strings: client ids that are in no list since
queues_before int: readable queues before
queues int: readable queues since
queues_moved int: queues that go to others, always or at times
lists_agree boolean: false: during the change, some lists have it and others do not

allocation_drift: cluster, consumer_group, topic, client_id, source, start_timestamp, process,
    queue, drift, first_seen: one unbroken run of a process's running infos, or of its log, that
    shows it
cluster, consumer_group, topic, client_id
source string: RUNNING_INFO: what it held; CLIENT_LOG: what it computed
start_timestamp timestamp?: distinguishes the running infos of one id
process string?: the log's host label: distinguishes the logs of one id
broker_name, queue_id
drift string: HELD_NOT_COMPUTED or COMPUTED_NOT_HELD
probability double: the share of the views that give it the queue
first_seen, last_seen
observations long: running infos, or unbroken parts of a log, that show it
persistence
attributed_to string?: ROUTE_CHANGED or STATE_CHANGED: what had just changed; OTHER_LIST: the dumps
    do not have the lists of the log; SHARE_KEPT: it holds what it had before the last change, for
    it is suspended or fails to rebalance; null: none of these
queue_count, client_count

group_health: cluster, consumer_group, topic
cluster, consumer_group, topic
coverage string: AUDITED, or why not, at the group's last snapshot that shows it; NO_GROUP: only a
    route was collected; AUDIT_FAILED: the audit itself failed on the group
reason string: the coverage in words, and what else is worth a line
snapshots
audited_snapshots long: the snapshots that were recomputed
unaudited_coverage string?: why its owners are not known between the next two times, the longest of
    persistence_seconds or more; null: none
unaudited_since timestamp?: the first snapshot of that time
unaudited_until timestamp?: the first snapshot after it, or the last one of all
first_seen, last_seen, completeness
members int: connections in the longest list, at the end
processes int: processes behind them, at the end
queues int: readable queues, at the end
idle_clients int: subscribed clients without a queue, at the end
imbalance int: queues of the fullest less those of the emptiest client, at the end
strategy_source
subscription_source string?: where the least certain subscription of a member comes from, at the
    end: HEARTBEAT, RUNNING_INFO or GROUP_TABLE
orphan_queue_minutes double: minutes without owner, summed over the queues
duplicate_queue_minutes double: minutes with several owners, summed over the queues
worst_severity string?: of its findings, stalls among them; null: none
group_most_queues int?: queues of its fullest client over all topics, at the end
group_fewest_queues int?: queues of its emptiest client over all topics, at the end
group_idle_clients int?: clients without a queue of any topic, at the end
group_most_clients int?: the most clients that get a queue: the queues of the group's largest topic
fairer_strategy string?: a strategy that is clearly fairer over all topics; null: none, or the group
    has findings
round_seconds double?: the usual time between the first and last answer of a round
round_interval_seconds double?: the usual time from one round to the next; null: one round
rounds_too_wide boolean?: whether a round takes longer than persistence_seconds
texts, known_issue
backlog long?: messages not consumed at the last offsets of each queue; null: not known, or the
    clients broadcast and keep them
queues_without_offsets int?: readable queues, at the end, whose offsets do not show what waits: none
    came, the last are old, or none was ever committed; backlog is of the others alone; null: the
    clients broadcast, nobody subscribes, or the route is not known
backlog_per_minute double?: its growth a minute, in the last 10 minutes of these offsets or over the
    last two
waiting_since timestamp?: the first offsets that have the oldest of these messages, which may be
    older where they are the first of the run; null: none waits

group_load: cluster, consumer_group, client_id: what a client has over all recomputed topics of the
    group, at the end
cluster, consumer_group, client_id
processes
topics int: the topics that it shares, without the retry topic
queues double: its queues over all topics but the retry topic; where the views differ, the mean
retry_queues double: its queues of the retry topic
share double: its share of the queues of all topics but the retry topic
idle boolean: whether it subscribes and has no queue of any topic

events: cluster, kind, subject, begins: one thing that happened, whatever was found of it
event_id string: stable over runs: cluster, kind, subject; what happens again has it again
cluster
kind string: MEMBERS_LEFT, MASTER_LEFT, NAMESERVERS_DIFFER, BROKER_ADDRESS_CHANGED, COLLECTOR_AWAY,
    TOPIC_RESIZED, GROUP_SCALED or GROUP_DEPLOYED
subject string: the broker, nameserver, topic or group that it happened to; of COLLECTOR_AWAY and
    MEMBERS_LEFT the cluster
begins timestamp: the first snapshot that shows it; of COLLECTOR_AWAY the last one before
ends timestamp?: the first snapshot that shows that it is over; null: it goes on
last_seen
headline string: when and what it was, what it cost and what came of it; times in UTC
what string: what happened, in words
evidence string: what showed it, in words
broker_names strings: the brokers that it concerns
groups_touched int: the groups that it touched: of a broker those with topics on it
groups strings: the first 1,000 of them by name
groups_left_out int: those of them that are not named
queues_lost int: queues of all groups that lastingly had no owner with it, or left the route with
    unread messages; what is only possible, or passed, does not count
messages_lost long: messages that groups had not read in queues that lastingly left the route with
    it
queues_read_twice int: queues of all groups that lastingly had several owners with it
findings int: the findings and faults that began with it
finding_ids strings: the first 100 of them, as in the tables of findings
texts
groups_lasting strings: the first 1,000 of the groups touched in which something of it lasts or goes
    on
groups_recovered int: the other groups touched; 0 while it goes on, and of COLLECTOR_AWAY
recovered_at timestamp?: the first snapshot without anything that passed with it in groups in which
    nothing lasts; null: there is no such group, or nothing passed
groups_not_consuming int: groups touched that consume nothing since
without_members_since timestamp?: of an event of one group, the first snapshot without any member;
    null: it had one throughout
without_members_until timestamp?: the first one with a member again; null: none
merged_event_ids strings: of MEMBERS_LEFT the events of one group each that it was made of; findings
    name those
""")
REPORT_TABLES = (*_REPORT_TABLES, QUARANTINE)

#: A folder of reports has a pointer and a summary in its place.
(RUNS,) = _tables("""
runs: date: the run that counts for a date, beside the report tables that save_as_tables wrote: it
    is written last, and rows of another run_id count for nothing
date date: the date of the report
run_id string: the run
started_at timestamp: the beginning of the run
duration_seconds double: how long it took
engine string: the engine, with which the run was made
state string: as in verdict
level string: as in verdict
sentence string: as in verdict
critical int: as in verdict
warning int: as in verdict
missing int: as in verdict
since timestamp?: the beginning of the window that was asked for; null: none
until timestamp?: its end, exclusive; null: none
first_snapshot timestamp: the first snapshot of members in the window
last_snapshot timestamp: the last one
previous_date date?: the date with which the run was compared; null: none came before
previous_run_id string?: the run of that date
tables ROWS_OF_TABLES: the report tables of the run, and the rows of each
summary string: the whole summary, as JSON: what summary.json is in a folder of reports
""")
_BY_NAME = {table.name: table for table in _REPORT_TABLES}

FORMER_FINDINGS = _BY_NAME["former_findings"]
GROUP_FAULTS = _BY_NAME["group_faults"]
ALLOCATIONS = _BY_NAME["allocations"]
ALLOCATION_DRIFT = _BY_NAME["allocation_drift"]
GROUP_HEALTH = _BY_NAME["group_health"]
#: Its columns of a topic that was not audited for a time: why, and when.
UNAUDITED = ("unaudited_coverage", "unaudited_since", "unaudited_until")
EVENTS = _BY_NAME["events"]
PROBLEMS, VERDICT, GAPS = (_BY_NAME[name] for name in ("problems", "verdict", "gaps"))

#: The columns of the UDF ``recompute_allocations``, but for one that no person reads. No run
#: publishes them.
(SITUATIONS,) = _tables("""
situations: state_id: one distinct situation: all that the members of a group could see of a topic
cluster, consumer_group, topic, state_id
strategy string?: the strategy of most clients, as rocketmq_allocate takes it; null: that of one is
    not known, or its SDK computes something else under the name
parameters string?: the strategy's parameters from the settings, as JSON; null: it has none
queues TOPIC_QUEUES?: the readable queues, by the route that most nameservers gave; null: nobody
    gave one, or it has more than bounds.topic_queues
client_ids strings: the list that most brokers gave, a client id as often as connections use it
other_strategies OTHER_STRATEGIES: strategies that other clients use
other_routes OTHER_ROUTES: the nameservers that gave other queues
other_lists OTHER_LISTS: the brokers that gave another list
connections int: the length of all brokers' lists together
views int?: the distinct pairs of lists that a client may work from; null: too many queues
""")
#: The columns of ``allocations`` that are fields of a share in the answer of that UDF.
SHARE_FIELDS = tuple(ALLOCATIONS.schema)[len(SITUATIONS.schema.names[:4]) :]
