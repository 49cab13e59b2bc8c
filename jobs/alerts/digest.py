"""A published run as alerts see it, read by PyArrow: no Spark, so within a second."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.kinds import OF_ONE_CLIENT, PERSISTENT, QUEUE_FINDINGS, STALLED, fault_severity
from jobs.reports.show import read_table
from jobs.storage import Published, Reports

Row = Mapping[str, Any]

NEW = "NEW"
PERSISTING = "PERSISTING"


@dataclass(frozen=True)
class Finding:
    """A row of a table of queues, or a lasting fault that no queue shows.

    ``status``: NEW or PERSISTING against the published run before, None for what passed.
    ``finding_id`` is the same from run to run; ``queue`` is None for a fault.
    """

    finding_id: str
    kind: str
    cluster: str
    consumer_group: str
    topic: str
    queue: tuple[str, int] | None
    severity: str
    persistence: str
    ongoing: bool
    status: str | None
    is_known: bool
    causes: tuple[str, ...]
    first_seen: datetime
    last_seen: datetime
    #: Of the time between them; 1.0 as well where the run did not publish it.
    share_of_time: float = 1.0

    @property
    def pair(self) -> tuple[str, str, str]:
        """Cluster, consumer group and topic."""
        return self.cluster, self.consumer_group, self.topic


@dataclass(frozen=True)
class Digest:
    """What a published run found; ``faults``, ``stacked`` and ``health`` are rows of its tables."""

    published: Published
    findings: tuple[Finding, ...]
    faults: tuple[Row, ...]
    stacked: tuple[Row, ...]
    former: tuple[Row, ...]
    health: tuple[Row, ...]


def read_digest(reports: Reports, published: Published) -> Digest:
    """Reads the run; InputError where one of its tables is gone."""
    faults = _rows(reports, published, "group_faults")
    before = _open_before(reports, published)
    findings = [
        _of_queue(row, kind, before)
        for table, kind in QUEUE_FINDINGS.items()
        for row in _rows(reports, published, table)
    ]
    findings += [_of_fault(row, before) for row in faults if _shows_on_no_queue(row)]
    return Digest(
        published,
        tuple(findings),
        faults,
        _rows(reports, published, "stacked_client_ids"),
        _rows(reports, published, "former_findings"),
        _rows(reports, published, "group_health"),
    )


def _rows(reports: Reports, published: Published, table: str) -> tuple[Row, ...]:
    return tuple(read_table(reports, published, table).to_pylist())


def _shows_on_no_queue(fault: Row) -> bool:
    return bool(fault["persistence"] == PERSISTENT and fault["queues_affected"] == 0)


def _open_before(reports: Reports, published: Published) -> frozenset[str]:
    """The ids of the stalls and of the faults without queues that the date before left open.

    Those of other findings are in their statuses already.
    """
    named = published.summary["previous"]
    previous = reports.find(named["date"]) if named else None
    if previous is None:
        return frozenset()
    # Whoever clears old tables away leaves the pointer.
    there = [
        table
        for table in ("stalled_queues", "group_faults")
        if reports.table(table, previous.date, previous.run_id).files()
    ]
    rows = [(table, row) for table in there for row in _rows(reports, previous, table)]
    return frozenset(
        _id_of_stall(row) if table == "stalled_queues" else _id_of_fault(row)
        for table, row in rows
        if row["ongoing"] and row["persistence"] == PERSISTENT
    )


def _hash(*identity: Any) -> str:
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]


def _id_of_stall(row: Row) -> str:
    queue = (row["cluster"], row["consumer_group"], row["topic"])
    return _hash(*queue, row["broker_name"], row["queue_id"], STALLED)


def _id_of_fault(row: Row) -> str:
    of_one = sorted(row["client_ids"]) if row["fault"] in OF_ONE_CLIENT else ()
    return _hash(row["cluster"], row["consumer_group"], row["topic"], row["fault"], *of_one)


def _of_queue(row: Row, kind: str, before: frozenset[str]) -> Finding:
    finding_id = row.get("finding_id") or _id_of_stall(row)
    return Finding(
        finding_id=finding_id,
        kind=kind,
        cluster=row["cluster"],
        consumer_group=row["consumer_group"],
        topic=row["topic"],
        queue=(row["broker_name"], row["queue_id"]),
        severity=row["severity"],
        persistence=row["persistence"],
        ongoing=row["ongoing"],
        status=row["status"] if "status" in row else _status(row, finding_id, before),
        is_known=row.get("known_issue") is not None,
        causes=tuple(row.get("causes") or ()),
        first_seen=row.get("episode_first_seen") or row["first_seen"],
        last_seen=row.get("episode_last_seen") or row["last_seen"],
        share_of_time=row.get("share_of_time", 1.0),
    )


def _of_fault(row: Row, before: frozenset[str]) -> Finding:
    finding_id = _id_of_fault(row)
    return Finding(
        finding_id=finding_id,
        kind=row["fault"],
        cluster=row["cluster"],
        consumer_group=row["consumer_group"],
        topic=row["topic"],
        queue=None,
        severity=fault_severity(row.get("severity"), row["fault"], row["persistence"]),
        persistence=row["persistence"],
        ongoing=row["ongoing"],
        status=_status(row, finding_id, before),
        is_known=row.get("known_issue") is not None,
        causes=(row["fault"],),
        first_seen=row["first_seen"],
        last_seen=row["last_seen"],
        share_of_time=row.get("share_of_time", 1.0),
    )


def _status(row: Row, finding_id: str, before: frozenset[str]) -> str | None:
    """As the audit gives it to orphaned and duplicated queues."""
    lasts = row["persistence"] == PERSISTENT
    if finding_id in before and (lasts or row["ongoing"]):
        return PERSISTING
    return NEW if lasts else None
