"""Builders of what the audit reads: states for the core, snapshot rows and dump lines for the jobs.

Each fills in a plain base case, so that a test states only what it is about.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobs.schemas import (
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    QUEUE_OFFSETS,
    TOPIC_ROUTES,
    Table,
)
from jobs.storage import Location
from rebalance_core import (
    ClientList,
    Evaluation,
    Member,
    MessageQueue,
    RouteBroker,
    State,
    TopicRoute,
)
from tests.support import bodies
from tests.support.tables import write_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]

CLUSTER = "DefaultCluster"
GROUP = "G"
TOPIC = "T"
BROKER = "broker-a"
NAMESRV = "ns-1:9876"

_ports = count(10000)

# ---------------------------------------------------------------- states of the core


def member(**overrides: Any) -> Member:
    """One connection, with an address of its own, over which heartbeats are heard."""
    address = f"10.0.0.1:{next(_ports)}"
    own = {"client_id": "10.0.0.1@app", "client_addr": address, "language": "JAVA"}
    return Member(**own | {"version": 401, "is_expired": False} | overrides)


def route_broker(**overrides: Any) -> RouteBroker:
    """A master that lets read and write its four queues."""
    own: dict[str, Any] = {"broker_name": BROKER, "broker_ids": (0,), "perm": 6}
    return RouteBroker(**own | {"read_queue_nums": 4, "write_queue_nums": 4} | overrides)


def route(*brokers: RouteBroker, namesrv_addr: str = NAMESRV) -> TopicRoute:
    """The route of one nameserver; without brokers: it knows no such topic."""
    return TopicRoute(namesrv_addr, brokers)


def route_of(names: Iterable[str], namesrv_addr: str = NAMESRV, **overrides: Any) -> TopicRoute:
    """The route of one nameserver over brokers of these names, which are alike."""
    brokers = [route_broker(broker_name=name, **overrides) for name in names]
    return route(*brokers, namesrv_addr=namesrv_addr)


def client_list(
    *members: str | Member, broker_name: str = BROKER, broker_id: int = 0, **overrides: Any
) -> ClientList:
    """What one broker answers; ``overrides`` are of the members that are given by their id."""
    return ClientList(
        broker_name,
        broker_id,
        tuple(
            each if isinstance(each, Member) else member(client_id=each, **overrides)
            for each in members
        ),
    )


def lists_of(
    lists: Mapping[str, Sequence[str | Member]], **overrides: Any
) -> tuple[ClientList, ...]:
    """What each broker answers, by its name (of a slave ``name/id``)."""
    places = [(*name.partition("/"), members) for name, members in lists.items()]
    return tuple(
        client_list(*members, broker_name=name, broker_id=int(number or 0), **overrides)
        for name, _, number, members in places
    )


def state(**overrides: Any) -> State:
    """Two clients that share the four queues of one broker."""
    values: dict[str, Any] = {
        "consumer_group": GROUP,
        "topic": TOPIC,
        "client_lists": (client_list("a", "b"),),
        "topic_routes": (route(route_broker()),),
    }
    return State(**values | overrides)


def one_list(client_ids: Sequence[str | Member], queues: int = 4, **overrides: Any) -> State:
    """One broker, of so many queues, with these members; all members see the same."""
    return state(
        client_lists=(client_list(*client_ids, **overrides),),
        topic_routes=(route(route_broker(read_queue_nums=queues, write_queue_nums=queues)),),
    )


def one_list_each(lists: Mapping[str, Sequence[str | Member]], queues: int = 4) -> State:
    """A broker for each of the names, with its list; all ``queues`` are on the first of them."""
    numbers = [(name, 0 if place else queues) for place, name in enumerate(lists)]
    brokers = [
        route_broker(broker_name=name, read_queue_nums=each, write_queue_nums=each)
        for name, each in numbers
    ]
    return state(client_lists=lists_of(lists), topic_routes=(route(*brokers),))


def of_go_without_a_master() -> State:
    """Two members by client-go on two brokers; of the first the route has the slave alone."""
    names = (("broker-a", 1), ("broker-b", 0))
    brokers = [route_broker(broker_name=name, broker_ids=(number,)) for name, number in names]
    listed = lists_of({f"{name}/{number}": "ab" for name, number in names}, language="GO")
    return state(client_lists=listed, topic_routes=(route(*brokers),))


def two_processes_share_one_client_id() -> State:
    """Three processes on eight queues, two of them by the same id, which both brokers confirm."""
    return one_list_each({"broker-a": ["a", "a", "b"], "broker-b": ["a", "a", "b"]}, queues=8)


def one_process_reconnected() -> State:
    """Two processes on six queues; one broker still lists the old channel of one of them."""
    return one_list_each(
        {"broker-a": ["a", "a", "b"], "broker-b": ["a", "b"], "broker-c": ["a", "b"]}, queues=6
    )


def queue(queue_id: int, broker_name: str = BROKER) -> MessageQueue:
    """A queue of the topic."""
    return MessageQueue(TOPIC, broker_name, queue_id)


def faulty_queues(evaluation: Evaluation, kind: str) -> list[int]:
    """The ids of the queues that have a finding of the kind, for topics on one broker."""
    return [each.queue.queue_id for each in evaluation.findings if each.kind == kind]


# ---------------------------------------------------------------- rows of the snapshot tables


def at(seconds: float) -> datetime:
    """So many seconds into the test's day."""
    return datetime(2026, 1, 5, tzinfo=UTC) + timedelta(seconds=seconds)


