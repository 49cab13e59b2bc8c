"""Clients' reports of themselves, in running infos and logs, and how brokers let a group consume:
rows of ``client_states``.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from rebalance_core.grouping import grouped

from ..declared.instants import SECOND, Instant, to_datetime, to_instant
from ..dumps.statement import (
    Configured,
    GroupFlags,
    InfoQueue,
    LogLine,
    RequestMode,
    RunningInfo,
    Statement,
)
from ..schemas import (
    CLIENT_LOG,
    CONFIGURED,
    CONSUME_DISABLED,
    NO_OFFSETS,
    NOT_CONFIGURED,
    NOT_CONSUMING,
    NOT_COUNTING,
    NOT_FINISHING,
    NOT_LOCKED,
    NOT_PULLING,
    REQUEST_MODE,
    RUNNING_INFO,
)

#: A pull waits for messages for up to 30 s (``ConsumerPullTimeoutMillis``), and is tried again 3 s
#: after an error; ``ConsumerRunningInfo.analyzeProcessQueue`` too takes 60 s for too long.
_IDLE = 60 * SECOND
#: The time after which a process consumes no more of a queue whose lock the broker gave it; it asks
#: again each 20 s, and keeps the flag where no master answers (``ProcessQueue.isLockExpired`` and
#: ``RebalanceImpl.lockAll``, 4.9.4 and 5.3.3).
_LOCK_LIVES = 30 * SECOND

#: The least of the limits up to which SDKs cache messages of a queue, by default
#: (``pullThresholdForQueue``: 1,000 of Java, 1,024 of Go).
_FEWEST_AT_LIMIT = 1_000

#: Zones lie whole quarters of an hour from UTC, from 12 hours behind it to 14 ahead.
_QUARTER = 15 * 60 * SECOND
_MOST_BEHIND, _MOST_AHEAD = -12 * 3600 * SECOND, 14 * 3600 * SECOND
#: The most by which the clocks of client and collector may differ.
_SKEW = 60 * SECOND

_FIXED_OFFSET = re.compile(r"(?:GMT|UTC)([+-])(\d{1,2})(?::(\d{2}))?", re.ASCII)

#: The answer of a client that has no consumer of the group (any more): the process runs
#: (``ClientRemotingProcessor.getConsumerRunningInfo`` 4.9.4 and 5.3.3).
_NO_CONSUMER = "not exist in this consumer"

#: The number of fields of an ``InfoQueue`` that are published; the others are read for its
#: activity.
_HELD = InfoQueue._fields.index("last_pull_at") + 1


def _row(statement: Statement, source: str, **values: Any) -> dict[str, Any]:
    """A row, by column: the values of its statement and of its source."""
    return {
        **statement.source._asdict(),
        "cluster": statement.cluster,
        "snapshot_time": statement.snapshot_time,
        "observed_at": statement.collected_at,
        "source": source,
        "consumer_group": statement.subject,
        **values,
    }


class _First(NamedTuple):
    """The first message that a process has cached of a queue, since when, and when it had consumed
    the last one by then.
    """

    offset: int | None
    first_seen: Instant
    consumed_at: Instant | None


#: The first message, by client, start of the process and queue.
FirstCached: TypeAlias = dict[tuple[Any, ...], _First]


def running_info_row(
    statement: Statement,
    sdk: Mapping[str, Any],
    first_cached: FirstCached,
    committed: Mapping[tuple[Any, ...], int],
) -> dict[str, Any]:
    """The row of an answer to getConsumerRunningInfo, or of the error that came in its place.

    ``sdk``: the client's language and version, as brokers list them; empty where none does.
    ``first_cached``: from the answers before, which come in time; this one is added. ``committed``:
    by queue the highest offset that was committed before.
    """
    info = statement.content
    row = _row(statement, RUNNING_INFO, **sdk)
    if not isinstance(info, RunningInfo):
        has_none = _NO_CONSUMER in (statement.source.error_message or "")
        # The client itself says so: it answers, and holds nothing.
        return row | {"error_code": None, "queues": []} if has_none else row
    row |= info._asdict()
    if info.queues is not None:
        row["queues"] = [queue[:_HELD] for queue in info.queues]
        observed_at = statement.collected_at
        process = statement.source.client_id, info.start_timestamp
        row["activities"] = []
        for queue, activity in zip(info.queues, activities(info, observed_at), strict=True):
            key = (*process, *queue[:3])
            lacks = _first_message_lacks(key, queue, info, observed_at, first_cached)
            miscounts = sdk.get("language") != "JAVA" and _is_miscounted(queue)
            row["activities"].append(NOT_COUNTING if miscounts else activity or lacks)
        row["behind"] = [
            place
            for place, queue in enumerate(info.queues)
            if queue.commit_offset is not None
            and 0 <= queue.commit_offset < committed.get(queue[:3], 0)
        ] or None
    return row


def _is_miscounted(queue: InfoQueue) -> bool:
    """True if a process counts many messages and has neither a first nor a last one: its count is
    wrong, and it pulls no more.

    Early Go clients pull by a counter that is no length of the cache (``cachedMsgCount`` of
    ``processQueue``, client-go 2.0.0 to 2.1.2); Java has none (``ProcessQueue``).
    """
    count, ends = queue.cached_messages or 0, (queue.first_cached, queue.last_cached)
    is_at_limit = count >= _FEWEST_AT_LIMIT and not any(ends)
    return not queue.dropped and (is_at_limit or (count > 1 and ends == (0, 0)))


def _first_message_lacks(
    key: tuple[Any, ...],
    queue: InfoQueue,
    info: RunningInfo,
    observed_at: Instant,
    first_cached: FirstCached,
) -> str | None:
    """NOT_FINISHING, if the first message that the process has cached has been the first for too
    long while it consumes others; NOT_CONSUMING, if it consumes none; None: neither.

    Newer ones may be done meanwhile: an offset is committed up to the first that is not, and each
    that is done sets the time of consumption (``ProcessQueue.removeMessage`` 4.9.4). Who consumes
    in order sets it at each try of the first one (``takeMessages``): that one is not finished.
    """
    before = first_cached.get(key)
    if before is None or before.offset != queue.first_cached:
        first = _First(queue.first_cached, observed_at, queue.last_consume_at)
        before = first_cached[key] = first
    if queue.dropped or before.offset is None or observed_at - before.first_seen <= _IDLE:
        return None
    if queue.last_consume_at and before.consumed_at:
        return NOT_FINISHING if queue.last_consume_at > before.consumed_at else NOT_CONSUMING
    # Without times a cache with gaps shows that newer ones are done.
    newest = before.offset if queue.last_cached is None else queue.last_cached
    has_gaps = (queue.cached_messages or 0) <= newest - before.offset
    return NOT_FINISHING if info.consume_orderly or has_gaps else NOT_CONSUMING


def activities(info: RunningInfo, observed_at: Instant) -> list[str | None]:
    """The activity that a process lacks for each queue of the answer; None: nothing is wrong.

    A coarse word and no number, so that a client that gets on reports the same in each answer. What
    it does not consume is measured on its clock, by the latest time in the answer.

    >>> lately, long_ago = 1_000 * SECOND, 900 * SECOND
    >>> queues = (InfoQueue("T", "b", 0, False, lately, long_ago, cached_messages=5),)
    >>> activities(RunningInfo(*[None] * 8, queues), lately)
    ['NOT_CONSUMING']
    """
    queues = info.queues or ()
    times = (time for queue in queues for time in (queue.last_pull_at, queue.last_consume_at))
    now = max((time for time in times if time is not None), default=observed_at)
    return [_activity(queue, info, now, observed_at) for queue in queues]


def _activity(
    queue: InfoQueue, info: RunningInfo, now: Instant, observed_at: Instant
) -> str | None:
    if queue.dropped:
        return None
    is_over = bool(queue.locked_at) and now - (queue.locked_at or now) > _LOCK_LIVES
    if info.consume_orderly and (queue.locked is False or is_over):
        return NOT_LOCKED
    if queue.cached_messages:
        consumed_at = queue.last_consume_at
        return NOT_CONSUMING if consumed_at and now - consumed_at > _IDLE else None
    pulled_at = queue.last_pull_at
    return NOT_PULLING if pulled_at and observed_at - pulled_at > _IDLE else None


def broker_row(statement: Statement, said: RequestMode | GroupFlags) -> dict[str, Any]:
    """The row of how, or that not, a broker lets a group consume, whichever client it is."""
    if isinstance(said, GroupFlags):
        return _row(statement, CONSUME_DISABLED, client_id="")
    is_pull = said.mode != "POP"
    return _row(statement, REQUEST_MODE, client_id="", topic=said.topic, client_rebalance=is_pull)


def no_offsets_row(statement: Statement, consume_from_where: str | None) -> dict[str, Any]:
    """The row of a broker that answers, and has no offset of the group any more."""
    return _row(statement, NO_OFFSETS, client_id="", consume_from_where=consume_from_where)


def log_line_row(statement: Statement, line: LogLine, logged_at: Instant | None) -> dict[str, Any]:
    """The row of a rebalance line of a client's log."""
    return _row(statement, CLIENT_LOG, **line._asdict()) | {
        "snapshot_time": None,
        "logged_at": logged_at,
        "client_rebalance": False if line.by_broker else None,
        "queues": [(*queue, False, None) for queue in line.queues],
    }


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
    """The time at which the client wrote a line, from the printed time, which has no zone.

    The zone is the settings', else the log's offset; None where there is neither. A line without a
    time counts as of when it was collected.
    """
    if printed is None:
        return collected_at
    if time_zone is not None:
        return to_instant(to_datetime(printed).replace(tzinfo=_zone(time_zone)))
    return None if offset is None else printed - offset


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


