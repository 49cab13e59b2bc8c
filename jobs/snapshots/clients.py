"""What clients say of themselves, in running infos and in their logs: rows of ``client_states``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from jobs.dumps.statement import LogLine, RunningInfo, Statement
from jobs.instants import SECOND, Instant

RUNNING_INFO_SOURCE = "RUNNING_INFO"
CLIENT_LOG_SOURCE = "CLIENT_LOG"

#: (cluster, process or else client id)
Log: TypeAlias = tuple[str, str]

#: Zones lie whole quarters of an hour from UTC, from 12 hours behind it to 14 ahead.
_QUARTER = 15 * 60 * SECOND
_MOST_BEHIND, _MOST_AHEAD = -12 * 3600 * SECOND, 14 * 3600 * SECOND
#: By how much the clocks of client and collector may differ.
_SKEW = 60 * SECOND

_FIXED_OFFSET = re.compile(r"(?:GMT|UTC)([+-])(\d{1,2})(?::(\d{2}))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)


def running_info_row(statement: Statement) -> dict[str, Any]:
    """The row of an answer to getConsumerRunningInfo, or of the error that came in its place."""
    source, info = statement.source, statement.content
    row = {
        "cluster": statement.cluster,
        "snapshot_time": statement.snapshot_time,
        "observed_at": statement.collected_at,
        "source": RUNNING_INFO_SOURCE,
        "consumer_group": statement.subject,
        "client_id": source.client_id,
        "broker_name": source.broker_name,
        "broker_id": source.broker_id,
        "process": source.process,
        "error_code": source.code,
        "error_message": source.message,
    }
    # Its fields have the names of the columns.
    return row | info._asdict() if isinstance(info, RunningInfo) else row


def log_line_row(statement: Statement, line: LogLine, logged_at: Instant | None) -> dict[str, Any]:
    """The row of a rebalance line of a client's log."""
    return {
        "cluster": statement.cluster,
        "observed_at": statement.collected_at,
        "logged_at": logged_at,
        "source": CLIENT_LOG_SOURCE,
        "consumer_group": statement.subject,
        "client_id": line.client_id,
        "process": statement.source.process,
        "strategy": line.strategy,
        "client_rebalance": False if line.by_broker else None,
        "topic": line.topic,
        "queue_count": line.queue_count,
        "client_count": line.client_count,
        "queues": [(*queue, False, None) for queue in line.queues],
    }


def log_of(statement: Statement, line: LogLine) -> Log:
    """The log that a line is of: that of its process, where the collector names one."""
    return statement.cluster, statement.source.process or line.client_id


def log_offsets(statements: Iterable[Statement]) -> dict[Log, Instant | None]:
    """The offset of each log from UTC; the statements are all lines of all logs."""
    ahead: dict[Log, Instant] = {}
    for statement in statements:
        line = statement.content
        if isinstance(line, LogLine) and line.printed is not None:
            log = log_of(statement, line)
            by = line.printed - statement.collected_at
            ahead[log] = max(ahead.get(log, by), by)
    return {log: log_offset(by) for log, by in ahead.items()}


def log_offset(ahead: Instant) -> Instant | None:
    """The offset from UTC of the times that a log prints; None where no zone explains them.

    ``ahead`` is by how much the printed times, read as UTC, are at most later than when their
    lines were collected. 4.x prints the local time of the host, 5.1 and later GMT+8 unless that
    was configured. All lines of a log have one offset, and no line is collected before it is
    written: the offset is the smallest quarter of an hour that leaves none later than collected,
    but for the skew of the clocks. That is exact where some line of the log was collected within
    14 minutes (a quarter of an hour less the skew). No zone at all explains a log that was
    collected a day later.

    >>> [log_offset(round(hours * 3600) * SECOND) for hours in (8, 7.9, -3.01, -24)]
    [28800000000, 28800000000, -10800000000, None]
    """
    offset = -(-(ahead - _SKEW) // _QUARTER) * _QUARTER
    return offset if _MOST_BEHIND <= offset <= _MOST_AHEAD else None


def logged_at(
    printed: Instant | None, collected_at: Instant, time_zone: str | None, offset: Instant | None
) -> Instant | None:
    """When the client wrote a line, from the time that it prints, which has no zone.

    By the zone that the settings name, else by its log's offset; None where that is not known. A
    line without a time counts as of when it was collected.
    """
    if printed is None:
        return collected_at
    if time_zone is not None:
        return _to_utc(printed, time_zone)
    return None if offset is None else printed - offset


def _to_utc(printed: Instant, time_zone: str) -> Instant:
    local = (_EPOCH + timedelta(microseconds=printed)).replace(tzinfo=_zone(time_zone))
    offset = local.utcoffset()
    assert offset is not None  # noqa: S101  it has a zone
    return printed - offset // timedelta(microseconds=1)


@lru_cache
def _zone(name: str) -> tzinfo:
    """A time zone by a name that the settings allow.

    >>> str(_zone("GMT+8")), str(_zone("Asia/Shanghai"))
    ('UTC+08:00', 'Asia/Shanghai')
    """
    fixed = _FIXED_OFFSET.fullmatch(name)
    if fixed is None:
        return ZoneInfo(name)
    sign = 1 if fixed[1] == "+" else -1
    return timezone(sign * timedelta(hours=int(fixed[2]), minutes=int(fixed[3] or 0)))
