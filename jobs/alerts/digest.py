"""A published run as alerts see it, read by PyArrow: no Spark, so within a second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.kinds import PERSISTENT, QUEUE_FINDINGS
from jobs.languages.rows import with_texts
from jobs.reports.show import read_table
from jobs.storage import Published, Reports

Row = Mapping[str, Any]


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
    #: Of the time between them.
    share_of_time: float
    #: Over the runs before; None where it passed.
    open_since: datetime | None
    nights_open: int | None

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
    alone = filter(_shows_on_no_queue, faults)
    findings += [_finding(row, row["fault"], None, (row["fault"],)) for row in alone]
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
    queue = (row["broker_name"], row["queue_id"])
    # A stall names no causes.
    return _finding(row, kind, queue, tuple(row.get("causes") or ()))


def _finding(
    row: Row, kind: str, queue: tuple[str, int] | None, causes: tuple[str, ...]
) -> Finding:
    return Finding(
        finding_id=row["finding_id"],
        kind=kind,
        cluster=row["cluster"],
        consumer_group=row["consumer_group"],
        topic=row["topic"],
        queue=queue,
        severity=row["severity"],
        persistence=row["persistence"],
        ongoing=row["ongoing"],
        status=row["status"],
        is_known=row["known_issue"] is not None,
        causes=causes,
        first_seen=row["first_seen"],
        last_seen=row["last_seen"],
        # An unbroken run of offset polls has no such column.
        share_of_time=row.get("share_of_time", 1.0),
        open_since=row["open_since"],
        nights_open=row["nights_open"],
    )