def subscriptions(*topics: str, expression: str = "*") -> list[Row]:
    """A subscription by tags to each of the topics."""
    return [
        {"topic": topic, "expression_type": "TAG", "expression": expression} for topic in topics
    ]


def _row(table: Table, values: Row) -> Row:
    unknown = values.keys() - set(table.schema.names)
    if unknown:
        raise ValueError(f"no such columns: {', '.join(sorted(unknown))}")
    return {name: values.get(name) for name in table.schema.names}


def _held(queue_ids: Sequence[int]) -> list[Row]:
    return [
        {"topic": TOPIC, "broker_name": BROKER, "queue_id": number, "dropped": False}
        for number in queue_ids
    ]


#: When the test's day begins, of the test's group and broker.
_ASKED: Row = {
    "cluster": CLUSTER,
    "snapshot_time": at(0),
    "consumer_group": GROUP,
    "broker_name": BROKER,
    "broker_id": 0,
}


def heartbeat_row(**overrides: Any) -> Row:
    """One member in one broker's list; its address follows from its id."""
    values: dict[str, Any] = {
        "client_id": "a",
        "client_addr": f"{overrides.get('client_id', 'a')}:1",
        "language": "JAVA",
        "version": 401,
        "consume_type": "CONSUME_PASSIVELY",
        "message_model": "CLUSTERING",
        "subscriptions": subscriptions(TOPIC),
        "subscription_source": "HEARTBEAT",
    }
    return _row(HEARTBEATS, _ASKED | values | overrides)


def poll_row(**overrides: Any) -> Row:
    """One broker that answered with one connection."""
    values = {"outcome": "ANSWERED", "connections": 1}
    return _row(BROKER_POLLS, _ASKED | values | overrides)


def route_row(**overrides: Any) -> Row:
    """One broker of four queues in the route of one nameserver."""
    values: dict[str, Any] = {
        "cluster": CLUSTER,
        "snapshot_time": at(0),
        "namesrv_addr": NAMESRV,
        "topic": TOPIC,
        "broker_name": BROKER,
        "broker_ids": [0],
        "perm": 6,
        "read_queue_nums": 4,
        "write_queue_nums": 4,
    }
    return _row(TOPIC_ROUTES, values | overrides)


def info_row(
    client_id: str, seconds: float, held: Sequence[int], started: float = 0, **overrides: Any
) -> Row:
    """One running info: the queues of the broker that the process holds."""
    values = {"snapshot_time": at(seconds), "start_timestamp": at(started)}
    return _client_row("RUNNING_INFO", client_id, seconds, held, values | overrides)


def log_row(
    process: str,
    client_id: str,
    seconds: float,
    queues: Sequence[int],
    queue_count: int = 4,
    client_count: int = 2,
    **overrides: Any,
) -> Row:
    """One log line: what the process computed from then on, and from lists of which lengths."""
    counts = {"queue_count": queue_count, "client_count": client_count}
    values = {"logged_at": at(seconds), "process": process, "topic": TOPIC, **counts}
    return _client_row("CLIENT_LOG", client_id, seconds, queues, values | overrides)


def _client_row(
    source: str, client_id: str, seconds: float, queues: Sequence[int], values: Row
) -> Row:
    same = {"cluster": CLUSTER, "consumer_group": GROUP, "client_id": client_id}
    told = {"source": source, "observed_at": at(seconds), "queues": _held(queues)}
    return _row(CLIENT_STATES, same | told | values)


def offset_row(**overrides: Any) -> Row:
    """One queue with nothing left to consume."""
    offsets = {"topic": TOPIC, "queue_id": 0, "broker_offset": 100, "consumer_offset": 100}
    asked = {name: value for name, value in _ASKED.items() if name != "broker_id"}
    return _row(QUEUE_OFFSETS, asked | offsets | overrides)


def table(of: Table, rows: Sequence[Row]) -> pa.Table:
    """The rows as a table of just its columns."""
    return pa.Table.from_pylist(list(rows), of.schema)


def write_tables(folder: Path, tables: Sequence[tuple[Table, Sequence[Row]]]) -> Location:
    """Writes snapshot tables as another job might have; gives the folder."""
    location = Location(folder)
    for of, rows in tables:
        write_table(of, table(of, rows), location / of.name)
    return location