#: A master that gave none of so many last answers of its cluster's rounds may be gone for good.
_LAST_ROUNDS = 4


class ConfigAnswer(NamedTuple):
    """An answer of a master, with those of its groups that none of the cluster always has."""

    collected_at: Instant
    groups: frozenset[str]


class ClusterConfigs(NamedTuple):
    """The groups that the masters of a cluster have a configuration of.

    ``always``: those that one of them, which answered to the end, has in each of its answers, as
    nearly all are. ``answers``: by master and round.
    """

    always: frozenset[str]
    answers: dict[tuple[str, Instant], ConfigAnswer]

    @classmethod
    def by_cluster(cls, configured: Configured) -> "dict[str, ClusterConfigs]":
        """The configurations of each cluster."""
        every = [(key[0], asked) for key, answers in configured.items() for asked in answers]
        rounds = grouped((cluster, round_) for cluster, (_, round_) in every)
        ends = {cluster: sorted({*asked})[-_LAST_ROUNDS:][0] for cluster, asked in rounds.items()}
        present = {(cluster, name) for cluster, (name, at) in every if at >= ends[cluster]}
        in_each: dict[tuple[str, str], set[str]] = {}
        for (cluster, groups), answers in configured.items():
            for name in {name for name, _ in answers}:
                in_each.setdefault((cluster, name), {*groups}).intersection_update(groups)
        by_cluster = grouped((key[0], in_each[key]) for key in sorted(present))
        found = {
            cluster: cls(frozenset[str]().union(*ids_of_masters), {})
            for cluster, ids_of_masters in by_cluster.items()
        }
        for (cluster, groups), answers in configured.items():
            always, answer_by_round = found[cluster]
            others = frozenset(groups) - always
            for round_, collected_at in answers.items():
                answer = ConfigAnswer(collected_at, others)
                # Of two answers in one round the later one counts.
                answer_by_round[round_] = max(answer, answer_by_round.get(round_, answer))
        return found

    def rows(self, cluster: str, group: str) -> Iterator[dict[str, Any]]:
        """The rows of a group; none of one that some master always has."""
        if group in self.always:
            return
        for (broker_name, round_), (collected_at, groups) in sorted(self.answers.items()):
            yield {
                "cluster": cluster,
                "snapshot_time": round_,
                "observed_at": collected_at,
                "source": CONFIGURED if group in groups else NOT_CONFIGURED,
                "consumer_group": group,
                "client_id": "",
                "broker_name": broker_name,
                "broker_id": 0,
            }
