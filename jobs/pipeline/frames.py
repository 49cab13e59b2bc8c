"""The audit as plain functions over DataFrames: snapshots in, report tables out.

    snapshots -> states -> allocations, findings -> episodes -> reports

Nothing here starts or stops a session, reads or writes storage, or knows the time of day.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
from jobs.states.continued import (
    GROUP,
    TOPIC,
    StateTables,
    join_runs,
    known_evaluations,
    known_group_states,
    known_route_states,
    without_known,
)
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


@dataclass(frozen=True)
class Snapshots:
    """The snapshot tables of an audit. Its groups and routes it must have; what else tells more."""

    heartbeats: DataFrame
    topic_routes: DataFrame
    broker_polls: DataFrame | None = None
    queue_offsets: DataFrame | None = None
    client_states: DataFrame | None = None

    def checked(self) -> Snapshots:
        """The same, each with just the columns of its table; ContractError where one is missing."""
        return Snapshots(
            check_contract(HEARTBEATS, self.heartbeats),
            check_contract(TOPIC_ROUTES, self.topic_routes),
            *[
                None if rows is None else check_contract(table, rows)
                for table, rows in (
                    (BROKER_POLLS, self.broker_polls),
                    (QUEUE_OFFSETS, self.queue_offsets),
                    (CLIENT_STATES, self.client_states),
                )
            ],
        )


@dataclass(frozen=True)
class StatesInTime:
    """What was so and when, computed: all that the report tables are made of, but for offsets and
    client states. Its size follows the changes, not the rounds.
    """

    group_runs: DataFrame
    group_states: DataFrame
    route_runs: DataFrame
    route_states: DataFrame
    group_topics: DataFrame
    segments: DataFrame
    evaluated: DataFrame

    def tables(self) -> StateTables:
        """What the next audit may go on from."""
        return StateTables(
            self.group_runs, self.group_states, self.route_runs, self.route_states, self.evaluated
        )


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
    settings = settings or Settings()
    snapshots = Snapshots(
        heartbeats, topic_routes, broker_polls, queue_offsets, client_states
    ).checked()
    return make_reports(find_states(None, snapshots, settings), snapshots, settings)


def find_states(
    known: StateTables | None, snapshots: Snapshots, settings: Settings
) -> StatesInTime:
    """The states of the rounds that ``known`` has, with equal settings, and of those given, as one.

    Heartbeats, routes and polls have the rounds that are not in the runs of ``known``, all of them
    later ones. What comes out is what one audit over all rounds finds.
    """
    heartbeats = mark_members(snapshots.heartbeats, settings.heartbeat_expiry_seconds)
    topic_routes, broker_polls = snapshots.topic_routes, snapshots.broker_polls
    group_runs, route_runs = _together(
        lambda: _group_runs(known, heartbeats, broker_polls),
        lambda: _route_runs(known, topic_routes),
    )
    group_states, route_states = _together(
        lambda: _group_states(known, group_runs, heartbeats, broker_polls, settings),
        lambda: _route_states(known, route_runs, topic_routes),
    )
    group_topics = computed(find_group_topics(group_states))
    segments = computed(
        find_segments(
            group_runs,
            group_topics,
            route_intervals(route_runs, settings.route_max_age_seconds),
        )
    )
    with bounded_batches(heartbeats.sparkSession):
        evaluated = computed(_states(known, segments, group_states, route_states, settings))
    return StatesInTime(
        group_runs, group_states, route_runs, route_states, group_topics, segments, evaluated
    )


def make_reports(
    found: StatesInTime, snapshots: Snapshots, settings: Settings
) -> dict[str, DataFrame]:
    """The report tables by name; offsets and client states are those of all rounds."""
    segments, states = found.segments, found.evaluated
    queue_offsets, client_states = snapshots.queue_offsets, snapshots.client_states
    timeline, changes = _together(
        lambda: build_timeline(segments, states),
        lambda: route_changes(found.route_runs, found.route_states, found.group_topics),
    )
    holdings = None
    if client_states is not None:
        holdings = computed(find_holdings(timeline, client_states, changes))
    described = computed(
        describe_findings(
            confirm_findings(queue_episodes(timeline, settings.persistence_seconds), holdings),
            queue_offsets,
            client_states,
            settings.severity,
        )
    )
    faults = [fault_episodes(timeline, settings.persistence_seconds), changes]
    if queue_offsets is None:
        stalled = segments.sparkSession.createDataFrame([], STALLED_QUEUES.schema)
    else:
        intervals = computed(queue_intervals(queue_offsets, described, segments, states))
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
        "group_health": group_health(segments, states, described, stalled).unionByName(
            topics_without_group(found.route_runs, found.route_states, found.group_topics)
        ),
    }
    if holdings is not None:
        drift = drift_episodes(holdings, settings.persistence_seconds)
        tables["allocation_drift"] = conform(drift, ALLOCATION_DRIFT)
    return tables


def computed(rows: DataFrame) -> DataFrame:
    """The rows, computed now and cut off from how they came to be.

    Every step on a DataFrame analyses its whole plan again, so that the cost of a long chain grows
    with the square of its length: for a small night that was most of the time. A cached DataFrame
    keeps its plan; a checkpoint has none. Spark frees it with the last reference.
    """
    # Fresh names for the columns: joined to its own sources, a checkpoint's are ambiguous.
    return rows.localCheckpoint().selectExpr(*[f"`{name}` AS `{name}`" for name in rows.columns])


def _together(*steps: Callable[[], DataFrame]) -> list[DataFrame]:
    """What several steps give, computed at a time: while one is planned another one runs."""
    with ThreadPoolExecutor(max_workers=len(steps)) as pool:
        return list(pool.map(lambda step: computed(step()), steps))


def _group_runs(
    known: StateTables | None, heartbeats: DataFrame, broker_polls: DataFrame | None
) -> DataFrame:
    runs = find_runs(group_fingerprints(heartbeats, broker_polls), GROUP)
    return runs if known is None else join_runs(known.group_runs, runs, GROUP)


def _route_runs(known: StateTables | None, topic_routes: DataFrame) -> DataFrame:
    runs = find_runs(route_fingerprints(topic_routes), TOPIC)
    return runs if known is None else join_runs(known.route_runs, runs, TOPIC)


def _group_states(
    known: StateTables | None,
    group_runs: DataFrame,
    heartbeats: DataFrame,
    broker_polls: DataFrame | None,
    settings: Settings,
) -> DataFrame:
    expiry = settings.heartbeat_expiry_seconds
    if known is None:
        return collect_group_states(group_runs, heartbeats, broker_polls, expiry)
    unknown = computed(without_known(group_runs, known.group_states, GROUP))
    return collect_group_states(unknown, heartbeats, broker_polls, expiry).unionByName(
        known_group_states(group_runs, known.group_states, expiry)
    )


def _route_states(
    known: StateTables | None, route_runs: DataFrame, topic_routes: DataFrame
) -> DataFrame:
    if known is None:
        return collect_route_states(route_runs, topic_routes)
    unknown = computed(without_known(route_runs, known.route_states, TOPIC))
    return collect_route_states(unknown, topic_routes).unionByName(
        known_route_states(route_runs, known.route_states)
    )


def _states(
    known: StateTables | None,
    segments: DataFrame,
    group_states: DataFrame,
    route_states: DataFrame,
    settings: Settings,
) -> DataFrame:
    rules = [each.to_rule() for each in settings.strategies]
    default = settings.default_strategy
    if known is None:
        return evaluate_states(segments, group_states, route_states, rules, default)
    reused = computed(known_evaluations(segments, group_states, known.evaluated_states))
    unknown = segments.join(reused.select("state_id"), "state_id", "left_anti")
    return evaluate_states(unknown, group_states, route_states, rules, default).unionByName(reused)
