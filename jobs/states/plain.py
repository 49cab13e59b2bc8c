"""rows of one group -> its state at a time, without Spark.

By the rules of ``members``, ``runs``, ``segments`` and ``representatives``, for a single group and
time: the tests hold the evaluations of both against each other, state by state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs.errors import InputError
from jobs.schemas import ANSWERED, NO_ANSWER, NOT_ONLINE
from jobs.states.evaluation import ROUTE_FIELDS, make_state
from rebalance_core import State, near_names

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Moment:
    """A state, and when it was so: the snapshot that was asked for, and the run that it is in."""

    state: State
    cluster: str
    snapshot_time: datetime
    first_seen: datetime
    last_seen: datetime


def find_moment(
    heartbeats: Sequence[Row],
    broker_polls: Sequence[Row],
    topic_routes: Sequence[Row],
    topic: str,
    at: datetime | None,
    heartbeat_expiry_seconds: int,
    route_max_age_seconds: int,
) -> Moment:
    """The state of a group and topic in its last snapshot up to ``at``, or in its last one.

    The rows are those of one group in one cluster, with the columns of the snapshot tables.
    Raises InputError where there is no snapshot so early, or the group has no such topic.
    """
    snapshots = _snapshots(heartbeats, broker_polls, heartbeat_expiry_seconds)
    first = (heartbeats or broker_polls)[0]
    group, cluster = first["consumer_group"], first["cluster"]
    _check_topic(group, topic, heartbeats)
    times = sorted(snapshots)
    snapshot_time = _last_up_to(times, at, group)
    contents = {time: snapshots[time].content for time in times}
    runs = _runs(contents)
    routes = _Routes([row for row in topic_routes if row["topic"] == topic], route_max_age_seconds)
    here = snapshots[snapshot_time]
    first_seen, last_seen = next(run for run in runs if run[0] <= snapshot_time <= run[1])
    in_run = [time for time in times if first_seen <= time <= last_seen]
    same_route = [t for t in in_run if routes.known_at(t) == routes.known_at(snapshot_time)]
    return Moment(
        state=make_state(
            group,
            topic,
            lasting=any(
                (run_last - run_first).total_seconds() > heartbeat_expiry_seconds
                for run_first, run_last in runs
                if contents[run_first] == here.content
            ),
            members=[_member(row, topic, heartbeat_expiry_seconds) for row in here.members],
            offline=sorted(b for b, outcome in here.unlisted.items() if outcome == NOT_ONLINE),
            routes=routes.rows_at(snapshot_time),
        ),
        cluster=cluster,
        snapshot_time=snapshot_time,
        first_seen=same_route[0],
        last_seen=same_route[-1],
    )


def topics_of(heartbeats: Iterable[Row]) -> set[str]:
    """The topics that some member subscribes to."""
    return {each["topic"] for row in heartbeats for each in row["subscriptions"] or ()}


def _check_topic(group: str, topic: str, heartbeats: Sequence[Row]) -> None:
    known = topics_of(heartbeats)
    if topic not in known:
        raise InputError(
            f"no member of {group} subscribes to the topic {topic!r}: {near_names(topic, known)}"
        )


def _last_up_to(times: Sequence[datetime], at: datetime | None, group: str) -> datetime:
    early = [time for time in times if at is None or time <= at]
    if not early:
        raise InputError(
            f"no snapshot of {group} up to {at}: they go from {times[0]} to {times[-1]}"
        )
    return early[-1]


class _Snapshot:
    """One round of polling: the members of all lists, and the brokers without a list."""

    def __init__(self) -> None:
        self.members: list[Row] = []
        self.unlisted: dict[tuple[str, int], str] = {}
        self.content: Collection[Any] = ()


def _snapshots(
    heartbeats: Iterable[Row], broker_polls: Iterable[Row], expiry_seconds: int
) -> dict[datetime, _Snapshot]:
    snapshots: dict[datetime, _Snapshot] = defaultdict(_Snapshot)
    for row in heartbeats:
        snapshots[row["snapshot_time"]].members.append(row)
    for row in broker_polls:
        if row["outcome"] != ANSWERED or row["connections"] == 0:
            # An answer with an empty list says what NOT_ONLINE says.
            outcome = NO_ANSWER if row["outcome"] == NO_ANSWER else NOT_ONLINE
            broker = (row["broker_name"], row["broker_id"])
            snapshots[row["snapshot_time"]].unlisted[broker] = outcome
    for snapshot in snapshots.values():
        listed = [_content(row, expiry_seconds) for row in snapshot.members]
        snapshot.content = (sorted(listed, key=repr), sorted(snapshot.unlisted.items()))
    return snapshots


def _content(row: Row, expiry_seconds: int) -> tuple[Any, ...]:
    """All of a member that makes a state another one."""
    subscriptions = tuple(tuple(each.values()) for each in row["subscriptions"] or ())
    return (*_on_any_topic(row, expiry_seconds), subscriptions)


def _is_expired(row: Row, expiry_seconds: int) -> bool:
    last = row["last_heartbeat_at"]
    return last is not None and (row["snapshot_time"] - last).total_seconds() > expiry_seconds


def _chooses_queues(row: Row) -> bool:
    assigns = (
        row["consume_type"] == "CONSUME_ACTIVELY"
        and not row["subscriptions"]
        and row["subscription_source"] not in (None, "GROUP_TABLE")
    )
    return bool(row["pull_consumer"]) or assigns


def _member(row: Row, topic: str, expiry_seconds: int) -> tuple[Any, ...]:
    """The record of ``MEMBER_FIELDS``."""
    own = next((each for each in row["subscriptions"] or () if each["topic"] == topic), None)
    return (
        *_on_any_topic(row, expiry_seconds),
        own is not None,
        own and own["expression_type"],
        own and own["expression"],
    )


def _on_any_topic(row: Row, expiry_seconds: int) -> tuple[Any, ...]:
    """The first of ``MEMBER_FIELDS``: what is true of a member whatever the topic."""
    return (
        row["broker_name"],
        row["broker_id"],
        row["client_id"],
        row["client_addr"],
        row["language"],
        -1 if row["version"] is None else row["version"],
        row["message_model"],
        row["strategy"],
        row["client_rebalance"],
        _is_expired(row, expiry_seconds),
        _chooses_queues(row),
    )


def _runs(contents: Mapping[datetime, Any]) -> list[tuple[datetime, datetime]]:
    """First and last time of every unbroken run of snapshots with one content; times ascend."""
    runs: list[tuple[datetime, datetime]] = []
    for time, content in contents.items():
        if runs and contents[runs[-1][0]] == content:
            runs[-1] = (runs[-1][0], time)
        else:
            runs.append((time, time))
    return runs


class _Routes:
    """The routes of one topic: each holds until the next poll, or until it is too old."""

    def __init__(self, rows: Iterable[Row], max_age_seconds: int) -> None:
        by_time: dict[datetime, list[tuple[Any, ...]]] = defaultdict(list)
        for row in rows:
            by_time[row["snapshot_time"]].append(tuple(row[name] for name in ROUTE_FIELDS))
        self._rows = dict(sorted(by_time.items()))
        contents = {
            time: sorted((_route_content(each) for each in of_time), key=repr)
            for time, of_time in self._rows.items()
        }
        self._runs = _runs(contents)
        self._max_age_seconds = max_age_seconds

    def known_at(self, time: datetime) -> datetime | None:
        """When the route that is in force then was seen first; None where none is known."""
        held = [run for run in self._runs if run[0] <= time]
        if not held:
            return None
        first, last = held[-1]
        return first if (time - last).total_seconds() < self._max_age_seconds else None

    def rows_at(self, time: datetime) -> list[tuple[Any, ...]]:
        """The records of ``ROUTE_FIELDS`` in force then."""
        known = self.known_at(time)
        return [] if known is None else self._rows[known]


def _route_content(record: tuple[Any, ...]) -> tuple[Any, ...]:
    values = dict(zip(ROUTE_FIELDS, record, strict=True))
    ids = values.pop("broker_ids")
    return (None if ids is None else tuple(sorted(ids)), *values.values())
