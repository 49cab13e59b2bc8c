"""Statements as a reader gives them, each with a plain base case; and the tables made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from jobs.declared.instants import SECOND, Instant
from jobs.dumps.statement import (
    CLIENT_LOG,
    CONSUME_STATS,
    CONSUMER_CONNECTION,
    CONSUMER_RUNNING_INFO,
    HEARTBEAT,
    TOPIC_ROUTE,
    Connection,
    Connections,
    HeartbeatOfGroup,
    LineSource,
    Log,
    LogLine,
    Offset,
    Route,
    RouteEntry,
    RunningInfo,
    Statement,
    Stats,
    Subscriptions,
    log_of,
)
from jobs.snapshots.clients import log_offset
from jobs.snapshots.groups import SnapshotTerms, group_tables
from jobs.snapshots.topics import topic_tables

CLUSTER, GROUP, TOPIC, BROKER, NAMESRV = "C", "G", "T", "broker-a", "ns-1:9876"
DAY = datetime(2026, 1, 5, tzinfo=UTC)

_order = count()

Rows = dict[str, list[dict[str, Any]]]


def instant(seconds: float) -> Instant:
    """So many seconds into the test's day, as statements have it."""
    return round((DAY.timestamp() + seconds) * 1000) * (SECOND // 1000)


def at(seconds: float) -> datetime:
    """The same, as tables have it."""
    return DAY + timedelta(seconds=seconds)


def subscriptions(*topics: str) -> Subscriptions:
    """A subscription by tags to each topic."""
    return tuple((topic, "TAG", "*") for topic in sorted(topics))


def shown(*topics: str) -> list[dict[str, str]]:
    """The same, as tables have it."""
    names = ("topic", "expression_type", "expression")
    return [dict(zip(names, each, strict=True)) for each in subscriptions(*topics)]


def _statement(
    kind: str, seconds: float, source: LineSource, content: Any, **overrides: Any
) -> Statement:
    values = {
        "cluster": CLUSTER,
        "subject": GROUP,
        "snapshot_time": instant(seconds),
        "collected_at": instant(seconds),
        "order": next(_order),
    }
    return Statement(kind=kind, source=source, content=content, **values | overrides)


def heartbeat(
    client_id: str,
    *topics: str,
    seconds: float = 0,
    broker: str = BROKER,
    address: str | None = None,
    consume_type: str | None = "CONSUME_PASSIVELY",
    message_model: str | None = "CLUSTERING",
    is_full: bool = True,
) -> Statement:
    """A client's heartbeat, over the first connection that ``poll`` lists of its id."""
    return _statement(
        HEARTBEAT,
        seconds,
        LineSource(broker, 0, client_addr=address or f"{client_id}:1"),
        HeartbeatOfGroup(client_id, is_full, consume_type, message_model, subscriptions(*topics)),
        snapshot_time=None,
    )


def poll(
    *client_ids: str,
    topics: Sequence[str] = (TOPIC,),
    seconds: float = 0,
    collected: float | None = None,
    broker: str = BROKER,
    code: int | None = None,
    message: str | None = None,
    **source: Any,
) -> Statement:
    """A broker's list; the copies of an id have ports from 1 on. With a code there is none."""
    connections = tuple(
        Connection(each, f"{each}:{client_ids[: place + 1].count(each)}", "JAVA", 401)
        for place, each in enumerate(client_ids)
    )
    return _statement(
        CONSUMER_CONNECTION,
        seconds,
        LineSource(
            **{"broker_name": broker, "broker_id": 0, "error_code": code, "error_message": message}
            | source
        ),
        None
        if code is not None
        else Connections(
            connections, "CONSUME_PASSIVELY", "CLUSTERING", None, subscriptions(*topics)
        ),
        collected_at=instant(seconds if collected is None else collected),
    )


def running_info(
    client_id: str,
    *topics: str,
    seconds: float = 0,
    code: int | None = None,
    source: dict[str, Any] | None = None,
    **overrides: Any,
) -> Statement:
    """What a client says of itself; with a code it did not answer."""
    nothing = dict.fromkeys(RunningInfo._fields)
    values = nothing | {"pull_consumer": False, "subscriptions": subscriptions(*topics)}
    return _statement(
        CONSUMER_RUNNING_INFO,
        seconds,
        LineSource(client_id=client_id, error_code=code, **source or {}),
        None if code is not None else RunningInfo(**values | overrides),
    )


def log_line(
    client_id: str,
    strategy: str,
    seconds: float = 0,
    printed: float | None = 0,
    process: str | None = None,
    group: str = GROUP,
    by_broker: bool = False,
) -> Statement:
    """A rebalance line; ``printed``: the time of the day that it shows, in seconds."""
    return _statement(
        CLIENT_LOG,
        seconds,
        LineSource(process=process),
        LogLine(
            strategy,
            TOPIC,
            client_id,
            4,
            1,
            by_broker,
            None if printed is None else instant(printed),
            ((TOPIC, BROKER, 3),),
        ),
        subject=group,
        snapshot_time=None,
    )


def stats(
    offsets: dict[int, tuple[int, int]], seconds: float = 0, collected: float | None = None
) -> Statement:
    """Broker and consumer offset by queue id."""
    return _statement(
        CONSUME_STATS,
        seconds,
        LineSource(),
        Stats(tuple(Offset(TOPIC, BROKER, number, *two, None) for number, two in offsets.items())),
        collected_at=instant(seconds if collected is None else collected),
    )


def route(
    *brokers: RouteEntry,
    seconds: float = 0,
    collected: float | None = None,
    namesrv: str = NAMESRV,
    code: int | None = None,
    message: str | None = None,
) -> Statement:
    """A nameserver's answer; with a code it is an error."""
    return _statement(
        TOPIC_ROUTE,
        seconds,
        LineSource(namesrv_addr=namesrv, error_code=code, error_message=message),
        None if code is not None else Route(brokers),
        subject=TOPIC,
        collected_at=instant(seconds if collected is None else collected),
    )


def in_time(statements: Iterable[Statement]) -> list[Statement]:
    """The statements of one subject in order of time, as its tables are made of them."""
    return sorted(statements, key=lambda each: (each.collected_at, each.order))


def log_offsets(statements: Iterable[Statement]) -> dict[Log, Instant | None]:
    """By log its offset from UTC, as ``ingest`` finds it over all statements."""
    ahead: dict[Log, Instant] = {}
    for each in statements:
        if isinstance(each.content, LogLine) and each.content.printed is not None:
            log = log_of(each, each.content)
            by = each.content.printed - each.collected_at
            ahead[log] = max(ahead.get(log, by), by)
    return {log: log_offset(by) for log, by in ahead.items()}


def tables(*statements: Statement, expiry: int = 130, time_zone: str | None = None) -> Rows:
    """The rows of a group's tables, of statements in any order."""
    terms = SnapshotTerms(expiry, time_zone, log_offsets(statements))
    return _rows(group_tables(in_time(statements), terms))


def tables_of_topic(*statements: Statement) -> Rows:
    """The rows of a topic's tables."""
    return _rows(topic_tables(in_time(statements)))


def _rows(pieces: Iterable[tuple[str, Any]]) -> Rows:
    rows: Rows = {}
    for name, piece in pieces:
        rows.setdefault(name, []).extend(piece.to_pylist())
    return rows
