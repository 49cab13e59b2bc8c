"""A published run as alerts see it, read by PyArrow: no Spark, so within a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.finding_ids import fault_id, stall_id
from jobs.kinds import PERSISTENT, QUEUE_FINDINGS, fault_severity
from jobs.languages.rows import with_texts
from jobs.reports.show import read_table
from jobs.storage import Published, Reports

Row = Mapping[str, Any]

NEW = "NEW"


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
    #: Over the runs before; None where it passed, or the run did not publish it.
    open_since: datetime | None = None
    nights_open: int | None = None

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
    faults = tuple(map(with_texts, _rows(reports, published, "group_faults")))
    findings = [
        _of_queue(row, kind)
        for table, kind in QUEUE_FINDINGS.items()
        for row in _rows(reports, published, table)
    ]
    findings += [_of_fault(row) for row in faults if _shows_on_no_queue(row)]
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


def _of_queue(row: Row, kind: str) -> Finding:
    group = row["cluster"], row["consumer_group"], row["topic"]
    return Finding(
        # Stalls of earlier versions have no id.
        finding_id=row.get("finding_id") or stall_id(*group, row["broker_name"], row["queue_id"]),
        kind=kind,
        cluster=row["cluster"],
        consumer_group=row["consumer_group"],
        topic=row["topic"],
        queue=(row["broker_name"], row["queue_id"]),
        severity=row["severity"],
        persistence=row["persistence"],
        ongoing=row["ongoing"],
        status=row["status"] if "status" in row else _status(row),
        is_known=row.get("known_issue") is not None,
        causes=tuple(row.get("causes") or ()),
        first_seen=row.get("episode_first_seen") or row["first_seen"],
        last_seen=row.get("episode_last_seen") or row["last_seen"],
        share_of_time=row.get("share_of_time", 1.0),
        open_since=row.get("open_since"),
        nights_open=row.get("nights_open"),
    )


def _of_fault(row: Row) -> Finding:
    group = row["cluster"], row["consumer_group"], row["topic"]
    return Finding(
        finding_id=row.get("finding_id") or fault_id(*group, row["fault"], row["client_ids"]),
        kind=row["fault"],
        cluster=row["cluster"],
        consumer_group=row["consumer_group"],
        topic=row["topic"],
        queue=None,
        severity=fault_severity(row.get("severity"), row["fault"], row["persistence"]),
        persistence=row["persistence"],
        ongoing=row["ongoing"],
        status=row["status"] if "status" in row else _status(row),
        is_known=row.get("known_issue") is not None,
        causes=(row["fault"],),
        first_seen=row["first_seen"],
        last_seen=row["last_seen"],
        share_of_time=row.get("share_of_time", 1.0),
        open_since=row.get("open_since"),
        nights_open=row.get("nights_open"),
    )


def _status(row: Row) -> str | None:
    """Of a run of an earlier version, which did not compare it: what lasts is new."""
    return NEW if row["persistence"] == PERSISTENT else None
