"""Snapshot tables of one group in which a second process takes a client id for a while."""

from __future__ import annotations

from jobs.schemas import BROKER_POLLS, HEARTBEATS, QUEUE_OFFSETS, TOPIC_ROUTES
from tests.support.snapshots import at, heartbeat_row, offset_row, poll_row, route_row

BROKERS = ("broker-a", "broker-b")

#: Clients a and b; from minute 2 to 6 a second process has the id of a. Minute 4 is missing.
STACKED_HEARTBEATS = [
    heartbeat_row(
        snapshot_time=at(60 * minute),
        broker_name=broker,
        client_id=client_id,
        client_addr=f"{client_id}:{port}",
        strategy="AVG",
    )
    for minute in (0, 1, 2, 3, 5, 6, 7)
    for broker in BROKERS
    for client_id, port in [("a", 1), ("b", 1), *([("a", 2)] if 2 <= minute <= 6 else [])]
]
STACKED_ROUTES = [route_row(broker_name=broker, read_queue_nums=3) for broker in BROKERS]
#: Of minute 4 no broker answered.
STACKED_POLLS = [
    poll_row(
        snapshot_time=at(60 * minute),
        broker_name=broker,
        outcome="NO_ANSWER" if minute == 4 else "ANSWERED",
        connections=0 if minute == 4 else 2,
    )
    for minute in range(8)
    for broker in BROKERS
]
#: While two processes share the id of a, what is on broker-b stands still.
STACKED_OFFSETS = [
    offset_row(
        snapshot_time=at(60 * minute),
        broker_name=broker,
        queue_id=queue_id,
        broker_offset=20 + minute,
        consumer_offset=10 if broker == "broker-b" else 20 + minute,
    )
    for minute in (2, 3, 5, 6)
    for broker in BROKERS
    for queue_id in range(3)
]
STACKED = [
    (HEARTBEATS, STACKED_HEARTBEATS),
    (TOPIC_ROUTES, STACKED_ROUTES),
    (BROKER_POLLS, STACKED_POLLS),
]
STALLED = [*STACKED, (QUEUE_OFFSETS, STACKED_OFFSETS)]
