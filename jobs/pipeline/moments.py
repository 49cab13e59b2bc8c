"""Where a state comes from that somebody asks about: dump files, snapshot tables, DataFrames.

The first two without Spark, for a single group; the last by the very steps of the audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.contract import check_contract
from jobs.dumps.bodies import CONSUMER_CONNECTION
from jobs.dumps.plain import read_dumps
from jobs.errors import ContractError, InputError
from jobs.pipeline.frames import computed
from jobs.schemas import BROKER_POLLS, HEARTBEATS, TOPIC_ROUTES, Table
from jobs.settings import Settings
from jobs.snapshots.plain import GroupRows, make_group_rows
from jobs.states.continued import GROUP, TOPIC
from jobs.states.evaluated import distinct_states, state_columns
from jobs.states.evaluation import to_state
from jobs.states.fingerprints import group_fingerprints, route_fingerprints
from jobs.states.members import mark_members
from jobs.states.plain import Moment, find_moment
from jobs.states.representatives import (
    collect_group_states,
    collect_route_states,
    find_group_topics,
)
from jobs.states.runs import find_runs
from jobs.states.segments import find_segments, route_intervals
from jobs.storage import Location
from rebalance_core import Situation, StrategyRule, StrategyRules, near_names


def situation_of(moment: Moment, settings: Settings) -> Situation:
    """The moment's state with the settings' strategies."""
    rules = [StrategyRule(**each.to_rule()) for each in settings.strategies]
    return Situation(moment.state, StrategyRules(rules, settings.default_strategy))


def moment_of_dumps(
    paths: Sequence[str],
    group: str,
    topic: str,
    at: datetime | None,
    cluster: str | None,
    settings: Settings,
) -> Moment:
    """The state as ``ingest`` and ``audit`` would make it of these dump files, without Spark.

    Raises InputError where there is no such file, group, topic or time; it names what comes near.
    """
    dumps = read_dumps(paths, group)
    refused = f" ({dumps.refused} lines were not understood)" if dumps.refused else ""
    if group not in dumps.groups:
        raise _unknown("group", group, dumps.groups, refused)
    clusters = {
        record.cluster
        for record in dumps.records
        if record.kind == CONSUMER_CONNECTION and record.envelope["consumer_group"] == group
    }
    if not clusters:
        raise InputError(f"no answer of a broker about {group} here{refused}")
    rows = make_group_rows(dumps.records, _one_cluster(group, cluster, clusters), group)
    return _moment_of_rows(rows, topic, at, settings)


def moment_of_tables(
    snapshots: Location,
    group: str,
    topic: str,
    at: datetime | None,
    cluster: str | None,
    settings: Settings,
) -> Moment:
    """The same of snapshot tables, read by PyArrow; ``broker_polls`` may be missing."""
    if not (snapshots / HEARTBEATS.name).files():
        raise InputError(f"no table {HEARTBEATS.name} at {snapshots / HEARTBEATS.name}")
    of_group = ds.field("consumer_group") == group
    heartbeats = _read(snapshots, HEARTBEATS, of_group)
    polls = []
    if (snapshots / BROKER_POLLS.name).files():
        polls = _read(snapshots, BROKER_POLLS, of_group)
    if not heartbeats and not polls:
        known = (snapshots / HEARTBEATS.name).parquet().to_table(columns=["consumer_group"])
        raise _unknown(
            "group", group, {str(name) for name in known["consumer_group"].unique().to_pylist()}
        )
    clusters = {row["cluster"] for row in [*heartbeats, *polls]}
    chosen = _one_cluster(group, cluster, clusters)
    routes = _read(snapshots, TOPIC_ROUTES, ds.field("topic") == topic)
    rows = GroupRows(
        *([r for r in t if r["cluster"] == chosen] for t in (heartbeats, polls, routes))
    )
    return _moment_of_rows(rows, topic, at, settings)


def _moment_of_rows(rows: GroupRows, topic: str, at: datetime | None, settings: Settings) -> Moment:
    return find_moment(
        rows.heartbeats,
        rows.broker_polls,
        rows.topic_routes,
        topic,
        at,
        settings.heartbeat_expiry_seconds,
        settings.route_max_age_seconds,
    )


def _read(snapshots: Location, table: Table, wanted: ds.Expression) -> list[dict[str, Any]]:
    location = snapshots / table.name
    if not location.files():
        raise InputError(f"no table {table.name} at {location}")
    dataset = location.parquet()
    there = dataset.schema.names
    missing = [field.name for field in table.schema if field.name not in there]
    needed = [name for name in missing if not table.schema[name].nullable]
    if needed:
        raise ContractError(f"table {table.name} at {location} lacks {', '.join(needed)}")
    names = [field.name for field in table.schema if field.name in there]
    rows = dataset.to_table(columns=names, filter=wanted).to_pylist()
    nothing = dict.fromkeys(missing)
    return [{**nothing, **{name: _in_utc(each) for name, each in row.items()}} for row in rows]


def _in_utc(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def moment_of_frames(
    heartbeats: DataFrame,
    topic_routes: DataFrame,
    broker_polls: DataFrame | None,
    group: str,
    topic: str,
    at: datetime | None,
    cluster: str | None,
    settings: Settings,
) -> Moment:
    """The same of DataFrames, by the steps of the audit; collects a single state.

    Raises ContractError where a table has not the columns that it must have.
    """
    of_group = F.col("consumer_group") == group
    listed = check_contract(HEARTBEATS, heartbeats)
    polls = None if broker_polls is None else check_contract(BROKER_POLLS, broker_polls)
    clusters = _values(listed.where(of_group), "cluster")
    if polls is not None:
        clusters |= _values(polls.where(of_group), "cluster")
    if not clusters:
        raise _unknown("group", group, _values(listed, "consumer_group"))
    chosen = _one_cluster(group, cluster, clusters)
    here = of_group & (F.col("cluster") == chosen)
    marked = mark_members(listed.where(here), settings.heartbeat_expiry_seconds)
    polled = None if polls is None else polls.where(here)
    routes = check_contract(TOPIC_ROUTES, topic_routes).where(
        (F.col("cluster") == chosen) & (F.col("topic") == topic)
    )
    group_runs = computed(find_runs(group_fingerprints(marked, polled), GROUP))
    times = sorted(
        _in_utc(time) for (of_run,) in _rows(group_runs, "snapshot_times") for time in of_run
    )
    early = [time for time in times if at is None or time <= at]
    if not early:
        raise InputError(
            f"no snapshot of {group} up to {at}: they go from {times[0]} to {times[-1]}"
        )
    group_states = computed(
        collect_group_states(group_runs, marked, polled, settings.heartbeat_expiry_seconds)
    )
    topics = computed(find_group_topics(group_states))
    known = _values(topics, "topic") - {""}
    if topic not in known:
        raise _unknown_topic(group, topic, known)
    route_runs = computed(find_runs(route_fingerprints(routes), TOPIC))
    segments = computed(
        find_segments(
            group_runs,
            topics.where(F.col("topic") == topic),
            route_intervals(route_runs, settings.route_max_age_seconds),
        )
    )
    first_seen, last_seen, state_id = next(
        (_in_utc(first), _in_utc(last), state_id)
        for first, last, state_id in _rows(segments, "first_seen", "last_seen", "state_id")
        if _in_utc(first) <= early[-1] <= _in_utc(last)
    )
    row = (
        distinct_states(
            segments.where(F.col("state_id") == state_id),
            group_states,
            collect_route_states(route_runs, routes),
        )
        .select(*state_columns())
        .toPandas()
        .to_dict("records")[0]
    )
    return Moment(to_state(row), chosen, early[-1], first_seen, last_seen)


def _rows(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*columns).collect()]


def _values(frame: DataFrame, column: str) -> set[str]:
    return {value for (value,) in _rows(frame.select(column).distinct(), column)}


def _one_cluster(group: str, cluster: str | None, clusters: set[str]) -> str:
    if cluster is not None and cluster not in clusters:
        raise _unknown("cluster", cluster, clusters, f" with {group}")
    if cluster is None and len(clusters) > 1:
        names = ", ".join(map(repr, sorted(clusters)))
        raise InputError(f"{group} is in several clusters, {names}: say which")
    return cluster or next(iter(clusters))


def _unknown(what: str, came: str, known: Iterable[str], aside: str = "") -> InputError:
    return InputError(f"no {what} {came!r} here{aside}: {near_names(came, set(known))}")


def _unknown_topic(group: str, topic: str, known: Iterable[str]) -> InputError:
    return InputError(
        f"no member of {group} subscribes to the topic {topic!r}: {near_names(topic, set(known))}"
    )
