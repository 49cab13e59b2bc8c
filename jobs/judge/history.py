"""dossier, evaluated situations -> history: the rows of every report table of a group.

It reads from top to bottom, in the order in which the one follows from the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from jobs.instants import Instant
from jobs.judge.backlog import backlog
from jobs.judge.confirmation import confirm, index_holdings
from jobs.judge.dossier import Dossier
from jobs.judge.drift import find_drift
from jobs.judge.episodes import (
    FaultEpisode,
    QueueEpisode,
    fault_episodes,
    queue_episodes,
    stacked_id_episodes,
)
from jobs.judge.evaluated import Evaluated, QueueKey
from jobs.judge.frozen import frozen_processes
from jobs.judge.health import group_health, state_runs, topic_without_group, unreadable_queues
from jobs.judge.holdings import Holding, find_holdings
from jobs.judge.known_issues import mark_known
from jobs.judge.reassignments import find_reassignments
from jobs.judge.route_changes import route_changes
from jobs.judge.severity import FaultSeverity, consumes_in_order, finding_severity, stall_severity
from jobs.judge.situations import Situations
from jobs.judge.stalls import find_intervals, stall_episodes
from jobs.judge.statuses import finding_id, former_findings, status
from jobs.judge.tables import Row
from jobs.judge.terms import Terms
from jobs.judge.timeline import build_timeline
from rebalance_core.findings import DUPLICATE, ORPHANED

__all__ = ["Row", "judge"]


def judge(
    dossier: Dossier,
    situations: Situations,
    evaluated: Mapping[str, Evaluated],
    terms: Terms,
) -> dict[str, list[Row]]:
    """The rows of every report table of the group, but for ``allocations`` and ``quarantine``.

    ``evaluated`` has every situation by its id.
    """
    seconds = terms.persistence_seconds
    by_topic = situations.by_topic
    timelines = {
        topic: build_timeline(topic, stretches, evaluated) for topic, stretches in by_topic.items()
    }

    faults = [
        fault for timeline in timelines.values() for fault in fault_episodes(timeline, seconds)
    ]
    changes = {topic: route_changes(topic, dossier.routes.get(topic, ())) for topic in by_topic}
    faults += [fault for of_topic in changes.values() for fault in of_topic]

    holdings = find_holdings(
        dossier,
        timelines,
        {topic: [each.first_seen for each in of_topic] for topic, of_topic in changes.items()},
    )
    episodes = [
        episode for timeline in timelines.values() for episode in queue_episodes(timeline, seconds)
    ]
    findings = _queue_findings(dossier, episodes, holdings, terms)

    stalls: list[Row] = []
    orphaned = _orphaned(episodes)
    for topic in dossier.offsets:
        # Offsets may tell of a topic that no member was seen to subscribe to.
        stretches = by_topic.get(topic, ())
        intervals = find_intervals(dossier, topic, stretches, evaluated, orphaned.get(topic, {}))
        stalls += stall_episodes(intervals, seconds)
        faults += frozen_processes(intervals, seconds)
    for row in stalls:
        row["severity"] = stall_severity(row["persistence"], row["backlog_growth"])

    of_topic = _by_topic(findings)
    stalls_of_topic = _by_topic(stalls)
    health = [
        group_health(topic, stretches, evaluated, of_topic[topic], stalls_of_topic[topic])
        for topic, stretches in by_topic.items()
    ]
    audited = {row["topic"] for row in health if row["audited_snapshots"]}
    health += [
        topic_without_group(topic, routes)
        for topic, routes in dossier.routes.items()
        if topic not in by_topic
    ]

    tables = {
        "duplicate_queues": [row for row in findings if row["kind"] == DUPLICATE],
        "orphaned_queues": [row for row in findings if row["kind"] == ORPHANED],
        "former_findings": former_findings(dossier.earlier, findings, audited),
        "stalled_queues": stalls,
        "stacked_client_ids": [
            dict(vars(each)) for each in stacked_id_episodes(timelines.values(), seconds)
        ],
        "group_faults": _fault_rows(faults, FaultSeverity(findings, stalls)),
        "unreadable_queues": [
            row
            for topic, stretches in by_topic.items()
            for row in unreadable_queues(topic, stretches, evaluated)
        ],
        "state_runs": [
            row for topic, stretches in by_topic.items() for row in state_runs(topic, stretches)
        ],
        "reassignments": [
            row for timeline in timelines.values() for row in find_reassignments(timeline)
        ],
        "allocation_drift": find_drift(holdings, seconds),
        "group_health": health,
    }
    for rows in tables.values():
        for row in rows:
            row["cluster"] = dossier.cluster
            row["consumer_group"] = dossier.consumer_group
    mark_known(tables, dossier.cluster, dossier.consumer_group, terms.known_issues)
    return tables


def _queue_findings(
    dossier: Dossier,
    episodes: Iterable[QueueEpisode],
    holdings: Sequence[Holding],
    terms: Terms,
) -> list[Row]:
    """The rows of orphaned_queues and duplicate_queues, with their ``kind``."""
    offsets = {
        (each.topic, each.broker_name, each.queue_id): each
        for of_topic in dossier.offsets.values()
        for each in of_topic
    }
    orderly = consumes_in_order(dossier.clients)
    open_before = {each.finding_id for each in dossier.earlier}
    held = index_holdings(holdings)
    rows: list[Row] = []
    for episode in episodes:
        broker_name, queue_id = episode.queue
        left = backlog(
            offsets.get((episode.topic, broker_name, queue_id)),
            episode.first_seen,
            episode.last_seen,
        )
        row: Row = {
            **vars(episode),
            "broker_name": broker_name,
            "queue_id": queue_id,
            "claimants": [each._asdict() for each in episode.claimants],
            "severity": finding_severity(
                episode.kind,
                episode.persistence,
                episode.probability,
                left.unread_share,
                orderly,
                terms,
            ),
            "backlog": left.messages,
            "backlog_growth": left.growth,
            "orderly": orderly,
            "confirmed": confirm(episode, held),
            "finding_id": finding_id(
                dossier.cluster,
                dossier.consumer_group,
                episode.topic,
                broker_name,
                queue_id,
                episode.kind,
            ),
        }
        row["status"] = status(row, open_before)
        rows.append(row)
    return rows


def _orphaned(
    episodes: Iterable[QueueEpisode],
) -> dict[str, dict[QueueKey, Sequence[tuple[Instant, Instant]]]]:
    """By topic and queue, from when to when it was orphaned, whatever the certainty."""
    times: dict[str, dict[QueueKey, set[tuple[Instant, Instant]]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for episode in episodes:
        if episode.kind == ORPHANED:
            whole = (episode.episode_first_seen, episode.episode_last_seen)
            times[episode.topic][episode.queue].add(whole)
    return {
        topic: {queue: sorted(of_queue) for queue, of_queue in of_topic.items()}
        for topic, of_topic in times.items()
    }


def _by_topic(rows: Iterable[Row]) -> Mapping[str, list[Row]]:
    of_topic: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        of_topic[row["topic"]].append(row)
    return of_topic


def _fault_rows(faults: Iterable[FaultEpisode], severity: FaultSeverity) -> list[Row]:
    return [
        {
            **vars(fault),
            "moves": [each._asdict() for each in fault.moves],
            "severity": severity.of(fault),
        }
        for fault in faults
    ]