def frame(spark: SparkSession, of: Table, rows: Sequence[Row]) -> DataFrame:
    """The rows as a DataFrame."""
    return frame_of(spark, table(of, rows))


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """A table of Arrow as a DataFrame, also of a Spark that takes none, before 4.0."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - most need no Spark

    return spark.createDataFrame(rows.to_pylist(), from_arrow_schema(rows.schema))


# ---------------------------------------------------------------- lines of a dump


def _line(kind: str, body: Any, values: dict[str, Any]) -> str:
    envelope = {"kind": kind, "cluster": CLUSTER, **values}
    if body is not None:
        envelope["body"] = body if isinstance(body, str) else json.dumps(body)
    return json.dumps(
        {k: v.isoformat() if isinstance(v, datetime) else v for k, v in envelope.items()}
    )


def poll_line(
    *client_ids: str, topics: Sequence[str] = (TOPIC,), seconds: float = 0, **overrides: Any
) -> str:
    """A broker's list of a group; ``topics`` are in the group's subscription table.

    The copies of an id have ports from 1 on. With ``error_code`` among the overrides the broker
    gave no list.
    """
    addresses = [
        f"{each}:{client_ids[: place + 1].count(each)}" for place, each in enumerate(client_ids)
    ]
    listed = zip(client_ids, addresses, strict=True)
    body = bodies.members(listed, bodies.subscriptions(topics))
    values = _polled(seconds) | _OF_BROKER | {"consumer_group": GROUP} | overrides
    return _line("consumer_connection", None if "error_code" in values else body, values)


_OF_BROKER = {"broker_name": BROKER, "broker_id": 0}


def _polled(seconds: float) -> Row:
    return {"snapshot_time": at(seconds), "collected_at": at(seconds)}


def heartbeat_line(
    client_id: str,
    *topics: str,
    seconds: float = 0,
    group: str = GROUP,
    without_sub: bool | None = None,
    message_model: str = "CLUSTERING",
    **overrides: Any,
) -> str:
    """A client's heartbeat, over the first connection that ``poll_line`` lists of its id."""
    of_group = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": message_model,
        "subscriptionDataSet": bodies.subscriptions(topics),
    }
    body: Row = {"clientID": client_id, "consumerDataSet": [of_group]}
    if without_sub is not None:
        body["withoutSub"] = without_sub
    values = {"collected_at": at(seconds), **_OF_BROKER, "client_addr": f"{client_id}:1"}
    return _line("heartbeat", body, values | overrides)


def running_info_line(
    client_id: str,
    *topics: str,
    seconds: float = 0,
    properties: dict[str, str] | None = None,
    **overrides: Any,
) -> str:
    """A client's ConsumerRunningInfo, without any queue."""
    body = {"properties": properties or {}, "subscriptionSet": bodies.subscriptions(topics)}
    body |= {"mqTable": {}}
    values = _polled(seconds) | {"consumer_group": GROUP, "client_id": client_id} | overrides
    return _line("consumer_running_info", None if "error_code" in values else body, values)


def log_line(
    client_id: str,
    strategy: str,
    seconds: float = 0,
    group: str = GROUP,
    printed: str = "2026-01-05 00:00:00,000",
    **overrides: Any,
) -> str:
    """A client's log line that says with which strategy it came to take nothing."""
    body = (
        f"{printed} INFO RocketmqClient - rebalanced result changed. "
        f"allocateMessageQueueStrategyName={strategy}, group={group}, topic={TOPIC}, "
        f"clientId={client_id}, mqAllSize=4, cidAllSize=1, rebalanceResultSize=0, "
        "rebalanceResultSet=[]"
    )
    return _line("client_log", body, {"collected_at": at(seconds)} | overrides)


def route_body(queues: int = 4) -> dict[str, Any]:
    """A route with so many queues on one master."""
    numbers = {"perm": 6, "readQueueNums": queues, "writeQueueNums": queues}
    return {
        "brokerDatas": [{"brokerName": BROKER, "brokerAddrs": {"0": "h:1"}}],
        "queueDatas": [{"brokerName": BROKER, **numbers}],
    }


def route_line(body: dict[str, Any] | None = None, seconds: float = 0, **overrides: Any) -> str:
    """A nameserver's answer; without a body it is an error, told in the overrides."""
    values = _polled(seconds) | {"namesrv_addr": NAMESRV, "topic": TOPIC}
    return _line("topic_route", body, values | overrides)


def stats_line(offsets: dict[int, tuple[int, int]], seconds: float = 0, **overrides: Any) -> str:
    """A broker's ConsumeStats: broker and consumer offset by queue id, as fastjson prints them."""
    entries = ",".join(
        f'{{"brokerName":"{BROKER}","queueId":{queue_id},"topic":"{TOPIC}"}}:'
        f'{{"brokerOffset":{of_broker},"consumerOffset":{of_consumer},"lastTimestamp":0}}'
        for queue_id, (of_broker, of_consumer) in offsets.items()
    )
    values = {"snapshot_time": at(seconds), "collected_at": at(seconds), "consumer_group": GROUP}
    return _line("consume_stats", f'{{"offsetTable":{{{entries}}}}}', values | overrides)
