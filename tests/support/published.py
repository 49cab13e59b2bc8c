"""A published run without files: tables as rows, for what reads published tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from jobs.reports.tables import PLACE, TABLES, Place, column_of
from jobs.storage import PublishedRun
from tests.support.judged import JUDGED, with_problems, with_verdict

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
GROUP, TOPIC = "G", "T"


def minute(number: float) -> datetime:
    return START + timedelta(minutes=number)


class RowTables:
    """Tables of rows; columns that no row has are null."""

    published: PublishedRun

    def __init__(self, **tables: list[dict[str, Any]]) -> None:
        self._tables = with_verdict(with_problems(tables))

    def read(
        self, name: str, columns: Sequence[str], places: Collection[Place] | None = None
    ) -> pa.Table:
        rows = [
            row
            for row in self._tables.get(name, [])
            if places is None or tuple(row[column] for column in PLACE) in places
        ]
        declared = TABLES[name].schema.names
        values = {c: [row.get(c) if c in declared else None for row in rows] for c in columns}
        types = {column: column_of(name, column).type for column in columns}
        return pa.table(
            {
                column: pa.array(
                    given, None if any(given) and name not in JUDGED else types[column]
                )
                for column, given in values.items()
            }
        )


def published(**summary: Any) -> PublishedRun:
    window = {"first_snapshot": "2026-11-20T10:00:00Z", "last_snapshot": "2026-11-20T11:00:00Z"}
    told = {
        "window": window,
        "previous": None,
        "inputs": {"snapshots": "snapshots", "ingested": None},
        "groups": {"clusters": {}, "left_out": 0},
        "assumptions": {"groups": 0, "asked": 0, "strategy": 0, "subscriptions": 0},
        "rounds": {"groups_too_wide": 0},
        "brokers": {},
        "started_at": "2026-11-21T01:00:00Z",
    }
    return PublishedRun("2026-11-20", "run-1", {**told, **summary}, {})


def _row(values: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    return {"cluster": "C", "consumer_group": GROUP, "topic": TOPIC, **defaults, **values}


def queue(number: int, broker_name: str = "broker-a") -> dict[str, Any]:
    return {"broker_name": broker_name, "queue_id": number}


def finding(number: int = 0, **values: Any) -> dict[str, Any]:
    return _row(
        values,
        **queue(number),
        severity="CRITICAL",
        persistence="PERSISTENT",
        ongoing=True,
        status="NEW",
        certainty="CERTAIN",
        first_seen=minute(10),
        last_seen=minute(19),
        causes=["DUPLICATE_CLIENT_ID"],
        backlog=None,
    )


def fault(name: str = "DUPLICATE_CLIENT_ID", **values: Any) -> dict[str, Any]:
    return _row(
        values,
        fault=name,
        first_seen=minute(10),
        last_seen=minute(19),
        persistence="PERSISTENT",
        ongoing=True,
        severity="WARNING",
        evidence="a is used by 2 processes",
        remedy="give each process its own instanceName",
        client_ids=["a"],
        queues_affected=2,
        findings_cleared=2,
        findings_left=0,
        moves=[],
    )


def run(state_id: str, first: float, last: float, **values: Any) -> dict[str, Any]:
    return _row(
        values,
        state_id=state_id,
        first_seen=minute(first),
        last_seen=minute(last),
        snapshots=int(last - first) + 1,
    )


def allocation(state_id: str, client_id: str, queues: list[int], **values: Any) -> dict[str, Any]:
    return _row(
        values,
        state_id=state_id,
        client_id=client_id,
        strategy="AVG",
        processes=1,
        view_weight=1.0,
        queues=[queue(number) for number in queues],
    )


def health(**values: Any) -> dict[str, Any]:
    return _row(
        values,
        coverage="AUDITED",
        reason="",
        snapshots=60,
        audited_snapshots=60,
        completeness=1.0,
        members=2,
        processes=2,
        queues=4,
        idle_clients=0,
        imbalance=0,
        strategy_source="observed",
        orphan_queue_minutes=0.0,
        duplicate_queue_minutes=0.0,
        worst_severity=None,
    )


def two_processes_share_one_client_id(**values: Any) -> dict[str, list[dict[str, Any]]]:
    """Four queues, a and a from minute 10 on, before a and b; the repair gives each its half.

    ``values`` overrides columns of every row: other names for the group, the topic, ...
    """
    moves = [
        {**queue(n), "before": ["a", "a"] if n < 2 else [], "after": [after]}
        for n, after in enumerate(["a", "a", "a (process 2)", "a (process 2)"])
    ]
    tables: dict[str, list[dict[str, Any]]] = {
        "orphaned_queues": [finding(2), finding(3)],
        "duplicate_queues": [finding(0, severity="WARNING"), finding(1, severity="WARNING")],
        "group_faults": [fault(moves=moves)],
        "state_runs": [run("s1", 0, 9), run("s2", 10, 19)],
        "allocations": [
            allocation("s1", "a", [0, 1]),
            allocation("s1", "b", [2, 3]),
            allocation("s2", "a", [0, 1], processes=2),
        ],
        "reassignments": [
            _row(
                {},
                changed_at=minute(10),
                clients_joined=[],
                clients_left=["b"],
                queues_before=4,
                queues=4,
                queues_moved=2,
            )
        ],
        "group_health": [
            health(
                worst_severity="CRITICAL", orphan_queue_minutes=20.0, duplicate_queue_minutes=20.0
            )
        ],
    }
    return {name: [{**row, **values} for row in rows] for name, rows in tables.items()}
