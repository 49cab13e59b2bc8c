"""The audit as plain functions over DataFrames: snapshots in, report tables out.

    snapshots -> states -> allocations, findings -> episodes -> reports

Nothing here starts or stops a session, reads or writes storage, or knows the time of day.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from jobs.conform import conform
from jobs.contract import check_contract
from jobs.episodes.confirmation import confirm_findings
from jobs.episodes.drift import drift_episodes
from jobs.episodes.episodes import fault_episodes, queue_episodes, stacked_id_episodes
from jobs.episodes.frozen import frozen_processes
from jobs.episodes.holdings import find_holdings
from jobs.episodes.reassignments import reassignments
from jobs.episodes.route_changes import route_changes
from jobs.episodes.stalls import queue_intervals, stall_episodes
from jobs.episodes.timeline import build_timeline
from jobs.reports.findings import (
    describe_findings,
    group_faults,
    queue_findings,
    stacked_client_ids,
    stalled_queues,
    unreadable_queues,
)
from jobs.reports.states import (
    allocations,
    group_health,
    state_runs,
    topics_without_group,
)
from jobs.schemas import (
    ALLOCATION_DRIFT,
    BROKER_POLLS,
    CLIENT_STATES,
    DUPLICATE_QUEUES,
    HEARTBEATS,
    ORPHANED_QUEUES,
    QUEUE_OFFSETS,
    STALLED_QUEUES,
    TOPIC_ROUTES,
)
from jobs.session import bounded_batches
from jobs.settings import Settings
from jobs.states.evaluated import evaluate_states
from jobs.states.fingerprints import group_fingerprints, route_fingerprints
from jobs.states.members import mark_members
from jobs.states.representatives import (
    collect_group_states,
    collect_route_states,
    find_group_topics,
)
from jobs.states.runs import find_runs
from jobs.states.segments import find_segments, route_intervals


def audit_frames(
    heartbeats: DataFrame,
    topic_routes: DataFrame,
    broker_polls: DataFrame | None = None,
    queue_offsets: DataFrame | None = None,
    client_states: DataFrame | None = None,
    settings: Settings | None = None,
) -> dict[str, DataFrame]:
    """The report tables by name, as DataFrames.

    What several tables are made of (runs, segments, evaluated states) is computed here, once; the
    tables themselves when they are used. Raises ContractError, before anything runs, where a
    snapshot table has not the columns that it must have.

    >>> reports = audit_frames(heartbeats, topic_routes)  # doctest: +SKIP
    >>> reports["orphaned_queues"].show()  # doctest: +SKIP
    """
    return _report_tables(
        check_contract(HEARTBEATS, heartbeats),
        check_contract(TOPIC_ROUTES, topic_routes),
        None if broker_polls is None else check_contract(BROKER_POLLS, broker_polls),
        None if queue_offsets is None else check_contract(QUEUE_OFFSETS, queue_offsets),
        None if client_states is None else check_contract(CLIENT_STATES, client_states),
        settings or Settings(),
    )


def _computed(rows: DataFrame) -> DataFrame:
    """The rows, computed now and cut off from how they came to be.

    Every step on a DataFrame analyses its whole plan again, so that the cost of a long chain grows
    with the square of its length: for a small night that was most of the time. A cached DataFrame
    keeps its plan; a checkpoint has none. Spark frees it with the last reference.
    """
    # Fresh names for the columns: joined to its own sources, a checkpoint's are ambiguous.
    return rows.localCheckpoint().selectExpr(*[f"`{name}` AS `{name}`" for name in rows.columns])


def _report_tables(
    heartbeats: DataFrame,
    topic_routes: DataFrame,
    broker_polls: DataFrame | None,
    queue_offsets: DataFrame | None,
    client_states: DataFrame | None,
    settings: Settings,
) -> dict[str, DataFrame]:
    heartbeats = mark_members(heartbeats, settings.heartbeat_expiry_seconds)
    group_runs = _computed(
        find_runs(group_fingerprints(heartbeats, broker_polls), ["cluster", "consumer_group"])
    )
    route_runs = _computed(find_runs(route_fingerprints(topic_routes), ["cluster", "topic"]))
    group_states = _computed(
        collect_group_states(
            group_runs, heartbeats, broker_polls, settings.heartbeat_expiry_seconds
        )
    )
    route_states = _computed(collect_route_states(route_runs, topic_routes))
    group_topics = _computed(find_group_topics(group_states))
    segments = _computed(
        find_segments(
            group_runs,
            group_topics,
            route_intervals(route_runs, settings.route_max_age_seconds),
        )
    )
    with bounded_batches(heartbeats.sparkSession):
        states = _computed(
            evaluate_states(
                segments,
                group_states,
                route_states,
                [each.to_rule() for each in settings.strategies],
                settings.default_strategy,
            )
        )
    timeline = _computed(build_timeline(segments, states))
    changes = _computed(route_changes(route_runs, route_states, group_topics))
    holdings = None
    if client_states is not None:
        holdings = _computed(find_holdings(timeline, client_states, changes))
    described = _computed(
        describe_findings(
            confirm_findings(queue_episodes(timeline, settings.persistence_seconds), holdings),
            queue_offsets,
            client_states,
            settings.severity,
        )
    )
    faults = [fault_episodes(timeline, settings.persistence_seconds), changes]
    if queue_offsets is None:
        stalled = heartbeats.sparkSession.createDataFrame([], STALLED_QUEUES.schema)
    else:
        intervals = _computed(queue_intervals(queue_offsets, described, segments, states))
        stalled = stalled_queues(stall_episodes(intervals, settings.persistence_seconds))
        faults.append(frozen_processes(intervals, settings.persistence_seconds))
    tables = {
        "duplicate_queues": queue_findings(described, "DUPLICATE", DUPLICATE_QUEUES),
        "orphaned_queues": queue_findings(described, "ORPHANED", ORPHANED_QUEUES),
        "stalled_queues": stalled,
        "stacked_client_ids": stacked_client_ids(
            stacked_id_episodes(timeline, settings.persistence_seconds)
        ),
        "group_faults": group_faults(*faults),
        "unreadable_queues": unreadable_queues(segments, states),
        "allocations": allocations(states),
        "state_runs": state_runs(segments),
        "reassignments": reassignments(timeline),
        "group_health": group_health(segments, states, described).unionByName(
            topics_without_group(route_runs, route_states, group_topics)
        ),
    }
    if holdings is not None:
        drift = drift_episodes(holdings, settings.persistence_seconds)
        tables["allocation_drift"] = conform(drift, ALLOCATION_DRIFT)
    return tables
