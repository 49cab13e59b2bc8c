"""Generated snapshot tables: small groups in which everything happens, hostile names among it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from jobs.schemas import (
    BROKER_POLLS,
    CLIENT_STATES,
    HEARTBEATS,
    QUEUE_OFFSETS,
    TOPIC_ROUTES,
    Table,
)

#: Few, so that contents repeat; close to each other, so that a slip in a text makes two equal.
TEXTS = ["", "a", "1:a", "-", "a1:", "null", "\x00", '"', "\\", "\u4e3b", "\uff21", "\U0001f600"]
TOPICS = ["T", "U", "%RETRY%G0", "%RETRY%nobody", "%RETRY%", "T'\n", "\U0001f600"]
START = datetime(2026, 1, 5, tzinfo=UTC)
EXPIRY_SECONDS = 120
SUBSCRIPTION = {"topic": "T", "expression_type": "TAG", "expression": "*"}
#: A row of ``heartbeats``: one member of one list.
HEARTBEAT: dict[str, Any] = {
    "cluster": "c",
    "snapshot_time": START,
    "broker_name": "b",
    "broker_id": 0,
    "consumer_group": "G",
    "client_id": "i",
    "client_addr": "h:1",
    "subscriptions": [SUBSCRIPTION],
}

Rows = list[dict[str, Any]]


def fleet(seed: int, groups: int = 1, rounds: int = 5) -> dict[str, pa.Table]:
    """The snapshot tables of so many groups in each of two clusters, rows in any order."""
    random_ = random.Random(seed)  # noqa: S311
    rows: dict[str, Rows] = {
        table.name: []
        for table in (HEARTBEATS, BROKER_POLLS, TOPIC_ROUTES, CLIENT_STATES, QUEUE_OFFSETS)
    }
    for cluster in ("c", "d"):
        for group in range(groups):
            _Group(random_, cluster, f"G{group}", rounds).add_to(rows)
        _add_routes(random_, rows["topic_routes"], cluster, rounds)
    for each in rows.values():
        # What was collected twice, and rows as they come from many files.
        each.extend(random_.sample(each, k=len(each) // 20))
        if random_.random() < 0.5:
            random_.shuffle(each)
    return {name: _table(name, each) for name, each in rows.items()}


_TABLES = {
    table.name: table
    for table in (HEARTBEATS, BROKER_POLLS, TOPIC_ROUTES, CLIENT_STATES, QUEUE_OFFSETS)
}


def _table(name: str, rows: Rows) -> pa.Table:
    table: Table = _TABLES[name]
    return pa.Table.from_pylist(rows, table.schema)


def _at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


class _Group:
    def __init__(self, random_: random.Random, cluster: str, group: str, rounds: int) -> None:
        self.random = random_
        self.key = {"cluster": cluster, "consumer_group": group}
        self.rounds = rounds
        #: No broker ever lists a member of every fifth group: its offsets alone tell its topics.
        self.is_never_listed = int(group[1:]) % 5 == 3
        self.members = [self._member() for _ in range(random_.randint(1, 4))]

    def _subscriptions(self) -> Rows:
        return [
            {
                "topic": self.random.choice(TOPICS),
                "expression_type": self.random.choice(["TAG", "SQL92", ""]),
                "expression": self.random.choice(TEXTS),
            }
            for _ in range(self.random.choice([0, 1, 1, 2]))
        ]

    def _member(self) -> dict[str, Any]:
        choice = self.random.choice
        return {
            "client_id": choice(TEXTS[1:]),
            "client_addr": choice(TEXTS),
            "language": choice(["JAVA", "", None]),
            "version": choice([401, 0, None]),
            "consume_type": choice(["CONSUME_PASSIVELY", "CONSUME_ACTIVELY", None]),
            "message_model": choice(["CLUSTERING", None]),
            "subscriptions": self._subscriptions(),
            "subscription_source": choice(["HEARTBEAT", "GROUP_TABLE", None]),
            "doubtful_topics": choice(
                [None, None, [], [{"topic": choice(TOPICS), "percent": choice([5, 50])}]]
            ),
            "strategy": choice(["AVG", *TEXTS[:2], None]),
            "client_rebalance": choice([True, False, None]),
            "pull_consumer": choice([True, False, False, None]),
            "last_heartbeat_at": choice([None, _at(-30), _at(0), _at(0.000001)]),
            "is_silent": choice([None, False, True]),
        }

    def add_to(self, rows: dict[str, Rows]) -> None:
        random_ = self.random
        for minute in range(self.rounds):
            if random_.random() < 0.3:
                self.members[random_.randrange(len(self.members))] = self._member()
            for broker_name, broker_id in (("b", 0), ("b", 1), ("\U0001f600", 0)):
                key = {**self.key, "snapshot_time": _at(60 * minute), "broker_name": broker_name}
                key["broker_id"] = broker_id
                listed = [each for each in self.members if random_.random() < 0.9]
                if self.is_never_listed:
                    listed = []
                outcome = random_.choice(["ANSWERED"] * 5 + ["NOT_ONLINE", "NO_ANSWER"])
                # Some lists contradict the poll, and some are lost.
                if random_.random() < (0.9 if outcome == "ANSWERED" else 0.1):
                    rows["heartbeats"] += [{**key, **each} for each in listed]
                if random_.random() < 0.9:
                    count = len(listed) if random_.random() < 0.9 else 0
                    at = random_.choice([None, _at(60 * minute), _at(60 * minute + 4)])
                    poll = {"outcome": outcome, "connections": count, "collected_at": at}
                    rows["broker_polls"].append({**key, **poll})
            for queue in range(2):
                offset = {"broker_offset": random_.randint(0, 3), "consumer_offset": 1}
                offset["given_per_1000_seconds"] = random_.choice([None, 0, 1])
                queue_key = {"topic": "T", "broker_name": "b", "queue_id": queue}
                at = {"snapshot_time": _at(60 * minute)}
                rows["queue_offsets"].append({**self.key, **at, **queue_key, **offset})
            rows["client_states"].append(self._client_state(minute))

    def _client_state(self, minute: int) -> dict[str, Any]:
        choice = self.random.choice
        is_line = choice([True, False])
        polled = choice(["RUNNING_INFO", "REQUEST_MODE", "CONSUME_DISABLED", "NO_OFFSETS"])
        queue = {"topic": "T", "broker_name": "b", "queue_id": 1, "dropped": choice([True, False])}
        return {
            **self.key,
            "source": "CLIENT_LOG" if is_line else polled,
            "snapshot_time": None if is_line else _at(60 * minute),
            "logged_at": choice([None, _at(60 * minute + 1)]) if is_line else None,
            "observed_at": _at(60 * minute + 2),
            "client_id": choice(TEXTS[:3]),
            # Of a client the one that forwarded the question.
            "broker_name": choice(["b", "\U0001f600"]),
            "process": choice([None, ""]),
            "error_code": choice([None, None, 1]),
            "start_timestamp": choice([None, _at(0)]),
            "consume_orderly": choice([None, False]),
            "consume_from_where": choice([None, "CONSUME_FROM_TIMESTAMP"]),
            "client_version": choice([None, "v2.1.0"]),
            "client_rebalance": (None, False, True)[minute % 3],
            "topic": choice([None, "T"]),
            "queue_count": choice([None, 0]),
            "queues": choice([None, [], [{**queue, "last_pull_at": _at(minute)}], [queue, queue]]),
        }


def _add_routes(random_: random.Random, rows: Rows, cluster: str, rounds: int) -> None:
    choice = random_.choice
    for topic in TOPICS:
        for minute in range(rounds):
            for namesrv_addr in ("n1", "n2"):
                key = {
                    "cluster": cluster,
                    "snapshot_time": _at(60 * minute + 7),
                    "namesrv_addr": namesrv_addr,
                    "topic": topic,
                }
                brokers = random_.sample(["b", "\U0001f600"], k=choice([0, 1, 1, 2]))
                for name in brokers or [None]:
                    queues = 4 if name else 0
                    facts = {"perm": choice([6, 4]), "read_queue_nums": queues}
                    facts["write_queue_nums"] = queues
                    ids = choice([[0], [0], [1, 0], [0, 1], None, []])
                    zone = choice([None, None, ""])
                    rows.append(
                        {**key, "broker_name": name, "broker_ids": ids, "zone_name": zone, **facts}
                    )
